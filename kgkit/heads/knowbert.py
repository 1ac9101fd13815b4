"""KnowBert: Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations", section 3.

Its entity linker, equations (1) to (5), serves by itself too, on top of an encoder, frozen or not; `KAR`
adds what it finds to the words, (6) and (7); `KnowBert` stands one or more of these between the layers of an
encoder.

    B  sentences     M  mentions per sentence    H  encoder width
    T  word pieces   C  candidates per mention   E  width in which spans and entities meet
    F  features of a candidate in its mention; the prior alone, as published
    D  entity vector width, as stored            N  entities with a vector of their own to train
    U  entities of a batch, each once

    hidden (B, T, H) ─(1)─▶ words ─pooling─▶ spans ─(2)─▶ spans (B, M, E) ─┐
    vectors (B, M, C, D) ──────────────────▶ entities (B, M, C, E) ────────┴─(3)─▶ scores (B, M, C) ─▶ (4) (5)
                                                                                └─▶ weighted (B, M, E)
    spans + weighted ─(6)─▶ spans with entities ─┐
    words ───────────────── attend to them ──────┴─▶ words (B, T, E) ─(7)─▶ + hidden (B, T, H)

A mask is True where there is something. Mentions and candidates that are padded have zeros in the outputs (a
score of -inf) and reach nothing else: what stands there has a gradient of exactly zero.

Departures:
    From the paper, as the released code (allenai/kb) has it: the dot product of (3) is divided by √E; the
    pooled spans, and the entities' vectors, go through a LayerNorm (`norms`); pooling weighs word pieces by
    one linear layer, where Lee et al. (2017) have a network with a hidden one; parameters are drawn from a
    normal distribution of width 0.02; the spans with entities, and what goes back to the encoder, go through
    a LayerNorm. Every LayerNorm has an ε of 1e-5, those inside (2) too.
    From both: (4) takes several gold candidates, and maximises the sum of their probabilities; (5) takes
    each of them as one to be found. (5) is a sum over candidates, as in the paper, and both are means over
    mentions; the code takes the mean of (5) over all candidates of a batch. NULL is one trained vector,
    with no LayerNorm; the code takes a row of the entity matrix. Features besides the prior, a
    learned projection of stored vectors, trained vectors of entities that are added to it, `input_dropout`
    and `control` are additions, and off unless asked for. The way back to the encoder begins as the
    pseudo-inverse of (1): the code inverts a matrix that has no inverse where E < H, and adds the bias that
    is to be taken away; it may begin as nothing, see `KAR.silence`. [MASK], too, is one trained vector.
    Elsewhere: priors of WordNet's senses are (count + 1) / sum (decision 0005); those of the 30 candidates
    that are kept are not divided by their sum again (docs/priors.md); the vectors of entities come
    with a mean square of 1 for each kind, and a part of speech is a column of theirs, where the code has a
    row for each synset's (`kgkit.inputs.knowbert`); a mention is hidden once, whole (`kgkit.inputs.masking`).
    No rule maps names of people, groups and places to the synsets of these words by their type, as the
    code's does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.device import pick_device
from kgkit.encoder.loading import quiet
from kgkit.errors import UsageError
from kgkit.heads.folder import card_of, check_shapes, encoder_below, read_settings, reading_weights, save_head

if TYPE_CHECKING:
    from typing import Self

    from transformers import PreTrainedModel

KIND: Final = "knowbert-linker"
KNOWBERT: Final = "knowbert"
ENCODER: Final = "encoder"
"""The folder, in that of a KnowBert, of its encoder, or of the model around it."""


@dataclass(frozen=True, kw_only=True)
class EntityLinkerConfig:
    """Settings of `EntityLinker`.

    The defaults are those of KnowBert-WordNet; KnowBert-Wiki has `loss="margin", threshold=0.0, null=True,
    width=300`.
    """

    hidden: int  # H
    width: int = 200  # E
    stored: int | None = None  # D, projected to E by a learned map; None: it is E, and there is no map
    features: int = 1  # F
    entities: int = 0  # N, with a trained vector added to the stored one; 0: no such table
    attention: bool = True  # between the mentions of a sentence, (2)
    heads: int = 4  # of (2)
    inner: int = 1024  # hidden width of (2)
    scorer: int = 100  # hidden width of the MLP of (3)
    norms: bool = True  # the LayerNorms that the released code adds
    null: bool = False  # NULL is a candidate of every mention
    mask: bool = False  # there is an entity [MASK], for mentions whose words are hidden
    threshold: float | None = None  # δ: candidates that score less are not in the weighted vector
    loss: Literal["softmax", "margin"] = "softmax"  # (4) or (5)
    margin: float = 0.2  # γ of (5)
    dropout: float = 0.1  # inside (2), as in BERT
    input_dropout: float = 0.0  # of the encoder's vectors: those that are cached have had none
    entity_dropout: float = 0.0  # of the trained vectors of entities
    control: bool = False  # read stored vectors as zeros: what is reached without their knowledge

    def __post_init__(self) -> None:
        for name in ("hidden", "width", "stored", "heads", "inner", "scorer"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise UsageError(f"{name} is {size}; it is 1 or more")
        for name in ("features", "entities", "margin"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it is 0 or more")
        for name in ("dropout", "input_dropout", "entity_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it is from 0 to below 1")
        if self.attention and self.width % self.heads:
            raise UsageError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if self.loss not in ("softmax", "margin"):
            raise UsageError(f"loss is {self.loss!r}; it is 'softmax' or 'margin'")


@dataclass(frozen=True, kw_only=True)
class KARConfig:
    """Settings of a `KAR`: a knowledge base at a place in the encoder.

    Attributes:
        linker: of its entity linker.
        layer: of the encoder, counted from 1, behind which it stands; 0: behind the embeddings.
        heads: of the attention of word pieces to the spans.
        inner: hidden width of its feed-forward network.
        dropout: of that block, of ẽ, and of what is projected back.
    """

    linker: EntityLinkerConfig
    layer: int
    heads: int = 4
    inner: int = 1024
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.layer < 0 or min(self.heads, self.inner) < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"out of range in {self}: layer >= 0, heads, inner >= 1, dropout from 0 to below 1"
            )
        if self.linker.width % self.heads:
            raise UsageError(f"a width of {self.linker.width} cannot be divided among {self.heads} heads")


class LinkerInputs(NamedTuple):
    """What the linker reads.

    Vectors of mentions that were made before, and cached, are read as `hidden`
    with T = M, and spans of one: [0, 1), [1, 2), …

    Attributes:
        hidden: (B, T, H) of an encoder.
        spans: (B, M, 2) int64, the word pieces of each mention, end exclusive; any numbers where padded.
        mentions: (B, M) bool, which are there.
        vectors: (B, M, C, D) stored vectors of the candidates, or (U, D) of the batch's entities, each once;
            zeros for an entity without one.
        features: (B, M, C, F) of a candidate in its mention: its prior, …
        candidates: (B, M, C) bool, which are there.
        ids: (B, M, C), or (U,), int64, rows of the trained vectors; -1 for an entity that has none. None
            without them.
        null_features: (B, M, F) of NULL; None: zeros. Read where NULL is a candidate.
        rows: (B, M, C) int64, which of the batch's entities each candidate is; any number where padded. None:
            `vectors` has those of each candidate.
        masked: (B, M) bool, of which mentions [MASK] is the candidate: the first one, which says nothing of
            the entity, nor do its features. None: of none.
    """

    hidden: Tensor
    spans: Tensor
    mentions: Tensor
    vectors: Tensor
    features: Tensor
    candidates: Tensor
    ids: Tensor | None = None
    null_features: Tensor | None = None
    rows: Tensor | None = None
    masked: Tensor | None = None


class LinkerOutput(NamedTuple):
    """What the linker says. Where NULL is a candidate it is the last: C is one more than was given.

    Attributes:
        scores: (B, M, C) ψ of (3), float32 at least; -inf where there is no candidate.
        probabilities: (B, M, C) their softmax; zeros for a mention without candidates.
        weighted: (B, M, E) ẽ, the mean of the candidates at or above δ, weighted by the softmax over them;
            NULL where none of them is; zeros for a mention without candidates.
        spans: (B, M, E) S^e of (2), or the pooled spans where (2) is switched off.
        words: (B, T, E) H^proj of (1).
    """

    scores: Tensor
    probabilities: Tensor
    weighted: Tensor
    spans: Tensor
    words: Tensor


def masked_softmax(scores: Tensor, there: Tensor) -> Tensor:
    """Return the softmax over the last dimension, of what is there; zeros, not NaN, where nothing is.

    Args:
        scores: (..., K).
        there: (..., K) bool.
    """
    lowest = torch.finfo(scores.dtype).min  # finite: a row of -inf has a gradient of NaN
    weights = torch.softmax(scores.masked_fill(~there, lowest), dim=-1)
    return weights.masked_fill(~there, 0.0)


@torch.no_grad()
def draw(module: nn.Module, generator: torch.Generator | None) -> None:
    """Draw the first weights of linear layers as BERT does; trained vectors of entities begin as zeros."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.weight.normal_(std=0.02, generator=generator)
            part.bias.zero_()
        elif isinstance(part, nn.Embedding):
            part.weight.zero_()


