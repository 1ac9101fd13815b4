"""Answers to any number of examples, in their order, with a part of them in memory at a time.

    records ──▶ blocks of examples ──sorted by length──▶ batches ──▶ answers ──in the order of the block──▶

A block is a number of batches: the first block is one batch, so that the first answers come soon, the next
ones are four times as large each, up to 32 batches: enough that the examples of a batch are of like lengths.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, Final, NamedTuple

from kgkit.errors import DamagedModel, UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.records import ParsedRecord
from kgkit.evaluation.tasks import TASKS, Task, find_task
from kgkit.methods.answering import answers_of, length_of
from kgkit.methods.contract import Method
from kgkit.models.manifest import ModelManifest, broken_weights
from kgkit.models.opening import OpenModel

RecordLike = Mapping[str, object] | Sequence[str] | str | Example
"""A dictionary with the fields of a JSON line; a text; a pair of texts; of `tagging` tokens; an example."""

_GROWTH: Final = 4
_MOST_BATCHES: Final = 32  # of a block
_MOST_CHARACTERS: Final = 4_000_000  # of a block, unless one example has more


class Answered(NamedTuple):
    """A record, parsed, and what a model answers to it."""

    parsed: ParsedRecord
    prediction: Prediction


class Predictor(OpenModel):
    """A trained model that answers the examples of its task.

    Args:
        method: the method; its model is put into evaluation mode.
        manifest: manifest of the model.
        resources: what is closed with it, as the knowledge bases that were opened for it.

    Raises:
        DamagedModel: if the classifier has not the answers of the model's task.

    Examples:
        >>> with open_model("opinions") as model:
        ...     for answer in model(["the room is clean", "it was too loud"]):
        ...         print(answer.id, answer.answer, answer.probabilities)
        1 1 {'0': 0.03, '1': 0.97}
        2 0 {'0': 0.88, '1': 0.12}
    """

    def __init__(self, method: Method, manifest: ModelManifest, resources: ExitStack) -> None:
        answer = method.model.classifier.config.answer
        if method.task not in TASKS or TASKS[method.task].answer != answer:
            resources.close()
            raise DamagedModel(
                f"the model {manifest.name} cannot be used: the answers of its classifier are of the "
                f"kind {answer!r}, and not those of the task {method.task!r}; train it again"
            )
        self.method, self.manifest, self._resources = method, manifest, resources
        method.model.eval()

    @property
    def task(self) -> Task:
        """The task that it was trained for."""
        return find_task(self.method.task)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it chooses from; () where its answers are numbers or choices."""
        return self.method.model.classifier.config.labels

    def __call__(
        self, records: Iterable[RecordLike], *, batch: int = 32, bf16: bool = False
    ) -> Iterator[Prediction]:
        """Yield the answers to records, in their order; see `predict`."""
        return self.predict(records, batch=batch, bf16=bf16)

    def predict(
        self, records: Iterable[RecordLike], *, batch: int = 32, bf16: bool = False
    ) -> Iterator[Prediction]:
        """Yield the answers to records, in their order.

        Records are taken as answers are asked for, a block at a time: of 1, 4, 16 and then 32 batches.

        Args:
            records: any number of them, all of them examples, or none; docs/tasks.md has the fields of
                dictionaries. Without an id it is the position, from 1.
            batch: number of examples that are read at once; those of like lengths are, whatever their order.
            bf16: whether products are in bfloat16.

        Raises:
            UsageError: if *records* is one text, or *batch* is below 1; if a record cannot be read by the
                model.
            SourceError (when its block is asked for): if a record is not what it should be.
            DamagedModel (when its block is asked for): if the model gives answers no probabilities.
        """
        if isinstance(records, str | Mapping | Example):
            raise UsageError(f"records are a list, and this is one {type(records).__name__}: model([record])")
        return (
            answered.prediction
            for block in self.answer_blocks(self._parsed(records), batch=batch, bf16=bf16)
            for answered in block
        )

    def _parsed(self, records: Iterable[RecordLike]) -> Iterator[ParsedRecord]:
        """Yield records as examples; examples as they are."""
        source: Iterator[Any] = iter(records)
        first = next(source, None)
        if first is None:
            return
        both = chain([first], source)
        if isinstance(first, Example):
            for position, example in enumerate(both, start=1):
                if not isinstance(example, Example):
                    kind = type(example).__name__
                    raise UsageError(
                        f"record {position} is a {kind}, and the first an Example: give one kind"
                    )
                yield ParsedRecord(example, {})
        else:
            yield from self.task.parse_records(both)

    def answer_blocks(
        self,
        parsed: Iterable[ParsedRecord],
        *,
        batch: int = 32,
        bf16: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Iterator[list[Answered]]:
        """Yield parsed records with their answers, in their order, a block at a time; see `predict`.

        Args:
            parsed: as `Task.parse_lines`, `parse_records` or `read_records` yield them.
            batch, bf16: as `predict` has them.
            progress: function of the number of examples that are answered.

        Raises: as `predict` does.
        """
        if batch != int(batch) or batch < 1:
            raise UsageError(f"batch is {batch!r}; it is a whole number, 1 or more")
        return self._answer_blocks(parsed, batch, bf16, progress)

    def _answer_blocks(
        self,
        parsed: Iterable[ParsedRecord],
        batch: int,
        bf16: bool,
        progress: Callable[[int], object] | None,
    ) -> Iterator[list[Answered]]:
        answered = 0
        for block in blocks(parsed, batch):
            before = answered

            def show(count: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + count)

            examples = [record.example for record in block]
            answers = answers_of(self.method, examples, size=batch, bf16=bf16, progress=show)
            check_finite(answers, self.manifest.name)
            answered += len(block)
            yield [Answered(*pair) for pair in zip(block, answers, strict=True)]

    def answers(
        self,
        examples: Sequence[Example],
        *,
        size: int = 32,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[Prediction]:
        """Return the answers to examples, in their order, sorted as a whole; see `answers_of`.

        Raises:
            DamagedModel: if the model gives answers no probabilities.
        """
        answers = answers_of(self.method, examples, size=size, progress=progress)
        check_finite(answers, self.manifest.name)
        return answers


def check_finite(predictions: Iterable[Prediction], model: str) -> None:
    """Make sure that a model gives its answers probabilities, and that numbers are some.

    Args:
        predictions: its answers.
        model: its name.

    Raises:
        DamagedModel: if one is not finite.
    """
    if wrong := describe_nonfinite(predictions):
        raise broken_weights(model, f"answers {wrong}")


def describe_nonfinite(predictions: Iterable[Prediction]) -> str:
    """Describe the first answer with a probability, or a number, that is not finite; "" if there is none."""
    for prediction in predictions:
        numbers: Any = prediction.probabilities
        if numbers is None:
            numbers = (prediction.answer,)
        elif isinstance(numbers, Mapping):
            numbers = numbers.values()
        for number in numbers:
            if not math.isfinite(number):
                noun = "a probability" if prediction.probabilities is not None else "a number"
                return f"example {prediction.id} by {noun} of {number}"
    return ""


def blocks(parsed: Iterable[ParsedRecord], batch: int) -> Iterator[list[ParsedRecord]]:
    """Yield records in lists: of one batch, of four, of 16, and then of 32; fewer where texts are long."""
    most, block, characters = batch, list[ParsedRecord](), 0
    for record in parsed:
        block.append(record)
        characters += length_of(record.example)
        if len(block) >= most or characters >= _MOST_CHARACTERS:
            yield block
            most, block, characters = min(most * _GROWTH, batch * _MOST_BATCHES), [], 0
    if block:
        yield block
