"""`kgkit evaluate tagging` and `kgkit evaluate ranking`: score what a K-BERT was trained for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.evaluate.language import BatchOption
from kgkit.commands.evaluate.sets import (
    check_known,
    check_labelled,
    check_sets,
    percents,
    set_names,
    write_scores,
)
from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, QuietOption
from kgkit.commands.output import number, typed, write_json
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.training.kbert_tasks import Answered, Example

RowsOption = Annotated[
    list[Path], typer.Option("--data", metavar="FILE", help="Examples, as in training; repeat it for more.")
]
KBertOption = Annotated[
    str, typer.Option("--model", metavar="NAME", help="Of a K-BERT (kgkit train kbert); or its folder.")
]
PredictionsOption = Annotated[
    Path | None, typer.Option("--predictions", metavar="FILE", help="Write id, tab, answer of each example.")
]


def tagging(
    data: RowsOption,
    model: KBertOption,
    predictions: PredictionsOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a K-BERT on names: F1 with types, as conlleval has it, and without, as its released code has."""
    score_kbert(("tagging",), data, model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def ranking(
    data: RowsOption,
    model: KBertOption,
    predictions: PredictionsOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a K-BERT on ranking answers to questions: mean reciprocal rank."""
    score_kbert(("ranking",), data, model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def score_kbert(
    tasks: Sequence[str],
    data: Sequence[Path],
    model: str,
    predictions: Path | None,
    batch: int,
    device: str,
    home: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score a K-BERT on its task, which is one of *tasks*."""
    from kgkit.evaluation.ner import OUTSIDE
    from kgkit.home import Home
    from kgkit.models.registering import known_model
    from kgkit.training import recorded
    from kgkit.training.kbert import TrainedKBert
    from kgkit.training.kbert_tasks import read_task, scores_of

    check_sets(data, predictions)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    task = _task_of(tasks, model, where)
    names = set_names(data, ".tsv", ".txt", ".jsonl", ".json", ".csv")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named twice with --data: once will do")
    sets = [(name, path, read_task(task, path)) for name, path in zip(names, data, strict=True)]
    labelled = [name for name, _, examples in sets if any(one.gold is not None for one in examples)]
    for _, path, examples in (one for one in sets if one[0] in labelled):
        check_labelled(path, [one.id for one in examples if one.gold is None], len(examples))
    if not labelled and predictions is None:
        raise UsageError(
            "the examples have no labels, so there is nothing to score: name a file for the answers with "
            "--predictions"
        )
    answers: dict[str, list[Answered]] = {}
    scores: dict[str, dict[str, float]] = {}
    run = recorded(
        where, command=typed(), device=device, model=known_model(where, model), data=[*data],
        config={"model": model},
    )  # fmt: skip
    with (
        TrainedKBert.open(model, home=where, device=device) as trained,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        for name, _, examples in sets:

            def show(_: str, done: int, total: int, name: str = name) -> None:
                tell(f"{name}, {done:,} of {total:,}")

            answers[name] = trained(examples, size=batch, progress=show)
        if predictions is not None:  # first: whatever scoring says, the answers are there
            _write_answers(predictions, sets, answers)
        for name, path, examples in (one for one in sets if one[0] in labelled):
            gold = {label for one in examples for label in one.gold or ()}
            gold -= {OUTSIDE} if task == "tagging" else set()
            check_known(model, path, gold, trained.reader.labels)
            scores[name] = scores_of(task, examples, answers[name])
            for metric, value in scores[name].items():
                record.score(task, name, metric, value, len(examples))
    if as_json:
        told = [
            {"name": name, "data": str(path), "examples": len(examples), **scores.get(name, {})}
            for name, path, examples in sets
        ]
        write_json({"model": model, "task": task, "sets": told})
    elif scores:
        metrics = list(dict.fromkeys(metric for one in scores.values() for metric in one))
        rows = [
            (name, [(number(len(examples)), *(_cell(scores[name].get(metric)) for metric in metrics))])
            for name, _, examples in sets
            if name in scores
        ]
        write_scores([], ["examples", *(metric.replace("_", " ") for metric in metrics)], rows)
    if without := [name for name, _, _ in sets if name not in labelled]:
        messages.say(f"not scored, as the examples have no labels: {', '.join(without)}")
    if predictions is not None:
        messages.say(f"answers to {sum(map(len, answers.values())):,} examples: {predictions}")


def _cell(value: float | None) -> str:
    return "" if value is None else percents(value)[0]


def _task_of(tasks: Sequence[str], model: str, home: "Home") -> str:
    """Return the task that a model was trained for, before it is opened."""
    from kgkit.models.folder import find_kbert_folder
    from kgkit.models.manifest import read_kbert
    from kgkit.versions import read_current

    own = read_current(lambda: find_kbert_folder(model, home), read_kbert).task
    if own not in tasks:
        verb = "classification" if own == "pair" else own
        raise UsageError(
            f"the model {model} was trained for the task {own}, not {tasks[0]}: `kgkit evaluate {verb}` "
            "scores it"
        )
    return own


def _write_answers(
    path: Path, sets: "Sequence[tuple[str, Path, list[Example]]]", answers: "dict[str, list[Answered]]"
) -> None:
    """Write an answer a line: the id and, behind a tab, the label, or the tags, or how likely it is right."""
    from kgkit.evaluation.files import written

    with written(path) as file:
        for name, _, examples in sets:
            before = f"{name}\t" if len(sets) > 1 else ""
            for one, told in zip(examples, answers[name], strict=True):
                answer = f"{told.right:.9g}" if one.group else " ".join(told.labels)
                file.write(f"{before}{one.id}\t{answer}\n".encode())
