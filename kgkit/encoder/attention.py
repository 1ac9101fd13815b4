"""Attention of transformers' models: which function computes it, and which tokens it lets attend to which.

    B  texts    Q  tokens that attend    K  tokens that are attended to

transformers keeps two tables under the same names: functions of attention, and functions that make the mask
for them. A model looks its name up in both. A function without a mask function of the same name is given no
mask at all, and nothing says so: it would attend to padding. So functions are registered here alone, always
both together, and a model is given no name that stands in one table only.

    name                mask of a text with so many tokens       matrix of which token sees which
    eager, sdpa         made by transformers                     `additive_mask`, (B, 1, Q, K)
    flex_attention      made by transformers                     `block_mask`: a rule, asked when it is needed
    flash_attention_*   lengths                                  cannot be given
    registered here     made by its mask function                `additive_mask`, (B, 1, Q, K)
"""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from kgkit.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch.nn.attention.flex_attention import BlockMask
    from transformers import PreTrainedModel

FLEX: Final = "flex_attention"

_DENSE: Final = ("eager", "sdpa")
_DROPOUTS: Final = "attention_probs_dropout_prob", "attention_dropout"
"""What configs call the dropout of attention."""
_VALUES: Final = 0.25, 0.75
_LOCK: Final = threading.RLock()
"""Held while the two tables, or the config of a model, are changed."""
_REGISTERED: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {}


class VisibilityRule(Protocol):
    """Which token sees which, for one entry of the matrix."""

    def __call__(self, row: "Tensor", head: "Tensor", query: "Tensor", key: "Tensor") -> "Tensor":
        """Return a boolean scalar: whether in text *row* the token *query* sees the token *key*."""
        ...


def register_attention(name: str, function: Callable[..., Any], mask: Callable[..., Any]) -> None:
    """Register a function of attention, and the function that makes its masks, for all models.

    Registering the same two again changes nothing. May be called by several threads.

    Args:
        name: name for `set_attention`; not one of transformers' own.
        function: function of attention, with the arguments of transformers' `sdpa_attention_forward`.
        mask: function that makes its mask, with the arguments of `transformers.masking_utils.sdpa_mask`.

    Raises:
        UsageError: if one of the two is no function, or other functions have the name.
    """
    both: tuple[Any, ...] = function, mask
    if not all(map(callable, both)):
        raise UsageError(
            f"attention {name!r}: expected a function and the function that makes its mask; without a mask "
            "transformers would attend to padding"
        )
    with _LOCK:
        functions, masks = _tables()
        if _REGISTERED.get(name) == (function, mask):
            return
        if name in _REGISTERED or name in _DENSE or name in functions or name in masks:
            raise UsageError(f"attention {name!r}: other functions are registered under this name")
        # The mask goes first: a thread that finds the function finds its mask too.
        type(masks).register(name, mask)
        type(functions).register(name, function)
        _REGISTERED[name] = function, mask


def set_attention(model: "PreTrainedModel", name: str) -> str:
    """Let a model compute attention by another function, and return the name of the one it had.

    No other model changes, not even one that was made from the same config object: this one gets a copy.

    Args:
        model: encoder, or model around one.
        name: `eager`, `sdpa`, `flex_attention`, …, or a name given to `register_attention`.

    Raises:
        UsageError: if there is no such function, if it has no mask function, or if the model cannot use it.
    """
    with _LOCK:
        functions, masks = _tables()
        if name not in masks or (name != "eager" and name not in functions):
            half = name in functions or name in masks
            names = ", ".join(sorted({*masks} & {"eager", *functions}))
            raise UsageError(
                f"attention {name!r} has a function or a mask function, not both: register both together, by "
                "kgkit.encoder.attention.register_attention"
                if half
                else f"there is no attention {name!r}; there is: {names}"
            )
        before = attention_of(model)
        if name == before:
            return before
        if not model._can_set_attn_implementation():
            raise UsageError(f"{type(model).__name__} computes attention in a way that cannot be changed")
        _give_own_config(model)
        try:
            model.set_attn_implementation(name)
        except (ValueError, ImportError) as error:
            raise UsageError(f"{type(model).__name__} cannot use the attention {name!r}: {error}") from error
        return before


@contextmanager
def attention(model: "PreTrainedModel", name: str) -> Iterator[None]:
    """Let a model compute attention by another function in the `with` block, and by its own again after it.

    Raises:
        UsageError: as `set_attention` does.
    """
    before = set_attention(model, name)
    try:
        yield
    finally:
        set_attention(model, before)


def attention_of(model: "PreTrainedModel") -> str:
    """Return the name of the function that a model computes attention by."""
    return str(model.config._attn_implementation)


