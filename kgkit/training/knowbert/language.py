"""Training a KnowBert as a language model, and as a linker, or both in turn; perplexity.

    B  texts    T  word pieces    N  hidden ones of a batch    V  the vocabulary

A batch is one of passages, some of whose words are hidden, or one of lessons, whose mentions are linked.

Departures:
    Texts of lessons are read as far as the linker only, and teach no prediction of the next sentence; the
    released code reads them to the end. The batches of lessons are divided evenly among the knowledge bases
    (there 0.075 of all for each of two). What is measured by, hides more than what is trained on: see
    `Masking` (`told`).
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
from kgkit.evaluation.facts import Probe
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.masking import NOTHING, MaskedText, Masking, hide
from kgkit.inputs.passages import Passage
from kgkit.training.knowbert.linking_batches import Lesson, LinkingBatch, linking_batch
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.heads.knowbert import KnowBert

SHARE: Final = 0.2
"""Batches of lessons, of all, where there are passages too (Peters et al. 2019, section 4.1)."""


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
    """Batches of passages and of lessons, in another order each epoch: see `Batches`.

    Args:
        reader: reads the passages.
        masking: hides words of them; None, if there are none.
        passages: to learn the language from.
        lessons: to learn linking from, by the name of the knowledge base.
        null: the knowledge bases where NULL is a candidate.
        idle: leave out what would be the batches of lessons, as for a control: so it reads the same passages,
            in the same order, at the same learning rates.
        size: texts of a batch.
        seed: of order and hidden words.
    """

    def __init__(
        self,
        reader: KnowBertReader,
        masking: Masking | None,
        passages: Sequence[Passage],
        lessons: Mapping[str, Sequence[Lesson]],
        *,
        null: frozenset[str] = frozenset(),
        idle: bool = False,
        size: int,
        seed: int,
    ) -> None:
        self.reader, self.masking, self.null, self.size, self.seed = reader, masking, null, size, seed
        self.idle = idle
        self.passages = passages
        self.lessons = {kb: some for kb, some in lessons.items() if some}
        self.language = math.ceil(len(passages) / size)
        every = [math.ceil(len(some) / size) for some in self.lessons.values()]
        # Of lessons alone an epoch has each once; beside passages as many as are their share.
        beside = max(1, round(self.language * SHARE / (1 - SHARE)))
        self.linking = beside if passages and (every or idle) else sum(every)

    def __len__(self) -> int:
        return self.language + self.linking

    def epoch(self, number: int, places: Sequence[int]) -> Iterator[LanguageBatch | LinkingBatch | None]:
        def drawn(what: int) -> np.random.Generator:  # what is drawn for one thing changes nothing else
            return np.random.default_rng([self.seed, number, what, 1])

        order = drawn(0).permutation(len(self.passages))
        slots = np.sort(drawn(1).permutation(len(self))[: self.linking])  # those of lessons
        linked = self._linked()
        turns = drawn(2).permutation(len(linked))
        orders = {
            kb: drawn(3 + at).permutation(len(some)) for at, (kb, some) in enumerate(self.lessons.items())
        }
        for place in places:
            before = int(np.searchsorted(slots, place))
            is_linking = before < len(slots) and slots[before] == place
            if is_linking and self.idle:
                yield None
            elif is_linking:
                kb, part = linked[turns[before]]
                chosen = orders[kb][_part(part, self.size, len(orders[kb]))]
                yield linking_batch(
                    [self.lessons[kb][at] for at in chosen], self.reader, kb, null=kb in self.null
                )
            else:
                assert self.masking is not None
                part = place - before
                chosen = order[part * self.size : (part + 1) * self.size]
                generator = np.random.default_rng([self.seed, number, part, 2])
                yield language_batch(
                    [self.passages[at] for at in chosen], self.reader, self.masking, generator
                )

    def _linked(self) -> list[tuple[str, int]]:
        """Return knowledge base and number of each batch of lessons: in turn, until there are enough."""
        if not self.passages:
            return [
                (kb, part)
                for kb, some in self.lessons.items()
                for part in range(math.ceil(len(some) / self.size))
            ]
        kbs = list(self.lessons)
        if self.idle:
            return []
        return [(kbs[place % len(kbs)], place // len(kbs)) for place in range(self.linking)]


def _part(part: int, size: int, count: int) -> "np.ndarray":
    """Return the places of a batch among *count*, which begin again where they end."""
    batches = math.ceil(count / size)
    begin = part % batches * size
    return np.arange(begin, min(begin + size, count))


def language_batch(
    passages: Sequence[Passage], reader: KnowBertReader, masking: Masking, generator: np.random.Generator
) -> LanguageBatch:
    """Return passages as a batch, with words hidden that *generator* draws: the same whatever is known."""
    texts = zip(reader(one.texts for one in passages), generator.spawn(len(passages)), strict=True)
    return masked_batch(
        [masking(text, own) for text, own in texts], reader, [one.follows for one in passages]
    )


def masked_batch(
    masked: Sequence[MaskedText], reader: KnowBertReader, follows: Sequence[bool | None]
) -> LanguageBatch:
    """Return texts with what is hidden in them, (T,) each, as a batch."""
    batch = reader.batch([text for text, _ in masked])
    labels = np.full(tuple(batch.inputs["input_ids"].shape), NOTHING, np.int64)
    for row, (_, hidden) in enumerate(masked):
        labels[row, : len(hidden)] = hidden
    known = [one for one in follows if one is not None]
    return LanguageBatch(
        batch,
        torch.from_numpy(labels),
        torch.tensor([0 if one else 1 for one in known]) if len(known) == len(masked) else None,
    )


def masking_of(encoder: "Encoder", told: Literal["some", "mask", "none"] = "some") -> Masking:
    """Return what hides words of an encoder's texts; see `Masking` for *told*.

    Raises:
        UsageError: if its tokenizer has no piece [MASK].
    """
    tokenizer = encoder.tokenizer
    if tokenizer.mask_token_id is None:
        raise UsageError(
            f"the tokenizer of {encoder.name} has no [MASK]: it cannot be a masked language model"
        )
    added = [number for number, one in tokenizer.added_tokens_decoder.items() if one.special]
    ordinary = np.setdiff1d(np.arange(len(tokenizer)), [*tokenizer.all_special_ids, *added])
    return Masking(tokenizer.mask_token_id, ordinary, mentions=told)


def loss_of(knowbert: "KnowBert") -> "Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]":
    """Return the loss of a batch, for `kgkit.training.loop.train`: of hidden words, or of links."""

    def loss(model: nn.Module, item: LanguageBatch | LinkingBatch | None) -> "Tensor | tuple[Tensor, float]":
        if item is None:  # nothing is learnt, and a loss needs a gradient all the same
            return next(iter(knowbert.parameters())).sum() * 0, 0.0
        if isinstance(item, LinkingBatch):
            output = model(item.batch.knowledge, until=item.kb, **item.batch.inputs)
            linked: Tensor = knowbert.kars[item.kb].linker.loss(output.linked[item.kb], item.gold)
            return linked
        places = item.labels != NOTHING
        told = model(item.batch.knowledge, positions=places, **item.batch.inputs).model
        found = functional.cross_entropy(logits_of(told).float(), item.labels[places])
        if item.follows is not None:
            found = found + functional.cross_entropy(told.seq_relationship_logits.float(), item.follows)
        return found

    return loss


def logits_of(told: Any) -> Tensor:
    """Return (N, V), what a masked language model of transformers says of the places it was asked about."""
    logits: Tensor = told.prediction_logits if "prediction_logits" in told else told.logits
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
        knowbert: around a masked language model, in evaluation mode.
        reader: reads the passages.
        masking: hides words.
        passages: single ones; of pairs, what follows is not asked for.
        size: texts that are read at once.
        seed: of what is hidden.
        progress: is told how many passages are done, of how many.

    Raises:
        UsageError: if there are no passages.
    """
    if not passages:
        raise UsageError("there are no passages to guess words of")
    device = next(knowbert.parameters()).device
    surprise, right, count = 0.0, 0, 0
    for begin in range(0, len(passages), size):
        part = passages[begin : begin + size]
        masked = [
            masking(text, np.random.default_rng([seed, begin + place]))
            for place, text in enumerate(reader(one.texts for one in part))
        ]
        item = masked_batch(masked, reader, [None for _ in part]).to(device)
        places = item.labels != NOTHING
        with torch.inference_mode():
            logits = logits_of(
                knowbert(item.batch.knowledge, positions=places, **item.batch.inputs).model
            ).float()
            gold = item.labels[places]
            surprise += float(functional.cross_entropy(logits, gold, reduction="sum"))
            right += int((logits.argmax(-1) == gold).sum())
        count += len(gold)
        if progress is not None:
            progress("scoring", min(begin + size, len(passages)), len(passages))
    return Perplexity(math.exp(surprise / count), right / count, count)


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
        knowbert: around a masked language model, in evaluation mode.
        reader: reads the sentences.
        mask: the piece [MASK].
        probes: any.
        size: sentences that are read at once.
        progress: is told how many are done, of how many.
    """
    device = next(knowbert.parameters()).device
    for begin in range(0, len(probes), size):
        part, masked = [], []
        for probe, text in zip(
            probes[begin : begin + size],
            reader((one.text,) for one in probes[begin : begin + size]),
            strict=True,
        ):
            first, end = (
                place + len(reader.tokens.before) for place in reader.tokens(probe.text).within(*probe.span)
            )
            if first < end <= len(text.ids) - len(reader.tokens.after):
                part.append(probe)
                masked.append(hide(text, np.arange(first, end), mask))
        if part:
            item = masked_batch(masked, reader, [None for _ in part]).to(device)
            places = item.labels != NOTHING
            with torch.inference_mode():
                output = knowbert(item.batch.knowledge, positions=places, **item.batch.inputs)
                logits = logits_of(output.model).float()  # (N, V)
                gold = logits.gather(-1, item.labels[places][:, None])
                ranks = (1 + (logits > gold).sum(-1)).tolist()
            counts = places.sum(-1).tolist()
            for probe, count in zip(part, counts, strict=True):
                yield probe.relation, ranks[:count]
                ranks = ranks[count:]
        if progress is not None:
            progress("scoring", min(begin + size, len(probes)), len(probes))


def scored_lessons(
    knowbert: "KnowBert",
    reader: KnowBertReader,
    kb: str,
    lessons: Sequence[Lesson],
    *,
    null: bool,
    size: int = 32,
) -> Scored:
    """Return the scores (C,) of the candidates of mentions with a right one (NULL may be it), and which are.

    Args:
        knowbert: in evaluation mode.
        reader: of the lessons.
        kb: whose linker is asked.
        lessons: any.
        null: whether NULL is a candidate, and the right one where there is no other.
        size: texts that are read at once.
    """
    device = next(knowbert.parameters()).device
    found = []
    for begin in range(0, len(lessons), size):
        item = linking_batch(lessons[begin : begin + size], reader, kb, null=null).to(device)
        with torch.inference_mode():
            scores = knowbert(item.batch.knowledge, until=kb, **item.batch.inputs).linked[kb].scores.float()
        there = ~scores.isneginf()
        for row, place in item.gold.any(-1).nonzero().tolist():
            own = there[row, place]
            found.append((scores[row, place][own].cpu().numpy(), item.gold[row, place][own].cpu().numpy()))
    return found
