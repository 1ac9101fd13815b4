"""Fine-tuning a KnowBert, or an encoder without knowledge, to classify: Peters et al. (2019), section 4.3.

    wic              two sentences; T, if a word means the same in both, or F
    relation         a sentence, [E1] and [/E1] around one name, [E2] and [/E2] around the other; what holds
                     between them. Where the data (TACRED's) have types of names, a piece for each follows the
                     sentence, such as [SUBJECT=PERSON]
    typing           a sentence, [E] and [/E] around a name; those of nine types that it has
    classification   a text, or two; its label

    B  texts of a batch    T  word pieces of one    P  places of one that are read    L  labels

Read are the vectors at [E1] and [E2], joined, or at [E]; without a name that at the first piece, [CLS].

Files of `classification` have a text, or two, and a label, in lines of one of these kinds, and may be
compressed (`.xz`, `.bz2`, `.gz`):

    {"text": …, "label": …}        JSON; a first text is called `text`, `text_a`, `sentence` or `sentence1`, a
                                   second one `text_b` or `sentence2`, and there may be an `id`; what else
                                   there is, is not read
    label <TAB> text_a <TAB> …     a first line that calls columns so, in any order; others are not read
    TEXT <TAB> TEXT <TAB> LABEL    no such line; the second text may be left out

Fields are not quoted. Labels are called what the data call them. A first line with a field `label` and none
of the names of texts is refused: it would be taken for a text.

Departures:
    The code that was released with the paper puts a [SEP] before each of the two pieces for types; here they
    follow the last word, and each other. What is read of a text as a whole: see `kgkit.heads.classifier`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby, tee
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.evaluation.entity_typing import TYPES, Typed, read_typed, score_typed
from kgkit.evaluation.files import lines, opened
from kgkit.evaluation.relations import OTHER, Relation, read_relations, score_relations
from kgkit.evaluation.tacred import read_tacred, score_tacred
from kgkit.evaluation.wic import WordPair, read_pairs, score_pairs
from kgkit.inputs.knowbert import Batch, KnowBertReader, Text
from kgkit.inputs.marked import marked, places_of
from kgkit.linking.knowbert import CLASSIFIER
from kgkit.training.knowbert_plan import CLASSES

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from kgkit.heads.classifier import Classifier
    from kgkit.heads.knowbert import KnowBert
    from kgkit.linking.knowbert import TrainedKnowBert

_log = logging.getLogger(__name__)

TASKS: Final = CLASSES

Label = str | frozenset[str]

_SAME: Final = {True: "T", False: "F"}
_FIRST: Final = ("text", "text_a", "sentence", "sentence1")
_SECOND: Final = ("text_b", "sentence2")
_ID: Final = ("id", "index")
_LABEL: Final = ("label",)
_NAMES: Final = (
    f"the first text is called {', '.join(_FIRST[:-1])} or {_FIRST[-1]}, a second one {' or '.join(_SECOND)}"
)
_DIRECTIONS: Final = ("(e1,e2)", "(e2,e1)")


class Example(NamedTuple):
    """A text to classify.

    Attributes:
        id: once in its file.
        texts: one, or two.
        marks: code points of names in the first text, end exclusive.
        tail: special pieces that follow the last text.
        label: what holds: one label, or any number of them; None in a file without gold.
    """

    id: str
    texts: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] = ()
    tail: tuple[str, ...] = ()
    label: Label | None = None


_Line = msgspec.defstruct(
    "_Line",
    [
        *((name, str | None, None) for name in (*_FIRST, *_SECOND)),
        *((name, str | int | bool | None, None) for name in (*_ID, *_LABEL)),
    ],
)
"""What is read of a line of JSON."""


# -- files ------------------------------------------------------------------


def read_examples(task: str, path: Path, gold: Path | None = None) -> list[Example]:
    """Return the examples of a file.

    Args:
        task: one of `TASKS`.
        path: of `relation`, a file of SemEval-2010 task 8 or a JSON list, as TACRED has it.
        gold: the labels of a file of the release of WiC.

    Raises:
        UnknownName: if there is no such task.
        NotThere: if there is no such file.
        UsageError: if *gold* is given and the labels are not in a file of their own.
        SourceError: if the file is not what it should be, or two examples have one id.
    """
    _known(task)
    if gold is not None and task != "wic":
        raise UsageError(f"files of {task} have their labels in themselves: leave out {gold}")
    if task == "wic":
        found = [
            Example(one.id, (one.first, one.second), label=None if one.label is None else _SAME[one.label])
            for one in read_pairs(path, gold)
        ]
    elif task == "relation":
        found = list(_relations(path))
    elif task == "typing":
        found = [Example(one.id, (one.text,), (one.span,), label=one.types) for one in read_typed(path)]
    else:
        found = list(_texts(path))
    if twice := _twice(found):
        raise SourceError(f"two examples have the id {twice!r}: answers go by it", path=path)
    return found


def _relations(path: Path) -> Iterator[Example]:
    with opened(path) as stream:
        begin = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    for one in (read_tacred if begin.startswith(b"[") else read_relations)(path):
        types = (("SUBJECT", one.first_type), ("OBJECT", one.second_type))
        tail = tuple(f"[{role}={kind}]" for role, kind in types if kind)
        yield Example(one.id, (one.text,), (one.first, one.second), tail, one.label)


def _texts(path: Path) -> Iterator[Example]:
    """Yield the examples of a file of `classification`."""
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        raise SourceError("no text in it: there are no lines", path=path)
    if first[1].lstrip().startswith("{"):
        yield from (_of_json(path, *one) for one in (first, *numbered))
        return
    columns = [name.strip().lower() for name in first[1].split("\t")]
    named = any(name in _FIRST for name in columns)
    if not named and not {*_LABEL}.isdisjoint(columns):
        raise SourceError(
            f"it names columns ({', '.join(columns)}), and no text among them: {_NAMES}",
            path=path, line=first[0], text=first[1],
        )  # fmt: skip
    if not named:
        columns = {2: ["text", "label"], 3: ["text_a", "text_b", "label"]}.get(len(columns), [])
        if not columns:
            raise SourceError(
                "expected TEXT, TEXT, LABEL or TEXT, LABEL with tabs between them, or a first line that "
                f"names the columns (label, text_a, text_b); found {first[1].count(chr(9)) + 1} fields",
                path=path, line=first[0], text=first[1],
            )  # fmt: skip
    empty = True
    for number, line in numbered if named else (first, *numbered):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise SourceError(
                f"expected {len(columns)} tab-separated fields ({', '.join(columns)}), found {len(fields)}",
                path=path, line=number, text=line,
            )  # fmt: skip
        yield _example(dict(zip(columns, fields, strict=True)), path, number, line)
        empty = False
    if empty:
        raise SourceError("no text in it: it names columns, and ends", path=path)


def _of_json(path: Path, number: int, line: str) -> Example:
    try:
        found = msgspec.structs.asdict(msgspec.json.decode(line, type=_Line))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            'expected {"text": "…", "label": "…"}: texts are strings, a label or an id is a string, a whole '
            f"number, true or false: {error}",
            path=path, line=number, text=line,
        ) from None  # fmt: skip
    plain = {name: one if isinstance(one, str) else _name(one) for name, one in found.items()}
    return _example({name: one for name, one in plain.items() if one is not None}, path, number, line)


def _name(value: int | bool | None) -> str | None:
    """Return what JSON calls it."""
    return None if value is None else msgspec.json.encode(value).decode()


def _example(fields: Mapping[str, str], path: Path, number: int, line: str) -> Example:
    def one_of(names: Sequence[str]) -> str | None:
        return next((fields[name] for name in names if name in fields), None)

    first, second, name, label = (one_of(names) for names in (_FIRST, _SECOND, _ID, _LABEL))
    if first is None:
        raise SourceError(f"there is no text: {_NAMES}", path=path, line=number, text=line)
    if label is not None and not label.strip():
        raise SourceError("the label is empty", path=path, line=number, text=line)
    texts = (first,) if second is None else (first, second)
    return Example(name or str(number), texts, label=None if label is None else label.strip())


def check_labels(task: str, examples: Sequence[Example], what: str) -> None:
    """Refuse examples without a label, before anything is computed.

    Args:
        task: one of `TASKS`.
        examples: to learn from, or to score with.
        what: what they are, such as their file; the sentence begins with it.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if one has none. That nothing holds, as it may in `typing`, is a label.
    """
    _known(task)
    if lacking := [one.id for one in examples if one.label is None]:
        give = "name their file of gold (--gold)" if task == "wic" else "give each a label"
        raise UsageError(
            f"{what}: {len(lacking):,} of {len(examples):,} examples have no label, the first is "
            f"{lacking[0]}: {give}, or leave them out"
        )


# -- what a task needs ------------------------------------------------------


def labels_of(task: str, examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the labels to be told apart: those of the task, or, where the data decide, of the examples.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if an example has no label.
    """
    _known(task)
    if task == "wic":
        return tuple(sorted(_SAME.values()))
    if task == "typing":
        return TYPES
    return tuple(sorted({_single(one.label, f"example {one.id}") for one in examples}))


