"""E-BERT-MLM: Poerner et al. (2020), entity linking as the prediction of a masked entity.

    B  sequences    T  pieces of one    N  spans that are linked    C  candidates of one
    U  vectors      S  width of a stored vector                     E  width of an input embedding

    sequences (B, T) ─encoder─▶ (B, T, H) ─at the masks─▶ (N, H) ─transform of the decoder─▶ F(h) (N, E)

    score(a) = (W v_a) · F(h) + log p(a)        score(ε) = e_ε · F(h) + b_ε                     their (2)

F is what a masked language model has before its decoder, whose weights are the word pieces' input embeddings:
the mapped vectors of entities lie among these, and stand in their place. A decoder with weights of its own is
another space, and refused. ε is the entity of spans that mean nothing; e_ε begins uniform in ±0.02, b_ε as 0.
The tables of word pieces and of entities are frozen, all else is trained.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.device import pick_device
from kgkit.errors import UsageError
from kgkit.heads.ebert import EBert, EBertInputs
from kgkit.heads.folder import load_module, save_head
from kgkit.heads.settings import read_settings

if TYPE_CHECKING:
    from typing import Self

    from transformers import PreTrainedModel

KIND: Final = "ebert-linker"
NULL: Final = "null"
"""The folder of ε, beside the files of the E-BERT."""

NULL_RANGE: Final = 0.02
"""e_ε begins uniform between this and its negative: the `initializer_range` of BERT."""


@dataclass(frozen=True, kw_only=True)
class EBertLinkerConfig:
    """Settings of `EBertLinker`.

    Attributes:
        width: E.
        null: whether ε is a candidate of each span.
    """

    width: int
    null: bool = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UsageError(f"entities of width {self.width}; it is 1 or more")


class EBertLinkerInputs(NamedTuple):
    """Sequences with masked entities, and the candidates of each.

    Attributes:
        text: (B, T) sequences, with the vectors that are read.
        masks: (N, 2) int64, sequence and position of each masked entity.
        vectors: (U, S) float32, stored vectors of the candidates.
        candidates: (N, C) int64, rows of *vectors*; -1 for padding.
        log_priors: (N, C) float32, log p(a) of each candidate.
    """

    text: EBertInputs
    masks: Tensor
    vectors: Tensor
    candidates: Tensor
    log_priors: Tensor

    def to(self, device: torch.device, **_: object) -> "EBertLinkerInputs":
        """Return them on *device*."""
        masks, vectors, candidates, log_priors = (tensor.to(device) for tensor in self[1:])
        return EBertLinkerInputs(self.text.to(device), masks, vectors, candidates, log_priors)


class EBertLinker(nn.Module):
    """A masked language model that predicts entities.

    One call at a time: what a call reads at is kept on the head until it ends, not in the call.

    Args:
        ebert: E-BERT around a masked language model of transformers; its table of word pieces is frozen.
        config: settings.
        generator: generator that e_ε is drawn with; None: torch's own.

    Raises:
        UsageError: if the model predicts no masked words, as one that generates words, or its decoder has
            weights of its own.

    Examples:
        >>> linker = EBertLinker(EBert(model, ebert_config, weight), EBertLinkerConfig(width=768))
        >>> linker(inputs)                                  # EBertLinkerInputs -> (N, C + 1)
    """

    def __init__(
        self, ebert: EBert, config: EBertLinkerConfig, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        decoder = check_decoder(ebert.model)
        self.ebert, self.config = ebert, config
        self._call: _Call | None = None
        base: Any = ebert.model.base_model
        base.register_forward_hook(self._select_masks)
        decoder.register_forward_pre_hook(self._stop_before_decoder)
        table: Any = ebert.model.get_input_embeddings()
        table.weight.requires_grad_(False)
        if config.null:
            self.null_vector = nn.Parameter(torch.empty(config.width))
            self.null_bias = nn.Parameter(torch.zeros(1))
            nn.init.uniform_(self.null_vector, -NULL_RANGE, NULL_RANGE, generator=generator)

    def forward(self, inputs: EBertLinkerInputs) -> Tensor:
        """Return the scores of candidates (N, C), and of ε behind them; -inf for padding.

        Args:
            inputs: sequences with N masked entities.
        """
        transformed = self.transform(inputs.text, inputs.masks).float()  # (N, E)
        with torch.autocast(transformed.device.type, enabled=False):  # bfloat16 is too coarse for log p(a)
            entities = self.ebert.map(inputs.vectors)  # (U, E)
            of_spans = entities[inputs.candidates.clamp(min=0)]  # (N, C, E)
            scores = torch.einsum("nce,ne->nc", of_spans, transformed) + inputs.log_priors
            scores = scores.masked_fill(inputs.candidates < 0, -torch.inf)
            if not self.config.null:
                return scores
            null = functional.linear(transformed, self.null_vector[None], self.null_bias)
        return torch.cat([scores, null], dim=1)

    def transform(self, text: EBertInputs, masks: Tensor) -> Tensor:
        """Return F(h), (N, E): what the decoder of the masked language model would read at the masks.

        Args:
            text: sequences.
            masks: (N, 2) sequence and position.
        """
        self._call = _Call(masks)
        try:
            self.ebert(text)
        except _Transformed as reached:
            return reached.vectors
        finally:
            self._call = None
        raise UsageError(f"{type(self.ebert.model).__name__} did not use its decoder: it is no masked model")

    def _select_masks(self, base: nn.Module, args: Any, output: Any) -> Any:
        """Leave the vectors at the masks to what stands on the encoder: a hook of torch."""
        if self._call is None:
            return output
        rows, positions = self._call.masks.unbind(1)
        if isinstance(output, tuple):
            return (output[0][rows, positions], *output[1:])
        output.last_hidden_state = output.last_hidden_state[rows, positions]
        return output

    def _stop_before_decoder(self, decoder: nn.Module, args: Any) -> None:
        """End the call with what the decoder would read: a hook of torch."""
        if self._call is not None:
            raise _Transformed(args[0])

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the E-BERT, its masked language model and ε into *folder*, which is made."""
        self.ebert.save_pretrained(folder)
        save_head(Path(folder) / NULL, KIND, self.config, dict(self.named_parameters(recurse=False)))

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, ready to be asked.

        Raises:
            NotThere, DamagedModel, UsageError: as `EBert.from_pretrained` does.
        """
        folder = Path(folder)
        config = read_settings(folder / NULL, KIND, EBertLinkerConfig)
        ebert = EBert.from_pretrained(folder, device="cpu")
        head = load_module(folder / NULL, lambda: cls(ebert, config))
        return head.to(pick_device(device)).eval()


class _Call(NamedTuple):
    """A call under way: (N, 2) sequence and position of the masks."""

    masks: Tensor


class _Transformed(Exception):
    """Ends a call before the decoder, whose vocabulary nobody asks for."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors


def check_decoder(model: "PreTrainedModel") -> nn.Module:
    """Return the decoder of a masked language model, whose weights are its input embeddings.

    Raises:
        UsageError: if it predicts no masked words, or has a decoder with weights of its own.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    untyped: Any = model
    decoder, table = untyped.get_output_embeddings(), untyped.get_input_embeddings()
    name = type(model).__name__
    generates = untyped.can_generate() and name not in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()
    if decoder is None or generates:
        does = "generates words, and " if generates else ""
        raise UsageError(
            f"{name} {does}predicts no masked words, and E-BERT-MLM links by what does: begin as a masked "
            "language model"
        )
    if decoder.weight is not table.weight:
        raise UsageError(
            f"the decoder of this {type(model).__name__} has weights of its own (tie_word_embeddings is "
            "false): entities are mapped among the input embeddings, and mean nothing to it; begin as one "
            "whose decoder is tied to these"
        )
    output: nn.Module = decoder
    return output
