"""Maps for vectors of texts: their encoder reads the words of the target, once."""

import json

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.building import Entity
from kgkit.embedding.align import Alignment, align_encoder
from kgkit.embedding.align.anchors import Anchors
from kgkit.embedding.align.fitting import solve
from kgkit.embedding.text import TEXTS, TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import DamagedVectors, NotThere, SourceError, UsageError
from kgkit.vectors import Vectors, Work
from kgkit.vectors.layout import MANIFEST
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, WORDS, tiny_encoder

ANIMALS = (
    Entity("dog", "dog", "a big red dog", kind="thing"),
    Entity("cat", "Cat", "it eats the fruit", kind="thing"),
    Entity("hound", "red dog", "not a cat", kind="thing"),
    Entity("silent", kind="thing"),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoders")
    return tiny_encoder(path / "source"), tiny_encoder(path / "target", seed=1)


@pytest.fixture(scope="module")
def target(folders):
    return Encoder.load(str(folders[1]), device="cpu", dtype="float32")


@pytest.fixture
def kb(tmp_path):
    with build(tmp_path / "home", ANIMALS, name="animals") as opened:
        yield opened


@pytest.fixture
def vectors(kb, folders):
    return embed_text(kb, TextConfig(encoder=str(folders[0]), device="cpu", dtype="float32"))


def with_config(vectors, **changes):
    """Return *vectors* with other settings in their manifest; None takes one away."""
    manifest = json.loads((vectors.folder / MANIFEST).read_bytes())
    manifest["config"] |= changes
    manifest["config"] = {key: value for key, value in manifest["config"].items() if value is not None}
    (vectors.folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return Vectors.open(vectors.folder)


def test_the_map_is_that_of_the_words_as_the_vectors_encoder_encodes_them(vectors, folders, target):
    source = Encoder.load(str(folders[0]), device="cpu", dtype="float32")
    pieces, rows = target.word_pieces()
    words = vocabulary_words(pieces)
    assert sorted(words) == sorted(WORDS)  # no special piece, no ##s
    count = len(words)
    anchors = Anchors(np.arange(count), np.array([*words.values()]))
    expected, _ = solve(source.encode([*words]), rows, anchors)
    alignment = align_encoder(vectors, target)
    np.testing.assert_allclose(alignment.weight, expected, rtol=1e-2, atol=1e-3)
    assert alignment.report.anchors == count
    assert alignment.report.held_out.anchors == round(count / 10)


def test_a_word_is_written_as_the_template_writes_an_entity_of_that_label(kb, folders, target, monkeypatch):
    written = []
    encode = Encoder.encode_chunks
    template = "the fruit {label}: {description}"
    vectors = embed_text(kb, TextConfig(encoder=str(folders[0]), device="cpu", template=template))
    monkeypatch.setattr(
        Encoder,
        "encode_chunks",
        lambda self, texts, **how: written.extend(texts) or encode(self, texts, **how),
    )
    align_encoder(vectors, target)
    assert written == [f"the fruit {word}" for word in sorted(WORDS)]


def test_a_template_without_the_label_gives_the_word_alone(kb, folders, target):
    described = embed_text(kb, TextConfig(encoder=str(folders[0]), device="cpu", template="{description}"))
    labelled = embed_text(kb, TextConfig(encoder=str(folders[0]), device="cpu", template="{label}", name="l"))
    first, second = align_encoder(described, target), align_encoder(labelled, target)
    np.testing.assert_array_equal(first.weight, second.weight)


def test_what_is_added_later_is_mapped_without_another_fit(kb, vectors, target, tmp_path, folders):
    alignment = align_encoder(vectors, target)
    new = Entity("puppy", "", "a small dog", kind="thing")
    with build(tmp_path / "home", [*ANIMALS, new], name="animals") as later:
        updated = update_text(later, "text", device="cpu")
        kept = Alignment.load(updated, target)
        row = updated.gather([later.store.id_of("puppy")])
    np.testing.assert_array_equal(kept.weight, alignment.weight)
    expected = Encoder.load(str(folders[0]), device="cpu", dtype="float32").encode(["a small dog"])
    np.testing.assert_allclose(kept.apply(row), expected @ alignment.weight.T, atol=1e-4)


def test_labels_that_are_words_check_the_map_on_entities(kb, vectors, target):
    report = align_encoder(vectors, target, kb=kb).report
    assert report.labels.anchors == 2  # dog; Cat, as the pieces have lower case only
    assert set(report.labels.accuracy) == {1, 5, 10}
    assert report.entities.mean > 0
    assert align_encoder(vectors, target).report.labels is None


def test_texts_may_be_paired_by_a_file(vectors, target, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a big {word}\t{word}\n" for word in WORDS[:20]), encoding="utf-8")
    assert align_encoder(vectors, target, pairs=path).report.anchors == 20
    path.write_text("a big dog\tnothing\n", encoding="utf-8")
    with pytest.raises(SourceError, match="none of its 1 pairs"):
        align_encoder(vectors, target, pairs=path)


def test_vectors_that_keep_words_are_mapped_by_these_and_others_by_texts(kb, vectors, target):
    assert align_encoder(vectors, target).report.anchors == len(WORDS)
    with Work(kb, "plain", {}) as work:
        work.matrix(1, 2)[:] = 1
        plain = work.publish("hand")
    with pytest.raises(NotThere, match="keep no words"):
        align_encoder(plain, target)


@pytest.mark.parametrize("key", ["encoder", "fingerprint"])
def test_vectors_that_do_not_name_their_encoder_are_refused(vectors, target, key):
    with pytest.raises(DamagedVectors, match="does not name the encoder that made them"):
        align_encoder(with_config(vectors, **{key: None}), target)


def test_an_encoder_that_is_gone_or_another_is_named(vectors, target, tmp_path, folders):
    gone = str(tmp_path / "gone")
    with pytest.raises(NotThere, match=r"made the vectors animals/text is not there: .*gone"):
        align_encoder(with_config(vectors, encoder=gone), target)
    with pytest.raises(UsageError, match="were made with another"):
        align_encoder(with_config(vectors, encoder=str(folders[1])), target)


def test_an_encoder_of_another_width_is_refused(kb, vectors, target):
    with Work(kb, "narrow", dict(vectors.manifest.config)) as work:
        work.matrix(1, 2)[:] = 1
        np.save(work.folder / TEXTS, np.ones(1, np.uint64))
        narrow = work.publish("text", files=[TEXTS])
    with pytest.raises(UsageError, match=rf"of width {WIDTH}, and the vectors animals/narrow have 2"):
        align_encoder(narrow, target)


def test_a_rescaled_map_gives_entities_the_mean_norm_of_words(vectors, target):
    alignment = align_encoder(vectors, target, rescale=True)
    pieces, rows = target.word_pieces()
    mean = np.linalg.norm(rows[[*vocabulary_words(pieces).values()]], axis=1).mean()
    mapped = np.linalg.norm(Alignment.load(vectors, target).apply(vectors.gather(range(4))), axis=1)
    np.testing.assert_allclose(mapped, [mean, mean, mean, 0], rtol=1e-5)
    assert alignment.report.entities.mean == pytest.approx(mean)
