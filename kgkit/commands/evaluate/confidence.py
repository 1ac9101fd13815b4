"""Calibration of links that are evaluated: whether their scores are probabilities."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.linking import Linker
    from kgkit.linking.scoring import Scorer, Scores
    from kgkit.types import Document, Link, LinkedDocument

MentionSpan = tuple[str, int, int]
"""A document, and the span of a mention in it."""


class ConfidenceRecorder:
    """A linker that records the confidence of its links, and whether they were right.

    A trained model divides its scores by a temperature: the confidence without
    one is recorded too, unless a second stage or a tagger has changed the
    scores since.

    Attributes:
        linked: the document that was linked last.
    """

    linked: "LinkedDocument"

    def __init__(self, linker: "Linker") -> None:
        self.linker = linker
        self._confidences: list[float] = []
        self._untempered: list[float] = []
        self._correct: list[bool] = []
        self._untempered_by_span: dict[MentionSpan, float] = {}
        self._temperature: float | None = None
        if linker.coherence is None and linker.tagger is None:
            self._temperature = linker.scorer.temperature
        if self._temperature is not None:
            linker.scorer = _UntemperedScorer(linker.scorer, self._temperature, self._untempered_by_span)

    def __call__(self, documents: "Iterable[Document | str]") -> "Iterator[LinkedDocument]":
        for linked in self.linker(documents):
            self.linked = linked
            yield linked

    def observe(self, is_correct: "Callable[[Link], bool | None]") -> None:
        """Record for each link in `linked` whether it is right; None is not counted, nor is NIL."""
        for link in self.linked.links:
            confidence = self._untempered_by_span.pop((self.linked.id, link.start, link.end), link.score)
            correct = None if link.entity is None else is_correct(link)
            if correct is not None:
                self._confidences.append(link.score)
                self._untempered.append(confidence)
                self._correct.append(correct)

    def as_dict(self) -> dict[str, Any]:
        """Return the calibration error of the links, and their accuracy by confidence, for JSON."""
        from kgkit.evaluation.calibration import binned

        tempered = binned(self._confidences, self._correct)
        untempered = None if self._temperature is None else binned(self._untempered, self._correct).error
        bins = zip(
            tempered.confidence.tolist(), tempered.accuracy.tolist(), tempered.counts.tolist(), strict=True
        )
        return {
            "links": len(self._correct),
            "expected_calibration_error": tempered.error,
            "without_temperature": untempered,
            "bins": [
                {"confidence": confidence, "accuracy": accuracy, "links": count}
                for confidence, accuracy, count in bins
                if count
            ],
        }


class _UntemperedScorer:
    """A scorer that also records the confidence of its best candidates at temperature 1."""

    def __init__(self, scorer: "Scorer", temperature: float, by_span: dict[MentionSpan, float]) -> None:
        self.scorer, self.by_span = scorer, by_span
        self.temperature: float | None = temperature
        self.name, self.batch_size, self.scores_null = scorer.name, scorer.batch_size, scorer.scores_null
        self.by_mention, self.explain, self.defaults = scorer.by_mention, scorer.explain, scorer.defaults

    def __call__(self, documents: "Sequence[Document]") -> "list[list[Scores]]":
        import numpy as np

        results, temperature = self.scorer(documents), self.temperature or 1.0
        for document, of_mentions in zip(documents, results, strict=True):
            for mention, scores in zip(document.mentions or (), of_mentions, strict=True):
                if len(scores) and (total := float(scores.sum(dtype=np.float64))) > 0:
                    # A score s became p = exp(s / T), of which p^T is exp(s) again; the best is 1 here.
                    untempered = (scores.astype(np.float64) / scores.max()) ** temperature
                    confidence = total / float(untempered.sum())
                    if self.scores_null:  # what is missing is NULL's, whose score has a temperature too
                        null_score = (max(0.0, 1 - total) / float(scores.max())) ** temperature
                        confidence = 1 / (float(untempered.sum()) + null_score)
                    self.by_span[document.id, mention.start, mention.end] = confidence
        return results


def record_confidence(
    recorder: ConfidenceRecorder, run: "RunRecord", task: str, data_set: str, *, detail: str = ""
) -> dict[str, Any]:
    """Note the calibration error of links in the catalog, and return what was measured, for JSON.

    Args:
        recorder: recorder of the links.
        run: run that has linked.
        task: task of the data.
        data_set: name of the data set, or of all together.
        detail: words that the metric ends in.
    """
    calibration = recorder.as_dict()
    if links := calibration["links"]:
        error = calibration["expected_calibration_error"]
        run.score(task, data_set, f"calibration error{detail}", error, links)
    return calibration
