"""Attention of transformers' models: which function computes it, and which tokens it lets attend to which.

    B  texts    Q  tokens that attend    K  tokens that are attended to

transformers keeps two tables under the same names: functions of attention, and functions that make the mask
for them. A function without a mask function of the same name is given no mask at all: it would attend to
padding. So both are registered together.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgkit.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel


def register_attention(name: str, function: Callable[..., Any], mask: Callable[..., Any]) -> None:
    """Register a function of attention, and the function that makes its masks, for all models.

    Args:
        name: name for `set_attention`.
        function: function of attention, with the arguments of transformers' `sdpa_attention_forward`.
        mask: function that makes its mask, with the arguments of `transformers.masking_utils.sdpa_mask`.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    # The mask goes first: a thread that finds the function finds its mask too.
    AttentionMaskInterface.register(name, mask)
    AttentionInterface.register(name, function)


def set_attention(model: "PreTrainedModel", name: str) -> None:
    """Let a model compute attention by another function.

    No other model changes, not even one that was made from the same config object: this one gets a copy.

    Args:
        model: encoder, or model around one.
        name: `eager`, `sdpa`, …, or a name given to `register_attention`.

    Raises:
        UsageError: if there is no such function, or the model cannot use it.
    """
    if name == attention_of(model):
        return
    if not model._can_set_attn_implementation():
        raise UsageError(f"{type(model).__name__} computes attention in a way that cannot be changed")
    shared, own = model.config, copy.deepcopy(model.config)
    part: Any
    for part in model.modules():
        if getattr(part, "config", None) is shared:
            part.config = own
    try:
        model.set_attn_implementation(name)
    except (ValueError, ImportError) as error:
        raise UsageError(f"{type(model).__name__} cannot use the attention {name!r}: {error}") from error


def attention_of(model: "PreTrainedModel") -> str:
    """Return the name of the function that a model computes attention by."""
    return str(model.config._attn_implementation)


def additive_mask(matrix: "Tensor", dtype: "torch.dtype") -> "Tensor":
    """Return (B, 1, Q, K), for all heads: 0 where a token is seen, the lowest number where it is not.

    Args:
        matrix: (B, Q, K) bool, whether the token of a row sees that of a column.
        dtype: type of the model's weights; under autocast the mask is of autocast's type, as the logits are
            that it is added to.
    """
    import torch

    visible = matrix[:, None]  # (B, 1, Q, K)
    if torch.is_autocast_enabled(visible.device.type):
        dtype = torch.get_autocast_dtype(visible.device.type)
    lowest = torch.finfo(dtype).min
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, lowest)
