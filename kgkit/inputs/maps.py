"""Maps of a text: which of its words belong together. Bai et al. (2022), KAM-BERT.

    W  words of a text    P  its word pieces    C  blocks of a map    S  spans

    entity        1 between the words of one name                               equation (5)
    phrase        1/l between the words of a phrase of level l; 1 of a chunk    equation (6)
    correlation   the positive PMI of two words                                 equation (7)
    knowledge     1 between the words of two entities that are neighbours in a knowledge base   equation (8)

A map is sparse: blocks of cells, each with one value. A span is a block, two spans are a block and its
mirror image, a pair of words is a block of one cell. Maps are made of words; `WordMap.spread` gives the word
pieces of a word what the word has. Special pieces have nothing. Where blocks overlap, the first one holds.

What names, chunks and entities a text has is decided elsewhere: functions take finished spans and links.

Departures:
    The paper draws phrases of higher levels fainter and gives no figure: 1/l is how equation (6) is read
    here. Of nested phrases the lowest has the cell.
    The diagonal of `correlation` is zero, though a table may have a PMI of a word with itself.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from kgkit.kb import KnowledgeBase
from kgkit.types import Numbers

MapName = Literal["entity", "phrase", "correlation", "knowledge"]
MAPS: Final[tuple[MapName, ...]] = get_args(MapName)
"""The names of the maps, in the order in which a model has them."""

Values = NDArray[np.float32]

_MOST_CELLS: Final = 4_000_000  # of blocks that may overlap


class WordAssociations(Protocol):
    """How strongly two words go together, as a table of PMI has it."""

    def values(self, words: Sequence[str], others: Sequence[str] | None = None) -> Values:
        """Return the values of all pairs of *words* and *others*, (W, O); None: of *words* themselves."""
        ...

    def strongest(self, words: Iterable[str], k: int = 10) -> Sequence[tuple[str, float]]:
        """Return the *k* words with the highest mean value with *words*, none of these, and the means."""
        ...


class MapCells(NamedTuple):
    """The cells of a map that are not zero, each once, row by row.

    Attributes:
        rows, columns: (N,) int64.
        values: (N,) float32.
    """

    rows: Numbers
    columns: Numbers
    values: Values


class PhraseSpan(NamedTuple):
    """A phrase: its words, end exclusive, and its level; a phrase without another one in it has level 1."""

    first: int
    end: int
    level: int = 1


class WordMap(NamedTuple):
    """A map of a text.

    Attributes:
        size: number of words, or of word pieces after `spread`.
        blocks: (C, 4) int64, first row, end row, first column, end column of each block, ends exclusive.
        values: (C,) float32, value of its cells, above 0.
    """

    size: int
    blocks: Numbers
    values: Values

    @classmethod
    def of(cls, size: int, blocks: Iterable[tuple[int, int, int, int]], values: Iterable[float]) -> "WordMap":
        """Return a map of *size* words from blocks and their values."""
        return cls(size, np.array([*blocks], np.int64).reshape(-1, 4), np.array([*values], np.float32))

    def spread(self, begins: Numbers, ends: Numbers, size: int) -> "WordMap":
        """Return the map of the word pieces.

        Args:
            begins: (W,) first piece of each word, ascending; of a word without a piece, that of the next.
            ends: (W,) piece behind its last, equal to its *begins* where there is none.
            size: number of pieces.
        """
        if not len(self.blocks):
            return WordMap(size, self.blocks, self.values)
        firsts, lasts = self.blocks[:, ::2], self.blocks[:, 1::2] - 1  # (C, 2)
        corners = np.stack([begins[firsts], ends[lasts]], 2).reshape(-1, 4)
        filled = (corners[:, 0] < corners[:, 1]) & (corners[:, 2] < corners[:, 3])
        return WordMap(size, corners[filled], self.values[filled])

    def cells(self) -> MapCells:
        """Return the cells that are not zero."""
        first_rows, end_rows, first_columns, end_columns = self.blocks.T
        widths = end_columns - first_columns
        counts = (end_rows - first_rows) * widths  # (C,)
        if counts.sum() > max(_MOST_CELLS, 4 * len(counts)):
            return self._without_overlap().cells()
        block = np.repeat(np.arange(len(counts)), counts)
        offsets = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = first_rows[block] + offsets // widths[block]
        columns = first_columns[block] + offsets % widths[block]
        _, once = np.unique(rows * self.size + columns, return_index=True)
        return MapCells(rows[once], columns[once], self.values[block][once])

    def _without_overlap(self) -> "WordMap":
        """Return the same map in blocks that do not overlap: however many cells its own have in common."""
        edges = np.unique(self.blocks)
        grid = np.zeros((len(edges), len(edges)), np.float32)  # of the cells between edges
        corners = np.searchsorted(edges, self.blocks)
        for index in reversed(range(len(corners))):
            first_row, end_row, first_column, end_column = corners[index]
            grid[first_row:end_row, first_column:end_column] = self.values[index]
        rows, columns = np.nonzero(grid)
        blocks = np.stack([edges[rows], edges[rows + 1], edges[columns], edges[columns + 1]], 1)
        return WordMap(self.size, blocks, grid[rows, columns])

    def nonzero(self) -> int:
        """Return how many cells are not zero."""
        return len(self.cells().values)

    def dense(self) -> Values:
        """Return the whole map, (W, W)."""
        matrix = np.zeros((self.size, self.size), np.float32)
        rows, columns, values = self.cells()
        matrix[rows, columns] = values
        return matrix


def word_ranges(words: Sequence[tuple[int, int]], spans: Iterable[tuple[int, int]]) -> Numbers:
    """Return (S, 2) the words that share a character with each span, end exclusive; an empty range: none.

    Args:
        words: spans of the words in code points, ascending, end exclusive.
        spans: spans in code points, end exclusive.
    """
    bounds = np.array(words, np.int64).reshape(-1, 2)
    covered = np.array([*spans], np.int64).reshape(-1, 2)
    firsts = np.searchsorted(bounds[:, 1], covered[:, 0], "right")
    ends = np.searchsorted(bounds[:, 0], covered[:, 1], "left")
    return np.stack([firsts, np.maximum(firsts, ends)], 1).astype(np.int64)


def phrase_map(size: int, phrases: Iterable[PhraseSpan]) -> WordMap:
    """Return the map of names or phrases, equations (5) and (6): 1/l between the words of one of level l.

    Two words have the value of the lowest phrase that both are in.

    Args:
        size: W.
        phrases: phrases; names and chunks have level 1.
    """
    ordered = sorted({phrase[::-1] for phrase in phrases if phrase.first < phrase.end})  # by level
    return WordMap.of(size, [(first, end) * 2 for _, end, first in ordered], [1 / own[0] for own in ordered])


def correlation_map(words: Sequence[str], table: WordAssociations, others: Sequence[str] = ()) -> WordMap:
    """Return the map of positive PMI between the words of a text, equation (7).

    A word and itself have no value, as there is nothing to learn from it.

    Args:
        words: words of the text.
        table: values of pairs of words.
        others: auxiliary words that are read with the text: they stand behind its words in the map.
    """
    every = [*words, *others]
    if not every:
        return WordMap.of(0, (), ())
    matrix = np.array(table.values(every), np.float32)
    np.fill_diagonal(matrix, 0)
    rows, columns = np.nonzero(matrix)
    blocks = np.stack([rows, rows + 1, columns, columns + 1], 1).astype(np.int64)
    return WordMap(len(every), blocks, matrix[rows, columns])


def auxiliary_words(words: Sequence[str], table: WordAssociations, k: int) -> list[str]:
    """Return the words of highest mean PMI with the words of a text, which lacks them; the best first.

    Args:
        words: words of the text.
        table: values of pairs of words.
        k: number of words, at most; 0: none.
    """
    return [word for word, _ in table.strongest(words, k)] if k and words else []


def knowledge_map(
    size: int, ranges: Sequence[tuple[int, int]], entities: Sequence[int], kb: KnowledgeBase
) -> WordMap:
    """Return the map of a knowledge base: 1 between the words of entities that it joins, equation (8).

    Args:
        size: W.
        ranges: words of each link, end exclusive.
        entities: entity of each, as ids of *kb*.
        kb: knowledge base; a fact in either direction makes two entities neighbours.
    """
    words: dict[int, list[tuple[int, int]]] = {}  # of each entity
    for (first, end), entity in zip(ranges, entities, strict=True):
        if first < end:
            words.setdefault(int(entity), []).append((first, end))
    ids = np.array([*words], np.int64)
    blocks = set[tuple[int, int, int, int]]()
    for entity, own in words.items():
        for neighbor in ids[np.isin(ids, kb.neighbors(entity))].tolist():
            if neighbor != entity:
                for span, other in product(own, words[neighbor]):
                    blocks |= {(*span, *other), (*other, *span)}
    return WordMap.of(size, sorted(blocks), [1.0] * len(blocks))


def join_maps(maps: Sequence[WordMap]) -> WordMap:
    """Return one map with the cells of several maps of one text."""
    return WordMap(
        maps[0].size,
        np.concatenate([part.blocks for part in maps]),
        np.concatenate([part.values for part in maps]),
    )
