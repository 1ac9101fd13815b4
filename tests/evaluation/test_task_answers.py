"""Files of answers: what is written is read back, and what is no answer is refused by its line."""

import pytest

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.task_answers import (
    AnswerLine,
    answer_text,
    check_answer_labels,
    parse_answer,
    read_answers,
    write_answers,
)
from kgkit.evaluation.tasks import TASKS, find_task

TOKENS = ((0, 1), (2, 3))
CASES = {
    "classification": (Prediction("7", "very good"), "very good"),
    "acceptability": (Prediction("7", "1"), "1"),
    "pair": (Prediction("7", "yes"), "yes"),
    "ranking": (Prediction("7", "1", {"1": 0.75}), "0.75"),
    "tagging": (Prediction("7", ("B-DRUG", "O")), "B-DRUG O"),
    "wic": (Prediction("7", "T"), "T"),
    "relation": (Prediction("7", "Owner-Thing(e1,e2)"), "Owner-Thing(e1,e2)"),
    "typing": (Prediction("7", frozenset({"place", "event"})), "event,place"),
    "regression": (Prediction("7", 2.5), "2.5"),
    "choice": (Prediction("7", 1), "1"),
}
EXAMPLE = Example("7", ("a b",), tokens=TOKENS, choices=("x", "y"))


def test_every_task_has_a_case():
    assert {*CASES} == {*TASKS}


@pytest.mark.parametrize("name", TASKS)
def test_an_answer_is_read_as_it_was_written(name, tmp_path):
    task, (prediction, text) = find_task(name), CASES[name]
    assert answer_text(task, prediction) == text
    assert parse_answer(task, EXAMPLE, text) == prediction
    path = tmp_path / "answers.txt.xz"
    write_answers(path, task, {"one": [prediction]})
    assert read_answers(path, task, {"one": [EXAMPLE]}) == {"one": [AnswerLine(1, prediction)]}
    write_answers(path, task, {"one": [prediction], "two": [prediction]})
    sets = {"two": [EXAMPLE], "one": [EXAMPLE]}
    assert read_answers(path, task, sets) == {
        "two": [AnswerLine(2, prediction)], "one": [AnswerLine(1, prediction)]
    }  # fmt: skip


def test_no_types_and_no_tags_are_answers_too(tmp_path):
    path, bare = tmp_path / "x", Example("7", ("",))
    for name, answer in (("typing", frozenset()), ("tagging", ())):
        write_answers(path, find_task(name), {"one": [Prediction("7", answer)]})
        [line] = read_answers(path, find_task(name), {"one": [bare]})["one"]
        assert line.prediction.answer == answer


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ranking", "1.5", r"expected the probability that it is right, in \[0, 1\], found '1.5'"),
        ("ranking", "yes", "expected a number, found 'yes'"),
        ("regression", "nan", "expected a number, found 'nan'"),
        ("choice", "2", "expected the index of a choice, 0 to 1, found '2'"),
        ("choice", "-1", "expected the index of a choice"),
        ("choice", "9" * 5000, "expected the index of a choice, 0 to 1, found '999"),
        ("tagging", "O", "expected 2 tags, one for each token, found 1"),
        ("tagging", "O DRUG", "a tag is 'DRUG'; it is O, B-TYPE or I-TYPE"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_line(name, text, message, tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text(f"\n7\t{text}\n")
    with pytest.raises(SourceError, match=rf"answers.txt:2: the answer to '7': {message}"):
        read_answers(path, find_task(name), {"one": [EXAMPLE]})


@pytest.mark.parametrize(
    ("name", "answer", "shown"),
    [
        ("classification", "c", "'c', which is no label of the task; these are a, b"),
        ("wic", "yes", "'yes', which is no label of the task; these are F, T"),
        ("typing", frozenset({"city"}), "'city', which is no label of the task; these are entity, "),
        ("tagging", ("I-b", "B-c"), "'c', which is no label of the task; these are a, b"),
    ],
)
def test_a_label_that_the_task_does_not_have_is_refused(name, answer, shown, tmp_path):
    gold = {"tagging": ("B-a", "O"), "typing": frozenset()}.get(name, "F" if name == "wic" else "a")
    labels = ("O", "B-a", "B-b") if name == "tagging" else ("a", "b")
    lines = [AnswerLine(3, Prediction("7", answer))]
    with pytest.raises(SourceError, match=f"x:3: the answer to '7' is {shown}"):
        check_answer_labels(tmp_path / "x", find_task(name), lines, [EXAMPLE._replace(gold=gold)], labels)


def test_labels_of_the_gold_and_of_the_model_may_be_answered(tmp_path):
    task, lines = find_task("classification"), [AnswerLine(n, Prediction("7", n)) for n in "ab"]
    check_answer_labels(tmp_path / "x", task, lines, [EXAMPLE._replace(gold="a")], ("b",))


def test_an_example_without_an_answer_is_an_error(tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text("7\tyes\n")
    examples = [EXAMPLE, EXAMPLE._replace(id="8")]
    with pytest.raises(UsageError, match="no answer to 1 of the 2 examples of one, the first is 8: let"):
        read_answers(path, find_task("pair"), {"one": examples})
