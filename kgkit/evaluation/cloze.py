"""Cloze questions about facts: which names give the answer away, and Hits@k.

Poerner et al. (2020), "E-BERT: Efficient-Yet-Effective Entity Embeddings for BERT": a question of LAMA is
easy where the subject's name says the answer (*Apple Watch* is made by *Apple*), or suggests it (*Jean
Marais* speaks *French*). What two filters leave is LAMA-UHN, questions with unhelpful names:

    string match    the object is part of the subject's name, whatever the case
    person name     a plain model names the object, asked of a single word of the subject's name:
                    "Jean is a common name in the following language: [MASK]."

Hits@k is averaged within a relation, then across relations, and over all questions (`micro`).

Predictions are JSON lines, a question each: `id`, `subject`, `relation`, `object`; `rank`, of the answer
among the words of the vocabulary, from 1, and `object_rank`, among the objects of the relation; `likeliest`,
words; `filters`, those that leave the question.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from kgkit.errors import SourceError, abbreviate
from kgkit.evaluation.columns import ScoreColumns, mean_of_sums
from kgkit.evaluation.facts import ClozeQuestion, Fact
from kgkit.files import lines, written

NAME_NOUNS: Final[Mapping[str, str]] = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
    "place_of_birth": "city",
    "place_of_death": "city",
}
"""What a name may suggest, by relation; names suggest nothing of the objects of the others."""

NAME_TEMPLATE: Final = "{name} is a common name in the following {noun}: {answer}."
"""The question about a name."""

TOP_NAMES: Final = 3
"""Guesses about a name that the answer must not be among."""

CUTOFFS: Final = (*range(1, 11), *range(20, 101, 10))
"""The k of Hits@k."""

COMPARED_CUTOFFS: Final = (1, 10, 100)
"""The k whose Hits@k of two models are compared."""

Filter = Literal["none", "string", "names", "easy"]
"""Questions that are scored: all; those after the string match filter; those after the person name filter too
(LAMA-UHN); those that the two have taken out."""


class NameQuestion(NamedTuple):
    """A word of a person's name, and what it may suggest."""

    name: str
    noun: str


NameGuesses = Mapping[NameQuestion, Sequence[str]]
"""The words that a plain model thinks likeliest, for each question about a name."""


class ClozeGuess(NamedTuple):
    """What a model made of a question whose object is hidden.

    Attributes:
        question: the question.
        rank: rank of the answer among the words of the vocabulary, from 1.
        object_rank: its rank among the objects of the relation.
        likeliest: the likeliest words, the best first.
    """

    question: ClozeQuestion
    rank: int
    object_rank: int
    likeliest: tuple[str, ...] = ()


class HitsScore(NamedTuple):
    """Hits@k of questions.

    Attributes:
        questions: how many there are.
        macro: Hits@k by k, averaged within, then across relations; 0 without questions.
        micro: Hits@k by k, over all questions.
        relations: of each relation its number of questions, and Hits@k by k.
    """

    questions: int
    macro: dict[int, float]
    micro: dict[int, float]
    relations: dict[str, tuple[int, dict[int, float]]]


class SubsetScore(NamedTuple):
    """Scores of some of the questions.

    Attributes:
        filter: questions that are scored.
        hits: Hits@k of the model among the words of the vocabulary (`vocabulary`), among the objects of the
            relation (`objects`), and of the baseline that knows which object is frequent (`frequent`).
    """

    filter: Filter
    hits: dict[str, HitsScore]


# -- filters ----------------------------------------------------------------


def is_in_subject(fact: Fact) -> bool:
    """Return whether a fact's object is part of its subject's name, whatever the case."""
    return bool(fact.subject) and fact.object.lower() in fact.subject.lower()


def name_questions(facts: Iterable[Fact]) -> list[NameQuestion]:
    """Return the distinct questions about names that the person name filter asks."""
    return [*dict.fromkeys(question for fact in facts for question in _name_questions(fact))]


def _name_questions(fact: Fact) -> list[NameQuestion]:
    noun = NAME_NOUNS.get(fact.relation)
    return [NameQuestion(name, noun) for name in fact.subject.split()] if noun else []


def name_suggests(fact: Fact, guesses: NameGuesses) -> bool:
    """Return whether a word of the subject's name suggests the object, by what a plain model guesses.

    Case and accents do not count: some models write none.
    """
    wanted = _bare(fact.object)
    for question in _name_questions(fact):
        if any(_bare(word) == wanted for word in guesses[question][:TOP_NAMES]):
            return True
    return False


