"""TuckER from a knowledge base to its vectors: triples, training, resumption, what is refused."""

import json
import tracemalloc
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")
pytest.importorskip("safetensors")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pykeen.models import TuckER  # noqa: E402
from pykeen.triples import CoreTriplesFactory  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from kgkit.building import Entity, Triple  # noqa: E402
from kgkit.embedding.tucker import training  # noqa: E402
from kgkit.embedding.tucker.config import TuckERConfig  # noqa: E402
from kgkit.embedding.tucker.method import REMAINING, embed_tucker  # noqa: E402
from kgkit.embedding.tucker.triples import split, stored_triples  # noqa: E402
from kgkit.errors import BuildFailed, KgkitError, UsageError  # noqa: E402
from tests import small_kb  # noqa: E402
from tests.graph_toys import ring, ring_kb  # noqa: E402

SMALL = TuckERConfig(dim=8, epochs=3, device="cpu")


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    """Six steps an epoch for a ring of thirty, of which a tenth is held out."""
    for name, value in (("BATCH_SIZE", 16), ("NEGATIVES", 6), ("HELD_OUT", 0.1)):
        monkeypatch.setattr(f"kgkit.embedding.tucker.config.{name}", value)


@pytest.fixture
def kb(tmp_path):
    """A ring of thirty, with an entity in the middle of the ids that no fact tells of."""
    with ring_kb(tmp_path, 30, more=[Entity("alone")]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "value"), [("dim", 0), ("epochs", 0), ("lr", 0), ("seed", -1), ("dim", "many")]
)
def test_a_value_out_of_range_is_refused_where_it_is_written(name, value):
    with pytest.raises(UsageError, match=f"{name} is {value}"):
        TuckERConfig(**{name: value})


# -- triples -----------------------------------------------------------------------------------------------


def triples_one_by_one(kb):
    names = [name for name, _ in kb.store.relations]
    return sorted(
        (kb.id(triple.subject), names.index(triple.relation), kb.id(triple.object)) for triple in kb.match()
    )


def test_triples_are_those_that_match_yields(toy, kb):
    assert list(map(tuple, stored_triples(toy).tolist())) == triples_one_by_one(toy)
    assert list(map(tuple, stored_triples(kb).tolist())) == triples_one_by_one(kb)


def many_facts(entities, each):
    """Return what `stored_triples` reads of a KB: each entity leads to the next ones, which say so too."""

    def facts():
        steps = np.arange(1, each + 1)
        for number in range(entities):
            there, back = (number + steps) % entities, (number - steps) % entities
            codes = np.repeat(np.array([0, 1], np.uint16), each)
            yield number, np.concatenate([there, back]).astype(np.uint32), codes

    return SimpleNamespace(store=SimpleNamespace(iter_facts=facts, relations=[("leads_to", "comes_from")]))


