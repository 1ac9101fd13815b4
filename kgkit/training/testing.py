"""What holds for every method, as checks that a test calls: kgkit's own methods pass them, and yours should.

    check_method      of a method in memory: its answers, what it learns, its control
    check_training    of an installed method: it answers as it did when it was trained; it can be stopped

A check that fails raises AssertionError, and says what does not hold. No pytest is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import torch
from torch import Tensor

from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.task_formats import TYPES
from kgkit.evaluation.tasks import TASKS, find_task
from kgkit.home import Home
from kgkit.methods.answering import TaskData, answers_of, batch_of, loss_of
from kgkit.methods.contract import Method
from kgkit.models.kinds import find_method
from kgkit.models.opening import open_model
from kgkit.training.job import TrainedModel
from kgkit.training.methods import settings_of, train

_NOUNS = ("dog", "cat", "tree", "fruit")
_TOLERANCE = 1e-5  # of a probability, padded differently
_NAMES = ("check-whole", "check-stopped")  # of models
_COUNT = 8  # examples of a task


def check_method(
    make: Callable[[str, bool], Method],
    tasks: Iterable[str] = tuple(TASKS),
    plain: Callable[[Any, Any], Tensor] | None = None,
) -> None:
    """Check a method on small examples of each task that it reads.

    Args:
        make: function from the name of a task, and whether it is a control, to an untrained method for
            `toy_data(task)`: always with the same weights.
        tasks: names of the tasks that the method reads.
        plain: function from the bare encoder and what `Method.collate` returns to the encoder's vectors,
            (B, T, H), which those of a control must be bit for bit: what the head computes without
            knowledge, pooling included; None: it is not checked.

    Raises:
        AssertionError: if something does not hold.
    """
    for task in tasks:
        check_answers(make(task, False))
        check_learning(make(task, False))
        if plain is not None:
            check_control(make(task, True), plain)


def check_answers(method: Method) -> None:
    """Check that padding, order and batch size change no answer, and that the answers can be scored."""
    method.model.eval()
    examples = toy_examples(method.task)
    answers = answers_of(method, examples)
    alone = answers_of(method, [example._replace(gold=None) for example in examples], size=1)
    turned = answers_of(method, examples[::-1], size=3)[::-1]
    same_ids = [answer.id for answer in answers] == [example.id for example in examples]
    _require(same_ids, f"{method.task}: answers do not come in the order of the examples")
    for name, others in (("alone", alone), ("in another order and batch", turned)):
        for answer, other in zip(answers, others, strict=True):
            _require(
                _alike(answer, other), f"{method.task}: example {answer.id} is answered otherwise {name}"
            )
    scores = find_task(method.task).score(examples, answers, toy_data(method.task).labels)
    _require(bool(scores), f"{method.task}: the answers have no score")


def check_learning(method: Method) -> None:
    """Check that the loss is finite, and that its gradient reaches the classifier and the word embeddings."""
    method.model.train()
    examples, model = toy_examples(method.task), method.model
    loss, items = loss_of(model.classifier)(model, batch_of(method, examples))
    torch.autograd.backward(loss)
    expected = sum(len(example.tokens) for example in examples) if method.task == "tagging" else len(examples)
    _require(bool(loss.isfinite()), f"{method.task}: the loss is {loss.item()}")
    _require(items == expected, f"{method.task}: the loss is over {items} answers, not {expected}")
    head: Any = model.head
    parts = {"classifier": model.classifier.label, "embeddings": head.model.get_input_embeddings()}
    for name, part in parts.items():
        gradient = part.weight.grad
        _require(gradient is not None and bool(gradient.any()), f"{method.task}: the {name} learn nothing")


def check_control(method: Method, plain: Callable[[Any, Any], Tensor]) -> None:
    """Check that a control is the plain encoder bit for bit; *plain*: see `check_method`."""
    model = method.model.eval()
    head: Any = model.head
    batch = batch_of(method, toy_examples(method.task))
    with torch.no_grad():
        expected = model.classifier(plain(head.model, batch.inputs), batch.positions, batch.rows)
        logits = model(batch)
    _require(
        torch.equal(logits, expected),
        f"{method.task}: the control is not the plain encoder: its logits differ by up to "
        f"{(logits - expected).abs().max().item():.2g} from those of what `plain` returns",
    )


def check_training(method: str, home: Home | Path | str, **settings: Any) -> None:
    """Check that a trained model answers as it did in training, and that a stopped training ends as another.

    Args:
        method: name of an installed method.
        home: home of the knowledge bases and models that the settings name. Nothing is written there: what is
            trained lies in a temporary home, and is removed.
        settings: arguments of `kgkit.train` but *method*, *name* and *home*: a few steps will do, on the CPU.

    Raises:
        AssertionError: if something does not hold.
    """
    with _temporary_home(home if isinstance(home, Home) else Home.find(home)) as where:
        _check_training(method, where, {"device": "cpu", **settings})


@contextmanager
def _temporary_home(home: Home) -> Iterator[Home]:
    """Give a home with the knowledge bases and models of another one, which is left as it is."""
    with TemporaryDirectory() as folder:
        temporary = Home(Path(folder))
        if (home.path / "kbs").is_dir():
            (temporary.path / "kbs").symlink_to(home.path / "kbs", target_is_directory=True)
        temporary.models.mkdir()
        for model in home.models.iterdir() if home.models.is_dir() else ():
            (temporary.models / model.name).symlink_to(model, target_is_directory=True)
        yield temporary


def _check_training(method: str, where: Home, settings: dict[str, Any]) -> None:
    device, (first_name, second_name) = settings["device"], _NAMES
    whole = train(method, name=first_name, home=where, **settings)
    settings_class: type[Any] = settings_of(find_method(method))
    training = msgspec.convert(whole.manifest.config, settings_class, dec_hook=_as_path)
    data = TaskData.read(training)
    with open_model(first_name, "predictor", home=where, device=device) as predictor:
        answers = answers_of(predictor.method, data.held_out, size=training.batch)
        scores = data.task.score(data.held_out, answers, data.labels)
    for metric, value in scores.items():
        trained = whole.manifest.results[metric]
        _require(
            abs(value - trained) < _TOLERANCE,
            f"the trained model has a {metric} of {value} once it is opened, and had {trained}",
        )

    def stop(stage: str, done: int, total: int) -> None:
        if stage.startswith("training") and done == total // 2:
            raise KeyboardInterrupt

    try:
        train(method, name=second_name, home=where, progress=stop, **settings)
    except KeyboardInterrupt:
        stopped = train(method, name=second_name, home=where, **settings)
    else:
        raise UsageError("the training has too few steps to be stopped: name more data, or more epochs")
    first, second = _weights(whole), _weights(stopped)
    _require(first.keys() == second.keys(), "a training that was stopped has other files of weights")
    for name, weight in first.items():
        _require(torch.equal(weight, second[name]), f"{name} differs in a training that was stopped")


def toy_examples(task: str, count: int = _COUNT) -> list[Example]:
    """Return examples of a task, of several lengths, that say a noun, which decides the gold."""
    return [_toy_example(task, number) for number in range(count)]


def toy_data(task: str) -> TaskData:
    """Return the examples of `toy_examples` as the data of a training."""
    examples = toy_examples(task)
    return TaskData(find_task(task), examples, [], find_task(task).labels(examples))


def _toy_example(task: str, number: int) -> Example:
    noun, identity, label = _NOUNS[number % 4], str(number), str(number % 2)
    text = f"{'the ' * (number % 3 + 1)}{noun} eats"
    begin = text.index(noun)
    name, words = (begin, begin + len(noun)), tuple(_word_spans(text))
    by_task = {
        "tagging": Example(identity, (text,), tokens=words, gold=("O",) * (len(words) - 2) + ("B-X", "O")),
        "wic": Example(identity, (text, "a dog"), gold="FT"[number % 2]),
        "relation": Example(
            identity, (text,), (name, words[-1]), tail=("[SUBJECT=X]",), gold=f"r{label}(e1,e2)"
        ),
        "typing": Example(identity, (text,), (name,), gold=frozenset(TYPES[: number % 3])),
        "regression": Example(identity, (text, "a dog"), gold=10.0 + number % 4),
        "choice": Example(
            identity, (text,)[: number % 2], gold=number % 2,
            choices=("a dog", "the big city", "a cat")[: 2 + number % 2],
        ),
        "ranking": Example(identity, ("it", text), group=str(number // 2), gold=label),
        "pair": Example(identity, ("it", text), gold=label),
    }  # fmt: skip
    return by_task.get(task, Example(identity, (text,), gold=label))


def _word_spans(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for word in text.split(" "):
        yield begin, begin + len(word)
        begin += len(word) + 1


def _alike(first: Prediction, second: Prediction) -> bool:
    """Say whether two answers are one, rounding aside."""
    if isinstance(first.answer, float) and isinstance(second.answer, float):
        return abs(first.answer - second.answer) <= _TOLERANCE * max(1.0, abs(first.answer))
    pairs = zip(_shares(first), _shares(second), strict=True)
    return first.answer == second.answer and all(abs(share - other) <= _TOLERANCE for share, other in pairs)


def _shares(answer: Prediction) -> list[float]:
    probabilities = answer.probabilities or ()
    return [*probabilities.values()] if isinstance(probabilities, Mapping) else [*probabilities]


def _as_path(kind: type, value: Any) -> Any:
    """Return a path of a manifest as a path."""
    return kind(value)


def _weights(model: TrainedModel) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    paths = sorted(model.folder.rglob("*.safetensors"))
    return {f"{path.parent.name}.{key}": weight for path in paths for key, weight in load_file(path).items()}


def _require(condition: bool, sentence: str) -> None:
    """Raise an AssertionError unless something holds: `assert` is left out by `python -O`."""
    if not condition:
        raise AssertionError(sentence)
