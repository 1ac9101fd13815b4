"""What the manifest of an E-BERT says of the vectors that it reads, and these vectors from the manifest."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.inputs.entity_vectors import RescaledEntityVectors, StoredEntityVectors, choose_entity_vectors
from kgkit.models.manifest import damaged

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
    weight = None if ebert.weight is None else ebert.weight.cpu().numpy().tobytes()
    return {
        "alignment": "" if weight is None else hashlib.blake2b(weight, digest_size=8).hexdigest(),
        "norm": vectors.norm if isinstance(vectors, RescaledEntityVectors) else 0.0,
    }


def vectors_of(
    folder: Path, manifest: "EBertManifest", knowledge: "Knowledge", ebert: "EBert"
) -> StoredEntityVectors:
    """Return the vectors that a trained model reads.

    Args:
        folder: folder of the model.
        manifest: of the model.
        knowledge: its knowledge base, with its vectors as they are stored.
        ebert: its head.

    Raises:
        DamagedModel: if the model reads vectors without a map, as some of version 0.2.0.
    """
    [vectors] = knowledge.vectors
    if ebert.weight is None:
        raise damaged(folder, "it reads random vectors, or vectors without a map, as no model does any more")
    return choose_entity_vectors(vectors, ebert.weight.cpu().numpy(), manifest.norm)


def vectors_names(manifest: "EBertManifest") -> list[str]:
    """Return the names that a model's vectors have in their knowledge base."""
    return [path.rpartition("/")[2] for path in manifest.needs.vectors]
