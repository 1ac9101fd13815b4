"""Graphs small enough to check by eye, and models on them, for the tests of TuckER."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from pykeen.models import TuckER

import kgkit
from kgkit.building import Entity, Record, Triple
from kgkit.embedding.tucker.scoring import tables
from kgkit.embedding.tucker.training import new_model
from tests import small_kb

FAMILY = np.array([(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 4), (1, 1, 2), (3, 1, 4)])
"""Five people: `parent_of` (0) and `sibling_of` (1)."""


def ring(count: int, relations: int = 2) -> np.ndarray:
    """Return (T, 3): entity i leads by relation r to entity i + r + 1, round and round."""
    heads = np.repeat(np.arange(count), relations)
    names = np.tile(np.arange(relations), count)
    return np.stack([heads, names, (heads + names + 1) % count], axis=1)


def model(triples: np.ndarray = FAMILY) -> TuckER:
    """Return a model without dropout, whose entities are of some length."""
    made = new_model(triples, int(triples[:, [0, 2]].max()) + 1, int(triples[:, 1].max()) + 1, dim=6)
    for part in made.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    table = tables(made)[0]._embeddings
    table.weight.data.normal_()
    table.sparse = False
    return made


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
