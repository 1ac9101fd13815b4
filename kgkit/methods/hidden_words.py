"""What a KnowBert predicts for hidden words, and its perplexity.

    B  texts    T  word pieces    N  hidden ones of a batch    V  the vocabulary

Departures:
    Perplexity hides more than the training does: see `Masking` (`mentions`).
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from kgkit.errors import UsageError
from kgkit.evaluation.passage_scores import ScoredPassages, perplexity_of
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.masking import NOTHING, HiddenPieces, MaskedText, Masking, logits_of, pad_labels
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

    @classmethod
    def of(cls, columns: NDArray[np.float64]) -> "Perplexity":
        """Return it for (P, 3) nats, correct and masked pieces of passages, one piece at least."""
        nats, correct, pieces = columns.sum(0).tolist()
        return cls(perplexity_of(nats / pieces), correct / pieces, int(pieces))


def masked_batch(
    masked: Sequence[MaskedText], reader: KnowBertReader, follows: Sequence[bool | None]
) -> LanguageBatch:
    """Return texts with what is hidden in them, (T,) each, as a batch."""
    batch = reader.batch([text for text, _ in masked])
    labels = pad_labels(masked, batch.inputs["input_ids"].shape[1])
    classes = None if None in follows else torch.tensor([0 if follow else 1 for follow in follows])
    return LanguageBatch(batch, labels, classes)


def score_passages(
    knowbert: "KnowBert",
    reader: KnowBertReader,
    masking: Masking,
    passages: Sequence[Passage],
    *,
    size: int = 32,
    seed: int = 0,
    progress: Progress | None = None,
) -> ScoredPassages:
    """Return how well a model predicts the masked pieces of passages.

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

    masks: list[str] = []

    def predict() -> Iterator[HiddenPieces]:
        """Yield the predictions of each batch."""
        for begin in range(0, len(passages), size):
            part = passages[begin : begin + size]
            masked = [
                masking(text, np.random.default_rng([seed, index]))
                for index, text in enumerate(reader(passage.texts for passage in part), begin)
            ]
            masks.extend(blake2b(text.labels.tobytes(), digest_size=8).hexdigest() for text in masked)
            yield predict_hidden(knowbert, reader, masked)
            if progress is not None:
                progress("scoring", min(begin + size, len(passages)), len(passages))

    return ScoredPassages(_text_columns(predict()), masks)


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
    """Return how well a model predicts masked pieces of all passages; arguments as `score_passages` has them.

    Raises:
        UsageError: if there are no passages.
    """
    return Perplexity.of(
        score_passages(knowbert, reader, masking, passages, size=size, seed=seed, progress=progress).columns
    )


@torch.inference_mode()
def _text_columns(predicted: Iterable[HiddenPieces]) -> NDArray[np.float64]:
    """Return (P, 3): of each text of the batches the nats of its masked pieces, those correct, and all."""
    columns = []
    for logits, gold, counts in predicted:
        nats = functional.cross_entropy(logits, gold, reduction="none")
        values = torch.stack([nats, logits.argmax(-1) == gold, torch.ones_like(nats)], 1).cpu()  # (N, 3)
        sums = np.zeros((len(counts), 3))
        np.add.at(sums, np.repeat(np.arange(len(counts)), counts), values.double().numpy())
        columns.append(sums)
    return np.concatenate(columns)


@torch.inference_mode()
def predict_hidden(
    knowbert: "KnowBert", reader: KnowBertReader, masked: Sequence[MaskedText]
) -> HiddenPieces:
    """Return predictions of a KnowBert for the masked pieces of texts that are read at once."""
    item = masked_batch(masked, reader, [None for _ in masked]).to(next(knowbert.parameters()).device)
    hidden = item.labels != NOTHING
    output = knowbert(item.batch.knowledge, positions=hidden, **item.batch.inputs)
    return HiddenPieces(logits_of(output.model).float(), item.labels[hidden], hidden.sum(-1).tolist())
