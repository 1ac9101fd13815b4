"""The vectors of mentions as trained linkers take them, of those that `SpanReader` makes.

M  mentions    W  numbers of all layers that are read    K · D  numbers of the first K layers
"""

import msgspec
import numpy as np

from kgkit.inputs import SpanConfig
from kgkit.models.kinds import LinkerManifest
from kgkit.types import Matrix
from kgkit.vectors.scan import unit


def span_config(manifest: LinkerManifest) -> SpanConfig:
    """Return how the model's mentions are read.

    Raises:
        ValueError: if a setting is of another type, as msgspec says.
        UsageError: if one is out of range.
    """
    return msgspec.convert(manifest.reader, SpanConfig)


def parts_of(vectors: Matrix, layers: int) -> Matrix:
    """Return (M, W) with each layer's part at length 1."""
    result: Matrix = unit(vectors.reshape(-1, vectors.shape[1] // layers)).reshape(vectors.shape)
    return result


def hidden_of(vectors: Matrix, layers: int) -> Matrix:
    """Return vectors of mentions (M, W) as the head takes them: each layer with a mean square of 1."""
    parts = parts_of(vectors, layers)
    return parts * np.float32(np.sqrt(vectors.shape[1] // layers))


def queries(vectors: Matrix, layers: int, mean: Matrix) -> Matrix:
    """Return q of mentions, (M, K · D), of vectors of all *layers* that are read; *mean* is of K of them."""
    return unit(unit(parts_of(vectors, layers)[:, : len(mean)]) - mean)


def mention_vector_of(query: Matrix, mean: Matrix) -> Matrix:
    """Return ⟨v⟩ of a mention, (K · D,), of its q = ⟨⟨v⟩ − μ⟩: where the ray from μ has come to length 1."""
    along = float(query @ mean)
    length = np.float32(max(0.0, along * along + 1 - float(mean @ mean)) ** 0.5 - along)
    result: Matrix = query * length + mean
    return result
