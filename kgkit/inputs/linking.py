"""From mentions with candidates to what KnowBert's linker takes: a sentence a row, padded.

B  sentences    M  mentions of one    C  candidates of one    D  entity vector width
W  numbers of a mention               F  features of a candidate
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.inputs.mentions import MentionSpans
from kgkit.types import Document, Ids, Matrix, Numbers

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.heads.entity_linker import LinkerInputs

MOST: Final = 24
"""Mentions that are read together; the rest of a long sentence makes a row of its own."""


class LinkerSentence(NamedTuple):
    """Mentions that are read together.

    Attributes:
        rows: (M,) rows of the mentions, by which their vectors are looked up.
        ids: M arrays (C,), the ids of a mention's candidates.
        features: M arrays (C, F), their features.
        right: M arrays (C,) of bool, whether a candidate is right, or of float32, what a teacher gives it;
            None where neither is known.
    """

    rows: Numbers
    ids: list[Ids]
    features: list[Matrix]
    right: Sequence[NDArray[np.bool_] | Matrix] | None = None


def sentences_of(document: Document) -> list[Numbers]:
    """Return the indices of the mentions of each sentence, `MOST` at a time."""
    mentions = document.mentions or []
    starts = np.array([mention.start for mention in mentions], np.int64)
    order = np.argsort(starts, kind="stable")
    begins = np.array([begin for begin, _ in document.sentences or ()], np.int64)
    sentence = np.searchsorted(begins, starts[order], "right")
    cuts = np.flatnonzero(np.diff(sentence)) + 1
    return [
        part[at : at + MOST]
        for part in np.split(order, cuts)
        for at in range(0, len(part), MOST)
        if len(part)
    ]


class PaddedLayout(NamedTuple):
    """The positions of the mentions of some sentences, and of their candidates, in padded tensors.

    Attributes:
        rows: (m,) mentions, in order.
        ids: (R,) candidates of all mentions.
        mention: (m,) sentence and (m,) index in it.
        candidate: (R,) sentence, (R,) index of the mention in it and (R,) index among the mention's.
        shape: B, M and C.
    """

    rows: Numbers
    ids: Ids
    mention: tuple[Numbers, Numbers]
    candidate: tuple[Numbers, Numbers, Numbers]
    shape: tuple[int, int, int]


def padded_layout(sentences: Sequence[LinkerSentence]) -> PaddedLayout:
    """Return the positions of the mentions of sentences in padded tensors."""
    ids = [ids for sentence in sentences for ids in sentence.ids]
    counts = np.array([len(sentence.rows) for sentence in sentences], np.int64)
    sizes = np.array([len(these) for these in ids], np.int64)  # of each mention
    b = np.repeat(np.arange(len(sentences)), counts)
    m = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
    c = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return PaddedLayout(
        np.concatenate([sentence.rows for sentence in sentences]),
        np.concatenate([np.empty(0, np.uint32), *ids]),
        (b, m),
        (np.repeat(b, sizes), np.repeat(m, sizes), c),
        (len(sentences), int(counts.max()), max(1, int(sizes.max(initial=0)))),
    )


def shared_linker_inputs(
    sentences: Sequence[LinkerSentence],
    vectors: Callable[[Ids], Matrix],
    hidden: Callable[[Numbers], Matrix] | None = None,
) -> "tuple[LinkerInputs, Tensor]":
    """Return the inputs of sentences with each entity's vector once, and which candidates are right.

    Args:
        sentences: B sentences.
        vectors: function that gives the vectors of entities by their ids: (U,) -> (U, D).
        hidden: function that gives the vectors of mentions by their rows, (m,) -> (m, W); None: without
            vectors of mentions.
    """
    import torch

    layout = padded_layout(sentences)
    inputs, right = inputs_without_vectors(sentences, layout)
    once, rows = np.unique(layout.ids, return_inverse=True)
    inputs = inputs._replace(
        vectors=torch.from_numpy(vectors(once)),
        rows=torch.from_numpy(_filled(layout.shape, layout.candidate, rows.astype(np.int64))),
    )
    if hidden is not None:
        mentions = hidden(layout.rows)
        wide = (*layout.shape[:2], mentions.shape[1])
        inputs = inputs._replace(hidden=torch.from_numpy(_filled(wide, layout.mention, mentions)))
    return inputs, right


def text_linker_inputs(texts: Sequence[MentionSpans], vectors: Callable[[Ids], Matrix]) -> "LinkerInputs":
    """Return the inputs of B texts, without the encoder's vectors, each entity's vector once.

    Args:
        texts: mentions of each text.
        vectors: function that gives the vectors of entities by their ids: (U,) -> (U, D).
    """
    import torch

    sentences = [
        LinkerSentence(
            np.arange(len(text.candidates)),
            [candidates.ids for candidates in text.candidates],
            [candidates.priors[:, None] for candidates in text.candidates],
        )
        for text in texts
    ]
    inputs, _ = shared_linker_inputs(sentences, vectors)
    shape = tuple(inputs.mentions.shape)
    spans, masked = np.zeros((*shape, 2), np.int64), np.zeros(shape, np.bool_)
    null = np.zeros((*shape, 1), np.float32)
    for row, text in enumerate(texts):
        count = len(text.candidates)
        spans[row, :count], masked[row, :count] = text.spans, text.masked
        null[row, :count, 0] = [candidates.null for candidates in text.candidates]
    return inputs._replace(
        spans=torch.from_numpy(spans),
        null_features=torch.from_numpy(null),
        masked=torch.from_numpy(masked) if masked.any() else None,
    )


def inputs_without_vectors(
    sentences: Sequence[LinkerSentence], layout: PaddedLayout
) -> "tuple[LinkerInputs, Tensor]":
    """Return the inputs of sentences, with no vectors of mentions and entities; and what is right.

    Vectors of width 0 stand for them.
    """
    import torch

    from kgkit.heads.entity_linker import LinkerInputs

    wide, deep = layout.shape[:2], layout.shape
    each = [features for sentence in sentences for features in sentence.features]
    features = np.concatenate(each) if each else np.empty((0, 1), np.float32)
    pieces = np.arange(wide[1])[:, None] + np.array([0, 1])  # vectors of mentions are read as pieces
    inputs = LinkerInputs(
        hidden=torch.empty(*wide, 0),
        spans=torch.from_numpy(np.repeat(pieces[None], len(sentences), axis=0)),
        mentions=torch.from_numpy(_filled(wide, layout.mention, np.ones(len(layout.rows), np.bool_))),
        vectors=torch.empty(*deep, 0),
        features=torch.from_numpy(_filled((*deep, features.shape[1]), layout.candidate, features)),
        candidates=torch.from_numpy(_filled(deep, layout.candidate, np.ones(len(layout.ids), np.bool_))),
    )
    right = [
        candidates
        for sentence in sentences
        for candidates in sentence.right or [np.zeros(len(ids), np.bool_) for ids in sentence.ids]
    ]
    return inputs, torch.from_numpy(
        _filled(deep, layout.candidate, np.concatenate([np.empty(0, np.bool_), *right]))
    )


def _filled(
    shape: tuple[int, ...], where: tuple[Numbers, ...], values: NDArray[np.generic]
) -> NDArray[np.generic]:
    """Return an array of zeros with *values* in it."""
    array = np.zeros(shape, values.dtype)
    array[where] = values
    return array
