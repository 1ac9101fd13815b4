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

Kernels:
    3      what is above
    1      R = S + α Σ w maps, a weight for each head and map; neighbours and heads are not mixed, and there
           is no γ. It is added to the mask of `sdpa`, for any encoder whose attention can be set
    none   K is the mean of all m + k maps, for every head

Departures:
    The kernel 1 is kgkit's own; the paper has the other two.
    The weights of kernels begin as the identity: R is S, but for rounding, until something is learnt. So the
    first step has the attention of the checkpoint. `init="random"` draws them, and γ begins as 1.
    γ is learnt, one for each layer but the first; published is the sum.
    The paper gives neither the number of auxiliary words, nor what of BERT's embedding layer they go through:
    here the table of word pieces and the LayerNorm.
    An empty place stands between a text and its auxiliary words, so that a kernel does not join them.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor, nn

from kgkit.encoder.attention import register_attention, set_attention
from kgkit.errors import DamagedModel, UsageError
from kgkit.heads.attention_mixing import (
    ATTENTION,
    CALL,
    AttentionMixing,
    KamBertConfig,
    MixingCall,
    mixed_attention,
    whole_mask,
)
from kgkit.heads.folder import WEIGHTS, EncoderHead, card_of, check_shapes, reading_weights
from kgkit.heads.parts import check_dimensions, layers_of, to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KIND: Final = "kambert"

_WITH_WHOLE_ATTENTION: Final = frozenset(["bert", "camembert", "electra", "ernie", "roberta", "xlm-roberta"])
"""Types of models that kernels of 3 and auxiliary words are for: each token attends to every other."""


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


