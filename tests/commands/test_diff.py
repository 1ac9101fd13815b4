"""`kgkit kb diff`: what sets two knowledge bases apart, for people and for programs."""

import json

import pytest

import kgkit
from kgkit.building import Alias, Entity, Form, Redirect, Triple
from tests.cli_helpers import run
from tests.small_kb import Given, build

OLD = (
    Entity("apple", "apple", "A fruit.", "thing"),
    Entity("acme", "Acme"),
    Alias("apple", "apple", 6),
    Alias("Apple", "acme", 2),
    Triple("acme", "sells", "apple"),
    Redirect("apples", "apple"),
    Form("geese", "goose", "n"),
)
NEW = (
    Entity("apple", "Apple", "A red fruit.", "thing"),
    Entity("acme", "Acme"),
    Entity("pear", "pear"),
    Alias("apple", "apple", 8),
    Alias("Apple", "acme", 2, sense="pear"),
    Alias("pear", "pear"),
    Triple("acme", "sells", "pear"),
    Redirect("apples", "acme"),
    Form("mice", "mouse", "n"),
)
LINES = """\
~ entity apple: label 'apple' → 'Apple'; description 'A fruit.' → 'A red fruit.'
~ redirect apples → apple → acme
+ entity pear: pear
~ alias 'apple' → apple: 6 → 8
~ alias 'Apple' → acme: 2 → 2, pear
+ alias 'pear' → pear: 0
- triple acme sells apple
+ triple acme sells pear
- form 'geese': goose (n)
+ form 'mice': mouse (n)
"""
SUMMARY = """\
+ 1 × alias
~ 2 × alias
+ 1 × entity
~ 1 × entity
+ 1 × form
- 1 × form
~ 1 × redirect
+ 1 × triple
- 1 × triple
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with `old`, `new`, and `same`, which is `old` with other ids: not to be changed."""
    folder = tmp_path_factory.mktemp("kbs")
    build(folder, OLD, name="old").close()
    build(folder, NEW, name="new").close()
    build(folder, OLD[::-1], name="same").close()
    return folder


def diff(home, *args):
    return run("kb", "diff", *args, "--home", home)


def test_each_difference_is_a_line_that_begins_with_what_happened(home):
    done = diff(home, "old", "new")
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == sorted(LINES.splitlines())


def test_a_summary_counts_them(home):
    assert diff(home, "old", "new", "--summary") == (0, SUMMARY, "")


def test_json_lines_have_both_records(home):
    told = [json.loads(line) for line in diff(home, "old", "new", "--jsonl").out.splitlines()]
    assert len(told) == len(LINES.splitlines())
    assert all(set(line) == {"change", "what", "old", "new"} for line in told)
    found = {(line["change"], line["what"]): line for line in told}
    changed = found["changed", "entity"]
    assert (changed["old"]["label"], changed["new"]["label"]) == ("apple", "Apple")
    assert set(changed["old"]) == set(Entity.__struct_fields__) - {"id"}
    assert found["removed", "triple"] == {
        "change": "removed",
        "what": "triple",
        "old": {"subject": "acme", "relation": "sells", "object": "apple"},
        "new": None,
    }
    assert found["added", "form"]["new"] == {"surface": "mice", "lemma": "mouse", "pos": "n"}


def test_a_summary_is_no_json_lines(home):
    done = diff(home, "old", "new", "--summary", "--jsonl")
    assert (done.code, done.out, done.err) == (2, "", "error: --summary or --jsonl: one of them, not both\n")


def test_kbs_that_hold_the_same_are_told_so(home):
    done = diff(home, "old", "same")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("old@")
    assert done.err.endswith(" hold the same\n")
    assert diff(home, "old", "same", "--quiet") == (0, "", "")
    assert diff(home, "old", "same", "--summary").out == ""
    assert diff(home, "old", "same", "--jsonl").out == ""


def test_the_exit_code_tells_if_asked(home):
    assert diff(home, "old", "new").code == 0
    assert diff(home, "old", "new", "--exit-code").code == 1
    assert diff(home, "old", "new", "--exit-code", "--summary").out == SUMMARY
    assert diff(home, "old", "same", "--exit-code").code == 0


def test_what_differs_beside_the_records_is_told_too(tmp_path):
    build(tmp_path, OLD, name="plain").close()
    build(tmp_path, OLD, name="other", smoothing=1.0, generator="lemma").close()
    done = diff(tmp_path, "plain", "other", "--exit-code")
    assert (done.code, done.out) == (1, "~ smoothing: 0.0 → 1.0\n~ generator: alias → lemma\n")
    assert "hold the same" not in done.err
    assert diff(tmp_path, "plain", "other", "--summary").out == done.out
    assert diff(tmp_path, "plain", "other", "--jsonl", "--exit-code").code == 1


def test_two_builds_of_one_kb_are_compared(tmp_path):
    builds = [
        kgkit.build_kb(Given(records, {}, 0.0, "alias"), tmp_path, name="kb", home=tmp_path).build
        for records in (OLD, NEW)
    ]
    assert diff(tmp_path, f"kb@{builds[0]}", "kb", "--summary").out == SUMMARY
    assert diff(tmp_path, "kb", f"kb@{builds[1]}", "--exit-code").code == 0


def test_one_name_needs_a_build_before(home):
    done = diff(home, "old")
    assert done.code == 3
    assert "no build of 'old' before" in done.err


def test_what_would_move_the_cursor_is_not_written_as_it_is(tmp_path):
    build(tmp_path, [Entity("a")], name="one").close()
    build(tmp_path, [Entity("a"), Entity("b", "red\x1b[31m\nline")], name="two").close()
    out = diff(tmp_path, "one", "two").out
    assert "\x1b" not in out
    assert out.count("\n") == 1


def test_an_inverse_that_only_one_of_them_answers_is_told_of_a_relation_that_both_have(tmp_path):
    build(tmp_path, OLD, name="one", inverses={"sells": "sold_by"}).close()
    build(tmp_path, OLD, name="other").close()
    done = diff(tmp_path, "one", "other", "--exit-code")
    assert (done.code, done.out) == (1, "~ inverse of sells: sold_by → (none)\n")
    [line] = diff(tmp_path, "one", "other", "--jsonl").out.splitlines()
    assert json.loads(line) == {
        "change": "changed", "what": "trait", "name": "inverse of sells", "old": "sold_by", "new": None,
    }  # fmt: skip
