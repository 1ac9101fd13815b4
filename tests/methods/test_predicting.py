"""Blocks of examples, their sizes and order, and answers that are no numbers: without a trained model."""

import math
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import kgkit.methods.predicting as module
from kgkit.errors import DamagedModel, UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.records import ParsedRecord
from kgkit.methods.predicting import Predictor, blocks, check_finite


def parsed(count, length=1):
    """Return parsed records of texts of one length."""
    return [ParsedRecord(Example(str(number), ("x" * length,)), {}) for number in range(count)]


def sizes(count, batch, length=1):
    return [len(block) for block in blocks(parsed(count, length), batch)]


@pytest.mark.parametrize(
    ("count", "batch", "expected"),
    [
        (0, 4, []),
        (3, 4, [3]),
        (4, 4, [4]),
        (5, 4, [4, 1]),
        (100, 1, [1, 4, 16, 32, 32, 15]),
        (200, 2, [2, 8, 32, 64, 64, 30]),
    ],
)
def test_blocks_grow_fourfold_up_to_32_batches(count, batch, expected):
    assert sizes(count, batch) == expected


def test_blocks_of_long_texts_have_fewer_examples(monkeypatch):
    monkeypatch.setattr(module, "_MOST_CHARACTERS", 100)
    assert sizes(7, 2, length=60) == [2, 2, 2, 1]
    assert sizes(3, 2, length=1_000) == [1, 1, 1]


def test_a_block_comes_before_the_records_behind_it_are_read():
    records = parsed(6)
    remaining = iter(records)
    assert next(blocks(remaining, 2)) == records[:2]
    assert [*remaining] == records[2:]


def test_the_records_of_all_blocks_are_the_input_in_its_order():
    records = parsed(57)
    assert [record for block in blocks(iter(records), 3) for record in block] == records


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("form", [dict, tuple])
def test_a_probability_that_is_not_finite_names_model_and_example(number, form):
    shares = {"a": 0.5, "b": number} if form is dict else (0.5, number)
    predictions = [Prediction("1", "a", {"a": 1.0}), Prediction("second", "a", shares)]
    with pytest.raises(DamagedModel) as caught:
        check_finite(predictions, "mine")
    message = str(caught.value)
    assert "the model mine answers example second by a probability of" in message and str(number) in message


def test_a_number_that_is_not_finite_is_called_a_number():
    check_finite([Prediction("1", 2.5)], "mine")
    with pytest.raises(DamagedModel, match="answers example 1 by a number of nan"):
        check_finite([Prediction("1", math.nan)], "mine")


class Method:
    """A method with a classifier of two labels, which answers nothing."""

    def __init__(self, task="classification", answer="label"):
        config = SimpleNamespace(answer=answer, labels=("0", "1"))
        self.task, self.evaluated = task, 0
        self.model = SimpleNamespace(classifier=SimpleNamespace(config=config), eval=self._count)

    def _count(self):
        self.evaluated += 1


def predictor(monkeypatch, calls, **fields):
    """Return a predictor that answers every example by its text, and notes what is answered at once."""

    def answers_of(method, examples, *, size, bf16=False, progress=None):
        calls.append(([example.id for example in examples], size, bf16))
        if progress is not None:
            progress(len(examples), len(examples))
        return [Prediction(example.id, example.texts[0], {"0": 1.0}) for example in examples]

    monkeypatch.setattr(module, "answers_of", answers_of)
    method = Method(**fields)
    return Predictor(method, SimpleNamespace(name="mine"), ExitStack())


def test_records_are_answered_in_blocks_as_answers_are_needed(monkeypatch):
    calls = []
    answers = predictor(monkeypatch, calls)(iter(["a", "b", "c", "d"]), batch=1, bf16=True)
    assert calls == []
    assert next(answers) == Prediction("1", "a", {"0": 1.0}) and calls == [(["1"], 1, True)]
    assert [answer.answer for answer in answers] == ["b", "c", "d"]
    assert calls[1:] == [(["2", "3", "4"], 1, True)]


def test_progress_counts_the_examples_of_all_blocks(monkeypatch):
    counts = []
    answered = predictor(monkeypatch, []).answer_blocks(parsed(8), batch=1, progress=counts.append)
    assert [len(block) for block in answered] == [1, 4, 3] and counts == [1, 5, 8]


def test_examples_are_answered_as_they_are(monkeypatch):
    examples = [Example("x", ("a",)), Example("y", ("b",))]
    assert [answer.id for answer in predictor(monkeypatch, [])(examples)] == ["x", "y"]
    assert [answer.id for answer in predictor(monkeypatch, []).answers(examples)] == ["x", "y"]
    assert [*predictor(monkeypatch, [])([])] == []


def test_examples_and_texts_do_not_mix(monkeypatch):
    answers = predictor(monkeypatch, [])([Example("x", ("a",)), "b"])
    with pytest.raises(UsageError, match="record 2 is a str, and the first an Example: give one kind"):
        next(answers)


@pytest.mark.parametrize("record", ["a text", {"text": "a"}, Example("x", ("a",))])
def test_a_single_record_is_refused_with_the_call_that_serves(monkeypatch, record):
    with pytest.raises(UsageError, match=rf"this is one {type(record).__name__}: model\(\[record\]\)"):
        predictor(monkeypatch, [])(record)


@pytest.mark.parametrize("batch", [0, -1, 1.5])
def test_a_batch_that_is_no_number_of_examples_is_refused_at_once(monkeypatch, batch):
    with pytest.raises(UsageError, match=f"batch is {batch}; it is a whole number, 1 or more"):
        predictor(monkeypatch, [])(["a"], batch=batch)


def test_a_model_is_put_into_evaluation_mode_and_says_its_task_and_labels(monkeypatch):
    model = predictor(monkeypatch, [])
    assert model.method.evaluated == 1
    assert model.task.name == "classification" and model.labels == ("0", "1")


@pytest.mark.parametrize(
    ("task", "answer"), [("classification", "tags"), ("regression", "label"), ("?", "label")]
)
def test_a_classifier_of_another_task_is_damage_and_its_resources_are_closed(task, answer):
    closed = []
    resources = ExitStack()
    resources.callback(closed.append, True)
    with pytest.raises(DamagedModel, match=f"are of the kind '{answer}', and not those of the task"):
        Predictor(Method(task, answer), SimpleNamespace(name="mine"), resources)
    assert closed == [True]
