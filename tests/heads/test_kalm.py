"""KALM: equations (3) to (11) as a slow twin has them, and no word told of itself."""

import json
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from kgkit.errors import DamagedModel, UsageError  # noqa: E402
from kgkit.heads import KALM, KALMConfig  # noqa: E402
from kgkit.heads.settings import CONFIG, WEIGHTS  # noqa: E402

WORDS, TYPES = 7, ("LOC", "PER")
MEMBERS = torch.tensor(
    [[1, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0, 1]], dtype=torch.bool
)  # 4 is of both types; 6 of the last one, and general
PRIOR = torch.tensor(
    [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0.2, 0.8, 0], [0, 0.5, 0.5], [1, 0, 0], [0.3, 0, 0.7]]
)
TEXT = torch.tensor([[0, 4, 1, 6, 3, 2, 5], [5, 5, 3, 4, 0, 6, 1]])

BOTH = pytest.mark.parametrize("bidirectional", [False, True])


def kalm_of(seed=0, types=TYPES, **settings):
    torch.manual_seed(seed)
    config = KALMConfig(
        **{"words": WORDS, "types": types, "embedding": 6, "hidden": 5, "type_width": 4, **settings}
    )
    tables = (MEMBERS, PRIOR) if types else ()
    kalm = KALM(config, *tables).double()
    with torch.no_grad():
        for parameter in kalm.parameters():
            parameter.uniform_(-0.8, 0.8)
    return kalm.eval()


def targets_of(kalm):
    return TEXT[:, 1:-1] if kalm.config.bidirectional else TEXT[:, 1:]


def output_of(kalm):
    return kalm(TEXT if kalm.config.bidirectional else TEXT[:, :-1])


# -- a slow twin: a word at a time, no kernels ----------------------------------


def slow_lstm(layer, vector, hidden, cell):
    gates = layer.weight_ih_l0 @ vector + layer.bias_ih_l0 + layer.weight_hh_l0 @ hidden + layer.bias_hh_l0
    enters, stays, new, leaves = gates.chunk(4)
    cell = torch.sigmoid(stays) * cell + torch.sigmoid(enters) * torch.tanh(new)
    return torch.sigmoid(leaves) * torch.tanh(cell), cell


def slow_states(kalm, stack, words, half):
    config, results = kalm.config, []
    states = [(torch.zeros(out).double(), torch.zeros(out).double()) for _, out in config.widths()]
    for word in words:
        vector = kalm.embedding[word]
        if config.types:
            states_before = states[-1][0]
            scores = [row @ (kalm.types.projection[:, half] @ states_before) for row in kalm.types.embedding]
            shares = torch.stack(scores).softmax(0)
            mean = sum(share * row for share, row in zip(shares, kalm.types.embedding, strict=True))
            vector = torch.cat([vector, mean])
        for number, layer in enumerate(stack.layers):
            states[number] = slow_lstm(layer, vector, *states[number])
            vector = states[number][0]
        results.append(vector)
    return results


@torch.no_grad()
def slow_word(kalm, context, vector):
    """P(y, τ) of all words and types, as a dictionary, and P(τ)."""
    scores = torch.stack([row @ (kalm.types.projection @ context) for row in kalm.types.embedding])
    types, joint = scores.softmax(0), {}
    for kind in range(1 + len(TYPES)):
        own = [word for word in range(WORDS) if MEMBERS[kind, word]]
        exps = {word: math.exp(float(kalm.embedding[word] @ vector + kalm.bias[word])) for word in own}
        for word in own:
            joint[word, kind] = exps[word] / sum(exps.values()) * float(types[kind])
    return joint, types


def slow_row(kalm, words):
    """What the twin says of each word that is predicted in a row."""
    width = kalm.config.embedding
    forward = slow_states(kalm, kalm.directions[0], words, slice(0, width))
    if not kalm.config.bidirectional:
        return [slow_word(kalm, state, state) for state in forward[:-1]]
    backward = slow_states(kalm, kalm.directions[1], words.flip(0), slice(width, 2 * width))[::-1]
    results = []
    for index in range(1, len(words) - 1):
        context = torch.cat([forward[index - 1], backward[index + 1]])
        results.append(slow_word(kalm, context, kalm.join.weight @ context))
    return results


