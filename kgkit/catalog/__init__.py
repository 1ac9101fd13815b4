"""The catalog: which KBs, vectors, indexes, models, runs and scores there are, and what came from what.

An index, in SQLite or PostgreSQL, over what lies on disk: manifests are the
truth, and `kgkit kb list` makes the catalog agree with them again. `models`
draws the tables. Nothing that answers a query needs the catalog or loads it.
"""

from kgkit.catalog.catalog import Catalog, Changes, KBOnDisk, VectorsOnDisk
from kgkit.catalog.models import KB, Base, Build, Index, Model, Run, Score, Vectors

__all__ = [
    "KB",
    "Base",
    "Build",
    "Catalog",
    "Changes",
    "KBOnDisk",
    "VectorsOnDisk",
    "Index",
    "Model",
    "Run",
    "Score",
    "Vectors",
]
