"""From mentions with candidates to what KnowBert's linker takes: a sentence a row, padded.

B  sentences    M  mentions of one    C  candidates of one    D  entity vector width
W  numbers of a mention               F  features of a candidate
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.heads.knowbert import LinkerInputs
from kgkit.types import Document, Ids

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Matrix = NDArray[np.float32]
Numbers = NDArray[np.int64]

MOST: Final = 24
"""Mentions that are read together; the rest of a long sentence makes a row of its own."""


class Sentence(NamedTuple):
    """Mentions that are read together.

    Attributes:
        rows: (M,) which mentions, of all those that vectors are asked for by.
        ids: for each the ids (C,) of its candidates.
        features: for each those of its candidates, (C, F).
        right: for each which candidates are right, (C,) bool; None where nobody knows.
    """

    rows: Numbers
    ids: list[Ids]
    features: list[Matrix]
    right: list[NDArray[np.bool_]] | None = None


def sentences_of(document: Document) -> list[Numbers]:
    """Return the places of the mentions of each sentence, `MOST` at a time."""
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


def padded(
    sentences: Sequence[Sentence],
    hidden: Callable[[Numbers], Matrix],
    vectors: Callable[[Ids], Matrix],
) -> "tuple[LinkerInputs, Tensor]":
    """Return the inputs of sentences, and which candidates are right, (B, M, C) bool.

    Args:
        sentences: B of them.
        hidden: gives the vectors of mentions by their rows: (m,) -> (m, W).
        vectors: gives those of entities by their ids: (R,) -> (R, D).
    """
    import torch

    rows = np.concatenate([one.rows for one in sentences])
    ids = [these for one in sentences for these in one.ids]
    counts = np.array([len(one.rows) for one in sentences])
    sizes = np.array([len(these) for these in ids], np.int64)  # of each mention
    wide, deep = int(counts.max()), max(1, int(sizes.max(initial=0)))
    b = np.repeat(np.arange(len(sentences)), counts)  # of each mention: its sentence, its place there
    m = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    rb, rm = np.repeat(b, sizes), np.repeat(m, sizes)  # of each candidate
    rc = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found, flat = hidden(rows), vectors(np.concatenate(ids))
    features = np.concatenate([these for one in sentences for these in one.features])
    spans = np.arange(wide)[:, None] + np.array([0, 1])  # vectors of mentions are read as pieces
    shape = (len(sentences), wide)
    filled = LinkerInputs(
        hidden=torch.from_numpy(_filled((*shape, found.shape[1]), (b, m), found)),
        spans=torch.from_numpy(np.repeat(spans[None], len(sentences), axis=0)),
        mentions=torch.from_numpy(_filled(shape, (b, m), np.ones(len(rows), np.bool_))),
        vectors=torch.from_numpy(_filled((*shape, deep, flat.shape[1]), (rb, rm, rc), flat)),
        features=torch.from_numpy(_filled((*shape, deep, features.shape[1]), (rb, rm, rc), features)),
        candidates=torch.from_numpy(_filled((*shape, deep), (rb, rm, rc), np.ones(len(rc), np.bool_))),
    )
    right = [
        these for one in sentences for these in one.right or [np.zeros(len(i), np.bool_) for i in one.ids]
    ]
    return filled, torch.from_numpy(_filled((*shape, deep), (rb, rm, rc), np.concatenate(right)))


def on_device(inputs: LinkerInputs, device: "torch.device") -> LinkerInputs:
    """Return *inputs* on *device*."""
    moved = {name: one.to(device) for name, one in inputs._asdict().items() if one is not None}
    return LinkerInputs(**moved)


def _filled(
    shape: tuple[int, ...], where: tuple[Numbers, ...], values: NDArray[np.generic]
) -> NDArray[np.generic]:
    """Return an array of zeros with *values* in it."""
    made = np.zeros(shape, values.dtype)
    made[where] = values
    return made
