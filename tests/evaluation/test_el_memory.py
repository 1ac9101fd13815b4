"""Readers of long data sets hold a document at a time; pages and NIF are written as documents come."""

import json
import tracemalloc

import pytest

from benchmarks.linking_formats import write_kilt
from kgkit.evaluation import Labelled
from kgkit.evaluation.el_files import GoldMention, make_gold_document
from kgkit.evaluation.el_formats import read_gold_data
from kgkit.evaluation.matching import DocumentCounts
from kgkit.evaluation.nif import write_nif

TEXT = "The river leaves the lake at noon . " * 50
WORDS = TEXT.split()


def peak_of(work):
    """Return the most memory, in bytes, that *work* takes beyond what is there before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def elevant(number):
    labels = [{"span": [4 + 36 * i, 9 + 36 * i], "entity_id": "Q1", "name": "river"} for i in range(50)]
    return json.dumps({"id": number, "text": TEXT, "labels": labels}) + "\n"


def aida(number):
    rows = [f"-DOCSTART- ({number})"]
    rows += [f"{word}\tB\t{word}\tRiver" if word == "river" else word for word in WORDS]
    return "\n".join(rows) + "\n\n"


def kilt(number):
    start = TEXT.index("river")
    marked = f"{TEXT[:start]}[START_ENT] river [END_ENT]{TEXT[start + 5 :]}{number}"
    return json.dumps({"id": str(number), "input": marked, "output": [{"answer": "River"}]}) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("write", [elevant, aida, kilt])
def test_memory_does_not_grow_with_the_number_of_documents(tmp_path, write):
    peaks = []
    for count in (20, 200):
        path = tmp_path / f"{count}"
        path.write_text("".join(write(number) for number in range(count)))
        documents = read_gold_data(path)
        peaks.append(peak_of(lambda documents=documents: [len(gold.gold) for gold in documents]))
    assert peaks[1] < 1.5 * peaks[0] + 100_000


def test_kilt_is_written_as_documents_come(tmp_path):
    gold = make_gold_document("1", TEXT, [GoldMention(4, 9, "River")])
    peaks = [
        peak_of(lambda count=count: write_kilt(tmp_path / "a", (gold for _ in range(count))))
        for count in (20, 400)
    ]
    assert peaks[1] < 1.5 * peaks[0] + 100_000


def test_nif_is_written_as_documents_come(tmp_path):
    gold = make_gold_document("1", TEXT, [GoldMention(4, 9, "River"), GoldMention(13, 16, None)])
    peaks = [
        peak_of(lambda count=count: write_nif(tmp_path / "a.ttl", (gold for _ in range(count))))
        for count in (20, 400)
    ]
    assert peaks[1] < 1.5 * peaks[0] + 100_000


def test_a_document_takes_128_bytes_of_the_counts():
    counts, gold = DocumentCounts(), [Labelled(0, 1, "A")]

    def count():
        for _ in range(5000):
            counts.add(gold, gold, str)

    assert peak_of(count) < 5000 * 128 * 1.5 + 100_000
    assert counts.columns().shape == (5000, 8)
