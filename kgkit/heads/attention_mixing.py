"""Attention that is mixed with maps: what KAM-BERT computes between the code of an encoder's layers.

    B  texts read at once    M  word pieces of one, auxiliary ones included    m  attention heads    k  maps
    d  width of a head       H  encoder width                                  T  auxiliary word pieces

Equations, kernels and departures: `kgkit.heads.kambert`. A call of the head goes to the layers of its encoder
as an argument (`CALL`), so that calls in several threads know nothing of each other. Layers compute in their
order, and each leaves its logits for the next.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.ranges import check_range

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ATTENTION: Final = "kgkit_maps"
"""The name that `mixed_attention` is registered under, with `whole_mask`."""

CALL: Final = "attention_maps"
"""The argument of the encoder that carries a call to its layers."""

Kernel = Literal["3", "1", "none"]


@dataclass(frozen=True, kw_only=True)
class KamBertConfig:
    """Settings of `KamBert`.

    Attributes:
        layers: number of the encoder's layers.
        heads: m.
        maps: names of the maps, in the order of their tensor.
        kernel: how maps and attention are mixed: `3`, `1` or `none`.
        alpha: α, share of what is mixed.
        skip: whether the result of a layer is added to the logits of the next one; not with the kernel `1`.
        init: what the weights begin as: the `identity`, or `random`.
        plain: whether the encoder reads without any of this, as a control.
        model: class of transformers that the encoder was saved as.
    """

    layers: int
    heads: int
    maps: tuple[str, ...] = ()
    kernel: Kernel = "3"
    alpha: float = 0.2
    skip: bool = True
    init: Literal["identity", "random"] = "identity"
    plain: bool = False
    model: str = "AutoModel"

    def __post_init__(self) -> None:
        check_range(self, "layers", "heads", least=1)
        check_range(self, "alpha", least=0, most=1)

    @property
    def has_skip(self) -> bool:
        """Whether the result of a layer is added to the logits of the next one."""
        return self.skip and self.kernel != "1"

    @classmethod
    def of(cls, model: "PreTrainedModel", **settings: Any) -> "KamBertConfig":
        """Return settings for an encoder, whose layers and heads are counted."""
        config = model.config
        return cls(layers=config.num_hidden_layers, heads=config.num_attention_heads, **settings)


class AttentionMixing(nn.Module):
    """What KAM-BERT learns beside its encoder: a kernel for each layer, and the weights of skip connections.

    Args:
        config: settings.
        generator: generator of random weights.

    Attributes:
        weight: (layers, m, m + k, 3, 3) of the kernel `3`; (layers, m, k) of `1`; None of `none`.
        gamma: (layers - 1,) γ; None without skip connections.
    """

    weight: nn.Parameter | None
    gamma: nn.Parameter | None
    identity: Tensor

    def __init__(self, config: KamBertConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        heads, maps = config.heads, len(config.maps)
        shapes = {"3": (heads, heads + maps, 3, 3), "1": (heads, maps)}
        self.weight, self.gamma = None, None
        if config.plain:
            return
        if config.kernel == "3":  # (m, m + k, 3, 3), which leaves attention as it is
            identity = torch.zeros(shapes["3"])
            identity[:, :, 1, 1] = torch.eye(heads, heads + maps)
            self.register_buffer("identity", identity, persistent=False)
        if config.kernel in shapes:
            self.weight = nn.Parameter(torch.zeros(config.layers, *shapes[config.kernel]))
        if config.has_skip:
            self.gamma = nn.Parameter(torch.full((config.layers - 1,), float(config.init == "random")))
        self._draw(generator)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator | None) -> None:
        """Give the kernels their first weights."""
        if self.weight is None or self.weight.is_meta:
            return
        if self.config.init == "random":  # as torch has it for layers of this size
            bound = 1 / math.sqrt(max(1, self.weight[0, 0].numel()))
            self.weight.uniform_(-bound, bound, generator=generator)
        elif self.config.kernel == "3":
            self.weight.add_(self.identity)

    def forward(
        self, layer: int, logits: Tensor, maps: Tensor, pairs: Tensor | None, before: Tensor | None
    ) -> Tensor:
        """Return R, the logits of a layer's attention without its mask, of the kernels `3` and `none`.

        Args:
            layer: number of the layer, from 0.
            logits: Q Kᵀ / √d, (B, m, M, M).
            maps: (B, k, M, M).
            pairs: (B, 1, M, M) bool, cells of two real tokens; None: all are.
            before: R of the layer before, (B, m, M, M); None for the first.
        """
        alpha = self.config.alpha
        if self.gamma is not None and before is not None:
            logits = torch.addcmul(logits, before, self.gamma[layer - 1].to(before.dtype))
        if not alpha:
            return logits
        real = logits if pairs is None else logits.masked_fill(~pairs, 0.0)
        every = torch.cat([real, maps.to(logits.dtype)], 1)
        if self.weight is None:
            return torch.lerp(logits, every.mean(1, keepdim=True).expand_as(logits), alpha)
        kernel = alpha * self.weight[layer] + (1 - alpha) * self.identity  # the share of S is one more weight
        return functional.conv2d(every, kernel.to(every.dtype), padding=1)

    def bias(self, layer: int, maps: Tensor) -> Tensor | None:
        """Return what the kernel `1` adds to a layer's logits, (B, m, M, M); None if that is nothing."""
        if self.weight is None or not self.config.alpha or not maps.shape[1]:
            return None
        weights = self.config.alpha * self.weight[layer]  # of few weights, not of all cells
        return torch.einsum("hk,bkij->bhij", weights, maps)


