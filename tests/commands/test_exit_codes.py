"""Exit codes, as docs/stability.md has them: 3 for what is not there, whichever command names it."""

import json
from pathlib import Path

import pytest

from tests.cli_helpers import build_mini, run

FILES = {
    "text.txt": "The dog barked.\n",
    "names.csv": "name\ndog\n",
    "el.jsonl": '{"id": "d", "text": "A dog.", "mentions": [{"start": 2, "end": 5, "entity": "dog.n.01"}]}\n',
    "ner.txt": "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n",
    "words.txt": "a dog\na cat\n",
    "cola.jsonl": '{"text": "A dog.", "label": "1"}\n',
    "facts.jsonl": '{"masked_sentences": ["A dog is a [MASK]."], "obj_label": "cat"}\n',
    "edits.jsonl": '{"key": "dog.n.01", "label": "Dog"}\n',
    "vocabulary.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ndog\n",
    "wsd.data.xml": '<corpus lang="en"><text id="d0"><sentence id="d0.s0"><instance id="d0.s0.t0" '
    'lemma="dog" pos="NOUN">dog</instance></sentence></text></corpus>\n',
    "wsd.gold.key.txt": "d0.s0.t0 dog%1:05:00::\n",
}  # fmt: skip

LINKER = ["train", "linker", "--name", "new", "--kb", "mini", "--data", "el.jsonl"]
TRAIN_LINKER = ["train", "linker", "--name", "new"]
TASK = ["--task", "acceptability", "--data", "cola.jsonl", "--name", "new"]
WSD = ["evaluate", "wsd", "--data", "wsd.data.xml", "--gold", "wsd.gold.key.txt"]

NO_MODEL = {
    "link": ["link", "text.txt", "--kb", "mini", "--model", "nope"],
    "link, mentions": ["link", "text.txt", "--kb", "mini", "--mentions", "nope"],
    "tag": ["tag", "text.txt", "--model", "nope"],
    "predict": ["predict", "text.txt", "--model", "nope"],
    "tree": ["tree", "The dog barked.", "--kb", "mini", "--linker", "nope"],
    "nearest": ["nearest", "dog", "--pmi", "nope"],
    "pack": ["pack", "model:nope", "-o", "new.tar"],
    "serve": ["serve", "--kb", "mini=nope"],
    "mcp": ["mcp", "--kb", "mini=nope"],
    "models info": ["models", "info", "nope"],
    "models verify": ["models", "verify", "nope"],
    "models rm": ["models", "rm", "nope"],
    "train linker, mentions": [*LINKER, "--mentions", "nope"],
    "train tagger, teacher": ["train", "tagger", "--data", "text.txt", "--name", "new", "--teacher", "nope"],
    "evaluate cloze": ["evaluate", "cloze", "--data", "facts.jsonl", "--model", "nope"],
    "evaluate el": ["evaluate", "el", "--data", "el.jsonl", "--kb", "mini", "--model", "nope"],
    "evaluate el, mentions": ["evaluate", "el", "--data", "el.jsonl", "--kb", "mini", "--mentions", "nope"],
    "evaluate ner": ["evaluate", "ner", "--data", "ner.txt", "--model", "nope"],
    "evaluate ppl": ["evaluate", "ppl", "--data", "text.txt", "--model", "nope"],
    "evaluate wsd": [*WSD, "--kb", "mini",
                     "--model", "nope"],
    "evaluate task": ["evaluate", "task", "--data", "cola.jsonl", "--model", "nope"],
}  # fmt: skip

NO_KB = {
    "show": ["show", "dog", "--kb", "nope"],
    "path": ["path", "a", "b", "--kb", "nope"],
    "candidates": ["candidates", "dog", "--kb", "nope"],
    "link": ["link", "text.txt", "--kb", "nope"],
    "reconcile": ["reconcile", "names.csv", "--column", "name", "--kb", "nope"],
    "tree": ["tree", "The dog barked.", "--kb", "nope"],
    "embed": ["embed", "nope", "--method", "text"],
    "index": ["index", "nope/text"],
    "nearest": ["nearest", "dog", "--kb", "nope"],
    "align": ["align", "nope/text", "--encoder", "auto"],
    "project": ["project", "nope/text", "--to", "out"],
    "serve": ["serve", "--kb", "nope"],
    "mcp": ["mcp", "--kb", "nope"],
    "pack": ["pack", "kb:nope", "-o", "new.tar"],
    "kb info": ["kb", "info", "nope"],
    "kb add": ["kb", "add", "nope", "edits.jsonl"],
    "kb default": ["kb", "default", "nope"],
    "kb edit": ["kb", "edit", "nope", "edits.jsonl"],
    "kb diff": ["kb", "diff", "nope", "mini"],
    "kb export": ["kb", "export", "nope", "-o", "new.ttl"],
    "kb verify": ["kb", "verify", "nope"],
    "kb rm": ["kb", "rm", "nope", "--yes"],
    "kb prune": ["kb", "prune", "nope"],
    "kb publish": ["kb", "publish", "nope@abc"],
    "vectors list": ["vectors", "list", "nope"],
    "vectors rm": ["vectors", "rm", "nope/text"],
    "train linker": [*TRAIN_LINKER, "--kb", "nope", "--data", "el.jsonl"],
    "train kalm": ["train", "kalm", "--kb", "nope", "--data", "text.txt", "--name", "new"],
    "train kbert": ["train", "kbert", *TASK, "--kb", "nope"],
    "train knowbert": ["train", "knowbert", *TASK, "--kb", "nope"],
    "train ebert": ["train", "ebert", *TASK, "--kb", "nope"],
    "evaluate el": ["evaluate", "el", "--data", "el.jsonl", "--kb", "nope"],
    "evaluate wsd": [*WSD, "--kb", "nope"],
}  # fmt: skip

