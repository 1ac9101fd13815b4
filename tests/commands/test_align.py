"""`kgkit align`: a table of how well the map does, and a map that is kept."""

import json

import numpy as np
import pytest

import kgkit
from kgkit.building import Entity
from kgkit.embedding.align import Alignment
from kgkit.embedding.align.anchors import Anchors
from kgkit.embedding.align.fitting import split
from kgkit.embedding.wikipedia2vec import Wikipedia2VecConfig, read_wikipedia2vec
from kgkit.vectors import Work
from tests.cli_helpers import run
from tests.small_kb import build

pytest.importorskip("safetensors")
encoders = pytest.importorskip("kgkit.encoder")

PIECES = ["[PAD]", *[f"w{number}" for number in range(60)]]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(61, 3)).astype(np.float32)
WEIGHT = RNG.normal(size=(4, 3)).astype(np.float32)


class FakeEncoder:
    """Has word pieces that are a planted map of the words."""

    name = "bert"

    @classmethod
    def load(cls, name, *, device="auto"):
        assert name == "bert"
        return cls()

    def word_pieces(self):
        return PIECES, ROWS @ WEIGHT.T


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "Encoder", FakeEncoder)
    path = tmp_path / "vectors.txt"
    words = "".join(
        f"{word} {' '.join(map(repr, row))}\n" for word, row in zip(PIECES, ROWS.tolist(), strict=True)
    )
    path.write_text(f"ENTITY/Dog 1 2 3\n{words}", encoding="utf-8")
    with build(tmp_path, [Entity("Dog"), Entity("Cat")], name="pets") as kb:
        read_wikipedia2vec(kb, Wikipedia2VecConfig(source=path))
    return tmp_path


def norm(rows, chosen=slice(None)):
    return f"{np.linalg.norm(rows[chosen], axis=1).mean():.3f}"


def test_a_map_is_fitted_told_and_kept(home):
    done = run("align", "pets", "--encoder", "bert", "--home", home)
    assert done.code == 0
    fitted, held_out = (part.source for part in split(Anchors(np.arange(60), np.arange(60)), 0))
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["", "pairs", "Acc@1", "Acc@5", "Acc@10", "error", "norm"],
        ["fitted on", "54", "1.000", "1.000", "1.000", "0.000", norm(ROWS[1:] @ WEIGHT.T, fitted)],
        ["held out", "6", "1.000", "1.000", "1.000", "0.000", norm(ROWS[1:] @ WEIGHT.T, held_out)],
        ["entities", *[""] * 5, norm(np.array([[1, 2, 3]]) @ WEIGHT.T)],
        ["word pieces", *[""] * 5, norm(ROWS[1:] @ WEIGHT.T)],
    ]
    assert "mapped pets/wikipedia2vec to bert by 60 pairs in" in done.err
    with kgkit.open_kb("pets", home=home) as kb:
        found = Alignment.load(kb.vectors("wikipedia2vec"), FakeEncoder())
    np.testing.assert_allclose(found.weight, WEIGHT, atol=1e-5)


def test_json_says_it_all(home):
    done = run("align", "pets/wikipedia2vec", "--encoder", "bert", "--json", "--home", home)
    said = json.loads(done.out)
    assert said["vectors"] == "pets/wikipedia2vec"
    assert said["target"] == "bert"
    assert said["target_norms"]["mean"] > 0
    assert said["anchors"] == 60
    assert said["held_out"]["anchors"] == 6
    assert said["train"]["accuracy"]["5"] == 1.0


def test_rescaled_vectors_have_the_norm_of_word_pieces(home):
    done = run("align", "pets", "--encoder", "bert", "--rescale", "--home", home)
    *_, entities, pieces = [line.split("\t") for line in done.out.splitlines()]
    assert entities[-1] == pieces[-1] == norm(ROWS[1:] @ WEIGHT.T)


def test_the_only_vectors_of_a_kb_need_no_name(home):
    with build(home, [Entity("Dog")], name="others") as kb, Work(kb, "hand", {}) as work:
        work.matrix(1, 3)[:] = 1
        work.publish("hand")
    done = run("align", "others", "--encoder", "bert", "--home", home)
    assert "the vectors others/hand keep no words" in done.err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["pets"], 2, "--encoder"),
        (["pets/none", "--encoder", "bert"], 3, "has no vectors 'none'"),
        (["nokb", "--encoder", "bert"], 3, "nokb"),
        (["pets", "--encoder", "bert", "--pairs", "none.tsv"], 3, "no file of pairs"),
    ],
)
def test_what_cannot_be_is_told(home, args, code, message):
    done = run("align", *args, "--home", home)
    assert done.code == code
    assert message in done.err
    assert not done.out
