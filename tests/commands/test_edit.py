"""`kgkit kb edit`: from lines in a file to the next build, as people see it."""

import json

import pytest

from kgkit.home import Home
from tests.cli_helpers import run
from tests.edit_toys import build, opened


@pytest.fixture(autouse=True)
def _rivers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path))
    build(tmp_path)


def edit(tmp_path, *edits, options=()):
    path = tmp_path / "fix.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in edits))
    return run("kb", "edit", "rivers", "fix.jsonl", *options)


def test_what_has_changed_is_told_in_figures(tmp_path):
    done = edit(tmp_path, {"key": "severn", "retire": True}, {"key": "bath", "label": "Spa"})
    build_name = Home.find(tmp_path).kb("rivers").published()
    assert (done.code, done.out) == (
        0, f"rivers@{build_name}: 3 entities (-1), 3 triples (-3), 6 aliases (+0)\n",
    )  # fmt: skip
    message, retired = done.err.splitlines()
    assert message.startswith("edited rivers in ") and message.endswith(f"builds/{build_name}")
    assert retired == "retired: 1 entity, and ids stay taken"


def test_an_edit_that_says_nothing_new_is_said_to_change_nothing(tmp_path):
    done = edit(tmp_path, {"key": "bath", "label": "Bath"})
    assert (done.code, done.err) == (0, "rivers is as fix.jsonl says already: nothing was changed\n")
    assert done.out.endswith(": 4 entities (+0), 6 triples (+0), 6 aliases (+0)\n")


def test_a_file_that_is_applied_again_changes_nothing(tmp_path):
    edits = [{"key": "severn", "retire": True}, {"key": "avon", "remove_aliases": ["River Avon"]}]
    first = edit(tmp_path, *edits)
    published = Home.find(tmp_path).kb("rivers").published()
    again = edit(tmp_path, *edits)
    assert (first.code, again.code) == (0, 0)
    assert Home.find(tmp_path).kb("rivers").published() == published
    warning, said = again.err.splitlines()
    assert "'River Avon'" in warning and "nothing was changed" in said


def test_a_line_that_cannot_be_followed_is_an_error_with_its_file_and_number(tmp_path):
    done = edit(tmp_path, {"key": "bath", "label": "Spa"}, {"key": "bth", "retire": True})
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "error: fix.jsonl:2: no entity 'bth' in knowledge base 'rivers'; did you mean bath"
    )


def test_info_verify_diff_and_publish_know_edits(tmp_path):
    with opened(tmp_path) as kb:
        first = kb.build
    edit(tmp_path, {"key": "severn", "retire": True}, {"key": "bath", "description": "a city"})
    info = run("kb", "info", "rivers").out
    assert (
        "  entities        3\n" in info
        and "  edited          fix\n" in info
        and "  retired         1\n" in info
    )
    assert run("kb", "verify", "rivers").code == 0
    diff = run("kb", "diff", "rivers").out.splitlines()
    assert "- entity severn: Severn" in [" ".join(line.split()) for line in diff]
    assert run("kb", "publish", f"rivers@{first}").code == 0
    assert run("show", "severn", "--kb", "rivers").code == 0


def test_who_asks_for_a_retired_entity_is_told_so(tmp_path):
    edit(tmp_path, {"key": "severn", "retire": True})
    done = run("show", "severn", "--kb", "rivers")
    assert done.code == 3
    assert "it was retired by `kgkit kb edit`" in " ".join(done.err.split())


def test_a_build_without_the_edits_warns_of_them(tmp_path, monkeypatch):
    edit(tmp_path, {"key": "severn", "retire": True})
    (tmp_path / "rivers.jsonl").write_text('{"key": "thames"}\n')
    done = run("build-kb", "jsonl", "rivers.jsonl", "--name", "rivers")
    assert done.code == 0
    assert "`kgkit kb edit` did to rivers@" in " ".join(done.err.split()) and "fix" in done.err


def test_a_table_is_no_file_of_edits_and_the_error_names_what_is_one(tmp_path):
    (tmp_path / "fix.csv").write_text("id,name\nbath,Spa\n")
    done = run("kb", "edit", "rivers", "fix.csv")
    assert done.code == 1 and "JSON lines" in done.err and "kb add" in done.err
    done = run("kb", "add", "rivers", "fix.csv")
    assert done.code == 1 and done.err.startswith("fix.csv: key from 'id', label from 'name'\n")