def set_attention_dropout(module: "nn.Module", share: float) -> None:
    """Set the dropout of attention of the models of transformers in a module, in their configs too.

    On a processor torch has no fast kernel for attention with dropout: a training step over long texts takes
    less than half the time without it. No other model changes, not even one that was made from the same
    config object.

    Args:
        module: model, or a module with models in it.
        share: share of the probabilities of attention that is dropped in training.

    Raises:
        UsageError: if there is no model, or the config of one has no dropout of attention.
    """
    from transformers import PreTrainedModel

    models = [part for part in module.modules() if isinstance(part, PreTrainedModel)]
    inner = {part for model in models for part in model.modules() if part is not model}
    if not models:
        raise UsageError(f"{type(module).__name__} has no encoder of transformers, and no attention of one")
    with _LOCK:
        for model in models:
            if model in inner:
                continue
            name = _dropout_of(model)
            if name is None:
                raise UsageError(f"{type(model).__name__} has no dropout of attention that can be set")
            _give_own_config(model)
            for path, attribute in _copies_of(model, name):
                setattr(model.get_submodule(path), attribute, share)
            setattr(model.config, name, share)


def _dropout_of(model: "PreTrainedModel") -> str | None:
    """Return what the config of a model calls the dropout of attention; None if it has none."""
    return next((name for name in _DROPOUTS if hasattr(model.config, name)), None)


def _copies_of(model: "PreTrainedModel", name: str) -> list[tuple[str, str]]:
    """Return paths of modules, each with its attribute, that keep a number of the config.

    Modules keep it in ways of their own: two models of configs that differ in nothing else say where.
    """
    import torch

    twins: list[Any] = []
    for value in _VALUES:
        config = copy.deepcopy(model.config)
        setattr(config, name, value)
        with torch.device("meta"):  # where tensors take no memory
            twins.append(type(model)(config))
    paths = {path for path, _ in model.named_modules()}
    return [
        (path, attribute)
        for (path, first), second in zip(twins[0].named_modules(), twins[1].modules(), strict=True)
        for attribute, value in vars(first).items()
        if path in paths and isinstance(value, float) and (value, getattr(second, attribute, None)) == _VALUES
    ]


def visibility_mask(
    model: "PreTrainedModel", matrix: "Callable[[], Tensor]", rule: VisibilityRule, size: tuple[int, int]
) -> "Tensor | BlockMask":
    """Return the `attention_mask` that lets each token of a text attend to what it sees, and to nothing else.

    Args:
        model: model that is called with it.
        matrix: function that returns (B, N, N) bool, whether the token of a row sees that of a column.
        rule: function that gives it entry by entry; FlexAttention asks it, and no matrix is made.
        size: B and N.

    Raises:
        UsageError: if the model's attention takes no matrix, or is FlexAttention, which has no dropout, in a
            model that is trained with dropout of attention.
    """
    name = attention_of(model)
    if name == FLEX:
        dropout = _dropout_of(model)
        if model.training and dropout is not None and getattr(model.config, dropout):
            raise UsageError(
                "FlexAttention has no dropout: train with sdpa (kgkit.encoder.attention.set_attention), or "
                "without dropout of attention"
            )
        return block_mask(rule, size, model.device)
    if name not in _DENSE and name not in _REGISTERED:
        raise UsageError(
            f"the attention {name!r} takes no matrix of which token sees which: choose one of "
            f"{', '.join((*_DENSE, FLEX))} (kgkit.encoder.attention.set_attention)"
        )
    return additive_mask(matrix(), next(model.parameters()).dtype)


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


def block_mask(rule: VisibilityRule, size: tuple[int, int], device: "torch.device") -> "BlockMask":
    """Return a mask for FlexAttention, which asks for an entry when it needs it.

    Args:
        rule: whether a token sees another.
        size: B and N: texts, and tokens of each.
        device: torch device of the tensors that the rule reads.
    """
    from torch.nn.attention.flex_attention import create_block_mask

    rows, tokens = size
    return create_block_mask(
        rule,
        rows,
        None,
        tokens,
        tokens,
        device=device,
        _compile=device.type == "cuda",  # else N × N is made
    )


def _tables() -> tuple[Any, Any]:
    """Return transformers' tables of functions, and of mask functions."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    return ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS


def _give_own_config(model: "PreTrainedModel") -> None:
    """Give a model a copy of its config: what is set there no longer reaches models of the same config."""
    shared, own = model.config, copy.deepcopy(model.config)
    part: Any
    for part in model.modules():
        if getattr(part, "config", None) is shared:
            part.config = own
