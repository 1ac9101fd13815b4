"""Vectors of entities: matrices mapped into memory, and what finds near rows in them.

Promises, each with a test:

- Row i is entity i of the BUILD that the manifest names. For another build the vectors are refused, unless
  it extends that one and so has its ids.
- Vectors appear whole, by the replacement of one symbolic link; a job that is killed leaves what was
  published as it was, and goes on where it stopped.
- Reading copies the rows asked for and no others.

faiss is imported where there is an index, torch where a caller names a GPU.
"""

from kgkit.vectors.finding import damages, find_vectors, open_vectors, remove_vectors, vectors_names
from kgkit.vectors.layout import VectorsManifest
from kgkit.vectors.matrix import Neighbours, Vectors
from kgkit.vectors.work import Work

__all__ = [
    "Neighbours",
    "Vectors",
    "VectorsManifest",
    "Work",
    "damages",
    "find_vectors",
    "open_vectors",
    "remove_vectors",
    "vectors_names",
]
