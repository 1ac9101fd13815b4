"""The index of the trigrams of surfaces: what is in it, how it grows, and what is no such file."""

import os
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import DamagedKB, WriteFailed
from kgkit.store import trigrams
from kgkit.store.trigrams import (
    SHORT,
    TrigramIndex,
    TrigramWriter,
    core_code,
    core_of,
    first_letters,
    grams_of,
    plain_form,
    postings_of,
    word_code,
)
from kgkit.text import folding
from tests.old_format import as_older_index

SURFACES = [
    b"dog", b"hot dog", b"hot dog stand", "苹果".encode(), b"x", "naïveté".encode(), b"mercury (planet)",
    b"cambridge, massachusetts",
]  # fmt: skip
TEXTS = st.lists(
    st.text("ab 苹é.,'(", min_size=1, max_size=12).map(lambda text: text.encode()), unique=True, max_size=12
)


def write(path, *batches, base=None):
    with TrigramWriter(path, base) as index:
        for batch in batches:
            index.add(batch)
        index.finish()
    return TrigramIndex(path)


def grams_by_definition(surface: bytes) -> set[int]:
    padded = b" " + surface + b" "
    grams = {int.from_bytes(padded[begin : begin + 3], "big") for begin in range(len(padded) - 2)}
    if len(surface) <= SHORT:
        grams |= {int.from_bytes(padded[begin : begin + 2], "big") for begin in range(len(padded) - 1)}
    return grams


def codes_by_definition(surface: bytes) -> set[int]:
    """Return the numbers by which an index lists a surface."""
    folded = surface.decode(errors="replace")
    plain = plain_form(folded)
    codes = grams_by_definition(plain.encode()) | {word_code(word) for word in plain.split(" ")}
    if ("," in folded or "(" in folded) and core_of(folded):
        codes |= {core_code(core_of(folded))}
    codes |= {core_code(letters) for letters in first_letters(plain)}
    return codes


def content(index: TrigramIndex) -> dict[int, list[bytes]]:
    """Return of each gram the surfaces that the index lists."""
    surfaces = list(index.surfaces())
    return {
        int(gram): [surfaces[number] for number in index.postings[int(begin) : int(end)]]
        for gram, (begin, end) in zip(index.grams, pairwise(index.starts), strict=True)
    }


def content_by_definition(surfaces: list[bytes]) -> dict[int, list[bytes]]:
    lists: dict[int, list[bytes]] = {}
    for surface in surfaces:
        for gram in codes_by_definition(surface):
            lists.setdefault(gram, []).append(surface)
    return lists


@pytest.mark.parametrize("surface", SURFACES)
def test_the_grams_of_a_text_are_those_of_the_definition(surface):
    grams = grams_of(surface, bigrams=len(surface) <= SHORT)
    assert set(grams.tolist()) == grams_by_definition(surface)
    assert (np.diff(grams.astype(np.int64)) > 0).all()


@given(surfaces=TEXTS)
def test_postings_are_each_once_and_ascend(surfaces):
    postings = postings_of(surfaces).tolist()
    expected = {gram << 32 | n for n, surface in enumerate(surfaces) for gram in codes_by_definition(surface)}
    assert postings == sorted(expected)


@given(surfaces=TEXTS, split=st.integers(0, 12))
def test_an_index_lists_for_each_gram_its_surfaces_however_they_came(tmp_path_factory, surfaces, split):
    folder = tmp_path_factory.mktemp("index")
    at_once = write(folder / "once", surfaces)
    in_parts = write(folder / "parts", surfaces[:split], surfaces[split:])
    extended = write(folder / "more", surfaces[split:], base=write(folder / "base", surfaces[:split]))
    assert content(at_once) == content_by_definition(surfaces)
    for index in (in_parts, extended):
        assert index.path.read_bytes() == at_once.path.read_bytes()