class SpanPooling(nn.Module):
    """Self-attentive pooling (Lee et al. 2017): a mean of word pieces, by weights that are learned."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attend = nn.Linear(width, 1)

    def forward(self, words: Tensor, spans: Tensor) -> Tensor:
        """Pool words (B, T, E) over spans (B, M, 2); (B, M, E), zeros for a span without a piece."""
        places = torch.arange(words.shape[1], device=words.device)
        inside = (places >= spans[..., :1]) & (places < spans[..., 1:])  # (B, M, T)
        logits = self.attend(words).transpose(1, 2)  # (B, 1, T)
        weights = masked_softmax(logits.expand(inside.shape), inside)  # (B, M, T)
        return torch.matmul(weights.to(words.dtype), words)  # (B, M, E)


class TransformerBlock(nn.Module):
    """One layer of a transformer, as BERT has it, in which some vectors attend to others, or to themselves.

    Q  vectors that attend    K  vectors that are attended to    h  heads    e = E / h

    Args:
        width: E.
        heads: h.
        inner: hidden width of the feed-forward network.
        dropout: of attention weights, and of both sums.
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

    def forward(self, states: Tensor, others: Tensor, there: Tensor) -> Tensor:
        """Return the states after they attended to the others.

        Args:
            states: (B, Q, E).
            others: (B, K, E).
            there: (B, K) bool, which of the others may be attended to; where none may, attention adds zeros.

        Returns:
            (B, Q, E).
        """
        query = self._split(self.query(states))  # (B, h, Q, e)
        key = self._split(self.key(others))  # (B, h, K, e)
        value = self._split(self.value(others))  # (B, h, K, e)
        logits = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])  # (B, h, Q, K)
        weights = masked_softmax(logits, there[:, None, None, :].expand(logits.shape))
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


