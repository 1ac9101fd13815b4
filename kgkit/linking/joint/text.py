"""A text as mentions are judged in it: its words, and where its capitals tell nothing."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Final, NamedTuple

from kgkit.candidates.spelling import begins_sentence

_WORD: Final = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_LINE: Final = re.compile(r"[^\n.!?]+[\n.!?]*|[\n.!?]+")
_LONG: Final = 3  # letters of a word that has a capital in a title
_FEW: Final = 0.02


class Word(NamedTuple):
    """A word or a sign, and its span."""

    start: int
    end: int
    text: str

    @property
    def capital(self) -> bool:
        """Whether it begins with a capital."""
        return self.text[0].isupper()


NO_WORD: Final = Word(-1, -1, " ")


class Text:
    """The words of a text.

    Args:
        text: text of a document.

    Attributes:
        text: the text.
        words: words and signs, in order.
        uncased: whether the text has next to no capitals.
        lower: how often each word stands in lower case.
        inside: how often each word stands with a capital that no sentence's beginning explains.
        folded: set of all words, in lower case.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [Word(match.start(), match.end(), match[0]) for match in _WORD.finditer(text)]
        self._starts = [word.start for word in self.words]
        self._ends = [word.end for word in self.words]
        capitals = sum(word.text[0].isupper() for word in self.words)
        small = sum(word.text[0].islower() for word in self.words)
        self.uncased = small > 0 and capitals <= max(1 if small > 10 else 0, _FEW * (small + capitals))
        self.lower = Counter(word.text for word in self.words if word.text[0].islower())
        self.folded = {word.text.lower() for word in self.words}
        self._lines = self._read_lines()
        self._line_starts = [start for start, _ in self._lines]
        self.inside = Counter(
            word.text
            for word in self.words
            if word.text[0].isupper() and not begins_sentence(text, word.start)
        )

    def _read_lines(self) -> list[tuple[int, int]]:
        """Return `(start, style)` of the sentences: 2 if all is in capitals, 1 if each long word has one."""
        lines = []
        for match in _LINE.finditer(self.text):
            words = [word for word in match[0].split() if word[:1].isalpha()]
            letters = [letter for letter in match[0] if letter.isalpha()]
            style = 0
            if len(words) > 1 and len(letters) > 3 and sum(map(str.isupper, letters)) > 0.9 * len(letters):
                style = 2
            elif sum(len(word) > _LONG for word in words) > 2 and all(
                word[0].isupper() for word in words if len(word) > _LONG
            ):
                style = 1
            lines.append((match.start(), style))
        return lines

    def style(self, start: int) -> int:
        """Return 2 where all around is in capitals, 1 in a title, else 0."""
        at = bisect_right(self._line_starts, start) - 1
        return self._lines[at][1] if at >= 0 else 0

    def range(self, start: int, end: int) -> tuple[int, int]:
        """Return the first word of a span, and the one behind its last."""
        first = bisect_right(self._ends, start)
        return first, max(first + 1, bisect_left(self._starts, end))

    def word(self, index: int) -> Word:
        """Return a word, or one that is none outside of the text."""
        return self.words[index] if 0 <= index < len(self.words) else NO_WORD

    def gap(self, index: int) -> str:
        """Return the text between a word and the next one."""
        if not 0 <= index < len(self.words) - 1:
            return "\n"
        return self.text[self.words[index].end : self.words[index + 1].start]
