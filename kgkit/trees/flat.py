"""A sentence tree as a sequence of tokens, each branch behind its mention, and what sees what in it.

Departures from the released code:
    The text goes first: facts share the room it leaves, in its order, and one that does not fit is left out
    whole. There what is behind the last token is cut off, of the text or in the middle of a fact.
    White space is no token.
"""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import UsageError
from kgkit.trees.building import Tree

Integers = NDArray[np.int64]

_CACHE_BYTES: Final = 64_000_000
_ENDLESS: Final = sys.maxsize


class FlatTree(NamedTuple):
    """A tree as a sequence of tokens, each branch behind its mention.

    Attributes:
        tokens: (N,) as they were cut: ids of an encoder, or strings.
        positions: (N,) soft positions, from 0.
        branches: (N,) 0 for the text and special tokens, k for the k-th branch that is there.
        hooks: (N,) m for the m-th mention that has a branch and all that hangs from it; else 0.
        texts: (N,) which text a token, or the mention that it hangs from, is in.
        starts: (N,) first code point in its text; -1 for special tokens and those of branches.
        ends: (N,) one past the last; -1 where `starts` is.
    """

    tokens: list[Any]
    positions: Integers
    branches: Integers
    hooks: Integers
    texts: Integers
    starts: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.tokens)


def visible(branches: Integers, hooks: Integers) -> NDArray[np.bool_]:
    """Say what sees what in a tree: the visible matrix, equation (3), true for 0 and false for -∞.

    Args:
        branches: (…, N), as in `FlatTree`.
        hooks: (…, N), as in `FlatTree`.

    Returns:
        (…, N, N), symmetric, its diagonal true.
    """
    mine, other = branches[..., :, None], branches[..., None, :]  # (…, N, 1), (…, 1, N)
    hooked = (hooks[..., :, None] == hooks[..., None, :]) & (hooks[..., :, None] > 0)  # (…, N, N)
    matrix: NDArray[np.bool_] = (mine == other) | (hooked & ((mine == 0) | (other == 0)))
    return matrix


class Pieces(Protocol):
    """A text as P tokens that know where they stand.

    Attributes:
        ids: (P,) what they are.
        starts: (P,) first code point of each.
        ends: (P,) one past the last.
    """

    @property
    def ids(self) -> Sequence[Any] | NDArray[Any]:
        """The tokens, (P,): ids of an encoder, or strings."""

    @property
    def starts(self) -> Sequence[int] | Integers:
        """The first code point of each token, (P,)."""

    @property
    def ends(self) -> Sequence[int] | Integers:
        """One past the last code point of each token, (P,)."""


Cut = Callable[[str], Pieces]
"""Cuts a text into tokens."""


class Strings(NamedTuple):
    """A text as strings; see `Pieces`."""

    ids: list[str]
    starts: list[int]
    ends: list[int]


def cutter(pattern: str = r"\S", special: Iterable[str] = ()) -> Cut:
    """Return what cuts a text into all that matches a regular expression, special tokens left whole.

    Without one these are its characters, as the released code reads Chinese.
    """
    specials = "".join(f"{re.escape(token)}|" for token in special)
    tokens = re.compile(specials + pattern)

    def cut(text: str) -> Strings:
        """Return the tokens of a text with their offsets."""
        matches = [*tokens.finditer(text)]
        return Strings(
            [match[0] for match in matches],
            [match.start() for match in matches],
            [match.end() for match in matches],
        )

    return cut


class Frame(NamedTuple):
    """Special tokens around the texts: [CLS] before the first, [SEP] behind each."""

    before: tuple[Any, ...] = ()
    between: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()


