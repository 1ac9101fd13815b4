"""`kgkit evaluate el`, on the toy: its keys have underscores where titles have spaces."""

import json
import lzma

import pytest

from kgkit.catalog import Catalog
from kgkit.home import Home
from tests.cli_helpers import on_terminal, run

# In raw text, the toy finds Apple, apple, "the Big Apple", York, Apple and Straße.
ONE = {
    "doc_id": 1,
    "tokens": "Now Apple sells apple juice in the Big Apple York gives Apple no Straße to Nowhere".split(),
    "sentences": [[0, 9], [9, 16]],
    "mentions": [
        {"start": 1, "end": 2, "entity": "Apple Inc."},  # right
        {"start": 3, "end": 4, "entity": "Fruit"},  # no candidate of it
        {"start": 7, "end": 9, "entity": "New York City"},  # found with "the"
        {"start": 9, "end": 10, "entity": None},  # linked all the same
        {"start": 11, "end": 12, "entity": "Apples"},  # a redirect to Apple, which is a candidate
        {"start": 15, "end": 16, "entity": "Nowhere"},  # not found, and not in the KB
    ],
}
TWO = {
    "doc_id": 2,
    "tokens": ["York", "."],
    "sentences": [[0, 2]],
    "mentions": [{"start": 0, "end": 1, "entity": "York"}],
}


@pytest.fixture
def evaluate(toy_home):
    """Return what runs the command on data sets, in order, with options."""

    def call(*data, options=()):
        named = [each for path in data for each in ("--data", path)]
        return run("evaluate", "el", *named, "--home", toy_home, *options)

    return call


def told(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    ("entity", "right", "lost"),
    [
        (["York", "Nowhere"], 1, 0),
        (["Nowhere", "York"], 1, 0),
        (["Apple", "York", "Nowhere"], 1, 0),
        (["Nowhere", "Apple"], 0, 0),
        (["Nowhere", "Elsewhere"], 0, 1),
        ("Q1|Q2", 0, 1),
    ],
)
def test_any_entity_of_a_mention_is_right_and_one_has_to_be_known(evaluate, put, entity, right, lost):
    tokens = {"doc_id": 3, "tokens": ["York", ".", "Apple"]}
    mentions = [
        {"start": 0, "end": 1, "entity": entity},
        {"start": 2, "end": 3, "entity": ["Apple_Inc.", "Apple"]},
    ]
    path = put("three.jsonl", tokens | {"mentions": mentions})
    page = path.with_suffix(".html")
    answer = told(evaluate(path, options=["--json", "--model", "prior", "--report", page]))
    assert (answer["together"]["right"], answer["not_in_kb"]["mentions"]) == (right + 1, lost)
    assert ("Apple or Nowhere" in page.read_text()) == (entity == ["Nowhere", "Apple"])


def test_the_model_is_auto_unless_one_is_named(evaluate, put, monkeypatch):
    path = put("one.jsonl", ONE)
    monkeypatch.setenv("KGKIT_MODEL", "not-trained")
    done = evaluate(path)
    assert done.code != 0 and "not-trained" in done.err
    assert told(evaluate(path, options=["--json", "--model", "prior"]))["model"] == "prior"
    monkeypatch.delenv("KGKIT_MODEL")
    monkeypatch.setattr("kgkit.linking.auto.auto_models", lambda kb, vectors=None: iter(["prior"]))
    done = evaluate(path, options=["--coherence", "graph"])
    assert done.code == 0 and done.out.startswith("model prior+graph, mentions found")


def test_the_help_names_the_default_model():
    shown = " ".join(run("evaluate", "el", "--help").out.replace("│", " ").split())
    assert "auto ($KGKIT_MODEL," in shown


def test_found_mentions_are_scored_with_every_kind_of_error(evaluate, put):
    found = told(evaluate(put("one.jsonl", ONE), options=["--json"]))
    assert (found["model"], found["mentions"]) == ("prior", "found")
    assert found["kb"].startswith("toy@")
    [one] = found["sets"]
    assert one["name"] == "one"
    assert (one["documents"], one["mentions"], one["nil"], one["links"], one["right"]) == (1, 5, 1, 6, 1)
    assert one["micro"] == pytest.approx({"precision": 1 / 6, "recall": 1 / 5, "f1": 2 / 11})
    assert one["macro"] == one["micro"]
    assert one["accuracy"] == pytest.approx(1 / 3)
    assert one["mention_errors"] == {
        "wrong_choice": 1, "no_candidate": 1, "wrong_entity": 0, "misplaced": 1, "missed": 1,
    }  # fmt: skip
    assert one["link_errors"] == {"wrong": 2, "on_nil": 1, "misplaced": 1, "nowhere": 1}
    assert found["together"] == {name: one[name] for name in found["together"]}


def test_given_mentions_are_linked_as_they_are(evaluate, put):
    found = told(evaluate(put("one.jsonl", ONE), options=["--json", "--mentions", "given"]))
    one = found["together"]
    assert (one["mentions"], one["links"], one["right"]) == (5, 5, 2)
    assert one["accuracy"] == one["micro"]["recall"] == pytest.approx(2 / 5)
    assert one["mention_errors"] == {
        "wrong_choice": 1, "no_candidate": 2, "wrong_entity": 0, "misplaced": 0, "missed": 0,
    }  # fmt: skip
    assert one["link_errors"] == {"wrong": 2, "on_nil": 1, "misplaced": 0, "nowhere": 0}


