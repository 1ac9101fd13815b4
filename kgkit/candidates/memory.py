"""What a generator remembers of tokens and spans, within a bound in megabytes.

Texts return to the same words, so nearly all look-ups are made once. Ever new words would fill any memory:
what is kept is weighed, roughly, and when it weighs more than the bound everything is forgotten, to be looked
up again.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kgkit.bounded_cache import weight_of
from kgkit.candidates.entries import Entry
from kgkit.text import Folding
from kgkit.types import Candidates

if TYPE_CHECKING:
    from kgkit.types import Mention

_MAX_CHUNK = 32
_MB: Final = 1_000_000
_FEW: Final = 8  # words that are sought in a text sooner than its tokens among them
# Bytes, as measured with tracemalloc: of a row of a dictionary with its key, and what is kept there.
_OF_CHUNK: Final = 170
_OF_PIECE: Final = 60
_OF_ENTRY: Final = 480
_OF_FORM: Final = 160  # of each but the first
_OF_START: Final = 130
_OF_WIDE: Final = 24  # of a character in a token that is not ASCII, in its chunk and its folded text too
_OF_CANDIDATES: Final = 420
_OF_SPAN: Final = 180


class Budget:
    """Counts what caches hold, and empties them all when it is more than the bound.

    Args:
        megabytes: bound, in 10⁶ bytes.

    Attributes:
        remaining: bytes that are free.
    """

    def __init__(self, megabytes: float) -> None:
        self.remaining = self._size = int(megabytes * _MB)
        self.caches: list[dict[Any, Any]] = []

    def take(self, size: int) -> None:
        """Take the size of what is about to be kept; empty the caches first where it is not free."""
        self.remaining -= size
        if self.remaining < 0:
            self.clear()
            self.remaining -= size

    def clear(self) -> None:
        """Empty the caches."""
        for cache in self.caches:
            cache.clear()
        self.remaining = self._size


def _of_candidates(meaning: Any) -> int:
    """Return the bytes of candidates, or of such that vary; those that were cut keep the whole row alive."""
    if not isinstance(meaning, Candidates):
        return weight_of(meaning)
    base: Any = meaning.rows if meaning.rows.base is None else meaning.rows.base
    return _OF_CANDIDATES + (len(base) if isinstance(base, bytes) else int(base.nbytes))


class Entries(dict[str, Entry]):
    """Entries by token, made when first asked for."""

    def __init__(self, make: Callable[[str, bool], Entry], budget: Budget, *, cased: bool) -> None:
        super().__init__()
        self._make, self._cased, self._budget = make, cased, budget
        budget.caches.append(self)

    def __missing__(self, token: str) -> "Entry":
        entry = self._make(token, self._cased)
        if len(token) > _MAX_CHUNK:
            size = _OF_CHUNK + weight_of(token) + weight_of(entry)
        else:
            size = _OF_ENTRY + _OF_FORM * (len(entry.forms) - 1)
            size += 0 if token.isascii() else _OF_WIDE * len(token)
            size += 0 if entry.candidates is None else _of_candidates(entry.candidates)
            if entry.starts is not None:
                size += _OF_START * len(entry.starts)
        self._budget.take(size)
        self[token] = entry
        return entry


class Cutter(dict[str, tuple[str, ...]]):
    """Cuts texts into white space and tokens, and remembers how: most chunks between two spaces come again.

    Maps a chunk to its pieces, each token behind the white space that precedes
    it; to nothing if white space, or what counts as such, ends it.
    """

    def __init__(self, budget: Budget, folding: Folding) -> None:
        super().__init__()
        self._budget, self._split = budget, folding.split
        self._odd: dict[str, tuple[tuple[str, ...], str]] = {}  # chunk -> its pieces, and the gap behind them
        budget.caches += [self, self._odd]

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        chunk_pieces: tuple[str, ...]
        if chunk.isalnum() and chunk.isascii():
            chunk_pieces = (" ", chunk)  # most are one word
        else:
            chunk_pieces, behind = self._pieces(chunk)
            if behind:
                chunk_pieces = ()
        if len(chunk) <= _MAX_CHUNK:
            self._budget.take(_OF_CHUNK + _OF_PIECE * len(chunk_pieces))
            self[chunk] = chunk_pieces
        return chunk_pieces

    def cut(self, text: str) -> tuple[list[str], bool]:
        """Return gaps and tokens in turn, beginning and ending with a gap, and whether gaps are not as usual.

        Usual is a space between two words, and nothing within a chunk.
        """
        words = text.strip()
        names = words.split(" ")
        chunks = [*map(self.__getitem__, names)]
        usual = all(chunks)
        gap = "" if usual else self._join(names, chunks)
        begin = len(text) - len(text.lstrip())
        pieces = [*chain.from_iterable(chunks), gap + text[begin + len(words) :]]
        if len(pieces) == 1:
            return [text], False
        pieces[0] = text[:begin] + pieces[0][1:]
        return pieces, not usual

    def _pieces(self, chunk: str) -> tuple[tuple[str, ...], str]:
        """Return the pieces of a chunk, none where it has no token, and the gap behind the last one."""
        pieces = self._split(chunk)
        return ((" " + pieces[0], *pieces[1:-1]), pieces[-1]) if len(pieces) > 1 else ((), " " + chunk)

    def _join(self, names: list[str], chunks: list[tuple[str, ...]]) -> str:
        """Give each of *chunks* the gap behind the one before; return the gap behind the last one."""
        gap, index = "", chunks.index(())
        while index < len(chunks):
            if gap or not chunks[index]:
                pieces, behind = chunks[index], ""
                if not pieces:
                    name = names[index]
                    pieces, behind = self._odd.get(name) or self._pieces(name)
                    if len(name) <= _MAX_CHUNK:
                        self._odd[name] = pieces, behind
                if pieces:
                    chunks[index] = (gap + pieces[0], *pieces[1:]) if gap else pieces
                    gap = behind
                else:
                    gap += behind
                index += 1
            else:
                try:
                    index = chunks.index((), index)
                except ValueError:
                    break
        return gap


class Spans(dict[str, Any]):
    """What spans of several tokens mean, by the span as it is spelled; None of one that means nothing."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget
        budget.caches.append(self)

    def remember(self, spelled: str, meaning: Any) -> None:
        """Keep the meaning of a span."""
        self._budget.take(_OF_SPAN + getsizeof(spelled) + (_of_candidates(meaning) if meaning else 0))
        self[spelled] = meaning


