"""Several vectors of one KB side by side, as KnowBert joins TuckER's with those of the glosses.

Peters et al. (2019), 4.1, join the vector of a synset in the graph with that of its gloss. What brings the
joined row to one width is learnt with the head that takes it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import Progress
from kgkit.vectors import Vectors, Work

_BLOCK: Final = 16_384  # rows


@dataclass(frozen=True, kw_only=True)
class ConcatConfig:
    """Settings of `embed_concat`."""

    parts: tuple[str, ...]  # names of vectors of the KB, in the order of the columns
    name: str = "concat"

    def __post_init__(self) -> None:
        last = [part.rpartition("/")[2] for part in self.parts]  # NAME of KB/NAME
        if len(last) < 2 or len(set(last)) < len(last):
            raise UsageError(
                f"vectors to put side by side: {', '.join(self.parts) or 'none'}; at least two, each once"
            )
        if self.name in last:
            raise UsageError(f"{self.name!r} cannot be part of itself: give the new vectors another name")


def embed_concat(kb: KnowledgeBase, config: ConcatConfig, *, progress: Progress | None = None) -> Vectors:
    """Publish the rows of several vectors side by side.

    An entity has a row if all parts have a vector of it. The matrix ends where the shortest part does.

    Args:
        kb: knowledge base whose vectors are joined.
        config: settings: which vectors are joined.
        progress: callback that is told (rows done, of how many).

    Raises:
        NotThere, StaleVectors, DamagedVectors: as `kb.vectors` does.
        UsageError: if no entity has a row.
    """
    parts = [kb.vectors(part) for part in config.parts]
    settings = {"parts": [{"name": part.manifest.name, "version": part.manifest.version} for part in parts]}
    rows, width = min(map(len, parts)), sum(part.width for part in parts)
    with Work(kb, config.name, settings, resume=False) as work:
        matrix = work.matrix(rows, width)
        for begin in range(0, rows, _BLOCK):
            end = min(begin + _BLOCK, rows)
            blocks = [part.gather(np.arange(begin, end)) for part in parts]
            covered = np.stack([block.any(axis=1) for block in blocks], axis=1)  # (N, P)
            matrix[begin:end] = np.concatenate(blocks, axis=1) * covered.all(axis=1, keepdims=True)
            if progress is not None:
                progress("joining", end, rows)
        if not matrix.any():
            raise UsageError(f"no entity of {kb.name!r} has a vector in {' and '.join(config.parts)}")
        return work.publish("concat")
