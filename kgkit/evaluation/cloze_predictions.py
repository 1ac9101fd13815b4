"""Files of what a model predicts for cloze questions, as `kgkit evaluate cloze` writes and reads them.

A line is a question whose object is masked, as JSON: `id`, `subject`, `relation`, `object`; `rank`, of the
answer among the words of the vocabulary, from 1, and `object_rank`, among the objects of the relation;
`likeliest`, words; `filters`, those that leave the question; `vector`, whether the subject has one.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kgkit.errors import SourceError, abbreviate
from kgkit.evaluation.cloze import ClozeGuess, Filter
from kgkit.evaluation.facts import ClozeQuestion, Fact
from kgkit.files import json_lines, written


class _Row(msgspec.Struct, frozen=True):
    """What is read of a line."""

    id: str
    subject: str
    relation: str
    object: str
    rank: int
    object_rank: int


def write_cloze_predictions(
    path: Path,
    guesses: Sequence[ClozeGuess],
    facts: Sequence[Fact],
    facts_by_filter: Mapping[Filter, Collection[int]],
    has_vector: Collection[int] | None,
) -> None:
    """Write a line for each question, with the filters that leave it.

    Args:
        path: the file.
        guesses: predictions of a model.
        facts: facts that the questions are made of.
        facts_by_filter: indices of the facts by filter.
        has_vector: indices of the facts whose subject has a vector; None: it is left out.

    Raises:
        NotThere: if there is no folder to put the file in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
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


def read_cloze_predictions(
    path: Path, questions: Sequence[ClozeQuestion], facts: Sequence[Fact]
) -> list[ClozeGuess]:
    """Return the ranks of a file, without the likeliest words, in the order of its lines.

    Args:
        path: the file.
        questions: questions that may be answered; not all need be.
        facts: facts that they are made of.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or has no line; if a line is no prediction, or one of another
            question, or of one that another line has.
    """
    by_id = {question.id: question for question in questions}
    numbers: dict[str, int] = {}
    guesses = []
    expected = "no prediction of a question, as --predictions writes it"
    for number, line, row in json_lines(path, _Row, expected):
        question = by_id.get(row.id)
        asked = None if question is None else facts[question.fact]
        own = row.subject, row.relation, row.object
        if asked is None or (asked.subject, asked.relation, asked.object) != own:
            what = "no question has it" if asked is None else f"it is {asked.object!r} of {asked.subject!r}"
            raise SourceError(
                f"the id {abbreviate(repr(row.id))} is the object {abbreviate(repr(row.object))} of "
                f"{abbreviate(repr(row.subject))}: {what}; give predictions for the same facts",
                path=path, line=number, text=line,
            )  # fmt: skip
        assert question is not None
        if row.id in numbers:
            raise SourceError(
                f"the question {row.id} has a prediction on line {numbers[row.id]} already: leave out one",
                path=path, line=number, text=line,
            )  # fmt: skip
        if min(row.rank, row.object_rank) < 1:
            raise SourceError("a rank below 1: ranks are counted from 1", path=path, line=number, text=line)
        numbers[row.id] = number
        guesses.append(ClozeGuess(question, row.rank, row.object_rank))
    if not guesses:
        raise SourceError("no prediction in it: --predictions writes such a file", path=path)
    return guesses
