"""K-BERT's tasks: what they are read from, what is learnt, how well it was told (Liu et al. 2020, section 4).

    classification, pair   the label of a text, or of two, read at [CLS]
    ranking                whether a text answers a question; its answers are ranked by how likely that is
    tagging                the tag of each token, read at its first word piece; what is injected has none

    B  trees of a batch    N  word pieces of one    W  places of one that are read
    R  places of a batch   L  labels                H  encoder width

    trees ─KBert─▶ hidden (B, N, H) ─at R places─▶ (R, H) ─linear─▶ logits (R, L)

Departures:
    The released code has another layer, with tanh, before the labels of a text, and gives injected tokens a
    tag of their own, [ENT], which it neither learns nor scores.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.evaluation.ner import OUTSIDE, Name, NameScore, NameScores, chunks, score_names
from kgkit.evaluation.positive import score_positive
from kgkit.evaluation.ranking import Answer, read_answers, score_ranking
from kgkit.evaluation.tagged_rows import joined, read_tags, score_begun_spans
from kgkit.inputs.trees import TreeReader
from kgkit.training.examples import read_examples, repeated
from kgkit.training.kbert_plan import TASKS
from kgkit.trees import FlatTree
from kgkit.types import Document, LinkedDocument, Progress

if TYPE_CHECKING:
    from kgkit.heads.classifier import Classifier
    from kgkit.heads.kbert import KBert, KBertInputs

_RIGHT: Final = "1"
_PART: Final = {True: _RIGHT, False: "0"}


class Example(NamedTuple):
    """What one tree is read for.

    Attributes:
        id: once in its file.
        texts: one, or two.
        tokens: code points of the tokens that have a tag, end exclusive; none but in tagging.
        gold: the label of the text, or the tag of each token; None in a file without gold.
        group: of ranking, the question.
    """

    id: str
    texts: tuple[str, ...]
    tokens: tuple[tuple[int, int], ...] = ()
    gold: tuple[str, ...] | None = None
    group: str = ""


class Read(NamedTuple):
    """An example as it is read.

    Attributes:
        tree: its word pieces.
        places: (W,) int64 of them, where it is read; -1 where a token was cut off.
        gold: (W,) int64, the labels there; None without gold.
    """

    tree: FlatTree
    places: NDArray[np.int64]
    gold: NDArray[np.int64] | None


class TaskBatch(NamedTuple):
    """Examples to learn from, or to ask about.

    Attributes:
        inputs: what K-BERT reads.
        rows: (R,) int64, the tree of each place.
        places: (R,) int64, its word piece.
        gold: (R,) int64, its label; None if an example has none.
    """

    inputs: "KBertInputs"
    rows: Tensor
    places: Tensor
    gold: Tensor | None

    def to(self, device: torch.device, **_: object) -> "TaskBatch":
        """Return it on a device."""
        gold = None if self.gold is None else self.gold.to(device)
        return TaskBatch(self.inputs.to(device), self.rows.to(device), self.places.to(device), gold)


# -- files ------------------------------------------------------------------


def read_task(task: str, path: Path) -> list[Example]:
    """Return the examples of a file.

    Args:
        task: one of `TASKS`.
        path: as `kgkit.training.examples` (classification, pair), `kgkit.evaluation.ranking` and
            `kgkit.evaluation.tagged_rows` have it.

    Raises:
        UnknownName: if there is no such task.
        NotThere: if there is no such file.
        SourceError: if it is not what it should be, or two examples have one id.
    """
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    if task == "tagging":
        return [*_tagged(path)]
    if task == "ranking":
        return [
            Example(
                one.id,
                (one.question, one.answer),
                (),
                None if one.right is None else (_PART[one.right],),
                one.qid,
            )
            for one in read_answers(path)
        ]
    found = read_examples("classification", path)
    if task == "pair" and (alone := next((one for one in found if len(one.texts) < 2), None)):
        raise SourceError(
            f"example {alone.id} is one text, not a pair: its task is classification", path=path
        )
    return [Example(one.id, one.texts, (), None if one.label is None else (str(one.label),)) for one in found]


def _tagged(path: Path) -> Iterator[Example]:
    for name, tokens, tags in read_tags(path):
        text, spans = joined(tokens)
        yield Example(name, (text,), tuple(spans), tuple(tags))


def labels_of(task: str, examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the labels to be told apart: those of the examples; tags with O, which is the first.

    Raises:
        UsageError: if an example has none.
    """
    found: set[str] = set()
    for one in examples:
        if one.gold is None:
            raise UsageError(f"example {one.id} has no label: nothing can be learnt from it")
        found.update(one.gold)
    if task == "tagging":
        return (OUTSIDE, *sorted(found - {OUTSIDE}))
    return tuple(sorted(found))


