"""Comparison of a trained linker with linking without training, on documents that were held out.

A linker of names is compared by micro F1 of its links; one with a tagger twice, with the tagger's names and
with those of the knowledge base. Others are compared by accuracy on mentions that are given. A linker that is
worse than no training is not published unless `--keep` asks for it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kgkit.errors import BuildFailed
from kgkit.evaluation.el import LinkScore

log = logging.getLogger(__name__)

COMPARED: Final = "compared"
"""Key of the rows among the results of a manifest; none: no gold was held out."""

HELPS: Final = "helps"
"""Key of whether training helps; of models of older versions the rows tell."""


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """Score of one linker.

    Attributes:
        model: name of the linker.
        trained: whether it is the one that was trained.
        mentions: tagger whose names were linked, or `kb`; `given` where the mentions were.
        threshold: least score of a link.
        measure: what *score* is.
        score: from 0 to 1.
        precision, recall: of the links; None where links are not what is measured.
        documents: number of documents that were held out; 0 where mentions are counted.
    """

    model: str
    trained: bool
    mentions: str = "given"
    threshold: float = 0.0
    measure: Literal["accuracy", "F1"] = "accuracy"
    score: float
    precision: float | None = None
    recall: float | None = None
    documents: int = 0


def f1_row(
    model: str,
    score: LinkScore,
    *,
    trained: bool,
    mentions: str,
    threshold: float = 0.0,
    f1: float | None = None,
) -> ComparisonRow:
    """Return the row of a linker by the score of its links.

    Args:
        model, trained, mentions, threshold: as a row has them.
        score: score of all documents together.
        f1: F1 that counts; None: that of *score*.
    """
    return ComparisonRow(
        model=model, trained=trained, mentions=mentions, threshold=threshold, measure="F1",
        score=score.f1 if f1 is None else f1, precision=score.precision, recall=score.recall,
        documents=score.documents,
    )  # fmt: skip


def accuracy_rows(name: str, results: Mapping[str, Any]) -> list[ComparisonRow]:
    """Return the accuracies of a linker and of `prior`; none if no gold was held out."""
    if not results.get("held_out"):
        return []
    return [
        ComparisonRow(model="prior", trained=False, score=results["prior_accuracy"]),
        ComparisonRow(model=name, trained=True, score=results["held_out_accuracy"]),
    ]


def check_not_worse(
    name: str, rows: Sequence[ComparisonRow], *, keep: bool = False, helps: bool | None = None
) -> bool:
    """Make sure that the best of the trained rows is not worse than the best of the others; say whether.

    Without rows a warning says that nothing was compared.

    Args:
        name: name of the linker.
        rows: rows of the comparison.
        keep: whether a worse one is kept all the same, with a warning.
        helps: whether training helps, where that is known better than by the scores alone.

    Raises:
        BuildFailed: if it is, and not kept; has the table.
    """
    if not rows:
        log.warning(
            "%s is not compared with linking without training, since no gold was held out: auto does not "
            "take it, --model %s does", name, name,
        )  # fmt: skip
        return False
    trained, others = (
        max((row for row in rows if row.trained is which), key=lambda row: row.score)
        for which in (True, False)
    )
    if trained.score >= others.score if helps is None else helps:
        return True
    cells = table_cells(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = "\n".join("    " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
    mentions = "" if others.mentions in ("given", "kb") else f" --mentions {others.mentions}"
    instead = f"--model {others.model}{mentions}"
    if keep:
        log.warning(
            "training did not help: %s does not link better than `%s`. It is published, as --keep says; auto "
            "does not take it\n%s", name, instead, table,
        )  # fmt: skip
        return False
    raise BuildFailed(
        f"training did not help, and nothing was changed: on what was held out {name} is not better than "
        f"`{instead}`, which needs no training, by more than chance. More documents may help; --keep "
        f"publishes it all the same\n{table}"
    )


def table_cells(rows: Sequence[ComparisonRow]) -> list[tuple[str, ...]]:
    """Return the cells of the table of a comparison, below their headings."""
    if not rows:
        return []
    cells: list[tuple[str, ...]] = [("model", "mentions", "threshold", rows[0].measure)]
    cells += [(row.model, row.mentions, f"{row.threshold:.2f}", f"{row.score:.3f}") for row in rows]
    if rows[0].precision is None:
        return cells
    more = [("P", "R", "documents")]
    more += [(f"{row.precision or 0:.3f}", f"{row.recall or 0:.3f}", str(row.documents)) for row in rows]
    return [one + other for one, other in zip(cells, more, strict=True)]