@BOTH
def test_equations_are_those_of_a_slow_twin(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    output, targets = output_of(kalm), targets_of(kalm)
    joint = kalm.joint(output, targets).exp()
    for row, words in enumerate(TEXT):
        for index, (expected, types) in enumerate(slow_row(kalm, words)):
            word = int(targets[row, index])
            wanted = torch.tensor([expected.get((word, kind), 0.0) for kind in range(3)]).double()
            torch.testing.assert_close(joint[row, index], wanted)
            torch.testing.assert_close(output.types[row, index].exp(), types)


@BOTH
def test_probabilities_sum_to_one_over_words_and_types(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    output, shape = output_of(kalm), targets_of(kalm).shape
    every = [kalm.joint(output, torch.full(shape, word)).exp() for word in range(WORDS)]
    torch.testing.assert_close(sum(part.sum(-1) for part in every), torch.ones(shape).double())
    torch.testing.assert_close(sum(every), output.types.exp())


def test_a_word_in_two_vocabularies_gets_the_sum():
    kalm = kalm_of()
    output, words = output_of(kalm), torch.full((2, 6), 4)
    joint = kalm.joint(output, words).exp()
    assert (joint[..., 0] == 0).all() and (joint[..., 1:] > 0).all()
    torch.testing.assert_close(kalm.log_likelihood(output, words).exp(), joint[..., 1] + joint[..., 2])


def test_the_loss_has_the_squared_divergence_from_the_prior_and_both_penalties():
    kalm = kalm_of(prior_weight=0.7, activation=2.0, slowness=3.0, bidirectional=True)
    output, targets = output_of(kalm), targets_of(kalm)
    prior = PRIOR.double()[targets] * 0.99 + 0.01 / 3
    types = output.types.exp()
    divergence = (types * (types / prior).log()).sum(-1)
    wanted = (-kalm.log_likelihood(output, targets) + 0.7 * divergence**2).mean()
    for states in output.raw:
        wanted = wanted + states.pow(2).mean() + 1.5 * (states[:, 1:] - states[:, :-1]).pow(2).mean()
    torch.testing.assert_close(kalm.loss(output, targets), wanted)


@BOTH
def test_the_penalties_of_training_are_of_dropped_states_and_of_steps_between_raw_ones(bidirectional):
    """AR is of the states behind dropout, TAR of those before it (Merity et al. 2017)."""
    kalm = kalm_of(activation=2.0, slowness=3.0, bidirectional=bidirectional).train()
    output, targets = output_of(kalm), targets_of(kalm)
    wanted, count = -kalm.log_likelihood(output, targets).mean(), len(output.raw)
    for dropped, raw in zip(output.dropped, output.raw, strict=True):
        assert not torch.equal(dropped, raw)
        steps = raw[:, 1:] - raw[:, :-1]
        wanted = wanted + (2 * dropped.pow(2).mean() + 3 * steps.pow(2).mean()) / count
    torch.testing.assert_close(kalm.loss(output, targets), wanted)


def test_padding_and_batches_change_no_loss_and_no_gradient():
    kalm = kalm_of(bidirectional=True, prior_weight=0.7, activation=2.0, slowness=3.0)
    lengths, count = torch.tensor([5, 7]), 8
    real = torch.arange(5) < (lengths - 2)[:, None]
    padded = torch.where(torch.arange(7) < lengths[:, None], TEXT, 3)

    def gradient_of(*losses):
        kalm.zero_grad()
        sum(losses).backward()
        return [weight.grad.clone() for weight in kalm.parameters()]

    def loss_of(words, sizes, mask):
        return kalm.loss(kalm(words, sizes), words[:, 1:-1], mask)

    together = loss_of(padded, lengths, real)
    wider = torch.nn.functional.pad(padded, (0, 4), value=4)
    more = loss_of(wider, lengths, torch.nn.functional.pad(real, (0, 4)))
    torch.testing.assert_close(more, together)
    for first, second in zip(gradient_of(together), gradient_of(more), strict=True):
        torch.testing.assert_close(first, second)
    plain = kalm_of(bidirectional=True, activation=0.0, slowness=0.0)
    rows = [
        plain.loss(plain(TEXT[row : row + 1, :size]), TEXT[row : row + 1, 1 : size - 1]) * (size - 2)
        for row, size in enumerate(lengths.tolist())
    ]
    both = plain.loss(plain(padded, lengths), padded[:, 1:-1], real)
    torch.testing.assert_close(sum(rows) / count, both)


@BOTH
@pytest.mark.parametrize("types", [(), TYPES])
def test_a_loss_reaches_all_weights_and_is_a_number(bidirectional, types):
    kalm = kalm_of(types=types, bidirectional=bidirectional, prior_weight=0.5).train()
    kalm.loss(output_of(kalm), targets_of(kalm)).backward()
    for name, weight in kalm.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any(), name


@BOTH
def test_in_half_precision_it_is_near(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    exact = kalm.log_likelihood(output_of(kalm), targets_of(kalm))
    kalm = kalm.bfloat16()
    output = output_of(kalm)
    rounded = kalm.log_likelihood(output, targets_of(kalm))
    assert output.types.isfinite().all() and float((rounded - exact).detach().abs().max()) < 0.1
    kalm.loss(output, targets_of(kalm)).backward()
    assert all(weight.grad.isfinite().all() for weight in kalm.parameters())


@BOTH
def test_a_type_that_no_word_of_a_batch_has_changes_nothing(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    output = output_of(kalm)
    general = torch.zeros_like(targets_of(kalm))  # a word of type 0 alone
    joint = kalm.joint(output, general)
    assert joint[..., 1:].isneginf().all()
    expected = (output.vectors @ kalm.embedding.T + kalm.bias)[..., MEMBERS[0]].log_softmax(-1)[..., 0]
    torch.testing.assert_close(joint[..., 0], output.types[..., 0] + expected)


def test_a_word_whose_prior_prefers_no_type_has_no_divergence_in_the_loss():
    kalm = kalm_of(prior_weight=0.7, bidirectional=True)
    kalm.prior = torch.full_like(kalm.prior, 1 / 3)
    plain = kalm_of(bidirectional=True)
    output, targets = output_of(kalm), targets_of(kalm)
    torch.testing.assert_close(kalm.loss(output, targets), plain.loss(output, targets))


def test_the_gradient_of_the_sums_is_that_of_differences(monkeypatch):
    from kgkit.heads import kalm as module

    monkeypatch.setattr(module, "_LOGITS", (9, 9))  # a row or two at a time
    drawn = [torch.randn(*shape).double().requires_grad_() for shape in ((5, 3), (4, 3), (4,))]
    # All; some rows over words that stand together; others over words that do not, some of them again.
    vocabularies = [
        module.ALL,
        (torch.tensor([], dtype=torch.int64), slice(0, 2)),
        (torch.tensor([0, 3]), slice(1, 3)),
        (torch.tensor([3, 1]), torch.tensor([0, 2, 3])),
    ]

    def sums(*tensors):
        return module.LogSumExp.apply(*tensors, vocabularies)

    assert torch.autograd.gradcheck(sums, drawn)
    assert torch.autograd.gradcheck(lambda *tensors: sums(*tensors)[2], drawn)  # the others get no gradient
    vectors, weights, bias = drawn
    logits = vectors @ weights.T + bias
    for (rows, words), found in zip(vocabularies, sums(*drawn), strict=True):
        torch.testing.assert_close(found, logits[rows][:, words].logsumexp(-1))


@BOTH
def test_the_posterior_of_a_word_is_what_it_shares_of_each_type(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    output, targets = output_of(kalm), targets_of(kalm)
    logits = output.vectors @ kalm.embedding.T + kalm.bias  # (B, S, V)
    within = torch.stack(
        [logits.masked_fill(~members, -torch.inf).log_softmax(-1) for members in MEMBERS], dim=-2
    )  # (B, S, 1 + K, V)
    of_words = within.gather(-1, targets[..., None, None].expand(*within.shape[:-1], 1))[..., 0]
    joint = output.types.exp() * of_words.exp()
    expected = joint / joint.sum(-1, keepdim=True)
    torch.testing.assert_close(kalm.posterior(output, targets), expected)
    general = torch.zeros_like(targets)  # a word of type 0 alone
    torch.testing.assert_close(kalm.posterior(output, general), PRIOR.double()[general])
    mixed = kalm.mixed_types(output, targets, PRIOR.double()[targets], 0.6)
    torch.testing.assert_close(mixed, 0.4 * expected + 0.6 * PRIOR.double()[targets])
    published = kalm.mixed_types(output, targets, PRIOR.double()[targets], 0.6, posterior=False)
    torch.testing.assert_close(published, 0.4 * output.types.exp() + 0.6 * PRIOR.double()[targets])


@BOTH
def test_no_word_is_told_of_itself(bidirectional):
    kalm = kalm_of(bidirectional=bidirectional)
    words = TEXT if bidirectional else TEXT[:, :-1]
    vectors = kalm.embed(words).detach().requires_grad_()
    output, targets = kalm.read(vectors), targets_of(kalm)
    for index in range(targets.shape[1]):
        # The likelihood reads the vector of the right word itself, in the projection; the input is another.
        said = (
            kalm.log_likelihood(output, targets)[:, index].sum() + output.types[:, index].logsumexp(0).sum()
        )
        [gradient] = torch.autograd.grad(said, vectors, retain_graph=True)
        reached = gradient.abs().sum((0, 2)) > 0
        own = index + 1
        if bidirectional:
            assert reached.tolist() == [position != own for position in range(words.shape[1])]
        else:
            assert reached.tolist() == [position < own for position in range(words.shape[1])]


class PlainAWD(nn.Module):
    """An AWD-LSTM without weight drop, as Merity et al. have it, written apart."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(WORDS, 6)
        self.rnns = nn.ModuleList([nn.LSTM(6, 5), nn.LSTM(5, 5), nn.LSTM(5, 6)])
        self.decoder = nn.Linear(6, WORDS)
        self.decoder.weight = self.encoder.weight

    def forward(self, words, states=None):
        """words (T, B) -> log probabilities (T, B, V), dropped, raw."""

        def locked(vectors, share):
            return vectors * functional.dropout(torch.ones_like(vectors[:1]), share, self.training)

        mask = functional.dropout(self.encoder.weight.new_ones(WORDS, 1), 0.1, self.training)
        vectors = locked(functional.embedding(words, mask * self.encoder.weight), 0.65)
        for rnn, share in zip(self.rnns, (0.3, 0.3, 0.0), strict=True):
            raw, _ = rnn(vectors)
            vectors = locked(raw, share) if share else raw
        dropped = locked(raw, 0.4)
        return self.decoder(dropped).log_softmax(-1), dropped, raw


def test_without_types_it_is_an_awd_lstm():
    kalm, plain = kalm_of(types=()), PlainAWD().double().eval()
    with torch.no_grad():
        plain.encoder.weight.copy_(kalm.embedding)
        plain.decoder.bias.copy_(kalm.bias)
    for rnn, layer in zip(plain.rnns, kalm.directions[0].layers, strict=True):
        rnn.load_state_dict(layer.state_dict())
    read, targets = TEXT[:, :-1], TEXT[:, 1:]
    logs, dropped, raw = plain(read.T)
    likelihood = logs.gather(-1, targets.T[..., None])[..., 0].T
    torch.testing.assert_close(kalm.log_likelihood(kalm(read), targets), likelihood)
    nats = -likelihood.mean() + 2 * dropped.pow(2).mean() + (raw[1:] - raw[:-1]).pow(2).mean()
    torch.testing.assert_close(kalm.loss(kalm(read), targets), nats)


def test_dropout_of_training_is_that_of_an_awd_lstm():
    kalm = kalm_of(types=(), embedding=40, hidden=40).train()
    torch.manual_seed(1)
    vectors = kalm.embed(torch.arange(WORDS)[None].repeat(400, 1))
    dropped = (vectors == 0).all(-1)
    assert (dropped == dropped[:1]).all(), "a word is dropped everywhere, or nowhere"
    output = kalm(TEXT.repeat(200, 1))
    gone = output.dropped[0] == 0
    assert (gone == gone[:, :1]).all(), "a mask is the same for all words of a row"
    assert gone[:, 0].double().mean() == pytest.approx(0.4, abs=0.02)
    scale = output.dropped[0][~gone] / output.raw[0][~gone]
    torch.testing.assert_close(scale, torch.full_like(scale, 1 / 0.6))


def test_first_weights_are_those_of_an_awd_lstm():
    torch.manual_seed(0)
    kalm = KALM(KALMConfig(words=500, types=()))
    assert (kalm.config.embedding, [layer.hidden_size for layer in kalm.directions[0].layers]) == (
        400, [1150, 1150, 400],
    )  # fmt: skip
    assert 0.099 < kalm.embedding.abs().max() <= 0.1 and not kalm.bias.any()


def test_states_are_carried():
    kalm = kalm_of()
    whole = kalm(TEXT)
    first = kalm(TEXT[:, :3])
    second = kalm(TEXT[:, 3:], state=first.state)
    torch.testing.assert_close(torch.cat([first.vectors, second.vectors], 1), whole.vectors)


def test_what_is_padded_reaches_no_word():
    kalm = kalm_of(bidirectional=True)
    alone = kalm(TEXT[:1, :5])
    lengths = torch.tensor([5, 7])
    together = kalm(TEXT, lengths)
    torch.testing.assert_close(together.vectors[:1, :3], alone.vectors)
    torch.testing.assert_close(together.types[:1, :3], alone.types)


def test_files_of_a_stranger_that_make_no_sense_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    kalm = kalm_of().float()
    kalm.save_pretrained(tmp_path)
    weights = load_file(tmp_path / WEIGHTS)
    save_file(weights | {"members": torch.zeros_like(weights["members"])}, tmp_path / WEIGHTS)
    with pytest.raises(DamagedModel, match="types or priors"):
        KALM.from_pretrained(tmp_path)
    save_file(weights | {"prior": torch.zeros_like(weights["prior"])}, tmp_path / WEIGHTS)
    with pytest.raises(DamagedModel, match="types or priors"):
        KALM.from_pretrained(tmp_path)
    settings = json.loads((tmp_path / CONFIG).read_text())
    (tmp_path / CONFIG).write_text(json.dumps(settings | {"words": 10**12}))
    with pytest.raises(DamagedModel, match="cannot be loaded"):
        KALM.from_pretrained(tmp_path)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UsageError, match="twice"):
        KALMConfig(words=3, types=("A", "A"))
    kalm = kalm_of(bidirectional=True)
    with pytest.raises(UsageError, match="three or more"):
        kalm(TEXT[:, :2])
