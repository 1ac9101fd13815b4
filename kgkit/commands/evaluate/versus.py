"""`--versus`: a model beside another system, by a paired test over the same documents or instances."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kgkit.commands.evaluate.sets import percents

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kgkit.evaluation.significance import Statistic

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
) -> dict[str, dict[str, Any]]:
    """Return how the second system's ratios differ from the first's, by name, for JSON.

    Args:
        first: (D, C) columns of each document or instance, by the system that is compared with.
        second: (D, C) columns of the same documents, by the model.
        ratios: function from sums (…, C) to ratios (…, K).
        indices: numbers of the ratios to compare, by name.
    """
    from kgkit.evaluation.significance import difference_interval, paired_test

    intervals = difference_interval(first, second, ratios)
    compared = {}
    for name, index in indices.items():
        versus, score = (float(ratios(columns.sum(0))[index]) for columns in (first, second))
        compared[name] = {
            "score": score, "versus": versus, "difference": score - versus,
            "interval": list(intervals[index]), "p": paired_test(first, second, ColumnRatio(ratios, index)),
        }  # fmt: skip
    return compared


def versus_row(compared: Mapping[str, Any]) -> list[str]:
    """Return a row of the table: both scores in hundredths, their difference, its interval, and p."""
    shares = percents(compared["versus"], compared["score"], compared["difference"])
    return [*shares, " to ".join(percents(*compared["interval"])), f"{compared['p']:.4f}"]
