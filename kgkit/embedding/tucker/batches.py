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

from kgkit.embedding.tucker.triples import TrueTails
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

    def to(self, device: torch.device) -> "SharedBatch":
        """Return the same batch on *device*."""
        return SharedBatch(**{name: value.to(device) for name, value in vars(self).items()})


class SharedBatches:
    """Passes over triples in random order, each in batches of one size; what is left over is not shown.

    Args:
        triples: (T, 3), with inverses.
        num_entities: N.
        batch_size: B; all triples if there are fewer.
        num_negatives: K.
        seed: seed of the order and the negatives.
    """

    def __init__(
        self, triples: np.ndarray, *, num_entities: int, batch_size: int, num_negatives: int, seed: int
    ) -> None:
        self.triples, self.num_entities, self.seed = triples, num_entities, seed
        self.batch_size = min(batch_size, len(triples))
        self.num_negatives = min(num_negatives, num_entities)
        self._true_tails = TrueTails(triples)
        self._log_chance = torch.from_numpy(self._log_chances())

    def __len__(self) -> int:
        return len(self.triples) // self.batch_size

    def epoch(self, number: int) -> Iterator[SharedBatch]:
        """Yield the batches of a pass, which its number decides."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.triples))
        for step in range(len(self)):
            rows = order[step * self.batch_size : (step + 1) * self.batch_size]
            yield self.batch(self.triples[rows], np.random.default_rng([self.seed, number, step]))

    def batch(self, positives: np.ndarray, generator: np.random.Generator) -> SharedBatch:
        """Return the batch of *positives* (B, 3) with negatives drawn from *generator*."""
        drawn = generator.choice(self.num_entities, self.num_negatives, replace=False, shuffle=False)
        candidates = np.union1d(drawn, positives[:, 2])
        own = np.searchsorted(candidates, positives[:, 2])
        rows, tails = self._true_tails.of(positives[:, 0], positives[:, 1])
        columns, is_candidate = match_sorted(candidates, tails)
        mask = is_candidate & (columns != own[rows])
        numbers = torch.from_numpy(candidates)
        return SharedBatch(
            positives=torch.from_numpy(positives),
            candidates=numbers,
            own=torch.from_numpy(own),
            log_chance=self._log_chance[numbers],
            true_pairs=torch.from_numpy(np.stack([rows[mask], columns[mask]])),
        )

    def _log_chances(self) -> np.ndarray:
        """Return (N,) float32: log pi of each entity."""
        total, drawn = len(self.triples) - 1, self.batch_size - 1
        remaining = torch.from_numpy(
            total - np.bincount(self.triples[:, 2], minlength=self.num_entities)
        ).double()
        # log of C(left, others) / C(total, others); -inf where too few are left to miss the entity.
        missed = (_log_factorial(remaining) - _log_factorial((remaining - drawn).clamp(min=0))) - (
            _log_factorial(torch.tensor(total)) - _log_factorial(torch.tensor(total - drawn))
        )
        missed = torch.where(remaining < drawn, -torch.inf, missed)
        with np.errstate(divide="ignore"):  # all entities are drawn: none is missed
            absent = missed + np.log1p(-self.num_negatives / self.num_entities)
        chance: np.ndarray = torch.log(-torch.expm1(absent.clamp(max=0.0))).float().numpy()
        return chance


def _log_factorial(count: Tensor) -> Tensor:
    return torch.lgamma(count.double() + 1)