def test_batches_and_parts_of_a_base_change_no_byte(tmp_path, monkeypatch):
    surfaces = [f"surface {number} of many".encode() for number in range(500)]
    expected = write(tmp_path / "expected", surfaces).path.read_bytes()
    for name, size in (("_BATCH", 7), ("_BYTES", 64), ("_POSTINGS", 10)):
        monkeypatch.setattr(trigrams, name, size)
    base = write(tmp_path / "base", surfaces[:300])
    assert write(tmp_path / "small", surfaces).path.read_bytes() == expected
    assert write(tmp_path / "grown", surfaces[300:], base=base).path.read_bytes() == expected
    once_more = write(tmp_path / "one", surfaces[300:301], base=base)
    assert write(tmp_path / "again", surfaces[301:], base=once_more).path.read_bytes() == expected
    assert write(tmp_path / "same", base=base).path.read_bytes() == base.path.read_bytes()
    nothing = write(tmp_path / "nothing", [])
    assert write(tmp_path / "first", surfaces, base=nothing).path.read_bytes() == expected


def test_surfaces_are_numbered_in_the_order_in_which_they_came(tmp_path):
    index = write(tmp_path / "index", SURFACES)
    assert list(index.surfaces()) == SURFACES
    assert [index.surface(number) for number in range(len(index))] == [text.decode() for text in SURFACES]
    assert len(index) == len(SURFACES)


def test_no_gram_reaches_from_a_surface_into_the_next(tmp_path):
    index = write(tmp_path / "index", [b"ab", b"cd"])
    assert int.from_bytes(b"b c", "big") not in content(index)


@pytest.mark.parametrize(
    "folded, plain",
    [
        ("dog", "dog"),
        ("antonín dvořák", "antonin dvorak"),
        ("u.s. route 66", "us route 66"),
        ("st. mary's", "st marys"),
        ("l’aquila", "laquila"),
        ("at&t", "at t"),
        ("coca-cola", "coca cola"),
        ("resolution 1,441", "resolution 1441"),
        ("ⅷ①", "viii1"),
        ("9¾", "9 3 4"),
        ("a♀", "a ♀"),
        ("c++", "c++"),
        ("f# minor", "f# minor"),
        ("no. #5", "no 5"),
        ("mercury (planet)", "mercury planet"),
        ("北京（市）", "北京 市"),
        ("हिन्दी", "हिन्दी"),
        ("!!!", "!!!"),
    ],
)
def test_a_plain_form_has_words_of_letters_and_digits(folded, plain):
    assert plain_form(folded) == plain
    assert plain_form(plain) == plain


@pytest.mark.parametrize(
    "folded, core",
    [
        ("mercury", "mercury"),
        ("mercury (planet)", "mercury"),
        ("são tomé (town), africa", "sao tome"),
        ("cambridge, massachusetts", "cambridge"),
        ("1,000 days (film)", "1000 days"),
        ("(untitled) song", "song"),
        ("mercury (planet", "mercury"),
        ("(planet)", ""),
    ],
)
def test_a_core_is_what_no_bracket_and_no_comma_qualifies(folded, core):
    assert core_of(folded) == core


@pytest.mark.parametrize(
    "plain, letters",
    [
        ("world health organization", {"who"}),
        ("federal bureau of investigation", {"fboi", "fbi"}),
        ("hot dog", set()),
        ("of the in", {"oti"}),
    ],
)
def test_first_letters_are_those_of_all_words_and_of_long_ones(plain, letters):
    assert first_letters(plain) == letters


def test_a_surface_with_a_nul_has_no_gram_over_it_and_disturbs_no_other(tmp_path):
    index = write(tmp_path / "index", [b"a\0bcdefghij", b"other"])
    assert int.from_bytes(b"a\0b", "big") not in content(index)
    assert content(index)[int.from_bytes(b"bcd", "big")] == [b"a\0bcdefghij"]
    assert content(index)[int.from_bytes(b"oth", "big")] == [b"other"]


def test_an_index_of_nothing_can_be_read(tmp_path):
    index = write(tmp_path / "index", [])
    assert (len(index), list(index.surfaces()), len(index.postings)) == (0, [], 0)


