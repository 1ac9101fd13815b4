"""Pauses between batches: what is done in them, in which thread, and how they end work."""

import threading

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.pauses import pause, pausing
from tests.tiny_encoder import POSITIONS, tiny_encoder

TEXTS = [[1] * length for length in range(2, POSITIONS) for _ in range(30)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


def test_a_pause_does_nothing_unless_something_is_to_be_done():
    pause()
    calls = []
    with pausing(lambda: calls.append("outer")):
        pause()
        with pausing(None):
            pause()
        with pausing(lambda: calls.append("inner")):
            pause()
        pause()
    pause()
    assert calls == ["outer", "inner", "outer"]


def test_after_an_error_pauses_do_what_they_did_before():
    with pytest.raises(KeyError), pausing(lambda: {}["nothing"]):
        pause()
    pause()


def test_pauses_are_those_of_their_thread():
    calls = []
    with pausing(lambda: calls.append(threading.current_thread().name)):
        other = threading.Thread(target=pause)
        other.start()
        other.join()
        pause()
    assert calls == [threading.current_thread().name]


def test_an_encoder_pauses_between_batches_and_can_be_used_in_a_pause(encoder):
    expected = dict(rows_of(encoder, TEXTS))
    inner = []
    with pausing(lambda: inner.append(dict(rows_of_alone(encoder, TEXTS[:1])))):
        outer = dict(rows_of(encoder, TEXTS))
    assert len(inner) > 1
    for rows in (outer, inner[0]):
        for row, vectors in rows.items():
            np.testing.assert_allclose(vectors, expected[row], atol=1e-5)


def test_a_pause_of_a_bfloat16_encoder_leaves_the_products_of_other_models_as_they_are(tmp_path):
    fast = Encoder.load(str(tiny_encoder(tmp_path)), device="cpu", dtype="bfloat16")
    torch, products = pytest.importorskip("torch"), []
    with pausing(lambda: products.append((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)):
        for _ in rows_of(fast, TEXTS):
            pass
    assert len(products) > 1 and set(products) == {torch.float32}


def rows_of(encoder, texts):
    """Yield the numbers of texts with the outputs of the last layer for their pieces."""
    for rows, hidden in encoder.layers(texts, [-1]):
        for row, vectors in zip(rows.tolist(), hidden, strict=True):
            yield row, vectors[: len(texts[row])]


def rows_of_alone(encoder, texts):
    """Yield the same, where pauses do nothing."""
    with pausing(None):
        yield from rows_of(encoder, texts)


def test_an_error_in_a_pause_ends_the_work_of_an_encoder(encoder):
    with pytest.raises(ZeroDivisionError), pausing(lambda: 1 / 0):
        list(rows_of(encoder, TEXTS))
