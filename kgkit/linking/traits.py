"""What a head is told of a candidate beside vectors: how often it was seen in training, and how alike it is.

R  candidates of all mentions together    M  mentions
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

TRAITS: Final = (
    "count",  # log(1 + n), n being the mentions of this meaning in training
    "share",  # (n + ½) / Σ (n + ½) over the mention's candidates
    "log share",
    "place",  # 1 / its place in the list of candidates, best prior first
    "most",  # 1 for the candidate that was seen most often, the first of several
    "seen",  # 1 if it was seen at all
    "like seen",  # q·c(e), 0 if it was not
    "like text",  # q·⟨W g(e)⟩
)
"""The letters are those of `kgkit.linking.ridge`."""


def traits(counts: Matrix, like_seen: Matrix, like_text: Matrix, sizes: NDArray[np.int64]) -> Matrix:
    """Return (R, 8), the traits of candidates.

    Args:
        counts: (R,) n.
        like_seen: (R,) q·c(e); any number where n is 0.
        like_text: (R,).
        sizes: (M,) candidates of each mention, R together.
    """
    mention = np.repeat(np.arange(len(sizes)), sizes)  # (R,)
    begins = np.cumsum(sizes) - sizes
    place = np.arange(len(counts)) - begins[mention]
    share = (counts + 0.5) / np.bincount(mention, counts + 0.5, len(sizes))[mention]
    most = np.zeros(len(counts), np.float32)
    order = np.lexsort((place, -counts, mention))
    most[order[begins[sizes > 0]]] = 1
    seen = counts > 0
    columns = (
        np.log1p(counts),
        share,
        np.log(share),
        1 / (1 + place),
        most,
        seen,
        like_seen * seen,
        like_text,
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
