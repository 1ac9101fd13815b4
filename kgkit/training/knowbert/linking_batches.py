"""What KnowBert's linkers learn from: documents as they are read, and which candidates are right."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.texts import TokenizedText
from kgkit.training.linkers.labelled import LabelledDocument

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
