"""Tokens, folding and offsets: how a text is cut so that it can meet a KB.

One tokenizer cuts both the surfaces of a KB and the texts they are sought in,
so that a surface is found wherever its tokens stand in a row. A token is

    a run of word characters with their combining marks   naïve  1990s  don't
    a clitic                                              's  'll
    one Chinese or Japanese character with its marks      苹
    any other single character that is not white space,   - . &
      with its combining marks

Offsets always count code points of the text as given. Folding can change a
text's length (ß → ss), so it is done span by span and never shifts an offset.
"""

import re
from functools import cache
from html import escape
from typing import Final
from unicodedata import normalize

# Han (with extensions), Hiragana, Katakana: written without spaces.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309b-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U000323af"
)
# Marks that `\w` leaves out: those of the Basic Multilingual Plane, and the selectors of variants of Han.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0"
    "\u07eb-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0897-\u089f\u08ca-\u08e1\u08e3-\u0963\u0966-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18-\u0f19\u0f35\u0f37\u0f39"
    "\u0f3e-\u0f3f\u0f71-\u0f84\u0f86-\u0fbc\u0fc6\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734"
    "\u1752-\u1773\u17b4-\u17d3\u17dd\u180b-\u180d\u180f\u1885-\u18a9\u1920-\u193b\u1a17-\u1a1b"
    "\u1a55-\u1a7f\u1ab0-\u1b04\u1b34-\u1b44\u1b6b-\u1b73\u1b80-\u1bad\u1be6-\u1bf3\u1c24-\u1c37"
    "\u1cd0-\u1cd2\u1cd4-\u1cf9\u1dc0-\u1dff\u200c-\u200d\u20d0-\u20ff\u2cef-\u2cf1\u2d7f\u2de0-\u2dff"
    "\u302a-\u302f\u3099-\u309a\ua66f-\ua672\ua674-\ua67d\ua69e-\ua69f\ua6f0-\ua6f1\ua802-\ua827\ua82c"
    "\ua880-\ua881\ua8b4-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua983\ua9b3-\ua9c0\ua9e5"
    "\uaa29-\uaa4d\uaa7b-\uaa7d\uaab0-\uaac1\uaaeb-\uaaef\uaaf5-\uaaf6\uabe3-\uabea\uabec-\uabed\ufb1e"
    "\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
)
_CLITIC = r"['’](?:[sSdDmM]|[rR][eE]|[vV][eE]|[lL]{2})"
# What must not follow a clitic: in mixed text a Chinese character may, as it begins a token of its own.
_NO_WORD, _NO_SPACED = rf"(?![\w{_MARKS}])", rf"(?!(?![{_UNSPACED}])[\w{_MARKS}])"
_ASCII = rf"\w+(?:'[tT]\b)?|[^\w\s\x1c-\x1f']|{_CLITIC}\b|'"
_SPACED = rf"[\w{_MARKS}]+(?:['’][tT]{_NO_WORD})?|{_CLITIC}{_NO_WORD}|[^\w\s][{_MARKS}]*"
_MIXED = (
    rf"[{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[\w{_MARKS}])+(?:['’][tT]{_NO_SPACED})?"
    rf"|{_CLITIC}{_NO_SPACED}|[^\w\s][{_MARKS}]*"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


FOLDING: Final = 1
"""The version of `fold`; part of the format on disk."""


@cache
def _compile(pattern: str, groups: str) -> re.Pattern[str]:
    return re.compile(groups.format(pattern), re.ASCII if pattern is _ASCII else 0)


def _pattern(text: str) -> str:
    # They differ in speed: each cuts the texts that it is chosen for alike.
    if text.isascii():
        return _ASCII
    return _MIXED if _HAS_UNSPACED.search(text) else _SPACED


def token_splitter(text: str) -> re.Pattern[str]:
    """Return a pattern that splits *text* into white space and tokens: `["", "Hot", " ", "dogs", ""]`."""
    return _compile(_pattern(text), "({})")


def tokens(text: str) -> list[str]:
    """Return the tokens of *text*, in order.

    Examples:
        >>> tokens("Teddy's hot-dogs, 苹果")
        ['Teddy', "'s", 'hot', '-', 'dogs', ',', '苹', '果']
    """
    return _compile(_pattern(text), "{}").findall(text)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of every token of *text*, in code points."""
    return [match.span() for match in _compile(_pattern(text), "{}").finditer(text)]


def fold(text: str) -> str:
    """Return *text* as alias tables have it: white space single, NFC, case folded, apostrophes straight.

    Whoever changes what it returns raises `FOLDING`: surfaces on disk are folded.

    Examples:
        >>> fold("Straße  des 17. Juni")
        'strasse des 17. juni'
    """
    if text.isascii():
        text = text.lower()
    else:
        # Once more after folding: case folding can leave a text that is not NFC.
        text = normalize("NFC", normalize("NFC", text).casefold()).replace("’", "'")
    return text if text.isalnum() else " ".join(text.split())


_ACCENTS: Final = re.compile("(?<=[A-Za-z\u0370-\u03ff\u1f00-\u1fff])[\u0300-\u036f]+")
_LATIN: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")


def without_accents(text: str) -> str:
    """Return *text* with plain Latin and Greek letters: é → e, ł → l, ø → o, ß → ss, ά → α, and ё → е.

    Other letters stay as they are; й is a letter of its own. The text can become longer.

    Examples:
        >>> without_accents("Antonín Dvořák, Łódź")
        'Antonin Dvorak, Lodz'
    """
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", normalize("NFD", text))
    plain = normalize("NFC", plain).replace("ё", "е").replace("Ё", "Е")
    return _LATIN.sub(_transliterated, plain)


def _transliterated(match: re.Match[str]) -> str:
    from anyascii import anyascii  # here: few texts have such letters

    return anyascii(match[0])


_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def drawn_text(text: str) -> str:
    """Return *text* with U+FFFD for each character that XML cannot hold, as pictures show it.

    These are the control characters but tab and line ends, halves of surrogate pairs, U+FFFE and U+FFFF.
    """
    return _NO_XML.sub("\ufffd", text)


def truncate(text: str, length: int) -> str:
    """Return a text of at most *length* characters: of a longer one the beginning, and an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def escape_xml(text: str) -> str:
    """Return *text* as it stands in XML and in HTML, as an element's text or between quotes.

    Every text gives well-formed XML: see `drawn_text`.
    """
    return escape(drawn_text(text))
