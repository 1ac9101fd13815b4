"""What all methods have in common: batches with their gold, the loss, predictions.

label, labels   a text or a pair, read at one position, or at its marked names
tags            a text, read at the first word piece of each token; one that was cut off is answered O
number          as a label; learnt as a standard score (the squared error of (number − mean) / deviation)
choice          each choice is read as a text of its own; the softmax is over those of one example
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.errors import UsageError
from kgkit.evaluation.examples import (
    Example,
    Prediction,
    alternatives,
    gold_labels,
    list_labels,
    warn_of_few_held_out,
    warn_of_labels,
)
from kgkit.evaluation.ner import OUTSIDE
from kgkit.evaluation.tasks import Task, find_task
from kgkit.heads.classifier import Classifier, ClassifierConfig
from kgkit.methods.contract import Batch, Method
from kgkit.methods.settings import TaskTraining
from kgkit.text import token_spans

if TYPE_CHECKING:
    from typing import Self

_log = logging.getLogger(__name__)


class TaskData(NamedTuple):
    """The examples of a training.

    Attributes:
        task: their task.
        learn: examples to learn from.
        held_out: examples that choose the epoch.
        labels: labels that the model chooses from.
    """

    task: Task
    learn: list[Example]
    held_out: list[Example]
    labels: tuple[str, ...]

    @classmethod
    def read(cls, training: TaskTraining) -> "Self":
        """Read the files of a training; without files of its own a part of the data is held out.

        Raises:
            NotThere, SourceError: if a file is not there, or not what it should be.
            UsageError: if an example has no label, or no example has one that holds.
        """
        task = find_task(training.task)
        learn, held_out = (
            task.read_labelled(files, [*filter(None, training.gold_of(files))])
            for files in (training.data, training.dev)
        )
        labelled = learn
        if not training.dev:
            learn, held_out = task.hold_out(learn)
            warn_of_few_held_out(len(held_out), "examples")
        labels = task.labels(labelled)
        if task.answer == "labels" and not any(example.gold for example in learn):
            raise UsageError("there is nothing to learn: no example has a label")
        if task.answer == "label" and not task.fixed:
            warn_of_labels(labels, len(learn))
        if unknown := sorted({label for example in held_out for label in gold_labels(example)} - {*labels}):
            _log.warning("the data teach nothing of %s, which --dev has", list_labels(unknown))
        return cls(task, learn, held_out, labels)

    def classifier_config(self, hidden: int) -> ClassifierConfig:
        """Return the settings of a classifier of vectors of width *hidden*.

        Numbers are learnt as standard scores: their mean and standard deviation are those of the examples to
        learn from.
        """
        mean, scale = 0.0, 1.0
        if self.task.answer == "number":
            numbers = np.array([example.gold for example in self.learn], np.float64)
            mean, scale = float(numbers.mean()), float(numbers.std()) or 1.0
        return ClassifierConfig(
            hidden=hidden, labels=self.labels, positions=max(1, self.task.names), answer=self.task.answer,
            mean=mean, scale=scale,
        )  # fmt: skip


def batch_of(method: Method, examples: Sequence[Example]) -> Batch:
    """Return examples, read and padded to the longest, with their gold.

    Raises:
        UsageError: if there is none, one has a label that the model does not know, or they are not read at
            equally many positions.
    """
    task, labels = find_task(method.task), method.model.classifier.config.labels
    for example in examples:
        if task.answer in ("tags", "choice") and not (example.tokens or example.choices):
            noun = "tokens" if task.answer == "tags" else "choices"
            raise UsageError(f"example {example.id} has no {noun}, which the task {task.name} needs")
    choices = [alternatives(example) if task.answer == "choice" else [example] for example in examples]
    readings = [*method.read(text for texts in choices for text in texts)]
    if len({reading.positions.shape[1] for reading in readings}) != 1:
        raise UsageError("examples of one batch have equally many names, and there is one at least")
    masks = [reading.positions[:, 0] >= 0 for reading in readings]  # (W,) of each text
    counts = [int(mask.sum()) for mask in masks]
    owners = np.repeat(np.arange(len(choices)), [len(texts) for texts in choices])  # of each text
    if task.answer == "choice":
        items = np.concatenate([np.arange(len(texts)) for texts in choices])
    else:
        items = np.concatenate([np.flatnonzero(mask) for mask in masks])
    gold = [task.target(example, labels) for example in examples]
    if task.answer == "tags":
        gold = [None if tags is None else tags[mask] for tags, mask in zip(gold, masks, strict=True)]
    positions = [reading.positions[mask] for reading, mask in zip(readings, masks, strict=True)]
    return Batch(
        method.collate([reading.content for reading in readings]),
        torch.from_numpy(np.repeat(np.arange(len(readings)), counts)),
        torch.from_numpy(np.concatenate(positions)),
        torch.from_numpy(np.repeat(owners, counts)),
        torch.from_numpy(items),
        _stacked(gold, task),
    )


def loss_of(classifier: Classifier) -> Callable[[nn.Module, Batch], tuple[Tensor, float]]:
    """Return the loss of a batch, for `kgkit.training.loop.train` of a `TaskModel` with this classifier."""

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Return the mean loss of a batch, and the number of answers it is of."""
        if batch.gold is None:
            raise UsageError("there are examples without a label: nothing can be learnt from them")
        logits = _by_example(model(batch), batch, classifier.config)
        if not len(logits):  # every token was cut off
            return logits.sum(), 0.0
        return classifier.loss(logits, batch.gold), float(len(batch.gold))

    return loss


