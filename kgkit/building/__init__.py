"""The builder contract: all that a builder, ours or a stranger's, needs of kgkit.

A builder turns a source into a stream of records and knows nothing of ids,
tables or disks. `docs/adding-a-builder.md` writes one from an empty file.
"""

from kgkit.building.contract import Builder, Files, SourceInfo, builder_names, find_builder
from kgkit.types import Alias, Entity, Form, Record, Redirect, Triple

__all__ = [
    "Alias",
    "Builder",
    "Entity",
    "Files",
    "Form",
    "Record",
    "Redirect",
    "SourceInfo",
    "Triple",
    "builder_names",
    "find_builder",
]
