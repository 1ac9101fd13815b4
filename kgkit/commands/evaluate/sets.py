"""What the verbs of `kgkit evaluate` have in common: data sets with names, and tables of their scores."""

import logging
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Final

from kgkit.commands.output import Column, check_files, on_terminal, write_table
from kgkit.errors import UsageError
from kgkit.files import COMPRESSIONS, check_output_path

_log = logging.getLogger(__name__)

TOGETHER: Final = "together"
"""What all data sets are called."""


def check_sets(read: Sequence[Path], predictions: Path | None) -> None:
    """Refuse files that cannot be read or written, before anything is computed.

    Raises:
        UsageError: if one is a folder, or predictions are to take the place of what is read.
        NotThere: if there is no folder for them.
    """
    check_files(read)
    if predictions is not None:
        check_output_path(predictions, read)


def check_gold_labels(model: str, path: Path, gold: Set[str], labels: Sequence[str]) -> None:
    """Refuse gold that a model cannot give, whatever it reads; say so of a part of it.

    Raises:
        UsageError: if it tells none of the labels.
    """
    from kgkit.evaluation.labels import list_labels

    if gold and gold.isdisjoint(labels):
        raise UsageError(
            f"none of the labels of {path} ({list_labels(sorted(gold))}) is one that the model {model} tells "
            f"({list_labels(labels)})"
        )
    if unknown := sorted(gold - {*labels}):
        _log.warning("%s has labels that the model %s does not tell: %s", path, model, list_labels(unknown))


def set_names(data: Sequence[Path], *suffixes: str) -> list[str]:
    """Return the names of data sets: their files', without suffixes; of equal ones the whole paths."""
    names = []
    for path in data:
        while path.suffix.lower() in (*COMPRESSIONS, *suffixes):
            path = path.with_suffix("")
        names.append(path.name)
    all_names = [*names, TOGETHER]
    return [name if all_names.count(name) == 1 else str(path) for name, path in zip(names, data, strict=True)]


def percents(*ratios: float) -> list[str]:
    """Return ratios in hundredths, as tables have them."""
    return [f"{100 * ratio:.2f}" for ratio in ratios]


def write_scores(
    texts: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[tuple[str, Iterable[Sequence[str]]]],
    what: str = "data",
) -> None:
    """Write a table.

    Args:
        texts, numbers: headings of its columns, beside that of the sets' names.
        rows: for each set its name, and what is told of it, line by line.
        what: heading of the names.
    """
    columns = [Column(heading=heading) for heading in (what, *texts)]
    columns += [Column(heading=heading, align="right") for heading in numbers]
    lines = (
        # On a terminal a name stands at its first line only.
        ("" if index and on_terminal() else name, *row)
        for name, set_rows in rows
        for index, row in enumerate(set_rows)
    )
    write_table(columns, lines)
