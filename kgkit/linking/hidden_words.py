"""What a KnowBert guesses of hidden words: perplexity, and facts that are asked for.

    B  texts    T  word pieces    N  hidden ones of a batch    V  the vocabulary

Departures:
    Perplexity hides more than the training does: see `Masking` (`mentions`).
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from kgkit.errors import UsageError
from kgkit.evaluation.facts import Probe
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.masking import NOTHING, MaskedText, Masking, hide
from kgkit.inputs.passages import Passage
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.heads.knowbert import KnowBert


class LanguageBatch(NamedTuple):
    """Texts with hidden words.

    Attributes:
        batch: what KnowBert reads.
        labels: (B, T) int64, the pieces that are hidden; `NOTHING` elsewhere.
        follows: (B,) int64, 0 where the second text follows the first, else 1; None without second texts.
    """

    batch: KnowBertBatch
    labels: Tensor
    follows: Tensor | None

    def to(self, device: torch.device, **_: object) -> "LanguageBatch":
        """Return it on a device."""
        follows = None if self.follows is None else self.follows.to(device)
        return LanguageBatch(self.batch.to(device), self.labels.to(device), follows)


class Perplexity(NamedTuple):
    """How well hidden words are guessed.

    Attributes:
        perplexity: e to the mean surprise, of a word piece.
        accuracy: how many of them are guessed right.
        pieces: hidden ones.
    """

    perplexity: float
    accuracy: float
    pieces: int


def masked_batch(
    masked: Sequence[MaskedText], reader: KnowBertReader, follows: Sequence[bool | None]
) -> LanguageBatch:
    """Return texts with what is hidden in them, (T,) each, as a batch."""
    batch = reader.batch([text for text, _ in masked])
    labels = np.full(tuple(batch.inputs["input_ids"].shape), NOTHING, np.int64)
    for row, (_, hidden) in enumerate(masked):
        labels[row, : len(hidden)] = hidden
    classes = None if None in follows else torch.tensor([0 if follow else 1 for follow in follows])
    return LanguageBatch(batch, torch.from_numpy(labels), classes)


def logits_of(output: Any) -> Tensor:
    """Return (N, V), what a masked language model of transformers predicts for the hidden positions."""
    logits: Tensor = output.prediction_logits if "prediction_logits" in output else output.logits
    return logits


def perplexity(
    knowbert: "KnowBert",
    reader: KnowBertReader,
    masking: Masking,
    passages: Sequence[Passage],
    *,
    size: int = 32,
    seed: int = 0,
    progress: Progress | None = None,
) -> Perplexity:
    """Return how well a model guesses hidden words of passages.

    What is hidden follows from the seed and from the passages, whatever model is asked and however many are
    read at once, as long as its tokenizer is the same, and the size of its texts, which makes the passages.

    Args:
        knowbert: KnowBert around a masked language model, in evaluation mode.
        reader: reader of the passages.
        masking: what hides words.
        passages: single passages; of pairs, what follows is not asked for.
        size: texts that are read at once.
        seed: seed of what is hidden.
        progress: callback with the number of passages that are done, of how many.

    Raises:
        UsageError: if there are no passages.
    """
    if not passages:
        raise UsageError("there are no passages to guess words of")
    surprise, right, count = 0.0, 0, 0
    for begin in range(0, len(passages), size):
        part = passages[begin : begin + size]
        masked = [
            masking(text, np.random.default_rng([seed, index]))
            for index, text in enumerate(reader(passage.texts for passage in part), begin)
        ]
        logits, gold, _ = _predict_hidden(knowbert, reader, masked)
        surprise += float(functional.cross_entropy(logits, gold, reduction="sum"))
        right += int((logits.argmax(-1) == gold).sum())
        count += len(gold)
        if progress is not None:
            progress("scoring", min(begin + size, len(passages)), len(passages))
    return Perplexity(math.exp(surprise / count), right / count, count)


@torch.inference_mode()
def _predict_hidden(
    knowbert: "KnowBert", reader: KnowBertReader, masked: Sequence[MaskedText]
) -> tuple[Tensor, Tensor, list[int]]:
    """Return (N, V) logits of the hidden pieces of texts, (N,) what they are, and how many each text has."""
    item = masked_batch(masked, reader, [None for _ in masked]).to(next(knowbert.parameters()).device)
    hidden = item.labels != NOTHING
    output = knowbert(item.batch.knowledge, positions=hidden, **item.batch.inputs)
    return logits_of(output.model).float(), item.labels[hidden], hidden.sum(-1).tolist()


def recalled(
    knowbert: "KnowBert",
    reader: KnowBertReader,
    mask: int,
    probes: Sequence[Probe],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> Iterator[tuple[str, list[int]]]:
    """Yield, of each sentence with a name hidden, its relation and the ranks of the hidden word pieces.

    All pieces of the name are hidden at once, and what knowledge bases say of the mentions they are part of:
    [MASK] is the candidate of these. A rank is 1 if no other piece of the vocabulary is thought likelier. A
    sentence whose name does not fit into a text is left out.

    Args:
        knowbert: KnowBert around a masked language model, in evaluation mode.
        reader: reader of the sentences.
        mask: id of the piece [MASK].
        probes: sentences with the spans of the names.
        size: sentences that are read at once.
        progress: callback with the number of sentences that are done, of how many.
    """
    before, after = len(reader.tokens.before), len(reader.tokens.after)
    for begin in range(0, len(probes), size):
        part = probes[begin : begin + size]
        relations, masked = [], []
        for probe, text in zip(part, reader((probe.text,) for probe in part), strict=True):
            first, end = (before + position for position in reader.tokens(probe.text).within(*probe.span))
            if first < end <= len(text.ids) - after:
                relations.append(probe.relation)
                masked.append(hide(text, np.arange(first, end), mask))
        if masked:
            logits, gold, counts = _predict_hidden(knowbert, reader, masked)
            ranks = (1 + (logits > logits.gather(-1, gold[:, None])).sum(-1)).tolist()
            for relation, count in zip(relations, counts, strict=True):
                yield relation, ranks[:count]
                ranks = ranks[count:]
        if progress is not None:
            progress("scoring", min(begin + size, len(probes)), len(probes))
