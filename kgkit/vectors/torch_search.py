"""Comparing queries with every row of a matrix by torch, where the rows lie on a GPU.

    Q  queries          R  rows of the matrix    N  of them vectors    D  width
    k  rows wanted      T  rows with the score of the last, or nearly

Promises, each with a test:

- Answers are those of comparing every row on the processor: the same rows, scores and order of equal ones.
  torch only proposes rows, more than are wanted; where rounding could have hidden a better one, every row
  within rounding of the last is looked at.
- Beside the rows themselves the device holds a bounded number of scores.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.types import Matrix, Numbers
from kgkit.vectors.scan import NearRows, lengths_of, rescore, unit, unit_blocks

if TYPE_CHECKING:
    import torch

_SCORES: Final = 1 << 26  # held at once: 256 MiB
_QUERIES: Final = 1024
_SPARE: Final = 32  # rows proposed beside those wanted, so that a second look is seldom needed
_FACTORS: Final = {"highest": 0.0, "high": 2.0**-9, "medium": 2.0**-6}
"""The most that TF32 and bfloat16 factors change a cosine by, twice, by torch's setting of precision."""


class TorchSearch:
    """The rows of a matrix on a device of torch's, at length 1, and the search in them.

    Args:
        matrix: (R, D) float32, rows of any length; rows of zeros are not copied.
        device: torch's name of the device.
    """

    def __init__(self, matrix: Matrix, device: str) -> None:
        import torch

        self.matrix = np.asarray(matrix)
        self._rows: Numbers = np.flatnonzero(lengths_of(self.matrix) > 0)  # (N,)
        self._units = torch.empty((len(self._rows), self.matrix.shape[1]), dtype=torch.float32, device=device)
        for count, block in unit_blocks(self.matrix, self._rows):
            self._units[count - len(block) : count] = torch.from_numpy(block)

    def search(self, queries: Matrix, k: int) -> NearRows:
        """Return the rows nearest to each query by cosine, as `kgkit.vectors.scan.scan` does.

        Args:
            queries: (Q, D) float32, finite, of any length; one of zeros finds nothing.
            k: number of neighbours, 1 or more.
        """
        import torch

        sought = unit(np.ascontiguousarray(queries, np.float32))
        parts = [NearRows(np.empty((0, k), np.float32), np.empty((0, k), np.int64))]
        with torch.inference_mode(), torch.autocast(self._units.device.type, enabled=False):
            parts += [self._search(sought[at : at + _QUERIES], k) for at in range(0, len(sought), _QUERIES)]
        return NearRows(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _search(self, sought: Matrix, k: int) -> NearRows:
        import torch

        many = min(k + _SPARE, len(self._rows))
        if not many:
            return rescore(self.matrix, sought, np.empty((len(sought), 0), np.int64), k)
        on_device = torch.from_numpy(sought).to(self._units.device)
        best = on_device.new_empty((len(sought), 0))
        positions = torch.empty_like(best, dtype=torch.int64)
        for at, scores in self._scores(on_device):
            values, where = scores.topk(min(many, scores.shape[1]))
            best, positions = torch.cat([best, values], dim=1), torch.cat([positions, where + at], dim=1)
            best, order = best.topk(min(many, best.shape[1]))
            positions = positions.gather(1, order)
        # The k-th of `best` is at most so much too high, another at most so much too low: none is below.
        rounding = _rounding(sought.shape[1])
        least = best[:, min(k, many) - 1] - 2 * rounding  # (Q,)
        count = int((best >= least[:, None]).sum(dim=1).max())
        some = sought.any(axis=1)
        rows = self._rows[positions[:, :count].cpu().numpy()]
        rows[~some] = -1
        result = rescore(self.matrix, sought, rows, k)
        if many < len(self._rows):
            perhaps_more = (best[:, -1] >= least).cpu().numpy() & some
            for each in np.flatnonzero(perhaps_more).tolist():
                one = slice(each, each + 1)
                near = [
                    (scores[0] >= least[each]).nonzero()[:, 0] + at
                    for at, scores in self._scores(on_device[one])
                ]
                rows = self._rows[torch.cat(near).cpu().numpy()][None]  # (1, T)
                result.scores[one], result.rows[one] = rescore(self.matrix, sought[one], rows, k)
        return result

    def _scores(self, on_device: "torch.Tensor") -> "Iterator[tuple[int, torch.Tensor]]":
        """Yield scores (Q, …) of the queries with some of the vectors, and the position of the first."""
        step = max(1, _SCORES // len(on_device))
        for at in range(0, len(self._units), step):
            yield at, on_device @ self._units[at : at + step].T


def _rounding(width: int) -> float:
    """Return a bound of how far a cosine by torch's product is from that by `rescore`."""
    import torch

    return (width + 8) * 2.0**-23 + _FACTORS[torch.get_float32_matmul_precision()]


def fits_device(matrix: Matrix, device: str) -> bool:
    """Say whether the rows of *matrix* take at most half of the memory that is free on a GPU."""
    import torch

    where = torch.device(device)
    return where.type != "cuda" or 2 * matrix.nbytes <= torch.cuda.mem_get_info(where)[0]
