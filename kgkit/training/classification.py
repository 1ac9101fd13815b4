"""Fine-tuning a KnowBert, or an encoder without knowledge, to classify: Peters et al. (2019), section 4.3.

    wic              two sentences
    relation         a sentence, [E1] and [/E1] around one name, [E2] and [/E2] around the other. Where the
                     data (TACRED's) have types of names, a piece for each follows the sentence, such as
                     [SUBJECT=PERSON]
    typing           a sentence, [E] and [/E] around a name
    classification   a text, or two

    B  texts of a batch    T  word pieces of one    P  places of one that are read    L  labels

Read are the vectors at [E1] and [E2], joined, or at [E]; without a name that at the first piece, [CLS].

Departures:
    The code that was released with the paper puts a [SEP] before each of the two pieces for types; here they
    follow the last word, and each other. What is read of a text as a whole: see `kgkit.heads.classifier`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby, tee
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.errors import UsageError
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.markers import insert_markers, marker_positions
from kgkit.inputs.texts import TokenizedText
from kgkit.linking.knowbert import CLASSIFIER
from kgkit.training.examples import TASKS, Example, Label, markers_of, repeated
from kgkit.types import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from kgkit.heads.classifier import Classifier
    from kgkit.heads.knowbert import KnowBert
    from kgkit.linking.knowbert import TrainedKnowBert

_log = logging.getLogger(__name__)


# -- reading ----------------------------------------------------------------


class Read(NamedTuple):
    """An example as it is read.

    Attributes:
        text: with special pieces around its names and behind it.
        places: (P,) where it is read.
        gold: its label's place among the labels; of several (L,) bool, which hold; None without gold.
    """

    text: TokenizedText
    places: tuple[int, ...]
    gold: int | NDArray[np.bool_] | None


class ExampleBatch(NamedTuple):
    """Examples to learn from, or to ask about.

    Attributes:
        batch: what KnowBert reads.
        places: (B, P) int64, where each is read.
        gold: (B,) int64, the label of each; of several (B, L) bool; None if one has none.
    """

    batch: KnowBertBatch
    places: Tensor
    gold: Tensor | None

    def to(self, device: torch.device, **_: object) -> "ExampleBatch":
        """Return it on a device."""
        gold = None if self.gold is None else self.gold.to(device)
        return ExampleBatch(self.batch.to(device), self.places.to(device), gold)


class ExampleReader:
    """Gives a classifier examples to read.

    A text has at most `reader.size` word pieces, whatever is put into it: room for that is left where texts
    are cut. So `size` is chosen as without it: up to what the encoder reads.

    Args:
        reader: reads the texts.
        tokenizer: the encoder's, which has the special pieces.
        specials: as `specials_of` has them.
        labels: as `labels_of` has them.

    Raises:
        UsageError: if the tokenizer lacks a special piece.

    Example:
        >>> reader = ExampleReader(knowbert_reader, tokenizer, specials, labels)
        >>> batches = Shuffled(examples, 32, reader.batch, seed)    # texts are read when they are needed
        >>> classified(reader.batch(examples[:2])).shape
        torch.Size([2, 19])
    """

    def __init__(
        self,
        reader: KnowBertReader,
        tokenizer: "PreTrainedTokenizerBase",
        specials: Sequence[str],
        labels: Sequence[str],
    ) -> None:
        vocabulary = tokenizer.get_vocab()
        if lacking := [name for name in specials if name not in vocabulary]:
            raise UsageError(
                f"the tokenizer lacks the special piece {lacking[0]}: add it, and a row for it to the "
                "embeddings, when the model is made"
            )
        self.reader, self.labels = reader, tuple(labels)
        self.specials = {name: int(vocabulary[name]) for name in specials}
        self._readers: dict[int, KnowBertReader] = {}  # by the pieces that are put into their texts
        self._said: set[str] = set()

    def __call__(self, examples: Iterable[Example]) -> Iterator[Read]:
        """Yield each example as it is read.

        Raises:
            UsageError: if one has a label that is not known here, or names that there are no pieces for; if
                texts are so short that nothing of them is left beside what is put into them.
        """
        for added, some in groupby(examples, lambda one: 2 * len(one.marks) + len(one.tail)):
            asked, told = tee(some)
            texts = self._leaving(added)(one.texts for one in asked)
            yield from (self._read(one, text) for one, text in zip(told, texts, strict=True))

    def batch(self, examples: Iterable[Example]) -> ExampleBatch:
        """Return examples, read and padded to the longest."""
        return self.collate(list(self(examples)))

    def collate(self, read: Sequence[Read]) -> ExampleBatch:
        """Return what has been read, padded to the longest.

        Raises:
            UsageError: if the examples are not read at equally many places.
        """
        if len({len(one.places) for one in read}) != 1:
            raise UsageError("examples of one batch have equally many names, and there is one at least")
        gold = [one.gold for one in read if one.gold is not None]
        return ExampleBatch(
            self.reader.batch([one.text for one in read]),
            torch.tensor([one.places for one in read]),
            torch.from_numpy(np.array(gold)) if len(gold) == len(read) else None,
        )

    def _leaving(self, added: int) -> KnowBertReader:
        """Return a reader of texts that leave room for so many pieces."""
        if added not in self._readers:
            reader, tokens = copy(self.reader), self.reader.tokens
            reader.size -= added
            least = sum(map(len, (tokens.before, tokens.between, tokens.after))) + 2
            if reader.size < least:
                raise UsageError(
                    f"texts of {self.reader.size} pieces, of which {added} are markers, leave no room for "
                    f"words: read {least + added} or more"
                )
            self._readers[added] = reader
        return self._readers[added]

    def _read(self, example: Example, text: TokenizedText) -> Read:
        names = self._names(example, text)
        ids = [[self._marker(piece, example) for piece in pair] for pair in markers_of(len(names))]
        # At one place names end before others begin; the one that begins last ends first.
        opens = sorted(range(len(names)), key=lambda n: -names[n][1])
        closes = sorted(opens, key=lambda n: names[n][0])[::-1]
        markers = [
            *((names[n][0], ids[n][0]) for n in opens),
            *((names[n][1], ids[n][1]) for n in closes if names[n][0] == names[n][1]),
        ]
        ended = [(names[n][1], ids[n][1]) for n in closes if names[n][0] < names[n][1]]
        behind = len(text.ids) - len(self.reader.tokens.after)
        every = [*ended, *markers, *((behind, one) for one in self._tail(example))]
        stand = dict(zip(opens, marker_positions(every)[len(ended) :], strict=False))
        places = tuple(stand[n] for n in range(len(names))) or (0,)
        return Read(insert_markers(text, every), places, self._gold(example))

    def _names(self, example: Example, text: TokenizedText) -> list[tuple[int, int]]:
        """Return the pieces of each name in a text that nothing has been put into."""
        if not example.marks:
            return []
        pieces, begin = self.reader.tokens(example.texts[0]), len(self.reader.tokens.before)
        special = np.flatnonzero(text.special[begin:])
        kept = int(special[0]) if len(special) else len(text.ids) - begin
        names = []
        for mark in example.marks:
            first, end = pieces.within(*mark)
            if kept <= first and kept < len(pieces):
                self._say_once(
                    "cut", "a name is cut off, as that of %s: it is read at the last piece", example
                )
                first, end = max(0, kept - 1), kept
            names.append((begin + first, begin + min(end, kept)))
        return names

    def _marker(self, piece: str, example: Example) -> int:
        if piece not in self.specials:
            raise UsageError(
                f"example {example.id} has a name to be marked with {piece}, which is not among the special "
                f"pieces: {', '.join(self.specials) or 'there are none'}"
            )
        return self.specials[piece]

    def _tail(self, example: Example) -> list[int]:
        if any(name not in self.specials for name in example.tail):
            self._say_once("tail", "types that the model does not know are not read, as that of %s", example)
        return [self.specials[name] for name in example.tail if name in self.specials]

    def _gold(self, example: Example) -> int | NDArray[np.bool_] | None:
        label = example.label
        if label is None:
            return None
        several = isinstance(label, frozenset)
        if strange := sorted((label if isinstance(label, frozenset) else {label}).difference(self.labels)):
            raise UsageError(
                f"example {example.id} has the label {strange[0]!r}; those that are told apart are: "
                f"{', '.join(self.labels)}"
            )
        if several:
            return np.array([name in label for name in self.labels])
        return self.labels.index(str(label))

    def _say_once(self, what: str, sentence: str, example: Example) -> None:
        if what not in self._said:
            self._said.add(what)
            _log.warning(sentence, example.id)


# -- the model --------------------------------------------------------------


class Classified(nn.Module):
    """A KnowBert with a classifier on top.

    Args:
        knowbert: around a bare encoder; with no knowledge base it is that encoder.
        classifier: reads its vectors.

    Raises:
        UsageError: if the KnowBert's model is more than an encoder, or of another width.
    """

    def __init__(self, knowbert: "KnowBert", classifier: "Classifier") -> None:
        super().__init__()
        model = knowbert.model
        if model.base_model is not model:
            raise UsageError(
                f"a classifier stands on an encoder, not on a {type(model).__name__}: read the KnowBert with "
                "model='AutoModel'"
            )
        if model.config.hidden_size != classifier.config.hidden:
            raise UsageError(
                f"the classifier reads vectors of width {classifier.config.hidden}, the encoder has "
                f"{model.config.hidden_size}"
            )
        self.knowbert, self.classifier = knowbert, classifier

    def forward(self, batch: ExampleBatch) -> Tensor:
        """Return the logits of the labels, (B, L)."""
        told = self.knowbert(batch.batch.knowledge, **batch.batch.inputs).model
        logits: Tensor = self.classifier(told.last_hidden_state, batch.places)
        return logits


def open_classified(trained: "TrainedKnowBert") -> tuple[Classified, ExampleReader]:
    """Return what was trained for a task, with what gives it examples to read.

    Args:
        trained: a KnowBert, opened around its bare encoder.

    Raises:
        UsageError: if it was trained for no such task.
        NotThere, DamagedModel: if its classifier cannot be read.
    """
    manifest = trained.manifest
    if manifest.task not in TASKS:
        raise UsageError(
            f"the model {manifest.name} was trained for {manifest.task}, and classifies nothing: "
            f"`kgkit train knowbert --from {manifest.name} --task …` begins as it"
        )
    from kgkit.heads.classifier import Classifier

    device = str(next(trained.knowbert.parameters()).device)
    head = Classifier.from_pretrained(trained.folder / CLASSIFIER, device=device)
    reader = ExampleReader(trained.reader, trained.encoder.tokenizer, manifest.specials, head.config.labels)
    return Classified(trained.knowbert, head).eval(), reader


def loss_of(classifier: "Classifier") -> Callable[[nn.Module, ExampleBatch], tuple[Tensor, float]]:
    """Return the loss of a batch, for `kgkit.training.loop.train` of a `Classified` with this classifier."""

    def loss(model: nn.Module, batch: ExampleBatch) -> tuple[Tensor, float]:
        if batch.gold is None:
            raise UsageError("there are examples without a label: nothing can be learnt from them")
        return classifier.loss(model(batch), batch.gold), float(len(batch.gold))

    return loss


def answers_of(
    model: Classified,
    reader: ExampleReader,
    examples: Sequence[Example],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> dict[str, Label]:
    """Return what a model answers, by the ids of the examples, in their order.

    Args:
        model: in evaluation mode.
        reader: with the labels of the model's classifier.
        examples: their own labels are not read.
        size: how many are read at once.
        progress: is told how many examples are done, of how many.

    Raises:
        UsageError: if the reader has other labels, or two examples have one id.
    """
    if reader.labels != model.classifier.config.labels:
        raise UsageError(
            f"the reader knows the labels {', '.join(reader.labels)}, the classifier "
            f"{', '.join(model.classifier.config.labels)}"
        )
    if twice := repeated(one.id for one in examples):
        raise UsageError(f"two examples have the id {twice!r}: answers go by it")
    device = next(model.parameters()).device
    answers: dict[str, Label] = {}
    order = sorted(examples, key=lambda one: sum(map(len, one.texts)))  # alike in length: little padding
    for begin in range(0, len(order), size):
        some = [one._replace(label=None) for one in order[begin : begin + size]]
        with torch.inference_mode():
            told = model.classifier.answers(model(reader.batch(some).to(device)))
        answers.update(zip((one.id for one in some), told, strict=True))
        if progress is not None:
            progress("predicting", len(answers), len(order))
    return {one.id: answers[one.id] for one in examples}
