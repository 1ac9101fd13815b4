"""Aliases as columns: counts added up, priors, spellings, and the rows of `aliases` and `starts`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kgkit.building.numbers import NONE, changes, in_key_order, numbering
from kgkit.errors import SourceError
from kgkit.kb.names import and_words
from kgkit.name_words import REGIONS
from kgkit.store import codec
from kgkit.store.layout import MAX_CLASS_BITS, MAX_ROWS, MAX_TOKENS
from kgkit.store.writer import Item
from kgkit.text import Folding, accentless_writings
from kgkit.types import CANDIDATE, NO_SENSE, Numbers

Weights = NDArray[np.float64]

_HYPHEN: Final = re.compile(r"(?<=[^\W_])-(?=[^\W_])")  # one that joins two words
_PARTICLES: Final = frozenset(
    "a an the and or nor but if so as at by in into of on to from with for it is up out off down over away "
    "back through about around under".split()
)
"""Words that stand beside others without making a name of them: *built in 1990*, *At Bristol*."""
_INITIAL_STOP: Final = re.compile(r"(?<![^\W_][^\W_])\.(?=[^\W\d_]\.)")
_DEGREE: Final = re.compile(r"(?<![\w.])(?:[A-Z][a-z]{0,4}\.)+[A-Z][a-z]{0,4}(?!\w)\.?")
_CLOSED_DEGREE: Final = re.compile(
    r"(?<![\w.])(?!Ma?c|[A-Z]+\b)(?=[A-Za-z]{3,6}(?!\w))([A-Z][a-z]{0,3})([A-Z][a-z]{0,4})(?!\w)"
)
_AMPERSAND: Final = re.compile(r"(?<=\S) ?& ?(?=\S)")
_SUFFIXES: Final = frozenset(
    "inc incorporated llc llp lp ltd limited corp plc pllc sa srl spa nv jr sr phd md mba jd esq obe mbe "
    "cbe".split()
)
_STATES: Final = frozenset(map(str.upper, REGIONS))
"""States and provinces of America: before these and `_SUFFIXES` a comma is written or not."""
_INITIAL_GAP: Final = re.compile(r"(?<=\b[^\W\d_]) (?=[^\W\d_]\b)")  # between two letters


class Columns(NamedTuple):
    """Aliases as the source has them: a surface's place in a list, ids or `NONE`, a count."""

    surface: Numbers
    entity: Numbers
    sense: Numbers
    counted: Weights


class Rows(NamedTuple):
    """One row per (folded surface, entity), best first within a surface. `weight` is the count, smoothed."""

    name: Numbers
    entity: Numbers
    sense: Numbers
    weight: Weights


class Spellings(NamedTuple):
    """One per (row, exact surface), in the order of the rows. `share` is its part of the row's weight."""

    row: Numbers
    surface: Numbers
    share: Weights


class Names:
    """Exact surfaces, and the folded ones by which they are found.

    Attributes:
        surfaces: exact surfaces in the order of the source.
        folded: folded surfaces in the order of their keys.
        keys: keys of the folded surfaces, ascending.
        of_surface: position in `folded` of each exact surface.
        empty: position in `folded` of the surface without a character, or `NONE`.
    """

    folded: Sequence[str]
    keys: Sequence[bytes]

    def __init__(self, surfaces: Sequence[str], folding: Folding) -> None:
        self.surfaces = surfaces
        number = numbering()
        numbers = np.fromiter(map(number.__getitem__, map(folding.fold, surfaces)), np.int64, len(surfaces))
        names = [*number]
        self.keys, order = in_key_order(names)
        self.folded = [names[position] for position in order]
        position_of = np.empty(len(order), np.int64)
        position_of[order] = np.arange(len(order))
        self.of_surface = position_of[numbers]
        self.empty = int(position_of[number[""]]) if "" in number else NONE

    @classmethod
    def folded_already(
        cls, surfaces: Sequence[str], folded: Sequence[str], keys: Sequence[bytes], of_surface: Numbers
    ) -> Self:
        """Return names of which all is known; none of them is empty."""
        names = cls.__new__(cls)
        names.surfaces, names.folded, names.keys, names.of_surface = surfaces, folded, keys, of_surface
        names.empty = NONE
        return names


