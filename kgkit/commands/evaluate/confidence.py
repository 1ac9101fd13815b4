"""Calibration of links that are evaluated: whether their scores are probabilities."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.types import Link, LinkedDocument


class LinkConfidence:
    """The confidence of links, and whether they were right."""

    def __init__(self) -> None:
        self._confidences: list[float] = []
        self._correct: list[bool] = []

    def observe(self, linked: "LinkedDocument", is_correct: "Callable[[Link], bool | None]") -> None:
        """Note for each link of a document whether it is right; None is not counted, nor is NIL."""
        for link in linked.links:
            correct = None if link.entity is None else is_correct(link)
            if correct is not None:
                self._confidences.append(link.score)
                self._correct.append(correct)

    def record(self, run: "RunRecord", task: str, data_set: str, *, detail: str = "") -> dict[str, Any]:
        """Note the calibration error in the catalog, and return it with the accuracy by confidence, for JSON.

        Args:
            run: run that has linked.
            task: task of the data.
            data_set: name of the data set, or of all together.
            detail: words that the metric ends in.
        """
        from kgkit.evaluation.calibration import binned

        measured, links = binned(self._confidences, self._correct), len(self._correct)
        if links:
            run.score(task, data_set, f"calibration error{detail}", measured.error, links)
        bins = zip(
            measured.confidence.tolist(), measured.accuracy.tolist(), measured.counts.tolist(), strict=True
        )
        return {
            "links": links,
            "expected_calibration_error": measured.error,
            "bins": [
                {"confidence": confidence, "accuracy": accuracy, "links": count}
                for confidence, accuracy, count in bins
                if count
            ],
        }