def length_of(example: Example) -> int:
    """Return the number of code points of an example's texts."""
    return sum(map(len, (*example.texts, *example.choices)))


def answers_of(
    method: Method,
    examples: Sequence[Example],
    *,
    size: int = 32,
    bf16: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Prediction]:
    """Return what a model answers, in the order of the examples.

    Args:
        method: with its model in evaluation mode.
        examples: their gold is not read.
        size: number of examples that are read at once; those of like lengths are, whatever their order.
        bf16: whether products are in bfloat16.
        progress: function of the number of examples that are done, and of all.
    """
    classifier = method.model.classifier
    device = next(method.model.parameters()).device
    lengths = [length_of(example) for example in examples]
    tagged = classifier.config.answer == "tags"
    predictions = {
        index: Prediction(example.id, (), ())
        for index, example in enumerate(examples)
        if tagged and not example.tokens and not token_spans("".join(example.texts))
    }  # of blank texts, which have nothing to tag
    order = sorted({*range(len(examples))} - predictions.keys(), key=lambda index: (-lengths[index], index))
    for begin in range(0, len(order), size):
        indices = order[begin : begin + size]
        batch_examples = [examples[index]._replace(gold=None) for index in indices]
        batch = batch_of(method, batch_examples)
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16) if bf16 else nullcontext():
            moved = batch.to(device)
            logits = _by_example(method.model(moved), moved, classifier.config)
            shares = classifier.probabilities(logits)
        answers = _predictions(batch_examples, batch, logits.cpu(), shares.cpu(), classifier.config)
        predictions.update(zip(indices, answers, strict=True))
        if progress is not None:
            progress(len(predictions), len(examples))
    return [predictions[index] for index in range(len(examples))]


def _stacked(gold: Sequence[NDArray[np.generic] | None], task: Task) -> Tensor | None:
    """Return the gold of a batch; None if an example has none."""
    arrays = [array for array in gold if array is not None]
    if len(arrays) < len(gold):
        return None
    return torch.from_numpy(np.concatenate(arrays) if task.answer == "tags" else np.stack(arrays))


def _by_example(logits: Tensor, batch: Batch, config: ClassifierConfig) -> Tensor:
    """Return logits (R, L) as `Classifier.loss` takes them: of choices (B, C), -inf where there is none."""
    if config.answer != "choice":
        return logits
    shape = int(batch.examples.max()) + 1, int(batch.items.max()) + 1
    table = logits.new_full(shape, -torch.inf)
    return table.index_put((batch.examples, batch.items), logits[:, 0])


def _predictions(
    examples: Sequence[Example],
    batch: Batch,
    logits: Tensor,
    probabilities: Tensor,
    config: ClassifierConfig,
) -> list[Prediction]:
    """Return the answers to the examples of a batch, from logits and probabilities of one shape."""
    labels = config.labels
    shares: list[list[float]] = probabilities.tolist()
    if config.answer == "number":
        return [Prediction(example.id, row[0]) for example, row in zip(examples, shares, strict=True)]
    best: list[int] = logits.argmax(-1).tolist()
    if config.answer == "tags":
        tags = [[OUTSIDE] * len(example.tokens) for example in examples]
        sure = [[0.0] * len(example.tokens) for example in examples]
        for row, (index, item) in enumerate(zip(batch.examples.tolist(), batch.items.tolist(), strict=True)):
            tags[index][item], sure[index][item] = labels[best[row]], shares[row][best[row]]
        return [
            Prediction(example.id, tuple(own), tuple(each), example.tokens)
            for example, own, each in zip(examples, tags, sure, strict=True)
        ]
    if config.answer == "choice":
        return [
            Prediction(example.id, index, tuple(row[: len(example.choices)]))
            for example, index, row in zip(examples, best, shares, strict=True)
        ]
    answers: list[str | frozenset[str]] = [labels[index] for index in best]
    if config.answer == "labels":
        answers = [
            frozenset(label for label, holds in zip(labels, row, strict=True) if holds)
            for row in (logits > 0).tolist()
        ]
    return [
        Prediction(example.id, answer, dict(zip(labels, row, strict=True)))
        for example, answer, row in zip(examples, answers, shares, strict=True)
    ]
