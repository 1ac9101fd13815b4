"""What a KnowBert is pretrained on: passages, documents with links; and what is held out of them."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from kgkit.building import text_lines
from kgkit.errors import UsageError
from kgkit.inputs.passages import (
    MeasuredSentence,
    Passage,
    measure_sentences,
    passage_pairs,
    read_plain,
    single_passages,
)
from kgkit.kb import KnowledgeBase
from kgkit.linking.knowbert import knowledge_of
from kgkit.methods.knowbert_settings import KnowBertTraining, Supervision
from kgkit.training.knowbert.linking_batches import Lesson, lessons_of
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    MissingGold,
    labelled_examples,
    labelled_senses,
    labelled_spans,
    letters,
)
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.inputs.knowbert import KnowBertReader

_log = logging.getLogger(__name__)

Item = TypeVar("Item")

HELD_OUT: Final = 10
"""One document in so many is not learnt from, where no others are named."""

_TEXTS_HELD_OUT: Final = 50  # one document of plain text in so many
_PASSAGES: Final = 200  # that choose the epoch, at most
_FEW: Final = 20  # tell little


class Passages(NamedTuple):
    """Plain text: what is learnt from, and what chooses the epoch."""

    taught: list[Passage]
    held_out: list[Passage]


class Links(NamedTuple):
    """Documents of a knowledge base whose mentions have candidates: as above."""

    taught: list[LabelledDocument]
    held_out: list[LabelledDocument]


def passages_of(
    training: KnowBertTraining, reader: "KnowBertReader", *, paired: bool, progress: Progress | None
) -> Passages:
    """Return the passages of the data; single ones are held out, `_PASSAGES` at most.

    Args:
        training: names the files.
        reader: that will read them.
        paired: whether what follows is predicted.
        progress: is told how many documents have been read.

    Raises:
        NotThere, SourceError: as `read_plain` does.
        UsageError: if nothing can be learnt from them.
    """
    tokens, room = reader.tokens, reader.room(1)
    longest = reader.room(2) // 2 if paired else room
    known: list[list[MeasuredSentence]] = []
    held: list[list[MeasuredSentence]] = []
    for number, document in enumerate(_counted(_plain(training.data), "reading documents", progress)):
        is_held = not training.dev and number % _TEXTS_HELD_OUT == _TEXTS_HELD_OUT - 1
        into, most = (held, room) if is_held else (known, longest)
        into += measure_sentences([document], tokens, most)
    for document in _plain(training.dev):
        held += measure_sentences([document], tokens, room)
    if paired:
        drawn = np.random.default_rng(training.seed)
        taught = list(passage_pairs(known, tokens, reader.room(2), drawn))
    else:
        taught = list(single_passages(known, room))
    if not taught:
        raise UsageError("there is nothing to learn: the only document has no sentence that another follows")
    held_out = list(single_passages(held, room))[:_PASSAGES]
    if 0 < len(held_out) < _FEW:
        _log.warning(
            "%d held-out passages are few to choose an epoch by, or to be scored on: name more with --dev",
            len(held_out),
        )
    return Passages(taught, held_out)


def links_of(training: KnowBertTraining, kb: KnowledgeBase, progress: Progress | None) -> Links:
    """Return the documents of the tasks `wsd` and `el`, and the usage examples of the KB, if they are wanted.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """
    by_gold: list[list[Supervision]] = []
    for data, gold in ((training.data, training.gold), (training.dev, training.dev_gold)):
        golds = gold if training.task == "wsd" else [None for _ in data]
        by_gold.append([Supervision(kb.name, path, beside) for path, beside in zip(data, golds, strict=True)])
    taught = supervised(by_gold[0], kb, progress)
    if training.dev:
        links = Links(taught, supervised(by_gold[1], kb, progress))
    else:
        links = held_apart(taught)
    if training.examples:
        lines = (line for path in training.without for _, line in text_lines(path))
        without = frozenset(letters(line) for line in lines)
        examples = labelled_examples(kb, knowledge_of(kb, ()).generator, without=without)
        links.taught.extend(_counted(examples, "looking up examples", progress))
    return links


def supervised(
    files: Sequence[Supervision], kb: KnowledgeBase, progress: Progress | None
) -> list[LabelledDocument]:
    """Return the documents of files, whose mentions have as many candidates in *kb* as are read.

    Raises: as `links_of` does.
    """
    generator, lacking = knowledge_of(kb, ()).generator, MissingGold(kb)
    source = (
        one
        for _, data, gold in files
        for one in (
            labelled_spans(kb, generator, data, lacking)
            if gold is None
            else labelled_senses(kb, generator, data, gold, "surface", lacking)
        )
    )
    found = list(_counted(source, "looking up documents", progress))
    if not any(right.any() for one in found for right in one.right):
        raise lacking.error()
    lacking.warn()
    return found


def held_apart(every: Sequence[LabelledDocument]) -> Links:
    """Return documents divided: one in `HELD_OUT` is held out, if there are as many."""
    return Links(
        [one for place, one in enumerate(every, 1) if place % HELD_OUT], list(every[HELD_OUT - 1 :: HELD_OUT])
    )


def lessons(
    taught: Iterable[LabelledDocument],
    reader: "KnowBertReader",
    kb: str,
    *,
    null: bool,
    progress: Progress | None,
) -> list[Lesson]:
    """Return documents as they are read; see `lessons_of`."""
    return list(_counted(lessons_of(taught, reader, kb, null=null), "reading lessons", progress))


def _plain(files: Sequence[Path]) -> Iterator[list[str]]:
    for path in files:
        yield from read_plain(path)


def _counted(source: Iterable[Item], stage: str, progress: Progress | None) -> Iterator[Item]:
    for number, one in enumerate(source, 1):
        yield one
        if progress is not None:
            progress(stage, number, 0)
