"""What `kgkit evaluate cloze` writes: a table of Hits@k, JSON with the whole curve."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kgkit.commands.evaluate.sets import percents, write_scores
from kgkit.commands.evaluate.versus import SCORE_HEADINGS, versus_row
from kgkit.commands.output import number, write_json

if TYPE_CHECKING:
    from kgkit.evaluation.cloze import HitsScore, SubsetScore

_FILTERS: "Final[Mapping[str, str]]" = {
    "none": "no filter",
    "string": "string match",
    "names": "person name (LAMA-UHN)",
    "easy": "taken out",
}


def write_hits(scores: "Sequence[SubsetScore]") -> None:
    """Write the table of the scores."""
    headings = ["questions", "Hits@1", "Hits@10", "Hits@100", "micro @1", "objects @1", "most frequent @1"]
    rows = []
    for subset in scores:
        words, objects, frequent = (subset.hits[name] for name in ("vocabulary", "objects", "frequent"))
        figures = (words.macro[1], words.macro[10], words.macro[100], words.micro[1], objects.macro[1])
        shown = percents(*figures, frequent.macro[1])
        cells = [number(words.questions), *(shown if words.questions else [""] * len(shown))]
        rows.append((_FILTERS[subset.filter], [(subset.subjects.replace("_", " "), *cells)]))
    write_scores(["subjects"], headings, rows, "filter")


def write_compared_hits(scores: "Sequence[SubsetScore]", differences: Sequence[Mapping[str, Any]]) -> None:
    """Write a table of how Hits@k differ from those of another model, for each of the scores."""
    rows = []
    for subset, compared in zip(scores, differences, strict=True):
        subjects, questions = subset.subjects.replace("_", " "), number(compared["questions"])
        lines = [
            (subjects, metric.capitalize(), questions, *versus_row(own))
            for metric, own in compared.items()
            if metric != "questions"
        ]
        rows.append((_FILTERS[subset.filter], lines))
    write_scores(["subjects", "metric"], ["questions", *SCORE_HEADINGS], rows, "filter")


def write_hits_json(
    model: str,
    counts: Mapping[str, Any],
    scores: "Sequence[SubsetScore]",
    differences: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the scores as JSON, with Hits@k of each k, and differences from another model."""
    sets = [
        {"filter": subset.filter, "subjects": subset.subjects}
        | {name: _plain(hits) for name, hits in subset.hits.items()}
        for subset in scores
    ]
    for own, compared in zip(sets, differences, strict=False):
        own["versus"] = dict(compared)
    write_json({"model": model, **counts, "sets": sets})


def _plain(hits: "HitsScore") -> dict[str, Any]:
    return {
        "questions": hits.questions,
        "macro": {str(k): value for k, value in hits.macro.items()},
        "micro": {str(k): value for k, value in hits.micro.items()},
        "relations": {
            name: {"questions": count, "hits": {str(k): value for k, value in curve.items()}}
            for name, (count, curve) in hits.relations.items()
        },
    }
