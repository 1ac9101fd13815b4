"""What a first stage says of documents it has not seen, and coherence above model types that learn."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.candidates import generator_for
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking import Linker
from kgkit.models.kinds import LINKER
from kgkit.training.linkers.cross_fitting import (
    cross_fit_head,
    cross_fit_ridge,
    documents_of,
    drop_documents,
    folds_of,
)
from kgkit.training.linkers.head import HeadConfig
from kgkit.training.linkers.labelled import LabelledDocument, labelled_entities
from kgkit.training.linkers.means import LinkerData, TrainingSet
from kgkit.training.linkers.ridge import train_ridge
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.linkers.train import _gains, train_linker
from kgkit.types import Alias, Document, Entity, Triple
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

READ = SpanConfig(layers=(-1, 1), size=16, context=2)
RECORDS = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hot dog", "dog", "it eats the fruit"),
    Entity("tree", "tree", "it grows"),
    Entity("fruit", "fruit", "round"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot dog", 2),
    Alias("tree", "tree", 1),
    Alias("fruit", "fruit", 1),
    Triple("dog", "barks at", "tree"),
    Triple("hot dog", "made with", "fruit"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def kb(tmp_path_factory, encoder, folder):
    with build(tmp_path_factory.mktemp("home"), RECORDS, name="words") as opened:
        text = TextConfig(
            encoder=str(folder), device="cpu", dtype="float32", template="{label}: {description}"
        )
        embed_text(opened, text, encoder=encoder)
        yield opened


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Thirty documents: where there is a tree, the dog barks; where there is fruit, it is a hot one."""
    path = tmp_path_factory.mktemp("data") / "dogs.jsonl"
    lines = []
    for number in range(30):
        other, meant = ("fruit", "hot dog") if number % 3 else ("tree", "dog")
        words = ["the", "dog", "and", *("a", "big")[: number % 2], other]
        at = len(words) - 1
        mentions = [
            {"start": 1, "end": 2, "entity": meant},
            {"start": at, "end": at + 1, "entity": other},
        ]
        lines.append(json.dumps({"doc_id": number, "tokens": words, "mentions": mentions}) + "\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture
def part(kb, encoder, data, tmp_path):
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    reader = SpanReader(encoder, READ)
    return reader, TrainingSet(reader, list(labelled_entities(kb, generator, data)), tmp_path, None)


def test_folds_are_of_documents_in_a_row_and_as_long_as_each_other():
    assert [one.tolist() for one in folds_of(5, 2)] == [
        [True, True, True, False, False],
        [False, False, False, True, True],
    ]
    with pytest.raises(UsageError, match="at least 3 documents of training data, found 2"):
        list(folds_of(2, 3))


def test_a_part_without_some_documents_is_that_of_the_others(kb, encoder, data, part, tmp_path):
    reader, whole = part
    own = np.arange(30) % 4 == 1
    found = drop_documents(whole, own)
    others = [one for one, leaves in zip(whole.labelled, own, strict=True) if not leaves]
    alone = TrainingSet(reader, others, tmp_path / "alone", None)
    assert found.labelled == others
    for name in ("rows", "documents", "meanings", "entities"):
        assert np.array_equal(getattr(found, name), getattr(alone, name))
    np.testing.assert_allclose(found.vectors, alone.vectors, atol=2e-3)
    kept = [(one.document.id, vectors) for one, vectors in documents_of(whole, ~own)]
    assert [name for name, _ in kept] == [one.document.id for one in others]
    assert np.array_equal(np.concatenate([vectors for _, vectors in kept]), found.vectors.astype(np.float32))


def test_what_means_say_of_a_document_does_not_depend_on_what_it_means(kb, part):
    """Other right candidates in a stretch change what is said of the others, and nothing of it."""
    reader, whole = part
    vectors = kb.vectors("text")
    before = cross_fit_ridge(LinkerData(reader, vectors, [whole]), 0.1, 3)
    changed = drop_documents(whole, np.zeros(30, bool))
    first = changed.documents < 10
    dog, hot = kb.id("dog"), kb.id("hot dog")
    swapped = np.where(changed.meanings == dog, hot, np.where(changed.meanings == hot, dog, changed.meanings))
    changed.meanings = np.where(first, swapped, changed.meanings).astype(np.uint32)
    changed.entities = changed.meanings.copy()
    after = cross_fit_ridge(LinkerData(reader, vectors, [changed]), 0.1, 3)
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        same = all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert same == (number < 10)
    whole_map = train_ridge(LinkerData(reader, vectors, [whole]))
    assert len(whole_map.arrays.meanings) == 4


def test_what_heads_say_of_a_document_does_not_depend_on_what_it_means(kb, part, tmp_path):
    reader, whole = part
    vectors, config = kb.vectors("text"), HeadConfig(width=8, epochs=1, batch=16)
    dog, hot = kb.id("dog"), kb.id("hot dog")

    def scores(labelled, meanings, name):
        changed = drop_documents(whole, np.zeros(30, bool))
        changed.labelled, changed.meanings, changed.entities = labelled, meanings, meanings.copy()
        data = LinkerData(reader, vectors, [changed])
        return cross_fit_head(data, config, 1.0, 3, tmp_path / name, device="cpu")

    first = whole.documents < 10
    swapped = np.where(whole.meanings == dog, hot, np.where(whole.meanings == hot, dog, whole.meanings))
    others = [
        document._replace(right=[~right if len(right) == 2 else right for right in document.right])
        for document in whole.labelled[:10]
    ]
    before = scores(whole.labelled, whole.meanings, "before")
    after = scores(
        others + whole.labelled[10:], np.where(first, swapped, whole.meanings).astype(np.uint32), "after"
    )
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        same = all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert same == (number < 10)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_coherence_is_part_of_a_linker_of_names(kb, data, model_type, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model_type == "head" else 5_000)
    monkeypatch.setattr("kgkit.training.linkers.train._gains", lambda *_: True)
    training = LinkerTraining(data=(data,), reader=READ, epochs=2)
    manifest = LINKER.read(train_linker(kb, f"{model_type}-both", training, device="cpu"))
    assert (manifest.type, manifest.vectors) == (model_type, "text") and manifest.fingerprint
    assert manifest.coherence is not None and manifest.results["held_out"] == 60
    linker = Linker.open(kb, model=f"{model_type}-both", device="cpu")
    [linked] = linker(["the dog and a fruit"])
    assert [link.entity for link in linked.links] == ["hot dog", "fruit"]


@pytest.mark.parametrize(("right", "kept"), [("first", False), ("second", True)])
def test_coherence_is_kept_where_it_finds_more_in_documents_that_it_has_not_seen(right, kept):
    good, bad = np.array([0.9, 0.1], np.float32), np.array([0.1, 0.9], np.float32)
    gold = np.array([True, False])
    document = LabelledDocument(Document("", "", mentions=[]), [gold])
    first, second = (good, bad) if right == "first" else (bad, good)
    for nil in (True, False):
        later = np.append(second, np.float32(2)) if nil else second
        stage = SimpleNamespace(
            coherence=SimpleNamespace(nil=nil), scored=[(later, np.append(gold, False) if nil else gold)]
        )
        assert _gains([document], [[first]], stage) == kept


def test_of_few_documents_no_coherence_is_learnt_and_without_texts_nothing_is(kb, data, tmp_path):
    few = tmp_path / "few.jsonl"
    few.write_text("".join(data.read_text().splitlines(keepends=True)[:2]))
    manifest = LINKER.read(train_linker(kb, "few", LinkerTraining(data=(few,), reader=READ), device="cpu"))
    assert manifest.coherence is None
    with pytest.raises(UsageError, match="at least 5 documents of training data, found 2"):
        train_linker(kb, "m", LinkerTraining(data=(few,), texts=False), device="cpu")
