"""Regular expressions on long strings: each of these would take hours in quadratic time."""

import json

import pytest

from kb_builders.type_vocabulary_lists import _split
from kb_builders.wikipedia import prose, wikitext
from kgkit.embedding.wikipedia2vec.files import _NUMBER
from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.plain_text import check_plain
from kgkit.evaluation.task_formats import read_wic
from kgkit.exchange.property_graph import _TYPED

LONG = 1_000_000


LINES = {
    "dots": "." * LONG, "letters and dots": "a." * LONG, "no spaces": ".%1" * LONG,
    "no sense at the end": "a.b" + " c%1" * LONG + " %", "words": "a " * LONG,
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_a_long_line_is_plain_text(tmp_path, kind):
    (tmp_path / "text.txt").write_text(LINES[kind] + "\n")
    check_plain(tmp_path / "text.txt")


@pytest.mark.parametrize("line", ["d0.s0.t0 dog%1:05:00::", "d0.s0 a%1 b%2:x", ". a.b.c a%1", "..a a%1"])
def test_a_key_file_is_still_none(tmp_path, line):
    is_key_file = not line.startswith(". ")
    (tmp_path / "gold.key.txt").write_text(f"{line}\n" * 2)
    if is_key_file:
        with pytest.raises(UsageError):
            check_plain(tmp_path / "gold.key.txt")
    else:
        check_plain(tmp_path / "gold.key.txt")


def test_pairs_of_sentences(tmp_path):
    path = tmp_path / "wic.jsonl"
    for text in ("Word: a" + ". Sentence 1: b" * 100_000, "Word: " + " Sentence 2: " * 100_000):
        path.write_text(json.dumps({"label": 1, "text": text}) + "\n")
        with pytest.raises(SourceError):
            list(read_wic(path))


def test_numbers_names_and_headers():
    assert not _NUMBER.fullmatch(b"1" * LONG + b"x")
    assert [bool(_NUMBER.fullmatch(field)) for field in (b"1", b"1.", b".5", b"-1.5e3", b"1.2.3", b".")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
    assert not _TYPED.fullmatch(":ID(" * LONG)
    assert _TYPED.fullmatch("key:ID(Entity)") and _TYPED.fullmatch("a:b:string[]")


def test_links_to_other_sites():
    for pattern in (wikitext._OUTSIDE, prose._OUTSIDE):
        assert not pattern.search("[//a" + " " * LONG + "[")
        assert pattern.sub(r"\1", "[http://a.example  b c] [//d]") == "b c "


def test_commas_in_brackets_part_nothing():
    assert _split("," * LONG) == [""] * (LONG + 1)
    assert _split("a (b, c), d, (e, f") == ["a (b, c)", " d", " (e", " f"]
