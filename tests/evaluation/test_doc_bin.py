"""spaCy's DocBin as a data set of entity linking."""

import tracemalloc
import zlib

import msgspec
import numpy as np
import pytest

from benchmarks.linking_formats import write_doc_bin
from kgkit.errors import NotThere, SourceError
from kgkit.evaluation import Labelled, doc_bin, read_gold_documents
from kgkit.evaluation.doc_bin import read_doc_bin

spacy = pytest.importorskip("spacy")

from spacy.tokens import Doc, DocBin, Span  # noqa: E402  # after spaCy is known to be installed

NLP = spacy.blank("en")


def river(*entities, spaces=None):
    """A document of five words, and entities as (start, end, label, id) in tokens."""
    doc = Doc(NLP.vocab, words=["The", "Rhône", "leaves", "Lake", "Geneva"], spaces=spaces)
    doc.ents = [Span(doc, start, end, label=label, kb_id=kb_id) for start, end, label, kb_id in entities]
    return doc


@pytest.fixture
def put(tmp_path):
    def write(*docs, **settings):
        path = tmp_path / "data.spacy"
        DocBin(docs=docs, **settings).to_disk(path)
        return path

    return write


def message(**changes):
    """The content of a file with a document of two tokens, with some of its fields changed."""
    fields = msgspec.msgpack.decode(zlib.decompress(DocBin(docs=[river((1, 2, "LOC", "A"))]).to_bytes()))
    return zlib.compress(msgspec.msgpack.encode(fields | changes))


def test_entities_of_a_doc_are_mentions_with_their_label(put):
    flat = river((1, 2, "LOC", "Rhône"), (3, 5, "LOC", ""), spaces=[True] * 4 + [False])
    second = river((0, 1, "MISC", "NIL"))
    first, read = read_doc_bin(put(flat, second))
    assert (first.document.id, first.document.text) == ("1", "The Rhône leaves Lake Geneva")
    assert first.gold == [Labelled(4, 9, "Rhône"), Labelled(17, 28, None)]
    assert first.types == ["LOC", "LOC"]
    assert [first.document.text[a:b] for a, b in first.document.tokens] == flat.text.split()
    assert (read.document.id, read.gold) == ("2", [Labelled(0, 3, None)])
    assert read.document.text == second.text


def test_entities_side_by_side_are_two(put):
    doc = river((3, 4, "LOC", "A"), (4, 5, "LOC", "A"))
    [read] = read_doc_bin(put(doc))
    assert [(label.start, label.end) for label in read.gold] == [(17, 21), (22, 28)]


def test_words_without_spaces_keep_their_text(put):
    doc = Doc(NLP.vocab, words=["a", "\n", "𝒟", "b"], spaces=[False, False, True, False])
    doc.ents = [Span(doc, 2, 4, label="X", kb_id="K")]
    [read] = read_doc_bin(put(doc))
    assert (read.document.text, read.gold) == (doc.text, [Labelled(2, 5, "K")])


def test_a_file_without_documents_is_refused(put):
    with pytest.raises(SourceError):
        [*read_doc_bin(put())]


def test_user_data_and_parses_are_not_read(put):
    doc = river((1, 2, "LOC", "A"))
    doc.user_data["object"] = {"any": [1, 2]}
    doc.spans["group"] = [doc[0:2]]
    [read] = read_doc_bin(put(doc, store_user_data=True))
    assert read.entities == ["A"]


def test_written_documents_read_like_the_data(tmp_path):
    record = (
        b'{"doc_id": 1, "tokens": ["A", "b", ".", "C"], "sentences": [[0, 3], [3, 4]], "mentions": '
        b'[{"start": 0, "end": 2, "entity": "E", "type": "T"}, {"start": 3, "end": 4, "entity": null}]}\n'
    )
    (tmp_path / "own.jsonl").write_bytes(record)
    [own] = read_gold_documents(tmp_path / "own.jsonl")
    write_doc_bin(tmp_path / "data.spacy", [own])
    [read] = read_doc_bin(tmp_path / "data.spacy")
    assert (read.document.text, read.gold) == (own.document.text, own.gold) == ("A b .\nC", own.gold)
    assert read.types == ["T", "NAME"]


def test_a_file_without_entities_is_refused(put):
    with pytest.raises(SourceError, match="without the attributes ORTH, ENT_IOB, ENT_KB_ID"):
        [*read_doc_bin(put(river(), attrs=["LEMMA"]))]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "cut short"),
        (b"plain text", "no DocBin of spaCy"),
        (zlib.compress(b"plain text"), "no DocBin of spaCy"),
        (zlib.compress(b"\x80"), "no DocBin of spaCy"),
        (zlib.compress(b"x" * 999)[:-4], "cut short"),
        (zlib.compress(b"\x91" * 100_000), "no DocBin of spaCy"),
        (message(tokens=b"12345678"), "end within a row"),
        (message(lengths=b"123"), "end within a row"),
        (message(lengths=np.array([4], "<i4").tobytes()), "other lengths than its tables"),
        (message(lengths=np.array([-1, 6], "<i4").tobytes()), "other lengths than its tables"),
        (message(lengths=np.array([2**31 - 1] * 3, "<i4").tobytes()), "other lengths than its tables"),
        (message(spaces=b"\x01"), "other lengths than its tables"),
        (message(attrs=[]), "without the attributes"),
        (message(strings=["The"]), "document 1 has the hash [0-9]+, of no string of the file"),
        (message(strings=5), "no DocBin of spaCy: .*strings"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, problem):
    (tmp_path / "a.spacy").write_bytes(content)
    with pytest.raises(SourceError, match=problem) as caught:
        [*read_doc_bin(tmp_path / "a.spacy")]
    assert caught.value.path == tmp_path / "a.spacy"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotThere, match=r"none\.spacy"):
        [*read_doc_bin(tmp_path / "none.spacy")]


def test_a_bomb_is_refused_before_it_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(doc_bin, "MAX_BYTES", 4 << 20)
    compressor = zlib.compressobj()
    content = b"".join(compressor.compress(b"\0" * (1 << 20)) for _ in range(64)) + compressor.flush()
    (tmp_path / "a.spacy").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(SourceError, match="more than 4 MiB of a DocBin"):
        [*read_doc_bin(tmp_path / "a.spacy")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
