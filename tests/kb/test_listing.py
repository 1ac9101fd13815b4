"""`kgkit.kbs()`: what the knowledge bases on this machine say of themselves."""

import json

import kgkit
from tests.cli_helpers import run
from tests.small_kb import facts_kb


def test_knowledge_bases_are_listed_with_what_their_manifests_say(tmp_path):
    facts_kb(tmp_path).close()
    [kb] = kgkit.kbs(tmp_path)
    assert kb.name == "facts" and kb.entities and kb.size and kb.error is None
    [listed] = json.loads(run("kb", "list", "--json", "--home", tmp_path).out)
    assert listed == kb.to_dict() | {"default": False}
    assert "error" not in repr(kb)


def test_a_knowledge_base_that_cannot_be_used_says_why(tmp_path):
    with facts_kb(tmp_path) as kb:
        (kb.store.folder / "manifest.json").write_text("{}")
    [summary] = kgkit.kbs(tmp_path)
    assert summary.error is not None and summary.entities is None
    assert "build it again" in summary.error
    assert json.loads(json.dumps(summary.to_dict()))["error"] == summary.error


def test_a_home_without_knowledge_bases_has_none(tmp_path):
    assert kgkit.kbs(tmp_path) == []
