"""KnowBert's entity linker as it is asked: `kgkit.heads.entity_linker`, equations (1) to (3), in NumPy.

    B  sentences    M  mentions of one         m  mentions of all      E  width in which both meet
    R  candidates of all mentions              F  features of one      W, D  widths as read and stored

Mentions have one vector each, so that pooling leaves it as it is.
"""

import math
from pathlib import Path
from typing import Final

import numpy as np

from kgkit.heads.arrays import Shapes, gelu, linear, linear_shapes, norm, norm_shapes, read_arrays, softmax
from kgkit.heads.settings import EntityLinkerConfig, read_settings
from kgkit.types import Matrix, Numbers

KIND: Final = "knowbert-linker"


class LinkerNetwork:
    """Scores candidates of mentions.

    Args:
        config: settings of the head.
        weights: parameters of the head, by name.
    """

    def __init__(self, config: EntityLinkerConfig, weights: dict[str, Matrix]) -> None:
        self.config, self._weights = config, weights

    @classmethod
    def load(cls, folder: Path) -> "LinkerNetwork":
        """Return the head in *folder*.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head.
        """
        config = read_settings(folder, KIND, EntityLinkerConfig)
        return cls(config, read_arrays(folder, _shapes(config)))

    def entities(self, vectors: Matrix) -> Matrix:
        """Return (R, E) for stored vectors (R, D)."""
        projected = (
            vectors if self.config.stored is None else linear(self._weights, "entities.project", vectors)
        )
        return norm(self._weights, "entities.norm", projected)

    def mentions(self, hidden: Matrix, where: tuple[Numbers, Numbers]) -> Matrix:
        """Return (m, E) for vectors of mentions (m, W), which attend to those of their sentence.

        Args:
            hidden: vectors.
            where: (m,) sentence of each, and (m,) its index there.
        """
        spans = norm(self._weights, "norm", linear(self._weights, "project", hidden))
        return self._attended(spans, where) if self.config.attention else spans

    def scores(self, mentions: Matrix, entities: Matrix, features: Matrix) -> Matrix:
        """Return ψ (R,), of candidates with features (R, F), for their mentions and entities (R, E)."""
        fit = np.einsum("re,re->r", mentions, entities) / np.float32(math.sqrt(self.config.width))
        pair = np.concatenate([fit[:, None], features.astype(np.float32)], axis=1)  # (R, 1 + F)
        inner = np.maximum(linear(self._weights, "score.up", pair), 0)
        return linear(self._weights, "score.down", inner)[:, 0]

    def _attended(self, spans: Matrix, where: tuple[Numbers, Numbers]) -> Matrix:
        heads, width = self.config.heads, self.config.width
        shape = int(where[0].max(initial=-1)) + 1, int(where[1].max(initial=-1)) + 1
        real = np.zeros(shape, np.bool_)
        real[where] = True

        def split(name: str) -> Matrix:
            """Return (B, h, M, e), zeros where there is no mention."""
            filled = np.zeros((*shape, width), np.float32)
            filled[where] = linear(self._weights, f"block.{name}", spans)
            return filled.reshape(*shape, heads, width // heads).transpose(0, 2, 1, 3)

        query, key, value = map(split, ("query", "key", "value"))
        logits = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(width // heads))  # (B, h, M, M)
        shares = softmax(np.where(real[:, None, None, :], logits, np.finfo(np.float32).min))
        read = (shares @ value).transpose(0, 2, 1, 3).reshape(*shape, width)[where]  # (m, E)
        spans = norm(self._weights, "block.out_norm", spans + linear(self._weights, "block.out", read))
        inner = gelu(linear(self._weights, "block.up", spans))
        return norm(self._weights, "block.down_norm", spans + linear(self._weights, "block.down", inner))


def _shapes(config: EntityLinkerConfig) -> Shapes:
    width = config.width
    shapes = {
        **linear_shapes("project", width, config.hidden), **norm_shapes("norm", width),
        **linear_shapes("pool.attend", 1, width), **norm_shapes("entities.norm", width),
        **linear_shapes("score.up", config.scorer, 1 + config.features),
        **linear_shapes("score.down", 1, config.scorer),
    }  # fmt: skip
    if config.stored is not None:
        shapes |= linear_shapes("entities.project", width, config.stored)
    if config.attention:
        for name in ("query", "key", "value", "out"):
            shapes |= linear_shapes(f"block.{name}", width, width)
        shapes |= {
            **linear_shapes("block.up", config.inner, width),
            **linear_shapes("block.down", width, config.inner),
            **norm_shapes("block.out_norm", width), **norm_shapes("block.down_norm", width),
        }  # fmt: skip
    if config.null or config.threshold is not None:
        shapes["null"] = (width,)
    if config.mask:
        shapes["mask"] = (width,)
    return shapes
