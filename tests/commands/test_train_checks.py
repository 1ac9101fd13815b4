"""Settings of `kgkit train` are compared with the KB, the data and the home before anything is trained."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.training import job
from tests.cli_helpers import build_mini, run


def documents(entity):
    mentions = [{"start": 2, "end": 5, "entity": entity}]
    lines = [{"id": str(number), "text": "A dog.", "mentions": mentions} for number in range(12)]
    return "".join(json.dumps(line) + "\n" for line in lines)


FILES = {
    "el.jsonl": documents("dog.n.01"),
    "ner.txt": "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n" * 12,
    "bad-ner.txt": "EU nope\nrejects\n\n" * 12,
    "cola.jsonl": '{"text": "A dog.", "label": "acceptable"}\n{"text": "A.", "label": "unacceptable"}\n' * 12,
    "no-label.jsonl": '{"text": "A dog."}\n' * 12,
    "text.txt": "The dog barked.\nA puppy is a dog.\n\n" * 12,
}  # fmt: skip

LINKER = ["train", "linker", "--kb", "mini", "--data", "el.jsonl"]
KALM = ["train", "kalm", "--kb", "mini", "--data", "text.txt"]
TAGGER = ["train", "tagger", "--data", "ner.txt"]
TASK = ["--task", "acceptability", "--kb", "mini", "--data", "cola.jsonl", "--name", "new"]

WRONG = {
    "linker, tagger": [*LINKER, "--name", "new", "--mentions", "nope"],
    "linker, vectors": [*LINKER, "--name", "new", "--vectors", "nope"],
    "linker, encoder": [*LINKER, "--name", "new", "--encoder", "./nope"],
    "linker, name": [*LINKER, "--name", "no/pe"],
    "tagger, dev": [*TAGGER, "--dev", "nope.txt", "--name", "new"],
    "tagger, columns of dev": [*TAGGER, "--dev", "bad-ner.txt", "--name", "new"],
    "tagger, encoder": [*TAGGER, "--encoder", "./nope", "--name", "new"],
    "tagger, name": [*TAGGER, "--name", "no/pe"],
    **{
        f"{method}, {what}": ["train", method, *TASK, *options]
        for method in ("kbert", "knowbert", "ebert", "kambert")
        for what, options in {
            "dev": ["--dev", "nope.jsonl"],
            "no labels of dev": ["--dev", "no-label.jsonl"],
            "encoder": ["--encoder", "./nope"],
        }.items()
    },
    "knowbert, vectors": ["train", "knowbert", *TASK, "--vectors", "mini/nope"],
    "ebert, vectors": ["train", "ebert", *TASK, "--vectors", "mini/nope"],
    "kalm, dev": [*KALM, "--dev", "nope.txt", "--name", "new"],
    "kalm, name": [*KALM, "--name", "no/pe"],
    "pmi, name": ["train", "pmi", "--data", "text.txt", "--name", "no/pe"],
}  # fmt: skip


class Begun(Exception):
    """A training has begun."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("checks"))


@pytest.fixture(autouse=True)
def _files(home, tmp_path, monkeypatch):
    def begin(*_, **__):
        raise Begun

    monkeypatch.setattr(job, "work_folder", begin)  # what every training makes first, its data read
    monkeypatch.setenv("KGKIT_HOME", str(home))
    monkeypatch.setenv("KGKIT_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_an_error_before_the_training(case):
    done = run(*WRONG[case])
    assert done.code in (1, 2, 3)
    assert any(name in done.err for name in ("nope", "no/pe", "no-label.jsonl"))


def test_right_settings_begin_a_training():
    with pytest.raises(Begun):
        run(*LINKER, "--name", "new")
