"""Names and numbers: what the tables of a build are made with."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kgkit.store import codec
from kgkit.types import Numbers

NONE: Final = -1
"""Where a number is wanted and there is none."""

_LAST_TEXT: Final = b"\xff"  # no UTF-8 begins so


Numbering = defaultdict[str, int]
"""Numbers names from 0, in the order in which they are asked for."""


def numbering() -> Numbering:
    """Return a numbering that has no name yet."""
    return defaultdict(count().__next__)


def in_key_order(names: Sequence[str]) -> tuple[list[bytes], list[int]]:
    """Return the keys under which the store has *names*, ascending, and the place of each one's name."""
    # Code points sort as their UTF-8 does, and texts sort faster than bytes.
    order = sorted(range(len(names)), key=names.__getitem__)
    keys = [codec.bounded_key(names[index]) for index in order]
    if max(keys, default=b"") > _LAST_TEXT:  # digests of odd names: they belong behind all texts
        pairs = sorted(zip(keys, order, strict=True))
        keys, order = [key for key, _ in pairs], [index for _, index in pairs]
    return keys, order


def changes(*columns: Numbers) -> NDArray[np.bool_]:
    """Return (n,) bool: where a run of equal rows begins, given sorted *columns* (n,)."""
    begins = np.zeros(len(columns[0]), bool)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins
