"""`kgkit evaluate ner --versus`: a tagger beside another, without training either."""

import json

import pytest

pytest.importorskip("torch")

from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention
from tests.cli_helpers import run

DOCUMENTS = """-DOCSTART- O

Ann B-PER
met O
Bo B-PER

-DOCSTART- O

Oslo B-LOC
sleeps O
"""


class CapitalTagger:
    """Says that each word with a capital is a person."""

    name, types = "capitals", ("PER",)

    def __call__(self, documents):
        for document in documents:
            mentions = [
                TaggedMention(start, end, document.text[start:end], type="PER")
                for start, end in document.tokens
                if document.text[start].isupper()
            ]
            yield type(document)(document.id, document.text, document.sentences, document.tokens, mentions)


@pytest.fixture
def evaluate(monkeypatch, tmp_path):
    monkeypatch.setattr(MentionTagger, "open", lambda *_, **__: CapitalTagger())
    paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for path in paths:
        path.write_text(DOCUMENTS)

    def of(*args, sets=paths):
        data = [word for path in sets for word in ("--data", path)]
        return run("evaluate", "ner", *data, "--model", "capitals", *args, "--home", tmp_path / "home")

    return of


def test_a_tagger_does_not_differ_from_its_own_names(evaluate, tmp_path):
    path = tmp_path / "own.txt"
    assert evaluate("--predictions", path).code == 0
    done = evaluate("--versus", path, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    for scored in (*told["sets"], told["together"]):
        score = scored["overall"]["f1"]
        assert scored["versus"] == {
            "f1": {"score": score, "versus": score, "difference": 0, "interval": [0, 0], "p": 1}
        }


def test_another_tagger_is_compared_set_by_set_and_together(evaluate, tmp_path):
    path = tmp_path / "other.txt"
    right = "".join(
        f"{line} {line.split()[1]}\n" if " " in line else f"{line}\n" for line in DOCUMENTS.splitlines()
    )
    path.write_text(right + "\n" + right)
    done = evaluate("--versus", path, "--predictions", tmp_path / "own.txt")
    assert done.code == 0, done.err
    table = [line.split("\t") for line in done.out.splitlines()]
    rows = table[table.index(["data", "metric", "versus", "score", "difference", "95 %", "p"]) + 1 :]
    assert [row[:5] for row in rows] == [
        [name, "f1", "100.00", "66.67", "-33.33"] for name in ("one", "two", "together")
    ]
    assert [row[6] for row in rows] == ["1.0000", "1.0000", "0.5000"]
    assert (tmp_path / "own.txt").read_text().count("-DOCSTART-") == 4


def test_names_of_other_data_are_refused_before_anything_is_written(evaluate, tmp_path):
    path, out = tmp_path / "other.txt", tmp_path / "own.txt"
    path.write_text(DOCUMENTS)
    done = evaluate("--versus", path, "--predictions", out)
    assert (done.code, done.out) == (1, "") and not out.exists()
    assert "other.txt: it ends before the document '1' of two: let --predictions write it anew" in done.err
    done = evaluate("--versus", path, "--predictions", path)
    assert done.code == 2 and "other.txt is one of the files to read" in done.err
    done = evaluate("--versus", path, sets=[tmp_path / "one.txt"] * 2)
    assert done.code == 2 and "a file is named twice with --data: once will do" in done.err
    assert evaluate("--versus", tmp_path / "none").code == 3