def test_overlapping_links_are_scored_as_asked_for(evaluate, put):
    file, counts = put("one.jsonl", ONE), {}
    for overlaps in ("longest", "keep", "score"):
        scored = told(evaluate(file, options=("--json", "--overlaps", overlaps)))
        assert scored["overlaps"] == overlaps
        counts[overlaps] = scored["together"]["links"]
    assert counts["keep"] > counts["longest"] and counts["keep"] > counts["score"]
    done = evaluate(file, options=("--mentions", "given", "--overlaps", "keep"))
    assert done.code == 2 and "leave out --overlaps keep" in done.err


def test_gold_entities_that_the_kb_lacks_are_told_once(evaluate, put):
    again = {**ONE, "doc_id": 3}
    done = evaluate(put("one.jsonl", ONE, again), options=["--json"])
    assert told(done)["not_in_kb"] == {"entities": 1, "mentions": 2}
    assert done.err.count("1 gold entities, of 2 mentions, are not in the knowledge base") == 1
    assert "not in the knowledge base" not in evaluate(put("two.jsonl", TWO)).err


def test_redirects_make_titles_equal_and_find_entities_of_the_kb(evaluate, put, tmp_path):
    (tmp_path / "moved.json.xz").write_bytes(lzma.compress(b'{"Fruit": "Apple", "Nowhere": "Road"}'))
    options = ["--json", "--redirects", tmp_path / "moved.json.xz"]
    done = evaluate(put("one.jsonl", ONE), options=options)
    assert told(done)["together"]["right"] == 2
    assert told(done)["not_in_kb"] == {"entities": 0, "mentions": 0}
    # The other way round: the gold title is the new one, the KB has the old one.
    (tmp_path / "moved.json").write_text('{"Road": "Nowhere"}')
    done = evaluate(put("one.jsonl", ONE), options=["--json", "--redirects", tmp_path / "moved.json"])
    assert told(done)["not_in_kb"] == {"entities": 0, "mentions": 0}


def test_several_sets_are_scored_each_and_together(evaluate, put):
    found = told(evaluate(put("one.jsonl", ONE), put("two.jsonl", TWO), options=["--json"]))
    assert [(each["name"], each["right"]) for each in found["sets"]] == [("one", 1), ("two", 1)]
    assert found["together"]["micro"]["f1"] == pytest.approx(2 * 2 / (6 + 7))
    assert found["together"]["macro"]["f1"] == pytest.approx((2 / 11 + 1) / 2)


def test_the_tables_have_a_line_for_each_set_and_each_kind_of_error(evaluate, put, toy_home, tmp_path):
    done = evaluate(put("one.jsonl", ONE), put("two.jsonl", TWO))
    lines = [line.split("\t") for line in done.out.splitlines()]
    headings = "mentions", "P", "R", "F1", "macro F1", "accuracy"
    assert lines[:2] == [["model prior, mentions found (A2KB)"], ["data", *headings]]
    assert lines[2] == ["one", "5", "16.67", "20.00", "18.18", "18.18", "33.33"]
    assert [line[0] for line in lines[2:5]] == ["one", "two", "together"]
    assert lines[5:7] == [[""], ["data", "of", "what became of them", "count", "%"]]
    assert ["one", "mentions", "wrong, a candidate was right", "1", "20.00"] in lines
    assert ["one", "NIL mentions", "linked", "1", "100.00"] in lines
    assert ["two", "NIL mentions", "linked", "0", ""] in lines
    assert ["together", "links", "no mention there", "1", "14.29"] in lines
    shown = on_terminal("evaluate", "el", "--data", tmp_path / "one.jsonl", "--home", toy_home).out
    assert "macro F1" in shown and "accuracy" in shown


def test_links_are_written_in_the_order_of_the_data(evaluate, put, tmp_path):
    options = ["--predictions", tmp_path / "out.tsv", "--mentions", "given"]
    done = evaluate(put("two.jsonl", TWO), put("one.jsonl", ONE), options=options)
    assert f"6 links in 2 documents: {tmp_path / 'out.tsv'}" in done.err
    assert (tmp_path / "out.tsv").read_text().splitlines() == [
        "2\t0\t4\tYork",
        "1\t4\t9\tApple_Inc.",
        "1\t16\t21\tApple",
        "1\t35\t44\tNew_York_City",
        "1\t45\t49\tYork",
        "1\t56\t61\tApple_Inc.",
        "1\t75\t82\t",
    ]


def test_a_document_is_not_counted_twice_and_no_half_of_the_links_is_left(evaluate, put, tmp_path):
    one = put("one.jsonl", ONE)
    done = evaluate(one, one, options=["--predictions", tmp_path / "out.tsv"])
    assert (done.code, "the document '1'" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == [one]


def test_gold_of_another_kb_is_no_score_of_nought(evaluate, put):
    elsewhere = {**TWO, "mentions": [{"start": 0, "end": 1, "entity": "Elsewhere"}]}
    done = evaluate(put("two.jsonl", elsewhere))
    assert (done.code, "none of the gold entities is in knowledge base" in done.err) == (2, True)


def test_data_without_any_entity_have_scores_all_the_same(evaluate, put):
    nothing = {**TWO, "mentions": []}
    assert told(evaluate(put("two.jsonl", nothing), options=["--json"]))["together"]["links"] == 1


def test_without_links_there_is_no_calibration_to_keep(evaluate, put, toy_home):
    nothing = {**TWO, "tokens": ["Nowhere", "."]}
    found = told(evaluate(put("two.jsonl", nothing), options=["--json", "--mentions", "given"]))
    assert found["calibration"]["links"] == 0
    with Catalog.open(Home(toy_home)) as catalog:
        kept = catalog.runs()[0].scores
    assert {score.metric.partition(",")[0] for score in kept} == {"micro f1", "accuracy"}
