"""Comparison of a trained linker with linking without training, on documents that were held out.

A linker that names a tagger is compared by micro F1 of its links, with the tagger's names and with those of
the knowledge base, each beside `prior`; others by accuracy on mentions that are given. A linker that is worse
than no training is not published.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kgkit.errors import BuildFailed

log = logging.getLogger(__name__)

COMPARED: Final = "compared"
"""Key of the rows among the results of a manifest; none: no gold was held out."""


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """Score of one linker.

    Attributes:
        model: name of the linker.
        trained: whether it is the one that was trained.
        mentions: tagger whose names were linked, or `kb`; `given` where the mentions were.
        threshold: least score of a link.
        measure: what *score* is.
        score: from 0 to 1.
    """

    model: str
    trained: bool
    mentions: str = "given"
    threshold: float = 0.0
    measure: Literal["accuracy", "F1"] = "accuracy"
    score: float


def accuracy_rows(name: str, results: Mapping[str, Any]) -> list[ComparisonRow]:
    """Return the accuracies of a linker and of `prior`; none if no gold was held out."""
    if not results.get("held_out"):
        return []
    return [
        ComparisonRow(model="prior", trained=False, score=results["prior_accuracy"]),
        ComparisonRow(model=name, trained=True, score=results["held_out_accuracy"]),
    ]


def check_not_worse(name: str, rows: Sequence[ComparisonRow]) -> None:
    """Make sure that the best of the trained rows is not worse than the best of the others.

    Without rows a warning says that nothing was compared.

    Raises:
        BuildFailed: if it is; has the table.
    """
    if not rows:
        log.warning(
            "%s is not compared with linking without training, since no gold was held out: auto does not "
            "take it, --model %s does", name, name,
        )  # fmt: skip
        return
    trained, others = ([row.score for row in rows if row.trained is which] for which in (True, False))
    if max(trained) >= max(others):
        return
    best = max(rows, key=lambda row: row.score)
    instead = f"--model {best.model}" + (f" --mentions {best.mentions}" if best.mentions != "given" else "")
    cells = table_cells(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = "\n".join("    " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
    raise BuildFailed(
        f"{name} is not published: on what was held out it links worse than without this training, as "
        f"`{instead}` does. A model of that name stays as it was; more data may help\n{table}"
    )


def table_cells(rows: Sequence[ComparisonRow]) -> list[tuple[str, ...]]:
    """Return the cells of the table of a comparison, below their headings."""
    cells: list[tuple[str, ...]] = [("model", "mentions", "threshold", rows[0].measure)] if rows else []
    return cells + [(row.model, row.mentions, f"{row.threshold:.2f}", f"{row.score:.3f}") for row in rows]