class EntityVectors(nn.Module):
    """Vectors of candidates: as stored, or projected, with the trained vector of each entity added."""

    def __init__(self, config: EntityLinkerConfig) -> None:
        super().__init__()
        self.control = config.control
        self.project = None if config.stored is None else nn.Linear(config.stored, config.width)
        # The row behind the last is of no entity: it gets no gradient, and stays zero.
        count = config.entities
        self.table = nn.Embedding(count + 1, config.width, padding_idx=count, sparse=True) if count else None
        self.dropout = nn.Dropout(config.entity_dropout)
        self.norm = nn.LayerNorm(config.width) if config.norms else nn.Identity()

    def forward(self, inputs: LinkerInputs, real: Tensor) -> Tensor:
        """Return (B, M, C, E); zeros where nothing is *real* (B, M, C)."""
        if inputs.rows is None:  # most places of a padded batch are empty
            ids = None if inputs.ids is None else inputs.ids[real]
            own = self._of(inputs.vectors[real], ids)  # (R, E)
            found = own.new_zeros((*real.shape, own.shape[-1]))
            return found.index_put(real.nonzero(as_tuple=True), own)
        once = functional.pad(self._of(inputs.vectors, inputs.ids), (0, 0, 0, 1))  # (U + 1, E)
        return once[inputs.rows.masked_fill(~real, len(once) - 1)]

    def _of(self, vectors: Tensor, ids: Tensor | None) -> Tensor:
        """Return (R, E) for vectors (R, D) and ids (R,)."""
        entities = torch.zeros_like(vectors) if self.control else vectors
        if self.project is not None:
            entities = self.project(entities)  # (R, E)
        if self.table is not None and ids is not None:
            rows = ids.masked_fill(ids < 0, self.table.num_embeddings - 1)
            entities = entities + self.dropout(self.table(rows))
        normed: Tensor = self.norm(entities)
        return normed


class CandidateScorer(nn.Module):
    """The score of a candidate, from its features and how its vector fits the span: (3)."""

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(1 + features, inner)
        self.down = nn.Linear(inner, 1)

    def forward(self, spans: Tensor, entities: Tensor, features: Tensor) -> Tensor:
        """Score entities (B, M, C, E) with features (B, M, C, F) for spans (B, M, E); (B, M, C).

        It multiplies in the precision of its weights, whatever autocast says: in bfloat16 what a threshold,
        a margin and a temperature tell apart would be rounded away.
        """
        exact = self.up.weight.dtype
        with torch.autocast(spans.device.type, enabled=False):
            fit = torch.matmul(entities.to(exact), spans[..., None].to(exact)) / math.sqrt(spans.shape[-1])
            pair = torch.cat([fit, features.to(exact)], dim=-1)  # (B, M, C, 1 + F)
            scores: Tensor = self.down(functional.relu(self.up(pair))).squeeze(-1)  # (B, M, C)
        return scores.to(torch.promote_types(exact, torch.float32))


def weigh(scores: Tensor, entities: Tensor, threshold: float | None, null: Tensor | None) -> Tensor:
    """Return ẽ (B, M, E), the mean of entities weighted by the softmax of their scores.

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        entities: (B, M, C, E).
        threshold: δ: a candidate below it has no weight; None: all have.
        null: (E,) what stands for a mention whose candidates are all below δ.
    """
    real = ~scores.isneginf()  # (B, M, C)
    passing = real if threshold is None else real & (scores >= threshold)
    weights = masked_softmax(scores, passing).to(entities.dtype)  # (B, M, C)
    weighted = torch.matmul(weights[..., None, :], entities).squeeze(-2)  # (B, M, E)
    if threshold is None or null is None:
        return weighted
    refused = real.any(-1) & ~passing.any(-1)  # (B, M)
    return torch.where(refused[..., None], null.to(weighted.dtype), weighted)


def softmax_losses(scores: Tensor, gold: Tensor) -> Tensor:
    """Return (4), the cross entropy, of each mention.

    -log Σ_g exp(ψ_g) / Σ_k exp(ψ_k), where g runs over the gold candidates.

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        gold: (B, M, C) bool.

    Returns:
        (B, M), 0 for a mention without gold among its candidates.
    """
    real = ~scores.isneginf()
    lowest = torch.finfo(scores.dtype).min  # finite: see `masked_softmax`
    every = scores.masked_fill(~real, lowest).logsumexp(-1)  # (B, M)
    right = scores.masked_fill(~(real & gold), lowest).logsumexp(-1)  # (B, M)
    return (every - right).masked_fill(~(real & gold).any(-1), 0.0)


