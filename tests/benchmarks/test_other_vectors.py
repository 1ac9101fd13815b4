"""Vectors of other entities of the same type."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.other_vectors import others_within, relations_by_key, write_other_vectors
from kgkit.embedding.align import Alignment
from kgkit.encoder import Encoder
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.methods.knowbert_model import TrainedKnowBert
from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertTraining
from kgkit.methods.settings import ChosenKB
from kgkit.training.tasks import train_method
from kgkit.types import Entity
from kgkit.vectors import Work
from tests.cloze_toys import home_of_animals, masked_lm_folder
from tests.knowbert_toys import senses, with_vectors
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder


def test_each_thing_changes_places_within_its_group_and_none_keeps_its_own():
    groups = ["a"] * 5 + ["b"] * 4 + ["c", "d"] + ["e"] * 2
    others = others_within(groups)
    assert sorted(others.tolist()) == [*range(13)]
    assert (others != np.arange(13)).all()
    assert all(groups[at] == groups[other] for at, other in enumerate(others) if groups[at] in "be")
    assert {groups[others[9]], groups[others[10]]} <= {"a", "c", "d"}  # alone, so among the largest group
    assert others_within(groups).tolist() == others.tolist() != others_within(groups, 1).tolist()


def test_groups_of_one_are_put_together_and_a_single_thing_has_no_other():
    assert others_within(["a", "b"]).tolist() == [1, 0]
    assert others_within(["a", "b", "b"]).tolist() in ([1, 2, 0], [2, 0, 1])
    for groups in ([], ["a"]):
        with pytest.raises(ValueError):
            others_within(groups)


@pytest.fixture
def home(tmp_path):
    """A home with people, towns and one without a vector."""
    home = Home(tmp_path / "home")
    records = [Entity(f"p{number}", f"p{number}", types=("person",)) for number in range(4)]
    records += [Entity(f"t{number}", f"t{number}", types=("town",)) for number in range(3)]
    records.append(Entity("none", "none", types=("town",)))
    with build(home.path, records, name="toy") as kb, Work(kb, "text", {"a": 1}) as work:
        matrix = work.matrix(len(records), 2)
        for entity in kb:
            matrix[entity.id] = 0 if entity.key == "none" else (entity.id + 1, -1)
        matrix.flush()
        work.publish("text")
    return home


def rows_of(home, name):
    with open_kb("toy", home=home.path) as kb:
        return {entity.key: kb.vectors(name).gather(entity.id).tolist() for entity in kb}


def test_entities_have_the_vector_of_another_one_of_their_type(home):
    assert write_other_vectors(home, "toy", "text") == ("toy/text-others", 7)
    own, others = rows_of(home, "text"), rows_of(home, "text-others")
    assert others["none"] == own["none"] == [0, 0]
    for start in "pt":
        keys = [key for key in own if key.startswith(start)]
        assert sorted(others[key] for key in keys) == sorted(own[key] for key in keys)
        assert all(others[key] != own[key] for key in keys)


def test_facts_say_whose_vectors_are_exchanged(home, tmp_path):
    facts = [("p0", "P1"), ("p0", "P2"), ("t0", "P1"), ("p1", "P2"), ("t1", "P2"), ("t2", "P2")]
    path = tmp_path / "facts.jsonl"
    lines = (json.dumps({"subject_key": key, "relation": relation}) for key, relation in facts)
    path.write_text("\n".join(lines))
    assert relations_by_key(path) == {"p0": "P1", "t0": "P1", "p1": "P2", "t1": "P2", "t2": "P2"}
    assert write_other_vectors(home, "toy", "text", path) == ("toy/text-others-of-relation", 7)
    own, others = rows_of(home, "text"), rows_of(home, "text-others-of-relation")
    assert (others["p0"], others["t0"]) == (own["t0"], own["p0"])
    assert others["p1"] in (own["t1"], own["t2"])


def test_e_bert_reads_them_by_the_map_of_their_space(tmp_path):
    folder = masked_lm_folder(tmp_path / "bare", tmp_path / "mlm")
    home = home_of_animals(tmp_path / "home", folder)
    write_other_vectors(home, "animals", "text")
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    with open_kb("animals", home=home.path) as kb:
        own, others = kb.vectors("text"), kb.vectors("text-others")
        weights = [Alignment.load(vectors, encoder).weight for vectors in (own, others)]
        np.testing.assert_array_equal(*weights)
        dogs = [vectors.gather(kb.id("Q1")) for vectors in (own, others)]
        np.testing.assert_array_equal(dogs[1], own.gather(kb.id("small_cat")))
        assert not np.array_equal(*dogs)


def test_knowbert_reads_them_in_the_place_of_the_own_ones(tmp_path):
    folder = tiny_encoder(tmp_path / "tiny", mask=True)
    home = Home(tmp_path / "home")
    with_vectors(home.path, "words", Encoder.load(str(folder), device="cpu", dtype="float32")).close()
    assert write_other_vectors(home, "words", "text") == ("words/text-others", 6)
    data, _ = senses(tmp_path)
    training = KnowBertTraining(
        task="wsd", data=(data,), encoder=str(folder), size=20, batch=8, steps=2, bf16=False
    )
    with open_kb("words", home.path) as kb:
        chosen = [ChosenKB(kb, ("text-others",))]
        train_method(KNOWBERT, home, "others", training, chosen, device="cpu")
        ids = np.array([kb.id(key) for key in ("dog.n.01", "dog.n.02", "tree.n.01")])
        own, others = (kb.vectors(name).gather(ids) for name in ("text", "text-others"))
    with TrainedKnowBert.open("others", home=home, device="cpu") as model:
        known = model.reader.knowledge["words"].gather(ids)[:, : own.shape[1]]
    known, own, others = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (known, own, others))
    np.testing.assert_allclose(known, others, rtol=1e-5)  # it makes their numbers of size 1
    assert not np.isclose((known * own).sum(1), 1).any()
