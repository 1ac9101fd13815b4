"""KnowBert's entity linker: each equation is what plain loops say, and what is padded reaches nothing."""

import dataclasses
import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

import kgkit.heads  # noqa: E402
from kgkit.errors import DamagedModel, NotThere, UsageError  # noqa: E402
from kgkit.heads import EntityLinker, EntityLinkerConfig, LinkerInputs  # noqa: E402
from kgkit.heads.entity_linker import (  # noqa: E402  # noqa: E402
    CandidateScorer,
    SpanPooling,
    margin_losses,
    soft_losses,
    softmax_losses,
    weigh,
)
from kgkit.heads.parts import TransformerBlock  # noqa: E402
from kgkit.heads.settings import CONFIG, WEIGHTS  # noqa: E402
from tests.knowbert_twin import (  # noqa: E402
    N,
    inputs_of,
    numbers,
    slow_block,
    slow_linker,
    slow_pooling,
    softmax,
)
from tests.toys import run_python  # noqa: E402

H, E, D, F = 6, 8, 5, 2
SMALL = EntityLinkerConfig(hidden=H, width=E, stored=D, features=F, heads=2, inner=10, scorer=7)
CONFIGS = {
    "published": dataclasses.replace(SMALL, stored=None, features=1),
    "projected": SMALL,
    "alone": dataclasses.replace(SMALL, attention=False),
    "null": dataclasses.replace(SMALL, null=True),
    "threshold": dataclasses.replace(SMALL, threshold=0.0),
    "aida": dataclasses.replace(SMALL, loss="margin", null=True, threshold=0.0),
    "no-features": dataclasses.replace(SMALL, features=0),
    "mask": dataclasses.replace(SMALL, mask=True),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def linker_of(config, seed=0, spread=0.5):
    """A linker in double precision that is not near its beginning: every parameter is drawn anew."""
    linker = EntityLinker(config).double().eval()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in linker.parameters():
            parameter.normal_(std=spread, generator=draw)
    return linker


def gold_of(output, share=0.4, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(output.scores.shape, generator=draw) < share


@every_config
@pytest.mark.parametrize("seed", [0, 1])
def test_the_linker_is_what_plain_loops_say(config, seed):
    linker, inputs = linker_of(config, seed), inputs_of(config, seed=seed)
    output = linker(inputs)
    scores = np.full(output.scores.shape, -np.inf)
    probabilities = np.zeros(output.scores.shape)
    weighted, spans = np.zeros(output.weighted.shape), np.zeros(output.spans.shape)
    for place, found, mean, span in slow_linker(linker, inputs):
        for share, (column, score) in zip(softmax(list(found.values())), found.items(), strict=True):
            scores[*place, column], probabilities[*place, column] = score, share
        weighted[place], spans[place] = mean, span
    with torch.no_grad():
        np.testing.assert_allclose(output.scores.numpy(), scores, atol=1e-10)
        np.testing.assert_allclose(output.probabilities.numpy(), probabilities, atol=1e-10)
        np.testing.assert_allclose(output.weighted.numpy(), weighted, atol=1e-10)
        np.testing.assert_allclose(output.spans.numpy(), spans, atol=1e-10)
        expected = inputs.hidden @ linker.project.weight.T + linker.project.bias
        np.testing.assert_allclose(output.words.numpy(), expected.numpy(), atol=1e-10)


def test_a_span_is_pooled_by_learned_weights():
    pooling = SpanPooling(3).double()
    draw = torch.Generator().manual_seed(4)
    words = torch.randn(1, 6, 3, generator=draw, dtype=torch.float64)
    spans = torch.tensor([[[0, 1], [1, 5], [5, 6], [2, 2], [4, 9], [-1, -1]]])
    with torch.no_grad():
        found = pooling(words, spans)[0].numpy()
    assert np.array_equal(found[0], words[0, 0].numpy())  # one piece is itself
    assert not found[[3, 5]].any()  # and none is nothing
    weights = {f"p.{name}": value for name, value in numbers(pooling).items()}
    for (start, end), vector in zip(spans[0].tolist(), found, strict=True):
        if start >= 0:
            expected = slow_pooling(weights, "p", words[0].numpy(), start, end)
            np.testing.assert_allclose(vector, expected, atol=1e-12)


def test_a_block_lets_some_vectors_attend_to_others():
    block = TransformerBlock(8, 4, 12, dropout=0.5).double().eval()
    draw = torch.Generator().manual_seed(5)
    states = torch.randn(2, 3, 8, generator=draw, dtype=torch.float64)
    others = torch.randn(2, 5, 8, generator=draw, dtype=torch.float64)
    there = torch.tensor(
        [[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    ).bool()  # the second sentence has none to attend to
    with torch.no_grad():
        found = block(states, others, there).numpy()
    for sentence in range(2):
        seen = [others[sentence, k].numpy() for k in range(5) if there[sentence, k]]
        for place in range(3):
            expected = slow_block(numbers(block), "", states[sentence, place].numpy(), seen, 4)
            np.testing.assert_allclose(found[sentence, place], expected, atol=1e-12)


def test_a_block_is_a_layer_of_bert():
    torch.manual_seed(0)
    block = TransformerBlock(8, 2, 12, dropout=0.0).eval()
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, activation="gelu", batch_first=True, norm_first=False
    ).eval()
    with torch.no_grad():
        attention = theirs.self_attn
        attention.in_proj_weight.copy_(torch.cat([block.query.weight, block.key.weight, block.value.weight]))
        attention.in_proj_bias.copy_(torch.cat([block.query.bias, block.key.bias, block.value.bias]))
        attention.out_proj.load_state_dict(block.out.state_dict())
        for ours, other in (
            ("up", "linear1"),
            ("down", "linear2"),
            ("out_norm", "norm1"),
            ("down_norm", "norm2"),
        ):
            getattr(theirs, other).load_state_dict(getattr(block, ours).state_dict())
        states = torch.randn(3, 4, 8)
        there = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 1]]).bool()
        expected = theirs(states, src_key_padding_mask=~there)
        torch.testing.assert_close(block(states, states, there)[there], expected[there], atol=1e-5, rtol=1e-5)


