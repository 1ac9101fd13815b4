"""Batches of triples that share their negatives, and how likely each candidate was to be among them.

    B  triples of a batch    C  candidates, each once    N  entities    T  triples    F  known tails among C

The candidates of a batch are the tails of its own triples and K entities drawn uniformly without replacement.
A loss that sums over all entities is estimated from those drawn by weighing each with 1 / pi, where pi is the
chance that it is among them (Horvitz & Thompson 1952). For the row of one triple, its own tail is there for
certain; any other entity e comes as one of the K or as the tail of one of the B - 1 other triples, which are
drawn without replacement from T - 1:

    pi(e) = 1 - (1 - K / N) * C(T - 1 - n_e, B - 1) / C(T - 1, B - 1)        n_e: triples whose tail is e

So the sum over candidates has the sum over all entities as its expectation, exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from kgkit.embedding.tucker.true_tails import TrueTails
from kgkit.sorted_ids import match_sorted


@dataclass(frozen=True, kw_only=True)
class SharedBatch:
    """Triples and the candidates they share.

    Attributes:
        positives: (B, 3) head, relation, tail.
        candidates: (C,) entities, ascending.
        own: (B,) the column of each triple's tail.
        log_chance: (C,) log pi.
        true_pairs: (2, F) rows and columns of candidates that answer a row's question too.
    """

    positives: Tensor
    candidates: Tensor
    own: Tensor
    log_chance: Tensor
    true_pairs: Tensor

    def pin_memory(self) -> "SharedBatch":
        """Return the same batch in pinned memory."""
        return SharedBatch(**{name: value.pin_memory() for name, value in vars(self).items()})


class SharedBatches(IterableDataset[SharedBatch]):
    """One pass over triples in random order.

    The order of pass p and its negatives are drawn from a generator seeded
    with the seed and p, so any step of any pass can be made again.

    Args:
        triples: (T, 3), with inverses if they are to be trained.
        num_entities: N.
        batch_size: B; the last batch may be smaller.
        num_negatives: K.
        filtered: whether candidates known to be true are pointed out.
        grouped: one row for each (head, relation), with the first of its tails as its own.
        drop_last: whether to leave a smaller last batch out.
        seed: seed of the order and the negatives.
    """

    def __init__(
        self,
        triples: Tensor,
        *,
        num_entities: int,
        batch_size: int,
        num_negatives: int,
        filtered: bool = True,
        grouped: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        array = np.ascontiguousarray(triples.cpu().numpy())
        self._true_tails = TrueTails(array) if filtered or grouped else None
        if grouped:
            array = array[np.unique(array[:, :2], axis=0, return_index=True)[1]]
        self.triples = array
        self.num_entities, self.batch_size = num_entities, min(batch_size, len(array))
        self.num_negatives = min(num_negatives, num_entities)
        self.drop_last, self.seed = drop_last, seed
        self._tails = np.bincount(array[:, 2], minlength=num_entities)
        self._chances: dict[int, np.ndarray] = {}
        self.epoch, self.first = 0, 0  # the pass that comes next, and its first step

    def __len__(self) -> int:
        batches, remaining = divmod(len(self.triples), self.batch_size)
        return batches + bool(remaining and not self.drop_last)

    def __iter__(self) -> Iterator[SharedBatch]:
        generator = np.random.default_rng([self.seed, self.epoch])
        order = generator.permutation(len(self.triples))
        first, self.first = self.first, 0
        self.epoch += 1
        for step in range(first, len(self)):
            rows = order[step * self.batch_size : (step + 1) * self.batch_size]
            yield self.batch(self.triples[rows], np.random.default_rng([self.seed, self.epoch - 1, step]))

    def batch(self, positives: np.ndarray, generator: np.random.Generator) -> SharedBatch:
        """Return the batch of *positives* (B, 3) with negatives drawn from *generator*."""
        if self.num_negatives < self.num_entities:
            drawn = generator.choice(self.num_entities, self.num_negatives, replace=False, shuffle=False)
            candidates = np.union1d(drawn, positives[:, 2])
        else:
            candidates = np.arange(self.num_entities)
        own = np.searchsorted(candidates, positives[:, 2])
        true_pairs = np.empty((2, 0), np.int64)
        if self._true_tails is not None:
            rows, tails = self._true_tails.of(positives[:, 0], positives[:, 1])
            columns, is_candidate = match_sorted(candidates, tails)
            mask = is_candidate & (columns != own[rows])
            true_pairs = np.stack([rows[mask], columns[mask]])
        return SharedBatch(
            positives=torch.from_numpy(positives),
            candidates=torch.from_numpy(candidates),
            own=torch.from_numpy(own),
            log_chance=torch.from_numpy(self.log_chance(len(positives))[candidates]),
            true_pairs=torch.from_numpy(true_pairs),
        )

    def log_chance(self, batch_size: int) -> np.ndarray:
        """Return (N,) float32: log pi of each entity in batches of that size."""
        if batch_size not in self._chances:
            total, drawn = len(self.triples) - 1, batch_size - 1
            remaining = torch.from_numpy(total - self._tails).double()
            # log of C(left, others) / C(total, others); -inf where too few are left to miss the entity.
            missed = (_log_factorial(remaining) - _log_factorial((remaining - drawn).clamp(min=0))) - (
                _log_factorial(torch.tensor(float(total)))
                - _log_factorial(torch.tensor(float(total - drawn)))
            )
            missed = torch.where(remaining < drawn, -torch.inf, missed)
            absent = (
                missed + np.log1p(-self.num_negatives / self.num_entities)
                if (self.num_negatives < self.num_entities)
                else torch.full_like(missed, -torch.inf)
            )
            self._chances[batch_size] = torch.log(-torch.expm1(absent.clamp(max=0.0))).float().numpy()
        return self._chances[batch_size]


def _log_factorial(count: Tensor) -> Tensor:
    return torch.lgamma(count.double() + 1)
