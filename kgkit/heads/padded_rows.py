"""Rows of vectors whose ends are padding: masks of dropout, means of squares, the other order.

B  rows    T  vectors of one, padding among them
"""

import torch
from torch import Tensor
from torch.nn import functional


def locked_mask(like: Tensor, share: float, training: bool) -> Tensor:
    """Return a mask of the shape of *like*, (B, 1, width), which is the same for all words of a row."""
    return functional.dropout(torch.ones_like(like), share, training)


def mean_square(states: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the mean of the squares of states (B, T, ·) that are not padding."""
    squares = states.pow(2)
    if lengths is None:
        return squares.mean()
    return squares[torch.arange(states.shape[1], device=states.device) < lengths[:, None]].mean()


def turn_rows(vectors: Tensor, lengths: Tensor | None) -> Tensor:
    """Return rows (B, T, ·) with their words in the other order; what is padded stays behind."""
    if lengths is None:
        return vectors.flip(1)
    positions = torch.arange(vectors.shape[1], device=vectors.device)
    turned = lengths[:, None] - 1 - positions  # (B, T)
    turned = torch.where(turned >= 0, turned, positions)
    return vectors.gather(1, turned[..., None].expand_as(vectors))
