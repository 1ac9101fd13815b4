r"""Counts of aliases from elsewhere, in the text format of `p_e_m` tables.

    mention \t total \t id,count,Title \t id,count,Title …

Ganea and Hofmann (2017) write such tables, and KnowBert and REL read them. There are three sorts:

    counts   how often the mention was seen with the page: of Wikipedia, of CrossWikis, of both
    shares   p(page | mention) instead: `prob_…_p_e_m.txt`. They become counts by the total
    names    id,Title: a dictionary, YAGO's, in which nothing was counted. An entry counts 1

A table is of one sort; its first lines tell which. A title has underscores for spaces, and may have
commas. `docs/priors.md` says what adding such counts means.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Final

from kgkit.building.contract import MAX_COUNT, Step
from kgkit.errors import SourceError
from kgkit.files import text_lines
from kgkit.types import Aliases

__all__ = ["priors_of"]

_HEAD: Final = 1000  # lines that tell of which sort a table is
_PAIRS: Final = 10_000  # of mention and page, handed on together
_FINEST: Final = 1 << 20  # parts of a count: so the sum is the same in whatever order counts are added up


class _Sort(Enum):
    COUNTS = "id,count,title"
    SHARES = "id,share,title"
    NAMES = "id,title"


def priors_of(path: Path) -> Iterator[Aliases | Step]:
    """Yield the counts in a `p_e_m` table, some thousand at a time; keys are titles, with spaces.

    Compressed files are read by their suffix.

    Raises:
        NotThere: if there is no such file.
        SourceError: at the first line that is not as it should be.
    """
    sort = _sort_of(path)
    counts: dict[tuple[str, str], float] = {}
    lines = 0
    for number, text in text_lines(path):
        mention, *fields = text.split("\t")
        try:
            for title, count in _entries(fields, sort):
                pair = mention.strip(), title.replace("_", " ").strip()
                counts[pair] = counts.get(pair, 0.0) + count
        except ValueError as error:
            raise SourceError(str(error), path=path, line=number, text=text) from None
        lines += 1
        if len(counts) >= _PAIRS:
            yield Aliases(counts)
            yield Step(lines)
            counts, lines = {}, 0
    yield Aliases(counts)
    yield Step(lines)


def _entries(fields: list[str], sort: _Sort) -> list[tuple[str, float]]:
    """Return the titles of one line, each with its count."""
    if not fields:
        raise ValueError("expected a mention, a total and entries, separated by tabs, found one field")
    total = _number(fields[0], "total")
    shares = []
    for entry in fields[1:]:
        if not entry or entry.isspace():
            continue  # a tab stands behind the last one, too
        if sort is _Sort.NAMES:
            page, _, title = entry.partition(",")
            count = 1.0
        else:
            page, number, title = entry.split(",", 2) if entry.count(",") > 1 else (entry, "", "")
            count = _number(number, "count") if number else 0.0
        if not page.strip() or not title.strip("_ "):
            raise ValueError(f"{entry!r} is no {sort.value}")
        shares.append((title, count))
    if sort is _Sort.SHARES:
        # Where two tables were added, shares come to more than one; else what was cut off is missing.
        scale = total / max(1.0, sum(share for _, share in shares))
        shares = [(title, share * scale) for title, share in shares]
    return [(title, round(count * _FINEST) / _FINEST) for title, count in shares]


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"the {what} {text!r} is no number") from None
    if not (isfinite(number) and 0 <= number <= MAX_COUNT):
        raise ValueError(f"the {what} is {text.strip()}: it has to lie between 0 and {MAX_COUNT:g}")
    return number


def _sort_of(path: Path) -> _Sort:
    """Return of which sort a table is, by the numbers in its first lines.

    Raises:
        SourceError: if its entries have no titles.
    """
    numbers: list[float] = []
    entries = bare = 0
    for _, text in islice(text_lines(path), _HEAD):
        for entry in filter(None, text.split("\t")[2:]):
            entries += 1
            _, _, tail = entry.partition(",")
            field, comma, _ = tail.partition(",")
            if _is_number(field):
                numbers.append(float(field))
                bare += not comma
    if bare * 2 > entries:
        raise SourceError(
            "the entries have an id and a count, and no title: pages are known by their titles here",
            path=path,
        )
    if len(numbers) * 2 < entries:
        return _Sort.NAMES
    return _Sort.SHARES if any(0 < number < 1 for number in numbers) else _Sort.COUNTS


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
