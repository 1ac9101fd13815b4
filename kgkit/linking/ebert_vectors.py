"""What the manifest of an E-BERT says of the vectors that it reads, and these vectors from the manifest."""

import hashlib
from typing import TYPE_CHECKING, Any

from kgkit.inputs.entity_vectors import (
    RandomEntityVectors,
    RescaledEntityVectors,
    StoredEntityVectors,
    choose_entity_vectors,
)

if TYPE_CHECKING:
    from kgkit.heads.ebert import EBert
    from kgkit.inputs.knowledge import Knowledge
    from kgkit.models.kinds import EBertManifest


def vectors_fields(ebert: "EBert", vectors: StoredEntityVectors | None) -> dict[str, Any]:
    """Return the fields of a manifest that tell of vectors and their map.

    Args:
        ebert: head.
        vectors: vectors that it reads; None: it reads none.
    """
    random = vectors if isinstance(vectors, RandomEntityVectors) else None
    weight = None if ebert.weight is None else ebert.weight.cpu().numpy().tobytes()
    return {
        "alignment": "" if weight is None else hashlib.blake2b(weight, digest_size=8).hexdigest(),
        "norm": vectors.norm if isinstance(vectors, RescaledEntityVectors) else 0.0,
        "random_norm": 0.0 if random is None else random.norm,
        "random_seed": 0 if random is None else random.seed,
    }


def vectors_of(manifest: "EBertManifest", knowledge: "Knowledge", ebert: "EBert") -> StoredEntityVectors:
    """Return the vectors that a trained model reads.

    Args:
        manifest: of the model.
        knowledge: its knowledge base, with its vectors as they are stored.
        ebert: its head.
    """
    [vectors] = knowledge.vectors
    return choose_entity_vectors(
        vectors,
        width=ebert.config.width,
        weight=None if ebert.weight is None else ebert.weight.cpu().numpy(),
        norm=manifest.norm,
        random_norm=manifest.random_norm,
        random_seed=manifest.random_seed,
    )


def vectors_names(manifest: "EBertManifest") -> list[str]:
    """Return the names that a model's vectors have in their knowledge base."""
    return [path.rpartition("/")[2] for path in manifest.needs.vectors]
