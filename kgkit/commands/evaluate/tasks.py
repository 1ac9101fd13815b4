"""`kgkit evaluate TASK`: score a model on the task that it was trained for, whichever method it is of."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from kgkit.commands.evaluate.sets import check_gold_labels, check_sets, percents, set_names, write_scores
from kgkit.commands.evaluate.versus import VersusOption, compare_columns, write_compared
from kgkit.commands.messages import Messages
from kgkit.commands.options import BatchOption, DeviceOption, JSONOption, repeated
from kgkit.commands.output import number, typed, write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.evaluation.examples import Example, Prediction
    from kgkit.evaluation.task_answers import AnswerLine
    from kgkit.evaluation.tasks import Task
    from kgkit.home import Home

HELP: Final[Mapping[str, str]] = {
    "acceptability": "Score a model on the acceptability of sentences (CoLA); Matthews' correlation.",
    "choice": "Score a model on choosing one of several texts; accuracy.",
    "classification": "Score a model on the labels of texts, or of pairs of them; accuracy.",
    "pair": "Score a model on the labels of pairs of texts; accuracy.",
    "ranking": "Score a model on ranking answers to questions; mean reciprocal rank.",
    "regression": "Score a model on numbers, as the similarity of texts (STS-B); correlations of Pearson and "
    "Spearman.",
    "relation": "Score a model on relations between two names: SemEval-2010 task 8 (macro F1), TACRED and "
    "FewRel (micro F1).",
    "tagging": "Score a model on names, by the tags of tokens: F1 with types, as conlleval has it, and "
    "without, as K-BERT's released code has it.",
    "typing": "Score a model on the types of names: nine general ones, any number of which may hold; micro "
    "F1.",
    "wic": "Score a model on WiC: does a word mean the same in two sentences; accuracy.",
}
"""The help of each task."""

_WITH_GOLD: Final = frozenset(["wic"])
_SUFFIXES: Final = (".txt", ".jsonl", ".json", ".tsv", ".csv")

DataOption = Annotated[list[Path], repeated("--data", "FILE", "Examples, as in training")]
GoldOption = Annotated[
    list[Path] | None,
    typer.Option("--gold", metavar="FILE", help="X.gold.txt of the release; as often as --data."),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Of a model that was trained for the task (`kgkit models list` names them); or its folder.",
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


class _Compared:
    """The answers of another system to the examples of the data sets.

    Args:
        path: file of them.
        task: of the examples.
        sets: the data sets.

    Raises:
        SourceError, UsageError: if it is no file of answers to them, or there is no label to score them by.
    """

    def __init__(self, path: Path, task: "Task", sets: Sequence[_Set]) -> None:
        from kgkit.evaluation.task_answers import read_answers

        if not any(data_set.labelled for data_set in sets):
            raise UsageError(
                f"the examples have no labels, so there is nothing to compare with {path}: leave out "
                "--versus, or name data with labels"
            )
        self.path, self.task, self.sets = path, task, sets
        self._answers: dict[str, list[AnswerLine]] = read_answers(
            path, task, {name: examples for name, _, examples in sets}
        )

    def check(self, labels: Sequence[str]) -> None:
        """Refuse answers that are labels neither of the data nor of the model, before anything is computed.

        Raises:
            SourceError: for the first one.
        """
        from kgkit.evaluation.task_answers import check_answer_labels

        examples = [example for _, _, rows in self.sets for example in rows]
        for answers in self._answers.values():
            check_answer_labels(self.path, self.task, answers, examples, labels)

    def compare(
        self, name: str, examples: "Sequence[Example]", own: "Sequence[Prediction]", labels: Sequence[str]
    ) -> dict[str, Any]:
        """Return how the first score of a set differs from the other system's, by its name, for JSON.

        Numbers are compared as a file has them, so that a model does not differ from its own file.

        Args:
            name: name of the set.
            examples: its examples.
            own: predictions of the model.
            labels: of the model.
        """
        from kgkit.evaluation.task_answers import answer_text, parse_answer

        by_id = {example.id: example for example in examples}
        written = [
            parse_answer(self.task, by_id[prediction.id], answer_text(self.task, prediction))
            for prediction in own
        ]
        other = [line.prediction for line in self._answers[name]]
        return compare_columns(self.task.score_columns(examples, [other, written], labels))


def task_command(task: str) -> Callable[..., None]:
    """Return the command that scores models on a task."""

    def evaluate(
        data: DataOption,
        model: ModelOption,
        gold: GoldOption = None,
        predictions: AnswersOption = None,
        versus: VersusOption = None,
        batch: BatchOption = 32,
        device: DeviceOption = "auto",
        as_json: JSONOption = False,
    ) -> None:
        _score(
            task, data, gold or [], model, predictions, versus, batch, device, as_json=as_json,
        )  # fmt: skip

    if task not in _WITH_GOLD:
        options = inspect.signature(evaluate)
        rest = [option for name, option in options.parameters.items() if name != "gold"]
        setattr(evaluate, "__signature__", options.replace(parameters=rest))  # noqa: B010  # what Typer reads
    return evaluate


def _score(
    task_name: str,
    data: list[Path],
    gold: list[Path],
    model: str,
    predictions: Path | None,
    versus: Path | None,
    batch: int,
    device: str,
    *,
    as_json: bool,
) -> None:
    from kgkit.catalog.runs import recorded
    from kgkit.evaluation.files import check_gold_files
    from kgkit.evaluation.task_answers import write_answers
    from kgkit.home import Home
    from kgkit.models.opening import open_model

    if gold:
        check_gold_files(data, gold)
    check_sets([*data, *gold, *([] if versus is None else [versus])], predictions)
    messages, where = Messages(bars=not as_json), Home.find()
    task = _task_of(model, task_name, where)
    sets = _read(task, data, gold)
    if predictions is None and not any(data_set.labelled for data_set in sets):
        hint = "labels with --gold, or " if task.gold_files and not gold else ""
        raise UsageError(
            "the examples have no labels, so there is nothing to score: name "
            f"{hint}a file for the answers with --predictions"
        )
    compared = None if versus is None else _Compared(versus, task, sets)
    answers: dict[str, list[Prediction]] = {}
    differences: dict[str, dict[str, Any]] = {}
    scores: dict[str, dict[str, float]] = {}
    run = recorded(
        where, command=typed(), device=device, model=model, data=[*data, *gold],
        config={"model": model},
    )  # fmt: skip
    with (
        open_model(model, "predictor", home=where, device=device) as predictor,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        if predictions is not None:
            _check_writable(sets, predictor.labels)
        if compared is not None:
            compared.check(predictor.labels)
        for name, _, examples in sets:

            def show(count: int, total: int, name: str = name) -> None:
                tell(f"{name}, {count:,} of {total:,}", count, total)

            answers[name] = predictor.answers(examples, size=batch, progress=show)
        if predictions is not None:  # first: whatever scoring says, the answers are there
            write_answers(predictions, task, answers)
        for name, path, examples in (data_set for data_set in sets if data_set.labelled):
            _check_labels(model, path, examples, predictor.labels)
            scores[name] = task.score(examples, answers[name], predictor.labels)
            for metric, value in scores[name].items():
                record.score(task.name, name, metric, value, len(examples))
            if compared is not None:
                differences[name] = compared.compare(name, examples, answers[name], predictor.labels)
    if as_json:
        rows = [
            {"name": name, "data": str(path), "examples": len(examples), **scores.get(name, {}),
             **({"versus": differences[name]} if name in differences else {})}
            for name, path, examples in sets
        ]  # fmt: skip
        write_json({"model": model, "task": task.name, "sets": rows})
    elif scores:
        _write_table(sets, scores)
        if differences:
            write_line()
            write_compared(differences)
    if unlabelled := [data_set.name for data_set in sets if not data_set.labelled]:
        messages.write(f"not scored, as the examples have no labels: {', '.join(unlabelled)}")
    if predictions is not None:
        messages.write(f"answers to {sum(map(len, answers.values())):,} examples: {predictions}")


def _task_of(model: str, task: str, home: "Home") -> "Task":
    """Return the task that a model was trained for, before it is opened.

    Raises:
        UsageError: if it is another.
    """
    from kgkit.evaluation.tasks import TASKS
    from kgkit.models.folder import find_model_folder
    from kgkit.models.kinds import find_kind
    from kgkit.models.manifest import read_header
    from kgkit.versions import read_current

    manifest, kind = read_current(
        lambda: find_model_folder(model, home, "predictor"),
        lambda folder: (read_header(folder), find_kind(read_header(folder), folder)),
    )
    own = manifest.task
    if own == task or (own, task) == ("pair", "classification"):
        return TASKS[own]
    if "predictor" not in kind.roles:
        raise kind.missing("predictor", manifest)
    if own in TASKS:
        advice = f"`kgkit evaluate {own}` scores it"
    else:
        settings = fields(kind.load(kind.settings)) if kind.settings else ()
        origin = f" --from {model}" if any(setting.name == "start" for setting in settings) else ""
        advice = f"`{kind.command} --task {task}{origin} …` makes one for it"
    raise UsageError(f"the model {model} was trained for the task {own}, not {task}: {advice}")


def _check_labels(model: str, path: Path, examples: "Sequence[Example]", labels: Sequence[str]) -> None:
    """Refuse gold that the model cannot give, whatever it reads; O is no label of a name."""
    from kgkit.evaluation.labels import gold_labels
    from kgkit.evaluation.ner import OUTSIDE

    gold = {label for example in examples for label in gold_labels(example)}
    check_gold_labels(model, path, gold - ({OUTSIDE} if labels[:1] == (OUTSIDE,) else set()), labels)


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


def _write_table(sets: Sequence[_Set], scores: Mapping[str, Mapping[str, float]]) -> None:
    metrics = list(dict.fromkeys(metric for values in scores.values() for metric in values))
    rows = []
    for name, _, examples in (data_set for data_set in sets if data_set.name in scores):
        cells = [percents(scores[name][metric])[0] if metric in scores[name] else "" for metric in metrics]
        rows.append((name, [(number(len(examples)), *cells)]))
    write_scores([], ["examples", *(metric.replace("_", " ") for metric in metrics)], rows)


def _check_writable(sets: Sequence[_Set], labels: Sequence[str]) -> None:
    """Refuse ids and labels that a line with tabs cannot have, before anything is computed."""
    from kgkit.errors import abbreviate

    values = {
        "an id": (example.id for _, _, examples in sets for example in examples), "a label": iter(labels)
    }  # fmt: skip
    for what, texts in values.items():
        if strange := next((text for text in texts if not {*text}.isdisjoint("\t\n\r")), None):
            raise UsageError(
                f"{what} is {abbreviate(repr(strange))}: the lines of --predictions have tabs between their "
                "fields, so that none may be within; `kgkit predict` writes JSON"
            )
