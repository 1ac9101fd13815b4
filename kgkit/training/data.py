"""Data of any training: counted while they are read, and divided into what is learnt and what is held out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.examples import HELD_OUT
from kgkit.types import Progress

Item = TypeVar("Item")

MENTIONS_HELD_OUT: Final = 5_000
"""Mentions that are enough to choose an epoch and a temperature."""


class HeldOut(NamedTuple, Generic[Item]):
    """Items to learn from, and those that are held out of them, which choose the epoch."""

    learn: list[Item]
    held_out: list[Item]


def count_items(items: Iterable[Item], stage: str, progress: Progress | None) -> Iterator[Item]:
    """Yield *items*, and tell *progress* behind each how many there were."""
    for number, item in enumerate(items, 1):
        yield item
        if progress is not None:
            progress(stage, number, 0)


def hold_out_each_tenth(items: Sequence[Item]) -> HeldOut[Item]:
    """Return items to learn from, and one in `HELD_OUT` that is held out; of fewer none is."""
    learn = [item for number, item in enumerate(items, 1) if number % HELD_OUT]
    return HeldOut(learn, list(items[HELD_OUT - 1 :: HELD_OUT]))


def folds_of(count: int, folds: int) -> Iterator[NDArray[np.bool_]]:
    """Yield (N,) bool, which of *count* items belong to a fold, for each fold: those in a row."""
    number = np.arange(count) * folds // count
    for fold in range(folds):
        yield number == fold


def held_out_interval(documents: int, mentions: int) -> int:
    """Return n: the last of every n documents is held out.

    It is one in `HELD_OUT`; of large data fewer, so many that they have `MENTIONS_HELD_OUT` mentions, and one
    at least.

    Args:
        documents: number of all documents.
        mentions: number of all mentions.
    """
    return max(HELD_OUT, min(mentions // MENTIONS_HELD_OUT, documents))
