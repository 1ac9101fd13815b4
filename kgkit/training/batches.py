"""The batches of a training: what the loop asks of them, and a shuffled list of items."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

POOL: Final = 50
"""Batches that are drawn together, at most, and then made of items of like lengths."""

_POOLS: Final = 8  # of an epoch at least: of few texts batches would be the same each time, or of one label


class Batches(Protocol):
    """The batches of every epoch, in an order that follows from the epoch's number and a seed.

    Nothing may be drawn from the random generators of Python, NumPy or torch that everybody shares.
    """

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        ...

    def epoch(self, number: int, indices: Sequence[int], /) -> Iterable[Any]:
        """Yield the batches at these indices of the order of epoch *number* (from 0), and make no others.

        They are tensors, or lists, tuples and dictionaries of them, or have a method `to(device)`. Indices
        are below the length and ascend; the last may come twice.
        """
        ...


class Carried(Protocol):
    """What a loss carries from batch to batch beside the weights, as the states of an LSTM.

    It is saved in checkpoints. Where an epoch begins, the batch says so: the loss begins anew there.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return it, in what `torch.load` takes safely: tensors, numbers, strings, lists and dictionaries."""
        ...

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take what `state_dict` returned."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Items, in another order each epoch, `size` at a time; *collate* makes a batch of a list of them.

    Attributes:
        lengths: one to an item. With them the items of a batch are about as long as each other, so that
            little is padded: up to `POOL` batches are drawn together; their shortest items make one, the next
            ones another. Which items a step has then depends on `size`: two processes with half of it read
            others. Without, any items make a batch.
    """

    items: Sequence[Any]
    size: int
    collate: Callable[[list[Any]], Any]
    seed: int = 0
    lengths: Sequence[int] | None = None

    def __len__(self) -> int:
        return math.ceil(len(self.items) / self.size)

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[Any]:
        """Yield the batches at *indices* of an epoch's order, which depends on seed and *number* alone."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(self.items))
        if self.lengths is not None:
            order = self._alike(order, np.asarray(self.lengths), rng)
        for index in indices:
            yield self.collate([self.items[i] for i in order[index * self.size : (index + 1) * self.size]])

    def _alike(
        self, order: NDArray[np.int64], lengths: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return an order in which items of like lengths make a batch; one that is not full is last."""
        full = len(order) // self.size * self.size
        step = max(1, min(POOL, full // self.size // _POOLS)) * self.size
        pools = [order[begin : min(begin + step, full)] for begin in range(0, full, step)]
        alike = [pool[lengths[pool].argsort(kind="stable")] for pool in pools]
        batches = np.concatenate([*alike, order[:0]]).reshape(-1, self.size)
        return np.concatenate([rng.permutation(batches).ravel(), order[full:]])
