"""A re-ranker beside an encoder that reads pairs, and what a candidate can and cannot reach."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kgkit.errors import DamagedModel, UsageError  # noqa: E402
from kgkit.heads import KBertInputs, Reranker, RerankerConfig, RerankerInputs  # noqa: E402

WIDTH, WORDS, CONTEXT = 16, 40, 5
SIZES = (3, 2, 4)  # pieces of the candidates


def bert(seed=0):
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    return transformers.BertModel(config).double().eval()


def head(seed=0, **settings):
    """Return a re-ranker far from its beginning, with an encoder of its own."""
    model = bert(seed)
    config = RerankerConfig.of(model, **settings)
    reranker = Reranker(model, config, generator=torch.Generator().manual_seed(seed)).double().eval()
    with torch.no_grad():
        for weight in reranker.scorer.parameters():
            weight += torch.randn(weight.shape, generator=torch.Generator().manual_seed(9)).double()
    return reranker


def inputs(order=(0, 1, 2), seed=0, first=(-0.2, -2.0, -3.0)):
    """Return a mention with candidates in an order; what they are, the seed decides."""
    drawn = torch.Generator().manual_seed(seed)
    context = torch.randint(5, WORDS, (CONTEXT,), generator=drawn)
    texts = [torch.randint(5, WORDS, (size,), generator=drawn) for size in SIZES]
    texts = [texts[number] for number in order]
    sizes = [CONTEXT, *map(len, texts)]
    positions = [torch.arange(CONTEXT), *(CONTEXT + torch.arange(size) for size in sizes[1:])]
    branches = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))[None]
    ids, real = torch.cat([context, *texts])[None], torch.ones(1, sum(sizes), dtype=torch.bool)
    text = KBertInputs(ids, torch.cat(positions)[None], branches, real.long(), real, (branches > 0).long())
    mentions = torch.zeros_like(real)
    mentions[0, 1:3] = True
    scores = torch.tensor([[first[number] for number in order]])
    return RerankerInputs(text, mentions, torch.ones(1, len(order), dtype=torch.bool), scores)


def test_another_order_of_the_candidates_gives_the_same_scores():
    reranker = head()
    scores = reranker(inputs())[0]
    assert len(set(scores.tolist())) == 3
    for order in ((1, 0, 2), (2, 1, 0), (1, 2, 0)):
        torch.testing.assert_close(reranker(inputs(order))[0], scores[[*order]], atol=1e-10, rtol=0)


def test_a_candidate_alone_is_the_second_text_of_a_pair():
    reranker = head()
    model, scorer = reranker.kbert.model, reranker.scorer
    for number in range(3):
        given = inputs((number,))
        embedded = model.get_input_embeddings()(given.text.ids)
        embedded = embedded + given.mentions[..., None] * scorer.mark
        hidden = model(inputs_embeds=embedded, token_type_ids=given.text.types).last_hidden_state[0]
        candidate, mention = hidden[CONTEXT:].mean(0), hidden[1:3].mean(0)
        inner = torch.nn.functional.gelu(scorer.inner(torch.cat([candidate, mention, candidate * mention])))
        wanted = inner @ scorer.outer + scorer.weight * given.first[0, 0].double()
        torch.testing.assert_close(reranker(given)[0, 0], wanted, atol=1e-6, rtol=1e-6)


def test_candidates_are_read_together():
    reranker, given = head(), inputs()
    ids = given.text.ids.clone()
    ids[0, -1] = 5 + (ids[0, -1] - 4) % (WORDS - 5)  # of the last candidate
    other = reranker(given._replace(text=given.text._replace(ids=ids)))[0]
    assert (other - reranker(given)[0]).abs().min() > 1e-6


def test_the_first_stage_weighs_as_much_as_is_learnt():
    reranker = head()
    scores = reranker(inputs(first=(0.0, 0.0, 0.0)))
    weighed = reranker(inputs(first=(-1.0, -2.0, -3.0)))
    weight = reranker.scorer.weight
    torch.testing.assert_close(weighed - scores, weight * -torch.arange(1, 4).double()[None])
    assert Reranker(bert()).scorer.weight.item() == 1


def test_the_mention_is_marked():
    reranker, given = head(), inputs()
    mentions = torch.zeros_like(given.mentions)
    mentions[0, 3] = True
    assert not torch.allclose(reranker(given), reranker(given._replace(mentions=mentions)))


def test_a_control_reads_no_text_and_learns_one_number():
    control = head(control=True)
    trained = [name for name, weight in control.named_parameters() if weight.requires_grad]
    assert trained == ["scorer.weight"]
    scores = control(inputs())
    assert torch.equal(scores, control(inputs(seed=1)))
    torch.testing.assert_close(scores, control.scorer.weight * inputs().first.double())


def test_it_opens_with_its_encoder_or_around_one(tmp_path):
    reranker = head().float()
    reranker.save_pretrained(tmp_path, about="Of a test.")
    assert "Of a test." in (tmp_path / "README.md").read_text()
    scores = reranker(inputs())
    assert torch.equal(Reranker.from_pretrained(tmp_path, device="cpu")(inputs()), scores)
    around = Reranker.around(bert(seed=5).float(), tmp_path)
    assert not torch.equal(around(inputs()), scores)
    around.kbert.model.load_state_dict(reranker.kbert.model.state_dict())
    assert torch.equal(around(inputs()), scores) and not around.training


def test_what_does_not_fit_is_refused(tmp_path):
    reranker, given = head(), inputs()
    with pytest.raises(UsageError, match=r"expected candidates \(B, C\)"):
        reranker(given._replace(candidates=given.candidates[0]))
    with pytest.raises(UsageError, match="first has the shape"):
        reranker(given._replace(first=given.first[:, :2]))
    with pytest.raises(UsageError, match=r"mentions have \[2\] candidates, and texts of \[3\]"):
        reranker(given._replace(candidates=torch.tensor([[True, True, False]])))
    with pytest.raises(UsageError, match="the head is for an encoder of width 8"):
        Reranker(bert(), RerankerConfig(hidden=8, embedding=WIDTH))
    for settings in ({"hidden": 0}, {"embedding": 0}, {"dropout": 1.0}):
        with pytest.raises(UsageError, match="dropout is from 0 to below 1"):
            RerankerConfig(**{"hidden": 8, "embedding": 8, **settings})
    reranker.save_pretrained(tmp_path)
    settings = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(settings.replace('"hidden": 16', '"hidden": 12'))
    with pytest.raises(DamagedModel, match=r"config\.json asks for inner\.bias \[12\]"):
        Reranker.from_pretrained(tmp_path, device="cpu")
