"""Data of a KnowBert: passages with hidden words, and documents with links; batches, loss and scores.

    B  texts    T  word pieces    N  hidden ones of a batch    V  the vocabulary

A batch is one of passages, some of whose words are hidden, or one of linking examples.

Departures:
    Linking examples are read as far as the linker only, and teach no prediction of the next sentence; the
    released code reads them to the end. Their batches are divided evenly among the knowledge bases (there
    0.075 of all for each of two).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from kgkit.candidates import Generator
from kgkit.errors import NotThere
from kgkit.evaluation.calibration import Scored
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.masking import NOTHING, Masking, logits_of
from kgkit.inputs.passages import Passage
from kgkit.inputs.texts import TokenizedText
from kgkit.kb import KnowledgeBase
from kgkit.methods.hidden_words import LanguageBatch, masked_batch
from kgkit.methods.settings import TaskTraining
from kgkit.training.data import HeldOut, hold_out_each_tenth
from kgkit.training.linkers.labelled import LabelledDocument, labelled_files
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.heads.knowbert import KnowBert


class LinkingExample(NamedTuple):
    """A text to learn linking from.

    Attributes:
        text: as it is read.
        right: for each of its mentions (C,) bool, which candidates are right; none, if none of them is.
    """

    text: TokenizedText
    right: list[NDArray[np.bool_]]


class LinkingBatch(NamedTuple):
    """Texts, and what is meant in them.

    Attributes:
        kb: the name of the knowledge base.
        batch: what KnowBert reads.
        gold: (B, M, C) bool; of one candidate more, NULL, where that is one.
    """

    kb: str
    batch: KnowBertBatch
    gold: Tensor

    def to(self, device: torch.device, **_: object) -> "LinkingBatch":
        """Return it on a device."""
        return LinkingBatch(self.kb, self.batch.to(device), self.gold.to(device))


def read_linking_examples(
    documents: Iterable[LabelledDocument], reader: KnowBertReader, kb: str, *, null: bool
) -> Iterator[LinkingExample]:
    """Yield documents as KnowBert reads them; texts that teach nothing are left out.

    Args:
        documents: documents whose mentions have candidates in *kb*.
        reader: reader with *kb* among its knowledge bases; what the others know is read too.
        kb: name that the reader has for the knowledge base.
        null: whether a mention none of whose candidates is right teaches that it means nothing.
    """
    for document, right, *_ in documents:
        for text in reader.read_document(document, {kb: document}):
            own = [right[index] for index in text.mentions[kb].indices.tolist()]
            if own if null else any(flags.any() for flags in own):
                yield LinkingExample(text, own)


def linking_batch(
    examples: Sequence[LinkingExample], reader: KnowBertReader, kb: str, *, null: bool
) -> LinkingBatch:
    """Return examples as a batch."""
    batch = reader.batch([example.text for example in examples])
    wide = batch.knowledge[kb].candidates.shape
    gold = np.zeros((*wide[:2], wide[2] + null), np.bool_)
    for row, example in enumerate(examples):
        for column, right in enumerate(example.right):
            gold[row, column, : len(right)] = right
            if null and not right.any():
                gold[row, column, -1] = True
    return LinkingBatch(kb, batch, torch.from_numpy(gold))


def links_of(
    training: TaskTraining,
    kb: KnowledgeBase,
    generator: Generator,
    progress: Progress | None,
    *,
    lemmas: bool = False,
) -> HeldOut[LabelledDocument]:
    """Return the documents of the tasks `wsd` and `el`.

    Args:
        training: settings, which name the files.
        kb: knowledge base that is linked to.
        generator: generator of the candidates.
        progress: callback with the number of documents that have been read.
        lemmas: whether the candidates of a sense are those of its lemma.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """

    def read(files: Sequence[Path]) -> list[LabelledDocument]:
        gold = training.gold_of(files)
        if training.task == "wsd" and None in gold:
            data = files[gold.index(None)]
            raise NotThere(f"no senses beside {data}: X.gold.key.txt is expected there for X.data.xml")
        return labelled_files(kb, generator, files, gold, progress, lemmas=lemmas)

    learn = read(training.data)
    return HeldOut(learn, read(training.dev)) if training.dev else hold_out_each_tenth(learn)


SHARE: Final = 0.2
"""Batches of linking examples, of all, where there are passages too (Peters et al. 2019, section 4.1)."""


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
        """Yield batches of passages and of linking examples; None for the latter where `idle`."""

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


def loss_of(knowbert: "KnowBert") -> Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]:
    """Return the loss of a batch, for `kgkit.training.loop.train`: of hidden words, or of links."""

    def loss(model: nn.Module, item: LanguageBatch | LinkingBatch | None) -> Tensor | tuple[Tensor, float]:
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
