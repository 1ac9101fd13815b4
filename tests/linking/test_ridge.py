"""The linker of means: its score against the equations, and models that cannot be used."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import DamagedModel
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking import Linker
from kgkit.linking.gloss import GlossScorer
from kgkit.linking.ridge import START, RidgeArrays, RidgeScorer, centred_cosines, mention_vector_of, queries
from kgkit.models.manifest import MANIFEST
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.train import train_linker
from kgkit.types import Alias, Document, Entity, Mention
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

READ = SpanConfig(layers=(-1, 1), size=16, context=2)
RECORDS = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hot dog", "hot dog", "it eats the fruit"),
    Entity("tree", "tree", ""),
    Entity("fruit", "fruit", "a small tree grows"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot dog", 2),
    Alias("dog", "tree", 1),
    Alias("dog", "fruit", 1),
)
TEXT = "the big dog eats a dog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def kb(tmp_path_factory, encoder, folder):
    with build(tmp_path_factory.mktemp("home"), RECORDS, name="words") as kb:
        text = TextConfig(encoder=str(folder), device="cpu", dtype="float32", template="{description}")
        embed_text(kb, text, encoder=encoder)
        yield kb


def unit(vector):
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def learnt(width, weights=None, seen=(0, 1)):
    """Return made-up arrays for two layers of so many numbers."""
    drawn = np.random.default_rng(4)
    mean = unit(drawn.normal(size=2 * width)).astype(np.float32) * 0.6
    centroids = np.stack([unit(row) for row in drawn.normal(size=(len(seen), 2 * width))]).astype(np.float16)
    return RidgeArrays(
        np.array(seen, np.uint32),
        centroids,
        np.ones(len(seen), np.float32),
        drawn.normal(size=(width + 1, 2 * width)).astype(np.float32),
        mean,
        drawn.normal(size=width).astype(np.float32) * 0.02,
        weights,
    )


def asked(kb):
    candidates = kb.candidates("dog")
    mentions = [Mention(8, 11, "dog", candidates=candidates), Mention(19, 22, "dog", candidates=candidates)]
    return Document("d", TEXT, mentions=mentions), candidates


def slow_terms(vector, candidates, matrix, arrays):
    """Return the terms of each candidate by the equations, one at a time."""
    layers = [unit(part) for part in np.split(vector.astype(np.float64), 2)]
    query = unit(unit(np.concatenate(layers)) - arrays.mean)
    texts = {e: matrix[e].astype(np.float64) for e in candidates.ids.tolist() if matrix[e].any()}
    fits = {e: layers[0] @ unit(text) for e, text in texts.items()}
    mapped = {
        e: unit(np.append(unit(unit(text) - arrays.gloss_mean), 1) @ arrays.weight)
        for e, text in texts.items()
    }
    seen = dict(zip(arrays.meanings.tolist(), arrays.centroids.astype(np.float64), strict=True))

    def r(vectors, e):
        near = [vectors[one] for one in candidates.ids.tolist() if one in vectors]
        if e not in vectors or len(near) < 2:
            return 0.0
        middle = np.mean(near, axis=0)
        return unit(query - middle) @ unit(vectors[e] - middle)

    share = candidates.priors / candidates.priors.sum()
    return [
        [
            np.log(share[at]) + fits.get(e, np.mean(list(fits.values()))) / 0.1,
            r(mapped, e),
            r(seen, e),
            float(e in seen),
        ]
        for at, e in enumerate(candidates.ids.tolist())
    ]


@pytest.mark.parametrize("seen", [("dog", "hot dog"), ("dog", "hot dog", "tree"), ("fruit",)])
def test_the_terms_are_those_of_the_equations(kb, encoder, seen):
    reader, vectors = SpanReader(encoder, READ), kb.vectors("text")
    arrays = learnt(encoder.width, seen=sorted(kb.id(key) for key in seen))
    scorer = RidgeScorer(reader, vectors, arrays)
    document, candidates = asked(kb)
    [(_, read)] = reader([document])
    for vector, query in zip(read, queries(read, 2, arrays.mean), strict=True):
        found = scorer.terms(query, candidates)
        expected = slow_terms(vector, candidates, np.asarray(vectors.matrix), arrays)
        np.testing.assert_allclose(found, expected, atol=2e-3)
        np.testing.assert_allclose(scorer.scores(query, candidates), found @ np.array(START), atol=1e-5)


def test_without_means_of_its_own_a_mention_is_scored_as_gloss_does(kb, encoder):
    """One meaning that was seen has nothing to be told from: what is left is the prior and the text."""
    reader, vectors = SpanReader(encoder, READ), kb.vectors("text")
    scorer = RidgeScorer(reader, vectors, learnt(encoder.width, seen=[kb.id("dog")]))
    document, _ = asked(kb)
    gloss = GlossScorer(vectors, encoder, SpanConfig(size=READ.size, context=READ.context))
    for ours, other in zip(scorer([document])[0], gloss([document])[0], strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-3)


def test_weights_weigh(kb, encoder):
    reader, vectors = SpanReader(encoder, READ), kb.vectors("text")
    weights = np.array([0.5, 2, 3, 0.25], np.float32)
    arrays = learnt(encoder.width, weights, [kb.id("dog"), kb.id("hot dog")])
    scorer = RidgeScorer(reader, vectors, arrays)
    document, candidates = asked(kb)
    [(_, read)] = reader([document])
    query = queries(read, 2, arrays.mean)[0]
    np.testing.assert_allclose(
        scorer.scores(query, candidates), scorer.terms(query, candidates) @ weights, rtol=1e-5
    )


def test_what_candidates_have_in_common_does_not_count():
    drawn = np.random.default_rng(0)
    name, own = drawn.normal(size=8) * 50, drawn.normal(size=(2, 8))
    vectors = (name + own).astype(np.float32)
    query = (name + own[0]).astype(np.float32)
    one, other = centred_cosines(query, vectors, np.array([True, True]))
    assert one == pytest.approx(1, abs=1e-3) and other == pytest.approx(-1, abs=1e-3)


def test_what_has_nothing_to_be_told_from_is_not_told():
    same = np.full((3, 4), 0.5, np.float32)
    query = np.eye(4, dtype=np.float32)[0]
    assert not centred_cosines(query, same, np.array([True, True, True])).any()
    assert not centred_cosines(query, np.eye(4, dtype=np.float32)[:3], np.array([False, True, False])).any()
    assert len(centred_cosines(query, np.empty((0, 4), np.float32), np.empty(0, np.bool_))) == 0


def test_what_was_read_is_found_again_in_its_query():
    drawn = np.random.default_rng(1)
    read = drawn.normal(size=(5, 12)).astype(np.float32)
    whole = np.stack([unit(np.concatenate([unit(one[:6]), unit(one[6:])])) for one in read])
    for mean in (whole.mean(0), whole[0] * np.float32(0.99)):
        for query, one in zip(queries(read, 2, mean), whole, strict=True):
            np.testing.assert_allclose(mention_vector_of(query, mean), one, atol=1e-5)


def test_a_model_without_weights_is_to_be_trained_again(kb, tmp_path):
    data = tmp_path / "el.jsonl"
    mention = {"start": 1, "end": 2, "entity": "dog"}
    data.write_text(json.dumps({"doc_id": 1, "tokens": ["the", "dog", "barks"], "mentions": [mention]}))
    training = LinkerTraining(data=(data,), reader=READ)
    folder = train_linker(kb, "old", training, device="cpu")
    assert [link.entity for link in Linker.open(kb, model="old", device="cpu")(["the dog"]).__next__().links]
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["sizes"]["weights.npy"]
    (folder / "weights.npy").unlink()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedModel, match=r"before the weights of its scores were learnt.*train it again"):
        Linker.open(kb, model="old", device="cpu")
