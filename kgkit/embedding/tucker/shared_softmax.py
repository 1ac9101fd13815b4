"""The sampled softmax of a batch that shares its candidates, and its gradient, in one pass each.

    B  triples    C  candidates    D  width    F  known tails among the candidates

Autograd would keep and copy several matrices (B, C); here there is one, which holds scores, then
probabilities, then what flows back. `plain_softmax` is the same in the obvious way.
"""

from typing import Any

import torch
from torch import Tensor


def plain_softmax(
    scores: Tensor, own: Tensor, true_pairs: Tensor, log_chance: Tensor, smoothing: float
) -> Tensor:
    """Return the loss of scores that have been computed.

    Args:
        scores: (B, C).
        own: (B,) the column of the true tail.
        true_pairs: (2, F) rows and columns that count for nothing.
        log_chance: (C,) of each candidate; its column is weighed by its inverse, but for the own tail.
        smoothing: share of the target that is spread evenly over what counts.

    Returns:
        The mean over rows.
    """
    rows = torch.arange(len(scores), device=scores.device)
    true = scores[rows, own]  # (B,)
    shifted = scores - log_chance  # (B, C)
    shifted[true_pairs[0], true_pairs[1]] = -torch.inf
    shifted[rows, own] = true
    partition = torch.logsumexp(shifted, dim=1)  # (B,)
    loss = (partition - true).mean()
    if smoothing:
        counted = torch.exp(-log_chance).repeat(len(scores), 1)  # (B, C)
        counted[true_pairs[0], true_pairs[1]] = 0.0
        counted[rows, own] = 1.0
        even = partition - (scores * counted).sum(1) / counted.sum(1)
        loss = (1 - smoothing) * loss + smoothing * even.mean()
    return loss


def shared_softmax(
    query: Tensor, tails: Tensor, own: Tensor, true_pairs: Tensor, log_chance: Tensor, *, half: bool = False
) -> Tensor:
    """Return `plain_softmax(query @ tails.T, …)` without smoothing.

    Args:
        query: (B, D).
        tails: (C, D).
        own: (B,).
        true_pairs: (2, F).
        log_chance: (C,).
        half: whether to multiply matrices in bfloat16; sums and everything else stay in float32.
    """
    loss: Tensor = _SharedSoftmax.apply(query, tails, own, true_pairs, log_chance, half)  # type: ignore[no-untyped-call]
    return loss


class _SharedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        tails: Tensor,
        own: Tensor,
        true_pairs: Tensor,
        log_chance: Tensor,
        half: bool,
    ) -> Tensor:
        """Return the mean loss; arguments as in `shared_softmax`. Keeps scores (B, C) for `backward`."""
        query, tails = (query.bfloat16(), tails.bfloat16()) if half else (query, tails)
        scores = (query @ tails.T).float()  # (B, C)
        rows = torch.arange(len(scores), device=scores.device)
        true = scores[rows, own]  # (B,)
        scores -= log_chance
        scores[true_pairs[0], true_pairs[1]] = -torch.inf
        scores[rows, own] = true
        highest = scores.amax(1, keepdim=True)
        scores.sub_(highest).exp_()
        total = scores.sum(1, keepdim=True)  # (B, 1)
        loss = (total.log() + highest).squeeze(1).sub_(true).mean()
        ctx.save_for_backward(query, tails, own, scores, total)
        return loss

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        """Return the gradients of queries (B, D) and tails (C, D); the other arguments have none."""
        query, tails, own, scores, total = ctx.saved_tensors
        rows = torch.arange(len(scores), device=scores.device)
        # d loss / d score = probability - 1 for the own tail, probability for others.
        flow = scores.mul_(slopes[0] / (len(scores) * total))  # (B, C)
        flow[rows, own] -= slopes[0] / len(scores)
        flow = flow.to(query.dtype)
        return (flow @ tails).float(), (flow.T @ query).float(), None, None, None, None
