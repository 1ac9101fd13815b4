"""Predictions for cloze questions in files: what is written is read again, and what is none is refused."""

import json

import pytest

from kgkit.errors import SourceError
from kgkit.evaluation.cloze import (
    ClozeGuess,
    filtered,
    read_cloze_predictions,
    write_cloze_predictions,
)
from kgkit.evaluation.facts import cloze_questions
from tests.cloze_toys import FACTS, TEMPLATES

QUESTIONS = [each for each in cloze_questions(FACTS, TEMPLATES).instances if each.hidden == "object"]
GUESSES = [ClozeGuess(question, 3 + number, 1) for number, question in enumerate(QUESTIONS)]
ROW = {
    "id": "1.object", "subject": "big dog", "relation": "eats", "object": "fruit", "rank": 2,
    "object_rank": 1,
}  # fmt: skip


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "predictions.jsonl"
    write_cloze_predictions(path, GUESSES, FACTS, filtered(FACTS))
    assert read_cloze_predictions(path, QUESTIONS, FACTS) == GUESSES
    filters = [json.loads(line)["filters"] for line in path.read_text().splitlines()]
    assert filters[0] == ["none", "string"] and filters[2] == ["none", "easy"]


@pytest.mark.parametrize(
    ("lines", "problem", "number"),
    [
        (["{"], "no prediction of a question", 1),
        ([json.dumps({"id": "1.object"})], "no prediction of a question", 1),
        (["[" * 100_000], "no prediction of a question", 1),
        (
            [json.dumps(ROW | {"id": "9.object"})],
            "the id '9.object' is .*: no question has it",
            1,
        ),
        (
            [json.dumps(ROW | {"object": "tree"})],
            "the object 'tree' of 'big dog': it is 'fruit' of 'big dog'",
            1,
        ),
        ([json.dumps(ROW | {"subject": "red dog"})], "of 'red dog': it is 'fruit' of 'big dog'", 1),
        ([json.dumps(ROW | {"relation": "P1412"})], "give predictions for the same facts", 1),
        ([json.dumps(ROW), json.dumps(ROW)], "1.object has a prediction on line 1 already", 2),
        ([json.dumps(ROW | {"rank": 0})], "ranks are counted from 1", 1),
        ([], "no prediction in it", None),
    ],
)
def test_what_is_no_prediction_is_refused_with_its_line(tmp_path, lines, problem, number):
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(SourceError, match=problem) as caught:
        read_cloze_predictions(path, QUESTIONS, FACTS)
    assert caught.value.line == number