def margin_losses(scores: Tensor, gold: Tensor, margin: float) -> Tensor:
    """Return (5), the max-margin loss, of each mention.

    Σ_g max(0, γ - ψ_g) + Σ_k max(0, γ + ψ_k), where g runs over the gold candidates and k over the others.

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        gold: (B, M, C) bool.
        margin: γ.

    Returns:
        (B, M), 0 for a mention without gold among its candidates.
    """
    real = ~scores.isneginf()
    finite = scores.masked_fill(~real, 0.0)
    missed = functional.relu(torch.where(gold, margin - finite, margin + finite))  # (B, M, C)
    return missed.masked_fill(~real, 0.0).sum(-1).masked_fill(~(real & gold).any(-1), 0.0)


class EntityLinker(nn.Module):
    """KnowBert's entity linker, (1) to (5).

    The trained vectors of entities have a sparse gradient: they need an
    optimizer that takes it, as `torch.optim.SparseAdam` does.

    Args:
        config: settings.
        generator: that the first parameters are drawn with.

    Example:
        >>> linker = EntityLinker(EntityLinkerConfig(hidden=384, stored=384))
        >>> output = linker(inputs)                     # LinkerInputs
        >>> linker.loss(output, gold).backward()        # gold: bool, of the shape of output.scores
        >>> linker.save_pretrained("my-linker")
    """

    def __init__(self, config: EntityLinkerConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.input_dropout = nn.Dropout(config.input_dropout)
        self.project = nn.Linear(config.hidden, config.width)  # W1, b1
        self.pool = SpanPooling(config.width)
        self.norm = nn.LayerNorm(config.width) if config.norms else nn.Identity()
        self.block = (
            TransformerBlock(config.width, config.heads, config.inner, config.dropout)
            if config.attention
            else None
        )
        self.entities = EntityVectors(config)
        self.score = CandidateScorer(config.features, config.scorer)
        # As the stand-in of δ alone, no loss of the linker reaches it: whoever trains ẽ says so.
        self.null = (
            nn.Parameter(torch.empty(config.width), requires_grad=config.null)
            if config.null or config.threshold is not None
            else None
        )
        self.mask = nn.Parameter(torch.empty(config.width)) if config.mask else None
        draw(self, generator)
        for special in (self.null, self.mask):
            if special is not None:
                nn.init.normal_(special, std=0.02, generator=generator)

    def forward(self, inputs: LinkerInputs) -> LinkerOutput:
        """Score the candidates of the mentions of some sentences.

        Raises:
            UsageError: if the shapes do not fit each other, or the configuration.
        """
        _check(inputs, self.config)
        mentions, dtype = inputs.mentions, self.project.weight.dtype
        words = self.project(self.input_dropout(inputs.hidden.to(dtype)))  # (B, T, E)  (1)
        spans = self.norm(self.pool(words, inputs.spans))  # (B, M, E)
        if self.block is not None:
            spans = self.block(spans, spans, mentions)  # (B, M, E)  (2)
        spans = spans.masked_fill(~mentions[..., None], 0.0)

        real = inputs.candidates & mentions[..., None]  # (B, M, C)
        inputs = inputs._replace(vectors=inputs.vectors.to(dtype))
        if inputs.masked is not None:
            inputs, real, entities = self._with_mask(inputs, inputs.masked, real)
        else:
            entities = self.entities(inputs, real)  # (B, M, C, E)
        features = inputs.features.to(dtype).masked_fill(~real[..., None], 0.0)  # (B, M, C, F)
        if self.config.null:
            real, entities, features = self._with_null(inputs, real, entities, features)  # C grows by one

        scores = self.score(spans, entities, features)  # (B, M, C)  (3)
        scores = scores.masked_fill(~real, -torch.inf)
        return LinkerOutput(
            scores=scores,
            probabilities=masked_softmax(scores, real),
            weighted=weigh(scores, entities, self.config.threshold, self.null),
            spans=spans,
            words=words,
        )

    def _with_mask(
        self, inputs: LinkerInputs, masked: Tensor, real: Tensor
    ) -> tuple[LinkerInputs, Tensor, Tensor]:
        """Return candidates (B, M, C) and vectors (B, M, C, E), [MASK] alone where a mention is masked.

        The first feature, the prior, of [MASK] is 1, and all others are 0, those of NULL too: they would tell
        of what is hidden.
        """
        assert self.mask is not None  # for the type checker: `_check` made sure
        entities = self.entities(inputs, real & ~masked[..., None])  # (B, M, C, E)
        first = torch.zeros_like(real)
        first[..., 0] = masked & real[..., 0]  # (B, M, C)
        entities = torch.where(first[..., None], self.mask.to(entities.dtype), entities)
        only = inputs.features.new_zeros(inputs.features.shape[-1])  # (F,)
        only[0] = 1.0
        features = torch.where(masked[..., None, None], only, inputs.features)
        null = inputs.null_features
        if null is not None:
            null = null.masked_fill(masked[..., None], 0.0)
        inputs = inputs._replace(features=features, null_features=null)
        return inputs, torch.where(masked[..., None], first, real), entities

    def _with_null(
        self, inputs: LinkerInputs, real: Tensor, entities: Tensor, features: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add NULL behind the candidates of every mention that is there."""
        assert self.null is not None  # for the type checker: `null` makes it
        there = inputs.mentions[..., None]  # (B, M, 1)
        null = self.null.to(entities.dtype).expand(*there.shape, -1)  # (B, M, 1, E)
        own = inputs.null_features
        if own is None:
            own = features.new_zeros(*inputs.mentions.shape, self.config.features)
        own = own.to(features.dtype)[..., None, :]  # (B, M, 1, F)
        return (
            torch.cat([real, there], dim=2),
            torch.cat([entities, null.masked_fill(~there[..., None], 0.0)], dim=2),
            torch.cat([features, own.masked_fill(~there[..., None], 0.0)], dim=2),
        )

    def losses(self, output: LinkerOutput, gold: Tensor) -> tuple[Tensor, Tensor]:
        """Return (4) or (5) of each mention, and which mentions have one.

        Args:
            output: of `forward`.
            gold: (B, M, C) bool, the right candidates, NULL among them where it is a candidate: of the shape
                of `output.scores`.

        Returns:
            (B, M) losses, 0 for a mention without gold among its candidates; (B, M) bool, those with.
        """
        if gold.shape != output.scores.shape:
            null = ", NULL the last" if self.config.null else ""
            raise UsageError(
                f"gold has the shape {tuple(gold.shape)}, the scores {tuple(output.scores.shape)}{null}"
            )
        counted = (gold & ~output.scores.isneginf()).any(-1)  # (B, M)
        if self.config.loss == "softmax":
            return softmax_losses(output.scores, gold), counted
        return margin_losses(output.scores, gold, self.config.margin), counted

    def loss(self, output: LinkerOutput, gold: Tensor) -> Tensor:
        """Return the mean of `losses` over the mentions that have one; 0 if none has."""
        losses, counted = self.losses(output, gold)
        return losses.sum() / counted.sum().clamp(min=1)

    def save_pretrained(self, folder: Path | str, *, about: str = "", half: bool = False) -> None:
        """Write the head into *folder*, which is made: weights, configuration, a model card.

        Args:
            folder: where; what a head saved there before is replaced.
            about: Markdown for the card: what it was trained on, under which licences, how well it does.
            half: write float16, in half the space.

        Raises:
            MissingExtra: if safetensors is not installed.
        """
        weights = self.state_dict()
        if half:
            weights = {name: weight.half() for name, weight in weights.items()}
        save_head(Path(folder), KIND, self.config, weights, self._card(about))

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such device.
            MissingExtra: if safetensors is not installed.
        """
        folder, where = Path(folder), pick_device(device)
        config = read_settings(folder, KIND, EntityLinkerConfig)
        check_shapes(folder, lambda: cls(config).state_dict())
        linker = cls(config)
        with reading_weights(folder) as weights:
            kinds = {weight.dtype for weight in weights.values()}
            if len(kinds) == 1:
                linker.to(kinds.pop())
            linker.load_state_dict(weights)
        return linker.to(where).eval()

    def _card(self, about: str) -> str:
        config = self.config
        return card_of(
            self, _CARD, about, hidden=config.hidden, features=config.features,
            stored=config.width if config.stored is None else config.stored,
            loss="(4), cross entropy" if config.loss == "softmax" else f"(5), margin {config.margin}",
            null="NULL is a candidate" if config.null else "NULL is no candidate",
            threshold="no threshold" if config.threshold is None else f"δ = {config.threshold}",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class KnowBertConfig:
    """What a KnowBert is made of.

    Attributes:
        model: the class of transformers that its encoder is, or that stands around it.
        kbs: knowledge bases by name, from the bottom up.
        trained_with: of each, what `kgkit.inputs.Knowledge` calls its build and its vectors.
    """

    model: str
    kbs: dict[str, KARConfig]
    trained_with: dict[str, dict[str, str]]


class KAR(nn.Module):
    """Knowledge attention and recontextualization, section 3.3: links entities, and adds them to the words.

    Args:
        config: settings.
        generator: that the first parameters are drawn with.
    """

    def __init__(self, config: KARConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.linker.width, config.linker.hidden
        self.linker = EntityLinker(config.linker, generator)
        self.span_norm = nn.LayerNorm(width) if config.linker.norms else nn.Identity()
        self.block = TransformerBlock(width, config.heads, config.inner, config.dropout)
        self.back = nn.Linear(width, hidden)  # W2, b2
        self.norm = nn.LayerNorm(hidden) if config.linker.norms else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        draw(self.block, generator)
        self.invert()

    @torch.no_grad()
    def invert(self) -> None:
        """Let the projection back undo (1), as far as E numbers can hold H: W2 = W1⁺, b2 = -W1⁺ b1.

        To be called again when the linker has been trained by itself, before all is; or `silence`.
        """
        project = self.linker.project
        if project.weight.is_meta:  # there are no numbers: only shapes are asked for
            return
        inverse = torch.linalg.pinv(project.weight.cpu().double())  # (H, E); not all devices have float64
        self.back.weight.copy_(inverse)
        self.back.bias.copy_(-inverse @ project.bias.cpu().double())

    @torch.no_grad()
    def silence(self) -> None:
        """Let nothing come back to the encoder: W2 = 0, b2 = 0.

        The inverse of (1) does not give back what was projected: the block in between normalises it, and
        what is added to the words is then longer than they are. So an encoder has to be trained for long
        until it guesses as well as before; from nothing it begins almost as it was.
        """
        self.back.weight.zero_()
        self.back.bias.zero_()

    def zero_vectors(self) -> None:
        """Read stored vectors as zeros from now on, as `EntityLinkerConfig.control` has it."""
        self.config = replace(self.config, linker=replace(self.config.linker, control=True))
        self.linker.config = self.config.linker
        self.linker.entities.control = True

    def forward(self, inputs: LinkerInputs) -> tuple[Tensor, LinkerOutput]:
        """Return the word pieces (B, T, H) with what their entities tell, and what the linker said."""
        linked = self.linker(inputs)
        spans = self.span_norm(linked.spans + self.dropout(linked.weighted))  # (B, M, E)  (6)
        words = self.block(linked.words, spans, inputs.mentions)  # (B, T, E)
        added = self.dropout(self.back(words))  # (B, T, H)  (7)
        hidden = self.norm(inputs.hidden + added.to(inputs.hidden.dtype))  # (B, T, H)
        return hidden, linked


class KnowBertOutput(NamedTuple):
    """What KnowBert says.

    Attributes:
        model: what the encoder returned, or the model around it: its hidden states have the knowledge. None
            where a linker alone was asked for.
        linked: by the name of a knowledge base, what its linker said.
    """

    model: Any
    linked: dict[str, LinkerOutput]


class KnowBert(nn.Module):
    """An encoder with knowledge bases between its layers, section 3.4.

    The encoder's own code runs, whatever model of transformers it is, with whatever stands on top of it
    (`BertModel`, `BertForMaskedLM`, `RobertaForSequenceClassification`, …): each `KAR` changes what comes
    out of one of its layers. One call at a time; not with gradient checkpointing, which would run layers
    a second time.

    Args:
        model: the encoder, or a model around it. It is changed in place: its layers get hooks, which do
            nothing unless it is called by this one.
        kbs: knowledge bases by name, from the bottom up; those behind one layer follow each other.
        generator: that the first parameters are drawn with.
        trained_with: of each, what `kgkit.inputs.Knowledge` calls its build and its vectors: a model that is
            read again says by it whether it knows the knowledge base that it is given.

    Raises:
        UsageError: if the encoder has no such layer, or another width; if layers share their weights.

    Example:
        >>> bert = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
        >>> linker = EntityLinkerConfig(hidden=768, stored=584)
        >>> knowbert = KnowBert(bert, {"wordnet": KARConfig(linker=linker, layer=10)})
        >>> output = knowbert({"wordnet": inputs}, input_ids=ids, attention_mask=mask)
        >>> output.model.logits, output.linked["wordnet"].scores
        >>> knowbert.save_pretrained("mine")
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        kbs: Mapping[str, KARConfig],
        generator: torch.Generator | None = None,
        *,
        trained_with: Mapping[str, dict[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.trained_with = dict(trained_with or {})
        self.drawn: frozenset[str] = frozenset()  # parameters of the model that its files lack
        self._names: list[str] = []
        self._kars = nn.ModuleList()
        self._alone: str | None = None  # whose linker alone is trained
        self._call: _Call | None = None
        self._hooks = [model.base_model.register_forward_hook(self._only_places)]
        for name, config in kbs.items():
            self.add(name, config, generator)

    def add(self, name: str, config: KARConfig, generator: torch.Generator | None = None) -> None:
        """Put a knowledge base into the model, above those that stand behind the same layer.

        Args:
            name: of the knowledge base.
            config: settings.
            generator: that its first parameters are drawn with.

        Raises:
            UsageError: if it is there already, if the encoder has no such layer, or another width.
        """
        places = layers_of(self.model)
        if name in self._names:
            raise UsageError(f"the knowledge base {name} is in this model already")
        if config.layer >= len(places):
            raise UsageError(
                f"{name} is to stand behind layer {config.layer}; the encoder has {len(places) - 1}"
            )
        if config.linker.hidden != self.model.config.hidden_size:
            raise UsageError(
                f"the linker of {name} reads vectors of width {config.linker.hidden}, the encoder has "
                f"{self.model.config.hidden_size}"
            )
        self._names.append(name)
        self._kars.append(KAR(config, generator).to(self.model.device).train(self.training))
        self._hooks.append(places[config.layer].register_forward_hook(partial(self._recontextualize, name)))

    def detach(self) -> None:
        """Take its hooks off the model, which then has nothing to do with this any more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    @property
    def kars(self) -> dict[str, KAR]:
        """What stands between the layers, by the name of the knowledge base."""
        return dict(zip(self._names, self._kars, strict=True))  # type: ignore[arg-type]

    def forward(
        self,
        knowledge: Mapping[str, LinkerInputs],
        *,
        places: Tensor | None = None,
        until: str | None = None,
        **inputs: Any,
    ) -> KnowBertOutput:
        """Run the model, with what is known of the mentions.

        Args:
            knowledge: by the name of a knowledge base, the mentions and their candidates; `hidden` is not
                read. One that is left out is as if it were not there.
            places: (B, T) bool: the vectors of these N word pieces alone, (N, H), reach what stands on the
                encoder, as the projection to the vocabulary; None: all, (B, T, H).
            until: the knowledge base whose linker is all that is asked for: what is behind it is not
                computed, and there is no output of the model.
            inputs: of the model: `input_ids` (B, T), `attention_mask` (B, T), …

        Raises:
            UsageError: for a knowledge base that the model does not have; with gradient checkpointing.
        """
        asked = {*knowledge} if until is None else {*knowledge, until}
        if strange := sorted(asked - set(self._names)):
            raise UsageError(
                f"no knowledge base {', '.join(strange)} in this model; it has: {', '.join(self._names)}"
            )
        if until is not None and until not in knowledge:
            raise UsageError(f"nothing is known of the mentions of {until}, whose linker is asked for")
        twice = any(getattr(part, "gradient_checkpointing", False) for part in self.model.modules())
        if self.training and twice:
            raise UsageError("gradient checkpointing runs layers twice: switch it off for KnowBert")
        self._call = _Call(knowledge, {}, places, until)
        try:
            return KnowBertOutput(self.model(**inputs), self._call.linked)
        except _Linked:
            return KnowBertOutput(None, self._call.linked)
        finally:
            self._call = None

    def train(self, mode: bool = True) -> "Self":
        """Set training mode, or evaluation mode; what is frozen as a whole stays in evaluation mode."""
        super().train(mode)
        if mode and self._alone is not None:
            super().train(False)
            self.kars[self._alone].linker.train()
        return self

    def unfreeze(self, linker: str | None = None) -> None:
        """Say what is trained, as Algorithm 1 has it: for each knowledge base its linker, and then all.

        When a linker has been trained by itself, the way back to the encoder is to be made anew, so that it
        undoes what has been learnt: see `KAR.invert`. Stored vectors of entities are no parameters, and are
        never trained.

        Args:
            linker: the knowledge base whose linker is trained alone; None: everything is.

        Raises:
            UsageError: if there is no such knowledge base.
        """
        if linker is not None and linker not in self._names:
            raise UsageError(f"no knowledge base {linker} in this model; it has: {', '.join(self._names)}")
        self._alone = linker
        if linker is None:
            self.requires_grad_(True)
            return
        self.requires_grad_(False)
        chosen = self.kars[linker].linker
        chosen.requires_grad_(True)
        for special, asked in ((chosen.null, chosen.config.null), (chosen.mask, False)):
            if special is not None:  # no loss of the linker reaches it, but where it is a candidate
                special.requires_grad_(asked)

    def save_pretrained(self, folder: Path | str, *, about: str = "") -> None:
        """Write the model into *folder*, which is made: encoder, layers, configuration, a model card.

        Args:
            folder: where; what was saved there before is replaced.
            about: Markdown for the card: what it was trained on, under which licences, how well it does.

        Raises:
            MissingExtra: if safetensors is not installed.
        """
        folder = Path(folder)
        kbs = {name: kar.config for name, kar in self.kars.items()}
        config = KnowBertConfig(model=type(self.model).__name__, kbs=kbs, trained_with=self.trained_with)
        lines = [
            f"| {name} | {kar.config.layer} | {kar.config.linker.width} |" for name, kar in self.kars.items()
        ]
        card = card_of(self, _KNOWBERT_CARD, about, model=config.model, kbs="\n".join(lines))
        save_head(folder, KNOWBERT, config, self._kars.state_dict(), card)
        with quiet():
            self.model.save_pretrained(folder / ENCODER)

    @classmethod
    def from_pretrained(
        cls,
        folder: Path | str,
        *,
        model: str | None = None,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> "Self":
        """Return the model that was saved in *folder*, ready to be asked.

        Args:
            folder: where.
            model: the class of transformers that the encoder is to be, or that is to stand around it, where
                that is not the one it was saved as: `AutoModel` leaves out what stood on top.
            device: where it is to be.
            settings: of that class, as `{"num_labels": 3}`.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such class, or device.
            MissingExtra: if safetensors is not installed.
        """
        folder, where = Path(folder), pick_device(device)
        config = read_settings(folder, KNOWBERT, KnowBertConfig)
        check_shapes(folder, lambda: nn.ModuleList(map(KAR, config.kbs.values())).state_dict())
        encoder, lacking = encoder_below(
            folder, folder.absolute() / ENCODER, config.model, model, settings=settings
        )
        knowbert = cls(encoder, config.kbs, trained_with=config.trained_with)
        knowbert.drawn = lacking
        with reading_weights(folder) as weights:
            knowbert._kars.load_state_dict(weights)
        return knowbert.to(where).eval()

    def _recontextualize(self, name: str, layer: nn.Module, args: Any, output: Any) -> Any:
        """Change the output of a layer: a hook of torch."""
        call = self._call
        if call is None or name not in call.knowledge:
            return output
        hidden, rest = (output[0], output[1:]) if isinstance(output, tuple) else (output, None)
        inputs = call.knowledge[name]._replace(hidden=hidden)
        if call.until == name:
            call.linked[name] = self.kars[name].linker(inputs)
            raise _Linked
        hidden, call.linked[name] = self.kars[name](inputs)
        return hidden if rest is None else (hidden, *rest)

    def _only_places(self, encoder: nn.Module, args: Any, output: Any) -> Any:
        """Leave the vectors of those word pieces that were asked for: a hook of torch."""
        if self._call is None or self._call.places is None:
            return output
        if isinstance(output, tuple):
            return (output[0][self._call.places], *output[1:])
        output.last_hidden_state = output.last_hidden_state[self._call.places]  # (N, H)
        return output


class _Call(NamedTuple):
    """A call under way: what is known and asked for, and what has been linked so far."""

    knowledge: Mapping[str, LinkerInputs]
    linked: dict[str, LinkerOutput]
    places: Tensor | None
    until: str | None


class _Linked(Exception):
    """Ends a call, once the linker that was asked for has linked."""


def layers_of(model: "PreTrainedModel") -> list[nn.Module]:
    """Return the embeddings of an encoder, and its layers.

    Raises:
        UsageError: if its layers cannot be told apart.
    """
    encoder, depth = model.base_model, int(model.config.num_hidden_layers)
    stacks = [one for one in encoder.modules() if isinstance(one, nn.ModuleList) and len(one) == depth]
    embeddings = getattr(encoder, "embeddings", None)
    if not stacks or embeddings is None:
        raise UsageError(f"{type(model).__name__} has no {depth} layers of its own to stand between")
    return [embeddings, *stacks[0]]


def usual_layers(depth: int, kbs: int) -> list[int]:
    """Return behind which layers knowledge bases stand, from the bottom up, as published.

    Of 12 layers: 10 for one; 10 and 11 for two.

    Args:
        depth: layers of the encoder.
        kbs: how many knowledge bases.
    """
    first = max(0, depth - max(2, kbs))
    return [min(first + number, depth) for number in range(kbs)]


def _check(inputs: LinkerInputs, config: EntityLinkerConfig) -> None:
    """Make sure that the shapes are those of the legend.

    Raises:
        UsageError: if one is not.
    """
    once, three = inputs.rows is not None, (inputs.hidden, inputs.candidates, inputs.vectors)
    if inputs.hidden.ndim != 3 or inputs.candidates.ndim != 3 or inputs.vectors.ndim != (2 if once else 4):
        raise UsageError(
            "expected hidden (B, T, H), candidates (B, M, C) and vectors (B, M, C, D), or with rows (U, D); "
            f"found {', '.join(str(tuple(one.shape)) for one in three)}"
        )
    sentences, places, _ = inputs.hidden.shape
    _, mentions, candidates = inputs.candidates.shape
    stored = config.width if config.stored is None else config.stored
    expected = {
        "hidden": (sentences, places, config.hidden),
        "spans": (sentences, mentions, 2),
        "mentions": (sentences, mentions),
        "vectors": (len(inputs.vectors), stored) if once else (sentences, mentions, candidates, stored),
        "features": (sentences, mentions, candidates, config.features),
        "candidates": (sentences, mentions, candidates),
        "ids": (len(inputs.vectors),) if once else (sentences, mentions, candidates),
        "rows": (sentences, mentions, candidates),
        "null_features": (sentences, mentions, config.features),
        "masked": (sentences, mentions),
    }
    for name, shape in expected.items():
        tensor = getattr(inputs, name)
        if tensor is not None and tuple(tensor.shape) != shape:
            raise UsageError(f"{name} has the shape {tuple(tensor.shape)}, expected {shape}")
    if inputs.masked is not None and not config.mask:
        raise UsageError("there are masked mentions, but the linker has no entity [MASK]: see `mask`")
    if config.entities and inputs.ids is None:
        raise UsageError(f"the linker has trained vectors of {config.entities} entities: it needs ids")


_CARD: Final = """\
---
library_name: kgkit
tags:
- entity-linking
- knowbert
---

# An entity linker

{about}The entity linker of KnowBert (Peters et al. 2019, *Knowledge Enhanced Contextual Word
Representations*, equations 1 to 5): {parameters} parameters, on top of an encoder that is not part of it.

| reads | width |
|---|---|
| word pieces of an encoder | {hidden} |
| vectors of entities | {stored} |
| features of a candidate | {features} |

Trained with the loss {loss}; {null}; {threshold}.

```python
from kgkit.heads import EntityLinker

linker = EntityLinker.from_pretrained("this folder")
```
"""

_KNOWBERT_CARD: Final = """\
---
library_name: kgkit
tags:
- knowbert
---

# A KnowBert

{about}A `{model}` with knowledge bases between its layers (Peters et al. 2019, *Knowledge Enhanced Contextual
Word Representations*): {parameters} parameters in all. The encoder lies in `encoder/`; vectors of entities
are those of the knowledge bases, and no part of it.

| knowledge base | behind layer | width |
|---|--:|--:|
{kbs}

```python
from kgkit.heads import KnowBert

knowbert = KnowBert.from_pretrained("this folder")
```
"""
