"""Masked language modelling with knowledge: words are hidden, and with them what knowledge bases say of them.

Of the word pieces 15 % are to be guessed, as Devlin et al. (2019) have it: [MASK] stands for 80 % of them,
another piece for 10 %, and 10 % stay. Where the piece is part of a mention, its candidates would tell it: so
a mention with a hidden piece has the entity [MASK] in 80 % of the cases, others' candidates in 10 %, and its
own in 10 % (Peters et al. 2019, section 3.4). A mention that several knowledge bases know has one fate in
all of them: else one would tell what the other hides.

That a mention is there, and where it ends, is told all the same, as published: of a hidden piece it is known
whether it is part of a name or a word that the knowledge base has. A model without it is not told that.

Departures:
    The fate of a mention's candidates is drawn once for each span; the released code draws once for each
    hidden piece and each of the spans around it, so that long mentions keep theirs less often. Spans that
    overlap have fates of their own, as there.
    Others' candidates are those of mentions of the text without a hidden piece, else they might tell it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.types import CANDIDATE, Candidates, Numbers

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.encoder import Encoder

NOTHING: Final = -100
"""The label of a piece that is not to be guessed."""

_MASK, _OTHER = 0.8, 0.9  # of what is hidden; the rest stays as it is
_STRANGERS: Final = 5  # candidates that a mention gets of others, at most


class MaskedText(NamedTuple):
    """A text with something hidden, and what is to be guessed: (T,) pieces, `NOTHING` elsewhere."""

    text: TokenizedText
    labels: Numbers


def hide(text: TokenizedText, positions: Numbers, mask: int) -> MaskedText:
    """Return *text* with the pieces at *positions* hidden, and all that is known of the mentions they are of.

    Args:
        text: text as it was read.
        positions: (N,) positions in it, ascending.
        mask: piece [MASK].
    """
    labels, ids = np.full(len(text.ids), NOTHING, np.int64), text.ids.copy()
    labels[positions] = text.ids[positions]
    ids[positions] = mask
    mentions = {name: _secret(spans, positions) for name, spans in text.mentions.items()}
    return MaskedText(text._replace(ids=ids, mentions=mentions), labels)


def pad_labels(masked: Sequence[MaskedText], length: int) -> "Tensor":
    """Return (B, T) int64, what is to be guessed in texts padded to *length*; `NOTHING` elsewhere."""
    import torch

    labels = np.full((len(masked), length), NOTHING, np.int64)
    for row, (_, hidden) in enumerate(masked):
        labels[row, : len(hidden)] = hidden
    return torch.from_numpy(labels)


class Masking:
    """Hides word pieces, and what knowledge bases say of them.

    Args:
        mask: piece [MASK].
        pieces: ids of the pieces that may stand for another: all but special ones.
        share: share of the pieces that are to be guessed; at least one of a text is.
        mentions: treatment of mentions with a hidden piece. `some`, to learn from: see above. `mask`, to
            measure by: they have the entity [MASK] always. `none`: they are left out, so that not even their
            extent is told.
    """

    def __init__(
        self,
        mask: int,
        pieces: Numbers,
        *,
        share: float = 0.15,
        mentions: Literal["some", "mask", "none"] = "some",
    ) -> None:
        self.mask, self.pieces, self.share, self.mentions = mask, pieces, share, mentions

    def __call__(self, text: TokenizedText, generator: np.random.Generator) -> MaskedText:
        """Return *text* with pieces hidden that *generator* has drawn; one without a piece as it is.

        Which these are, and what stands for them, does not depend on what is known.
        """
        positions = np.flatnonzero(~text.special)
        count = min(len(positions), max(1, round(len(positions) * self.share)))
        hidden = np.sort(generator.permutation(positions)[:count])
        labels = np.full(len(text.ids), NOTHING, np.int64)
        labels[hidden] = text.ids[hidden]
        fate = generator.random(count)
        ids = text.ids.copy()
        ids[hidden[fate < _MASK]] = self.mask
        other = hidden[(fate >= _MASK) & (fate < _OTHER)]
        ids[other] = generator.choice(self.pieces, len(other))
        if self.mentions == "some":
            generators = generator.spawn(len(text.mentions))
            fates = _fates(text.mentions.values(), generators)
            drawn = zip(text.mentions.items(), fates, generators, strict=True)
            mentions = {name: _hidden(spans, hidden, own, rng) for (name, spans), own, rng in drawn}
        else:
            reduced = _secret if self.mentions == "mask" else _without
            mentions = {name: reduced(spans, hidden) for name, spans in text.mentions.items()}
        return MaskedText(text._replace(ids=ids, mentions=mentions), labels)


def masking_of(encoder: "Encoder", mentions: Literal["some", "mask", "none"] = "some") -> Masking:
    """Return what hides words of an encoder's texts; see `Masking` for *mentions*.

    Raises:
        UsageError: if its tokenizer has no piece [MASK].
    """
    tokenizer = encoder.tokenizer
    if tokenizer.mask_token_id is None:
        raise UsageError(
            f"the tokenizer of {encoder.name} has no [MASK]: it cannot be a masked language model"
        )
    added = [number for number, token in tokenizer.added_tokens_decoder.items() if token.special]
    ordinary = np.setdiff1d(np.arange(len(tokenizer)), [*tokenizer.all_special_ids, *added])
    return Masking(tokenizer.mask_token_id, ordinary, mentions=mentions)


def _fates(
    mentions: Iterable[MentionSpans], generators: Sequence[np.random.Generator]
) -> list[NDArray[np.float64]]:
    """Return the fate (M,) in [0, 1) of each mention of each knowledge base: of one span the same in all.

    The first of the *generators* draws them, so that a text of one knowledge base has the fates that it would
    have alone.
    """
    spans = [[*map(tuple, spans.spans.tolist())] for spans in mentions]
    every = dict.fromkeys(span for listed in spans for span in listed)
    drawn = generators[0].random(len(every)) if generators else ()
    fate_of = dict(zip(every, drawn, strict=True))
    return [np.array([fate_of[span] for span in listed]) for listed in spans]


def _hidden(
    mentions: MentionSpans, hidden: Numbers, fate: NDArray[np.float64], generator: np.random.Generator
) -> MentionSpans:
    """Return the mentions of a text, of which those with a hidden piece say less, each by its fate (M,)."""
    touched = _touched(mentions, hidden)
    masked = touched & (fate < _MASK)
    candidates = list(mentions.candidates)
    strange = touched & (fate >= _MASK) & (fate < _OTHER)
    visible = [
        candidate.rows
        for candidate, hides in zip(mentions.candidates, touched, strict=True)
        if not hides and len(candidate)
    ]
    for index in np.flatnonzero(strange).tolist():
        if visible:
            candidates[index] = _strangers(np.concatenate(visible), generator)
        else:
            masked[index] = True
    return mentions._replace(candidates=candidates, masked=mentions.masked | masked)


def _secret(mentions: MentionSpans, hidden: Numbers) -> MentionSpans:
    """Return the mentions of a text, of which those with a hidden piece say nothing."""
    return mentions._replace(masked=mentions.masked | _touched(mentions, hidden))


def _without(mentions: MentionSpans, hidden: Numbers) -> MentionSpans:
    """Return the mentions of a text that have no hidden piece."""
    visible = ~_touched(mentions, hidden)
    candidates = [candidate for candidate, stays in zip(mentions.candidates, visible, strict=True) if stays]
    return MentionSpans(
        mentions.spans[visible], candidates, mentions.masked[visible], mentions.indices[visible]
    )


def _touched(mentions: MentionSpans, positions: Numbers) -> NDArray[np.bool_]:
    """Return (M,) which mentions have a piece at one of the *positions*, which ascend."""
    first, last = np.searchsorted(positions, mentions.spans.T)
    touched: NDArray[np.bool_] = first < last
    return touched


def _strangers(rows: NDArray[np.void], generator: np.random.Generator) -> Candidates:
    """Return some of the candidates of a text, with priors that are drawn."""
    count = min(len(rows), int(generator.integers(1, _STRANGERS + 1)))
    candidates = np.empty(count, CANDIDATE)
    candidates[:] = generator.choice(rows, count, replace=False)
    priors = generator.random(count)
    candidates["prior"] = priors / priors.sum()
    return Candidates(candidates[np.argsort(-candidates["prior"], kind="stable")])


# -- predictions ------------------------------------------------------------


class HiddenPieces(NamedTuple):
    """Predictions for the masked pieces of texts.

    Attributes:
        logits: (N, V), of N masked pieces, each over a vocabulary of V.
        gold: (N,) int64, the pieces that are there.
        counts: hidden pieces of each text; 0 where the name that is asked for does not fit into what the
            model reads.
    """

    logits: "Tensor"
    gold: "Tensor"
    counts: list[int]


def logits_of(output: Any) -> "Tensor":
    """Return (N, V), what a masked language model of transformers predicts for the hidden positions."""
    logits: Tensor = output.prediction_logits if "prediction_logits" in output else output.logits
    return logits
