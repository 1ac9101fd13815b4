"""Vectors for the entities of a KB, and how they are brought into the space of an encoder."""
