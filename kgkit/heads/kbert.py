"""K-BERT: Liu et al. (2020), "K-BERT: Enabling Language Representation with Knowledge Graph".

    B  sentence trees read at once    N  tokens of one, those of branches included    H  encoder width

    tokens (B, N), soft positions (B, N) ─embedding layer─▶ (B, N, H) ─mask-transformer─▶ hidden (B, N, H)
    branches, hooks (B, N) ─seeing layer─▶ M (B, N, N) ────────────────────┘

The encoder is a model of transformers like BERT, whose tokens stand where they are told to, with whatever
stands on top of it; its own code runs, and nothing is added to its parameters. K-BERT's are two of the things
it is told: where each token stands (section 3.4, soft-position embedding) and what it may attend to (section
3.5, the visible matrix, equations (3) to (6)). How trees are made and what branches and hooks are,
`kgkit.trees` says.

The visible matrix is never stored: it follows from 2 N numbers. As a tensor (B, 1, N, N) it exists while the
encoder runs.

Departures:
    Equation (4) adds M before the division by √d; that is one thing, as M is 0 or -∞.
    In the released code padding sees what it is told to, nothing, and attends to everything alike; here it
    sees itself alone. No token attends to it in either.
    The released code trains BERT's third segment for branches; here, as in the paper, a branch is of the
    segment of its mention.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import torch
from torch import Tensor, nn

from kgkit.encoder.attention import additive_mask, attention_of
from kgkit.errors import UsageError
from kgkit.heads.folder import EncoderHead
from kgkit.heads.parts import to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KIND: Final = "kbert"

_WITH_POSITION_TABLE: Final = frozenset(
    ["albert", "bert", "camembert", "distilbert", "electra", "ernie", "roberta", "xlm-roberta"]
)
"""Types of models whose tokens stand where they are told to, and nowhere else: others count distances too."""

_WITH_MATRIX: Final = ("eager", "sdpa")


@dataclass(frozen=True, kw_only=True)
class KBertConfig:
    """Settings of `KBert`.

    Attributes:
        model: class of transformers that the encoder was saved as.
    """

    model: str = "AutoModel"

    REMOVED: ClassVar[Mapping[str, object]] = {"soft_positions": True, "visible_matrix": True}


class KBertInputs(NamedTuple):
    """What K-BERT reads.

    Attributes:
        ids: (B, N) int64, word pieces of trees, special ones included.
        positions: (B, N) int64, soft positions; 0 where padded.
        branches: (B, N) int64, 0 for the text, k for what the k-th fact injects.
        hooks: (B, N) int64, m for the m-th mention that facts hang from, and for them; else 0.
        real: (B, N) bool, whether there is a token.
        types: (B, N) int64, segment of each; None for an encoder without segments.
    """

    ids: Tensor
    positions: Tensor
    branches: Tensor
    hooks: Tensor
    real: Tensor
    types: Tensor | None = None

    def to(self, device: torch.device, **_: object) -> "KBertInputs":
        """Return them on *device*."""
        return to_device(self, device)


def visible_matrix(inputs: KBertInputs) -> Tensor:
    """Return (B, N, N) bool, whether the token of a row sees that of a column: equation (3).

    The text sees the text, a branch itself, a mention and what hangs from it each other; padding is seen by
    nothing but itself.
    """
    branches, hooks, real = inputs.branches, inputs.hooks, inputs.real
    mine, other = branches[:, :, None], branches[:, None, :]  # (B, N, 1), (B, 1, N)
    hooked = (hooks[:, :, None] == hooks[:, None, :]) & (hooks[:, :, None] > 0)  # (B, N, N)
    visible = (mine == other) | (hooked & ((mine == 0) | (other == 0)))
    itself = torch.eye(branches.shape[1], dtype=torch.bool, device=branches.device)
    return (visible & real[:, None, :] & real[:, :, None]) | itself


class KBert(EncoderHead):
    """An encoder that reads sentence trees.

    Args:
        model: encoder, or a model of transformers around it (`BertForMaskedLM`, …); it is not changed.
        config: settings.

    Raises:
        UsageError: if the model has no positions that it can be told.

    Examples:
        >>> kbert = KBert(AutoModel.from_pretrained("bert-base-chinese"))
        >>> kbert(inputs).last_hidden_state                  # KBertInputs -> (B, N, H)
        >>> kbert.save_pretrained("mine")
    """

    kind, settings = KIND, KBertConfig
    config: KBertConfig

    def __init__(self, model: "PreTrainedModel", config: KBertConfig | None = None) -> None:
        super().__init__()
        self.model, self.config = model, config or KBertConfig()
        table = _position_table(model)
        if table is None or model.config.model_type not in _WITH_POSITION_TABLE:
            raise UsageError(
                f"{type(model).__name__} cannot be told by a table alone where tokens stand; K-BERT takes "
                f"encoders of the types {', '.join(sorted(_WITH_POSITION_TABLE))}"
            )
        if (name := attention_of(model)) not in _WITH_MATRIX:
            raise UsageError(
                f"the attention {name!r} takes no matrix of which token sees which: choose one of "
                f"{', '.join(_WITH_MATRIX)} (kgkit.encoder.attention.set_attention)"
            )
        # RoBERTa and its like count from behind the padding token's id.
        self._first = 0 if table.padding_idx is None else table.padding_idx + 1

    def forward(self, inputs: KBertInputs, **model_inputs: Any) -> Any:
        """Return what the model returns: of an encoder `last_hidden_state` (B, N, H).

        Trees without a fact are read as the model reads texts, bit for bit.

        Args:
            inputs: batch of trees.
            model_inputs: further arguments of the model, as `labels`.
        """
        arguments = {"input_ids": inputs.ids, **model_inputs}
        if inputs.types is not None:
            arguments["token_type_ids"] = inputs.types
        if not inputs.hooks.any():
            return self.model(attention_mask=inputs.real.long(), **arguments)
        arguments["position_ids"] = inputs.positions + self._first
        mask = additive_mask(visible_matrix(inputs), next(self.model.parameters()).dtype)
        return self.model(attention_mask=mask, **arguments)


def _position_table(model: "PreTrainedModel") -> nn.Embedding | None:
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    return table if isinstance(table, nn.Embedding) else None
