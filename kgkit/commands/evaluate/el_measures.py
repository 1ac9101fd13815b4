"""What `kgkit evaluate el` says of matchings, intervals, and of other predictions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kgkit.commands.evaluate.sets import percents, write_scores
from kgkit.commands.evaluate.versus import VERSUS_HEADINGS, compare_systems, versus_row
from kgkit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kgkit.evaluation.el_files import Labelled
    from kgkit.evaluation.matching import DocumentCounts
    from kgkit.linking.page_titles import PageTitles

MATCHING_NAMES: Final = {"strong": "strong", "weak": "weak"}
SCOPE_NAMES: Final = {"inkb": "InKB", "nil": "with NIL"}


class ComparedSystem:
    """Predictions of another system, scored beside the linker's.

    Args:
        path: file of them.
        prefix: beginning of the IRIs of entities, in NIF.

    Raises:
        SourceError: if it is no file of predictions.
    """

    def __init__(self, path: Path, prefix: str) -> None:
        from kgkit.evaluation.el_formats import read_predictions
        from kgkit.evaluation.matching import DocumentCounts

        self.path = path
        self._links = read_predictions(path, prefix)
        self._unscored = set(self._links)
        self.sets: list[DocumentCounts] = []

    def begin_set(self) -> None:
        """Score the documents that follow as a data set of its own."""
        from kgkit.evaluation.matching import DocumentCounts

        self.sets.append(DocumentCounts())

    def add(self, document: str, gold: "Sequence[Labelled]", page: "PageTitles", text: str) -> None:
        """Score the predictions for a document; without any, it has no links.

        Raises:
            UsageError: if a span lies outside of the text: they are of other data.
        """
        links = self._links.get(document, [])
        self._unscored.discard(document)
        outside = next((link for link in links if link.end > len(text)), None)
        if outside is not None:
            raise UsageError(
                f"{self.path} has a link of {outside.start} to {outside.end} in the document {document!r}, "
                f"which ends at {len(text)}: are they predictions for these data?"
            )
        self.sets[-1].add(gold, links, page)

    def check(self, documents: int) -> str | None:
        """Return a message about documents that are not in the data, if there are any.

        Raises:
            UsageError: if no document with predictions is in the data.
        """
        if self._links and len(self._unscored) == len(self._links):
            raise UsageError(
                f"none of the {len(self._links):,} documents of {self.path} is among the {documents:,} of "
                "the data: their ids have to be the same"
            )
        if not self._unscored:
            return None
        return f"{len(self._unscored):,} documents of {self.path} are not in the data, and are not scored"


def measures_as_dict(counts: "DocumentCounts") -> dict[str, Any]:
    """Return the scores of a data set by every matching and scope, with their intervals, for JSON."""
    from kgkit.evaluation.matching import MEASURES, RATIOS, ratios
    from kgkit.evaluation.significance import bootstrap_intervals

    columns = _columns(counts)
    intervals = bootstrap_intervals(columns, _all_ratios)
    scores: dict[str, Any] = {}
    for number, (matching, scope) in enumerate(MEASURES):
        sums = counts.columns(matching, scope).sum(0)
        own = intervals[number * len(RATIOS) : (number + 1) * len(RATIOS)]
        scores.setdefault(matching, {})[scope] = {
            **dict(zip(RATIOS, ratios(sums).tolist(), strict=True)),
            "intervals": {name: list(interval) for name, interval in zip(RATIOS, own, strict=True)},
        }
    return scores


def versus_as_dict(first: "DocumentCounts", second: "DocumentCounts") -> dict[str, Any]:
    """Return how the linker's F1 compares with another system's, by every matching and scope, for JSON.

    Args:
        first: counts of the other system.
        second: counts of the linker, of the same documents.
    """
    from kgkit.evaluation.matching import MEASURES, RATIOS, ratios

    indices = {name: RATIOS.index(name) for name in ("f1", "macro_f1")}
    scores: dict[str, Any] = {}
    for matching, scope in MEASURES:
        versus, own = (counts.columns(matching, scope) for counts in (first, second))
        scores.setdefault(matching, {})[scope] = compare_systems(versus, own, ratios, indices)
    return scores


def write_measures(scores: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Write a table of the scores of each data set, by every matching and scope."""

    def rows(measures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        for matching, scopes in measures.items():
            for scope, score in scopes.items():
                names = MATCHING_NAMES[matching], SCOPE_NAMES[scope]
                yield (
                    *names,
                    *percents(score["precision"], score["recall"]),
                    *_with_interval(score, "f1"),
                    *(_with_interval(score, "macro_f1")),
                )

    headings = "P", "R", "F1", "95 %", "macro F1", "95 %"
    write_scores(["matching", "entities"], headings, ((name, rows(measures)) for name, measures in scores))


def write_versus(scores: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Write a table of how the linker's F1 compares with another system's."""

    def rows(measures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
        for matching, scopes in measures.items():
            for scope, compared in scopes.items():
                yield MATCHING_NAMES[matching], SCOPE_NAMES[scope], *versus_row(compared["f1"])

    rows_of_sets = ((name, rows(measures)) for name, measures in scores)
    write_scores(["matching", "entities"], VERSUS_HEADINGS, rows_of_sets)


def _with_interval(score: dict[str, Any], name: str) -> tuple[str, str]:
    return percents(score[name])[0], " to ".join(percents(*score["intervals"][name]))


def _columns(counts: "DocumentCounts") -> "NDArray[np.float64]":
    """Return the columns of every measure side by side, so that each sample is drawn once for all."""
    import numpy as np

    from kgkit.evaluation.matching import MEASURES

    return np.concatenate([counts.columns(matching, scope) for matching, scope in MEASURES], 1)


def _all_ratios(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    from kgkit.evaluation.matching import MEASURES, ratios

    by_measure = ratios(sums.reshape(*sums.shape[:-1], len(MEASURES), -1))
    return by_measure.reshape(*sums.shape[:-1], -1)
