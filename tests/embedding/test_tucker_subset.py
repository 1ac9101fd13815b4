"""The sampler of the bench: a graph like WN18RR, drawn by rule."""

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.tucker_subset import Subset, _drawn, _peeled, _split
from tests.graph_toys import ring


def generator(seed=0):
    return np.random.default_rng(seed)


def test_pairs_are_drawn_with_both_of_their_directions():
    there = np.array([(head, 1, head + 1) for head in range(0, 50_000, 2)])  # derivations are relation 1
    found = _drawn(np.concatenate([there, there[:, ::-1] * [1, 0, 1] + [0, 1, 0]]), generator())
    pairs = {(head, tail) for head, _, tail in found.tolist()}
    assert len(pairs) == 40_000
    assert {(tail, head) for head, tail in pairs} == pairs


def test_entities_with_the_fewest_triples_go_first():
    star = np.array([(0, 0, tail) for tail in range(1, 5)] + [(1, 0, 2), (2, 0, 3)])
    assert set(np.unique(_peeled(star, 5, 4, generator())[:, [0, 2]])) == {0, 1, 2, 3}


def test_each_entity_keeps_a_training_triple():
    rest, held = _split(ring(20), 20, 30, generator())
    assert set(np.unique(rest[:, [0, 2]])) == set(range(20))
    assert sorted(map(tuple, np.concatenate([rest, held]).tolist())) == sorted(map(tuple, ring(20).tolist()))


def test_one_seed_draws_one_graph_and_it_can_be_kept(tmp_path):
    one, other = (_split(ring(30), 30, 10, generator(3)) for _ in range(2))
    assert np.array_equal(one[0], other[0])
    kept = Subset(
        entities=np.arange(30), relations=("near", "far"), train=one[0], valid=one[1][:5], test=one[1][5:]
    )
    kept.save(tmp_path / "subset.npz")
    found = Subset.load(tmp_path / "subset.npz")
    assert found.relations == ("near", "far")
    assert np.array_equal(found.test, kept.test)
