"""Filtered ranks: ours beside the definition, and beside PyKEEN's evaluator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")

from pykeen.evaluation import RankBasedEvaluator  # noqa: E402

from kgkit.embedding.tucker.ranking import RankingScores, ranks  # noqa: E402
from kgkit.embedding.tucker.true_tails import TrueTails  # noqa: E402
from tests.graph_toys import FAMILY, model, ring, rows_of  # noqa: E402


def rank_one_by_one(made, questions, known, candidates):
    """Rank each question by the definition: score every candidate with PyKEEN, leave known ones out."""
    made.eval()
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
def test_ranks_are_those_of_the_definition(candidates):
    graph = ring(12, 3)
    made, questions, known = model(graph), rows_of(graph[::5]), rows_of(graph)
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
    ours = RankingScores.of(ranks(made, rows_of(test), TrueTails(rows_of(graph))))
    assert ours.mrr == pytest.approx(theirs.get_metric("both.realistic.inverse_harmonic_mean_rank"), abs=1e-5)
    for limit in (1, 3, 10):
        expected = theirs.get_metric(f"both.realistic.hits_at_{limit}")
        assert getattr(ours, f"hits_at_{limit}") == pytest.approx(expected, abs=1e-5)


def test_candidates_that_score_the_same_share_their_ranks():
    made = model()
    with torch.no_grad():
        made.entity_representations[0]._embeddings.weight.fill_(0.0)
    found = ranks(made, np.array([(0, 0, 1)]), TrueTails(np.array(FAMILY)))
    assert found.tolist() == [2.5]  # five entities, 2 is known: ranks 1 to 4


@pytest.mark.parametrize("candidates", [None, [1, 3, 4]])
def test_a_score_that_is_no_number_wins_nothing(candidates):
    chosen = None if candidates is None else np.array(candidates)
    asked, known = np.array([(0, 0, 1)]), TrueTails(np.array(FAMILY))  # 2 is known, so it is left out
    made = model()
    with torch.no_grad():
        made.entity_representations[0]._embeddings.weight[1] = torch.nan
    assert ranks(made, asked, known, chosen).tolist() == [4 if candidates is None else 3]  # the last
    made = model()
    with torch.no_grad():
        made.entity_representations[0]._embeddings.weight[3:] = torch.nan
        made.entity_representations[0]._embeddings.weight[:2] = 0.0
    assert ranks(made, asked, known, chosen).tolist() == [3.5 if candidates is None else 3]


def test_a_model_stays_in_the_mode_it_was_in():
    made = model().train()
    before = {key: value.clone() for key, value in made.state_dict().items()}
    state = torch.get_rng_state()
    ranks(made, rows_of(FAMILY), TrueTails(rows_of(FAMILY)))
    assert made.training
    assert all(torch.equal(value, before[key]) for key, value in made.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_no_questions_have_no_ranks():
    assert len(ranks(model(), np.empty((0, 3), np.int64), TrueTails(np.array(FAMILY)))) == 0


def test_many_questions_are_ranked_in_batches(monkeypatch):
    made, graph = model(ring(12)), rows_of(ring(12))
    whole = ranks(made, graph, TrueTails(graph))
    monkeypatch.setattr("kgkit.embedding.tucker.ranking._BATCH", 5)
    assert np.array_equal(ranks(made, graph, TrueTails(graph)), whole)


def test_scores_of_ranks_are_means():
    found = RankingScores.of(np.array([1.0, 2.0, 4.0, 20.0]))
    assert (found.mrr, found.hits_at_1, found.hits_at_3, found.hits_at_10) == (0.45, 0.25, 0.5, 0.75)
    assert found.questions == 4