# --- shapes, masks and batches ----------------------------------------------


def grown(inputs, pieces=0, mentions=0, candidates=0):
    """The same inputs with more padding, which holds numbers that must not be read."""

    def pad(value, *more, fill):
        # torch's padding is told from the last dimension backwards
        ways = [way for extra in reversed(more) for way in (0, extra)]
        return torch.nn.functional.pad(value, ways, value=fill)

    nan = math.nan
    return LinkerInputs(
        hidden=pad(inputs.hidden, pieces, 0, fill=1e3),
        spans=pad(inputs.spans, mentions, 0, fill=3),
        mentions=pad(inputs.mentions, mentions, fill=False),
        vectors=pad(inputs.vectors, mentions, candidates, 0, fill=nan),
        features=pad(inputs.features, mentions, candidates, 0, fill=nan),
        candidates=pad(inputs.candidates, 0, candidates, fill=False)
        if not mentions
        else pad(pad(inputs.candidates, 0, candidates, fill=False), mentions, 0, fill=True),
        null_features=None
        if inputs.null_features is None
        else pad(inputs.null_features, mentions, 0, fill=nan),
    )


def assert_same(found, expected):
    for name, tensor, wanted in zip(found._fields, found, expected, strict=True):
        torch.testing.assert_close(
            tensor, wanted, atol=1e-12, rtol=0, msg=lambda told, name=name: f"{name}: {told}"
        )


@every_config
@pytest.mark.parametrize("more", [{"pieces": 4}, {"mentions": 3}, {"candidates": 6}])
def test_padding_changes_nothing(config, more):
    linker, inputs = linker_of(config), inputs_of(config)
    expected, found = linker(inputs), linker(grown(inputs, **more))
    pieces, mentions, candidates = (
        inputs.hidden.shape[1],
        inputs.mentions.shape[1],
        inputs.candidates.shape[2],
    )
    columns = [*range(candidates), *([-1] if config.null else [])]
    assert not found.spans[:, mentions:].any()
    assert not found.weighted[:, mentions:].any()
    assert not found.probabilities[:, mentions:].any()
    assert found.scores[:, mentions:].isneginf().all()
    found = found._replace(
        scores=found.scores[:, :mentions, columns],
        probabilities=found.probabilities[:, :mentions, columns],
        weighted=found.weighted[:, :mentions],
        spans=found.spans[:, :mentions],
        words=found.words[:, :pieces],
    )
    assert_same(found, expected)


