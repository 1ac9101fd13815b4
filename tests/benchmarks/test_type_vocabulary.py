"""The count of words of WikiText-2 that a type vocabulary knows, on small texts."""

import lzma
from collections import Counter

from benchmarks.type_vocabulary import PAPER, table, words_of

KNOWN = {
    "Paris": {"LOC": 20.0, "PER": 1.0},
    "Hilton": {"PER": 2.0},
    "Rome": {"LOC": 5.0},
}


def rows(text: str) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in table("Some", KNOWN, Counter(text.split())).rows}


def test_a_word_of_two_types_counts_for_both_and_mostly_for_one():
    found = rows("Paris Hilton saw Paris in spring")
    assert found["LOC"] == ["2", "1", "1", "2", f"{PAPER['LOC']:,}"]
    assert found["PER"] == ["2", "2", "1", "1", f"{PAPER['PER']:,}"]
    assert found["ORG"][:4] == ["0"] * 4
    assert found["all, each once"] == ["3", "2", "2", "3", "11,123"]


def test_words_are_as_written():
    assert rows("paris PARIS hilton")["all, each once"][:2] == ["3", "0"]


def test_the_valid_and_test_parts_are_read_and_no_more(tmp_path):
    folder = tmp_path / "wikitext2"
    folder.mkdir()
    for part in ("valid", "test", "train"):
        with lzma.open(folder / f"{part}.txt.xz", "wt", encoding="utf-8") as out:
            out.write(f" = Rome = \n in {part}\n")
    assert words_of(tmp_path) == {"=": 4, "Rome": 2, "in": 2, "valid": 1, "test": 1}
