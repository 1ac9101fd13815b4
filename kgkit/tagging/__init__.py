"""Taggers: what finds names in documents, as mentions with types."""
