"""What a generator knows of the tokens of a text, and lists of mentions."""

from bisect import bisect_left
from typing import Final, NamedTuple

from msgspec import Struct

from kgkit.candidates.spelling import position_hides_case
from kgkit.store.surfaces import Matcher
from kgkit.types import Candidates, Mention

ANY: Final = 0xFF
"""The part-of-speech bits of a form that may be any."""

UNSEEN: Final = object()
"""What a memory has of a span that was not looked up yet."""


class SurfaceForm(Struct, frozen=True, gc=False):
    """What a token may stand for in a surface, and for which parts of speech (bits)."""

    text: str
    pos: int


class Entry(Struct, frozen=True, gc=False):
    """What there is to know of a token type.

    Attributes:
        candidates: candidates of the token alone; None if it is no surface.
        starts: continuations of the surfaces that begin with it, as `StoreReader.starts`
            gives them; None if there are none.
        texts: texts of its forms.
        forms: forms that it may have in a longer surface, itself (folded) first.
        spaced: matcher that asks the KB's tries for surfaces in which a space follows the token;
            None if there are none.
        tight: matcher for surfaces that go on at once.
        varies: flag for candidates that are others where the position hides the case of the token.
        hidden: candidates there, if so.
    """

    candidates: Candidates | None
    starts: dict[str, int] | None
    texts: tuple[str, ...]
    forms: tuple[SurfaceForm, ...]
    spaced: Matcher | None = None
    tight: Matcher | None = None
    varies: bool = False
    hidden: Candidates | None = None


class Varying(NamedTuple):
    """Candidates of a span that are others where its position hides the case of its letters."""

    candidates: Candidates
    hidden: Candidates | None


class Possessive(NamedTuple):
    """Meaning of a span that ends in *'s*, and is no mention where a word follows it."""

    meaning: "Meaning"


Meaning = Candidates | Varying | Possessive
"""Meaning of a span."""


def case_is_hidden(text: str, pieces: list[str], offsets: list[int], index: int) -> bool:
    """Do as `position_hides_case` for the token at *index*; most follow a word, where no sentence begins."""
    piece = 2 * index
    if index and pieces[piece] == " " and pieces[piece - 1].isalnum() and not pieces[piece + 1].isupper():
        return False
    return position_hides_case(text, offsets[piece], offsets[piece + 1])


def join_starts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    """Return the continuations of two tokens together."""
    starts = dict(first)
    for token, lengths in second.items():
        starts[token] = starts.get(token, 0) | lengths
    return starts


def have_equal_rows(candidates: Candidates, hidden: Candidates | None) -> bool:
    """Say whether the rows of two are the same; comparing bytes takes a tenth of the time."""
    return hidden is not None and candidates.rows.tobytes() == hidden.rows.tobytes()


def drop_before(mentions: list[Mention], begin: int) -> list[Mention]:
    """Return those of *mentions*, which come by start, that start at *begin* or behind it."""
    return mentions[bisect_left(mentions, begin, key=_start) :] if begin else mentions


def _start(mention: Mention) -> int:
    return mention.start


def longest(mentions: list[Mention]) -> list[Mention]:
    """Return the leftmost-longest of *mentions*, which come by start: none overlaps another."""
    result: list[Mention] = []
    for mention in mentions:
        if not result or mention.start >= result[-1].end:
            result.append(mention)
        elif mention.start == result[-1].start and mention.end > result[-1].end:
            result[-1] = mention
    return result
