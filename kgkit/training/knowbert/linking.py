"""Training data of KnowBert's linkers: documents with links, and how they are read."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.knowledge import knowledge_of
from kgkit.inputs.texts import TokenizedText
from kgkit.kb import KnowledgeBase
from kgkit.methods.knowbert_settings import KnowBertTraining, Supervision
from kgkit.training.data import HeldOut, count_items, hold_out_each_tenth
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    labelled_files,
)
from kgkit.types import Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class LinkingExample(NamedTuple):
    """A text to learn linking from.

    Attributes:
        text: as it is read.
        right: for each of its mentions (C,) bool, which candidates are right; none, if none of them is.
    """

    text: TokenizedText
    right: list[NDArray[np.bool_]]


class LinkingBatch(NamedTuple):
    """Texts, and what is meant in them.

    Attributes:
        kb: the name of the knowledge base.
        batch: what KnowBert reads.
        gold: (B, M, C) bool; of one candidate more, NULL, where that is one.
    """

    kb: str
    batch: KnowBertBatch
    gold: "Tensor"

    def to(self, device: "torch.device", **_: object) -> "LinkingBatch":
        """Return it on a device."""
        return LinkingBatch(self.kb, self.batch.to(device), self.gold.to(device))


def read_linking_examples(
    documents: Iterable[LabelledDocument], reader: KnowBertReader, kb: str, *, null: bool
) -> Iterator[LinkingExample]:
    """Yield documents as KnowBert reads them; texts that teach nothing are left out.

    Args:
        documents: documents whose mentions have candidates in *kb*.
        reader: reader with *kb* among its knowledge bases; what the others know is read too.
        kb: name that the reader has for the knowledge base.
        null: whether a mention none of whose candidates is right teaches that it means nothing.
    """
    for document, right, *_ in documents:
        for text in reader.read_document(document, {kb: document}):
            own = [right[index] for index in text.mentions[kb].indices.tolist()]
            if own if null else any(flags.any() for flags in own):
                yield LinkingExample(text, own)


def linking_batch(
    examples: Sequence[LinkingExample], reader: KnowBertReader, kb: str, *, null: bool
) -> LinkingBatch:
    """Return examples as a batch."""
    import torch

    batch = reader.batch([example.text for example in examples])
    wide = batch.knowledge[kb].candidates.shape
    gold = np.zeros((*wide[:2], wide[2] + null), np.bool_)
    for row, example in enumerate(examples):
        for column, right in enumerate(example.right):
            gold[row, column, : len(right)] = right
            if null and not right.any():
                gold[row, column, -1] = True
    return LinkingBatch(kb, batch, torch.from_numpy(gold))


def links_of(
    training: KnowBertTraining, kb: KnowledgeBase, progress: Progress | None
) -> HeldOut[LabelledDocument]:
    """Return the documents of the tasks `wsd` and `el`.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """

    def read(data: Sequence[Path], gold: Sequence[Path]) -> list[LabelledDocument]:
        golds = gold if training.task == "wsd" else [None for _ in data]
        return supervised(list(map(Supervision, repeat(kb.name), data, golds)), kb, progress)

    learn = read(training.data, training.gold)
    if training.dev:
        return HeldOut(learn, read(training.dev, training.dev_gold))
    return hold_out_each_tenth(learn)


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
    reader: KnowBertReader,
    kb: str,
    *,
    null: bool,
    progress: Progress | None,
) -> list[LinkingExample]:
    """Return documents as they are read; see `read_linking_examples`."""
    examples = read_linking_examples(documents, reader, kb, null=null)
    return list(count_items(examples, "reading linking examples", progress))
