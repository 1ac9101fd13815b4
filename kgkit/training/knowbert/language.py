"""Training a KnowBert as a language model, and as a linker, or both in turn; perplexity.

    B  texts    T  word pieces    N  hidden ones of a batch    V  the vocabulary

A batch is one of passages, some of whose words are hidden, or one of linking examples.

Departures:
    Linking examples are read as far as the linker only, and teach no prediction of the next sentence; the
    released code reads them to the end. Their batches are divided evenly among the knowledge bases (there
    0.075 of all for each of two). Perplexity hides more than the training does: see `Masking` (`mentions`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.masking import NOTHING, MaskedText, Masking, pad_labels
from kgkit.inputs.passages import Passage
from kgkit.methods.cloze import logits_of, predict_hidden
from kgkit.training.knowbert.linking_batches import LinkingBatch, LinkingExample, linking_batch
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.heads.knowbert import KnowBert

SHARE: Final = 0.2
"""Batches of linking examples, of all, where there are passages too (Peters et al. 2019, section 4.1)."""


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


class Mixture:
    """Batches of passages and of linking examples, in another order each epoch: see `Batches`.

    Args:
        reader: reader of the passages.
        masking: what hides words of them; None, if there are none.
        passages: texts to learn the language from.
        examples: texts to learn linking from, by the name of the knowledge base.
        null: knowledge bases where NULL is a candidate.
        idle: whether the batches of linking examples are left out, as for a control: so it reads the same
            passages, in the same order, at the same learning rates.
        size: texts of a batch.
        seed: seed of order and hidden words.
    """

    def __init__(
        self,
        reader: KnowBertReader,
        masking: Masking | None,
        passages: Sequence[Passage],
        examples: Mapping[str, Sequence[LinkingExample]],
        *,
        null: frozenset[str] = frozenset(),
        idle: bool = False,
        size: int,
        seed: int,
    ) -> None:
        self.reader, self.masking, self.null, self.size, self.seed = reader, masking, null, size, seed
        self.idle = idle
        self.passages = passages
        self.examples = {kb: some for kb, some in examples.items() if some}
        self.language = math.ceil(len(passages) / size)
        every = [math.ceil(len(some) / size) for some in self.examples.values()]
        # Of linking examples alone an epoch has each once; beside passages as many as are their share.
        linking_share = max(1, round(self.language * SHARE / (1 - SHARE)))
        self.linking = linking_share if passages and (every or idle) else sum(every)

    def __len__(self) -> int:
        return self.language + self.linking

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[LanguageBatch | LinkingBatch | None]:
        def drawn(what: int) -> np.random.Generator:  # what is drawn for one thing changes nothing else
            return np.random.default_rng([self.seed, number, what, 1])

        order = drawn(0).permutation(len(self.passages))
        slots = np.sort(drawn(1).permutation(len(self))[: self.linking])  # those of linking examples
        linked = self._linked()
        turns = drawn(2).permutation(len(linked))
        orders = {
            kb: drawn(3 + at).permutation(len(some)) for at, (kb, some) in enumerate(self.examples.items())
        }
        for index in indices:
            before = int(np.searchsorted(slots, index))
            is_linking = before < len(slots) and slots[before] == index
            if is_linking and self.idle:
                yield None
            elif is_linking:
                kb, part = linked[turns[before]]
                chosen = orders[kb][_part(part, self.size, len(orders[kb]))]
                examples = [self.examples[kb][at] for at in chosen]
                yield linking_batch(examples, self.reader, kb, null=kb in self.null)
            else:
                assert self.masking is not None
                part = index - before
                chosen = order[part * self.size : (part + 1) * self.size]
                generator = np.random.default_rng([self.seed, number, part, 2])
                passages = [self.passages[at] for at in chosen]
                yield language_batch(passages, self.reader, self.masking, generator)

    def _linked(self) -> list[tuple[str, int]]:
        """Return the knowledge base and number of each linking batch: in turn, until there are enough."""
        if not self.passages:
            return [
                (kb, part)
                for kb, some in self.examples.items()
                for part in range(math.ceil(len(some) / self.size))
            ]
        kbs = list(self.examples)
        if self.idle:
            return []
        return [(kbs[index % len(kbs)], index // len(kbs)) for index in range(self.linking)]


def _part(part: int, size: int, count: int) -> "np.ndarray":
    """Return the indices of a batch among *count*, which begin again where they end."""
    batches = math.ceil(count / size)
    begin = part % batches * size
    return np.arange(begin, min(begin + size, count))


def language_batch(
    passages: Sequence[Passage], reader: KnowBertReader, masking: Masking, generator: np.random.Generator
) -> LanguageBatch:
    """Return passages as a batch, with words hidden that *generator* draws: the same whatever is known."""
    texts = zip(reader(passage.texts for passage in passages), generator.spawn(len(passages)), strict=True)
    masked = [masking(text, own) for text, own in texts]
    return masked_batch(masked, reader, [passage.follows for passage in passages])


def masked_batch(
    masked: Sequence[MaskedText], reader: KnowBertReader, follows: Sequence[bool | None]
) -> LanguageBatch:
    """Return texts with what is hidden in them, (T,) each, as a batch."""
    batch = reader.batch([text for text, _ in masked])
    labels = pad_labels(masked, batch.inputs["input_ids"].shape[1])
    classes = None if None in follows else torch.tensor([0 if follow else 1 for follow in follows])
    return LanguageBatch(batch, labels, classes)


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


def loss_of(knowbert: "KnowBert") -> "Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]":
    """Return the loss of a batch, for `kgkit.training.loop.train`: of hidden words, or of links."""

    def loss(model: nn.Module, item: LanguageBatch | LinkingBatch | None) -> "Tensor | tuple[Tensor, float]":
        if item is None:  # nothing is learnt, and a loss needs a gradient all the same
            return next(iter(knowbert.parameters())).sum() * 0, 0.0
        if isinstance(item, LinkingBatch):
            output = model(item.batch.knowledge, until=item.kb, **item.batch.inputs)
            linked: Tensor = knowbert.kars[item.kb].linker.loss(output.linked[item.kb], item.gold)
            return linked
        hidden = item.labels != NOTHING
        output = model(item.batch.knowledge, positions=hidden, **item.batch.inputs).model
        total = functional.cross_entropy(logits_of(output).float(), item.labels[hidden])
        if item.follows is not None:
            total = total + functional.cross_entropy(output.seq_relationship_logits.float(), item.follows)
        return total

    return loss


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
        logits, gold, _ = predict_hidden(knowbert, reader, masked)
        surprise += float(functional.cross_entropy(logits, gold, reduction="sum"))
        right += int((logits.argmax(-1) == gold).sum())
        count += len(gold)
        if progress is not None:
            progress("scoring", min(begin + size, len(passages)), len(passages))
    return Perplexity(math.exp(surprise / count), right / count, count)


def score_examples(
    knowbert: "KnowBert",
    reader: KnowBertReader,
    kb: str,
    examples: Sequence[LinkingExample],
    *,
    null: bool,
    size: int = 32,
) -> Scored:
    """Return the scores (C,) of the candidates of mentions with a right one (NULL may be it), and which are.

    Args:
        knowbert: KnowBert in evaluation mode.
        reader: reader of the examples.
        kb: name of the knowledge base whose linker is asked.
        examples: texts with the right candidates of their mentions.
        null: whether NULL is a candidate, and the right one where there is no other.
        size: texts that are read at once.
    """
    device = next(knowbert.parameters()).device
    predictions = []
    for begin in range(0, len(examples), size):
        item = linking_batch(examples[begin : begin + size], reader, kb, null=null).to(device)
        with torch.inference_mode():
            scores = knowbert(item.batch.knowledge, until=kb, **item.batch.inputs).linked[kb].scores.float()
        for mention in item.gold.any(-1).nonzero().tolist():
            own, gold = scores[tuple(mention)], item.gold[tuple(mention)]
            real = ~own.isneginf()
            predictions.append((own[real].cpu().numpy(), gold[real].cpu().numpy()))
    return predictions
