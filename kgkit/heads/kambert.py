"""KAM-BERT: Bai et al. (2022), "Enhancing Self-Attention with Knowledge-Assisted Attention Maps".

    B  texts read at once    N  word pieces of one    H  encoder width    m  attention heads    k  maps
    T  auxiliary word pieces, an empty place before them included    M  N + T    C  cells of all maps

    (1)  S = Q Kᵀ / √d + γ R′           (B, m, M, M), logits of the encoder's attention, and R′, the R of the
                                        layer before, which the first layer does not have
    (2)  K = conv3×3([S ; maps])        (B, m + k, M, M) ─▶ (B, m, M, M), padded cells zero before it
    (3)  R = (1 - α) S + α K
    (4)  hidden = softmax(R + mask) V   (B, N, H)

The encoder is a model of transformers, with whatever stands on top of it. The code of its layers runs: they
ask `kgkit.encoder.attention` for a function of attention, and this is one. Maps come as cells that are not
zero; as a tensor (B, k, M, M) they exist while the encoder runs. Auxiliary words are put behind the input of
each layer, as input embeddings without positions, and are trimmed from its output: a layer's word pieces see
them, and no layer's output has them.

A call of the head goes to the layers as an argument of the encoder (`CALL`), so that calls in several threads
know nothing of each other. Layers compute in their order, and each leaves its logits for the next.

Departures:
    The weights of kernels begin as the identity, where the paper draws them: R is S, but for rounding, until
    something is learnt. So the first step has the attention of the checkpoint.
    γ is learnt, one for each layer but the first, and begins as 0; published is the sum.
    The paper gives neither the number of auxiliary words, nor what of BERT's embedding layer they go through:
    here the table of word pieces and the LayerNorm.
    An empty place stands between a text and its auxiliary words, so that a kernel does not join them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.attention import register_attention, set_attention
from kgkit.errors import UsageError
from kgkit.heads.folder import EncoderHead, load_module
from kgkit.heads.parts import layers_of, to_device
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KIND: Final = "kambert"

ATTENTION: Final = "kgkit_maps"
"""The name that `mixed_attention` is registered under, with `whole_mask`."""

CALL: Final = "attention_maps"
"""The argument of the encoder that carries a call to its layers."""

_WITH_WHOLE_ATTENTION: Final = frozenset(["bert", "camembert", "electra", "ernie", "roberta", "xlm-roberta"])
"""Types of models that kernels of 3 and auxiliary words are for: each token attends to every other."""


@dataclass(frozen=True, kw_only=True)
class KamBertConfig:
    """Settings of `KamBert`.

    Attributes:
        layers: number of the encoder's layers.
        heads: m.
        maps: names of the maps, in the order of their tensor.
        alpha: α, share of what is mixed.
        plain: whether the encoder reads without any of this, as a control.
        model: class of transformers that the encoder was saved as.
    """

    layers: int
    heads: int
    maps: tuple[str, ...] = ()
    alpha: float = 0.2
    plain: bool = False
    model: str = "AutoModel"

    def __post_init__(self) -> None:
        check_range(self, "layers", "heads", least=1)
        check_range(self, "alpha", least=0, most=1)

    @classmethod
    def of(cls, model: "PreTrainedModel", **settings: Any) -> "KamBertConfig":
        """Return settings for an encoder, whose layers and heads are counted."""
        config = model.config
        return cls(layers=config.num_hidden_layers, heads=config.num_attention_heads, **settings)


class KamBertInputs(NamedTuple):
    """What KAM-BERT reads.

    Attributes:
        ids: (B, N) int64, word pieces, special ones included.
        real: (B, N) bool, whether there is one.
        cells: (C, 4) int64, text, map, row and column of each cell that is not zero; rows and columns from N
            on are auxiliary word pieces.
        values: (C,) float32, their values.
        auxiliary: (B, T) int64, auxiliary word pieces behind an empty place; T may be 0.
        auxiliary_real: (B, T) bool, whether there is one; False for the empty place.
        types: (B, N) int64, segment of each; None for an encoder without segments.
    """

    ids: Tensor
    real: Tensor
    cells: Tensor
    values: Tensor
    auxiliary: Tensor
    auxiliary_real: Tensor
    types: Tensor | None = None

    def to(self, device: torch.device, **_: object) -> "KamBertInputs":
        """Return them on *device*."""
        return to_device(self, device)


class AttentionMixing(nn.Module):
    """Weights of KAM-BERT beside its encoder: a kernel for each layer, and the weights of skip connections.

    The kernels begin as the identity, and γ as 0: attention is that of the checkpoint.

    Args:
        config: settings; of a control nothing is learnt.

    Attributes:
        weight: (layers, m, m + k, 3, 3), kernels.
        gamma: (layers - 1,) γ.
    """

    def __init__(self, config: KamBertConfig) -> None:
        super().__init__()
        self.config = config
        if config.plain:
            return
        weight = torch.zeros(config.layers, config.heads, config.heads + len(config.maps), 3, 3)
        weight[..., 1, 1].diagonal(dim1=1, dim2=2).fill_(1)
        self.weight = nn.Parameter(weight)
        self.gamma = nn.Parameter(torch.zeros(config.layers - 1))

    def forward(
        self, layer: int, logits: Tensor, maps: Tensor, pairs: Tensor | None, before: Tensor | None
    ) -> Tensor:
        """Return R, the logits of a layer's attention without its mask.

        Args:
            layer: number of the layer, from 0.
            logits: Q Kᵀ / √d, (B, m, M, M).
            maps: (B, k, M, M).
            pairs: (B, 1, M, M) bool, cells of two real tokens; None: all are.
            before: R of the layer before, (B, m, M, M); None for the first.
        """
        alpha = self.config.alpha
        if before is not None:
            logits = torch.addcmul(logits, before, self.gamma[layer - 1].to(before.dtype))
        if not alpha:
            return logits
        real = logits if pairs is None else logits.masked_fill(~pairs, 0.0)
        every = torch.cat([real, maps.to(logits.dtype)], 1)
        kernel = alpha * self.weight[layer]
        kernel[..., 1, 1].diagonal().add_(1 - alpha)  # the share of S is one more weight
        return functional.conv2d(every, kernel.to(every.dtype), padding=1)


class MixingCall:
    """State of a batch that the layers of an encoder read, and leave for the next.

    Attributes:
        mixing: what is learnt, of the head that was called.
        maps: (B, k, M, M).
        real: (B, M) bool, whether there is a token.
        auxiliary: (B, T, H), auxiliary words as a layer's input; None if there are none.
        length: N.
        layer: number of the layer that computes next: layers compute in their order.
        results: R of the layer before.
        pairs: (B, 1, M, M) bool, cells of two real tokens; None: all are.
    """

    def __init__(
        self,
        mixing: AttentionMixing,
        maps: Tensor,
        real: Tensor,
        auxiliary: Tensor | None,
        length: int,
    ) -> None:
        self.mixing, self.maps, self.real, self.auxiliary = mixing, maps, real, auxiliary
        self.length, self.layer = length, 0
        self.results: Tensor | None = None
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
) -> tuple[Tensor, Tensor]:
    """Compute the attention of a layer, mixed with the maps of a call of `KamBert`; without one, as it is.

    Args:
        module: attention of a layer.
        query, key, value: (B, m, M, d).
        attention_mask: (B, 1, N, N), 0 where a token is seen, the lowest number where it is not.
        scaling: factor of the logits; None: 1/√d.
        dropout: dropout of the weights.
        arguments: what else the encoder was called with.

    Returns:
        What the tokens read, (B, M, m, d), and the weights of attention, (B, m, M, M).
    """
    call: MixingCall | None = arguments.get(CALL)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = torch.matmul(query, key.transpose(2, 3)) * scale  # (B, m, M, M)
    if call is not None:
        layer, call.layer = call.layer, call.layer + 1
        attention_mask = call.mask(attention_mask)
        call.results = logits = call.mixing(layer, logits, call.maps, call.pairs, call.results)
    weights = functional.softmax(logits + attention_mask, dim=-1)
    weights = functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


def whole_mask(*args: Any, **kwargs: Any) -> Tensor:
    """Return the mask that eager attention has, also where nothing is hidden."""
    from transformers.masking_utils import eager_mask

    mask: Tensor = eager_mask(*args, **{**kwargs, "allow_is_bidirectional_skip": False})
    return mask


class KamBert(EncoderHead):
    """An encoder whose attention is mixed with maps of knowledge about a text.

    A control (`plain`) takes any encoder: nothing is mixed. Its attention is `eager`, as that of what it is
    compared with, where the encoder's can be set to it.

    Args:
        model: encoder, or a model of transformers around it (`BertForMaskedLM`, …); its function of attention
            is set.
        config: settings; None: those of a KAM-BERT without maps.
        mixing: what is learnt beside the encoder; None: as it begins.

    Raises:
        UsageError: if the model's attention cannot be set, or the settings do not fit it.

    Examples:
        >>> kambert = KamBert(encoder.model, KamBertConfig.of(encoder.model, maps=("entity",)))
        >>> kambert(inputs).last_hidden_state                # KamBertInputs -> (B, N, H)
    """

    kind, settings = KIND, KamBertConfig
    config: KamBertConfig

    def __init__(
        self,
        model: "PreTrainedModel",
        config: KamBertConfig | None = None,
        mixing: AttentionMixing | None = None,
    ) -> None:
        super().__init__()
        self.model, self.config = model, config or KamBertConfig.of(model)
        config = self.config
        own = KamBertConfig.of(model)
        if (config.layers, config.heads) != (own.layers, own.heads):
            raise UsageError(
                f"the head is for {config.layers} layers of {config.heads} attention heads, "
                f"{type(model).__name__} has {own.layers} of {own.heads}"
            )
        self.mixing = AttentionMixing(config) if mixing is None else mixing
        if config.plain:
            with suppress(UsageError):  # where its attention cannot be set, its own
                set_attention(model, "eager")
            return
        if model.config.model_type not in _WITH_WHOLE_ATTENTION:
            raise UsageError(
                f"{type(model).__name__} cannot mix attention heads: a KAM-BERT takes encoders of the types "
                f"{', '.join(sorted(_WITH_WHOLE_ATTENTION))}"
            )
        register_attention(ATTENTION, mixed_attention, whole_mask)
        set_attention(model, ATTENTION)
        for layer in layers_of(model).layers:
            layer.register_forward_pre_hook(self._append_auxiliary, with_kwargs=True)
            layer.register_forward_hook(self._trim_auxiliary, with_kwargs=True)

    def forward(self, inputs: KamBertInputs, **model_inputs: Any) -> Any:
        """Return what the model returns: of an encoder `last_hidden_state` (B, N, H).

        Args:
            inputs: batch of texts.
            model_inputs: further arguments of the model, as `labels`.

        Raises:
            UsageError: if layers are computed twice to save memory (gradient checkpointing).
        """
        arguments = {"input_ids": inputs.ids, "attention_mask": inputs.real.long(), **model_inputs}
        if inputs.types is not None:
            arguments["token_type_ids"] = inputs.types
        if not self.config.plain:
            arguments[CALL] = self._begin_call(inputs)
        return self.model(**arguments)

    def dense_maps(self, inputs: KamBertInputs) -> Tensor:
        """Return the maps of texts, (B, k, M, M) float32."""
        count, maps = len(inputs.ids), len(self.config.maps)
        size = inputs.ids.shape[1] + inputs.auxiliary.shape[1]  # M
        dense = inputs.values.new_zeros(count * maps * size * size)
        text, number, row, column = inputs.cells.T
        dense[((text * maps + number) * size + row) * size + column] = inputs.values
        return dense.view(count, maps, size, size)

    def _begin_call(self, inputs: KamBertInputs) -> MixingCall:
        """Return what the layers read of a batch."""
        if self.training and any(
            getattr(part, "gradient_checkpointing", False) for part in self.model.modules()
        ):
            raise UsageError(
                "KAM-BERT passes logits from layer to layer, which gradient checkpointing computes twice: "
                "leave it out"
            )
        real, embedded = inputs.real, None
        if inputs.auxiliary.shape[1]:
            embedded = self._embed(inputs.auxiliary)
            real = torch.cat([real, inputs.auxiliary_real], 1)  # (B, M)
        return MixingCall(self.mixing, self.dense_maps(inputs), real, embedded, inputs.ids.shape[1])

    def _embed(self, pieces: Tensor) -> Tensor:
        """Return auxiliary word pieces as a layer's input, (B, T, H): without positions and segments."""
        part: Any = self.model.base_model
        table: Any = self.model.get_input_embeddings()
        embedded: Tensor = part.embeddings.dropout(part.embeddings.LayerNorm(table(pieces)))
        project = getattr(part, "embeddings_project", None)  # ELECTRA's, where widths differ
        return embedded if project is None else project(embedded)

    def _append_auxiliary(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Put auxiliary words behind the input of a layer: a hook of torch."""
        call = kwargs.get(CALL)
        if call is None or call.mixing is not self.mixing or call.auxiliary is None:
            return None
        hidden = args[0]
        return (torch.cat([hidden, call.auxiliary.to(hidden.dtype)], 1), *args[1:]), kwargs

    def _trim_auxiliary(self, _: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        """Take auxiliary words off the output of a layer: a hook of torch."""
        call = kwargs.get(CALL)
        if call is None or call.mixing is not self.mixing or call.auxiliary is None:
            return output
        if isinstance(output, tuple):
            return (output[0][:, : call.length], *output[1:])
        return output[:, : call.length]

    def _own_weights(self) -> Mapping[str, Tensor]:
        return self.mixing.state_dict()

    @classmethod
    def _read_own(cls, folder: Path, config: KamBertConfig) -> tuple[AttentionMixing]:
        return (load_module(folder, lambda: AttentionMixing(config)),)