@every_config
def test_what_is_padded_has_a_gradient_of_exactly_zero(config):
    linker, inputs = linker_of(config), inputs_of(config)
    leaves = {
        name: getattr(inputs, name).clone().requires_grad_() for name in ("hidden", "vectors", "features")
    }
    inputs = inputs._replace(**leaves)
    output = linker(inputs)
    reached = output.scores[~output.scores.isneginf()].square().sum()
    reached = reached + output.weighted.square().sum() + output.spans.square().sum()
    reached.backward()
    real = inputs.candidates
    assert not leaves["features"].grad[~real].any()
    assert not leaves["vectors"].grad[~real].any()
    assert leaves["vectors"].grad[real].any()
    assert leaves["features"].grad[real].any() == bool(config.features)
    inside = torch.zeros(inputs.hidden.shape[:2], dtype=torch.bool)
    for sentence, mention in inputs.mentions.nonzero().tolist():
        start, end = inputs.spans[sentence, mention].tolist()
        inside[sentence, start:end] = True
    assert inside.any() and not inside.all()
    assert torch.equal(leaves["hidden"].grad.any(-1), inside)


def test_a_mention_reaches_others_through_its_attention_alone():
    for attention in (True, False):
        config = dataclasses.replace(SMALL, attention=attention)
        inputs = inputs_of(config)
        hidden = inputs.hidden.clone().requires_grad_()
        spans = torch.tensor([[0, 2], [2, 4], [4, 6], [6, 8]]).expand(3, 4, 2)
        mentions = torch.ones(3, 4, dtype=torch.bool)
        mentions[0, 3] = False
        output = linker_of(config)(inputs._replace(hidden=hidden, spans=spans, mentions=mentions))
        output.spans[0, 0].sum().backward()
        assert hidden.grad[0, 0:2].any()
        assert bool(hidden.grad[0, 2:6].any()) is attention
        assert not hidden.grad[0, 6:].any()  # the mention that is not there
        assert not hidden.grad[1:].any()  # other sentences


@every_config
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_nothing_is_ever_nan(config):
    linker, inputs = linker_of(config), inputs_of(config)
    with torch.autograd.detect_anomaly(check_nan=True):
        output = linker(inputs)
        gold = gold_of(output)
        loss = linker.loss(output, gold) + output.weighted.sum() + output.probabilities.square().sum()
        loss.backward()
    for value in output:
        assert not value.isnan().any()
    assert all(not p.grad.to_dense().isnan().any() for p in linker.parameters() if p.grad is not None)
    assert output.probabilities.sum(-1)[~output.scores.isneginf().all(-1)].allclose(torch.ones(1).double())


def test_a_mention_without_candidates_has_zeros():
    for config in (SMALL, CONFIGS["threshold"]):
        inputs = inputs_of(config)
        output = linker_of(config)(inputs)
        assert inputs.mentions[0, 1] and not inputs.candidates[0, 1].any()
        assert output.scores[0, 1].isneginf().all()
        assert not output.probabilities[0, 1].any()
        assert not output.weighted[0, 1].any()
        assert output.spans[0, 1].any()