def _bare(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def filtered(facts: Sequence[Fact], guesses: NameGuesses | None = None) -> dict[Filter, frozenset[int]]:
    """Return the indices of the facts that each filter leaves, and those that the filters take out.

    Args:
        facts: facts.
        guesses: answers of a plain model to `name_questions`; None: the person name filter is left out.
    """
    every = frozenset(range(len(facts)))
    string = frozenset(index for index, fact in enumerate(facts) if not is_in_subject(fact))
    if guesses is None:
        return {"none": every, "string": string, "easy": every - string}
    names = frozenset(index for index in string if not name_suggests(facts[index], guesses))
    return {"none": every, "string": string, "names": names, "easy": every - names}


# -- scores -----------------------------------------------------------------


def score_hits(ranks: Iterable[tuple[str, int]], cutoffs: Collection[int] = CUTOFFS) -> HitsScore:
    """Return Hits@k of the ranks of answers.

    Args:
        ranks: of each question its relation, and the rank of the answer from 1.
        cutoffs: each k.
    """
    by_relation: dict[str, list[int]] = defaultdict(list)
    for relation, rank in ranks:
        by_relation[relation].append(rank)
    every = [rank for ranks_of_one in by_relation.values() for rank in ranks_of_one]
    relations = {
        name: (len(by_relation[name]), _hits(by_relation[name], cutoffs)) for name in sorted(by_relation)
    }
    macro = {k: sum(hits[k] for _, hits in relations.values()) / max(1, len(relations)) for k in cutoffs}
    return HitsScore(len(every), macro, _hits(every, cutoffs), relations)


def _hits(ranks: Sequence[int], cutoffs: Collection[int]) -> dict[int, float]:
    return {k: sum(rank <= k for rank in ranks) / max(1, len(ranks)) for k in cutoffs}


def frequency_ranks(questions: Iterable[ClozeQuestion]) -> list[tuple[str, int]]:
    """Return, of each question, its relation and the rank of its answer by how often the relation has it.

    The baseline of Petroni et al. (2019): it guesses the most frequent object of the relation among these
    very questions, and so knows more than a model does. Equally frequent objects stand in alphabetical
    order.
    """
    questions = [*questions]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        counts[question.relation][question.answer] += 1
    ranks = {
        relation: {
            answer: rank
            for rank, (answer, _) in enumerate(
                sorted(of_relation.items(), key=lambda item: (-item[1], item[0])), start=1
            )
        }
        for relation, of_relation in counts.items()
    }
    return [(question.relation, ranks[question.relation][question.answer]) for question in questions]


def score_subsets(
    guesses: Sequence[ClozeGuess], facts_by_filter: Mapping[Filter, Collection[int]]
) -> list[SubsetScore]:
    """Return the scores of the questions that each filter leaves.

    Args:
        guesses: what a model made of the questions.
        facts_by_filter: indices of the facts by filter, see `filtered`.
    """
    return [
        SubsetScore(name, _score_guesses([guess for guess in guesses if guess.question.fact in indices]))
        for name, indices in facts_by_filter.items()
    ]


def paired_guesses(
    first: Iterable[ClozeGuess], second: Iterable[ClozeGuess]
) -> tuple[list[ClozeGuess], list[ClozeGuess]]:
    """Return the predictions of two models for the questions that both answer, in the order of the second."""
    by_id = {guess.question.id: guess for guess in first}
    both = [guess for guess in second if guess.question.id in by_id]
    return [by_id[guess.question.id] for guess in both], both


def _score_guesses(guesses: Sequence[ClozeGuess]) -> dict[str, HitsScore]:
    return {
        "vocabulary": score_hits((guess.question.relation, guess.rank) for guess in guesses),
        "objects": score_hits((guess.question.relation, guess.object_rank) for guess in guesses),
        "frequent": score_hits(frequency_ranks(guess.question for guess in guesses)),
    }


def hits_columns(
    first: Sequence[ClozeGuess], second: Sequence[ClozeGuess], cutoffs: Collection[int] = COMPARED_CUTOFFS
) -> list[ScoreColumns]:
    """Return the columns of Hits@k among the words of the vocabulary, averaged across relations, of each k.

    A question counts N / (R n), n being the questions of its relation, of R relations.

    Args:
        first, second: predictions of two models for the same N questions, in the same order.
        cutoffs: each k.
    """
    counts = Counter(guess.question.relation for guess in first)
    weights = np.array(
        [len(first) / (len(counts) * counts[guess.question.relation]) for guess in first], np.float64
    )
    ranks = np.array([[guess.rank for guess in guesses] for guesses in (first, second)], np.int64)  # (2, N)
    return [
        ScoreColumns(
            f"hits@{k}", np.stack([weights * (ranks <= k), np.stack([weights] * 2)], -1), mean_of_sums
        )
        for k in cutoffs
    ]


# -- predictions ------------------------------------------------------------


class _Row(msgspec.Struct, frozen=True):
    """The fields of a line."""

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
) -> None:
    """Write a line for each question, with the filters that leave it.

    Args:
        path: the file.
        guesses: predictions of a model.
        facts: facts that the questions are made of.
        facts_by_filter: indices of the facts by filter.

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
    decoder = msgspec.json.Decoder(_Row)
    numbers: dict[str, int] = {}
    guesses = []
    for number, line in lines(path):
        try:
            row = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SourceError(
                f"no prediction of a question, as --predictions writes it: {error}",
                path=path, line=number, text=line,
            ) from None  # fmt: skip
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