NO_VECTORS = {
    "link": ["link", "text.txt", "--kb", "mini", "--model", "gloss", "--vectors", "nope"],
    "nearest": ["nearest", "dog.n.01", "--kb", "mini", "--vectors", "nope"],
    "index": ["index", "mini/nope"],
    "align": ["align", "mini/nope", "--encoder", "auto"],
    "project": ["project", "mini/nope", "--to", "out"],
    "vectors rm": ["vectors", "rm", "mini/nope"],
    "pack": ["pack", "vectors:mini/nope", "-o", "new.tar"],
    "train linker": [*LINKER, "--vectors", "nope"],
    "train knowbert": ["train", "knowbert", *TASK, "--kb", "mini", "--vectors", "mini/nope"],
    "evaluate wsd": [*WSD, "--kb", "mini",
                     "--model", "gloss", "--vectors", "nope"],
}  # fmt: skip

NO_FILE = {
    "build-kb": ["build-kb", "jsonl", "nope.jsonl", "--name", "new"],
    "build-kb, types": ["build-kb", "type_vocabulary", "nope", "--name", "new"],
    "link": ["link", "nope.txt", "--kb", "mini"],
    "tag": ["tag", "nope.txt", "--model", "names-minilm"],
    "reconcile": ["reconcile", "nope.csv", "--column", "name", "--kb", "mini"],
    "predict": ["predict", "nope.txt", "--model", "x"],
    "unpack": ["unpack", "nope.tar"],
    "kb add": ["kb", "add", "mini", "nope.jsonl"],
    "kb edit": ["kb", "edit", "mini", "nope.jsonl"],
    "kb import": ["kb", "import", "nope.ttl", "--name", "new"],
    "train linker": [*TRAIN_LINKER, "--kb", "mini", "--data", "nope.jsonl"],
    "train tagger": ["train", "tagger", "--data", "nope.txt", "--name", "new"],
    "train kalm": ["train", "kalm", "--kb", "mini", "--data", "nope.txt", "--name", "new"],
    "train pmi": ["train", "pmi", "--data", "nope.txt", "--name", "new"],
    "train encoder": ["train", "encoder", "--data", "nope.txt", "--vocabulary", "vocabulary.txt",
                      "--name", "new"],
    "train kbert": ["train", "kbert", *TASK, "--kb", "mini", "--data", "nope"],
    "evaluate el": ["evaluate", "el", "--data", "nope.jsonl", "--kb", "mini"],
    "evaluate ner": ["evaluate", "ner", "--data", "nope.txt", "--model", "names-minilm"],
    "evaluate wsd": ["evaluate", "wsd", "--data", "nope.xml", "--gold", "wsd.gold.key.txt", "--kb", "mini"],
    "evaluate task": ["evaluate", "task", "--data", "nope", "--model", "x"],
    "evaluate cloze": ["evaluate", "cloze", "--data", "nope", "--model", "x"],
    "evaluate ppl": ["evaluate", "ppl", "--data", "nope", "--model", "x"],
}  # fmt: skip

NO_ENCODER = {
    "embed": ["embed", "mini", "--method", "text", "--encoder", "./nope"],
    "train linker": [*LINKER, "--encoder", "./nope"],
    "train tagger": ["train", "tagger", "--data", "ner.txt", "--name", "new", "--encoder", "./nope"],
    "train kbert": ["train", "kbert", *TASK, "--kb", "mini", "--encoder", "./nope"],
    "evaluate cloze": ["evaluate", "cloze", "--data", "facts.jsonl", "--encoder", "./nope"],
}  # fmt: skip

ABSENT = {
    f"{command}: no {thing}": line
    for thing, lines in (
        ("model", NO_MODEL), ("kb", NO_KB), ("vectors", NO_VECTORS), ("file", NO_FILE),
        ("encoder", NO_ENCODER),
    )
    for command, line in lines.items()
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("codes"))


@pytest.fixture(autouse=True)
def _files(home, tmp_path, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(home))
    monkeypatch.setenv("KGKIT_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)


@pytest.mark.parametrize("case", ABSENT)
def test_what_is_not_there_ends_with_3_and_is_named(case):
    done = run(*ABSENT[case])
    assert done.code == 3, done.err
    assert "nope" in done.err and done.err.count("error: ") == 1
    assert "Traceback" not in done.err


def test_a_word_without_a_meaning_ends_with_1(home):
    done = run("candidates", "zzz", "--kb", "mini")
    assert (done.code, done.out) == (1, "") and "'zzz'" in done.err
    done = run("candidates", "zzz", "--kb", "mini", "--json")
    assert (done.code, json.loads(done.out)) == (1, [])
    assert run("candidates", "dog", "--kb", "mini").code == 0
