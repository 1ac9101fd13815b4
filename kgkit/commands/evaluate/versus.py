"""`--versus`: a model beside another system, by a paired test over the same documents or instances."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.evaluate.sets import percents, write_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kgkit.evaluation.score_columns import ScoreColumns
    from kgkit.evaluation.significance import Interval, Statistic

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


@dataclass(frozen=True)
class ColumnRatio:
    """A single ratio of sums of columns.

    Attributes:
        ratios: function from sums (…, C) to all ratios (…, K).
        index: number of the ratio among them.
    """

    ratios: "Statistic"
    index: int

    def __call__(self, sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return it, (…) for sums (…, C)."""
        ratio: NDArray[np.float64] = self.ratios(sums)[..., self.index]
        return ratio


def compare_systems(
    first: "NDArray[np.float64]",
    second: "NDArray[np.float64]",
    ratios: "Statistic",
    indices: Mapping[str, int],
    bounds: "Interval | None" = None,
) -> dict[str, dict[str, Any]]:
    """Return how the second system's ratios differ from the first's, by name, for JSON.

    Args:
        first: (D, C) columns of each document or instance, by the system that is compared with.
        second: (D, C) columns of the same documents, by the model.
        ratios: function from sums (…, C) to ratios (…, K).
        indices: numbers of the ratios to compare, by name.
        bounds: least and greatest value of a ratio; None: 0 and 1.
    """
    from kgkit.evaluation.significance import UNIT, difference_interval, paired_test

    intervals = difference_interval(first, second, ratios, bounds=bounds or UNIT)
    compared = {}
    for name, index in indices.items():
        versus, score = (float(ratios(columns.sum(0))[index]) for columns in (first, second))
        compared[name] = {
            "score": score, "versus": versus, "difference": score - versus,
            "interval": list(intervals[index]), "p": paired_test(first, second, ColumnRatio(ratios, index)),
        }  # fmt: skip
    return compared


def versus_row(compared: Mapping[str, Any], *, plain: bool = False) -> list[str]:
    """Return a row of the table: both scores in hundredths, their difference, its interval, and p.

    *plain* scores, such as a perplexity, are not shares: they stand as they are.
    """
    shown = (lambda *scores: [f"{score:.3f}" for score in scores]) if plain else percents
    scores = shown(compared["versus"], compared["score"], compared["difference"])
    return [*scores, " to ".join(shown(*compared["interval"])), f"{compared['p']:.4f}"]


def compare_columns(scores: "ScoreColumns") -> dict[str, Any]:
    """Return how the second system's score differs from the first's, by its name, for JSON.

    Args:
        scores: columns (2, U, C) of the system that is compared with, and of the model.
    """

    def ratios(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
        return scores.statistic(sums)[..., None]

    versus, own = scores.columns
    return compare_systems(versus, own, ratios, {scores.metric: 0}, scores.bounds)


def write_compared(sets: Mapping[str, Mapping[str, Any]], plain: Collection[str] = ()) -> None:
    """Write a table of how the scores of data sets differ, as `compare_columns` has them, by set.

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
