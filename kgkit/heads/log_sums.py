"""Sums of exponentials over large vocabularies, without the logits.

N  rows    E  width of a vector    W  words
"""

from typing import Any, Final

import torch
from torch import Tensor

_LOGITS: Final = (2_000_000, 200_000_000)  # that are computed at a time: on a CPU, elsewhere


class LogSumExp(torch.autograd.Function):
    """log Σ_v exp(W_v · x + b_v) of rows x, which keeps no logits: the gradient computes them again.

    Some rows at a time, whose logits fit into a cache of a CPU.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        """Return (N,), of vectors (N, E), weights (W, E) and bias (W,)."""
        sums = vectors.new_empty(len(vectors))
        for part in _parts(vectors, weights):
            sums[part] = torch.addmm(bias, vectors[part], weights.T).logsumexp(-1)
        ctx.save_for_backward(vectors, weights, bias, sums)
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the three, for that (N,) of the sums."""
        vectors, weights, bias, sums = ctx.saved_tensors
        of_vectors, of_weights = torch.empty_like(vectors), torch.zeros_like(weights)
        of_bias = torch.zeros_like(bias)
        for part in _parts(vectors, weights):
            shares = torch.addmm(bias, vectors[part], weights.T).sub_(sums[part, None]).exp_()
            shares.mul_(gradients[0][part, None])
            of_vectors[part] = shares @ weights
            of_weights.addmm_(shares.T, vectors[part])
            of_bias += shares.sum(0)
        return of_vectors, of_weights, of_bias


def _parts(vectors: Tensor, weights: Tensor) -> list[slice]:
    """Return slices of rows, such that so many logits are computed at a time as the device computes well."""
    size = max(1, _LOGITS[vectors.device.type != "cpu"] // max(1, len(weights)))
    return [slice(begin, begin + size) for begin in range(0, len(vectors), size)]
