"""Tokens, folding and offsets, over any text."""

import re
import unicodedata
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgkit import text as module
from kgkit.text import fold, token_spans, token_splitter, tokens, without_accents

# Letters that fold to more letters, marks, scripts without spaces, quotes and clitics, odd white space.
AWKWARD = (
    "ßẞİıŉǰΐſKÅŒﬁﬄΣςᾳͅÀa\u0300\u0301\u0327\u05bc\u05c1\u05be\u064b\u0e34\u0e48\u094d\u0939\u093f\u0915\u093c"
    "苹果がか\u3099ー々〇ﾊﾟ\U00020000葛\U000e0100한\u1112\u1161\u11ab👩\u200d🔬🏽🇩🇪\ufe0f'’sStT.-_&0١½²"
    "\u00a0\u2009\u3000\t\n\r\x0b\x1c\x85\u2028\u200b\u00ad\u0958\u0f43\u0f42\u0fb7\u2126\u1e9b"
)
texts = st.text(st.one_of(st.sampled_from(AWKWARD), st.characters(codec="utf-8")), max_size=40)
bmp_texts = st.text(st.one_of(st.sampled_from(AWKWARD), st.characters(max_codepoint=0xFFFF, codec="utf-8")))
ascii_texts = st.text(
    st.one_of(st.sampled_from("abtsTS'\"-_ .\n\t\x1c\x00"), st.characters(max_codepoint=127))
)

unhurried = settings(deadline=None)  # a busy machine is no failure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("The dog's bone.", ["The", "dog", "'s", "bone", "."]),
        ("DON'T they’ll won’t O'Reilly", ["DON'T", "they", "’ll", "won’t", "O", "'", "Reilly"]),
        ("rock 'n' roll 'S 'so", ["rock", "'", "n", "'", "roll", "'S", "'", "so"]),
        ("in the 1990s, $3.50", ["in", "the", "1990s", ",", "$", "3", ".", "50"]),
        ("men-at-arms C++ AT&T", ["men", "-", "at", "-", "arms", "C", "+", "+", "AT", "&", "T"]),
        ("吃苹果 iPhone6", ["吃", "苹", "果", "iPhone6"]),
        ("don't吃Teddy's苹果's", ["don't", "吃", "Teddy", "'s", "苹", "果", "'s"]),
        ("don't\u0301 she's\u0301", ["don", "'", "t\u0301", "she", "'", "s\u0301"]),
        ("ゴジラ が", ["ゴ", "ジ", "ラ", "が"]),
        ("naïve cafe\u0301", ["naïve", "cafe\u0301"]),
        ("हिन्दी ภาษาไทย", ["हिन्दी", "ภาษาไทย"]),
        ("שָׁלוֹם בית־ספר\u05c3", ["שָׁלוֹם", "בית", "־", "ספר", "\u05c3"]),
        ("⚽\ufe0fFootball a≠b a=\u0338b", ["⚽\ufe0f", "Football", "a", "≠", "b", "a", "=\u0338", "b"]),
        ("한국어 Ελλάς", ["한국어", "Ελλάς"]),
        ("👩‍🔬!", ["👩\u200d", "🔬", "!"]),
    ],
)
def test_a_text_is_cut_where_a_reader_would_cut_it(text, expected):
    assert tokens(text) == expected


@unhurried
@given(texts)
def test_tokens_tile_all_that_is_not_white_space(text):
    at = 0
    for start, end in token_spans(text):
        assert at <= start < end
        assert not text[at:start].strip()
        assert not any(letter.isspace() for letter in text[start:end])
        at = end
    assert not text[at:].strip()


@unhurried
@given(texts | ascii_texts)
def test_tokens_spans_and_splitter_tell_one_story(text):
    assert [text[start:end] for start, end in token_spans(text)] == tokens(text)
    pieces = token_splitter(text).split(text)
    assert "".join(pieces) == text
    assert pieces[1::2] == tokens(text)
    assert all(not gap or gap.isspace() for gap in pieces[::2])


def cut_by(pattern: str, text: str) -> list[str]:
    return re.compile(pattern).findall(text)


