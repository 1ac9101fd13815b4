"""docs/predict.md shows what `kgkit predict` and a model called in Python answer, with small models."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from tests.cli_helpers import run
from tests.doc_pages import Session, differences
from tests.tiny_encoder import tiny_encoder

PAGE = "docs/predict.md"
OPINIONS = {"the room is clean": "1", "the bed is new": "1", "it was too loud": "0", "it was so dark": "0"}
ENTAILMENT = [
    ("the dog barks", "a dog", "1"),
    ("the dog barks", "a cat", "0"),
    ("the cat eats", "a cat", "1"),
]


class InProcess(Session):
    """A session that runs a command of kgkit's without a shell in this process, which has torch already."""

    def command(self, line):
        program, *args = line.split()
        if program != "kgkit" or "|" in args:
            return super().command(line)
        done = run(*args)
        return done.code, done.err + done.out


def train(folder, task, name, records):
    path = folder / f"{task}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    kgkit.train(
        "kbert", name=name, home=folder / "home", task=task, data=path, encoder=str(folder / "encoder"),
        size=16, batch=8, epochs=12, lr=3e-3, lr_new=3e-2, bf16=False, control=True, device="cpu",
    )  # fmt: skip


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A folder with the models that the page speaks of in its home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    tiny_encoder(tmp_path / "encoder")
    opinions = [{"text": text, "label": label} for text, label in OPINIONS.items()]
    pairs = [{"text_a": a, "text_b": b, "label": label} for a, b, label in ENTAILMENT]
    train(tmp_path, "classification", "opinions", opinions * 4)
    train(tmp_path, "pair", "entailment", pairs * 4)
    session = InProcess(tmp_path)
    yield session
    session.end()


@pytest.mark.slow
def test_the_page_shows_what_small_models_answer(session):
    assert "\n".join(differences(PAGE, session, compare=True)) == ""
    written = (session.folder / "opinions.jsonl").read_text().splitlines()
    assert [json.loads(line)["answer"] for line in written] == ["1", "0"]