class Memory:
    """What is remembered of texts of one kind: those whose spelling tells something, or the others.

    Args:
        make: callable that makes the entry of a token.
        budget: bytes that it may take, together with others.
        cased: flag for texts whose spelling tells something.
    """

    def __init__(self, make: Callable[[str, bool], Entry], budget: Budget, *, cased: bool) -> None:
        self.cased = cased
        self.entries = Entries(make, budget, cased=cased)
        self.spans, self.spaced_spans, self.compounds = Spans(budget), Spans(budget), Spans(budget)
        self.doubtful_spans = Spans(budget)


class Omissions:
    """Surfaces that texts have in lower case, and the KB with capitals only: they are no mentions.

    A generator looks a surface up once, perhaps where a longer mention covers it: *machine* within *machine
    learning*. So it is `expected` first, and noted where it stands in a text by itself.
    """

    _most: Final = 10_000
    _longest: Final = 200  # characters

    def __init__(self) -> None:
        self._surfaces: dict[str, None] = {}
        self._expected: dict[str, tuple[str, ...]] = {}  # by first token
        self._expected_count = 0
        self._paused = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Note nothing within the block: what is read there is no text of the user's."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def add(self, surface: str) -> None:
        """Note one; of ever so many, the first."""
        if not self._paused and len(self._surfaces) < self._most and len(surface) <= self._longest:
            self._surfaces[surface] = None

    def expect(self, surface: str, first: str) -> None:
        """Look out for one, whose first token is *first*, in the texts given to `note_uncovered`."""
        if len(surface) > self._longest:
            return
        expected = self._expected.get(first, ())
        if self._expected_count < self._most and surface not in expected and surface not in self._surfaces:
            self._expected_count += 1
            self._expected[first] = (*expected, surface)

    def note_uncovered(
        self, text: str, pieces: list[str], offsets: list[int], begin: int, mentions: "Sequence[Mention]"
    ) -> None:
        """Note the expected surfaces that stand in a text outside of its mentions.

        Args:
            text: text in which spelling tells something.
            pieces: white space and tokens of it in turn.
            offsets: end of each of them.
            begin: code point; what is before that does not count.
            mentions: mentions of the text, by start.
        """
        expected = self._expected
        if self._paused or not expected:
            return
        if len(expected) <= _FEW and not any(map(text.__contains__, expected)):
            return
        if expected.keys().isdisjoint(pieces[1::2]):
            return
        starts = [mention.start for mention in mentions]
        ends = [*accumulate((mention.end for mention in mentions), max)]
        for piece in range(1, len(pieces), 2):
            start = offsets[piece - 1]
            for surface in self._expected.get(pieces[piece], ()) if start >= begin else ():
                before = bisect_right(starts, start)
                if text.startswith(surface, start) and not (
                    before and ends[before - 1] >= start + len(surface)
                ):
                    self._note_expected(surface, pieces[piece])

    def _note_expected(self, surface: str, first: str) -> None:
        remaining = tuple(other for other in self._expected[first] if other != surface)
        if remaining:
            self._expected[first] = remaining
        else:
            del self._expected[first]
        self._expected_count -= 1
        self.add(surface)

    def __len__(self) -> int:
        return len(self._surfaces)

    def __iter__(self) -> Iterator[str]:
        return iter(self._surfaces)

    @property
    def full(self) -> bool:
        """Whether there may be more than are known."""
        return len(self) >= self._most


class Cut(Struct, frozen=True, gc=False):
    """A text and its tokens.

    Attributes:
        text: text that was cut.
        pieces: white space and tokens in turn.
        offsets: end of each of them.
        entries: entries of the tokens.
        memory: memory that these come from.
        spans: meanings of spans of several tokens; of those in which a hyphen counts as a space, the
            meanings as they are then written.
        folded: text, folded, for tries: white space single, a line end between paragraphs; else empty.
        bounds: end of each piece in `folded`.
        has_odd_gaps: flag for gaps that may be more than a space; see `Cutter.cut`.
    """

    text: str
    pieces: list[str]
    offsets: list[int]
    entries: list[Entry]
    memory: Memory
    spans: Spans
    folded: str
    bounds: list[int]
    has_odd_gaps: bool = False
