"""KnowBert's entity linker: Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations".

Equations (1) to (5) of section 3. It serves by itself, on top of an encoder, frozen or not, and inside
`kgkit.heads.knowbert`, which adds the entities to the words.

    B  sentences     M  mentions per sentence    H  encoder width
    T  word pieces   C  candidates per mention   E  width in which spans and entities meet
    F  features of a candidate in its mention; the prior alone, as published
    D  entity vector width, as stored
    U  entities of a batch, each once            R  candidates that are there

    hidden (B, T, H) ─(1)─▶ words ─pooling─▶ spans ─(2)─▶ spans (B, M, E) ─┐
    vectors (B, M, C, D) ──────────────────▶ entities (B, M, C, E) ────────┴─(3)─▶ scores (B, M, C) ─▶ (4) (5)
                                                                                └─▶ weighted (B, M, E)

A mask is True where there is something. Mentions and candidates that are padded have zeros in the outputs (a
score of -inf) and reach nothing else: what stands there has a gradient of exactly zero.

Departures:
    From the paper, as the released code (allenai/kb) has it: the dot product of (3) is divided by √E; the
    pooled spans, and the entities' vectors, go through a LayerNorm; pooling weighs word pieces by
    one linear layer, where Lee et al. (2017) have a network with a hidden one; parameters are drawn from a
    normal distribution of width 0.02. Every LayerNorm has an ε of 1e-5, those inside (2) too.
    From both: (4) takes several gold candidates, and maximises the sum of their probabilities; (5) takes
    each of them as one to be found. (5) is a sum over candidates, as in the paper, and both are means over
    mentions; the code takes the mean of (5) over all candidates of a batch. NULL is one trained vector,
    with no LayerNorm; the code takes a row of the entity matrix. Features besides the prior, a
    learned projection of stored vectors and `input_dropout` are additions, and off unless asked for.
    [MASK], too, is one trained vector.
    Elsewhere: priors of WordNet's senses are (count + 1) / sum (docs/priors.md); those of the 30 candidates
    that are kept are not divided by their sum again; the vectors of entities come
    with a mean square of 1 for each kind, and a part of speech is a column of theirs, where the code has a
    row for each synset's (`kgkit.inputs.knowledge`).
    No rule maps names of people, groups and places to the synsets of these words by their type, as the
    code's does.
"""

import math
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.heads.folder import SavedHead, save_head
from kgkit.heads.linker_network import LinkerNetwork
from kgkit.heads.parts import TransformerBlock, draw_weights, masked_softmax, to_device
from kgkit.heads.settings import EntityLinkerConfig

KIND: Final = "knowbert-linker"


class LinkerInputs(NamedTuple):
    """What the linker reads.

    Vectors of mentions that were made before, and cached, are read as `hidden`
    with T = M, and spans of one: [0, 1), [1, 2), …

    Attributes:
        hidden: (B, T, H) output of an encoder.
        spans: (B, M, 2) int64, word pieces of each mention, end exclusive; any numbers where padded.
        mentions: (B, M) bool, whether there is a mention.
        vectors: (B, M, C, D) stored vectors of the candidates, or (U, D) of the batch's entities, each once;
            zeros for an entity without one.
        features: (B, M, C, F) features of a candidate in its mention: its prior, …
        candidates: (B, M, C) bool, whether there is a candidate.
        null_features: (B, M, F) features of NULL; None: zeros. Read where NULL is a candidate.
        rows: (B, M, C) int64, index of each candidate among the batch's entities; any number where padded.
            None: `vectors` has those of each candidate.
        masked: (B, M) bool, whether [MASK] is the mention's candidate: the first one, which says nothing of
            the entity, nor do its features. None: of none.
    """

    hidden: Tensor
    spans: Tensor
    mentions: Tensor
    vectors: Tensor
    features: Tensor
    candidates: Tensor
    null_features: Tensor | None = None
    rows: Tensor | None = None
    masked: Tensor | None = None

    def to(self, device: torch.device) -> "LinkerInputs":
        """Return them on *device*."""
        return to_device(self, device)


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


class SpanPooling(nn.Module):
    """Self-attentive pooling (Lee et al. 2017): a mean of word pieces, by weights that are learned."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attend = nn.Linear(width, 1)

    def forward(self, words: Tensor, spans: Tensor) -> Tensor:
        """Pool words (B, T, E) over spans (B, M, 2); (B, M, E), zeros for a span without a piece."""
        positions = torch.arange(words.shape[1], device=words.device)
        inside = (positions >= spans[..., :1]) & (positions < spans[..., 1:])  # (B, M, T)
        logits = self.attend(words).transpose(1, 2)  # (B, 1, T)
        weights = masked_softmax(logits.expand(inside.shape), inside)  # (B, M, T)
        return torch.matmul(weights.to(words.dtype), words)  # (B, M, E)


class EntityVectors(nn.Module):
    """Vectors of candidates: as stored, or projected."""

    def __init__(self, config: EntityLinkerConfig) -> None:
        super().__init__()
        self.project = nn.Identity() if config.stored is None else nn.Linear(config.stored, config.width)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, inputs: LinkerInputs, real: Tensor) -> Tensor:
        """Return (B, M, C, E); zeros where nothing is *real* (B, M, C)."""
        if inputs.rows is None:  # most places of a padded batch are empty
            own = self._of(inputs.vectors[real])  # (R, E)
            entities = own.new_zeros((*real.shape, own.shape[-1]))
            return entities.index_put(real.nonzero(as_tuple=True), own)
        once = functional.pad(self._of(inputs.vectors), (0, 0, 0, 1))  # (U + 1, E)
        return once[inputs.rows.masked_fill(~real, len(once) - 1)]

    def _of(self, vectors: Tensor) -> Tensor:
        """Return (R, E) for vectors (R, D)."""
        normed: Tensor = self.norm(self.project(vectors))
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
        null: (E,) vector of a mention whose candidates are all below δ.
    """
    real = ~scores.isneginf()  # (B, M, C)
    passing = real if threshold is None else real & (scores >= threshold)
    weights = masked_softmax(scores, passing).to(entities.dtype)  # (B, M, C)
    weighted = torch.matmul(weights[..., None, :], entities).squeeze(-2)  # (B, M, E)
    if threshold is None or null is None:
        return weighted
    refused = real.any(-1) & ~passing.any(-1)  # (B, M)
    return torch.where(refused[..., None], null.to(weighted.dtype), weighted)


