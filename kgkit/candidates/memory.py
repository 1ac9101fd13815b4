"""What a generator remembers of tokens and spans, within a bound in megabytes.

Texts return to the same words, so nearly all look-ups are made once. Ever new words would fill any memory:
what is kept is weighed, roughly, and when it weighs more than the bound everything is forgotten, to be looked
up again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kgkit.text import token_splitter

if TYPE_CHECKING:
    from kgkit.candidates.matching import Entry

_MAX_CHUNK = 32
_MB: Final = 1_000_000
# Bytes, as measured with tracemalloc: of a row of a dictionary with its key, and what is kept there.
_OF_CHUNK: Final = 170
_OF_PIECE: Final = 60
_OF_ENTRY: Final = 480
_OF_START: Final = 130
_OF_CANDIDATES: Final = 420
_OF_SPAN: Final = 180


class Budget:
    """Counts what caches hold, and empties them all when it is more than the bound.

    Args:
        megabytes: the bound, of 10⁶ bytes.

    Attributes:
        left: bytes; who keeps something takes its size from them, and calls `clear` when none is left.
    """

    def __init__(self, megabytes: float) -> None:
        self.left = self._whole = int(megabytes * _MB)
        self.caches: list[dict[Any, Any]] = []

    def clear(self) -> None:
        """Empty the caches."""
        for cache in self.caches:
            cache.clear()
        self.left = self._whole


class Entries(dict[str, "Entry"]):
    """Entries by token, made when first asked for."""

    def __init__(self, make: Callable[[str, bool], "Entry"], budget: Budget, *, cased: bool) -> None:
        super().__init__()
        self._make, self._cased, self._budget = make, cased, budget
        budget.caches.append(self)

    def __missing__(self, token: str) -> "Entry":
        budget = self._budget
        entry = self._make(token, self._cased)
        size = _OF_ENTRY
        if entry.candidates is not None:
            size += _OF_CANDIDATES
        if entry.starts is not None:
            size += _OF_START * len(entry.starts)
        budget.left -= size
        if budget.left < 0:
            budget.clear()
        self[token] = entry
        return entry


class Cutter(dict[str, tuple[str, ...]]):
    """Cuts texts into white space and tokens, and remembers how: most chunks between two spaces come again.

    Maps a chunk to its pieces, each token behind the white space that precedes
    it; to nothing if white space begins or ends it.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        budget.caches.append(self)

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        before, *pieces = token_splitter(chunk).split(chunk)
        found = (" ", *pieces[:-1]) if pieces and not before and not pieces[-1] else ()
        if len(chunk) <= _MAX_CHUNK:
            budget = self._budget
            budget.left -= _OF_CHUNK + _OF_PIECE * len(found)
            if budget.left < 0:
                budget.clear()
            self[chunk] = found
        return found

    def cut(self, text: str) -> list[str]:
        """Return white space and tokens in turn, beginning and ending with white space."""
        words = text.strip()
        chunks = [*map(self.__getitem__, words.split(" "))]
        if not all(chunks):  # more white space between two words than a space
            return token_splitter(text).split(text)
        begin = len(text) - len(text.lstrip())
        pieces = [*chain.from_iterable(chunks), text[begin + len(words) :]]
        pieces[0] = text[:begin]
        return pieces


class Spans(dict[str, Any]):
    """What spans of several tokens mean, by the span as it is spelled; None of one that means nothing."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        budget.caches.append(self)

    def remember(self, spelled: str, meaning: Any) -> None:
        """Keep the meaning of a span."""
        self._budget.left -= _OF_SPAN + len(spelled) + (_OF_CANDIDATES if meaning else 0)
        if self._budget.left < 0:
            self._budget.clear()
        self[spelled] = meaning


class Memory:
    """What is remembered of texts of one kind: those whose spelling tells something, or the others.

    Args:
        make: what makes the entry of a token.
        budget: what it may weigh, together with others.
        cased: whether spelling tells something.
    """

    def __init__(self, make: Callable[[str, bool], "Entry"], budget: Budget, *, cased: bool) -> None:
        self.cased = cased
        self.entries = Entries(make, budget, cased=cased)
        self.spans, self.respelled, self.parts = Spans(budget), Spans(budget), Spans(budget)


class LeftOut:
    """Surfaces that texts have in lower case, and the KB with capitals only: they are no mentions."""

    _most: Final = 10_000

    def __init__(self) -> None:
        self._surfaces: dict[str, None] = {}
        self._paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Note nothing within the block: what is read there is no text of the user's."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def add(self, surface: str) -> None:
        """Note one, when it is looked up; of ever so many, the first."""
        if not self._paused and len(self._surfaces) < self._most:
            self._surfaces[surface] = None

    def __len__(self) -> int:
        return len(self._surfaces)

    def __iter__(self) -> Iterator[str]:
        return iter(self._surfaces)

    @property
    def full(self) -> bool:
        """Whether there may be more than are known."""
        return len(self) >= self._most
