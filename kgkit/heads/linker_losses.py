"""The losses of an entity linker: equations (4) and (5) of Peters et al. (2019), and one to a teacher.

B  sentences    M  mentions per sentence    C  candidates per mention
"""

import torch
from torch import Tensor
from torch.nn import functional


def softmax_losses(scores: Tensor, gold: Tensor) -> Tensor:
    """Return (4), the cross entropy, of each mention.

    -log Σ_g exp(ψ_g) / Σ_k exp(ψ_k), where g runs over the gold candidates.

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        gold: (B, M, C) bool.

    Returns:
        (B, M), 0 for a mention without gold among its candidates.
    """
    real = ~scores.isneginf()
    lowest = torch.finfo(scores.dtype).min  # finite: see `masked_softmax`
    every = scores.masked_fill(~real, lowest).logsumexp(-1)  # (B, M)
    right = scores.masked_fill(~(real & gold), lowest).logsumexp(-1)  # (B, M)
    return (every - right).masked_fill(~(real & gold).any(-1), 0.0)


def soft_losses(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of each mention to a teacher's probabilities of its candidates.

    -Σ_k t_k log softmax(ψ)_k: Hinton et al. (2015), "Distilling the Knowledge in a Neural Network".

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        targets: (B, M, C) t, 0 where there is no candidate.

    Returns:
        (B, M), 0 for a mention to whose candidates the teacher gives no probability.
    """
    real = ~scores.isneginf()
    lowest = torch.finfo(scores.dtype).min  # finite: see `masked_softmax`
    log_probabilities = scores.masked_fill(~real, lowest).log_softmax(-1)
    return -(targets.to(scores.dtype) * log_probabilities.masked_fill(~real, 0.0)).sum(-1)


def margin_losses(scores: Tensor, gold: Tensor, margin: float) -> Tensor:
    """Return (5), the max-margin loss, of each mention.

    Σ_g max(0, γ - ψ_g) + Σ_k max(0, γ + ψ_k), where g runs over the gold candidates and k over the others.

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        gold: (B, M, C) bool.
        margin: γ.

    Returns:
        (B, M), 0 for a mention without gold among its candidates.
    """
    real = ~scores.isneginf()
    finite = scores.masked_fill(~real, 0.0)
    missed = functional.relu(torch.where(gold, margin - finite, margin + finite))  # (B, M, C)
    return missed.masked_fill(~real, 0.0).sum(-1).masked_fill(~(real & gold).any(-1), 0.0)
