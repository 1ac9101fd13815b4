"""Words that are joined by hyphens; a KB may write them with a space, or as one: ice-cream, co-operative."""

import re
from collections.abc import Iterator
from typing import Final

HYPHENS: Final = ("-", "\u2010", "\u2011")
"""The hyphen of keyboards, Unicode's own, and the one where no line breaks."""

_LEAST: Final = 5  # letters of two parts that may be one word: tv is not T-V
_MOST_WORDS: Final = 8  # of a name that may have hyphens for spaces
_SEVERAL: Final = ~0b11  # the bits of surfaces of two tokens and more
_SPACE: Final = re.compile(r"(?<=[^\W_])\s+(?=[^\W_])")
_PARTICLES: Final = (
    "a an the and or nor but if so as at by in into of on to from with for it is up out off down over away "
    "back through about around under"
).replace(" ", "|")
_PARTICLE_BEFORE: Final = re.compile(rf"\b(?:{_PARTICLES})$", re.IGNORECASE)
_PARTICLE_AFTER: Final = re.compile(rf"(?:{_PARTICLES})\b")
_JOINING: Final = re.compile(r"(?<=[^\W_])[-\u2010\u2011](?=[^\W_])")


def joining_hyphens(text: str) -> list[int]:
    """Return where in *text* there is a hyphen between two letters or digits, ascending."""
    positions: list[int] = []
    find = text.find
    for hyphen in "-" if text.isascii() else HYPHENS:
        at = find(hyphen, 1)
        while at > 0:
            if text[at - 1].isalnum() and text[at + 1 : at + 2].isalnum():
                positions.append(at)
            at = find(hyphen, at + 1)
    return sorted(positions) if positions else positions


def with_plain_hyphens(text: str) -> str:
    """Return *text* with the hyphen of keyboards for those of Unicode; its length stays."""
    for hyphen in () if text.isascii() else HYPHENS[1:]:
        text = text.replace(hyphen, "-")
    return text


def with_spaces(text: str) -> str:
    """Return *text* with a space for each hyphen that joins two words."""
    return _JOINING.sub(" ", text)


def with_hyphens(text: str) -> Iterator[str]:
    """Yield *text*, of a few words, with hyphens for a run of its spaces; short runs first.

    None begins or ends with a particle: *built in 1990* is not *built-in*.
    """
    gaps = [match.span() for match in _SPACE.finditer(text)]
    for size in range(1, len(gaps) + 1) if len(gaps) < _MOST_WORDS else ():
        for run in (gaps[at : at + size] for at in range(len(gaps) - size + 1)):
            before, after = text[: run[0][0]], text[run[-1][1] :]
            if _PARTICLE_BEFORE.search(before) or _PARTICLE_AFTER.match(after):
                continue
            if before[-1].isdigit() and after[0].isdigit():
                continue
            yield before + _SPACE.sub("-", text[run[0][0] - 1 : run[-1][1] + 1])[1:-1] + after


def with_hyphen_behind(text: str) -> Iterator[str]:
    """Yield *text*, of many words, with a hyphen for a space between two that begin with capitals."""
    words = text.split()
    for at in range(2, len(words)):
        if words[at - 1][0].isupper() and words[at][0].isupper():
            yield " ".join(words[:at]) + "-" + " ".join(words[at:])


def hyphened_starts(starts: dict[str, int] | None) -> dict[str, int] | None:
    """Return the continuations of a token, with those in which a space stands for a hyphen.

    Args:
        starts: continuations, as `StoreReader.starts` has them: those behind a hyphen are *- cola*, those
            before one *lloyd -*.

    Returns:
        *starts* itself where there is no hyphen. Else with *cola* and, for lengths of more than two tokens
        whatever the third, *cola* and a space.
    """
    if starts is None or "-" not in " ".join(starts):
        return starts
    more: dict[str, int] = {}
    for key, lengths in starts.items():
        first, _, second = key.partition(" ")
        if "-" not in (first, second) or first == second or not second:
            continue
        word = second if first == "-" else first
        more[word] = more.get(word, 0) | (lengths >> 1 | lengths >> 2 | lengths >> 3) & _SEVERAL
    joined = starts | {word: starts.get(word, 0) | lengths for word, lengths in more.items()}
    return joined | {f"{word} ": lengths for word, lengths in more.items()}


def closed_spelling(text: str) -> str | None:
    """Return *text*, words joined by hyphens, without them; None if it cannot well be one word."""
    joined = _JOINING.sub("", text)
    return joined if len(joined) >= _LEAST and joined.isalpha() and joined != text else None
