"""Comparing many queries at once with every vector on a GPU, where faiss-gpu and one are there.

A GPU compares all vectors sooner than a processor searches a graph of them, so what is in its memory is the
vectors at length 1, whatever kind the index is, and nothing is missed. Copying them there takes seconds: it
is done when a batch of queries comes, and single queries before that stay on the processor.
"""

import logging
import os
import threading
from typing import Any, Final

import numpy as np

from kgkit.types import Matrix, Numbers
from kgkit.vectors.kinds import faiss_module, has_gpu_package
from kgkit.vectors.scan import lengths_of, unit

MANY: Final = 64  # queries that are worth it
_MOST: Final = 2048  # rows that faiss selects on a GPU

_BLOCK: Final = 1 << 16  # rows that are copied at once

_log = logging.getLogger(__name__)


class OnGPU:
    """The vectors of one matrix on the first GPU, if there is one and they fit.

    Safe from several threads, which take turns. A forked child does without: CUDA cannot be used there.

    Args:
        matrix: (R, D).
    """

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._index: Any = None
        self._rows: Numbers = np.empty(0, np.int64)
        self._absent = not has_gpu_package()
        self._lock, self._pid = threading.Lock(), os.getpid()

    def propose(self, sought: Matrix, many: int) -> Numbers | None:
        """Return (Q, C) rows, the nearest to each query, -1 where there is none; None if it is not for a GPU.

        Args:
            sought: (Q, D) of length 1.
            many: number C of candidates.
        """
        if self._absent or many > _MOST or os.getpid() != self._pid:
            return None
        with self._lock:
            if self._index is None:
                if len(sought) < MANY:
                    return None
                self._index = self._fill()
                if self._index is None:
                    self._absent = True
                    return None
            positions: Numbers = self._index.search(sought, many)[1]
        return np.where(positions < 0, -1, self._rows[positions])

    def _fill(self) -> Any:
        """Return faiss's index on the GPU, None if there is no GPU or it is too small."""
        faiss, matrix = faiss_module(), np.asarray(self._matrix)
        self._rows = np.flatnonzero(lengths_of(matrix) > 0)
        if not len(self._rows) or not getattr(faiss, "get_num_gpus", int)():
            return None
        try:
            index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), matrix.shape[1])
            for at in range(0, len(self._rows), _BLOCK):
                index.add(unit(matrix.take(self._rows[at : at + _BLOCK], axis=0)))
        except RuntimeError as error:  # as a rule: its memory is full
            _log.warning("the GPU is not used: %s", str(error).strip().partition("\n")[0])
            return None
        return index
