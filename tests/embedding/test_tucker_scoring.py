"""TuckER's batches, scores, loss and ranks: every short cut beside the long way round."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pykeen.evaluation import RankBasedEvaluator  # noqa: E402

from kgkit.embedding.tucker import scoring  # noqa: E402
from kgkit.embedding.tucker.batches import SharedBatches  # noqa: E402
from kgkit.embedding.tucker.scoring import RankingScores, add_gradients, queries, ranks  # noqa: E402
from kgkit.embedding.tucker.triples import TrueTails, both_ways  # noqa: E402
from tests.graph_toys import FAMILY, model, ring  # noqa: E402

# -- known tails -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=20))
def test_known_tails_are_those_that_a_search_through_all_triples_finds(triples):
    known = TrueTails(np.array(triples, np.int64).reshape(-1, 3))
    asked = np.array(list(itertools.product(range(6), range(6))))
    rows, tails = known.of(asked[:, 0], asked[:, 1])
    found = {(*asked[row].tolist(), tail) for row, tail in zip(rows, tails.tolist(), strict=True)}
    assert found == set(triples)
    assert len(rows) == len(set(triples))  # one given twice is found once


# -- scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
def test_scores_and_gradients_are_those_of_pykeens_interaction(training):
    made = model().train(training)
    triples = torch.as_tensor(both_ways(FAMILY))
    state = {key: value.clone() for key, value in made.state_dict().items()}
    theirs = made.score_hrt(triples).squeeze(1)
    theirs.sum().backward()
    slopes = {name: each.grad.clone() for name, each in made.named_parameters() if each.grad is not None}
    made.zero_grad()
    made.load_state_dict(state)  # running statistics
    heads, relations, tails = triples.unbind(1)
    ours = (queries(made, heads, relations) * made.entity_representations[0](tails)).sum(1)
    ours.sum().backward()
    assert torch.allclose(ours, theirs, atol=1e-5)
    for name, each in made.named_parameters():
        if name in slopes:
            assert torch.allclose(each.grad, slopes[name], atol=1e-4), name


# -- batches -----------------------------------------------------------------------------------------------


def batches(triples=FAMILY, **changes):
    defaults = {"num_entities": 5, "batch_size": 4, "num_negatives": 2, "seed": 3}
    return SharedBatches(triples, **{**defaults, **changes})


def test_a_pass_shows_triples_once_in_an_order_of_its_own():
    source = batches(batch_size=2)
    first, second, again = (
        np.concatenate([batch.positives.numpy() for batch in source.epoch(number)]).tolist()
        for number in (0, 1, 0)
    )
    assert sorted(first) == sorted(second) == sorted(FAMILY.tolist())
    assert first == again != second


def test_batches_are_of_one_size_and_no_larger_than_the_graph():
    assert [len(batch.positives) for batch in batches().epoch(0)] == [4]
    assert [len(batch.positives) for batch in batches(batch_size=100).epoch(0)] == [6]


def test_the_own_tail_is_a_candidate_and_other_known_tails_are_pointed_out():
    whole = batches(num_negatives=9).batch(np.array([(0, 0, 1), (1, 1, 2)]), np.random.default_rng(0))
    assert whole.candidates.tolist() == [0, 1, 2, 3, 4]
    assert whole.own.tolist() == [1, 2]
    assert whole.true_pairs.tolist() == [[0], [2]]  # (0, 0) is also true of 2, and that is not a negative


@given(st.integers(1, 6), st.integers(1, 5))
@settings(deadline=None)
def test_the_chance_of_a_candidate_is_counted_over_all_batches_and_draws(size, drawn):
    found = np.exp(batches(batch_size=size, num_negatives=drawn)._log_chances().astype(float))
    own = (9, 9, 9)  # a triple that is none of them: the others are size - 1 of the remaining five
    family = [tuple(row) for row in FAMILY.tolist()]
    counted = np.zeros(5)
    draws = list(itertools.combinations(range(5), drawn))
    # For an entity that is not the own tail: others are drawn from all triples but one that has another tail.
    for entity in range(5):
        base = next((row for row in family if row[2] != entity), own)
        rest = [row for row in family if row != base]
        groups = list(itertools.combinations(rest, size - 1))
        hits = sum(
            entity in draw or any(row[2] == entity for row in group) for draw in draws for group in groups
        )
        counted[entity] = hits / (len(draws) * len(groups))
    assert np.allclose(found, counted, atol=1e-6)


# -- the loss ----------------------------------------------------------------------------------------------


class Drawn:
    """A generator that draws the entities it was given."""

    def __init__(self, drawn):
        self.drawn = drawn

    def choice(self, *_, **__):
        return np.array(self.drawn)


@pytest.mark.parametrize(("size", "drawn"), [(2, 2), (4, 3), (6, 5)])
def test_the_partition_function_over_all_entities_is_what_the_estimate_comes_to_on_average(
    monkeypatch, size, drawn
):
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5, 1.0])  # of (0, 0, ·): 1 is its own tail, 2 is known too
    made = model()
    ones = torch.ones(1, 1, requires_grad=True)
    monkeypatch.setattr(scoring, "queries", lambda made, heads, _: ones * 1)
    monkeypatch.setattr(scoring, "tables", lambda made: [lambda which: scores[which][:, None] * ones])
    source, estimates = batches(batch_size=size, num_negatives=drawn), []
    for others in itertools.combinations(range(1, 6), size - 1):
        for negatives in itertools.combinations(range(5), drawn):
            batch = source.batch(FAMILY[[0, *others]], Drawn(negatives))
            first = type(batch)(
                positives=batch.positives[:1],
                candidates=batch.candidates,
                own=batch.own[:1],
                log_chance=batch.log_chance,
                true_pairs=batch.true_pairs[:, batch.true_pairs[0] == 0],
            )
            loss = add_gradients(made, first, half=False)  # log Z - the own score
            estimates.append(math.exp(loss + scores[1].item()))
    assert np.mean(estimates) == pytest.approx(float(scores[[0, 1, 3, 4]].exp().sum()), rel=1e-4)


def whole_batch():
    triples = both_ways(FAMILY)
    return batches(triples, batch_size=99, num_negatives=99).batch(triples, np.random.default_rng(0))


def test_all_entities_as_negatives_give_the_softmax_over_all_entities_and_its_gradients():
    made, batch = model().eval(), whole_batch()
    scores = made.score_t(batch.positives[:, :2])
    scores[batch.true_pairs[0], batch.true_pairs[1]] = -torch.inf
    loss = torch.nn.functional.cross_entropy(scores, batch.positives[:, 2])
    loss.backward()
    expected = {name: each.grad.clone() for name, each in made.named_parameters()}
    made.zero_grad()
    assert add_gradients(made, batch, half=False) == pytest.approx(loss.item(), abs=1e-5)
    for name, each in made.named_parameters():
        assert torch.allclose(each.grad, expected[name], atol=1e-5), name


def test_half_precision_rounds_the_products_alone():
    made, batch = model().eval(), whole_batch()
    assert add_gradients(made, batch) == pytest.approx(add_gradients(made, batch, half=False), rel=0.02)


# -- ranks -------------------------------------------------------------------------------------------------


def rank_one_by_one(made, questions, known, candidates):
    """Rank each question by the definition: score every candidate with PyKEEN, leave known ones out."""
    found = []
    for head, relation, tail in questions.tolist():
        others = [
            each
            for each in candidates
            if each != tail and not any((known == (head, relation, each)).all(axis=1))
        ]
        triples = torch.tensor([(head, relation, each) for each in [tail, *others]])
        with torch.no_grad():
            own, *scores = made.score_hrt(triples).squeeze(1).tolist()
        higher = sum(score > own + 1e-6 for score in scores)
        same = sum(abs(score - own) <= 1e-6 for score in scores)
        found.append(1 + higher + same / 2)
    return np.array(found)


@pytest.mark.parametrize("candidates", [None, [0, 3, 5, 6, 11]])
def test_ranks_are_those_of_the_definition_in_batches_too(monkeypatch, candidates):
    graph = ring(12, 3)
    made, questions, known = model(graph).eval(), both_ways(graph[::5]), both_ways(graph)
    monkeypatch.setattr(scoring, "_BATCH", 5)
    found = ranks(made, questions, TrueTails(known), None if candidates is None else np.array(candidates))
    expected = rank_one_by_one(made, questions, known, range(12) if candidates is None else candidates)
    assert np.array_equal(found, expected)


def test_full_ranks_are_those_of_pykeens_evaluator():
    graph = ring(30, 3)
    rest, test = np.delete(graph, slice(0, 90, 9), axis=0), graph[::9]
    made = model(graph).eval()
    theirs = RankBasedEvaluator(filtered=True, clear_on_finalize=True).evaluate(
        made,
        torch.as_tensor(test),
        additional_filter_triples=torch.as_tensor(rest),
        use_tqdm=False,
        batch_size=8,
    )
    ours = RankingScores.of(ranks(made, both_ways(test), TrueTails(both_ways(graph))))
    assert ours.questions == 20
    assert ours.mrr == pytest.approx(theirs.get_metric("both.realistic.inverse_harmonic_mean_rank"), abs=1e-5)
    for limit in (1, 3, 10):
        expected = theirs.get_metric(f"both.realistic.hits_at_{limit}")
        assert getattr(ours, f"hits_at_{limit}") == pytest.approx(expected, abs=1e-5)


def test_candidates_that_score_the_same_share_their_ranks():
    made = model().eval()
    with torch.no_grad():
        made.entity_representations[0]._embeddings.weight.fill_(0.0)
    found = ranks(made, np.array([(0, 0, 1)]), TrueTails(FAMILY))
    assert found.tolist() == [2.5]  # five entities, 2 is known: ranks 1 to 4
