"""The head of a tagger: labels are chosen as enumeration chooses them, and what is padded reaches nothing."""

import itertools
import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.errors import DamagedModel, UsageError  # noqa: E402
from kgkit.heads import WordTagger, WordTaggerConfig  # noqa: E402
from kgkit.heads.settings import CONFIG  # noqa: E402
from kgkit.heads.word_network import decode  # noqa: E402
from kgkit.inputs.tagging import SHAPES, TaggingConfig, WordReader, tagger_inputs  # noqa: E402
from kgkit.types import Document  # noqa: E402
from tests.tiny_encoder import tiny_encoder  # noqa: E402

TYPES = ("LOC", "PER")
READ = TaggingConfig(size=16, context=3)
TEXTS = (
    "the dog eats",
    "a big red dog of the city barks and it eats a fruit that grows in a tree with many cat",
    "Dog",
    "two cats , a tree",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


def tagger_of(folder, seed=0, **settings):
    """A tagger that is not near its beginning."""
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    tagger = WordTagger(encoder, WordTaggerConfig(types=TYPES, **settings)).eval()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        tagger.label.weight.normal_(std=0.5, generator=draw)
        if tagger.shape is not None:
            tagger.shape.weight.normal_(std=0.5, generator=draw)
    return tagger


@pytest.fixture(scope="module")
def tagger(folder):
    return tagger_of(folder, shapes=len(SHAPES))


def readings(tagger, texts=TEXTS):
    reader = WordReader(tagger.reads, READ)
    return [window for text in texts for window in reader(Document("d", text)).windows]


def logits_of(tagger, some):
    with torch.no_grad():
        return tagger(tagger_inputs(some, padding=0)).numpy()


# -- labels -----------------------------------------------------------------


def well_formed(labels):
    return all(
        label == 0 or label % 2 or (place and labels[place - 1] in (label, label - 1))
        for place, label in enumerate(labels)
    )


def names_of(labels):
    """Return the names of labels, one label at a time."""
    found = []
    for place, label in enumerate(labels):
        if label % 2:
            found.append([place, place + 1, label // 2])
        elif label:
            found[-1][1] += 1
    return [tuple(name) for name in found]


def enumerated(scores):
    """The slow twin: the best of all well-formed sequences, for each name the share of those that have it."""
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    every = [
        labels
        for labels in itertools.product(range(scores.shape[1]), repeat=len(scores))
        if well_formed(labels)
    ]
    weights = [math.exp(sum(logs[place, label] for place, label in enumerate(labels))) for labels in every]
    best = every[int(np.argmax(weights))]
    shares = [
        sum(weight for labels, weight in zip(every, weights, strict=True) if name in names_of(labels))
        for name in names_of(best)
    ]
    return names_of(best), [share / sum(weights) for share in shares]


@pytest.mark.parametrize("words", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_names_and_scores_are_those_of_all_sequences_written_out(words, spread):
    scores = np.random.default_rng(words).normal(size=(20, words, 5), scale=spread)
    found = decode(scores, np.ones((20, words), np.bool_))
    for row, names in zip(scores, found, strict=True):
        expected, shares = enumerated(row)
        assert [(name.first, name.end, name.type) for name in names] == expected
        assert [name.score for name in names] == pytest.approx(shares, abs=1e-9)


def test_what_cannot_be_is_never_said():
    # Every word by itself would go on in a name that nothing has begun.
    scores = np.full((1, 3, 5), -10.0)
    scores[..., 2] = 0.0
    [names] = decode(scores, np.ones((1, 3), np.bool_))
    assert [(name.first, name.end, name.type) for name in names] == [(0, 3, 0)]
    # A word of one type cannot go on in a name of another.
    scores = np.array([[[0.0, 9.0, 0, 0, 0], [3.0, 0, 2.0, 0, 9.0]]])
    [names] = decode(scores, np.ones((1, 2), np.bool_))
    assert (names[0].first, names[0].end, names[0].type) == (0, 1, 0)


def test_words_that_are_not_there_change_neither_names_nor_scores():
    scores = np.random.default_rng(0).normal(size=(6, 8, 5), scale=2)
    there = np.arange(8)[None] < np.array([8, 5, 3, 1, 0, 7])[:, None]
    together = decode(scores, there)
    for row, names in enumerate(together):
        count = int(there[row].sum())
        [alone] = decode(scores[row : row + 1, :count], there[row : row + 1, :count])
        assert [name[:3] for name in names] == [name[:3] for name in alone]
        assert [name.score for name in names] == pytest.approx([name.score for name in alone])
    assert together[4] == []
    assert decode(scores[:, :0], there[:, :0]) == [[]] * 6


def test_the_loss_is_the_mean_over_the_words_that_have_a_label():
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    gold = torch.tensor([[0, 3, -1], [4, -1, -1]])
    logs = torch.log_softmax(logits, -1)
    expected = -(logs[0, 0, 0] + logs[0, 1, 3] + logs[1, 0, 4]) / 3
    assert WordTagger.loss(logits, gold).item() == pytest.approx(expected.item())
    assert WordTagger.loss(logits, torch.full((2, 3), -1)).item() == 0


# -- the head ---------------------------------------------------------------


def test_padding_the_order_and_the_size_of_a_batch_change_nothing(tagger):
    some = readings(tagger)
    together = logits_of(tagger, some)
    turned = logits_of(tagger, some[::-1])[::-1]
    np.testing.assert_allclose(turned, together, atol=1e-5)
    for window, row in zip(some, together, strict=True):
        [alone] = logits_of(tagger, [window])
        np.testing.assert_allclose(row[: len(window.firsts)], alone, atol=1e-5)
        assert not row[len(window.firsts) :].any()


def test_what_is_padded_has_no_gradient(tagger):
    inputs = tagger_inputs(readings(tagger), padding=0)
    logits = tagger(inputs)
    gold = torch.where(inputs.words, 1, -1)
    table = tagger.encoder.get_input_embeddings().weight
    [gradient] = torch.autograd.grad(WordTagger.loss(logits, gold), table)
    assert not gradient[0].any()  # of [PAD]


def test_a_word_is_read_at_its_first_piece(tagger):
    reader = WordReader(tagger.reads, READ)
    [window] = reader(Document("d", "two cats eats")).windows  # [CLS] two cat ##s eats [SEP]
    assert window.firsts.tolist() == [1, 2, 4]
    with torch.no_grad():
        inputs = tagger_inputs([window], padding=0)
        embedded = tagger.encoder.get_input_embeddings()(inputs.ids) + tagger.shape(inputs.shapes)
        hidden = tagger.encoder(inputs_embeds=embedded).last_hidden_state[0, [1, 2, 4]]
        np.testing.assert_allclose(logits_of(tagger, [window])[0], tagger.label(hidden), atol=1e-5)


def test_shapes_of_words_are_read_and_are_nothing_at_first(folder, tagger):
    upper, lower = (readings(tagger, [text]) for text in ("THE DOG", "the dog"))
    told = [window._replace(ids=upper[0].ids) for window in lower]
    assert np.abs(logits_of(tagger, upper) - logits_of(tagger, told)).max() > 1e-3
    fresh = WordTagger(tagger.reads, WordTaggerConfig(types=TYPES, shapes=len(SHAPES))).eval()
    np.testing.assert_array_equal(logits_of(fresh, upper), logits_of(fresh, told))


def test_two_taggers_of_one_seed_are_equal(tagger):
    config = WordTaggerConfig(types=TYPES)
    first, second, other = (
        WordTagger(tagger.reads, config, torch.Generator().manual_seed(seed)).label.weight
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


# -- files ------------------------------------------------------------------


def test_files_that_are_not_a_tagger_are_refused(tagger, tmp_path):
    tagger.save_pretrained(tmp_path)
    whole = json.loads((tmp_path / CONFIG).read_text())
    for change in [
        {"types": []},
        {"types": ["A", "B", "C"]},
        {"shapes": 0},
    ]:
        (tmp_path / CONFIG).write_text(json.dumps(whole | change))
        with pytest.raises(DamagedModel):
            WordTagger.from_pretrained(tmp_path, device="cpu")


@pytest.mark.parametrize("settings", [{"types": ()}, {"types": ("A", "A")}, {"types": ("",)}, {"shapes": -1}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UsageError):
        WordTaggerConfig(**{"types": TYPES} | settings)
