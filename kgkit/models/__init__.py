"""Trained models on disk, for whatever purpose: manifests, folders, publishing, rows in the catalog."""
