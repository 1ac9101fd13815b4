"""Data of any training: counted while they are read, and divided into what is learnt and what is held out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from kgkit.evaluation.examples import HELD_OUT
from kgkit.types import Progress

Item = TypeVar("Item")


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
