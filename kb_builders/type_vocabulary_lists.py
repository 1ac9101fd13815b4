"""A type's words from a text file, as people keep such lists.

An entry ends at a comma or at the end of its line. What is done to an entry, each of it counted:

    'buttermilk'                      quotation marks around it are taken off
    Cranberries (fresh, frozen)       what stands in brackets is a remark: no part of the name,
                                      but its words are words of the type; commas in it end nothing
    48                                an entry without a letter is left out
    drink, Drink                      an entry that is written twice counts once, as it was written first

Spelling is left alone: `sourcream` stays what it is, and so does `Broccoli`. A KALM with `--style recipe`
reads these words in small letters, as it reads texts.
"""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.building import text_lines

FUNCTION_WORDS: Final = frozenset("a all an and for in of or the to with".split())

_MARK: Final = re.compile(r"[,()]")
_QUOTED: Final = re.compile(r"""(?:'(.*)'|"(.*)"|‘(.*)’|“(.*)”)\Z""")
_REMARK: Final = re.compile(r"\(([^()]*)\)")
_AROUND: Final = ".,;:!?()[]\"'"


class Listed(NamedTuple):
    """What a file says of its type: names and words with counts, and what was done to get them."""

    counts: dict[str, float]
    attributes: dict[str, Any]


def files(folder: Path) -> list[Path]:
    """Return the files of the types in *folder*, by name."""
    return sorted(path for path in folder.glob("*.txt") if path.is_file() and path.name[0] != ".")


def read(path: Path) -> Listed:
    """Return the names and words in *path*, in the order of the file.

    Raises:
        SourceError: if it is no text, or empty.
    """
    counts: Counter[str] = Counter()
    cleaned: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    names: set[str] = set()
    entries = 0
    for _, line in text_lines(path):
        entries += sum(1 for piece in line.split(",") if piece.strip())
        cleaned["white space around a line"] += line != line.strip()
        for piece in _split(line):
            entry = _clean(piece.strip(), cleaned)
            if entry is None:
                continue
            name, remark = entry
            if (pair := (name.lower(), remark.lower())) in pairs:
                cleaned["written twice"] += 1
                continue
            pairs.add(pair)
            names.add(name.lower())
            surfaces = [name, *_words(f"{name} {remark}")]
            for surface in {each.lower(): each for each in reversed(surfaces)}.values():  # the first spelling
                counts[surface] += 1
    attributes = {
        "file": path.name,
        "entries": entries,
        "names": len(names),
        "words": len({surface.lower() for surface in counts if " " not in surface}),
        "cleaned": {what: count for what, count in sorted(cleaned.items()) if count},
    }
    return Listed({surface: float(count) for surface, count in counts.items()}, attributes)


def _split(line: str) -> list[str]:
    """Return the pieces of a line between its commas, but for those in brackets."""
    cuts, following = [len(line)], ""
    for mark in reversed([*_MARK.finditer(line)]):
        if mark[0] != ",":
            following = mark[0]
        elif following != ")":
            cuts.append(mark.start())
    return [line[start + 1 : end] for start, end in pairwise([*cuts, -1][::-1])]


def _clean(text: str, cleaned: Counter[str]) -> tuple[str, str] | None:
    """Return the name in an entry, and the remark on it; None if there is no name."""
    if not text:
        return None
    if quoted := _QUOTED.match(text):
        cleaned["quotation marks"] += 1
        text = "".join(filter(None, quoted.groups())).strip()
    if not any(map(str.isalpha, text)):
        cleaned["without a letter"] += 1
        return None
    remark = " ".join(_REMARK.findall(text))
    name = " ".join(_REMARK.sub(" ", text).split())
    if name != text:
        cleaned["brackets" if remark else "white space within"] += 1
    return (name, remark) if name else (" ".join(remark.split()), "")


def _words(text: str) -> list[str]:
    words = [word.strip(_AROUND) for word in text.split()]
    return [word for word in words if any(map(str.isalpha, word)) and word.lower() not in FUNCTION_WORDS]