# -- reading ----------------------------------------------------------------


class TaskReader:
    """Gives K-BERT examples of a task.

    Args:
        reader: reads the trees.
        labels: those that are told apart.
        look: finds the mentions, or links, of texts; None: the knowledge bases' own surfaces.
    """

    def __init__(
        self,
        reader: TreeReader,
        labels: Sequence[str],
        look: Callable[[Iterable[Document]], Iterable[Document | LinkedDocument]] | None = None,
    ) -> None:
        self.reader, self.labels = reader, tuple(labels)
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        self._look = look or iter

    def __call__(self, examples: Sequence[Example]) -> Iterator[Read]:
        """Yield each example as it is read.

        Raises:
            UsageError: if one has a label that is not known here.
        """
        found = iter(self._look(Document(one.id, text) for one in examples for text in one.texts))
        for one in examples:
            tree = self.reader.read([next(found) for _ in one.texts], one.tokens)
            places = _firsts(tree, one.tokens) if one.tokens else np.zeros(1, np.int64)
            yield Read(tree, places, self._gold(one))

    def batch(self, examples: Sequence[Example]) -> TaskBatch:
        """Return examples, read and padded to the longest."""
        return self.collate([*self(examples)])

    def collate(self, read: Sequence[Read]) -> TaskBatch:
        """Return what has been read, padded to the longest."""
        there = [one.places >= 0 for one in read]
        rows = np.repeat(np.arange(len(read)), [int(kept.sum()) for kept in there])
        gold = [one.gold[kept] for one, kept in zip(read, there, strict=True) if one.gold is not None]
        return TaskBatch(
            self.reader.batch([one.tree for one in read]),
            torch.from_numpy(rows),
            torch.from_numpy(
                np.concatenate([one.places[kept] for one, kept in zip(read, there, strict=True)])
            ),
            torch.from_numpy(np.concatenate(gold)) if len(gold) == len(read) else None,
        )

    def _gold(self, example: Example) -> NDArray[np.int64] | None:
        if example.gold is None:
            return None
        if strange := [one for one in example.gold if one not in self._numbers]:
            raise UsageError(
                f"example {example.id} has the label {strange[0]!r}; those that are told apart are: "
                f"{', '.join(self.labels)}"
            )
        return np.array([self._numbers[one] for one in example.gold], np.int64)


