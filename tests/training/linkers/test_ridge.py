"""Training the linker of means: what is left out, and how much each term comes to count."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.ridge import START, RidgeScorer
from kgkit.training.linkers.conditional_logit import PRECISIONS, fit_weights
from kgkit.training.linkers.labelled import labelled_entities
from kgkit.training.linkers.means import (
    LinkerData,
    Sums,
    TrainingSet,
    add_sums,
    fit_means,
    subtract_sums,
    text_mean,
)
from kgkit.training.linkers.ridge import held_out_terms, train_ridge
from kgkit.types import Alias, Entity
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

READ = SpanConfig(layers=(-1, 1), size=16, context=2)
RECORDS = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hot dog", "hot dog", "it eats the fruit"),
    Entity("tree", "tree", "a small tree grows"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot dog", 2),
    Alias("dog", "tree", 1),
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def kb(tmp_path_factory, encoder):
    with build(tmp_path_factory.mktemp("home"), RECORDS, name="words") as kb:
        text = TextConfig(encoder=encoder.name, device="cpu", dtype="float32", template="{description}")
        embed_text(kb, text, encoder=encoder)
        yield kb


@pytest.fixture
def reader(encoder):
    return SpanReader(encoder, READ)


def part_of(kb, reader, meant, tmp_path):
    """Return a document for each of *meant*, with a dog that means it."""
    words = ["the", "dog", "eats", "a", "big", "small", "red", "fruit", "tree", "barks"]
    path = tmp_path / "el.jsonl"
    lines = []
    for number, entity in enumerate(meant):
        tokens = [words[number % 7], "dog", words[-1 - number % 5]]
        mention = {"start": 1, "end": 2, "entity": entity}
        lines.append(json.dumps({"doc_id": number, "tokens": tokens, "mentions": [mention]}) + "\n")
    path.write_text("".join(lines))
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    return TrainingSet(reader, list(labelled_entities(kb, generator, path)), tmp_path / "features", None)


def told_by(kb, reader, part, **settings):
    vectors = kb.vectors("text")
    data = LinkerData(reader, vectors, [part], **settings)
    return list(held_out_terms(data, add_sums([part.sums()]), text_mean(vectors)))


# -- what is left out -------------------------------------------------------


def test_a_set_less_a_part_of_it_is_the_rest(kb, reader, tmp_path):
    part = part_of(kb, reader, ["dog", "hot dog", "dog", "tree", "hot dog"], tmp_path)
    own = part.documents == 3
    rest = part.sums(~own)
    for found, expected in zip(subtract_sums(part.sums(), part.sums(own)), rest, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert isinstance(rest, Sums) and len(rest.meanings) == 2


def test_a_mention_is_told_what_the_other_documents_teach(kb, reader, tmp_path):
    """The slow twin: means and map of the other documents alone, for each document."""
    part = part_of(kb, reader, ["dog", "hot dog", "dog", "tree", "hot dog"], tmp_path)
    vectors = kb.vectors("text")
    for number, (terms, right, _) in enumerate(told_by(kb, reader, part)):
        others = part.sums(part.documents != number)
        scorer = RidgeScorer(reader, vectors, fit_means(others, vectors, part.mean, text_mean(vectors)))
        one = part.labelled[number]
        query = part.queries_of(np.array([number]), part.mean)[0]
        np.testing.assert_allclose(terms, scorer.terms(query, one.document.mentions[0].candidates), atol=1e-4)
        assert np.array_equal(right, one.right[0])
    assert [bool(terms[right, 3]) for terms, right, _ in told_by(kb, reader, part)] == [1, 1, 1, 0, 1]


def test_many_documents_are_left_out_by_tenths(kb, reader, tmp_path, monkeypatch):
    part = part_of(kb, reader, ["dog", "hot dog", "tree"] * 11, tmp_path)
    assert len(told_by(kb, reader, part)) == 33
    monkeypatch.setattr("kgkit.training.linkers.ridge._MOST", 8)
    assert len(told_by(kb, reader, part)) == 7  # every fifth


def test_of_one_document_nothing_is_learnt_but_means(kb, reader, tmp_path):
    part = part_of(kb, reader, ["dog"], tmp_path)
    trained = train_ridge(LinkerData(reader, kb.vectors("text"), [part]))
    assert trained.arrays.weights.tolist() == list(START) and trained.temperature == 1.0
    assert "held_out" not in trained.results


# -- weights ----------------------------------------------------------------


def choices(count, draw, seed=0):
    """Return mentions with three candidates; *draw* gives terms and which one is right."""
    drawn = np.random.default_rng(seed)
    return [(terms.astype(np.float32), np.arange(3) == right) for terms, right in map(draw, [drawn] * count)]


def by(weights):
    def draw(drawn):
        terms = drawn.normal(size=(3, 4)) * [1, 0.3, 0.3, 1]
        probable = np.exp(terms @ weights)
        return terms, drawn.choice(3, p=probable / probable.sum())

    return draw


def test_nothing_told_changes_nothing():
    alone = (np.ones((1, 4), np.float32), np.array([True]))
    nil = (np.ones((2, 4), np.float32), np.array([False, False]))
    for told in ([], [alone, nil]):
        assert fit_weights(told).tolist() == list(START)


def test_much_that_is_told_decides():
    weights = np.array([0.4, 2.0, 6.0, 1.5])
    np.testing.assert_allclose(fit_weights(choices(20_000, by(weights))), weights, atol=0.25)


def test_weights_are_where_the_loss_has_its_valley():
    """The slow twin: the loss as it is defined, and steps aside in every direction."""
    told = choices(60, by(np.array([0.4, 2.0, 6.0, 1.5])))

    def loss(weights):
        surprise = 0.0
        for terms, right in told:
            scores = terms.astype(np.float64) @ weights
            surprise -= scores[right][0] - np.log(np.exp(scores).sum())
        return surprise + 0.5 * (np.array(PRECISIONS[:4]) * (weights - np.array(START)) ** 2).sum()

    found = fit_weights(told).astype(np.float64)
    assert found.min() > 0
    for at in range(4):
        for step in (-0.02, 0.02):
            assert loss(found) < loss(found + step * np.eye(4)[at])


def test_of_several_right_candidates_one_likely_one_is_enough():
    terms = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    both, one = np.array([True, True, False]), np.array([True, False, False])
    assert fit_weights([(terms, one)] * 50)[0] > fit_weights([(terms, both)] * 50)[0] > START[0]


def test_no_term_counts_against_its_candidate():
    found = fit_weights(choices(2_000, by(np.array([0.5, -3.0, -3.0, 1.0]))))
    assert found[1] == found[2] == 0
    np.testing.assert_allclose(found[[0, 3]], [0.5, 1], atol=0.4)  # theirs is what the two leave open


def test_sentences_gathered_one_for_each_meaning_do_not_spoil_the_likeness():
    """Left out, the right meaning is rarely one that was seen; the likeness tells it all the same."""

    def draw(drawn):
        right = drawn.integers(3)
        seen = np.ones(3)
        seen[right] = drawn.random() < 0.3
        like = drawn.normal(size=3) * 0.2 + 0.4 * (np.arange(3) == right)
        return np.stack([np.zeros(3), np.zeros(3), like * seen, seen], axis=1), right

    found = fit_weights(choices(500, draw))
    assert found[3] == 0
    assert found[2] > 3


# -- mentions that count more, and a prior that is counted ------------------


def test_a_mention_that_counts_twice_is_two_of_them():
    examples = choices(40, by(np.array([0.4, 2.0, 6.0, 1.5])))
    doubled = fit_weights([*examples, *examples[:10]])
    counts = [2.0] * 10 + [1.0] * 30
    np.testing.assert_allclose(fit_weights(examples, counts), doubled, atol=1e-4)
    np.testing.assert_allclose(fit_weights(examples, [1.0] * 40), fit_weights(examples), atol=1e-6)


def test_a_balance_has_the_prior_say_less(kb, reader, tmp_path):
    """The prior is right of the frequent, so that who counts the rare more trusts it less."""
    part = part_of(kb, reader, ["dog", "dog", "dog", "hot dog", "dog", "dog", "tree", "dog"] * 4, tmp_path)
    weights = []
    for balance in (0.0, 1.0):
        trained = train_ridge(LinkerData(reader, kb.vectors("text"), [part], balance=balance))
        weights.append(trained.arrays.weights)
    assert weights[1][0] < weights[0][0]


def test_held_out_mentions_have_the_share_of_their_meaning_in_the_prior(kb, reader, tmp_path):
    part = part_of(kb, reader, ["dog", "hot dog", "tree"], tmp_path)
    np.testing.assert_allclose([share for _, _, share in told_by(kb, reader, part)], [3 / 6, 2 / 6, 1 / 6])


def test_a_prior_counted_on_the_data_leaves_the_held_out_documents_out(kb, reader, tmp_path):
    part = part_of(kb, reader, ["dog", "hot dog", "dog", "hot dog"], tmp_path)
    plain = told_by(kb, reader, part)
    counted = told_by(kb, reader, part, counted_priors=True)
    for number, ((before, _, _), (terms, right, share)) in enumerate(zip(plain, counted, strict=True)):
        own = [2, 1] if number % 2 else [1, 2]  # of dog and hot dog without this document
        priors = np.array([own[0] + 1, own[1] + 1, 1]) / 6
        gain = np.log(priors) - np.log([3 / 6, 2 / 6, 1 / 6])
        np.testing.assert_allclose(terms[:, 0] - before[:, 0], gain, atol=1e-4)
        assert share == pytest.approx(float(priors[right].sum()), abs=1e-5)
        np.testing.assert_allclose(terms[:, 1:], before[:, 1:], atol=1e-6)
