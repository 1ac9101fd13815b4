"""The benchmark of E-BERT over a tiny encoder: what it times, and what its table says."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.ebert import drawn_texts, measure, table
from kgkit.encoder import Encoder
from tests.tiny_encoder import tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), words=("/",))
    return Encoder.load(str(folder), device="cpu", dtype="float32")


def test_texts_are_the_same_however_many_of_their_words_are_entities(encoder):
    plain, linked = (drawn_texts(encoder, count, 3, 6) for count in (0, 2))
    assert [text.text for text in plain] == [text.text for text in linked]
    assert [[span.entity for span in text.spans] for text in linked] == [[0, 1], [2, 3], [4, 5]]
    assert all(
        text.text[span.start : span.end] in (text.text.split()[0], text.text.split()[3])
        for text in linked
        for span in text.spans
    )


def test_the_table_has_a_row_for_each_number_of_entities(encoder, monkeypatch):
    monkeypatch.setattr("benchmarks.ebert.ROWS", 100)
    how = {"texts": 2, "words": 5, "rounds": 2}
    rows = measure(encoder, (0, 1), **how)
    assert [(row.entities, row.pieces) for row in rows] == [(0, 7.0), (1, 9.0)]
    result = table(rows, "tiny", **how)
    assert [row[0] for row in result.rows] == ["0", "1"]
    [target] = result.targets
    assert (target.aim, target.value) == (1.05, max(row.piece for row in rows))
