"""The builder contract: all that a builder, ours or a stranger's, needs of kgkit.

A builder turns a source into a stream of records and knows nothing of ids,
tables or disks. `docs/adding-a-builder.md` writes one from an empty file.
"""

from kgkit.building.attributes import check_attributes, check_occurrences
from kgkit.building.contract import (
    MAX_COUNT,
    Builder,
    Files,
    KBProperties,
    KBRecords,
    Prose,
    SourceInfo,
    Step,
    builder_names,
    find_builder,
)
from kgkit.building.json_lines import LINE_ERRORS, EntityFields, json_problem
from kgkit.files import (
    COMPRESSIONS,
    check_regular_file,
    decoded_line,
    plain_name,
    text_lines,
    text_or_bad_lines,
    without_mark,
)
from kgkit.network import check_online
from kgkit.tables import csv_or_bad_rows, csv_rows, open_parquet, parquet_batches, parquet_cells, sniff_format
from kgkit.text import POPULATION
from kgkit.types import (
    Alias,
    Aliases,
    Attribute,
    BadRecord,
    Entity,
    Form,
    Occurrences,
    Record,
    Redirect,
    Triple,
    Triples,
)
from kgkit.urls import check_url_pattern

__all__ = [
    "COMPRESSIONS",
    "LINE_ERRORS",
    "MAX_COUNT",
    "POPULATION",
    "Alias",
    "Aliases",
    "Attribute",
    "BadRecord",
    "Builder",
    "Entity",
    "EntityFields",
    "Files",
    "Form",
    "KBRecords",
    "Occurrences",
    "Prose",
    "Record",
    "Redirect",
    "SourceInfo",
    "Step",
    "KBProperties",
    "Triple",
    "Triples",
    "builder_names",
    "check_attributes",
    "check_occurrences",
    "check_online",
    "check_regular_file",
    "check_url_pattern",
    "csv_or_bad_rows",
    "csv_rows",
    "decoded_line",
    "find_builder",
    "json_problem",
    "open_parquet",
    "parquet_batches",
    "parquet_cells",
    "plain_name",
    "sniff_format",
    "text_lines",
    "text_or_bad_lines",
    "without_mark",
]
