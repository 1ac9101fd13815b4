"""Long texts, read a window at a time, so that memory is needed for the mentions and not for every token.

    ··· before |=============== own ===============| behind ···
      begin    own                                own_end    end

A window gives the mentions that start in its own part. It sees some text before that, for what depends on the
words before a mention, and behind it more tokens than any surface has; it begins and ends where a token of
the whole text does. So its mentions are those of the undivided text, whatever the text: without paragraphs,
without white space, or one token. Where mentions do not overlap, the own part of the next window begins
behind the last mention, where the search in the undivided text would go on.

Cuts are made behind a blank line where there is one in reach, then at white space, then between two tokens.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from msgspec import structs

from kgkit.candidates.entries import longest
from kgkit.candidates.input_mentions import check_mentions
from kgkit.candidates.matching import Generator, is_case_informative
from kgkit.pauses import pause
from kgkit.store.layout import MAX_TOKENS
from kgkit.text import Folding
from kgkit.types import Mention

if TYPE_CHECKING:
    from kgkit.types import Document

WINDOW: Final = 1 << 16
"""Code points that are a window's own; texts of up to one and a half times as many are not divided."""

_BEFORE: Final = 256  # code points
_TOKENS_AFTER: Final = 2 * MAX_TOKENS  # tokens
_BLANK_LINE, _WHITE = re.compile(r"\n\s*?\n\s*"), re.compile(r"\s")
_REACH: Final = 1_024  # code points in which white space is sought
_MENTIONS: Final = 4_096  # of those that are given, filled together


class TextWindow(NamedTuple):
    """A range of code points that is read for the mentions that start in its own part of it."""

    begin: int
    own: int
    own_end: int
    end: int


def is_long(text: str) -> bool:
    """Say whether *text* is read in several windows."""
    return len(text) > WINDOW + WINDOW // 2


def is_divisible(generator: Any) -> TypeGuard[Generator]:
    """Say whether *generator* finds in windows what it finds in a whole text.

    Those that look for mentions in a way of their own do not: a segmentation reads all of a text.
    """
    kind = type(generator)
    return (
        isinstance(generator, Generator)
        and kind.mentions is Generator.mentions
        and kind.__call__ is Generator.__call__
    )


def mention_windows(generator: Generator, text: str) -> Iterator[list[Mention]]:
    """Yield the mentions in *text*, window by window: all together they are `generator.mentions(text)`.

    Args:
        generator: generator that `is_divisible`.
        text: text of any length.
    """
    if not is_long(text):
        yield generator.mentions(text)
        return
    windows, own, cased = _Windows(text, generator.kb.store.folding), 0, is_case_informative(text)
    texts: dict[str, str] = {}  # most mentions share theirs with another
    while own < len(text):
        pause()
        window = windows.window_at(own)
        window_mentions = generator.mentions_from(
            text[window.begin : window.end], own - window.begin, cased=cased
        )
        begin, end = window.begin, window.own_end - window.begin
        mentions = [
            Mention(
                begin + mention.start,
                begin + mention.end,
                texts.setdefault(mention.text, mention.text),
                mention.candidates,
            )
            for mention in window_mentions
            if mention.start < end
        ]
        own = window.own_end
        if mentions and not generator.overlapping:
            own = max(own, mentions[-1].end)
        yield mentions


def longest_of_windows(windows: Iterable[list[Mention]]) -> Iterator[list[Mention]]:
    """Yield the leftmost-longest of the mentions of *windows*, as `longest` does of all of them together."""
    last: list[Mention] = []
    for mentions in windows:
        result = longest([*last, *mentions])
        last = result[-1:]
        yield result[:-1]
    yield last


def mention_batches(windows: Iterable[list[Mention]], multiple: int) -> Iterator[tuple[list[Mention], bool]]:
    """Yield the mentions of *windows* again, in batches, and of each batch whether it is the last.

    Each but the last, which may be empty, has a whole multiple of *multiple* mentions.
    """
    waiting: list[Mention] = []
    for mentions in windows:
        waiting += mentions
        if count := len(waiting) // multiple * multiple:
            yield waiting[:count], False
            del waiting[:count]
    yield waiting, True


def document_batches(
    document: "Document", generator: Generator, *, overlaps: bool, multiple: int = 1
) -> Iterator[tuple["Document", bool]]:
    """Yield *document* with some of its mentions at a time, filled, by start, and whether these are the last.

    Mentions that it has keep their spans; else they are sought.

    Args:
        document: document with a text of any length.
        generator: generator that `is_divisible`.
        overlaps: flag for mentions that may overlap, if they were sought; else the leftmost-longest are kept.
        multiple: number of mentions of which each batch but the last has a whole multiple.

    Raises:
        UsageError: if a given mention is no span of the text, or has another text there.
    """
    document_mentions = document.mentions
    if document_mentions is None:
        windows = mention_windows(generator, document.text)
        if not overlaps and generator.overlapping:
            windows = longest_of_windows(windows)
    else:
        check_mentions(document)
        ordered = sorted(document_mentions, key=lambda mention: mention.start)
        windows = (ordered[at : at + _MENTIONS] for at in range(0, len(ordered), _MENTIONS))
    for mentions, last in mention_batches(windows, multiple):
        batch = structs.replace(document, mentions=mentions)
        yield batch if document_mentions is None else next(generator([batch])), last


class _Windows:
    """Divides a text."""

    def __init__(self, text: str, folding: Folding) -> None:
        self.text, self._folding, self._comparable = text, folding, folding.comparable(text)
        # Where tokens begin: one at `_BEFORE` before the own part, and those behind it.
        self.begins = deque([0])

    def window_at(self, own: int) -> TextWindow:
        """Return the window whose own part begins at *own*, where a token may."""
        text, size = self.text, len(self.text)
        while len(self.begins) > 1 and self.begins[1] <= own - _BEFORE:
            self.begins.popleft()
        before = self._window_begin(own)
        self.begins.append(own)
        if size - own <= WINDOW + WINDOW // 2:
            return TextWindow(before, own, size, size)
        blank = _BLANK_LINE.search(text, own + WINDOW // 2, own + WINDOW + WINDOW // 2)
        own_end = blank.end() if blank else self._boundary(own, own + WINDOW, own + WINDOW + _REACH)
        following = islice(self._folding.spans(self._comparable, own_end), _TOKENS_AFTER)
        end = max((token_end for _, token_end in following), default=size)
        return TextWindow(before, own, own_end, end)

    def _window_begin(self, own: int) -> int:
        """Return where the window of an own part begins: half `_BEFORE` code points before that, or more."""
        start, target = self.begins[0], own - _BEFORE
        if target <= start:
            return start
        if white := _WHITE.search(self.text, target, own - _BEFORE // 2):
            return white.start()
        starts = (token for token, _ in self._folding.spans(self._comparable, start))
        return max(takewhile(target.__ge__, starts), default=start)

    def _boundary(self, start: int, target: int, most: int) -> int:
        """Return where a token may begin, at *target* or behind it, or the end of the text.

        Args:
            start: code point before that at which a token begins.
            target: code point.
            most: code point up to which white space is looked for; without any the next token counts.
        """
        if target <= start:
            return start
        if white := _WHITE.search(self.text, target, most):
            return white.start()
        starts = (token for token, _ in self._folding.spans(self._comparable, start))
        return next((token for token in starts if token >= target), len(self.text))
