"""`kgkit models`: list, info, verify and rm."""

import json
import threading

import numpy as np
import pytest

from kgkit.building import Entity
from kgkit.home import Home
from kgkit.methods.kbert_settings import KBertManifest
from kgkit.models.folder import has_model
from kgkit.models.kinds import TaggerManifest
from kgkit.models.manifest import FORMAT, MANIFEST, ModelManifest, Needs
from kgkit.models.publishing import stage_model, work_folder, write_manifest
from kgkit.versions import lock_folder
from tests.cli_helpers import run
from tests.small_kb import build

RECORDS = [Entity("dog", "dog")]


def publish(home, manifest: ModelManifest) -> None:
    with stage_model(Home(home).models / manifest.name) as (staged, _):
        np.save(staged / "numbers.npy", np.arange(6.0))
        (staged / "config.json").write_text('{"width": 4}')
        write_manifest(staged, manifest)


def tagger(name="names"):
    return TaggerManifest(
        format=FORMAT, kind="tagger", name=name, types=("PER",), encoder="/x/tiny", fingerprint="", reader={},
        config={"lr": 0.5, "data": ["a", "b"]}, results={"f1": 0.75}, command="kgkit train tagger …",
    )  # fmt: skip


def kbert(name="facts", **needs):
    return KBertManifest(
        format=FORMAT, kind="kbert", name=name, task="pair", size=16, query="link", max_facts=2,
        relations=True, linker="light", needs=Needs(exact=True, **needs),
    )  # fmt: skip


@pytest.fixture
def home(tmp_path):
    publish(tmp_path, tagger())
    return tmp_path


def listed(home):
    return {row["name"]: row for row in json.loads(run("models", "list", "--json", "--home", home).out)}


def test_models_are_listed_with_what_each_needs_and_whether_it_is_there(home):
    with build(home, RECORDS, name="words") as kb:
        publish(home, kbert(kbs={"words": kb.build}, vectors=("words/text",), linker="light"))
    rows = listed(home)
    assert set(rows) == {"facts", "links-minilm", "names", "names-minilm", "wsd-minilm"}
    assert rows["names"]["roles"] == ["tagger"] and rows["names"]["needs"] == []
    needs = {need["name"]: need["available"] for need in rows["facts"]["needs"]}
    assert needs == {f"words@{kb.build}": True, "words/text": False, "light": False}
    shown = run("models", "list", "--home", home)
    assert shown.code == 0 and "words/text (not there), light (not there)" in shown.out
    assert "names\ttagger\ttagger\t\ttiny\t" in shown.out
    assert run("kb", "rm", "words", "--home", home).code == 0
    needs = {need["name"]: need["available"] for need in listed(home)["facts"]["needs"]}
    assert not any(needs.values())


def test_a_model_that_cannot_be_used_is_listed_with_the_reason(home):
    (home / "models" / "old").mkdir()
    (home / "models" / "old" / MANIFEST).write_text('{"format": 1, "kind": "head", "name": "old"}')
    done = run("models", "list", "--home", home)
    assert done.code == 0 and "train it again with `kgkit train linker --name old" in done.out
    assert run("models", "info", "old", "--home", home).code == 1


def test_info_says_all_that_the_manifest_does(home):
    told = run("models", "info", "names", "--home", home).out
    for sentence in (
        "names is a tagger.", "It opens as tagger.", "Its encoder is /x/tiny.",
        "It needs no particular knowledge base, vectors or other model.",
        "kgkit train tagger …", "  types: PER", "  f1: 0.75", "  lr: 0.5", "  data: a, b",
        "  numbers.npy: 176",
    ):  # fmt: skip
        assert sentence in told
    as_json = json.loads(run("models", "info", "names", "--json", "--home", home).out)
    assert as_json["config"]["lr"] == 0.5 and as_json["roles"] == ["tagger"] and as_json["sha256"]
    publish(home, kbert())
    assert "\n  size: 16\n" in run("models", "info", "facts", "--home", home).out
    as_json = json.loads(run("models", "info", "facts", "--json", "--home", home).out)
    files = sum(path.stat().st_size for path in (home / "models/facts/current/").iterdir())
    assert (as_json["size"], as_json["bytes"]) == (16, files)
    done = run("models", "info", "nmaes", "--home", home)
    names = "prior, gloss, facts, links-minilm, names, names-minilm, wsd-minilm"
    assert done.code == 3 and f"no model named 'nmaes'; there are: {names}" in done.err


