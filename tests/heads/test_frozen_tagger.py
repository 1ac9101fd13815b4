"""The head of a tagger over an encoder that stays as it is."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.errors import DamagedModel, NotThere, UsageError  # noqa: E402
from kgkit.heads import FrozenTaggerConfig, FrozenWordTagger, WordTagger  # noqa: E402
from kgkit.heads.settings import CONFIG, WEIGHTS  # noqa: E402
from kgkit.heads.word_network import WordNetwork  # noqa: E402
from kgkit.inputs.tagging import SHAPES, TaggingConfig, WordReader, tagger_inputs  # noqa: E402
from kgkit.types import Document  # noqa: E402
from tests.tiny_encoder import tiny_encoder  # noqa: E402

TEXTS = ("the dog eats", "a big red dog of the city barks and it eats a fruit", "Dog", "two cats , a tree")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"))
    return Encoder.load(str(folder), device="cpu", dtype="float32")


def config(**settings):
    return FrozenTaggerConfig(
        **{"types": ("LOC", "PER"), "shapes": len(SHAPES), "layers": (1, 2), "width": 12, **settings}
    )


@pytest.fixture
def tagger(encoder):
    return FrozenWordTagger(encoder, config(), torch.Generator().manual_seed(0)).eval()


def windows(encoder, texts=TEXTS):
    reader = WordReader(encoder, TaggingConfig(size=16, context=3))
    return [window for text in texts for window in reader(Document("d", text)).windows]


def logits_of(tagger, some):
    with torch.no_grad():
        return tagger(tagger_inputs(some, padding=0)).numpy()


def test_words_have_logits_and_padding_reaches_nothing(tagger, encoder):
    some = windows(encoder)
    together = logits_of(tagger, some)
    assert together.shape[2] == 5
    for row, window in enumerate(some):
        [alone] = logits_of(tagger, [window])
        count = len(window.firsts)
        np.testing.assert_allclose(together[row, :count], alone, atol=1e-5)
        assert not together[row, count:].any()


def test_a_word_is_told_its_neighbors_and_its_shape(tagger, encoder):
    upper, lower = (logits_of(tagger, windows(encoder, [text]))[0] for text in ("Dog eats", "dog eats"))
    assert not np.allclose(upper[0], lower[0]) and not np.allclose(upper[1], lower[1])


def test_label_words_agrees_with_a_word_at_a_time(tagger, encoder):
    inputs = tagger_inputs(windows(encoder)[:1], padding=0)
    features, shapes = tagger.features(inputs), inputs.shapes.gather(1, inputs.firsts)
    with torch.no_grad():
        fast = tagger.label_words(features, shapes, inputs.words)[0]
        hidden = tagger.project(tagger.norm(features[0])) + tagger.shape(shapes[0])
        rows = [tagger.norms[0](torch.nn.functional.gelu(row)) for row in hidden]
        for block, norm in zip(tagger.blocks, tagger.norms[1:], strict=True):
            around = [torch.zeros(12), *rows, torch.zeros(12)]
            mixed = [block(torch.cat(around[at : at + 3])) for at in range(len(rows))]
            rows = [norm(row + torch.nn.functional.gelu(part)) for row, part in zip(rows, mixed, strict=True)]
        slow = torch.stack([tagger.label(row) for row in rows])
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-4)


def test_the_encoder_learns_nothing_and_is_no_part_of_the_head(tagger, encoder):
    tagger.train()
    inputs = tagger_inputs(windows(encoder), padding=0)
    gold = torch.where(inputs.words, 1, -1)
    WordTagger.loss(tagger(inputs), gold).backward()
    assert all(parameter.grad is not None for parameter in tagger.parameters())
    assert all(parameter.grad is None for parameter in encoder.model.parameters())
    assert not any("encoder" in name for name in tagger.state_dict())


def test_a_head_comes_back_from_its_folder_in_half_precision(tagger, encoder, tmp_path):
    tagger.save_pretrained(tmp_path / "head")
    assert sorted(path.name for path in (tmp_path / "head").iterdir()) == [CONFIG, WEIGHTS]
    with pytest.raises(UsageError, match=r"is not saved with it: use beside\(encoder, folder\)"):
        FrozenWordTagger.from_pretrained(tmp_path / "head")
    again = FrozenWordTagger.beside(encoder, tmp_path / "head")
    assert again.config == tagger.config and not again.training
    some = windows(encoder)
    np.testing.assert_allclose(logits_of(again, some), logits_of(tagger, some), atol=2e-2)


def test_what_no_encoder_can_give_is_refused(encoder):
    with pytest.raises(UsageError, match=r"has \d+ layers; the tagger reads \(1, 99\)"):
        FrozenWordTagger(encoder, config(layers=(1, 99)))
    for layers in ((), (0, 1), (2, 2)):
        with pytest.raises(UsageError, match="layers are"):
            config(layers=layers)
    for setting in ("width", "blocks", "shapes"):
        with pytest.raises(UsageError, match=setting):
            config(**{setting: 0})


def test_a_damaged_folder_is_refused_before_room_is_made(tagger, encoder, tmp_path):
    with pytest.raises(NotThere):
        FrozenWordTagger.beside(encoder, tmp_path / "none")
    folder = tmp_path / "head"
    tagger.save_pretrained(folder)
    settings = json.loads((folder / CONFIG).read_text())
    for changes in ({"width": 10**9}, {"blocks": 3}, {"layers": [1]}):
        (folder / CONFIG).write_text(json.dumps({**settings, **changes}))
        with pytest.raises(DamagedModel):
            FrozenWordTagger.beside(encoder, folder)
    (folder / CONFIG).write_text(json.dumps(settings))
    (folder / WEIGHTS).write_bytes(b"nothing")
    with pytest.raises(DamagedModel):
        FrozenWordTagger.beside(encoder, folder)


def test_it_is_asked_without_torch_and_says_the_same(tagger, encoder, tmp_path):
    with torch.no_grad():
        for parameter in tagger.parameters():
            if parameter.is_leaf and parameter.shape[-1] != 16:  # those of the head
                parameter.add_(torch.randn_like(parameter) * 0.3)
    tagger.save_pretrained(tmp_path)
    network = WordNetwork.load(tmp_path, encoder.width, encoder.depth)
    some = windows(encoder)
    expected = logits_of(FrozenWordTagger.beside(encoder, tmp_path), some)
    read = 0
    for rows, states in encoder.layers([window.ids.tolist() for window in some], network.config.layers):
        for row, features in zip(rows.tolist(), states, strict=True):
            window = some[row]
            found = network(features[window.firsts], window.shapes[window.firsts])
            np.testing.assert_allclose(found, expected[row, : len(window.firsts)], atol=1e-4)
            read += 1
    assert read == len(some)
    with pytest.raises(DamagedModel):
        WordNetwork.load(tmp_path, encoder.width + 1, encoder.depth)
    with pytest.raises(DamagedModel):
        WordNetwork.load(tmp_path, encoder.width, 1)