def frequent_only(columns: Columns, names: Names, min_count: float) -> Columns:
    """Return the pairs of a folded surface and an entity that were counted so often, or not at all."""
    name = names.of_surface[columns.surface]
    order = np.lexsort((columns.entity, name))
    begins = changes(name[order], columns.entity[order])
    sums = np.add.reduceat(columns.counted[order], np.flatnonzero(begins)) if len(order) else np.empty(0)
    frequent = np.empty(len(order), bool)
    frequent[order] = ((sums >= min_count) | (sums == 0))[np.cumsum(begins) - 1]
    surface, entity, sense, counted = columns
    return Columns(surface[frequent], entity[frequent], sense[frequent], counted[frequent])


def add_up(columns: Columns, names: Names, smoothing: float) -> tuple[Rows, Spellings]:
    """Add up equal pairs; their sense is the first that is given, ties stay in the order of the source."""
    surface, entity, sense, counted = columns
    name = names.of_surface[surface]
    order = np.lexsort((surface, entity, name))  # stable: equal ones stay in the order of the source
    new_row = changes(name[order], entity[order])
    begins = np.flatnonzero(new_row)
    first = np.minimum.reduceat(order, begins)
    # A pair may be told without a sense first.
    firsts = np.minimum.reduceat(np.where(sense[order] == NONE, len(order), order), begins)
    sense = np.append(sense, NONE)[firsts]
    weight = np.add.reduceat(counted[order], begins) + smoothing
    best = np.lexsort((first, -weight, name[first]))
    rows = Rows(name[first][best], entity[first][best], sense[best], weight[best])

    begins = np.flatnonzero(new_row | changes(surface[order]))
    share = np.add.reduceat(counted[order], begins) + smoothing
    rank = np.empty(len(best), np.int64)
    rank[best] = np.arange(len(best))
    row = rank[np.cumsum(new_row)[begins] - 1]
    # Without counts and smoothing, spellings share alike.
    totals, ways = np.bincount(row, share)[row], np.bincount(row)[row]
    share = np.where(totals > 0, share / np.where(totals > 0, totals, 1), 1 / ways)
    by_row = np.argsort(row, kind="stable")
    return rows, Spellings(row[by_row], surface[order][begins][by_row], share[by_row])


def alias_rows(rows: Rows, spellings: Spellings, names: Names, bit_of: NDArray[np.uint8]) -> Iterator[Item]:
    """Yield the rows of `aliases`; `codec.decode_alias` reads them.

    Args:
        rows: rows as `add_up` gives them.
        spellings: spellings of these rows.
        names: names of the aliases.
        bit_of: bits that `class_bits` gives for the entities.

    Raises:
        SourceError: if an alias means more entities than a row can hold.
    """
    begins = np.flatnonzero(changes(rows.name))
    bounds = np.append(begins, len(rows.name))
    sizes, totals = np.diff(bounds), np.add.reduceat(rows.weight, begins)
    if (most := sizes.max(initial=0)) > MAX_ROWS:
        name = names.folded[rows.name[begins[sizes.argmax()]]]
        raise SourceError(f"an alias means {most:,} entities: {MAX_ROWS:,} are the most", text=name)
    share_alike = totals <= 0  # nobody counted, and nothing smooths
    priors = np.where(np.repeat(share_alike, sizes), 1.0, rows.weight)
    packed = np.empty(len(rows.name), CANDIDATE)
    packed["entity"], packed["sense"] = rows.entity, np.where(rows.sense == NONE, NO_SENSE, rows.sense)
    packed["prior"] = priors / np.repeat(np.where(share_alike, sizes, totals), sizes)
    body, width = packed.tobytes(), packed.itemsize
    bits = np.bitwise_or.reduceat(bit_of[rows.entity], begins)

    spelled = np.searchsorted(spellings.row, bounds)
    lowest = np.minimum.reduceat(spellings.surface, spelled[:-1])
    is_single = lowest == np.maximum.reduceat(spellings.surface, spelled[:-1])
    head, encode, surfaces = codec.alias_head.pack, codec.encode, names.surfaces
    for name, begin, end, bit, total, single, surface, low, high in zip(
        rows.name[begins].tolist(),
        begins.tolist(),
        bounds[1:].tolist(),
        bits.tolist(),
        totals.tolist(),
        is_single.tolist(),
        lowest.tolist(),
        spelled[:-1].tolist(),
        spelled[1:].tolist(),
        strict=True,
    ):
        if not single:
            tail = encode(_by_surface(spellings, surfaces, slice(low, high), begin))
        elif surfaces[surface] != names.folded[name] or names.keys[name].startswith(codec.DIGEST):
            tail = encode([(surfaces[surface], [], [])])
        else:
            tail = b""
        rows_of_name = body[begin * width : end * width]
        yield names.keys[name], head(end - begin | bit << 24, total) + rows_of_name + tail