def specials_of(task: str, examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the special pieces that a task needs: the tokenizer and the embeddings are to have them.

    They are added once, when a model is made: what follows the texts of *examples* is known, what follows
    others' is left out when these are read.

    Raises:
        UnknownName: if there is no such task.
    """
    _known(task)
    names = {"relation": 2, "typing": 1}.get(task, 0)
    tails = sorted({name for one in examples for name in one.tail})
    return (*(piece for pair in _markers(names) for piece in pair), *tails)


def _markers(names: int) -> list[tuple[str, str]]:
    """Return what opens and what closes each of so many names."""
    numbers = [""] if names == 1 else [str(number) for number in range(1, names + 1)]
    return [(f"[E{number}]", f"[/E{number}]") for number in numbers]


# -- reading ----------------------------------------------------------------


class Read(NamedTuple):
    """An example as it is read.

    Attributes:
        text: with special pieces around its names and behind it.
        places: (P,) where it is read.
        gold: its label's place among the labels; of several (L,) bool, which hold; None without gold.
    """

    text: Text
    places: tuple[int, ...]
    gold: int | NDArray[np.bool_] | None


class ExampleBatch(NamedTuple):
    """Examples to learn from, or to ask about.

    Attributes:
        batch: what KnowBert reads.
        places: (B, P) int64, where each is read.
        gold: (B,) int64, the label of each; of several (B, L) bool; None if one has none.
    """

    batch: Batch
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

    def _read(self, example: Example, text: Text) -> Read:
        names = self._names(example, text)
        ids = [[self._marker(piece, example) for piece in pair] for pair in _markers(len(names))]
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
        stand = dict(zip(opens, places_of(every)[len(ended) :], strict=False))
        places = tuple(stand[n] for n in range(len(names))) or (0,)
        return Read(marked(text, every), places, self._gold(example))

    def _names(self, example: Example, text: Text) -> list[tuple[int, int]]:
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
    progress: Callable[[int, int], object] | None = None,
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
    if twice := _twice(examples):
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
            progress(len(answers), len(order))
    return {one.id: answers[one.id] for one in examples}


# -- scores -----------------------------------------------------------------


def scores_of(task: str, examples: Sequence[Example], answers: Mapping[str, Label]) -> dict[str, float]:
    """Return the scores of answers, by the ids of the examples, in [0, 1]; the official one is the first.

    Args:
        task: one of `TASKS`. Relations are scored as in SemEval-2010 if all are relations of it, with
            directions, and else as in TACRED.
        examples: with their labels.
        answers: one label for each, or of `typing` those that hold; an example without one counts as wrong,
            or as one where nothing was found.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if an example has no label, two have one id, or an answer can be none.
    """
    _known(task)
    if twice := _twice(examples):
        raise UsageError(f"two examples have the id {twice!r}: score those of one file")
    if lacking := next((one.id for one in examples if one.label is None), None):
        raise UsageError(f"example {lacking} has no label: score on a file with gold")
    if task == "typing":
        typed = [Typed(one.id, "", (0, 0), _several(one.label, f"example {one.id}")) for one in examples]
        types = score_typed(typed, {name: _several(one, f"answer {name}") for name, one in answers.items()})
        return {"f1": types.f1, "precision": types.precision, "recall": types.recall}
    gold = {one.id: _single(one.label, f"example {one.id}") for one in examples}
    single = {name: _single(one, f"answer {name}") for name, one in answers.items()}
    if task == "relation":
        return _relation_scores(gold, single)
    if task == "wic":
        same = {name: value for value, name in _SAME.items()}
        if strange := sorted({*gold.values(), *single.values()} - same.keys()):
            raise UsageError(f"{strange[0]!r} is no answer of {task}: T or F")
        pairs = [WordPair(name, "", "", "", "", same[label]) for name, label in gold.items()]
        return {"accuracy": score_pairs(pairs, {name: same[one] for name, one in single.items()}).accuracy}
    right = sum(single.get(name) == label for name, label in gold.items())
    return {"accuracy": right / max(1, len(gold))}


def _relation_scores(gold: Mapping[str, str], answers: Mapping[str, str]) -> dict[str, float]:
    relations = [Relation(name, "", (0, 0), (0, 0), label) for name, label in gold.items()]
    if all(label == OTHER or label.endswith(_DIRECTIONS) for label in gold.values()):
        directed = score_relations(relations, answers)
        return {"macro_f1": directed.macro_f1, "accuracy": directed.accuracy}
    found = score_tacred(relations, answers)
    return {"f1": found.f1, "precision": found.precision, "recall": found.recall}


def _single(label: Label | None, what: str) -> str:
    if not isinstance(label, str):
        raise UsageError(f"{what} has {'no label' if label is None else 'several labels'}: expected one")
    return label


def _several(label: Label | None, what: str) -> frozenset[str]:
    if not isinstance(label, frozenset):
        raise UsageError(f"{what} has {label!r}: expected a frozenset of labels")
    return label


def _known(task: str) -> None:
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)


def _twice(examples: Iterable[Example]) -> str | None:
    """Return an id that two examples have."""
    seen = set[str]()
    for one in examples:
        if one.id in seen:
            return one.id
        seen.add(one.id)
    return None