def test_verify_finds_files_that_are_gone_shorter_or_other(home):
    done = run("models", "verify", "--home", home)
    assert done.code == 0 and done.out.splitlines() == [
        "links-minilm: sound",
        "names: sound",
        "names-minilm: sound",
        "wsd-minilm: sound",
    ]
    folder = home / "models" / "names" / "current"
    numbers = bytearray((folder / "numbers.npy").read_bytes())
    numbers[-1] ^= 1
    for content, problem in (
        (numbers, "has another content than it had (SHA-256)"),
        (numbers[:-1], "has 175 bytes, and had 176"),
        (None, "is not there"),
    ):
        (folder / "numbers.npy").write_bytes(content) if content else (folder / "numbers.npy").unlink()
        done = run("models", "verify", "names", "--home", home)
        assert done.code == 1 and done.out == f"names: numbers.npy {problem}\n"
    sound = {
        row["name"]: row["sound"] for row in json.loads(run("models", "verify", "--json", "--home", home).out)
    }
    assert sound == {"links-minilm": True, "names": False, "names-minilm": True, "wsd-minilm": True}
    (folder / MANIFEST).write_text("{}")
    assert "cannot be read" in run("models", "verify", "names", "--home", home).out
    assert run("models", "verify", "nope", "--home", home).code == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("numbers.npy", b"\x93NUMPY no"),
        ("config.json", b"{"),
        ("config.json", b"[" * 100_000),
        ("w.safetensors", (10**12).to_bytes(8, "little") + b"{}"),
        ("w.safetensors", (2).to_bytes(8, "little") + b"{}more"),
        ("w.safetensors", (11).to_bytes(8, "little") + b'{"a": "no"}'),
        ("w.npz", b"PK"),
    ],
)
def test_headers_are_read_where_there_are_no_checksums(home, name, content):
    folder = home / "models" / "bare"
    folder.mkdir()
    (folder / name).write_bytes(content)
    manifest = {
        "format": FORMAT,
        "kind": "tagger",
        "name": "bare",
        "types": [],
        "fingerprint": "",
        "reader": {},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest | {"sizes": {name: len(content)}}))
    done = run("models", "verify", "bare", "--home", home)
    assert done.code == 1 and name in done.out and "train it again" in done.out


def test_a_model_is_removed_unless_another_needs_it(home):
    publish(home, tagger("light"))
    publish(home, kbert(linker="light"))
    done = run("models", "rm", "light", "--home", home)
    assert done.code == 2 and "facts cannot be opened without the model light" in done.err
    assert has_model(Home(home), "light")
    assert run("models", "rm", "names", "nope", "--home", home).code == 3
    assert has_model(Home(home), "names")  # all of them are there, or nothing is removed
    assert "comes with kgkit" in run("models", "rm", "wsd-minilm", "--home", home).err
    assert run("models", "rm", "light", "facts", "--home", home).err == "removed light\nremoved facts\n"
    publish(home, tagger("light"))
    publish(home, kbert(linker="light"))
    assert run("models", "rm", "--force", "light", "--home", home).code == 0
    assert not (home / "models" / "light").exists() and has_model(Home(home), "facts")


def test_removing_a_model_loses_nothing_of_a_training(home):
    """It waits for one that publishes, and does not touch the folder of one that runs."""
    with work_folder(Home(home), "tagger", "names", "settings") as work:
        (work / "checkpoint").write_text("so far")
        folder, done = home / "models" / "names", []
        with lock_folder(folder):
            thread = threading.Thread(
                target=lambda: done.append(run("models", "rm", "names", "--home", home))
            )
            thread.start()
            thread.join(0.3)
            assert not done and has_model(Home(home), "names")
        thread.join()
        assert done[0].code == 0 and not has_model(Home(home), "names")
        assert (work / "checkpoint").read_text() == "so far"


def test_prune_names_every_model_that_needs_what_it_removes(home):
    with build(home, RECORDS, name="words") as kb:
        needs = {"words": kb.build}
    publish(home, kbert(kbs=needs))
    publish(home, kbert("other", kbs={"else": "b"}))
    grown = TaggerManifest(format=FORMAT, kind="tagger", name="grown", types=(), fingerprint="", reader={},
                           needs=Needs(kbs=needs))  # fmt: skip
    publish(home, grown)
    (home / "more.jsonl").write_text('{"key": "cat", "label": "cat"}\n')
    added = run("kb", "add", "words", home / "more.jsonl", "--home", home)
    assert added.code == 0, added.err
    pruned = run("kb", "prune", "words", "--home", home)
    assert pruned.out == f"words@{kb.build}\n"
    assert pruned.err == f"warning: the model facts needs words@{kb.build}: train it again\n"


def test_a_build_that_goes_with_an_addition_is_missed_by_the_models_that_need_it(home):
    with build(home, RECORDS, name="words") as kb:
        needs = {"words": kb.build}
    publish(home, kbert(kbs=needs))
    for number, expected in enumerate(
        [[], [f"warning: the model facts needs words@{kb.build}: train it again"], []]
    ):
        source = home / f"more{number}.jsonl"
        source.write_text(json.dumps({"key": f"cat{number}", "label": "cat"}))
        added = run("kb", "add", "words", source, "--home", home)
        assert added.code == 0, added.err
        assert [line for line in added.err.splitlines() if line.startswith("warning")] == expected
    edits = home / "edits.jsonl"
    edits.write_text('{"key": "cat0", "label": "Cat"}')
    assert "warning" not in run("kb", "edit", "words", edits, "--home", home).err


def test_help_of_every_model_option_names_the_list():
    scored = "wsd el ner ppl cloze task"
    commands = ["link", "tag", *(f"evaluate {task}" for task in scored.split())]
    for command in commands:
        shown = " ".join(run(*command.split(), "--help").out.replace("│", " ").split())
        assert "--model" in shown and "kgkit models list" in shown, command