def _firsts(tree: FlatTree, tokens: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return (W,) the first word piece of each token of the text; -1 where it has none, or was cut off."""
    own = np.flatnonzero(tree.starts >= 0)  # the text's pieces, in order
    spans = np.array(tokens, np.int64).reshape(-1, 2)
    first = np.searchsorted(tree.starts[own], spans[:, 0])
    there = first < len(own)
    places = own[first[there]]
    found = np.full(len(spans), -1, np.int64)
    found[there] = np.where(tree.starts[places] < spans[there, 1], places, -1)
    return found


# -- the model --------------------------------------------------------------


class TreeTask(nn.Module):
    """A K-BERT with a classifier on top, of texts or of their tokens.

    Args:
        kbert: around a bare encoder.
        classifier: reads its vectors, one place at a time.

    Raises:
        UsageError: if the K-BERT's model is more than an encoder.
    """

    def __init__(self, kbert: "KBert", classifier: "Classifier") -> None:
        super().__init__()
        if kbert.model.base_model is not kbert.model:
            raise UsageError(
                f"a classifier stands on an encoder, not on a {type(kbert.model).__name__}: read the K-BERT "
                "with model='AutoModel'"
            )
        self.kbert, self.classifier = kbert, classifier

    def forward(self, batch: TaskBatch) -> Tensor:
        """Return the logits of the labels at each place, (R, L)."""
        hidden = self.kbert(batch.inputs).last_hidden_state  # (B, N, H)
        read = hidden[batch.rows, batch.places][:, None]  # (R, 1, H)
        logits: Tensor = self.classifier(read, torch.zeros_like(batch.rows)[:, None])
        return logits


def loss_of(classifier: "Classifier") -> Callable[[nn.Module, TaskBatch], tuple[Tensor, float]]:
    """Return the loss of a batch, for `kgkit.training.loop.train` of a `TreeTask` with this classifier."""

    def loss(model: nn.Module, batch: TaskBatch) -> tuple[Tensor, float]:
        assert batch.gold is not None  # `labels_of` has refused examples without
        return classifier.loss(model(batch), batch.gold), float(len(batch.gold))

    return loss


class Answered(NamedTuple):
    """What a model says of an example.

    Attributes:
        labels: the likeliest of the text, or of each token; O where a token was cut off.
        right: the probability of the label 1, by which answers are ranked; 0 where there is no such label,
            and in tagging.
    """

    labels: tuple[str, ...]
    right: float


def answers_of(
    model: TreeTask,
    reader: TaskReader,
    examples: Sequence[Example],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> list[Answered]:
    """Return what a model answers.

    Args:
        model: in evaluation mode.
        reader: with the labels of the model's classifier.
        examples: their gold is not read.
        size: how many are read at once; those of like lengths are, whatever their order.
        progress: is told how many are done, of how many.
    """
    device = next(model.parameters()).device
    found: list[Answered | None] = [None] * len(examples)
    by_length = sorted(range(len(examples)), key=lambda place: -sum(map(len, examples[place].texts)))
    numbers = {label: number for number, label in enumerate(reader.labels)}
    for begin in range(0, len(examples), size):
        chosen = by_length[begin : begin + size]
        some = [examples[place]._replace(gold=None) for place in chosen]
        read = [*reader(some)]
        batch = reader.collate(read).to(device)
        with torch.inference_mode():
            shares = torch.softmax(model(batch), -1)  # (R, L)
        right = shares[:, numbers[_RIGHT]].tolist() if _RIGHT in numbers else [0.0] * len(shares)
        told = iter(zip(shares.argmax(-1).tolist(), right, strict=True))
        for place, example, one in zip(chosen, some, read, strict=True):
            labels, sure = [OUTSIDE] * len(one.places), 0.0
            for at in np.flatnonzero(one.places >= 0).tolist():
                best, sure = next(told)
                labels[at] = reader.labels[best]
            found[place] = Answered(tuple(labels), 0.0 if example.tokens else sure)
        if progress is not None:
            progress("predicting", min(begin + size, len(examples)), len(examples))
    return [one for one in found if one is not None]


# -- scores -----------------------------------------------------------------


def scores_of(task: str, examples: Sequence[Example], answers: Sequence[Answered]) -> dict[str, float]:
    """Return the scores of answers, in [0, 1]; the first decides.

    classification, pair   accuracy; of labels 0 and 1 also F1, precision and recall of 1 (finance_qa, law_qa)
    ranking                mean reciprocal rank, mean average precision, accuracy
    tagging                F1, precision and recall of names with types, as conlleval has them; F1 without
                           types, as the released code has it

    Raises:
        UsageError: if an example has no label, or two have one id.
    """
    if lacking := next((one.id for one in examples if one.gold is None), None):
        raise UsageError(f"example {lacking} has no label: score on a file with gold")
    if twice := repeated(one.id for one in examples):
        raise UsageError(f"two examples have the id {twice!r}: score those of one file")
    gold = [one.gold for one in examples]
    if task == "tagging":
        return _names(gold, answers)
    right = float(np.mean([one == told.labels for one, told in zip(gold, answers, strict=True)]))
    if task == "ranking":
        rows = [Answer(one.id, one.group, "", "", one.gold == (_RIGHT,)) for one in examples]
        ranked = score_ranking(
            rows, {one.id: told.right for one, told in zip(examples, answers, strict=True)}
        )
        return {"mrr": ranked.mrr, "map": ranked.map, "accuracy": right}
    scores = {"accuracy": right}
    if {label for one in gold for label in one or ()} == {*_PART.values()}:
        labels = {one.id: (one.gold or ("",))[0] for one in examples}
        told = {one.id: answer.labels[0] for one, answer in zip(examples, answers, strict=True)}
        positive = score_positive(labels, told)
        scores |= {"f1": positive.f1, "precision": positive.precision, "recall": positive.recall}
    return scores


def _names(gold: Sequence[tuple[str, ...] | None], answers: Sequence[Answered]) -> dict[str, float]:
    typed, begun = NameScores({}, NameScore(0, 0, 0)), NameScore(0, 0, 0)
    for tags, told in zip(gold, answers, strict=True):
        meant, found = (
            [Name(begin, end, kind) for begin, end, kind in chunks(some)]
            for some in (tags or (), told.labels)
        )
        typed += score_names(meant, found)
        begun += score_begun_spans(tags or (), told.labels)
    return {
        "f1": typed.overall.f1,
        "precision": typed.overall.precision,
        "recall": typed.overall.recall,
        "untyped_f1": begun.f1,
    }
