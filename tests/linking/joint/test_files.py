"""Files of a joint linker: those that are damaged say so."""

import shutil

import numpy as np
import pytest

import kgkit
from kgkit.errors import DamagedModel
from kgkit.linking.joint.network import FILE as NETWORKS
from kgkit.linking.joint.network import Network, load_network, save_networks
from kgkit.linking.joint.words import FILE as WORDS
from kgkit.linking.joint.words import WordCounts
from kgkit.models.folder import SHIPPED


def network(features=5, vectors=3, members=2):
    """Return a network of random numbers."""
    draw = np.random.default_rng(1)
    shapes = {
        "ranking": (8,), "mean": (features,), "deviation": (features,), "project": (members, vectors, 2),
        "shift": (members, 2), "weight": (members, features + 2, 4), "bias": (members, 4),
        "out": (members, 4), "direct": (members, features + 2), "constant": (members,),
    }  # fmt: skip
    return Network(*(draw.random(shapes[name]).astype(np.float32) + 0.1 for name in Network._fields))


def slow_scores(network, features, vectors, sizes):
    """Return the scores of candidates one by one, as the equations say."""
    scores = []
    owners = [mention for mention, size in enumerate(sizes) for _ in range(size)]
    for row, mention in zip(features, owners, strict=True):
        of_members = []
        for g in range(len(network.out)):
            z = np.tanh(network.project[g].T @ vectors[mention] + network.shift[g])
            h = np.concatenate([np.clip((row - network.mean) / network.deviation, -6, 6), z])
            hidden = np.maximum(network.weight[g].T @ h + network.bias[g], 0)
            of_members.append(network.direct[g] @ h + network.out[g] @ hidden + network.constant[g])
        scores.append(np.mean(of_members))
    return scores


def test_scores_are_those_of_the_equations():
    draw = np.random.default_rng(2)
    features, vectors = draw.normal(size=(6, 5)), draw.normal(size=(3, 3))
    sizes = np.array([1, 0, 5])
    np.testing.assert_allclose(
        network()(features, vectors, sizes), slow_scores(network(), features, vectors, sizes), rtol=1e-4
    )


def test_a_network_is_read_as_it_was_written(tmp_path):
    save_networks(tmp_path, {"one": network()})
    for read, written in zip(load_network(tmp_path, "one", (5, 3), 8), network(), strict=True):
        np.testing.assert_allclose(read, written, rtol=1e-3)


@pytest.mark.parametrize("shape", [(6, 3), (5, 4)])
def test_a_network_of_other_features_is_refused(tmp_path, shape):
    save_networks(tmp_path, {"one": network()})
    with pytest.raises(DamagedModel, match=NETWORKS):
        load_network(tmp_path, "one", shape, 8)


def test_a_network_of_another_ranking_is_refused(tmp_path):
    save_networks(tmp_path, {"one": network()})
    with pytest.raises(DamagedModel):
        load_network(tmp_path, "one", (5, 3), 7)


def test_a_network_that_is_not_there_is_refused(tmp_path):
    save_networks(tmp_path, {"one": network()})
    with pytest.raises(DamagedModel, match="two"):
        load_network(tmp_path, "two", (5, 3), 8)
    (tmp_path / NETWORKS).write_bytes(b"no archive")
    with pytest.raises(DamagedModel, match=NETWORKS):
        load_network(tmp_path, "one", (5, 3), 8)


def test_deviations_of_zero_and_numbers_that_are_none_are_refused(tmp_path):
    save_networks(tmp_path, {"one": network()._replace(deviation=np.zeros(5, np.float32))})
    with pytest.raises(DamagedModel, match=NETWORKS):
        load_network(tmp_path, "one", (5, 3), 8)
    save_networks(tmp_path, {"one": network()._replace(out=np.full((2, 4), np.nan, np.float32))})
    with pytest.raises(DamagedModel, match=NETWORKS):
        load_network(tmp_path, "one", (5, 3), 8)


@pytest.mark.parametrize("content", [b"a\t1\n", b"a\t1\tmany\n", b"\xff\t1\t1\n", b"a\t-1\t2\n"])
def test_counts_that_are_none_are_refused(tmp_path, content):
    (tmp_path / WORDS).write_bytes(content)
    with pytest.raises(DamagedModel, match=WORDS):
        WordCounts.load(tmp_path)


def test_counts_that_are_missing_are_refused(tmp_path):
    with pytest.raises(DamagedModel, match=WORDS):
        WordCounts.load(tmp_path)


@pytest.mark.parametrize("name", [NETWORKS, WORDS])
def test_a_model_with_a_damaged_file_is_not_opened(tmp_path, names_home, name):
    folder = tmp_path / "mine"
    shutil.copytree(SHIPPED / "links-minilm", folder)
    path = folder / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DamagedModel):
        kgkit.Linker.open("people", home=names_home, model=str(folder))