class EntityLinker(SavedHead):
    """KnowBert's entity linker, (1) to (5).

    Args:
        config: settings.
        generator: generator that the first parameters are drawn with.

    Examples:
        >>> linker = EntityLinker(EntityLinkerConfig(hidden=384, stored=384))
        >>> output = linker(inputs)                     # LinkerInputs
        >>> linker.loss(output, gold).backward()        # gold: bool, of the shape of output.scores
        >>> linker.save_pretrained("my-linker")
    """

    kind, settings = KIND, EntityLinkerConfig
    config: EntityLinkerConfig

    def __init__(self, config: EntityLinkerConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.input_dropout = nn.Dropout(config.input_dropout)
        self.project = nn.Linear(config.hidden, config.width)  # W1, b1
        self.pool = SpanPooling(config.width)
        self.norm = nn.LayerNorm(config.width)
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
        draw_weights(self, generator)
        for special in (self.null, self.mask):
            if special is not None:
                nn.init.normal_(special, std=0.02, generator=generator)

    def forward(self, inputs: LinkerInputs) -> LinkerOutput:
        """Score the candidates of the mentions of some sentences.

        Raises:
            UsageError: if the shapes do not fit each other, or the configuration.
        """
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
        real_null = inputs.mentions[..., None]  # (B, M, 1)
        null = self.null.to(entities.dtype).expand(*real_null.shape, -1)  # (B, M, 1, E)
        own = inputs.null_features
        if own is None:
            own = features.new_zeros(*inputs.mentions.shape, self.config.features)
        own = own.to(features.dtype)[..., None, :]  # (B, M, 1, F)
        return (
            torch.cat([real, real_null], dim=2),
            torch.cat([entities, null.masked_fill(~real_null[..., None], 0.0)], dim=2),
            torch.cat([features, own.masked_fill(~real_null[..., None], 0.0)], dim=2),
        )

    def losses(self, output: LinkerOutput, gold: Tensor) -> tuple[Tensor, Tensor]:
        """Return (4) or (5) of each mention, and which mentions have one.

        Args:
            output: output of `forward`.
            gold: (B, M, C) bool, whether a candidate is right, NULL too where it is a candidate: of the
                shape of `output.scores`. Floats are a teacher's probabilities of the candidates: the loss
                is then the cross entropy to them.

        Returns:
            (B, M) losses, 0 for a mention without gold among its candidates; (B, M) bool, those with.
        """
        counted = ((gold > 0) & ~output.scores.isneginf()).any(-1)  # (B, M)
        if gold.is_floating_point():
            return soft_losses(output.scores, gold), counted
        if self.config.loss == "softmax":
            return softmax_losses(output.scores, gold), counted
        return margin_losses(output.scores, gold, self.config.margin), counted

    def loss(self, output: LinkerOutput, gold: Tensor) -> Tensor:
        """Return the mean of `losses` over the mentions that have one; 0 if none has."""
        losses, counted = self.losses(output, gold)
        return losses.sum() / counted.sum().clamp(min=1)

    def network(self) -> LinkerNetwork:
        """Return a copy of this head, as it is now, that scores candidates without torch."""
        weights = {name: weight.detach().float().cpu().numpy() for name, weight in self.state_dict().items()}
        return LinkerNetwork(self.config, {name: weight.copy() for name, weight in weights.items()})

    def save_pretrained(self, folder: Path | str, *, half: bool = False) -> None:
        """Write the head into *folder*, which is made: weights and configuration.

        Args:
            folder: folder for the head; what a head saved there before is replaced.
            half: whether to write float16, in half the space.
        """
        weights = self.state_dict()
        if half:
            weights = {name: weight.half() for name, weight in weights.items()}
        save_head(Path(folder), KIND, self.config, weights)


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


def soft_losses(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of each mention to a teacher's probabilities of its candidates.

    -Σ_k t_k log softmax(ψ)_k: Hinton et al. (2015), "Distilling the Knowledge in a Neural Network".

    Args:
        scores: (B, M, C), -inf where there is no candidate.
        targets: (B, M, C) t, 0 where there is no candidate.

    Returns:
        (B, M), 0 for a mention to whose candidates the teacher gives no probability.
    """
    real = ~scores.isneginf()
    lowest = torch.finfo(scores.dtype).min  # finite: see `masked_softmax`
    log_probabilities = scores.masked_fill(~real, lowest).log_softmax(-1)
    return -(targets.to(scores.dtype) * log_probabilities.masked_fill(~real, 0.0)).sum(-1)


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
