"""Edits that cannot be followed, or are killed: what is said, and that nothing is lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kgkit.building.build import Built
from kgkit.building.edit import edit_kb
from kgkit.errors import DamagedKB, KBBusy, NotThere, SourceError, UsageError
from kgkit.home import Home
from kgkit.store import Staging, layout, verify
from tests.edit_toys import build, opened
from tests.store.test_killed import die_at_every_step_of
from tests.toys import run_python

PROBLEMS = {
    '{"key": "avno", "label": "Avon"}': "no entity 'avno' in knowledge base 'rivers'",
    '{"key": "hafren", "label": "Hafren"}': "'hafren' is another key of 'severn': name the entity by its own",
    '{"label": "Avon"}': "'key' is missing: it says which entity the line edits",
    '{"key": ""}': "'key' is empty",
    '{"key": "avon"}': "says nothing about 'avon' that could change",
    '{"key": "avon", "lable": "A"}': "there is no field 'lable'; did you mean 'label'?",
    '{"key": "avon", "colour": "blue"}': "no field 'colour'",
    '{"subject": "avon", "relation": "near", "object": "bath"}':
        "there is no field 'subject' in a file of edits: `kgkit kb add` takes such lines; 'remove_aliases'",
    '{"key": "avon", "label": 7}': "expected `str`, got `int`",
    '{"key": "avon" "label": "A"}': "not JSON",
    '{"key": "avon", "retire": false}': "'retire' is false: leave it out",
    '{"key": "avon", "retire": true, "label": "A", "types": []}':
        "has 'retire' and 'label' and 'types': an entity that goes is not changed",
    '{"key": "avon", "aliases": ["A"], "remove_aliases": ["A"]}':
        "'A' is in 'remove_aliases', and in 'aliases'",
    '{"key": "avon", "label": "A", "remove_aliases": ["A"]}': "'A' is in 'remove_aliases', and in 'label'",
    '{"key": "avon", "aliases": ["A", {"text": "A", "count": 2}]}': "'A' comes twice in 'aliases'",
    '{"key": "avon", "aliases": [""]}': "one of the 'aliases' is empty",
    '{"key": "avon", "aliases": [" "]}': "the alias ' ' has no character",
    '{"key": "avon", "aliases": [{"text": "A", "count": -1}]}': "the count is -1: counts lie between 0 and",
    '{"key": "avon", "aliases": [{"text": "A", "sense": "no"}]}':
        "no entity 'no'",
    '{"key": "avon", "remove_facts": [{"relation": "nears", "object": "bath"}]}':
        "no relation in 'rivers' named 'nears'",
    '{"key": "avon", "remove_facts": [{"relation": "near", "object": "baht"}]}': "no entity 'baht'",
    '{"key": "avon", "remove_facts": [{"relation": "near"}]}': "missing required field `object`",
    '{"key": "avon", "attributes": {"n": 99999999999999999999}}': "a number is too large",
    '{"key": "avon", "aliases": [{"text": "A", "sense": "bath"}, {"text": "a", "sense": "wash"}]}': "'a'",
    '{"kgkit": {"name": "late"}}': "'kgkit' belongs on the first line only",
    '{"key": "severn", "label": "again"}': "line 1 edits 'severn' as well: one line says all of an entity",
}  # fmt: skip


@pytest.mark.parametrize("line", PROBLEMS)
def test_a_line_that_cannot_be_followed_is_told_with_file_and_line_and_changes_nothing(home, line):
    kb = Home.find(home).kb("rivers")
    published = kb.published()
    path = home / "fix.jsonl"
    path.write_text(f'{{"key": "severn", "label": "Hafren"}}\n{line}\n')
    with pytest.raises(SourceError) as caught:
        edit_kb("rivers", path, home=home)
    assert PROBLEMS[line] in caught.value.message
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert kb.published() == published
    assert [folder.name for folder in kb.builds.iterdir()] == [published]


def test_an_edit_of_a_retired_entity_is_told_so(retired):
    with pytest.raises(SourceError, match=r"record 1: .*'severn'"):
        edit_kb("rivers", [{"key": "severn", "label": "Severn"}], home=retired)


def test_the_head_stands_alone(home):
    with pytest.raises(SourceError, match="record 1: 'kgkit'"):
        edit_kb("rivers", [{"kgkit": {"name": "x"}, "key": "avon"}], home=home)


def test_a_sense_that_was_retired_earlier_is_none(retired):
    with pytest.raises(SourceError, match="severn"):
        edit_kb("rivers", [{"key": "avon", "aliases": [{"text": "A", "sense": "severn"}]}], home=retired)


def test_an_entity_that_is_retired_is_not_named_by_another_key(home):
    edits = [{"key": "avon", "remove_facts": [{"relation": "flows_into", "object": "hafren"}]},
             {"key": "severn", "retire": True}]  # fmt: skip
    with pytest.raises(SourceError, match="hafren"):
        edit_kb("rivers", edits, home=home)


@pytest.mark.parametrize(
    ("name", "edits", "error", "message"),
    [
        ("brooks", [{"key": "avon"}], NotThere, "no knowledge base 'brooks'"),
        ("rivers@abc", [{"key": "avon"}], UsageError, "edits are for the published one"),
        ("rivers", "nowhere.jsonl", NotThere, "no file nowhere.jsonl"),
        ("rivers", [], UsageError, "a list of dictionaries, one for each entity"),
        ("rivers", ["avon"], UsageError, "a list of dictionaries"),
        ("rivers", {"key": "avon"}, UsageError, "one dictionary"),
        ("rivers", [{"key": "avon", "label": "\ud800"}], SourceError, "Unicode|surrogate|utf-8"),
    ],
)
def test_what_cannot_be_edited_is_said(home, name, edits: Any, error, message):
    with pytest.raises(error, match=message):
        edit_kb(name, edits, home=home)


def test_two_edits_at_once_are_refused(home):
    with Staging(Home.find(home).kb("rivers")), pytest.raises(KBBusy):
        edit_kb("rivers", [{"key": "avon", "label": "A"}], home=home)


def test_damage_is_not_copied_into_a_build_with_checksums_of_its_own(home):
    data = Home.find(home).kb("rivers").current.resolve() / layout.DATA
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    with pytest.raises(DamagedKB, match="kb verify"):
        edit_kb("rivers", [{"key": "avon", "label": "A"}], home=home)


CHANGE: list[dict[str, Any]] = [
    {"key": "avon", "label": "Afon", "remove_aliases": ["River Avon"]},
    {"key": "bath", "aliases": ["Spa"], "remove_facts": [{"relation": "near", "object": "bath"}]},
    {"key": "severn", "retire": True},
]


def die_at_every_step(folder: str) -> None:
    """Print, for every step of an edit, what there is when it dies; this process forks."""
    os.chdir(folder)
    base = Path("base").absolute()
    base.mkdir()
    first = build(base).build

    def change(home: Path) -> Built:
        return edit_kb("rivers", CHANGE, home=home)

    def report(home: Path) -> dict[str, object]:
        rivers = Home(home).kb("rivers")
        state: dict[str, object] = {
            "new": rivers.published() != first,
            "wrong": verify(rivers.current.resolve()),
        }
        with opened(home) as kb:
            state["keys"] = [*kb.keys()]
        if not state["new"]:
            edited = change(home)
            names = {path.name for path in rivers.builds.iterdir()}
            state["clean"] = names == {first, edited.build} and not verify(edited.path)
        return state

    print(json.dumps(die_at_every_step_of(change, base, report)))


@pytest.mark.slow
def test_an_edit_that_is_killed_is_published_wholly_or_not_at_all(tmp_path):
    code = "import sys; from tests.building.test_edit_failures import die_at_every_step as f; f(sys.argv[1])"
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert len(reports) > 30  # steps there were, or this tests nothing
    for report in reports:
        assert report["keys"] == (
            ["avon", "bath", "wash"] if report["new"] else ["avon", "severn", "bath", "wash"]
        )
        assert report["wrong"] == []
        assert report["new"] or report["clean"]  # done again, it succeeds and leaves no rubbish
    new = [report["new"] for report in reports]
    assert new == sorted(new)
    assert (new[0], new[-1]) == (False, True)
