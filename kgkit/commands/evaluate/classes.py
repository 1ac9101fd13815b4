"""`kgkit evaluate wic`, `relation`, `typing`, `classification`: score what a KnowBert was fine-tuned for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kgkit.commands.evaluate.kbert import score_kbert
from kgkit.commands.evaluate.language import BatchOption, KnowBertOption
from kgkit.commands.evaluate.sets import check_known, check_sets, percents, set_names, write_scores
from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, QuietOption
from kgkit.commands.output import number, typed, write_json
from kgkit.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.training.examples import Example, Label

ExamplesOption = Annotated[
    list[Path],
    typer.Option("--data", metavar="FILE", help="Examples, as in training; repeat it for more."),
]
AnswersOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Write the answers: id and label, apart by tabs; of several sets the set's name first.",
    ),
]


class _Set(NamedTuple):
    """A data set: what it is called, its file, its examples."""

    name: str
    path: Path
    examples: "list[Example]"

    @property
    def labelled(self) -> bool:
        return any(one.label is not None for one in self.examples)


def wic(
    data: ExamplesOption,
    model: KnowBertOption,
    gold: Annotated[
        list[Path] | None,
        typer.Option("--gold", metavar="FILE", help="X.gold.txt of the release; as often as --data."),
    ] = None,
    predictions: AnswersOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on WiC: does a word mean the same in two sentences; accuracy."""
    _score("wic", data, gold or [], model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def relation(
    data: ExamplesOption,
    model: KnowBertOption,
    predictions: AnswersOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on relations between two names: SemEval-2010 task 8 (macro F1), TACRED (micro F1)."""
    _score("relation", data, [], model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def typing(
    data: ExamplesOption,
    model: KnowBertOption,
    predictions: AnswersOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert on the types of names: nine general ones, any number of which may hold; micro F1."""
    _score("typing", data, [], model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def classification(
    data: ExamplesOption,
    model: KnowBertOption,
    predictions: AnswersOption = None,
    batch: BatchOption = 32,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a KnowBert, or a K-BERT, on the labels of texts, or of pairs of them; accuracy."""
    if _is_kbert(model, home):
        tasks = ("classification", "pair")
        score_kbert(tasks, data, model, predictions, batch, device, home, as_json=as_json, quiet=quiet)
        return
    _score("classification", data, [], model, predictions, batch, device, home, as_json=as_json, quiet=quiet)


def _is_kbert(model: str, home: Path | None) -> bool:
    from kgkit.home import Home
    from kgkit.models.folder import find_model_folder, names_of
    from kgkit.models.manifest import KBERT, KNOWBERT, is_kind
    from kgkit.versions import read_current

    where = Home.find(home)
    try:
        return read_current(lambda: find_model_folder(model, where), lambda found: is_kind(KBERT, found))
    except UnknownName:
        known = [*names_of(KNOWBERT, where), *names_of(KBERT, where)]
        raise UnknownName("KnowBert or K-BERT", model, sorted(known)) from None


def _score(
    task: str,
    data: list[Path],
    gold: list[Path],
    model: str,
    predictions: Path | None,
    batch: int,
    device: str,
    home: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from kgkit.home import Home
    from kgkit.linking.knowbert import TrainedKnowBert
    from kgkit.models.registering import known_model
    from kgkit.training import recorded
    from kgkit.training.classification import answers_of, open_classified
    from kgkit.training.examples import scores_of

    if gold and len(gold) != len(data):
        raise UsageError(f"{len(data)} --data and {len(gold)} --gold: each needs the other")
    check_sets([*data, *gold], predictions)
    messages, where = Messages(quiet=quiet, bars=not as_json), Home.find(home)
    _check_task(model, task, where)
    sets = _read(task, data, gold)
    if predictions is None and not any(one.labelled for one in sets):
        beside = "labels with --gold, or " if task == "wic" and not gold else ""
        raise UsageError(
            "the examples have no labels, so there is nothing to score: name "
            f"{beside}a file for the answers with --predictions"
        )
    answers: dict[str, dict[str, Label]] = {}
    scores: dict[str, dict[str, float]] = {}
    run = recorded(
        where, command=typed(), device=device, model=known_model(where, model), data=[*data, *gold],
        config={"model": model},
    )  # fmt: skip
    with (
        TrainedKnowBert.open(model, home=where, device=device) as trained,
        messages.progress(f"scoring {model}") as tell,
        run as record,
    ):
        classified, reader = open_classified(trained)
        for name, _, examples in sets:

            def show(_: str, done: int, total: int, name: str = name) -> None:
                tell(f"{name}, {done:,} of {total:,}")

            answers[name] = answers_of(classified, reader, examples, size=batch, progress=show)
        if predictions is not None:  # first: whatever scoring says, the answers are there
            _write_answers(predictions, answers)
        for name, path, examples in (one for one in sets if one.labelled):
            _check_labels(model, path, examples, reader.labels)
            scores[name] = scores_of(task, examples, answers[name], reader.labels)
            for metric, value in scores[name].items():
                record.score(task, name, metric, value, len(examples))
    if as_json:
        told = [
            {"name": name, "data": str(path), "examples": len(examples), **scores.get(name, {})}
            for name, path, examples in sets
        ]
        write_json({"model": model, "task": task, "sets": told})
    elif scores:
        _write_table(sets, scores)
    if without := [one.name for one in sets if not one.labelled]:
        messages.say(f"not scored, as the examples have no labels: {', '.join(without)}")
    if predictions is not None:
        messages.say(f"answers to {sum(map(len, answers.values())):,} examples: {predictions}")


def _check_task(model: str, task: str, home: "Home") -> None:
    """Refuse a model that was trained for another task, before it is opened."""
    from kgkit.models.folder import find_knowbert_folder
    from kgkit.models.manifest import read_knowbert
    from kgkit.training.examples import TASKS
    from kgkit.versions import read_current

    own = read_current(lambda: find_knowbert_folder(model, home), read_knowbert).task
    if own != task:
        advice = (
            f"`kgkit evaluate {own}` scores it"
            if own in TASKS
            else f"`kgkit train knowbert --task {task} --from {model} …` makes one for it"
        )
        raise UsageError(f"the model {model} was trained for the task {own}, not {task}: {advice}")


def _check_labels(model: str, path: Path, examples: "Sequence[Example]", labels: Sequence[str]) -> None:
    """Refuse gold that the model cannot give, whatever it reads."""
    gold = {
        label
        for one in examples
        for label in (one.label if isinstance(one.label, frozenset) else (one.label,))
        if label is not None
    }
    check_known(model, path, gold, labels)


def _read(task: str, data: Sequence[Path], gold: Sequence[Path]) -> list[_Set]:
    """Read all sets; of each all examples have labels, or none."""
    from kgkit.training.examples import check_labels, read_examples

    names = set_names(data, ".txt", ".jsonl", ".json", ".tsv")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named twice with --data: once will do")
    golds: Sequence[Path | None] = gold or [None for _ in data]
    sets = []
    for name, path, beside in zip(names, data, golds, strict=True):
        sets.append(_Set(name, path, read_examples(task, path, beside)))
        if sets[-1].labelled:
            check_labels(task, sets[-1].examples, str(path))
    return sets


def _write_table(sets: Sequence[_Set], scores: Mapping[str, Mapping[str, float]]) -> None:
    metrics = list(dict.fromkeys(metric for told in scores.values() for metric in told))
    rows = []
    for name, _, examples in (one for one in sets if one.name in scores):
        told = [percents(scores[name][one])[0] if one in scores[name] else "" for one in metrics]
        rows.append((name, [(number(len(examples)), *told)]))
    write_scores([], ["examples", *(metric.replace("_", " ") for metric in metrics)], rows)


def _write_answers(path: Path, answers: "Mapping[str, Mapping[str, Label]]") -> None:
    """Write the answers of each set: ids are its own, and so stand behind its name if there are several."""
    from kgkit.evaluation.files import written

    with written(path) as file:
        for name, some in answers.items():
            before = f"{name}\t" if len(answers) > 1 else ""
            for one, label in some.items():
                told = label if isinstance(label, str) else ",".join(sorted(label))
                file.write(f"{before}{one}\t{told}\n".encode())
