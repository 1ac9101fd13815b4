"""What `kgkit evaluate` tells of the scores of links: whether they are probabilities."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.output import check_place, whole_file
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation.calibration import Reliability
    from kgkit.linking import Linker
    from kgkit.linking.scoring import Scorer, Scores
    from kgkit.types import Document, Link, LinkedDocument

Place = tuple[str, int, int]
"""A document, and the span of a mention in it."""

ReliabilityOption = Annotated[
    Path | None,
    typer.Option(
        "--reliability",
        metavar="FILE",
        help="Draw how sure the links are and how often they are right: .svg or .html.",
    ),
]


class Watched:
    """A linker, and how sure its links were.

    A trained model divides its scores by a temperature: what it would have said
    without one is remembered too, unless a second stage or a tagger has changed
    the scores since.

    Attributes:
        linked: the document that was linked last.
    """

    linked: "LinkedDocument"

    def __init__(self, linker: "Linker") -> None:
        self.linker = linker
        self._sure: list[float] = []
        self._bare: list[float] = []
        self._right: list[bool] = []
        self._before: dict[Place, float] = {}
        self._temperature: float | None = None
        if linker.coherence is None and linker.tagger is None:
            self._temperature = linker.scorer.temperature
        if self._temperature is not None:
            linker.scorer = _Bare(linker.scorer, self._temperature, self._before)

    def __call__(self, documents: "Iterable[Document | str]") -> "Iterator[LinkedDocument]":
        for linked in self.linker(documents):
            self.linked = linked
            yield linked

    def note(self, right: "Callable[[Link], bool | None]") -> None:
        """Note of the links in `linked` whether they are right; None is not counted, as no NIL is."""
        for link in self.linked.links:
            bare = self._before.pop((self.linked.id, link.start, link.end), link.score)
            verdict = None if link.entity is None else right(link)
            if verdict is not None:
                self._sure.append(link.score)
                self._bare.append(bare)
                self._right.append(verdict)

    def curves(self) -> "list[tuple[str, Reliability]]":
        """Return what there is to show, the scores as they are last."""
        from kgkit.evaluation.calibration import binned

        now = binned(self._sure, self._right)
        if self._temperature is None:
            return [("scores", now)]
        before = binned(self._bare, self._right)
        return [("temperature 1", before), (f"temperature {self._temperature:.3g}", now)]

    def told(self) -> dict[str, Any]:
        """Return the same for JSON."""
        *before, (_, now) = self.curves()
        bins = zip(now.confidence.tolist(), now.accuracy.tolist(), now.counts.tolist(), strict=True)
        return {
            "links": len(self._right),
            "expected_calibration_error": now.error,
            "without_temperature": before[0][1].error if before else None,
            "bins": [
                {"confidence": sure, "accuracy": right, "links": count}
                for sure, right, count in bins
                if count
            ],
        }


class _Bare:
    """A scorer that also notes how sure its best candidates would be at temperature 1."""

    def __init__(self, scorer: "Scorer", temperature: float, before: dict[Place, float]) -> None:
        self.scorer, self.before = scorer, before
        self.temperature: float | None = temperature
        self.name, self.batch_size, self.scores_null = scorer.name, scorer.batch_size, scorer.scores_null
        self.by_mention, self.explain = scorer.by_mention, scorer.explain

    def __call__(self, documents: "Sequence[Document]") -> "list[list[Scores]]":
        import numpy as np

        found, temperature = self.scorer(documents), self.temperature or 1.0
        for document, of_mentions in zip(documents, found, strict=True):
            for mention, scores in zip(document.mentions or (), of_mentions, strict=True):
                if len(scores) and (total := float(scores.sum(dtype=np.float64))) > 0:
                    # A score s became p = exp(s / T), of which p^T is exp(s) again; the best is 1 here.
                    bare = (scores.astype(np.float64) / scores.max()) ** temperature
                    sure = total / float(bare.sum())
                    if self.scores_null:  # what is missing is NULL's, whose score has a temperature too
                        null = (max(0.0, 1 - total) / float(scores.max())) ** temperature
                        sure = 1 / (float(bare.sum()) + null)
                    self.before[document.id, mention.start, mention.end] = sure
        return found


def check_reliability(path: Path | None) -> None:
    """Refuse a picture that could not be written, before anything is computed."""
    from kgkit.evaluation.reliability import SUFFIXES

    if path is not None:
        check_place(path)
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{path} is to be a picture: its name ends in {' or '.join(SUFFIXES)}")


def draw_reliability(path: Path, watched: Watched, title: str) -> None:
    """Write the picture; it appears whole or not at all."""
    from kgkit.evaluation.reliability import picture

    with whole_file(path) as write:
        write(picture(watched.curves(), suffix=path.suffix, title=title))
