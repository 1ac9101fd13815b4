"""Data sets of `kgkit evaluate`, tables of their scores, and of how these differ from another system's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kgkit.commands.output import Column, check_files, on_terminal, write_table
from kgkit.files import COMPRESSIONS, check_output_path

if TYPE_CHECKING:
    from kgkit.evaluation.significance import Comparison

VersusOption = Annotated[
    Path | None,
    typer.Option(
        "--versus",
        metavar="FILE",
        help="Predictions of another system for the same data, compared by a paired test.",
    ),
]

VERSUS_HEADINGS: Final = "F1 versus", "F1", "difference", "95 %", "p"
"""Headings of the columns of `versus_row`."""


SCORE_HEADINGS: Final = "versus", "score", *VERSUS_HEADINGS[2:]
"""The same for scores of several names, which stand in a column of their own."""

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


def versus_row(compared: "Comparison", *, plain: bool = False) -> list[str]:
    """Return a row of the table: both scores in hundredths, their difference, its interval, and p.

    *plain* scores, such as a perplexity, are not shares: they stand as they are.
    """
    shown = (lambda *scores: [f"{score:.3f}" for score in scores]) if plain else percents
    scores = shown(compared.versus, compared.score, compared.difference)
    return [*scores, " to ".join(shown(*compared.interval)), f"{compared.p:.4f}"]


def write_compared(sets: "Mapping[str, Mapping[str, Comparison]]", plain: Collection[str] = ()) -> None:
    """Write a table of how the scores of data sets differ from another system's.

    Args:
        sets: differences by set, then by the name of the score.
        plain: names of the scores that are no shares.
    """
    rows = (
        (
            name,
            [
                (metric.replace("_", " "), *versus_row(own, plain=metric in plain))
                for metric, own in compared.items()
            ],
        )
        for name, compared in sets.items()
    )
    write_scores(["metric"], SCORE_HEADINGS, rows)
