"""What a KnowBert is pretrained on: passages, documents with links; and what is held out of them."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.errors import UsageError
from kgkit.evaluation.examples import warn_of_few_held_out
from kgkit.evaluation.plain_text import read_plain
from kgkit.inputs.knowledge import knowledge_of
from kgkit.inputs.passages import (
    MeasuredSentence,
    Passage,
    measure_sentences,
    passage_pairs,
    single_passages,
)
from kgkit.kb import KnowledgeBase
from kgkit.methods.knowbert_settings import KnowBertTraining, Supervision
from kgkit.methods.settings import TaskTraining
from kgkit.training.data import HeldOut, count_items, hold_out_each_tenth
from kgkit.training.knowbert.linking_batches import LinkingExample, read_linking_examples
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    labelled_examples,
    labelled_files,
    read_letters,
)
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.inputs.knowbert import KnowBertReader
    from kgkit.inputs.texts import TextReader

_TEXTS_HELD_OUT: Final = 50  # one document of plain text in so many
_PASSAGES: Final = 200  # that choose the epoch, at most


def passages_of(
    training: TaskTraining, reader: "TextReader", *, paired: bool, progress: Progress | None
) -> HeldOut[Passage]:
    """Return the passages of the data; single ones are held out, `_PASSAGES` at most.

    Args:
        training: settings, which name the files.
        reader: reader of the passages.
        paired: whether what follows is predicted.
        progress: callback with the number of documents that have been read.

    Raises:
        NotThere, SourceError: as `read_plain` does.
        UsageError: if nothing can be learnt from them.
    """
    tokens, room = reader.tokens, reader.room(1)
    longest = reader.room(2) // 2 if paired else room
    learnt: list[list[MeasuredSentence]] = []
    held: list[list[MeasuredSentence]] = []
    documents = count_items(
        chain.from_iterable(map(read_plain, training.data)), "reading documents", progress
    )
    for number, document in enumerate(documents):
        is_held_out = not training.dev and number % _TEXTS_HELD_OUT == _TEXTS_HELD_OUT - 1
        into, most = (held, room) if is_held_out else (learnt, longest)
        into += measure_sentences([document], tokens, most)
    for document in chain.from_iterable(map(read_plain, training.dev)):
        held += measure_sentences([document], tokens, room)
    if paired:
        drawn = np.random.default_rng(training.seed)
        learn = list(passage_pairs(learnt, tokens, reader.room(2), drawn))
    else:
        learn = list(single_passages(learnt, room))
    if not learn:
        raise UsageError("there is nothing to learn: the only document has no sentence that another follows")
    held_out = list(single_passages(held, room))[:_PASSAGES]
    warn_of_few_held_out(len(held_out), "passages")
    return HeldOut(learn, held_out)


def links_of(
    training: KnowBertTraining, kb: KnowledgeBase, progress: Progress | None
) -> HeldOut[LabelledDocument]:
    """Return the documents of the tasks `wsd` and `el`, and the usage examples of the KB, if they are wanted.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """

    def read(data: Sequence[Path], gold: Sequence[Path]) -> list[LabelledDocument]:
        golds = gold if training.task == "wsd" else [None for _ in data]
        return supervised(list(map(Supervision, repeat(kb.name), data, golds)), kb, progress)

    learn = read(training.data, training.gold)
    links = hold_out_each_tenth(learn)
    if training.dev:
        links = HeldOut(learn, read(training.dev, training.dev_gold))
    if training.examples:
        generator = knowledge_of(kb, ()).generator
        examples = labelled_examples(kb, generator, without=read_letters(training.without))
        links.learn.extend(count_items(examples, "looking up examples", progress))
    return links


def supervised(
    files: Sequence[Supervision], kb: KnowledgeBase, progress: Progress | None
) -> list[LabelledDocument]:
    """Return the documents of files, whose mentions have as many candidates in *kb* as are read.

    Raises: as `links_of` does.
    """
    data, gold = [file.data for file in files], [file.gold for file in files]
    return labelled_files(kb, knowledge_of(kb, ()).generator, data, gold, progress)


def linking_examples(
    documents: Iterable[LabelledDocument],
    reader: "KnowBertReader",
    kb: str,
    *,
    null: bool,
    progress: Progress | None,
) -> list[LinkingExample]:
    """Return documents as they are read; see `read_linking_examples`."""
    examples = read_linking_examples(documents, reader, kb, null=null)
    return list(count_items(examples, "reading linking examples", progress))
