"""Data sets of `kgkit evaluate`, tables of their scores, and of how these differ from another system's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.output import Column, check_files, on_terminal, write_line, write_table
from kgkit.files import COMPRESSIONS, check_output_path

if TYPE_CHECKING:
    from kgkit.evaluation.significance import Comparison

Differences = Mapping[str, Mapping[str, "Comparison"]]
"""How the scores of data sets differ from another system's: by the set's name, then by the score's."""

VersusOption = Annotated[
    Path | None,
    typer.Option(
        "--versus",
        metavar="FILE",
        help="Predictions of another system for the same data, compared by a paired test.",
    ),
]

TOGETHER: Final = "together"
"""What all data sets are called."""


def check_sets(read: Iterable[Path | None], predictions: Path | None) -> None:
    """Refuse files that cannot be read or written, before anything is computed.

    Raises:
        UsageError: if one is a folder, or predictions are to take the place of what is read.
        NotThere: if there is no folder for them.
    """
    files = [path for path in read if path is not None]
    check_files(files)
    if predictions is not None:
        check_output_path(predictions, files)


def set_names(data: Sequence[Path], *suffixes: str) -> list[str]:
    """Return the names of data sets: their files', without suffixes; of equal ones the whole paths."""
    names = []
    for path in data:
        while path.suffix.lower() in (*COMPRESSIONS, *suffixes):
            path = path.with_suffix("")
        names.append(path.name)
    all_names = [*names, TOGETHER]
    return [name if all_names.count(name) == 1 else str(path) for name, path in zip(names, data, strict=True)]


def versus_field(differences: Differences, name: str) -> dict[str, Any]:
    """Return the field `versus` of the JSON of a data set, if it is compared."""
    return {"versus": differences[name]} if name in differences else {}


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


def write_compared(differences: Differences, plain: Collection[str] = (), what: str = "data") -> None:
    """Write an empty line and a table of how scores differ from another system's; nothing if none do.

    Args:
        differences: differences of the sets.
        plain: names of the scores that are no shares, such as a perplexity, and stand as they are.
        what: heading of the names of the sets.
    """

    def row(metric: str, own: "Comparison") -> list[str]:
        def shown(*scores: float) -> list[str]:
            return [f"{score:.3f}" for score in scores] if metric in plain else percents(*scores)

        scores = shown(own.versus, own.score, own.difference)
        return [metric.replace("_", " "), *scores, " to ".join(shown(*own.interval)), f"{own.p:.4f}"]

    if differences:
        write_line()
        rows = ((name, [row(*each) for each in own.items()]) for name, own in differences.items())
        write_scores(["metric"], ["versus", "score", "difference", "95 %", "p"], rows, what)
