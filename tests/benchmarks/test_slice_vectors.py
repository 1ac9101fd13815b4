"""Vectors of AIDA's pages from links: how they are mixed, and what the dump says."""

import bz2
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from benchmarks.slice_vectors import document_page, page_of, smooth, write_dump, write_word2vec
from kgkit.embedding.wikipedia2vec.files import read_vectors

UNIT = np.array([[1, 0], [0, 2], [0, 0], [-3, 0]], np.float32)


def test_a_page_without_links_keeps_its_direction() -> None:
    assert smooth(UNIT, []).tolist() == [[1, 0], [0, 1], [0, 0], [-1, 0]]


def test_a_link_mixes_both_its_ends() -> None:
    mixed = smooth(UNIT, [(0, 1)])
    assert mixed[:2] == pytest.approx(np.full((2, 2), 0.5**0.5))
    assert mixed[3].tolist() == [-1, 0]


def test_the_share_of_the_title_decides_how_far_a_page_moves() -> None:
    mixed = smooth(UNIT, [(0, 1)], own=0.75)
    assert mixed[0] == pytest.approx(np.array([3, 1]) / 10**0.5)


def test_neighbors_count_as_often_as_they_are_linked() -> None:
    mixed = smooth(UNIT, [(0, 1), (0, 1), (0, 2)], own=0)
    assert mixed[0] == pytest.approx([0, 1])


def test_opposite_vectors_leave_nothing() -> None:
    assert smooth(UNIT, [(0, 3)])[0].tolist() == [0, 0]


def test_a_mention_of_a_document_links_to_its_page() -> None:
    document = {
        "doc_id": 7,
        "tokens": ["EU", "rejects", "German", "call", "&", "lamb"],
        "mentions": [
            {"start": 2, "end": 4, "entity": "Germany_(state)"},
            {"start": 0, "end": 1, "entity": None},
            {"start": 3, "end": 4, "entity": "Call"},
        ],
    }
    page = document_page(document)
    assert page.title == "Document 7"
    assert page.text == "EU rejects [[Germany (state)|German call]] &amp; lamb"


def test_a_page_links_to_others_but_not_to_itself() -> None:
    entity = {"id": 1, "title": "A & B", "links": [1, 2]}
    assert page_of(entity, {1: "A & B", 2: "C"}).text == "A &amp; B\n\n* [[C]]\n"


def test_the_dump_reads_nothing_but_pages_and_training_documents(tmp_path: Path) -> None:
    candidates = tmp_path / "aida" / "candidates"
    candidates.mkdir(parents=True)
    entities = [{"id": 1, "title": "Rome", "links": [2]}, {"id": 2, "title": "Italy", "links": []}]
    documents = [{"doc_id": 1, "tokens": ["Rome"], "mentions": [{"start": 0, "end": 1, "entity": "Rome"}]}]
    for path, records in (
        (candidates / "entities.jsonl.xz", entities),
        (tmp_path / "aida" / "aida_train.jsonl.xz", documents),
    ):
        with lzma.open(path, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
    text = bz2.decompress(write_dump(tmp_path / "aida", tmp_path / "out").read_bytes()).decode()
    assert text.count("<page>") == 3
    assert text.rstrip().endswith("</mediawiki>")
    assert "[[Rome|Rome]]" in text


def test_word2vec_files_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    write_word2vec(path, ["ENTITY/New York", "the"], UNIT[:2])
    names = [name for batch in read_vectors(path) for name in batch.names]
    assert names == ["ENTITY/New_York", "the"]
