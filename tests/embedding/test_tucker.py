"""TuckER from a knowledge base to its vectors: settings, memory, what is published, what is refused."""

import gc
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
from safetensors.torch import load_file  # noqa: E402

import kgkit  # noqa: E402
from kgkit.building import Entity, Triple  # noqa: E402
from kgkit.embedding.tucker.config import PRESETS, TuckERConfig  # noqa: E402
from kgkit.embedding.tucker.method import REMAINING, embed_tucker  # noqa: E402
from kgkit.embedding.tucker.rows import RowOptimizer  # noqa: E402
from kgkit.embedding.tucker.triples import split, stored_triples  # noqa: E402
from kgkit.errors import BuildFailed, KgkitError, UnknownName, UsageError  # noqa: E402
from tests import small_kb  # noqa: E402
from tests.graph_toys import factory, ring, ring_kb  # noqa: E402

SMALL = TuckERConfig(
    dim=8, relation_dim=4, epochs=3, batch_size=16, negatives=6, held_out=0.1, device="cpu", half=False
)


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    """PyKEEN collects garbage after each epoch: let it look at what a test made, not at all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def kb(tmp_path):
    """A ring of thirty, with an entity in the middle of the ids that no fact tells of."""
    with ring_kb(tmp_path, 30, more=[Entity("alone")]) as opened:
        yield opened


# -- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_holds_and_can_be_changed(name):
    assert TuckERConfig.preset(name, dim=7).dim == 7


def test_the_preset_paper_has_the_figures_of_the_paper():
    found = TuckERConfig.preset("paper")
    assert (found.dim, found.relation_dim, found.batch_size, found.epochs) == (200, 200, 128, 500)
    assert (found.input_dropout, found.relation_dropout, found.hidden_dropout) == (0.2, 0.2, 0.3)
    assert (found.loss, found.label_smoothing, found.optimizer) == ("bcewithlogits", 0.1, "adam")
    assert TuckERConfig.preset("paper", relation_dim=30).relation_dim == 30  # as for WN18RR


def test_an_unknown_preset_or_setting_is_named_with_those_there_are():
    with pytest.raises(UnknownName, match=r"no preset of TuckER named 'gpu'; there are: cpu, paper"):
        TuckERConfig.preset("gpu")
    with pytest.raises(UnknownName, match=r"no setting of TuckER named 'dims'"):
        TuckERConfig.preset("cpu", dims=3)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dim", 0, "dim is 0; it is 1 or more"),
        ("relation_dim", -1, "relation_dim is -1"),
        ("epochs", 0, "epochs is 0"),
        ("batch_size", 0, "batch_size is 0"),
        ("batch_size", 1, "batch_size is 1; it is 2 or more"),
        ("lr", 0, "lr is 0; it is above 0"),
        ("held_out", 1.0, "held_out is 1.0; it is from 0 to below 1"),
        ("hidden_dropout", 1, "hidden_dropout is 1"),
        ("loss", "mse", "loss is 'mse'; it is one of crossentropy, bcewithlogits"),
        ("scoring", "some", "scoring is 'some'"),
        ("candidates", 0, "candidates is 0"),
        ("entity_std", 0.0, "entity_std is 0.0"),
        ("patience", -1, "patience is -1"),
        ("dim", "many", "dim is many"),
    ],
)
def test_a_value_out_of_range_is_refused_where_it_is_written(name, value, said):
    with pytest.raises(UsageError, match=said):
        TuckERConfig(**{name: value})


def test_rows_decay_by_the_epoch_however_many_steps_it_has():
    config = TuckERConfig(row_decay=3.0, negatives=100)
    assert config.decay_a_touch(steps=20, entities=1_000) == pytest.approx(3 / 2)
    assert config.decay_a_touch(steps=20, entities=50) == pytest.approx(3 / 20)
    assert replace(config, scoring="all").decay_a_touch(steps=20, entities=1_000) == pytest.approx(3 / 20)
    assert config.decay_a_touch(steps=1, entities=10**6) == 3  # met less than once


def test_rows_that_decay_end_at_nothing_and_not_beyond():
    table = torch.nn.Parameter(torch.ones(3, 2))
    table.grad = torch.sparse_coo_tensor([[1]], torch.zeros(1, 2), (3, 2), check_invariants=True)
    RowOptimizer([table], lr=0.01, row_factor=100.0, row_decay=3.3).step()  # 3.3 times of what there is
    assert table.tolist() == [[1, 1], [0, 0], [1, 1]]


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


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The vectors of the ring, and what progress was told."""
    told = []
    with (
        ring_kb(tmp_path_factory.mktemp("ring"), 30, more=[Entity("alone")]) as kb,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        vectors = embed_tucker(kb, SMALL, progress=lambda stage, done, of: told.append((done, of)))
        yield kb, vectors, told


def test_rows_are_entities_in_the_order_of_their_ids(published):
    kb, vectors, _ = published
    assert vectors.matrix.shape == (31, 8)
    assert vectors.matrix.dtype == np.float32
    assert vectors.name == "small/tucker"
    assert kb.vectors("tucker").manifest.version == vectors.manifest.version


def test_an_entity_that_no_fact_tells_of_has_no_vector(published):
    kb, vectors, _ = published
    zero = np.flatnonzero(~vectors.matrix.any(axis=1))
    assert zero.tolist() == [kb.id("alone")]
    assert vectors.manifest.covered == 30


def test_the_manifest_holds_the_settings_pykeens_and_the_last_figures(published):
    _, vectors, _ = published
    config, results = vectors.manifest.config, vectors.manifest.results
    assert config["dim"] == 8
    assert config["relations"] == ["r0", "r1"]
    assert config["triples"] == {"train": 54, "held_out": 6}
    assert config["pykeen"]["model_kwargs"]["embedding_dim"] == 8
    assert config["pykeen"]["training_loop"].endswith("SharedNegativesTrainingLoop")
    assert 0 < results["mrr"] <= 1
    assert results["questions"] == 12
    assert results["random_mrr"] == pytest.approx(np.mean(1 / np.arange(1, 32)))


def test_the_curve_is_kept_a_line_for_each_epoch(published):
    _, vectors, _ = published
    lines = [json.loads(line) for line in (vectors.folder / "curve.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert all(line.keys() >= {"loss", "seconds", "mrr"} for line in lines)
    assert max(line["mrr"] for line in lines) == vectors.manifest.results["mrr"]


def test_the_matrix_and_the_rest_make_the_model_again(published):
    kb, vectors, _ = published
    state = load_file(vectors.folder / REMAINING)
    triples = stored_triples(kb)
    made = TuckER(
        triples_factory=factory(triples, entities=31), embedding_dim=8, relation_dim=4, random_seed=0
    )
    table = torch.from_numpy(np.array(vectors.matrix))
    made.load_state_dict({**state, "entity_representations.0._embeddings.weight": table})
    scores = made.eval().predict_t(torch.tensor([[0, 0]]))
    assert torch.isfinite(scores).all()


def test_progress_is_told_after_each_step_and_ends_at_the_end(published):
    _, _, told = published
    assert told == [(step, 18) for step in range(1, 19)]  # 108 rows in batches of 16: 6 steps, 3 epochs


def test_nothing_is_left_in_the_cache(published):
    kb, _, _ = published
    assert [path.name for path in kb.home.unfinished_vectors.iterdir()] == ["tucker.lock"]


def test_two_runs_of_one_seed_publish_one_version(kb):
    first, second = embed_tucker(kb, SMALL), embed_tucker(kb, replace(SMALL, name="again"))
    assert np.array_equal(first.matrix, second.matrix)
    assert not np.array_equal(first.matrix, embed_tucker(kb, replace(SMALL, seed=1, name="other")).matrix)


def test_a_symmetric_relation_and_one_with_an_inverse_are_trained(toy):
    assert len(stored_triples(toy)) == len(set(map(tuple, stored_triples(toy).tolist())))


@pytest.mark.parametrize(
    "changes",
    [
        {
            "scoring": "all",
            "loss": "bcewithlogits",
            "optimizer": "adam",
            "label_smoothing": 0.1,
            "lr_decay": 0.9,
        },
        {"scoring": "shared", "loss": "bcewithlogits", "entity_std": None},
        {"candidates": None, "half": True, "hidden_dropout": 0.2},
        {"held_out": 0.0},
        {"candidates": 5, "label_smoothing": 0.1},
    ],
    ids=lambda changes: "-".join(map(str, changes)),
)
def test_every_way_of_training_publishes_finite_vectors(kb, changes):
    vectors = embed_tucker(kb, replace(SMALL, epochs=1, **changes))
    assert np.isfinite(vectors.matrix).all()
    assert vectors.manifest.covered == 30


def test_a_ring_is_learnt(kb):
    vectors = embed_tucker(
        kb,
        replace(
            SMALL,
            epochs=20,
            held_out=0.0,
            lr=0.005,
            input_dropout=0.0,
            hidden_dropout=0.0,
            dim=16,
            row_decay=0.0,  # a step meets nearly all of so few rows, and would take most of each
        ),
    )
    lines = (vectors.folder / "curve.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    assert losses[-1] < losses[0] / 2


def test_training_stops_when_nothing_is_gained(kb):
    settings = replace(SMALL, epochs=50, patience=2, min_gain=1.0)
    assert (
        embed_tucker(kb, settings).manifest.results["epochs"] == 3
    )  # the first ranking, and two without a gain


# -- what is small, and what is refused --------------------------------------------------------------------


def test_a_knowledge_base_without_facts_is_refused(tmp_path):
    with (
        small_kb.build(tmp_path, [Entity("a"), Entity("b")]) as kb,
        pytest.raises(UsageError, match=r"'small' has no facts.*--method text"),
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


def test_training_that_diverges_is_told_with_its_epoch_and_what_may_help(kb):
    with pytest.raises(BuildFailed, match=r"the loss of epoch \d is not finite.* a smaller lr than 1e\+30"):
        embed_tucker(kb, replace(SMALL, lr=1e30))
    assert "tucker" not in [path.name for path in kb.home.vectors.glob("*")]


def test_errors_are_kgkits_own(kb):
    with pytest.raises(KgkitError):
        embed_tucker(kb, replace(SMALL, device="cuda:99"))
    with pytest.raises(KgkitError):
        embed_tucker(kb, replace(SMALL, name="a/b"))
    assert isinstance(kb, kgkit.KnowledgeBase)