def test_only_short_surfaces_are_listed_by_their_bigrams(tmp_path):
    index = write(tmp_path / "index", [b"a" * SHORT, b"a" * (SHORT + 1)])
    assert content(index)[int.from_bytes(b"aa", "big")] == [b"a" * SHORT]
    assert len(content(index)[int.from_bytes(b"aaa", "big")]) == 2


def test_an_index_can_be_read_after_its_file_was_removed(tmp_path):
    index = write(tmp_path / "index", SURFACES)
    index.path.unlink()
    assert index.surface(1) == "hot dog"


def test_an_index_of_the_first_version_is_read(tmp_path):
    path = write(tmp_path / "index", SURFACES).path
    assert not TrigramIndex(path).is_first
    as_older_index(path, 1)
    assert TrigramIndex(path).is_first
    assert list(TrigramIndex(path).surfaces()) == SURFACES


# -- what has a text within ---------------------------------------------------------------

LETTERS = "ab éßøё 苹京😀.,'(+#&µ½²ʼ\u0301\u093f가"


@given(st.lists(st.text(LETTERS, min_size=1, max_size=12), max_size=12), st.data())
def test_the_surfaces_that_have_a_text_within_are_those_that_a_scan_finds(tmp_path_factory, texts, data):
    fold = folding().fold
    surfaces = list({folded.encode() for text in texts if (folded := fold(text))})
    folder, added = tmp_path_factory.mktemp("parts"), len(surfaces) // 3
    base = write(folder / "base", sorted(surfaces[added:]))
    index = write(folder / "index", sorted(surfaces[:added]), base=base)
    text = data.draw(st.text(LETTERS, min_size=1, max_size=3))
    if surfaces and data.draw(st.booleans()):
        surface = data.draw(st.sampled_from(surfaces)).decode()
        begin = data.draw(st.integers(0, len(surface) - 1))
        text = surface[begin : data.draw(st.integers(begin + 1, len(surface)))]
    folded = fold(text)
    if part := folded.encode():
        expected = sorted(surface.decode() for surface in surfaces if part in surface)
        assert list(index.containing(folded, part)) == expected
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(trigrams, "_COMPARED", 0)
            patched.setattr(trigrams, "_TEXT", 7)
            assert list(index.containing(folded, part)) == expected


# -- what is no index ------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 39, 40, 100])
def test_a_file_that_was_cut_is_refused(tmp_path, length):
    path = write(tmp_path / "index", SURFACES).path
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedKB, match=r"too short|its header says"):
        TrigramIndex(path)


def test_a_file_that_is_longer_than_its_header_says_is_refused(tmp_path):
    path = write(tmp_path / "index", SURFACES).path
    path.write_bytes(path.read_bytes() + b"\0" * 8)
    with pytest.raises(DamagedKB, match="bytes, its header says"):
        TrigramIndex(path)


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "index"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(DamagedKB, match="no index of surfaces that this kgkit reads"):
        TrigramIndex(path)


@pytest.mark.parametrize("field", range(4))
def test_a_header_that_asks_for_more_than_there_is_allocates_nothing(tmp_path, field):
    path = write(tmp_path / "index", SURFACES).path
    changed = bytearray(path.read_bytes())
    struct.pack_into("<Q", changed, 8 + 8 * field, 1 << 60)
    path.write_bytes(changed)
    with pytest.raises(DamagedKB, match="its header says"):
        TrigramIndex(path)


# -- a disk that refuses -----------------------------------------------------------------


def test_an_index_that_cannot_be_written_is_a_failure_of_the_disk(tmp_path):
    with pytest.raises(WriteFailed):
        TrigramWriter(tmp_path / "no folder" / "index")


def test_an_index_that_cannot_be_brought_to_the_disk_is_a_failure_of_the_disk(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(WriteFailed, match="No space left"):
        write(tmp_path / "index", SURFACES)
