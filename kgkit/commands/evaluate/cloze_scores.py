"""What `kgkit evaluate cloze` writes: a table of Hits@k, JSON with the whole curve, each guess."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kgkit.commands.evaluate.sets import percents, write_scores
from kgkit.commands.output import number, write_json

if TYPE_CHECKING:
    from kgkit.evaluation.cloze import ClozeGuess, Filter, HitsScore, SubsetScore
    from kgkit.evaluation.facts import Fact

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


def write_hits_json(model: str, counts: Mapping[str, Any], scores: "Sequence[SubsetScore]") -> None:
    """Write the scores as JSON, with Hits@k of each k."""
    sets = [
        {"filter": subset.filter, "subjects": subset.subjects}
        | {name: _plain(hits) for name, hits in subset.hits.items()}
        for subset in scores
    ]
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


def write_predictions(
    path: Path,
    guesses: "Sequence[ClozeGuess]",
    facts: "Sequence[Fact]",
    facts_by_filter: "Mapping[Filter, Collection[int]]",
    has_vector: Collection[int] | None,
) -> None:
    """Write each guess as a JSON line, with the filters that leave its question."""
    import msgspec

    from kgkit.evaluation.files import written

    with written(path) as file:
        for guess in guesses:
            index = guess.question.fact
            fact = facts[index]
            row: dict[str, Any] = {
                "id": guess.question.id, "subject": fact.subject, "relation": fact.relation,
                "object": fact.object, "rank": guess.rank, "object_rank": guess.object_rank,
                "likeliest": guess.likeliest,
                "filters": [name for name, indices in facts_by_filter.items() if index in indices],
            }  # fmt: skip
            if has_vector is not None:
                row["vector"] = index in has_vector
            file.write(msgspec.json.encode(row) + b"\n")