class MixingCall:
    """What the layers of an encoder read of a batch, and what each leaves for the next.

    Attributes:
        mixing: what is learnt, of the head that was called.
        maps: (B, k, M, M).
        real: (B, M) bool, whether there is a token.
        auxiliary: (B, T, H), auxiliary words as a layer's input; None if there are none.
        length: N.
        weights: whether the weights of attention are an output.
        layer: number of the layer that computes next: layers compute in their order.
        results: R of the layer before.
        positions: (B, N) bool, the word pieces whose vectors are wanted; None: all.
        pairs: (B, 1, M, M) bool, cells of two real tokens; None: all are.
    """

    def __init__(
        self,
        mixing: AttentionMixing,
        maps: Tensor,
        real: Tensor,
        auxiliary: Tensor | None,
        length: int,
        weights: bool,
    ) -> None:
        self.mixing, self.maps, self.real, self.auxiliary = mixing, maps, real, auxiliary
        self.length, self.weights, self.layer = length, weights, 0
        self.results: Tensor | None = None
        self.positions: Tensor | None = None
        self.pairs: Tensor | None = None  # (B, 1, M, M)
        if not bool(real.all()):
            self.pairs = real[:, None, :, None] & real[:, None, None, :]

    def mask(self, plain_mask: Tensor) -> Tensor:
        """Return the mask of a layer: *plain_mask*, or one of auxiliary words too where there are some."""
        if self.auxiliary is None:
            return plain_mask
        hidden = ~self.real[:, None, None, :]  # (B, 1, 1, M)
        lowest = torch.finfo(plain_mask.dtype).min
        return torch.zeros_like(hidden, dtype=plain_mask.dtype).masked_fill(hidden, lowest)


def mixed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    dropout: float = 0.0,
    **arguments: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute the attention of a layer, mixed with the maps of a call of `KamBert`; without one, as it is.

    Args:
        module: attention of a layer.
        query, key, value: (B, m, M, d).
        attention_mask: (B, 1, N, N), 0 where a token is seen, the lowest number where it is not.
        scaling: factor of the logits; None: 1/√d.
        dropout: dropout of the weights.
        arguments: what else the encoder was called with.

    Returns:
        What the tokens read, (B, M, m, d), and the weights of attention, (B, m, M, M), if they were computed.
    """
    call: MixingCall | None = arguments.get(CALL)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    bias = None
    if call is not None:
        layer, call.layer = call.layer, call.layer + 1
        mixing, attention_mask = call.mixing, call.mask(attention_mask)
        if mixing.config.kernel == "1":
            bias = mixing.bias(layer, call.maps)
            if not call.weights:
                return _fused_attention(module, (query, key, value), attention_mask, bias, scale, dropout)
    logits = torch.matmul(query, key.transpose(2, 3)) * scale  # (B, m, M, M)
    if bias is not None:
        logits = logits + bias
    elif call is not None and mixing.config.kernel != "1":
        logits = mixing(layer, logits, call.maps, call.pairs, call.results)
        call.results = logits if mixing.config.has_skip else None
    weights = functional.softmax(logits + attention_mask, dim=-1)
    weights = functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


def _fused_attention(
    module: nn.Module,
    states: tuple[Tensor, Tensor, Tensor],
    mask: Tensor,
    bias: Tensor | None,
    scaling: float,
    dropout: float,
) -> tuple[Tensor, None]:
    """Compute attention by `sdpa`, with a bias added to the mask."""
    added = (mask if bias is None else mask + bias).to(states[0].dtype)
    rate = dropout if module.training else 0.0
    read = functional.scaled_dot_product_attention(*states, attn_mask=added, dropout_p=rate, scale=scaling)
    return read.transpose(1, 2).contiguous(), None


def whole_mask(*args: Any, **kwargs: Any) -> Tensor:
    """Return the mask that eager attention has, also where nothing is hidden."""
    from transformers.masking_utils import eager_mask

    mask: Tensor = eager_mask(*args, **{**kwargs, "allow_is_bidirectional_skip": False})
    return mask
