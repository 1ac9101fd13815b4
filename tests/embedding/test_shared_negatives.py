"""The training loop that shares negatives: every short cut beside the long way round."""

import gc
import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pykeen.losses import BCEWithLogitsLoss, CrossEntropyLoss  # noqa: E402
from pykeen.training import LCWATrainingLoop  # noqa: E402
from torch.nn.functional import binary_cross_entropy_with_logits  # noqa: E402

from kgkit.embedding.tucker.contraction import contract, queries  # noqa: E402
from kgkit.embedding.tucker.negatives import SharedBatches  # noqa: E402
from kgkit.embedding.tucker.shared_negatives import all_entities_loss, parts, shared_bce  # noqa: E402
from kgkit.embedding.tucker.shared_softmax import plain_softmax, shared_softmax  # noqa: E402
from kgkit.embedding.tucker.true_tails import TrueTails  # noqa: E402
from tests.graph_toys import FAMILY, factory, loop, model, rows_of  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    """PyKEEN collects garbage after each epoch: let it look at what a test made, not at all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# -- what is known -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=20))
def test_known_tails_are_those_that_a_search_through_all_triples_finds(triples):
    known = TrueTails(np.array(triples, np.int64).reshape(-1, 3))
    asked = np.array(list(itertools.product(range(6), range(6))))
    rows, tails = known.of(asked[:, 0], asked[:, 1])
    found = {(*asked[row].tolist(), tail) for row, tail in zip(rows, tails.tolist(), strict=True)}
    assert found == set(triples)
    assert len(rows) == len(set(triples))  # one given twice is found once


def test_known_tails_of_no_question_are_none():
    assert len(TrueTails(np.array(FAMILY)).of(np.array([], int), np.array([], int)).rows) == 0


# -- the contraction ---------------------------------------------------------------------------------------


def test_a_core_is_contracted_as_the_sum_over_its_middle_says():
    core, relations = torch.randn(3, 4, 5), torch.randn(2, 4)
    expected = torch.einsum("ijk,uj->iuk", core, relations)
    assert torch.allclose(contract(core, relations), expected, atol=1e-6)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_scores_and_gradients_are_those_of_pykeens_interaction(training, normalized):
    made = model(apply_batch_normalization=normalized).train(training)
    triples = torch.as_tensor(rows_of(FAMILY))
    assert_same_scores(made, triples)


def assert_same_scores(made, triples):
    """Score by our way and by `score_hrt`; running statistics are put back in between."""
    state = {key: value.clone() for key, value in made.state_dict().items()}
    theirs = made.score_hrt(triples).squeeze(1)
    theirs.sum().backward()
    slopes = {name: each.grad.clone() for name, each in made.named_parameters() if each.grad is not None}
    made.zero_grad()
    made.load_state_dict(state)
    heads, relations, tails = triples.unbind(1)
    present, which = torch.unique(relations, return_inverse=True)
    entities, names = made.entity_representations[0], made.relation_representations[0]
    ours = (queries(made.interaction, entities(heads), names(present), which) * entities(tails)).sum(1)
    ours.sum().backward()
    assert torch.allclose(ours, theirs, atol=1e-5)
    for name, each in made.named_parameters():
        if name in slopes:
            assert torch.allclose(each.grad, slopes[name], atol=1e-4), name


def test_a_trained_model_answers_through_pykeens_own_methods():
    made = model()
    loop(made).train(factory(FAMILY), num_epochs=2, batch_size=4, use_tqdm=False)
    made.eval()
    triples = torch.as_tensor(rows_of(FAMILY))
    batch = SharedBatches(triples, num_entities=5, batch_size=12, num_negatives=5).batch(
        rows_of(FAMILY), np.random.default_rng(0)
    )
    query, tails = parts(made, batch)
    assert torch.allclose(query @ tails.T, made.score_t(triples[:, :2]), atol=1e-5)
    own = (query * made.entity_representations[0](triples[:, 2])).sum(1)
    assert torch.allclose(own, made.score_hrt(triples).squeeze(1), atol=1e-5)


# -- batches -----------------------------------------------------------------------------------------------


def batches(triples=FAMILY, **changes):
    settings = {"num_entities": 5, "batch_size": 4, "num_negatives": 2, "seed": 3, **changes}
    return SharedBatches(torch.as_tensor(np.asarray(triples)), **settings)


def test_a_pass_shows_every_triple_once():
    seen = np.concatenate([batch.positives.numpy() for batch in batches(batch_size=4)])
    assert sorted(map(tuple, seen.tolist())) == sorted(FAMILY)


def test_a_last_batch_that_is_smaller_may_be_left_out():
    assert [len(batch.positives) for batch in batches(drop_last=True)] == [4]
    assert len(batches(drop_last=True)) == 1
    assert [len(batch.positives) for batch in batches()] == [4, 2]
    assert len(batches()) == 2


def test_a_batch_larger_than_the_graph_is_the_graph():
    assert [len(batch.positives) for batch in batches(batch_size=100, drop_last=True)] == [6]


def test_each_pass_has_its_order_and_it_can_be_made_again_from_any_step():
    first = batches(batch_size=2)
    passes = [[batch.positives.tolist() for batch in first] for _ in range(2)]
    assert passes[0] != passes[1]
    again = batches(batch_size=2)
    again.epoch, again.first = 1, 2
    assert [batch.positives.tolist() for batch in again] == passes[1][2:]


def test_the_own_tail_is_a_candidate_and_other_known_tails_are_pointed_out():
    whole = batches(num_negatives=5).batch(np.array([(0, 0, 1), (1, 1, 2)]), np.random.default_rng(0))
    assert whole.candidates.tolist() == [0, 1, 2, 3, 4]
    assert whole.own.tolist() == [1, 2]
    assert whole.true_pairs.tolist() == [[0], [2]]  # (0, 0) is also true of 2, and that is not a negative


def test_nothing_is_pointed_out_if_negatives_are_not_filtered():
    found = batches(num_negatives=5, filtered=False).batch(np.array([(0, 0, 1)]), np.random.default_rng(0))
    assert found.true_pairs.shape == (2, 0)


def test_grouped_batches_have_a_row_for_each_head_and_relation():
    (found,) = batches(grouped=True, num_negatives=5, batch_size=9)
    assert sorted(found.positives[:, :2].tolist()) == [[0, 0], [1, 0], [1, 1], [2, 0], [3, 1]]
    row = found.positives[:, :2].tolist().index([0, 0])
    assert {*found.own[row : row + 1].tolist(), *found.true_pairs[1].tolist()} == {1, 2}


@given(st.integers(1, 6), st.integers(1, 5))
@settings(deadline=None)
def test_the_chance_of_a_candidate_is_counted_over_all_batches_and_draws(size, drawn):
    found = np.exp(batches(batch_size=size, num_negatives=drawn).log_chance(size).astype(float))
    own = (9, 9, 9)  # a triple that is none of them: the others are size - 1 of the remaining five
    counted = np.zeros(5)
    draws = list(itertools.combinations(range(5), drawn))
    # For an entity that is not the own tail: others are drawn from all triples but one that has another tail.
    for entity in range(5):
        base = next((row for row in FAMILY if row[2] != entity), own)
        rest = [row for row in FAMILY if row != base]
        groups = list(itertools.combinations(rest, size - 1))
        hits = sum(
            entity in draw or any(row[2] == entity for row in group) for draw in draws for group in groups
        )
        counted[entity] = hits / (len(draws) * len(groups))
    assert np.allclose(found, counted, atol=1e-6)


# -- losses ------------------------------------------------------------------------------------------------


def every_batch(size, drawn):
    """Return what each batch of *size* that has triple 0 in it, with each draw of negatives, comes to."""
    source = batches(batch_size=size, num_negatives=drawn)
    chance = source.log_chance(size)
    for others in itertools.combinations(range(1, 6), size - 1):
        rows = np.array(FAMILY)[[0, *others]]
        for negatives in itertools.combinations(range(5), drawn):
            candidates = np.unique([*negatives, *rows[:, 2]])
            yield candidates, int(np.searchsorted(candidates, 1)), chance[candidates]


@pytest.mark.parametrize(("size", "drawn"), [(1, 1), (2, 2), (4, 3), (6, 5)])
def test_the_partition_function_over_all_entities_is_what_the_estimate_comes_to_on_average(size, drawn):
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5, 1.0])  # of (0, 0, ·): 1 is its own tail, 2 is known too
    estimates = []
    for candidates, own, chance in every_batch(size, drawn):
        known = np.flatnonzero(candidates == 2)
        mask = torch.tensor(np.stack([np.zeros_like(known), known]))
        loss = plain_softmax(
            scores[candidates][None], torch.tensor([own]), mask, torch.from_numpy(chance), smoothing=0.0
        )
        estimates.append(math.exp(loss.item()) * math.exp(scores[1]))  # loss = log Z - own score
    assert np.mean(estimates) == pytest.approx(float(scores[[0, 1, 3, 4]].exp().sum()), rel=1e-4)


@pytest.mark.parametrize(("size", "drawn"), [(1, 2), (3, 2), (6, 5)])
def test_binary_cross_entropy_over_all_entities_is_what_the_estimate_comes_to_on_average(size, drawn):
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5, 1.0])
    labels = torch.tensor([0.025, 0.9, 0.0, 0.025, 0.025])
    terms = binary_cross_entropy_with_logits(scores, labels, reduction="none")
    expected = terms[[0, 1, 3, 4]].sum() / 5  # 2 is known, and counts for nothing
    estimates = []
    for candidates, own, chance in every_batch(size, drawn):
        known = np.flatnonzero(candidates == 2)
        mask = torch.tensor(np.stack([np.zeros_like(known), known]))
        found = shared_bce(
            scores[candidates][None], torch.tensor([own]), mask, torch.from_numpy(chance), 0.1, 5
        )
        estimates.append(found.item())
    assert np.mean(estimates) == pytest.approx(expected.item(), rel=1e-4)


def test_without_the_correction_the_estimate_is_off():
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5, 1.0])
    none = torch.empty(2, 0, dtype=torch.long)
    found = [
        math.exp(
            plain_softmax(
                scores[candidates][None], torch.tensor([own]), none, torch.zeros(len(candidates)), 0.0
            ).item()
            + scores[1].item()
        )
        for candidates, own, _ in every_batch(2, 1)
    ]
    assert np.mean(found) < 0.8 * float(scores.exp().sum())


def drawn_case(rows=4, columns=7, width=3):
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(rows, width, generator=generator, requires_grad=True)
    tails = torch.randn(columns, width, generator=generator, requires_grad=True)
    own = torch.tensor([0, 3, 3, 6])
    known = torch.tensor([[0, 0, 2], [1, 2, 5]])
    chance = torch.log(torch.rand(columns, generator=generator) * 0.9 + 0.1)
    return query, tails, own, known, chance


def test_the_softmax_in_one_pass_has_the_loss_and_gradients_of_the_plain_one():
    query, tails, own, known, chance = drawn_case()
    plain = plain_softmax(query @ tails.T, own, known, chance, 0.0)
    expected = torch.autograd.grad(3 * plain, [query, tails])
    fused = shared_softmax(query, tails, own, known, chance)
    found = torch.autograd.grad(3 * fused, [query, tails])
    assert torch.allclose(fused, plain)
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(found, expected, strict=True))


def test_half_precision_rounds_the_products_alone():
    query, tails, own, known, chance = drawn_case()
    whole = shared_softmax(query, tails, own, known, chance)
    half = shared_softmax(query, tails, own, known, chance, half=True)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(whole.item(), rel=0.02)


def test_smoothing_spreads_its_share_over_what_counts():
    query, tails, own, known, chance = drawn_case()
    scores, flat = query @ tails.T, torch.zeros_like(chance)
    found = plain_softmax(scores, own, known, flat, 0.2)
    losses = []
    for row in range(4):
        counts = [column for column in range(7) if [row, column] not in known.T.tolist()]
        target = torch.full((len(counts),), 0.2 / len(counts))
        target[counts.index(int(own[row]))] += 0.8
        losses.append(-(target * torch.log_softmax(scores[row, counts], 0)).sum())
    assert torch.allclose(found, torch.stack(losses).mean(), atol=1e-6)


@pytest.mark.parametrize("loss", [CrossEntropyLoss(), BCEWithLogitsLoss()])
def test_grouped_batches_have_the_loss_of_pykeens_lcwa_loop(loss):
    made = model(loss=loss, apply_batch_normalization=False)
    graph = factory(FAMILY)
    stock = LCWATrainingLoop(model=made, triples_factory=graph, optimizer="SGD")
    loader = stock._create_training_data_loader(graph, batch_size=11, drop_last=False, sampler=None)
    (batch,) = loader
    expected = stock._process_batch(batch, 0, 11, label_smoothing=0.1)
    ours = loop(made, grouped=True, optimizer="SGD")
    (whole,) = ours._create_training_data_loader(graph, sampler=None, batch_size=11, drop_last=False)
    assert len(whole.positives) == 11
    assert torch.allclose(ours._process_batch(whole, 0, 11, label_smoothing=0.1), expected, atol=1e-5)


def test_all_entities_as_negatives_give_the_softmax_over_all_entities():
    made = model(apply_batch_normalization=False)
    ours = loop(made, num_negatives=99)
    (whole,) = ours._create_training_data_loader(
        factory(FAMILY), sampler=None, batch_size=99, drop_last=False
    )
    query, tails = parts(made, whole)
    scores = query @ tails.T
    scores[whole.true_pairs[0], whole.true_pairs[1]] = -torch.inf
    expected = torch.nn.functional.cross_entropy(scores, whole.positives[:, 2])
    assert torch.allclose(ours._process_batch(whole, 0, 12), expected, atol=1e-5)


def test_labels_of_all_entities_are_the_tails_of_a_row():
    class Seen(BCEWithLogitsLoss):
        def process_lcwa_scores(self, predictions, labels, label_smoothing=None, num_entities=None):
            return labels

    found = all_entities_loss(
        Seen(), torch.zeros(2, 4), torch.tensor([0, 3]), torch.tensor([[0], [2]]), smoothing=0.0
    )
    assert found.tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]
