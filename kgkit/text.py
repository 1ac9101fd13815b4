"""Tokens, folding and offsets: how a text is cut so that it can meet a KB.

One tokenizer cuts both the surfaces of a KB and the texts they are sought in,
so that a surface is found wherever its tokens stand in a row. A token is

    a run of word characters with their combining marks   naïve  1990s  don't
    a clitic                                              's  'll
    one Chinese or Japanese character                     苹
    any other single character that is not white space    - . &

Offsets always count code points of the text as given. Folding can change a
text's length (ß → ss), so it is done span by span and never shifts an offset.
"""

import re
from functools import cache
from unicodedata import normalize

# Han (with extensions), Hiragana, Katakana: written without spaces.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Blocks of combining marks and of scripts whose vowel signs `\w` leaves out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18-\u0f39"
    "\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f"
    "\ufe20-\ufe2f"
)
_CLITIC = r"['’](?:[sdm]|re|ve|ll)\b"
_ASCII = rf"\w+(?:'t\b)?|{_CLITIC}|[^\w\s]"
_SPACED = rf"[\w{_MARKS}]+(?:['’]t\b)?|{_CLITIC}|[^\w\s]"
_MIXED = rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w{_MARKS}])+(?:['’]t\b)?|{_CLITIC}|[^\w\s]"
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _pattern(text: str) -> str:
    # They differ in speed: each cuts the texts that it is chosen for alike.
    if text.isascii():
        return _ASCII
    return _MIXED if _HAS_UNSPACED.search(text) else _SPACED


def token_splitter(text: str) -> re.Pattern[str]:
    """Return a pattern whose `split(text)` gives white space and tokens in turn: `["", "Hot", " ", "dogs", ""]`."""
    return _compiled(f"({_pattern(text)})")


def tokens(text: str) -> list[str]:
    """Return the tokens of *text*, in order.

    Example:
        >>> tokens("Teddy's hot-dogs, 苹果")
        ['Teddy', "'s", 'hot', '-', 'dogs', ',', '苹', '果']
    """
    return _compiled(_pattern(text)).findall(text)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of every token of *text*, in code points."""
    return [match.span() for match in _compiled(_pattern(text)).finditer(text)]


def fold(text: str) -> str:
    """Return *text* as alias tables have it: white space single, NFC, case folded.

    Two surfaces that a reader takes for the same word fold to the same string.

    Example:
        >>> fold("Straße  des 17. Juni")
        'strasse des 17. juni'
    """
    if text.isascii():
        text = text.lower()
    else:
        # Once more after folding: case folding can leave a text that is not NFC.
        text = normalize("NFC", normalize("NFC", text).casefold())
    return text if text.isalnum() else " ".join(text.split())
