"""Files of answers: what is written is read back, and what is no answer is refused by its line."""

import pytest

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.examples import Example, Prediction, gold_labels
from kgkit.evaluation.task_answers import answer_text, as_written, parse_answer, read_answers, write_answers
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
    labels = gold_labels(EXAMPLE._replace(gold=prediction.answer))
    assert read_answers(path, task, {"one": [EXAMPLE]}, labels) == {"one": [prediction]}
    write_answers(path, task, {"one": [prediction], "two": [prediction]})
    sets = {"two": [EXAMPLE], "one": [EXAMPLE]}
    assert read_answers(path, task, sets, labels) == {"two": [prediction], "one": [prediction]}
    assert as_written(task, [EXAMPLE], [prediction]) == [prediction]


def test_no_types_and_no_tags_are_answers_too(tmp_path):
    path, bare = tmp_path / "x", Example("7", ("",))
    for name, answer in (("typing", frozenset()), ("tagging", ())):
        write_answers(path, find_task(name), {"one": [Prediction("7", answer)]})
        [prediction] = read_answers(path, find_task(name), {"one": [bare]}, ())["one"]
        assert prediction.answer == answer


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ranking", "1.5", "'1.5'"),
        ("ranking", "yes", "'yes'"),
        ("regression", "nan", "'nan'"),
        ("choice", "2", "0 to 1, found '2'"),
        ("choice", "-1", "'-1'"),
        ("choice", "9" * 5000, "found '999"),
        ("tagging", "O", "2 tags.* found 1"),
        ("tagging", "O DRUG", "'DRUG'"),
        ("classification", "c", "'c'.* a, b"),
        ("wic", "yes", "'yes'.* F, T"),
        ("typing", "city", "'city'"),
        ("tagging", "I-b B-c", "'c'.* a, b"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_line(name, text, value, tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text(f"\n7\t{text}\n")
    gold = {"tagging": ("B-a", "O"), "typing": frozenset(), "wic": "F", "classification": "a"}.get(name)
    labels = ("O", "B-a", "B-b") if name == "tagging" else ("a", "b")
    with pytest.raises(SourceError, match=rf"answers.txt:2: the answer to '7'.*{value}"):
        read_answers(path, find_task(name), {"one": [EXAMPLE._replace(gold=gold)]}, labels)


def test_an_example_without_an_answer_is_an_error(tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text("7\tyes\n")
    examples = [EXAMPLE, EXAMPLE._replace(id="8")]
    with pytest.raises(UsageError, match="1 of the 2 examples of one, the first is 8"):
        read_answers(path, find_task("pair"), {"one": examples}, ("yes",))
