"""Passages with hidden words for a KAM-BERT: drawn by the seed, each once an epoch, each annotated once."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch

from kgkit.encoder import Encoder
from kgkit.inputs.kambert import AnnotatedText, KamBertReader, MapBuilder
from kgkit.inputs.masking import NOTHING, masking_of
from kgkit.inputs.passages import Passage
from kgkit.training.masked_lm.kambert import MaskedPassages
from tests.pmi_toys import PMI
from tests.tiny_encoder import tiny_encoder

TEXTS = [
    "the dog barks", "a cat eats fruit", "the tree grows in the city", "a dog", "it is a red dog", "a cat",
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def annotated():
    return []


@pytest.fixture
def passages_of(encoder, annotated):
    """Return what makes batches of the texts; `annotated` are the texts in which names were looked for."""

    def annotate(texts):
        texts = list(texts)
        annotated.extend(texts)
        return [AnnotatedText(text, names=[(0, 5)]) for text in texts]

    def make(*, size=2, seed=0, texts=TEXTS):
        reader = KamBertReader(encoder, MapBuilder(("entity", "correlation"), PMI, auxiliary=1), size=16)
        passages = [Passage((text,)) for text in texts]
        return MaskedPassages(passages, reader, annotate, masking_of(encoder), size=size, seed=seed)

    return make


def epoch_of(passages, number=0, indices=None):
    return list(passages.epoch(number, range(len(passages)) if indices is None else indices))


def texts_of(batches):
    """Return the word pieces of each text of batches, those that are hidden as they were."""
    rows = []
    for batch in batches:
        ids = torch.where(batch.labels == NOTHING, batch.inputs.ids, batch.labels)
        rows += [tuple(row[mask].tolist()) for row, mask in zip(ids, batch.inputs.real, strict=True)]
    return rows


def are_equal(first, second):
    pairs = zip(first, second, strict=True)
    return all(
        torch.equal(before.labels, after.labels) and torch.equal(before.inputs.ids, after.inputs.ids)
        for before, after in pairs
    )


def test_each_passage_is_read_once_an_epoch_in_another_order(passages_of):
    passages = passages_of(size=4)
    assert len(passages) == 2
    first, second = (texts_of(epoch_of(passages, number)) for number in (0, 1))
    assert sorted(first) == sorted(second) and len({*first}) == 6 and first != second


def test_order_and_hidden_words_follow_from_the_seed(passages_of):
    assert are_equal(epoch_of(passages_of(), 3), epoch_of(passages_of(), 3))
    assert texts_of(epoch_of(passages_of())) != texts_of(epoch_of(passages_of(seed=1)))
    assert not are_equal(epoch_of(passages_of(), 0), epoch_of(passages_of(), 1))


def test_an_epoch_that_is_resumed_has_the_same_batches(passages_of):
    assert are_equal(epoch_of(passages_of(), 2)[1:], epoch_of(passages_of(), 2, [1, 2]))


def test_a_text_is_annotated_once_however_often_it_is_read(passages_of, annotated):
    passages = passages_of(texts=[*TEXTS, *TEXTS])
    for number in range(3):
        epoch_of(passages, number)
    assert sorted(annotated) == sorted(TEXTS)


def test_each_text_has_a_hidden_piece_and_maps_without_it(passages_of):
    for batch in epoch_of(passages_of(size=6)):
        hidden = batch.labels != NOTHING
        assert hidden.any(1).all() and not (hidden & ~batch.inputs.real).any()
        for text, _, row, column in batch.inputs.cells.tolist():
            positions = np.flatnonzero(hidden[text].numpy())
            assert not {row, column} & {*positions.tolist()}
