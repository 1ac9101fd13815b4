"""Sums of exponentials over large vocabularies, without the logits.

N  rows    E  width of a vector    V  words    J  vocabularies, each with some of the words
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

_LOGITS: Final = (2_000_000, 200_000_000)  # that are computed at a time: on a CPU, elsewhere


class WordRows(NamedTuple):
    """Words that are summed over, and the rows that ask for the sum.

    Attributes:
        rows: numbers of rows, each once.
        words: numbers of words, each once.
    """

    rows: slice | Tensor
    words: slice | Tensor


ALL: Final = WordRows(slice(None), slice(None))
"""All words, for all rows."""


class LogSumExp(torch.autograd.Function):
    """log Σ_{v ∈ V_j} exp(W_v · x + b_v) of rows x, which keeps no logits: the gradient computes them again.

    Some rows at a time, whose logits fit into a cache of a CPU. All vocabularies share one gradient of W.

    Examples:
        >>> [sums] = LogSumExp.apply(vectors, weights, bias, [ALL])
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weights: Tensor, bias: Tensor, vocabularies: Sequence[WordRows]
    ) -> tuple[Tensor, ...]:
        """Return the sums (N_j,) of each vocabulary, for vectors (N, E), weights (V, E) and bias (V,)."""
        results = []
        ctx.set_materialize_grads(False)
        for rows, words in vocabularies:
            chosen, table, shift = vectors[rows], weights[words], bias[words]
            sums = vectors.new_empty(len(chosen))
            for part in _parts(chosen, table):
                sums[part] = torch.addmm(shift, chosen[part], table.T).logsumexp(-1)
            results.append(sums)
        ctx.vocabularies = vocabularies
        ctx.save_for_backward(vectors, weights, bias, *results)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, Tensor, None]:
        """Return the gradients of vectors, weights and bias, for those of the sums."""
        vectors, weights, bias, *results = ctx.saved_tensors
        of_vectors, of_weights, of_bias = map(torch.zeros_like, (vectors, weights, bias))
        for (rows, words), sums, gradient in zip(ctx.vocabularies, results, gradients, strict=True):
            if gradient is None or not len(sums):
                continue
            chosen, table, shift = vectors[rows], weights[words], bias[words]
            of_chosen, of_table, of_shift = map(torch.zeros_like, (chosen, table, shift))
            for part in _parts(chosen, table):
                shares = torch.addmm(shift, chosen[part], table.T).sub_(sums[part, None]).exp_()
                shares.mul_(gradient[part, None])
                of_chosen[part] = shares @ table
                of_table.addmm_(shares.T, chosen[part])
                of_shift += shares.sum(0)
            of_vectors[rows] += of_chosen
            of_weights[words] += of_table
            of_bias[words] += of_shift
        return of_vectors, of_weights, of_bias, None


def _parts(vectors: Tensor, weights: Tensor) -> list[slice]:
    """Return slices of rows, such that so many logits are computed at a time as the device computes well."""
    size = max(1, _LOGITS[vectors.device.type != "cpu"] // max(1, len(weights)))
    return [slice(begin, begin + size) for begin in range(0, len(vectors), size)]
