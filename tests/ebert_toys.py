"""A knowledge base for the tests of E-BERT: names, of which only the descriptions say what they are."""

import numpy as np

from kgkit.embedding.align import Alignment, Check, Report
from kgkit.embedding.align.alignment import fingerprint_of
from kgkit.types import Alias, Entity

NAMES = [f"name{number}" for number in range(30)]
KINDS = dict(zip(NAMES, ["dog barks", "tree grows"] * 15, strict=True))
RECORDS = [
    Entity("dog.n.01", "dog", "the dog barks"),
    *(Entity(name, kind, f"it is a {kind}") for name, kind in KINDS.items()),
    *(Alias(name, name) for name in NAMES),
]


def save_map(vectors, encoder, weight=None, norm=None):
    """Save a map of vectors into the space of an encoder, as `kgkit align` does; one that changes nothing."""
    if weight is None:
        weight = np.eye(vectors.width, dtype=np.float32)
    check = Check(anchors=1, accuracy={}, error=0.0)
    report = Report(anchors=1, rank=1, candidates=1, train=check, held_out=None)
    alignment = Alignment(
        weight, source=vectors.name, target=encoder.name, fingerprint=fingerprint_of(encoder), report=report,
        norm=norm,
    )  # fmt: skip
    alignment.save(vectors)
    return alignment