@pytest.mark.parametrize("config", [SMALL, CONFIGS["aida"]], ids=["small", "aida"])
@pytest.mark.parametrize(("mentions", "candidates"), [(0, 4), (3, 0), (0, 0)])
def test_a_batch_without_mentions_or_candidates_is_read(config, mentions, candidates):
    linker = linker_of(config).train()
    inputs = inputs_of(config)
    output = linker(
        inputs._replace(
            spans=inputs.spans[:, :mentions],
            mentions=inputs.mentions[:, :mentions],
            vectors=inputs.vectors[:, :mentions, :candidates],
            features=inputs.features[:, :mentions, :candidates],
            candidates=inputs.candidates[:, :mentions, :candidates],
            null_features=None if inputs.null_features is None else inputs.null_features[:, :mentions],
        )
    )
    assert output.scores.shape == (3, mentions, candidates + config.null)
    loss = linker.loss(output, torch.zeros(output.scores.shape, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert not output.weighted.isnan().any()


def test_cached_vectors_of_mentions_are_read_as_spans_of_one_piece():
    config = dataclasses.replace(SMALL, attention=False)
    linker, inputs = linker_of(config), inputs_of(config, pieces=4)
    places = torch.arange(4)
    spans = torch.stack([places, places + 1], dim=-1).expand(3, 4, 2)
    output = linker(inputs._replace(spans=spans))
    assert torch.allclose(output.spans[inputs.mentions], linker.norm(output.words)[inputs.mentions])


# --- NULL and δ -------------------------------------------------------------


def test_what_lies_at_delta_counts_and_what_lies_below_does_not():
    scores = torch.tensor([[[0.5, 0.25, 0.2, -math.inf], [0.2, 0.1, -9.0, 0.0], [-math.inf] * 4]])
    entities = torch.eye(4).expand(1, 3, 4, 4)
    null = torch.full((4,), 7.0)
    found = weigh(scores, entities, 0.25, null)[0]
    share = math.exp(0.5) / (math.exp(0.5) + math.exp(0.25))
    torch.testing.assert_close(found[0], torch.tensor([share, 1 - share, 0, 0]))
    assert torch.equal(found[1], null)
    assert not found[2].any()
    torch.testing.assert_close(weigh(scores, entities, None, None)[0, :2], torch.softmax(scores[0, :2], -1))


def test_null_is_a_candidate_of_every_mention_that_is_there():
    config = CONFIGS["null"]
    linker, inputs = linker_of(config), inputs_of(config)
    output = linker(inputs)
    assert torch.equal(~output.scores[..., -1].isneginf(), inputs.mentions)
    # A mention with no other candidate means NULL.
    assert output.probabilities[0, 1, -1] == 1
    torch.testing.assert_close(output.weighted[0, 1], linker.null.data)
    without = linker(inputs._replace(null_features=None))
    zeros = linker(inputs._replace(null_features=torch.zeros_like(inputs.null_features)))
    assert_same(without, zeros)
    assert not torch.allclose(
        without.scores[..., -1][inputs.mentions], output.scores[..., -1][inputs.mentions]
    )


def test_a_masked_mention_has_the_entity_mask_alone_and_its_own_entities_reach_nothing():
    config = dataclasses.replace(SMALL, mask=True)
    linker, inputs = linker_of(config), inputs_of(config)
    masked = torch.zeros_like(inputs.mentions)
    masked[0, 0] = True
    inputs = inputs._replace(masked=masked, vectors=inputs.vectors.requires_grad_())
    output = linker(inputs)
    columns = output.scores.shape[-1]
    assert (~output.scores[0, 0].isneginf()).tolist() == [True] + [False] * (columns - 1)
    torch.testing.assert_close(output.weighted[0, 0], linker.mask)
    plain = linker(inputs._replace(masked=None))
    torch.testing.assert_close(output.scores[1:], plain.scores[1:])
    (output.weighted.sum() + output.scores.nan_to_num(neginf=0).sum()).backward()
    assert not inputs.vectors.grad[0, 0].any() and inputs.vectors.grad.any()
    assert linker.mask.grad.any()


def test_neither_the_priors_of_what_is_hidden_nor_how_many_there_are_reach_anything():
    config = dataclasses.replace(SMALL, mask=True, null=True, threshold=0.0)
    linker, inputs = linker_of(config), inputs_of(config)
    masked = torch.zeros_like(inputs.mentions)
    masked[0, 0] = True
    told = {
        name: getattr(inputs, name).clone().requires_grad_()
        for name in ("vectors", "features", "null_features")
    }
    inputs = inputs._replace(masked=masked, **told)
    output = linker(inputs)
    (output.weighted.sum() + output.probabilities.square().sum()).backward()
    for tensor in told.values():
        assert not tensor.grad[0, 0].any() and tensor.grad.any()
    fewer = inputs.candidates.clone()
    fewer[0, 0, 1:] = False
    assert_same(linker(inputs._replace(candidates=fewer)), output)


def test_null_is_trained_where_it_is_a_candidate():
    for name, trained in (("null", True), ("aida", True), ("threshold", False)):
        linker = linker_of(CONFIGS[name])
        output = linker(inputs_of(linker.config))
        linker.loss(output, gold_of(output)).backward()
        assert (linker.null.grad is not None) is trained
        # Every parameter that wants a gradient has one: several processes wait for each.
        assert all(p.grad is not None for p in linker.parameters() if p.requires_grad)
    assert EntityLinker(SMALL).null is None


# --- losses -----------------------------------------------------------------


def slow_losses(scores, gold, loss, margin=0.2):
    """Each mention's loss by its definition; None where it has no gold among its candidates."""
    found = []
    for row, marks in zip(scores.flatten(0, 1).tolist(), gold.flatten(0, 1).tolist(), strict=True):
        pairs = [(score, is_gold) for score, is_gold in zip(row, marks, strict=True) if score != -math.inf]
        if not any(is_gold for _, is_gold in pairs):
            found.append(None)
        elif loss == "softmax":
            total = sum(math.exp(score) for score, _ in pairs)
            found.append(-math.log(sum(math.exp(score) for score, is_gold in pairs if is_gold) / total))
        else:
            found.append(
                sum(max(0.0, margin - score if is_gold else margin + score) for score, is_gold in pairs)
            )
    return found


@pytest.mark.parametrize("loss", ["softmax", "margin"])
@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_losses_are_what_plain_loops_say(loss, share):
    draw = torch.Generator().manual_seed(9)
    scores = torch.randn(6, 7, 5, generator=draw, dtype=torch.float64)
    scores[torch.rand(6, 7, 5, generator=draw) < 0.3] = -math.inf
    scores[0, 0] = -math.inf
    scores.requires_grad_()
    gold = (
        torch.rand(6, 7, 5, generator=draw) < share
    )  # several of a mention, some where there is no candidate
    expected = slow_losses(scores, gold, loss)
    assert share == 1 or None in expected
    found = softmax_losses(scores, gold) if loss == "softmax" else margin_losses(scores, gold, 0.2)
    zeros = [value or 0.0 for value in expected]
    np.testing.assert_allclose(found.detach().flatten().numpy(), zeros, atol=1e-12)
    found.sum().backward()
    assert not scores.grad.isnan().any()
    ignored = torch.tensor([value is None for value in expected]).reshape(6, 7)
    assert not scores.grad[ignored].any()
    assert not scores.grad[scores.isneginf()].any()


@pytest.mark.parametrize("name", ["projected", "null", "aida"])
def test_the_loss_is_the_mean_over_the_mentions_that_have_gold(name):
    config = CONFIGS[name]
    linker = linker_of(config)
    output = linker(inputs_of(config))
    gold = gold_of(output, 0.3, seed=2)
    expected = slow_losses(output.scores, gold, config.loss, config.margin)
    losses, counted = linker.losses(output, gold)
    assert counted.flatten().tolist() == [value is not None for value in expected]
    assert 0 < counted.sum() < inputs_of(config).mentions.sum()
    told = [value for value in expected if value is not None]
    assert linker.loss(output, gold).item() == pytest.approx(sum(told) / len(told))
    assert losses.sum().item() == pytest.approx(sum(told))


@pytest.mark.parametrize("name", ["projected", "aida"])
def test_without_gold_there_is_nothing_to_learn(name):
    linker = linker_of(CONFIGS[name])
    output = linker(inputs_of(linker.config))
    loss = linker.loss(output, torch.zeros_like(output.scores, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert not any(p.grad.any() for p in linker.parameters() if p.grad is not None)


def test_the_loss_to_a_teacher_is_the_cross_entropy_to_its_probabilities():
    scores = torch.tensor([[[1.0, 2.0, -torch.inf], [-torch.inf] * 3, [0.5, -torch.inf, -torch.inf]]])
    targets = torch.tensor([[[0.25, 0.75, 0.0], [0.0] * 3, [1.0, 0.0, 0.0]]])
    first, second = 1 - math.log(math.e + math.e**2), 2 - math.log(math.e + math.e**2)
    expected = -(0.25 * first + 0.75 * second)
    np.testing.assert_allclose(soft_losses(scores, targets)[0], [expected, 0, 0], atol=1e-6)


@every_config
def test_a_linker_learns_of_a_teacher_as_of_gold_where_the_teacher_is_sure(config):
    linker = linker_of(config)
    output = linker(inputs_of(config))
    gold = torch.zeros_like(output.scores, dtype=torch.bool)
    gold[..., 0] = ~output.scores[..., 0].isneginf()
    losses, counted = linker.losses(output, gold.double())
    _, expected = linker.losses(output, gold)
    assert torch.equal(counted, expected)
    np.testing.assert_allclose(losses.detach(), softmax_losses(output.scores, gold).detach(), atol=1e-9)
    losses.sum().backward()
    assert all(
        weight.grad is None or weight.grad.to_dense().isfinite().all() for weight in linker.parameters()
    )


def test_a_loss_of_scores_that_diverged_says_so():
    scores = torch.tensor([[[math.nan, 1.0]]])
    gold = torch.tensor([[[False, True]]])
    assert softmax_losses(scores, gold).isnan().all()
    assert margin_losses(scores, gold, 0.2).isnan().all()


# --- entities that come once, dropout ---------------------------------------


@every_config
def test_entities_that_are_given_once_are_the_same(config):
    linker, inputs = linker_of(config), inputs_of(config)
    drawn = torch.Generator().manual_seed(3)
    rows = torch.randint(N, inputs.candidates.shape, generator=drawn)
    once = torch.randn(N, inputs.vectors.shape[-1], generator=drawn, dtype=torch.float64)
    plain = linker(inputs._replace(vectors=once[rows]))
    found = linker(inputs._replace(vectors=once, rows=rows.masked_fill(~inputs.candidates, 0)))
    for tensor, wanted in zip(found, plain, strict=True):
        torch.testing.assert_close(tensor, wanted)


def test_a_batch_without_entities_may_give_none():
    inputs = inputs_of(SMALL)
    nothing = torch.zeros_like(inputs.candidates)
    empty = inputs._replace(
        candidates=nothing,
        vectors=inputs.vectors[0, 0, :0],
        rows=torch.zeros_like(nothing, dtype=torch.int64),
    )
    assert not linker_of(SMALL)(empty).weighted.any()


@pytest.mark.parametrize("name", ["dropout", "input_dropout"])
def test_dropout_acts_while_training_alone(name):
    config = dataclasses.replace(SMALL, **{"dropout": 0.0, name: 0.5})
    linker, inputs = linker_of(config), inputs_of(config)
    assert_same(linker(inputs), linker(inputs))
    torch.manual_seed(0)
    assert not torch.allclose(linker.train()(inputs).spans, linker.eval()(inputs).spans)


def test_the_first_parameters_come_from_the_generator():
    first, again, other = (EntityLinker(CONFIGS["aida"], torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    assert not torch.equal(first.project.weight, other.project.weight)
    assert first.project.weight.std().item() == pytest.approx(0.02, rel=0.5)


# --- precision --------------------------------------------------------------


def test_a_score_is_not_rounded_under_autocast():
    scorer = CandidateScorer(2, 16)
    drawn = torch.Generator().manual_seed(0)
    spans, entities = torch.randn(2, 3, 8, generator=drawn), torch.randn(2, 3, 5, 8, generator=drawn)
    features = torch.randn(2, 3, 5, 2, generator=drawn)
    exact = scorer(spans, entities, features)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(scorer(spans, entities, features), exact)
        rounded = scorer(spans.bfloat16(), entities.bfloat16(), features)
    assert rounded.dtype == torch.float32 and not torch.equal(rounded, rounded.bfloat16().float())


@every_config
def test_bfloat16_is_near_and_scores_stay_exact_enough_for_a_loss(config):
    linker = linker_of(config, spread=0.2).float()
    inputs = inputs_of(config)
    inputs = inputs._replace(hidden=inputs.hidden.float(), vectors=inputs.vectors.half())
    expected = linker(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = linker(inputs)
        loss = linker.loss(mixed, gold_of(mixed))
    loss.backward()
    half = linker.bfloat16()(inputs)
    assert mixed.scores.dtype == half.scores.dtype == loss.dtype == torch.float32
    assert half.weighted.dtype == torch.bfloat16
    for found in (mixed, half):
        # δ lies where a rounded score may fall on either side of it
        names = (
            ("probabilities", "spans")
            if config.threshold is not None
            else ("probabilities", "spans", "weighted")
        )
        for name in names:
            torch.testing.assert_close(
                getattr(found, name).float(), getattr(expected, name), atol=0.1, rtol=0.1
            )


# --- on disk ----------------------------------------------------------------


def test_a_head_in_half_precision_stays_one(tmp_path):
    EntityLinker(SMALL).bfloat16().save_pretrained(tmp_path)
    assert EntityLinker.from_pretrained(tmp_path, device="cpu").project.weight.dtype == torch.bfloat16


def test_a_linker_for_minilm_takes_less_than_four_megabytes(tmp_path):
    EntityLinker(EntityLinkerConfig(hidden=384, stored=384, features=6)).save_pretrained(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 4_000_000


def test_what_is_no_saved_head_is_refused(tmp_path):
    def load():
        return EntityLinker.from_pretrained(tmp_path, device="cpu")

    with pytest.raises(NotThere, match=r"there is no config\.json"):
        load()
    EntityLinker(SMALL).save_pretrained(tmp_path)
    good = json.loads((tmp_path / CONFIG).read_text(encoding="utf-8"))
    for change, error, told in (
        ({"head": "tagger"}, UsageError, "tagger"),
        ({"wings": 2}, DamagedModel, "wings"),
        ({"entities": 7}, DamagedModel, "entities 7"),
        ({"heads": "two"}, DamagedModel, "heads"),
        ({"heads": 3}, DamagedModel, "3 heads"),
        ({"scorer": 8}, DamagedModel, "score"),
        ({"scorer": 10**12}, DamagedModel, "score"),
        ({"null": True}, DamagedModel, "null"),
    ):
        (tmp_path / CONFIG).write_text(json.dumps(good | change), encoding="utf-8")
        with pytest.raises(error, match=told):
            load()
    older = {"entities": 0, "norms": True, "entity_dropout": 0.0, "control": False}
    (tmp_path / CONFIG).write_text(json.dumps(good | older), encoding="utf-8")
    assert load().config == SMALL
    (tmp_path / CONFIG).write_text("{", encoding="utf-8")
    with pytest.raises(DamagedModel, match="cannot be read"):
        load()
    (tmp_path / CONFIG).write_text(json.dumps(good), encoding="utf-8")
    whole = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(whole[:-9])
    with pytest.raises(DamagedModel):
        load()


# --- what cannot be ---------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hidden": 0}, "hidden is 0; it is 1 or more"),
        ({"stored": 0}, "stored is 0; it is 1 or more"),
        ({"features": -1}, "features is -1; it is 0 or more"),
        ({"margin": -0.1}, r"margin is -0\.1; it is 0 or more"),
        ({"width": 9}, "a width of 9 cannot be divided among 2 heads"),
        ({"loss": "hinge"}, "loss is 'hinge'; it is 'softmax' or 'margin'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, told):
    with pytest.raises(UsageError, match=told):
        dataclasses.replace(SMALL, **settings)


def test_naming_the_heads_loads_no_torch():
    done = run_python("import sys, kgkit.heads; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'KnowBret'"):
        kgkit.heads.KnowBret  # noqa: B018


# --- learning ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "margin"])
def test_a_small_problem_is_learnt(name):
    """A hidden map leads from a mention's word pieces to its entity; a third of the mentions mean NULL."""
    torch.manual_seed(0)
    config = EntityLinkerConfig(
        hidden=12, width=16, stored=10, inner=32, heads=2, scorer=16, loss=name, null=True, dropout=0.0,
        threshold=0.0 if name == "margin" else None,
    )  # fmt: skip
    linker = EntityLinker(config)
    entities, leads = torch.randn(30, 10), torch.randn(10, 12)
    optimizer = torch.optim.AdamW((p for p in linker.parameters() if p.requires_grad), lr=5e-3)

    def batch(sentences):
        ids = torch.rand(sentences, 6, 30).argsort(-1)[..., :5]  # (B, M, C)
        column = torch.randint(5, (sentences, 6))
        meant = entities[ids.gather(-1, column[..., None]).squeeze(-1)]  # (B, M, D)
        none = torch.rand(sentences, 6) < 1 / 3
        pieces = torch.where(none[..., None], torch.randn(sentences, 6, 12), meant @ leads)
        hidden = torch.stack([pieces, torch.randn_like(pieces)], dim=2).flatten(1, 2)  # (B, T, H), T = 2 M
        # Those that mean NULL are told by a mark in their features alone.
        features = torch.rand(sentences, 6, 5, 1) * ~none[..., None, None]
        starts = 2 * torch.arange(6)
        inputs = LinkerInputs(
            hidden=hidden,
            spans=torch.stack([starts, starts + 1], dim=-1).expand(sentences, 6, 2),
            mentions=torch.ones(sentences, 6, dtype=torch.bool),
            vectors=entities[ids],
            features=features,
            candidates=torch.ones(sentences, 6, 5, dtype=torch.bool),
            null_features=none[..., None].float(),
        )
        return inputs, column.masked_fill(none, 5)

    def accuracy():
        inputs, gold = batch(100)
        with torch.no_grad():
            return (linker(inputs).scores.argmax(-1) == gold).float().mean().item()

    assert accuracy() < 0.5
    for _ in range(400):
        inputs, gold = batch(32)
        output = linker(inputs)
        optimizer.zero_grad()
        linker.loss(output, torch.nn.functional.one_hot(gold, 6).bool()).backward()
        optimizer.step()
    assert accuracy() > 0.95
