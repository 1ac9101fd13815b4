"""Training linkers: from documents with links to a scorer of candidates."""
