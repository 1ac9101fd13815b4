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


class Lesson(NamedTuple):
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


def lessons_of(
    taught: Iterable[LabelledDocument], reader: KnowBertReader, kb: str, *, null: bool
) -> Iterator[Lesson]:
    """Yield documents as KnowBert reads them; stretches that teach nothing are left out.

    Args:
        taught: whose mentions have candidates in *kb*.
        reader: which has *kb* among its knowledge bases; what the others know is read too.
        kb: by the name that the reader has for it.
        null: whether a mention none of whose candidates is right teaches that it means nothing.
    """
    for document, right, _ in taught:
        for text in reader.read_document(document, {kb: document}):
            own = [right[place] for place in text.mentions[kb].indices.tolist()]
            if own if null else any(one.any() for one in own):
                yield Lesson(text, own)


def linking_batch(lessons: Sequence[Lesson], reader: KnowBertReader, kb: str, *, null: bool) -> LinkingBatch:
    """Return lessons as a batch."""
    import torch

    batch = reader.batch([one.text for one in lessons])
    wide = batch.knowledge[kb].candidates.shape
    gold = np.zeros((*wide[:2], wide[2] + null), np.bool_)
    for row, lesson in enumerate(lessons):
        for place, right in enumerate(lesson.right):
            gold[row, place, : len(right)] = right
            if null and not right.any():
                gold[row, place, -1] = True
    return LinkingBatch(kb, batch, torch.from_numpy(gold))