def name_rows(rows: Rows, names: Names) -> Iterator[Item]:
    """Yield the rows of `names`: the keys of the aliases that can mean each entity.

    Args:
        rows: rows as `add_up` gives them.
        names: names of the aliases.
    """
    order = np.lexsort((rows.name, rows.entity))
    entity, name = rows.entity[order], rows.name[order]
    begins = np.flatnonzero(changes(entity))
    keys, encode = [*map(names.keys.__getitem__, name.tolist())], codec.encode
    bounds = pairwise([*begins.tolist(), len(keys)])
    for number, (begin, end) in zip(entity[begins].tolist(), bounds, strict=True):
        yield codec.pack_id(number), encode(keys[begin:end])


def starts(
    surfaces: Iterable[str], rows: dict[str, dict[str, int]], folding: Folding
) -> dict[str, dict[str, int]]:
    """Add to *rows* how *surfaces* begin: first token -> what comes next -> bits of their lengths."""
    fold = folding.fold_part
    for surface in surfaces:
        if surface.isalpha() and surface.isascii():
            continue  # one token
        parts = folding.tokens(surface)
        if 1 < len(parts) <= MAX_TOKENS:
            after, length = rows.setdefault(fold(parts[0]), {}), 1 << len(parts)
            second = fold(parts[1])
            after[second] = after.get(second, 0) | length
            if len(parts) > 2:
                two = f"{second} {fold(parts[2])}"
                after[two] = after.get(two, 0) | length
    return rows


def variants(surfaces: Iterable[str], rows: dict[str, set[bytes]], folding: Folding) -> dict[str, set[bytes]]:
    """Add to *rows* how *surfaces* are written otherwise: another writing, folded -> keys of `aliases`.

    Those are with a word for `&` and the reverse, with and without spaces about `&`; and of a surface with a
    capital, or of a script that has none:

        itself without its accents                       Milosevic, and Mueller for Müller
        with spaces for hyphens between words            Jean Paul, תל אביב
        an abbreviation with and without full stops      USA, Ph.D. and PhD
        initials closed or spaced                        J.R.R. and J. R. R.
        with and without a comma                         Washington DC, Apple, Inc.

    Of one in lower case, with spaces for several hyphens. None with spaces begins or ends with a particle:
    *built in* is no *built-in*. In version 1 there are none.
    """
    ands = and_words(folding.language)
    sought = _signs_of_writings(ands)
    for surface in surfaces if folding.version > 1 else ():
        if surface.isascii() and not sought.search(surface):
            continue
        folded = folding.fold(surface)
        key = codec.bounded_key(folded)
        if not key.startswith(codec.DIGEST):
            for writing in _other_writings(surface, folded, folding, ands):
                rows.setdefault(writing, set()).add(key)
    return rows


