"""A re-ranker: the best candidates of another linker, read together with the mention in its context.

After ESC (Barba et al. 2021, "ESC: Redesigning WSD with Extractive Sense Comprehension"): an encoder reads
the context and the texts of all candidates as one sequence, and each candidate gets a score there.

    B  mentions             C  candidates of one    N  word pieces of context and candidates
    H  encoder width        E  width of input embeddings

    [CLS] context [SEP] text 1 [SEP] text 2 [SEP] … ─encoder─▶ (B, N, H) ─means─▶ h (B, C, H) and m (B, H)

    score(c) = u · gelu(V [h_c ; m ; h_c ⊙ m]) + w log p₁(c)        p₁: the first stage's, w begins as 1

h_c is the mean over the pieces of a candidate, its [SEP] among them, m that over those of the mention, to
whose input embeddings a vector is added that is learnt. It begins as zeros.

No candidate is before another. The sequence is a sentence tree of `kgkit.heads.kbert`: all candidates hang
from the context. Each text stands where it would stand if it were the only one, it sees the context and
itself, and the context sees all. So a candidate and its context are a pair as encoders are pretrained to read
them, and what candidates have to do with each other goes through the context: two layers bring it from one to
the other. Another order of the candidates gives the same scores.

Departures:
    ESC marks the right text as the start and the end of an answer. Here each text has a score, as the number
    of candidates is known. ESC lets every piece see every other, so that its scores depend on the order, and
    draws an order for each reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.device import pick_device
from kgkit.encoder.folder import ENCODER
from kgkit.encoder.loading import quiet
from kgkit.errors import UsageError
from kgkit.heads.folder import (
    SavedHead,
    card_of,
    check_shapes,
    encoder_below,
    read_settings,
    reading_weights,
)
from kgkit.heads.kbert import KBert, KBertInputs
from kgkit.heads.parts import check_dimensions

if TYPE_CHECKING:
    from typing import Self

    from transformers import PreTrainedModel

KIND: Final = "reranker"

_RANGE: Final = 0.02
"""The standard deviation of weights that are drawn, as in BERT."""


@dataclass(frozen=True, kw_only=True)
class RerankerConfig:
    """Settings of `Reranker`.

    Attributes:
        hidden: H.
        embedding: E.
        control: whether no text is read: scores are those of the first stage, times w.
        dropout: dropout of the inner layer.
        model: class of transformers that the encoder was saved as.
    """

    hidden: int
    embedding: int
    control: bool = False
    dropout: float = 0.1
    model: str = "AutoModel"

    def __post_init__(self) -> None:
        if min(self.hidden, self.embedding) < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"hidden is {self.hidden}, embedding {self.embedding}, dropout {self.dropout}; the first two "
                "are 1 or more, dropout is from 0 to below 1"
            )

    @classmethod
    def of(cls, model: "PreTrainedModel", **settings: Any) -> "Self":
        """Return the settings for an encoder, with *settings* beside its widths."""
        table: Any = model.get_input_embeddings()
        return cls(hidden=int(model.config.hidden_size), embedding=int(table.weight.shape[1]), **settings)


class RerankerInputs(NamedTuple):
    """Mentions with their best candidates.

    Attributes:
        text: (B, N) contexts and candidates: branch 0 is the context, branch c the c-th candidate, from 1.
        mentions: (B, N) bool, pieces of the mention.
        candidates: (B, C) bool, whether there is a candidate.
        first: (B, C) float32, log p₁; any number where there is no candidate.
    """

    text: KBertInputs
    mentions: Tensor
    candidates: Tensor
    first: Tensor

    def to(self, device: torch.device, **_: object) -> "RerankerInputs":
        """Return them on *device*."""
        mentions, candidates, first = (tensor.to(device) for tensor in self[1:])
        return RerankerInputs(self.text.to(device), mentions, candidates, first)


class ListwiseScorer(nn.Module):
    """What a re-ranker has beside its encoder: the vector of the mention's pieces, V, u and w.

    Args:
        config: settings.
        generator: generator that V and u are drawn with; None: torch's own.
    """

    def __init__(self, config: RerankerConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.mark = nn.Parameter(torch.zeros(config.embedding))
        self.inner = nn.Linear(3 * config.hidden, config.hidden)
        self.outer = nn.Parameter(torch.empty(config.hidden))
        self.weight = nn.Parameter(torch.ones(()))
        self.dropout = nn.Dropout(config.dropout)
        with torch.no_grad():
            self.inner.weight.normal_(std=_RANGE, generator=generator)
            self.inner.bias.zero_()
            self.outer.normal_(std=_RANGE, generator=generator)

    def forward(self, candidates: Tensor, mentions: Tensor) -> Tensor:
        """Return u · gelu(V [h ; m ; h ⊙ m]), (B, C).

        Args:
            candidates: h, (B, C, H).
            mentions: m, (B, H).
        """
        mention = mentions[:, None].expand_as(candidates)  # (B, C, H)
        joined = torch.cat([candidates, mention, candidates * mention], -1)  # (B, C, 3 H)
        inner = self.dropout(functional.gelu(self.inner(joined)))  # (B, C, H)
        scores: Tensor = inner @ self.outer  # (B, C)
        return scores


class Reranker(SavedHead):
    """Scores the best candidates of a mention, which it reads together.

    Args:
        model: encoder, whose weights are trained with the head's, or frozen for a control. Its tokens stand
            where they are told to, as `KBert` asks.
        config: settings; None: those of the encoder.
        scorer: what it has beside the encoder; None: drawn anew.
        generator: generator that this is drawn with; None: torch's own.

    Raises:
        UsageError: if the encoder has no positions that it can be told, or other widths than the settings.

    Examples:
        >>> reranker = Reranker(AutoModel.from_pretrained("sentence-transformers/all-MiniLM-L6-v2"))
        >>> reranker(inputs)                                # RerankerInputs -> (B, C)
        >>> reranker.save_pretrained("mine")
    """

    kind, settings = KIND, RerankerConfig
    config: RerankerConfig

    def __init__(
        self,
        model: "PreTrainedModel",
        config: RerankerConfig | None = None,
        scorer: ListwiseScorer | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kbert = KBert(model)
        self.config = config or RerankerConfig.of(model)
        own = RerankerConfig.of(model)
        if (self.config.hidden, self.config.embedding) != (own.hidden, own.embedding):
            raise UsageError(
                f"the head is for an encoder of width {self.config.hidden} (embeddings "
                f"{self.config.embedding}), {type(model).__name__} has {own.hidden} ({own.embedding})"
            )
        self.scorer = scorer or ListwiseScorer(self.config, generator)
        if self.config.control:
            self.requires_grad_(False)
            self.scorer.weight.requires_grad_()

    def forward(self, inputs: RerankerInputs) -> Tensor:
        """Return the scores of candidates, (B, C), natural logarithms up to a constant of the mention.

        Where there is no candidate a score is -inf.

        Args:
            inputs: mentions with their best candidates.

        Raises:
            UsageError: if shapes differ, or a candidate has no piece.
        """
        self._check(inputs)
        with torch.autocast(inputs.first.device.type, enabled=False):  # bfloat16 is too coarse for log p₁
            scores = self.scorer.weight * inputs.first.to(self.scorer.weight.dtype)  # (B, C)
        if not self.config.control:
            scores = scores + self._read(inputs)
        return scores.masked_fill(~inputs.candidates, -torch.inf)

    def _read(self, inputs: RerankerInputs) -> Tensor:
        """Return what the texts say of the candidates, (B, C)."""
        text, count = inputs.text, inputs.candidates.shape[1]
        table: Any = self.kbert.model.get_input_embeddings()
        marks = inputs.mentions[:, :, None] * self.scorer.mark  # (B, N, E)
        embedded = table(text.ids) + marks.to(table.weight.dtype)  # (B, N, E)
        hidden = self.kbert(text, input_ids=None, inputs_embeds=embedded).last_hidden_state  # (B, N, H)
        numbers = torch.arange(1, count + 1, device=hidden.device)[:, None]  # (C, 1)
        pieces = (text.branches[:, None] == numbers) & text.real[:, None]  # (B, C, N)
        with torch.autocast(hidden.device.type, enabled=False):
            hidden = hidden.to(self.scorer.outer.dtype)
            candidates = _means(hidden, pieces)  # (B, C, H)
            [mentions] = _means(hidden, inputs.mentions[:, None]).unbind(1)  # (B, H)
            scores: Tensor = self.scorer(candidates, mentions)
        return scores

    def _check(self, inputs: RerankerInputs) -> None:
        """Make sure that shapes fit, and that each candidate has a text.

        Raises:
            UsageError: if something does not.
        """
        if inputs.candidates.ndim != 2:
            raise UsageError(f"expected candidates (B, C), found {tuple(inputs.candidates.shape)}")
        check_dimensions(
            inputs, {"mentions": tuple(inputs.text.ids.shape), "first": tuple(inputs.candidates.shape)}
        )
        counts, texts = inputs.candidates.sum(1), inputs.text.branches.amax(1)
        if not torch.equal(texts, counts):
            raise UsageError(
                f"mentions have {counts.tolist()} candidates, and texts of {texts.tolist()} are to be read"
            )

    def _saved_config(self) -> RerankerConfig:
        return replace(self.config, model=type(self.kbert.model).__name__)

    def _own_weights(self) -> Mapping[str, Tensor]:
        return self.scorer.state_dict()

    def _save_encoder(self, folder: Path) -> None:
        with quiet():
            self.kbert.model.save_pretrained(folder)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, with its encoder, ready to be asked.

        Raises:
            NotThere, DamagedModel, UsageError, MissingExtra: as `SavedHead.from_pretrained` does.
        """
        folder, where = Path(folder), pick_device(device)
        config = read_settings(folder, KIND, RerankerConfig)
        scorer = _read_scorer(folder, config)  # before the encoder: it is quickly refused
        model, _ = encoder_below(folder, folder.absolute() / ENCODER, config.model)
        return cls(model, config, scorer).to(where).eval()

    @classmethod
    def around(cls, model: "PreTrainedModel", folder: Path) -> "Self":
        """Return the head in *folder* around an encoder that is loaded already, on its device.

        Raises:
            NotThere, DamagedModel, UsageError, MissingExtra: as `from_pretrained` does.
        """
        config = read_settings(folder, KIND, RerankerConfig)
        return cls(model, config, _read_scorer(folder, config)).to(model.device).eval()

    def _card(self, about: str) -> str:
        read = "reads none of it, as a control" if self.config.control else "reads context and candidates"
        return card_of(self, _CARD, about, model=type(self.kbert.model).__name__, read=read)


def _means(hidden: Tensor, pieces: Tensor) -> Tensor:
    """Return the means (B, C, H) of vectors (B, N, H) over the pieces (B, C, N) bool; zeros of none."""
    weights = pieces.to(hidden.dtype)
    return weights @ hidden / weights.sum(-1, keepdim=True).clamp(min=1)


def _read_scorer(folder: Path, config: RerankerConfig) -> ListwiseScorer:
    """Return what a re-ranker has beside its encoder, from *folder*.

    Raises:
        DamagedModel: if it cannot be read, or does not fit the settings.
    """
    check_shapes(folder, lambda: ListwiseScorer(config).state_dict())
    scorer = ListwiseScorer(config)
    with reading_weights(folder) as weights:
        scorer.load_state_dict(weights)
    return scorer


_CARD: Final = """\
---
library_name: kgkit
tags:
- entity-linking
---

# A re-ranker of candidates

{about}A {model} that {read} in one sequence, and scores each
candidate (after Barba et al. 2021, *ESC: Redesigning WSD with Extractive Sense Comprehension*): {parameters}
parameters with those of the encoder, which lies in `encoder/` as transformers has it.

```python
from kgkit.heads import Reranker

reranker = Reranker.from_pretrained("this folder")
```
"""
