"""The builder contract: all that a builder, ours or a stranger's, needs of kgkit.

A builder turns a source into a stream of records and knows nothing of ids,
tables or disks. `docs/adding-a-builder.md` writes one from an empty file.
"""

from kgkit.building.contract import (
    MAX_COUNT,
    Builder,
    Files,
    KBRecords,
    SourceInfo,
    Traits,
    builder_names,
    find_builder,
)
from kgkit.building.lines import text_lines
from kgkit.types import Alias, Entity, Form, Record, Redirect, Triple

__all__ = [
    "MAX_COUNT",
    "Alias",
    "Builder",
    "Entity",
    "Files",
    "Form",
    "KBRecords",
    "Record",
    "Redirect",
    "SourceInfo",
    "Traits",
    "Triple",
    "builder_names",
    "find_builder",
    "text_lines",
]
