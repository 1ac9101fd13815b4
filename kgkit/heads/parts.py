"""What several heads are made of: masked softmax, a transformer's layer, first weights, checks of shapes.

A mask is True where there is something. No head itself.
"""

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Inputs = TypeVar("Inputs", bound=NamedTuple)


def to_device(inputs: Inputs, device: torch.device) -> Inputs:
    """Return a named tuple of tensors, and of None, on *device*."""
    moved = {name: tensor.to(device) for name, tensor in inputs._asdict().items() if tensor is not None}
    return inputs._replace(**moved)


def masked_softmax(scores: Tensor, real: Tensor) -> Tensor:
    """Return the softmax over the last dimension, of what is real; zeros, not NaN, where nothing is.

    Args:
        scores: (..., K).
        real: (..., K) bool.
    """
    lowest = torch.finfo(scores.dtype).min  # finite: a row of -inf has a gradient of NaN
    weights = torch.softmax(scores.masked_fill(~real, lowest), dim=-1)
    return weights.masked_fill(~real, 0.0)


@torch.no_grad()
def draw_weights(module: nn.Module, generator: torch.Generator | None) -> None:
    """Draw the first weights of linear layers as BERT does; trained vectors of entities begin as zeros."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.weight.normal_(std=0.02, generator=generator)
            part.bias.zero_()
        elif isinstance(part, nn.Embedding):
            part.weight.zero_()


class EncoderLayers(NamedTuple):
    """What an encoder computes a text by, from the bottom up.

    Attributes:
        embeddings: module of the embeddings.
        layers: its layers.
    """

    embeddings: nn.Module
    layers: list[nn.Module]


def layers_of(model: "PreTrainedModel") -> EncoderLayers:
    """Return the embeddings of an encoder, and its layers.

    Raises:
        UsageError: if its layers cannot be told apart.
    """
    encoder, depth = model.base_model, int(model.config.num_hidden_layers)
    stacks = [part for part in encoder.modules() if isinstance(part, nn.ModuleList) and len(part) == depth]
    embeddings = getattr(encoder, "embeddings", None)
    if not stacks or embeddings is None:
        raise UsageError(f"{type(model).__name__} has no {depth} layers of its own to stand between")
    return EncoderLayers(embeddings, [*stacks[0]])


class TransformerBlock(nn.Module):
    """One layer of a transformer, as BERT has it, in which some vectors attend to others, or to themselves.

    Q  vectors that attend    K  vectors that are attended to    h  heads    e = E / h

    Args:
        width: E.
        heads: h.
        inner: hidden width of the feed-forward network.
        dropout: dropout of attention weights, and of both sums.
    """

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.out_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.down_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, context: Tensor, real: Tensor) -> Tensor:
        """Return the states after they attended to the context.

        Args:
            states: (B, Q, E).
            context: (B, K, E).
            real: (B, K) bool, vectors of the context that may be attended to; where none may,
                attention adds zeros.

        Returns:
            (B, Q, E).
        """
        query = self._split(self.query(states))  # (B, h, Q, e)
        key = self._split(self.key(context))  # (B, h, K, e)
        value = self._split(self.value(context))  # (B, h, K, e)
        logits = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])  # (B, h, Q, K)
        weights = masked_softmax(logits, real[:, None, None, :].expand(logits.shape))
        read = torch.matmul(self.dropout(weights).to(value.dtype), value)  # (B, h, Q, e)
        read = read.transpose(1, 2).flatten(2)  # (B, Q, E)
        attended: Tensor = self.out_norm(states + self.dropout(self.out(read)))  # (B, Q, E)
        inner = functional.gelu(self.up(attended))
        result: Tensor = self.down_norm(attended + self.dropout(self.down(inner)))  # (B, Q, E)
        return result

    def _split(self, states: Tensor) -> Tensor:
        """Return (B, h, Q, e) for states (B, Q, E)."""
        split: Tensor = states.reshape(*states.shape[:2], self.heads, states.shape[-1] // self.heads)
        return split.transpose(1, 2)