def peak_of(work):
    """Return what *work* returns, and the bytes that were taken meanwhile."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_reading_triples_takes_little_more_than_they_are():
    found, peak = peak_of(lambda: stored_triples(many_facts(60_000, 3)))
    assert len(found) == 180_000
    assert peak < 6 * found.nbytes


def test_triples_are_the_same_however_many_are_read_together(monkeypatch):
    whole = stored_triples(many_facts(50, 3))
    monkeypatch.setattr("kgkit.embedding.tucker.triples._BLOCK", 7)
    assert np.array_equal(stored_triples(many_facts(50, 3)), whole)
    assert len(stored_triples(many_facts(0, 3))) == 0


def test_holding_out_takes_no_object_for_each_triple():
    triples = ring(150_000)
    parts, peak = peak_of(lambda: split(triples, 5, 150_000, np.random.default_rng(0)))
    assert len(parts.held_out) == 5
    assert peak < 2 * triples.nbytes


@given(st.integers(0, 40), st.integers(0, 5))
def test_what_is_held_out_leaves_each_entity_and_relation_a_triple_to_learn_from(count, seed):
    triples = np.concatenate([ring(12), [(3, 2, 3), (0, 2, 12)]])
    parts = split(triples, count, 14, np.random.default_rng(seed))
    assert len(parts.held_out) <= count
    whole = np.concatenate(parts)
    assert sorted(map(tuple, whole.tolist())) == sorted(map(tuple, triples.tolist()))
    assert set(np.unique(parts.train[:, [0, 2]])) == set(range(13))
    assert set(np.unique(parts.train[:, 1])) == {0, 1, 2}


def test_as_many_are_held_out_as_were_asked_for_if_there_are_enough():
    assert len(split(ring(50), 10, 50, np.random.default_rng(0)).held_out) == 10
    assert len(split(ring(50), 0, 50, np.random.default_rng(0)).held_out) == 0


# -- what is published -------------------------------------------------------------------------------------


def test_what_is_published(kb):
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = embed_tucker(kb, SMALL, progress=lambda stage, done, of: told.append((done, of)))
    assert told == [(step, 18) for step in range(1, 19)]  # 108 rows in batches of 16: 6 steps, 3 epochs
    assert vectors.matrix.shape == (31, 8)
    assert vectors.name == "small/tucker"
    zero = np.flatnonzero(~vectors.matrix.any(axis=1))
    assert zero.tolist() == [kb.id("alone")]
    config, results = vectors.manifest.config, vectors.manifest.results
    assert (config["dim"], config["lr"], config["relations"]) == (8, 0.001, ["r0", "r1"])
    assert config["triples"] == {"train": 54, "held_out": 6}
    assert 0 < results["mrr"] <= 1
    assert results["questions"] == 12
    assert results["random_mrr"] == pytest.approx(np.mean(1 / np.arange(1, 32)))
    lines = [json.loads(line) for line in (vectors.folder / "curve.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert all(line.keys() >= {"loss", "seconds", "mrr"} for line in lines)
    assert max(line["mrr"] for line in lines) == results["mrr"]
    assert [path.name for path in kb.home.unfinished_vectors.iterdir()] == ["tucker.lock"]


def test_the_matrix_and_the_rest_make_the_model_again(kb):
    vectors = embed_tucker(kb, SMALL)
    triples = torch.from_numpy(stored_triples(kb))
    made = TuckER(
        triples_factory=CoreTriplesFactory(triples, 31, 2, create_inverse_triples=True),
        embedding_dim=8,
        relation_dim=30,
        random_seed=0,
    )
    table = torch.from_numpy(np.array(vectors.matrix))
    state = load_file(vectors.folder / REMAINING)
    made.load_state_dict({**state, "entity_representations.0._embeddings.weight": table})
    assert torch.isfinite(made.eval().predict_t(torch.tensor([[0, 0]]))).all()


def test_a_ring_is_learnt(kb, monkeypatch):
    monkeypatch.setattr(training, "_ROW_DECAY", 0.0)  # a step meets nearly all of so few rows
    vectors = embed_tucker(kb, replace(SMALL, epochs=20, lr=0.005, dim=16))
    lines = [json.loads(line) for line in (vectors.folder / "curve.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < lines[0]["loss"] * 0.8


def test_rows_that_no_step_meets_stay_and_decay_takes_from_the_others():
    parts = split(ring(6), 0, 8, np.random.default_rng(0))
    torch.manual_seed(0)
    model = training.new_model(parts.train, 8, 2, 4)
    batches = training.SharedBatches(
        training.both_ways(parts.train), num_entities=8, batch_size=99, num_negatives=1, seed=0
    )
    table = model.entity_representations[0]._embeddings.weight
    before = table.detach().clone()
    (batch,) = batches.epoch(0)
    training._train_epoch(model, batches, training._optimizers(model), 1, SMALL, None)
    changed = (table != before).any(1).nonzero().squeeze(1)
    assert set(changed.tolist()) == set(batch.candidates.tolist())  # of a ring each head is a tail


def test_training_stops_when_nothing_is_gained():
    def curve(*scores):
        return [{"epoch": number, "mrr": score} for number, score in enumerate(scores, 1)]

    assert not training.stopped([])
    assert not training.stopped([{"epoch": 1}, {"epoch": 2}] * 4)  # nothing is ranked
    assert not training.stopped(curve(0.1, 0.05, 0.05))
    assert training.stopped(curve(0.1, 0.05, 0.05, 0.1))
    assert training.stopped(curve(0.5, 0.5004, 0.5008, 0.5012))  # small gains buy no more time
    assert training.best_line(curve(0.5, 0.5004, 0.2))["epoch"] == 2


# -- a run that is stopped goes on to the same numbers, bit for bit ----------------------------------------


class Stopped(Exception):
    """The run is over, for whatever reason."""


def stop_at(step):
    """Return a progress callback that ends the run after *step* steps."""

    def progress(stage, done, of):
        if done == step:
            raise Stopped

    return progress


LONGER = replace(SMALL, epochs=6)


def same(one, other):
    return np.array_equal(one.matrix, other.matrix) and (
        (one.folder / REMAINING).read_bytes() == (other.folder / REMAINING).read_bytes()
    )


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_run_may_be_stopped_many_times(kb, monkeypatch, seconds):
    whole = embed_tucker(kb, replace(LONGER, name="whole"))
    monkeypatch.setattr(training, "_CHECKPOINT_SECONDS", seconds)
    for step in (3, 9, 22):
        with pytest.raises(Stopped):
            embed_tucker(kb, LONGER, progress=stop_at(step))
    told = []
    vectors = embed_tucker(kb, LONGER, progress=lambda stage, done, of: told.append(done))
    assert told[0] == (19 if seconds == 0 else 1)  # 18 steps are three epochs
    assert same(vectors, whole)
    assert not same(embed_tucker(kb, replace(LONGER, seed=1, name="other")), whole)


def test_a_run_begun_anew_or_with_other_settings_forgets_what_was_done(kb, monkeypatch):
    monkeypatch.setattr(training, "_CHECKPOINT_SECONDS", 0.0)
    for config, resume in ((LONGER, False), (replace(LONGER, seed=5), True)):
        with pytest.raises(Stopped):
            embed_tucker(kb, LONGER, progress=stop_at(12))
        told = []
        embed_tucker(kb, config, resume=resume, progress=lambda stage, done, of, told=told: told.append(done))
        assert told[0] == 1


def test_a_run_killed_after_its_last_epoch_only_publishes(kb, monkeypatch):
    monkeypatch.setattr(training, "_CHECKPOINT_SECONDS", 0.0)

    def fail(self, *args, **kwargs):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("kgkit.vectors.Work.publish", fail)
        with pytest.raises(Stopped):
            embed_tucker(kb, SMALL)
    told = []
    assert embed_tucker(kb, SMALL, progress=lambda *step: told.append(step)).manifest.results["epochs"] == 3
    assert not told


def test_a_state_of_an_epoch_behind_the_checkpoint_is_not_taken_for_the_best(tmp_path, monkeypatch):
    model = training.new_model(ring(6), 6, 2, 4)
    curve = [{"epoch": 1, "mrr": 0.5}]
    training._save(tmp_path / "best-1.pt", model.state_dict())
    training._save_checkpoint(tmp_path, model, training._optimizers(model), curve)
    training._save(tmp_path / "best-2.pt", model.state_dict())  # and the run was killed
    assert training._resume(tmp_path, model, training._optimizers(model)) == curve
    training._save_checkpoint(tmp_path, model, training._optimizers(model), curve)
    assert [path.name for path in tmp_path.glob("best-*")] == ["best-1.pt"]


# -- what is small, and what is refused --------------------------------------------------------------------


def test_a_knowledge_base_without_facts_is_refused(tmp_path):
    with (
        small_kb.build(tmp_path, [Entity("a"), Entity("b")]) as kb,
        pytest.raises(UsageError, match="'small'"),
    ):
        embed_tucker(kb, SMALL)


@pytest.mark.parametrize("facts", [[("a", "b")], [("a", "b"), ("b", "a")], [("a", "a")]])
def test_two_entities_and_one_relation_are_enough(tmp_path, facts):
    records = [Entity("a"), Entity("b"), *(Triple(one, "near", other) for one, other in facts)]
    with small_kb.build(tmp_path, records) as kb:
        vectors = embed_tucker(kb, SMALL)
    assert vectors.manifest.config["triples"]["held_out"] == 0
    assert "mrr" not in vectors.manifest.results
    assert np.isfinite(vectors.matrix).all()


def test_training_that_diverges_is_told_with_its_rate(kb):
    with pytest.raises(BuildFailed, match=r"1e\+30"):
        embed_tucker(kb, replace(SMALL, lr=1e30))
    assert "tucker" not in [path.name for path in kb.home.vectors.glob("*")]


def test_errors_are_kgkits_own(kb):
    with pytest.raises(KgkitError):
        embed_tucker(kb, replace(SMALL, device="cuda:99"))
    with pytest.raises(KgkitError):
        embed_tucker(kb, replace(SMALL, name="a/b"))
