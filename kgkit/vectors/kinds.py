"""The kinds of index, which of them suits a size, and the one place that imports faiss.

    exact    every row is compared, in NumPy: nothing is stored, nothing is lost
    hnsw     a graph of neighbours (Malkov and Yashunin 2018, 32 links) over rows as bytes
    ivfpq    lists by k-means, half a byte for every two numbers (4-bit product quantiser, fast scan); the
             lists nearest to the query are read

But for `exact` each proposes rows by approximate scores, and these are scored again from the matrix. So no
kind keeps the vectors themselves: what is lost by bytes is the order of a few candidates, not their scores.
"""

import math
import os
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kgkit.errors import MissingExtra, UnknownName


@dataclass(frozen=True, kw_only=True)
class IndexKind:
    """A kind of index.

    Attributes:
        name: name of the kind.
        factory: faiss's description; `{lists}` and `{parts}` are filled in. Empty: nothing is built.
        knob: the parameter of searching that trades time for recall; "" if there is none.
        settings: settings of the knob, cheapest first; those that go beyond the lists are left out.
        proposals: rows proposed for each one wanted, cheapest first.
    """

    name: str
    factory: str = ""
    knob: str = ""
    settings: tuple[int, ...] = (0,)
    proposals: tuple[int, ...] = (1,)


_LISTS: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
_EF: Final = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)

KINDS: Final = {
    kind.name: kind
    for kind in (
        IndexKind(name="exact"),
        IndexKind(name="hnsw", factory="HNSW32_SQ8", knob="efSearch", settings=_EF, proposals=(1, 2)),
        IndexKind(
            name="ivfpq",
            factory="IVF{lists},PQ{parts}x4fs",
            knob="nprobe",
            settings=_LISTS,
            proposals=(1, 2, 4, 8, 16),
        ),
    )
}
"""By name."""

AUTO: Final = "auto"
RECALL: Final = 0.95  # of the ten true neighbours, unless another share is asked for

_SMALL: Final = 1 << 22  # numbers in all vectors
_LARGE: Final = 1 << 30


def find_kind(name: str, rows: int, width: int) -> IndexKind:
    """Return the kind called *name*; for `auto` the one that suits *rows* vectors of *width* numbers.

    Raises:
        UnknownName: if there is no such kind.
    """
    if name == AUTO:
        name = suitable_kind(rows, width)
    if name not in KINDS:
        raise UnknownName("kind of index", name, (AUTO, *KINDS))
    return KINDS[name]


def suitable_kind(rows: int, width: int) -> str:
    """Return the kind that suits a size.

    Under 4 million numbers comparing every row takes less than a millisecond, misses nothing and needs no
    faiss. Above, the graph was the fastest at a recall of 0.95 over 117,659 glosses (width 384); over as many
    random vectors it was slower than comparing all, which `build_index` finds out and then does. A graph
    holds width + 272 bytes a vector while it is built, so above a thousand million numbers it is product
    quantisation, of a quarter of that. `docs/nearest.md` has the figures.
    """
    numbers = rows * width
    return "exact" if numbers < _SMALL else "hnsw" if numbers < _LARGE else "ivfpq"


def describe_kind(kind: IndexKind, rows: int, width: int) -> str:
    """Return faiss's description of an index of *kind* over *rows* vectors of *width* numbers."""
    even = width + width % 2
    padded = f"Pad{even}," if even != width and "{parts}" in kind.factory else ""
    return padded + kind.factory.format(lists=lists_for(rows), parts=even // 2)


def lists_for(rows: int) -> int:
    """Return how many lists *rows* are divided into: faiss's own advice is 4 to 16 times the square root."""
    return max(1, min(65_536, round(4 * math.sqrt(rows)), rows // 39))


def turn(faiss: Any, inner: Any, knob: str, setting: int) -> None:
    """Set the parameter of searching that is called *knob*; "" is none."""
    if knob:
        faiss.ParameterSpace().set_index_parameter(inner, knob, setting)


def faiss_module() -> Any:
    """Return faiss.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra("faiss", "cpu") from error
    _forks(faiss)
    return faiss


@cache
def _forks(faiss: Any) -> None:
    """Let a forked child use one thread: it would wait for OpenMP's others, which its parent alone has."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))