class Flattener:
    """Makes sequences of trees.

    Args:
        cut: cuts texts, and words that are injected, into tokens.
        frame: special tokens around the texts.
        size: tokens of a tree, special ones included, at most; None for any number.

    Attributes:
        shortened: whether a text has lost its end so far.

    Raises:
        UsageError: if special tokens leave no room for a text.
    """

    def __init__(self, cut: Cut, frame: Frame | None = None, size: int | None = None) -> None:
        self._cut, self._frame, self._size = cut, frame or Frame(), size
        self.shortened = False
        self._words = BoundedCache[tuple[str, ...], list[Any]](_CACHE_BYTES)
        if size is not None and size <= sum(map(len, self._frame)):
            raise UsageError(f"size is {size}: special tokens leave no room for a text")

    def __call__(self, tree: Tree, pieces: Sequence[Pieces] = ()) -> FlatTree:
        """Return the tokens of a tree.

        Texts that are too long lose their ends, the longer one first. Of branches, in the tree's order, those
        are left out that do not fit any more, and those of mentions that are not there to their end.

        Args:
            tree: any.
            pieces: of its texts, where these are cut already.
        """
        pieces = pieces or [self._cut(text) for text in tree.texts]
        lengths, room = self._shared([len(text.ids) for text in pieces])
        flat = _Flat()
        flat.add_special(self._frame.before, 0)
        for number, (text, length) in enumerate(zip(pieces, lengths, strict=True)):
            if number:
                flat.add_special(self._frame.between, number - 1)
            end = 0
            for hook in tree.hooks:
                if hook.text != number:
                    continue
                stop = bisect_left(text.starts, hook.end, end)
                first = bisect_right(text.ends, hook.start, end, stop)
                if stop > length or first == stop:
                    continue
                hanging = []
                for branch in hook.branches:
                    tokens = self._injected(branch.words)
                    if 0 < len(tokens) <= room:
                        hanging.append(tokens)
                        room -= len(tokens)
                if hanging:
                    flat.add_text(number, text, end, stop)
                    flat.hang(number, stop - first, hanging)
                    end = stop
            flat.add_text(number, text, end, length)
        flat.add_special(self._frame.after, len(pieces) - 1)
        return flat.tree()

    def _shared(self, lengths: list[int]) -> tuple[list[int], int]:
        """Return how many tokens of each text there is room for, and the room that is left."""
        if self._size is None:
            return lengths, _ENDLESS
        before, between, after = map(len, self._frame)
        over = sum(lengths) - (self._size - before - between * (len(lengths) - 1) - after)
        self.shortened |= over > 0
        while over > 0:  # the longer one gives until it is as long as the other, then both in turn
            longest = max(range(len(lengths)), key=lengths.__getitem__)
            second = max((length for index, length in enumerate(lengths) if index != longest), default=0)
            cut = min(over, max(1, lengths[longest] - second))
            lengths[longest] -= cut
            over -= cut
        return lengths, -over

    def _injected(self, words: tuple[str, ...]) -> list[Any]:
        tokens = self._words.get(words)
        if tokens is None:
            tokens = self._words.keep(words, [token for word in words for token in self._cut(word).ids])
        return tokens


class _Flat:
    """A tree that is being made flat."""

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.rows: tuple[list[int], ...] = ([], [], [], [], [], [])  # as in `FlatTree`
        self.position = self.branch = self.hook = 0

    def add_special(self, tokens: tuple[Any, ...], text: int) -> None:
        """Put special tokens behind what is there."""
        nowhere = [-1] * len(tokens)
        self._add([*tokens], text, nowhere, nowhere)

    def add_text(self, text: int, pieces: Pieces, first: int, stop: int) -> None:
        """Put a stretch of a text behind what is there."""
        self._add([*pieces.ids[first:stop]], text, [*pieces.starts[first:stop]], [*pieces.ends[first:stop]])

    def hang(self, text: int, mention: int, branches: list[list[Any]]) -> None:
        """Hang branches from the last tokens, *mention* of them."""
        positions, numbers, hooks, texts, starts, ends = self.rows
        self.hook += 1
        hooks[len(hooks) - mention :] = [self.hook] * mention
        for tokens in branches:
            count = len(tokens)
            self.branch += 1
            self.tokens += tokens
            positions += range(self.position, self.position + count)
            numbers += [self.branch] * count
            hooks += [self.hook] * count
            texts += [text] * count
            starts += [-1] * count
            ends += [-1] * count

    def tree(self) -> FlatTree:
        """Return it."""
        return FlatTree(self.tokens, *(np.array(row, np.int64) for row in self.rows))

    def _add(self, tokens: list[Any], text: int, starts: list[int], ends: list[int]) -> None:
        count, rows = len(tokens), self.rows
        self.tokens += tokens
        rows[0].extend(range(self.position, self.position + count))
        rows[1].extend([0] * count)
        rows[2].extend([0] * count)
        rows[3].extend([text] * count)
        rows[4].extend(starts)
        rows[5].extend(ends)
        self.position += count
