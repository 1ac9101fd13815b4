"""E-BERT: Poerner et al. (2020), "E-BERT: Efficient-Yet-Effective Entity Embeddings for BERT".

    B  sequences read at once    T  pieces of one: word pieces and entities    H  encoder width
    U  vectors of a batch        S  width of a stored vector                   E  width of an input embedding

    word pieces (B, T) ─input embeddings─▶ (B, T, E) ─┐
                                                      ├─ one or the other, by position ─▶ encoder ─▶ (B, T, H)
    entities (U, S) ─────────W─────────▶ (U, E) ──────┘

The encoder is a model of transformers, with whatever stands on top of it; its own code runs, and no layer is
added to it. An entity stands in the sequence as if it were a word piece: its vector, mapped by W, takes the
place of an input embedding, before embeddings of positions and segments are added and before the LayerNorm
(their section 3). W was fitted on words (`kgkit.embedding.align`) and is never trained.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from kgkit.errors import DamagedModel, UsageError
from kgkit.heads.folder import EncoderHead, load_weights
from kgkit.heads.parts import to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KIND: Final = "ebert"

_MAP: Final = "map"
"""The name of W among the weights."""


@dataclass(frozen=True, kw_only=True)
class EBertConfig:
    """Settings of `EBert`.

    Attributes:
        stored: S; 0: the head reads no entities, as a control.
        width: E.
        model: class of transformers that the encoder was saved as.
    """

    stored: int
    width: int
    model: str = "AutoModel"

    REMOVED: ClassVar[Mapping[str, object]] = {"aligned": True}

    def __post_init__(self) -> None:
        if self.width < 1 or self.stored < 0:
            raise UsageError(f"vectors of width {self.stored} cannot be read as embeddings of {self.width}")


class EBertInputs(NamedTuple):
    """What E-BERT reads.

    Attributes:
        ids: (B, T) int64, word pieces; any piece where an entity stands.
        real: (B, T) bool, whether there is a word piece or an entity.
        rows: (B, T) int64, the row of *vectors* that stands here; -1 where a word piece does.
        vectors: (U, S) float32, vectors as they are stored; U may be 0.
        types: (B, T) int64, segment of each; None for an encoder without segments.
    """

    ids: Tensor
    real: Tensor
    rows: Tensor
    vectors: Tensor
    types: Tensor | None = None

    def to(self, device: torch.device, **_: object) -> "EBertInputs":
        """Return them on *device*."""
        return to_device(self, device)


class EBert(EncoderHead):
    """An encoder that reads vectors of entities as if they were word pieces.

    Args:
        model: encoder, or a model of transformers around it (`BertForMaskedLM`, …); it is not changed.
        config: settings; None: a control, which reads no entities.
        weight: (E, S) float32, W; None of a control.

    Raises:
        UsageError: if the model takes no input embeddings, or the settings do not fit it.

    Examples:
        >>> weight = torch.from_numpy(Alignment.load(kb.vectors("text"), encoder).weight)
        >>> ebert = EBert(encoder.model, EBertConfig(stored=384, width=384), weight)
        >>> ebert(inputs).last_hidden_state                  # EBertInputs -> (B, T, H)
    """

    kind, settings = KIND, EBertConfig
    config: EBertConfig

    weight: Tensor | None

    def __init__(
        self, model: "PreTrainedModel", config: EBertConfig | None = None, weight: Tensor | None = None
    ) -> None:
        super().__init__()
        width = embedding_width(model)
        self.model, self.config = model, config or EBertConfig(stored=0, width=width)
        if self.config.width != width:
            raise UsageError(
                f"the head has input embeddings of width {self.config.width}, {type(model).__name__} has "
                f"{width}"
            )
        self.register_buffer("weight", weight)

    def forward(self, inputs: EBertInputs, **model_inputs: Any) -> Any:
        """Return what the model returns: of an encoder `last_hidden_state` (B, T, H).

        A batch without an entity is read as the model reads texts, bit for bit.

        Args:
            inputs: batch of sequences.
            model_inputs: further arguments of the model, as `labels`.
        """
        arguments: dict[str, Any] = {"attention_mask": inputs.real.long(), **model_inputs}
        if inputs.types is not None:
            arguments["token_type_ids"] = inputs.types
        if not len(inputs.vectors):
            return self.model(input_ids=inputs.ids, **arguments)
        return self.model(inputs_embeds=self.embed(inputs), **{**self._positions(inputs), **arguments})

    def _positions(self, inputs: EBertInputs) -> dict[str, Tensor]:
        """Return the argument that has the positions of a model like RoBERTa; nothing for others.

        Such a model counts from behind the id of its padding piece, and passes over each such piece, one that
        a text has as well. From input embeddings it cannot: all texts of a batch would have other positions
        than alone.
        """
        table = getattr(getattr(self.model.base_model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        if padding is None or "position_ids" not in inspect.signature(self.model.forward).parameters:
            return {}
        counted = (inputs.ids != padding) | (inputs.rows >= 0)  # (B, T)
        return {"position_ids": counted.long().cumsum(1) * counted + padding}

    def embed(self, inputs: EBertInputs) -> Tensor:
        """Return the input embeddings of sequences, (B, T, E): of word pieces, and of entities as mapped."""
        table: Any = self.model.get_input_embeddings()
        words: Tensor = table(inputs.ids)  # (B, T, E)
        entities = self.map(inputs.vectors).to(words.dtype)  # (U, E)
        is_entity = inputs.rows >= 0  # (B, T)
        return torch.where(is_entity[:, :, None], entities[inputs.rows.clamp(min=0)], words)

    def map(self, vectors: Tensor) -> Tensor:
        """Return W v for each stored vector, (…, S) -> (…, E) float32: the embedding of an entity."""
        vectors = vectors.float()
        assert self.weight is not None  # a control reads no vectors
        with torch.autocast(vectors.device.type, enabled=False):  # W v is what was fitted, to the digit
            return functional.linear(vectors, self.weight.float())

    def _own_weights(self) -> dict[str, Tensor]:
        return {} if self.weight is None else {_MAP: self.weight}

    @classmethod
    def _read_own(cls, folder: Path, config: EBertConfig) -> tuple[Tensor | None]:
        weights = load_weights(folder)
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
        expected = {_MAP: (config.width, config.stored)} if config.stored else {}
        if shapes != expected:
            raise DamagedModel(f"the head in {folder} cannot be loaded: {shapes} found, {expected} expected")
        return (weights.get(_MAP),)


def embedding_width(model: "PreTrainedModel") -> int:
    """Return E, the width of a model's input embeddings, which some have narrower than their layers.

    Raises:
        UsageError: if the model takes no input embeddings in the place of word pieces.
    """
    table: Any = model.get_input_embeddings()
    if "inputs_embeds" not in inspect.signature(model.forward).parameters or not hasattr(table, "weight"):
        raise UsageError(
            f"{type(model).__name__} reads word pieces alone, and no input embeddings (`inputs_embeds`): "
            "E-BERT takes an encoder like BERT"
        )
    return int(table.weight.shape[1])