class KamBert(EncoderHead):
    """An encoder whose attention is mixed with maps of knowledge about a text.

    A control (`plain`) takes any encoder: nothing is mixed. Its attention is `eager`, as that of the kernels
    3 and none, where the encoder's can be set to it; with the kernel 1 it is the encoder's own.

    Args:
        model: encoder, or a model of transformers around it (`BertForMaskedLM`, …); its function of attention
            is set.
        config: settings; None: those of a KAM-BERT without maps.
        mixing: what is learnt beside the encoder; None: as it begins.
        generator: generator of its random weights.

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
        generator: torch.Generator | None = None,
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
        self._has_whole_attention = model.config.model_type in _WITH_WHOLE_ATTENTION
        if config.kernel != "1" and not config.plain and not self._has_whole_attention:
            raise UsageError(
                f"{type(model).__name__} cannot mix attention heads: the kernel {config.kernel} takes "
                f"encoders of the types {', '.join(sorted(_WITH_WHOLE_ATTENTION))}; the kernel 1 takes "
                "others too"
            )
        self.mixing = AttentionMixing(config, generator) if mixing is None else mixing
        if config.plain:
            if config.kernel != "1":  # as what it is compared with
                with suppress(UsageError):  # where its attention cannot be set, its own
                    set_attention(model, "eager")
            return
        register_attention(ATTENTION, mixed_attention, whole_mask)
        set_attention(model, ATTENTION)
        model.base_model.register_forward_hook(self._select_positions, with_kwargs=True)
        for layer in layers_of(model).layers:
            layer.register_forward_pre_hook(self._append_auxiliary, with_kwargs=True)
            layer.register_forward_hook(self._trim_auxiliary, with_kwargs=True)

    def forward(self, inputs: KamBertInputs, positions: Tensor | None = None, **model_inputs: Any) -> Any:
        """Return what the model returns: of an encoder `last_hidden_state` (B, N, H).

        Args:
            inputs: batch of texts.
            positions: (B, N) bool, the word pieces whose vectors are wanted: (n, H), so that what stands on
                the encoder computes for no others; None: all. A control gives all.
            model_inputs: further arguments of the model, as `labels`.

        Raises:
            UsageError: if shapes differ, a cell lies outside of its map, or layers are computed twice to save
                memory (gradient checkpointing).
        """
        self._check(inputs)
        arguments = {"input_ids": inputs.ids, "attention_mask": inputs.real.long(), **model_inputs}
        if inputs.types is not None:
            arguments["token_type_ids"] = inputs.types
        if not self.config.plain:
            call = self._begin_call(inputs, bool(model_inputs.get("output_attentions")))
            call.positions = positions
            arguments[CALL] = call
        return self.model(**arguments)

    def dense_maps(self, inputs: KamBertInputs) -> Tensor:
        """Return the maps of texts, (B, k, M, M) float32."""
        count, maps = len(inputs.ids), len(self.config.maps)
        size = inputs.ids.shape[1] + inputs.auxiliary.shape[1]  # M
        dense = inputs.values.new_zeros(count * maps * size * size)
        text, number, row, column = inputs.cells.T
        dense[((text * maps + number) * size + row) * size + column] = inputs.values
        return dense.view(count, maps, size, size)

    def _begin_call(self, inputs: KamBertInputs, weights: bool) -> MixingCall:
        """Return what the layers read of a batch."""
        config = self.model.config
        if self.training and any(
            getattr(part, "gradient_checkpointing", False) for part in self.model.modules()
        ):
            raise UsageError(
                "KAM-BERT passes logits from layer to layer, which gradient checkpointing computes twice: "
                "leave it out"
            )
        real, embedded = inputs.real, None
        if inputs.auxiliary.shape[1]:
            if not self._has_whole_attention:
                raise UsageError(
                    f"{config.model_type} gives every token a position: auxiliary words have none, and are "
                    f"for encoders of the types {', '.join(sorted(_WITH_WHOLE_ATTENTION))}"
                )
            embedded = self._embed(inputs.auxiliary)
            real = torch.cat([real, inputs.auxiliary_real], 1)  # (B, M)
        return MixingCall(self.mixing, self.dense_maps(inputs), real, embedded, inputs.ids.shape[1], weights)

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

    def _select_positions(self, _: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        """Keep the vectors of the chosen word pieces alone: a hook of torch."""
        call = kwargs.get(CALL)
        if call is None or call.mixing is not self.mixing or call.positions is None:
            return output
        if isinstance(output, tuple):
            return (output[0][call.positions], *output[1:])
        output.last_hidden_state = output.last_hidden_state[call.positions]  # (n, H)
        return output

    def _check(self, inputs: KamBertInputs) -> None:
        """Make sure that shapes fit, and that cells lie in their maps.

        Raises:
            UsageError: if something does not.
        """
        shape, own = inputs.ids.shape, inputs.auxiliary.shape
        if len(shape) != 2 or len(own) != 2 or own[0] != shape[0]:
            raise UsageError(
                f"expected ids (B, N) and auxiliary pieces (B, T), found {tuple(shape)} and {tuple(own)}"
            )
        count, size = len(inputs.cells), shape[1] + own[1]
        check_dimensions(
            inputs,
            {
                "real": tuple(shape), "types": tuple(shape), "auxiliary_real": tuple(own),
                "cells": (count, 4), "values": (count,),
            },
        )  # fmt: skip
        if not count:
            return
        limits = torch.tensor([shape[0], len(self.config.maps), size, size], device=inputs.cells.device)
        if bool((inputs.cells < 0).any()) or bool((inputs.cells >= limits).any()):
            raise UsageError(
                f"a cell lies outside of {shape[0]} texts with {len(self.config.maps)} maps of {size} × "
                f"{size}"
            )

    def _own_weights(self) -> Mapping[str, Tensor]:
        return self.mixing.state_dict()

    def _card(self, about: str) -> str:
        config = self.config
        own = sum(parameter.numel() for parameter in self.mixing.parameters())
        maps = ", ".join(config.maps) or "none"
        return card_of(
            self, _CARD, about, model=type(self.model).__name__, own=f"{own:,}", maps=maps,
            kernel=config.kernel, alpha=config.alpha,
            control=" It is a control, which reads without any map." if config.plain else "",
        )  # fmt: skip

    @classmethod
    def _read_own(cls, folder: Path, config: KamBertConfig) -> tuple[AttentionMixing]:
        _check_version(folder)
        check_shapes(folder, lambda: AttentionMixing(config).state_dict())
        mixing = AttentionMixing(config)
        with reading_weights(folder) as weights:
            mixing.load_state_dict(weights)
        return (mixing,)


def _check_version(folder: Path) -> None:
    """Refuse a head that was trained with γ R′ added to R, as kgkit did before: its weight is called `skip`.

    Raises:
        DamagedModel: if it is such a head.
    """
    from safetensors import SafetensorError, safe_open

    with suppress(OSError, SafetensorError), safe_open(folder / WEIGHTS, "pt") as file:
        if "skip" in file.keys():  # noqa: SIM118
            raise DamagedModel(
                f"the head in {folder} was trained by an older kgkit, which added skip connections behind "
                "the convolution: train it again"
            )


_CARD: Final = """\
---
library_name: kgkit
tags:
- kam-bert
---

# KAM-BERT

{about}A {model} whose attention is mixed with maps of what is known of a text (Bai et al. 2022, *Enhancing
Self-Attention with Knowledge-Assisted Attention Maps*): {parameters} parameters, {own} of them beside the
encoder's, which lies in `encoder/` as transformers has it. Maps: {maps}; kernel: {kernel}; α:
{alpha}.{control}

```python
from kgkit.heads import KamBert

kambert = KamBert.from_pretrained("this folder")
```
"""