@cache
def _signs_of_writings(ands: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that each surface of ASCII letters has that may be written otherwise."""
    words, suffixes, states = map("|".join, (ands, sorted(_SUFFIXES), sorted(_STATES)))
    return re.compile(
        rf"[-.&,]|[a-z][A-Z]|[A-Z][A-Z][a-z]|(?i: (?:{words}) | (?:{suffixes})$)| (?:{states})$"
    )


def _without_stops(match: re.Match[str]) -> str:
    return match[0].replace(".", "")


def _without_last_stop(match: re.Match[str]) -> str:
    return match[0].removesuffix(".")


def _with_gaps(match: re.Match[str]) -> str:
    return match[0].replace(".", ". ")


def _has_suffix(surface: str) -> bool:
    """Say whether the last word of a surface is one before which a comma may stand."""
    before, _, last = surface.replace(".", "").rpartition(" ")
    return bool(before) and (last.lower() in _SUFFIXES or last in _STATES)


def _other_writings(surface: str, folded: str, folding: Folding, ands: tuple[str, ...]) -> dict[str, None]:
    """Return the other writings of a surface, folded."""
    lower = surface.lower()
    is_name = surface != lower or (lower == surface.upper() and any(map(str.isalpha, surface)))
    writings = {folded: None}
    if is_name and "." in surface:
        writings[folding.without_stops(folded) or folded] = None
        writings[folding.fold(_INITIAL_STOP.sub(". ", surface))] = None
        writings[_INITIAL_GAP.sub("", folded)] = None
        for way in (_without_stops, _without_last_stop, _with_gaps):
            writings[folding.fold(_DEGREE.sub(way, surface))] = None
    elif is_name and _CLOSED_DEGREE.search(surface):
        for stopped in (r"\1.\2", r"\1.\2.", r"\1. \2", r"\1. \2."):
            writings[folding.fold(_CLOSED_DEGREE.sub(stopped, surface))] = None
    if is_name:
        writings |= dict.fromkeys(accentless_writings(folded))
    if "&" in folded:
        writings |= dict.fromkeys([_AMPERSAND.sub("&", writing) for writing in writings])
        for sign in ("&", *ands):
            writings |= dict.fromkeys([_AMPERSAND.sub(f" {sign} ", writing) for writing in writings])
    for word in ands:
        if len(word) > 1 and f" {word} " in folded:
            writings |= dict.fromkeys([writing.replace(f" {word} ", " & ") for writing in writings])
    words = folded.split("-")
    if (is_name or len(words) > 2) and _PARTICLES.isdisjoint((words[0], words[-1])):
        writings |= dict.fromkeys([_HYPHEN.sub(" ", writing) for writing in writings])
    if is_name and ", " in folded:
        writings |= dict.fromkeys([writing.replace(", ", " ") for writing in writings])
    elif is_name and _has_suffix(surface):
        writings |= dict.fromkeys([", ".join(writing.rsplit(" ", 1)) for writing in writings])
    del writings[folded]
    return writings


def variant_rows(variants: Mapping[str, Iterable[bytes]]) -> list[Item]:
    """Return the rows of `variants`."""
    return sorted(
        (codec.bounded_key(writing), codec.encode(sorted(keys))) for writing, keys in variants.items()
    )


def start_rows(starts: Mapping[str, Mapping[str, int]]) -> list[Item]:
    """Return the rows of `starts`."""
    firsts = [*starts]
    keys, order = in_key_order(firsts)
    return [
        (key, codec.encode(dict(sorted(starts[firsts[index]].items()))))
        for key, index in zip(keys, order, strict=True)
    ]


def _by_surface(
    spellings: Spellings, surfaces: Sequence[str], these: slice, begin: int
) -> list[tuple[str, list[int], list[float]]]:
    """Return each exact surface with the rows of the alias, from 0, that it was seen with and its shares."""
    rows_and_shares: dict[int, tuple[list[int], list[float]]] = {}
    columns = (column[these].tolist() for column in spellings)
    for row, surface, share in zip(*columns, strict=True):
        rows, shares = rows_and_shares.setdefault(surface, ([], []))
        rows.append(row - begin)
        shares.append(share)
    return sorted((surfaces[number], *pair) for number, pair in rows_and_shares.items())


def class_bits(class_of: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return (N,) uint8: a bit for the class of each entity; all bits if there are more classes than bits."""
    if len(class_of) and class_of.max() > MAX_CLASS_BITS:
        return np.full(len(class_of), 0xFF, np.uint8)
    bit = np.array([0, *(1 << bit_number for bit_number in range(MAX_CLASS_BITS))], np.uint8)
    return bit[class_of]
