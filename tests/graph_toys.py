"""Graphs small enough to check by eye, and models on them, for the tests of TuckER."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pykeen.models import TuckER
from pykeen.triples import CoreTriplesFactory

import kgkit
from kgkit.building import Entity, Record, Triple
from kgkit.embedding.tucker.method import both_ways
from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop
from tests import small_kb

FAMILY = [(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 4), (1, 1, 2), (3, 1, 4)]
"""Five people: `parent_of` (0) and `sibling_of` (1)."""


def ring(count: int, relations: int = 2) -> np.ndarray:
    """Return (T, 3): entity i leads by relation r to entity i + r + 1, round and round."""
    heads = np.repeat(np.arange(count), relations)
    names = np.tile(np.arange(relations), count)
    return np.stack([heads, names, (heads + names + 1) % count], axis=1)


def factory(triples: object, *, entities: int | None = None, inverse: bool = True) -> CoreTriplesFactory:
    """Return *triples* as PyKEEN takes them."""
    rows = np.asarray(triples)
    return CoreTriplesFactory(
        torch.as_tensor(rows),
        num_entities=entities or int(rows[:, [0, 2]].max()) + 1,
        num_relations=int(rows[:, 1].max()) + 1,
        create_inverse_triples=inverse,
    )


def model(
    triples: object = FAMILY, *, dim: int = 6, loss: str = "crossentropy", **settings: object
) -> TuckER:
    """Return a model without dropout, unless *settings* say so."""
    quiet: dict[str, Any] = dict.fromkeys(("dropout_0", "dropout_1", "dropout_2"), 0.0)
    return TuckER(
        triples_factory=factory(triples),
        embedding_dim=dim,
        relation_dim=4,
        random_seed=0,
        loss=loss,
        **{**quiet, **settings},
    )


def loop(
    made: TuckER, triples: object = FAMILY, optimizer: Any = "Adam", **settings: Any
) -> SharedNegativesTrainingLoop:
    """Return the loop that trains *made*."""
    return SharedNegativesTrainingLoop(
        model=made,
        triples_factory=factory(triples),
        optimizer=optimizer,
        automatic_memory_optimization=False,
        **{"num_negatives": 3, "seed": 0, **settings},
    )


def ring_kb(folder: Path, count: int, relations: int = 2, more: Sequence[Record] = ()) -> kgkit.KnowledgeBase:
    """Build and open a knowledge base of a ring; *more* records come after its entities."""
    names = [f"r{number}" for number in range(relations)]
    records = [
        *(Entity(f"e{number}") for number in range(count)),
        *more,
        *(
            Triple(f"e{head}", names[name], f"e{tail}")
            for head, name, tail in ring(count, relations).tolist()
        ),
    ]
    return small_kb.build(folder, records)


def rows_of(triples: object) -> np.ndarray:
    """Return triples and inverses, as the loop numbers them."""
    return both_ways(np.asarray(triples))
