"""Tokenized texts, and the batches that they are encoded in.

N  texts    n  texts of a batch    T  tokens of its longest
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from kgkit.types import Numbers

SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""What no UTF-8 can hold -> the replacement character."""


class TokenBatch(NamedTuple):
    """Texts that go through the model at once.

    Attributes:
        rows: (n,) indices of the texts.
        ids: (n, T) their tokens.
        mask: (n, T) 1 where there is a token; None where there is one everywhere.
    """

    rows: Numbers
    ids: Numbers
    mask: Numbers | None

    def at_least(self, tokens: int) -> "TokenBatch":
        """Return a batch without padding as one of *tokens* or more, of repeated texts; `rows` stay."""
        if self.mask is not None or self.ids.size >= tokens:
            return self
        width = self.ids.shape[1]
        return self._replace(ids=np.resize(self.ids, (-(-tokens // width), width)))


def batches(tokens: Sequence[Sequence[int]], *, least: int, most: int, padding: int) -> Iterator[TokenBatch]:
    """Yield batches of texts of nearly equal length, shortest first; texts without a token are in none.

    A batch ends where a longer text follows and it has *least* tokens, or where
    another text would make it more than *most*, padding counted. Texts of one
    length need neither padding nor a mask, and that is most of them where *least*
    is small; a GPU wants large batches more than it minds padding.
    """
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))  # (N,)
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    begin = 0
    while begin < len(order):
        end = _end(lengths[order[begin:]], least, most) + begin
        rows = order[begin:end]
        yield _padded(rows, [tokens[row] for row in rows.tolist()], padding)
        begin = end


def _end(lengths: Numbers, least: int, most: int) -> int:
    """Return how many of the first of *lengths*, which grow, make a batch."""
    count = np.arange(1, min(len(lengths), most) + 1)
    lengths = lengths[: len(count)]
    fits = int(np.searchsorted(lengths * count, most, "right"))
    # Where the length grows, what comes before it may be enough.
    enough = np.flatnonzero((np.diff(lengths[:fits]) > 0) & ((lengths * count)[: max(fits - 1, 0)] >= least))
    return int(enough[0]) + 1 if len(enough) else max(1, fits)


def _padded(rows: Numbers, tokens: list[Sequence[int]], padding: int) -> TokenBatch:
    shortest, longest = len(tokens[0]), len(tokens[-1])
    if shortest == longest:
        return TokenBatch(rows, np.array(tokens, np.int64), None)
    ids = np.full((len(rows), longest), padding, np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return TokenBatch(rows, ids, mask)