@unhurried
@given(ascii_texts)
@example("can't CAN'T 'tis t's 's's I'll've")
def test_ascii_text_is_cut_alike_by_all_three_patterns(text):
    assert tokens(text) == cut_by(module._SPACED, text) == cut_by(module._MIXED, text)


@unhurried
@given(texts.filter(lambda text: not module._HAS_UNSPACED.search(text)))
def test_text_without_chinese_is_cut_alike_by_both_patterns_for_it(text):
    assert cut_by(module._SPACED, text) == cut_by(module._MIXED, text)


@unhurried
@given(texts, texts)
def test_what_stands_behind_white_space_does_not_change_how_a_text_is_cut(text, other):
    assert tokens(f"{text} {other}") == tokens(text) + tokens(other)


@unhurried
@given(texts)
def test_a_chinese_character_does_not_change_how_the_text_around_it_is_cut(text):
    assert tokens(f"{text}苹x{text}") == [*tokens(text), "苹", *tokens(f"x{text}")]


def test_every_mark_of_the_basic_plane_stays_with_its_letter():
    marks = [chr(code) for code in range(0x10000) if unicodedata.category(chr(code)).startswith("M")]
    assert [f"{ord(mark):04x}" for mark in marks if len(tokens(f"a{mark}b")) > 1] == []
    # Chinese and Japanese characters keep theirs, too.
    assert [f"{ord(mark):04x}" for mark in marks if tokens(f"果{mark}か") != [f"果{mark}", "か"]] == []


def folded_tokens(text: str, form: Literal["NFC", "NFD"]) -> list[str]:
    return [fold(token) for token in tokens(unicodedata.normalize(form, text))]


@unhurried
@given(bmp_texts)
@example("がぎ ゴジラ 한국어 café naïve ≠ שָׁלוֹם हिन्दी Ελλάς")
def test_tokens_are_the_same_composed_and_decomposed(text):
    assert folded_tokens(text, "NFD") == folded_tokens(text, "NFC") == [fold(token) for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("Hot  Dog", "hot dog"),
        ("\tHot\n\u00a0dog\u3000", "hot dog"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁNANCE", "finance"),
        ("İstanbul", "i\u0307stanbul"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("Σίσυφος", "σίσυφοσ"),
        ("cafe\u0301", "café"),
        ("苹果", "苹果"),
        ("\ud800", "\ud800"),
    ],
)
def test_folding_makes_one_of_what_a_reader_takes_for_one(text, folded):
    assert fold(text) == folded


@unhurried
@given(texts)
def test_folding_twice_is_folding_once(text):
    assert fold(fold(text)) == fold(text)


@unhurried
@given(texts)
def test_canonically_equal_texts_fold_alike(text):
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text)) == fold(text)


def fold_obviously(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.replace("’", "'").split())


@unhurried
@given(texts | ascii_texts)
def test_the_short_ways_of_folding_agree_with_the_definition(text):
    assert fold(text) == fold_obviously(text)


@unhurried
@given(bmp_texts)
def test_a_text_folds_to_its_folded_tokens(text):
    """So a span of tokens and the surface it spells meet under one key."""
    gap = re.compile(r"\s+")
    folded = "".join(
        " " if gap.fullmatch(piece) else fold(piece) for piece in token_splitter(text).split(text) if piece
    )
    assert unicodedata.normalize("NFC", folded.strip()) == fold(text)


def test_a_long_text_is_cut_in_linear_time():
    for word in ("a", "苹", "é", "'", "a'", "👩\u200d"):
        text = word * 300_000
        assert "".join(tokens(text)) == text


def test_an_apostrophe_is_one_however_it_is_printed():
    assert fold("Jacob’s ladder") == fold("Jacob's ladder") == "jacob's ladder"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Antonín Dvořák", "Antonin Dvorak"),
        ("Nguyễn Văn Thiệu", "Nguyen Van Thieu"),
        ("Łódź, Ærø, Straße, Þór", "Lodz, Aero, Strasse, Thor"),
        ("e\u0301te\u0301", "ete"),
        ("Αθήνα", "Αθηνα"),
        ("Йошкар, Ёлка", "Йошкар, Елка"),
        ("हिन्दी が 早乙女", "हिन्दी が 早乙女"),
    ],
)
def test_letters_lose_their_accents(text, plain):
    assert without_accents(text) == plain
