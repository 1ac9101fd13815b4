"""Files of answers to the examples of tasks, as `kgkit evaluate TASK` writes and reads them.

A line is an id and an answer; of several data sets the name of the set stands first:

    ID <TAB> ANSWER
    SET <TAB> ID <TAB> ANSWER

An answer is a label; types with commas between; tags with spaces between; a number; the index of a choice,
from 0; of `ranking` the probability that a text answers the question. A file may be compressed (`.xz`,
`.bz2`, `.gz`, `.zst`).
"""

import math
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from kgkit.errors import SourceError, UsageError, abbreviate
from kgkit.evaluation.examples import Example, Prediction, gold_labels, list_labels, short_label
from kgkit.evaluation.ner import OUTSIDE, chunks
from kgkit.evaluation.task_scores import RIGHT
from kgkit.evaluation.tasks import Task
from kgkit.files import lines, written

_MAX_DIGITS: Final = 18  # of an index: Python makes no number of thousands


def write_answers(path: Path, task: Task, answers: Mapping[str, Sequence[Prediction]]) -> None:
    """Write the answers to each data set, whose name stands before each id if there are several.

    Raises:
        NotThere: if there is no folder to put the file in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    with written(path) as file:
        for name, predictions in answers.items():
            before = f"{name}\t" if len(answers) > 1 else ""
            for prediction in predictions:
                file.write(f"{before}{prediction.id}\t{answer_text(task, prediction)}\n".encode())


def answer_text(task: Task, prediction: Prediction) -> str:
    """Return an answer as a line has it: of ranking the probability that it is right."""
    answer, probabilities = prediction.answer, prediction.probabilities
    if task.name == "ranking" and isinstance(probabilities, Mapping):
        return f"{probabilities.get(RIGHT, 0.0):.9g}"
    if isinstance(answer, frozenset):
        return ",".join(sorted(answer))
    if isinstance(answer, tuple):
        return " ".join(answer)
    return f"{answer:.9g}" if isinstance(answer, float) else str(answer)


def parse_answer(task: Task, example: Example, text: str) -> Prediction:
    """Return the answer to an example that a line has, the reverse of `answer_text`.

    Raises:
        UsageError: if the text is no answer to it.
    """
    if task.name == "ranking":
        share = _number(text)
        if not 0 <= share <= 1:
            raise UsageError(f"expected the probability that it is right, in [0, 1], found {_shown(text)}")
        return Prediction(example.id, RIGHT if share > 0.5 else "0", {RIGHT: share})
    if task.answer == "number":
        return Prediction(example.id, _number(text))
    if task.answer == "choice":
        is_number = text.isascii() and text.isdigit() and len(text) < _MAX_DIGITS
        if not (is_number and int(text) < len(example.choices)):
            raise UsageError(
                f"expected the index of a choice, 0 to {len(example.choices) - 1}, found {_shown(text)}"
            )
        return Prediction(example.id, int(text))
    if task.answer == "labels":
        return Prediction(example.id, frozenset(text.split(",")) - {""})
    if task.answer == "tags":
        tags = tuple(text.split(" ")) if text else ()
        if len(tags) != len(example.tokens):
            raise UsageError(f"expected {len(example.tokens)} tags, one for each token, found {len(tags)}")
        chunks(tags)
        return Prediction(example.id, tags)
    return Prediction(example.id, text)


def as_written(
    task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]
) -> list[Prediction]:
    """Return predictions as a file keeps them: numbers have nine digits."""
    by_id = {example.id: example for example in examples}
    return [parse_answer(task, by_id[each.id], answer_text(task, each)) for each in predictions]


def read_answers(
    path: Path, task: Task, sets: Mapping[str, Sequence[Example]], labels: Sequence[str]
) -> dict[str, list[Prediction]]:
    """Return the answers of a file to each data set, in the order of its examples.

    Args:
        path: the file.
        task: of the examples.
        sets: examples by the name of their set; all need an answer.
        labels: labels that may be answered, beside those of the examples; of tags those of names, without B-
            and I-.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or is empty; if a line has other fields, an id that the data do not
            have or that comes twice, or what is no answer.
        UsageError: if an example has no answer.
    """
    examples = {name: {example.id: example for example in rows} for name, rows in sets.items()}
    gold = {label for rows in sets.values() for example in rows for label in gold_labels(example)}
    kinds = _kinds(task, {*(task.fixed or labels), *gold})
    answers: dict[str, dict[str, Prediction]] = {name: {} for name in sets}
    shape = "ID<tab>ANSWER" if len(sets) == 1 else "SET<tab>ID<tab>ANSWER, as there are several sets"
    for number, line in lines(path):
        try:
            fields = line.split("\t")
            if len(fields) != (2 if len(sets) == 1 else 3):
                raise UsageError(f"expected {shape}, found {len(fields)} fields")
            *names, key, text = fields
            name = names[0] if names else next(iter(sets))
            if name not in sets:
                raise UsageError(f"no set is called {_shown(name)}, they are {', '.join(sets)}")
            if (example := examples[name].get(key)) is None:
                raise UsageError(f"no example of {name} has the id {_shown(key)}")
            if key in answers[name]:
                raise UsageError(f"the id {_shown(key)} has an answer on an earlier line already")
            answers[name][key] = _parsed(task, example, text, kinds)
        except UsageError as error:
            message = f"{error}: give the answers to the same --data"
            raise SourceError(message, path=path, line=number, text=line) from None
    if not any(answers.values()):
        raise SourceError(f"no answer in it: expected lines of {shape}", path=path)
    for name, rows in sets.items():
        if missing := [example.id for example in rows if example.id not in answers[name]]:
            raise UsageError(
                f"{path} has no answer to {len(missing):,} of the {len(rows):,} examples of {name}, the "
                f"first is {missing[0]}: let --predictions write it anew, for the same --data"
            )
    return {name: [answers[name][example.id] for example in rows] for name, rows in sets.items()}


def _parsed(task: Task, example: Example, text: str, kinds: Set[str]) -> Prediction:
    """Return the answer to an example, whose labels are among those of the task."""
    try:
        prediction = parse_answer(task, example, text)
    except UsageError as error:
        raise UsageError(f"the answer to {_shown(example.id)}: {error}") from None
    if task.answer not in ("number", "choice") and task.name != "ranking":
        answered = _kinds(task, {*gold_labels(Example("", (), gold=prediction.answer))})
        if strange := sorted(answered - kinds):
            raise UsageError(
                f"the answer to {_shown(example.id)} is {short_label(strange[0])!r}, which is no label of "
                f"the task; these are {list_labels(sorted(kinds))}"
            )
    return prediction


def _kinds(task: Task, labels: Set[str]) -> set[str]:
    """Return labels; of tags the types of names."""
    if task.answer != "tags":
        return {*labels}
    return {label.partition("-")[2] for label in labels if label != OUTSIDE}


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"expected a number, found {_shown(text)}")
    return value


def _shown(text: str) -> str:
    return abbreviate(repr(text))
