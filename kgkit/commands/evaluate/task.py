"""`kgkit evaluate task`: score a model on the task that it was trained for, whichever method it is of."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kgkit.commands.evaluate.sets import (
    VersusOption,
    check_sets,
    percents,
    set_names,
    versus_field,
    write_compared,
    write_scores,
)
from kgkit.commands.messages import Messages
from kgkit.commands.options import BatchOption, DeviceOption, JSONOption, repeated
from kgkit.commands.output import number, typed, write_json
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation.examples import Example, Prediction
    from kgkit.evaluation.significance import Comparison
    from kgkit.evaluation.tasks import Task

_log = logging.getLogger(__name__)

_SUFFIXES: Final = (".txt", ".jsonl", ".json", ".tsv", ".csv")

DataOption = Annotated[list[Path], repeated("--data", "FILE", "Examples, as in training")]
GoldOption = Annotated[
    list[Path] | None,
    typer.Option("--gold", metavar="FILE", help="WiC: X.gold.txt of the release; as often as --data."),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model that was trained for a task (`kgkit models list` names them), or its folder.",
    ),
]
AnswersOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Write the answers: id and answer, apart by tabs; of several sets the set's name first.",
    ),
]


class _Set(NamedTuple):
    """A data set: its name, its file, its examples."""

    name: str
    path: Path
    examples: "list[Example]"

    @property
    def labelled(self) -> bool:
        """Whether any of the examples has a label."""
        return any(example.gold is not None for example in self.examples)


def task(
    data: DataOption,
    model: ModelOption,
    gold: GoldOption = None,
    predictions: AnswersOption = None,
    versus: VersusOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Score a model on the task that it was trained for: classification, tagging, relation, ….

    The scores are those of the task. --versus reads the answers of another model, a file as
    --predictions writes it, and compares the first score by a paired test.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.files import check_gold_files
    from kgkit.evaluation.task_answers import as_written, read_answers, write_answers
    from kgkit.home import Home
    from kgkit.models.opening import open_model

    if gold:
        check_gold_files(data, gold)
    check_sets([*data, *(gold or []), versus], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    answers: dict[str, list[Prediction]] = {}
    differences: dict[str, dict[str, Comparison]] = {}
    scores: dict[str, dict[str, float]] = {}
    run = recorded(
        where, command=typed(), device=device, model=model,
        data=[*data, *(gold or [])], config={"model": model},
    )  # fmt: skip
    with (
        open_model(model, "predictor", home=where, device=device) as predictor,
        messages.progress(f"scoring {model}") as tell,
    ):
        own, labels = predictor.task, predictor.labels
        sets = _read(own, data, gold or [])
        _check_scored(own, sets, predictions, versus, gold)
        if predictions is not None:
            _check_writable(sets, labels)
        examples_of = {name: examples for name, _, examples in sets}
        others = {} if versus is None else read_answers(versus, own, examples_of, labels)
        with run as record:
            for name, _, examples in sets:

                def show(count: int, total: int, name: str = name) -> None:
                    tell(f"{name}, {count:,} of {total:,}", count, total)

                answers[name] = predictor.answers(examples, size=batch, progress=show)
            if predictions is not None:  # first: whatever scoring says, the answers are there
                write_answers(predictions, own, answers)
            for name, path, examples in (each for each in sets if each.labelled):
                _check_labels(model, path, examples, labels)
                scores[name] = own.score(examples, answers[name], labels)
                for metric, value in scores[name].items():
                    record.score(own.name, name, metric, value, len(examples))
                if others:  # numbers as a file has them, so that a model does not differ from its own file
                    systems = [others[name], as_written(own, examples, answers[name])]
                    columns = own.score_columns(examples, systems, labels)
                    differences[name] = {columns.metric: columns.compare()}
    if as_json:
        rows = [
            {"name": name, "data": str(path), "examples": len(examples), **scores.get(name, {}),
             **versus_field(differences, name)}
            for name, path, examples in sets
        ]  # fmt: skip
        write_json({"model": model, "task": own.name, "sets": rows})
    elif scores:
        _write_table(sets, scores)
        write_compared(differences)
    if unlabelled := [each.name for each in sets if not each.labelled]:
        messages.write(f"not scored, as the examples have no labels: {', '.join(unlabelled)}")
    if predictions is not None:
        messages.write(f"answers to {sum(map(len, answers.values())):,} examples: {predictions}")


def _read(task: "Task", data: Sequence[Path], gold: Sequence[Path]) -> list[_Set]:
    """Read all sets; of each all examples have labels, or none."""
    names = set_names(data, *_SUFFIXES)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named twice with --data: once will do")
    golds: Sequence[Path | None] = gold or [None for _ in data]
    sets = []
    for name, path, gold_path in zip(names, data, golds, strict=True):
        sets.append(_Set(name, path, task.read(path, gold_path)))
        if sets[-1].labelled:
            task.check_gold(sets[-1].examples, str(path))
    return sets


def _check_scored(
    task: "Task",
    sets: Sequence[_Set],
    predictions: Path | None,
    versus: Path | None,
    gold: Sequence[Path] | None,
) -> None:
    """Refuse data without labels where there is nothing to do without them."""
    if any(each.labelled for each in sets):
        return
    if versus is not None:
        raise UsageError(
            f"the examples have no labels, so there is nothing to compare with {versus}: leave out --versus, "
            "or name data with labels"
        )
    if predictions is None:
        hint = "labels with --gold, or " if task.gold_files and not gold else ""
        raise UsageError(
            f"the examples have no labels, so there is nothing to score: name {hint}a file for the answers "
            "with --predictions"
        )


def _check_writable(sets: Sequence[_Set], labels: Sequence[str]) -> None:
    """Refuse ids and labels that a line with tabs cannot have, before anything is computed."""
    from kgkit.errors import abbreviate

    values = [*(example.id for _, _, examples in sets for example in examples), *labels]
    if strange := next((text for text in values if not {*text}.isdisjoint("\t\n\r")), None):
        raise UsageError(
            f"an id or a label is {abbreviate(repr(strange))}: the lines of --predictions have tabs between "
            "their fields, so that none may be within; `kgkit predict` writes JSON"
        )


def _check_labels(model: str, path: Path, examples: "Sequence[Example]", labels: Sequence[str]) -> None:
    """Refuse gold that a model cannot give, whatever it reads; warn of a part of it. O is no label of a name.

    Raises:
        UsageError: if it tells none of the labels.
    """
    from kgkit.evaluation.examples import gold_labels, list_labels
    from kgkit.evaluation.ner import OUTSIDE

    gold = {label for example in examples for label in gold_labels(example)}
    if labels[:1] == (OUTSIDE,):
        gold -= {OUTSIDE}
    if gold and gold.isdisjoint(labels):
        raise UsageError(
            f"none of the labels of {path} ({list_labels(sorted(gold))}) is one that the model {model} tells "
            f"({list_labels(labels)})"
        )
    if unknown := sorted(gold - {*labels}):
        _log.warning("%s has labels that the model %s does not tell: %s", path, model, list_labels(unknown))


def _write_table(sets: Sequence[_Set], scores: Mapping[str, Mapping[str, float]]) -> None:
    metrics = list(dict.fromkeys(metric for values in scores.values() for metric in values))
    rows = []
    for name, _, examples in (each for each in sets if each.name in scores):
        cells = [percents(scores[name][metric])[0] if metric in scores[name] else "" for metric in metrics]
        rows.append((name, [(number(len(examples)), *cells)]))
    write_scores([], ["examples", *(metric.replace("_", " ") for metric in metrics)], rows)
