"""A text as mentions are judged in it: its words, and where its capitals tell nothing."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kgkit.candidates.spelling import begins_sentence
from kgkit.linking.joint.unspaced import UNSPACED
from kgkit.text import fold
from kgkit.types import Mention

_WORD: Final = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_WORDS: Final = re.compile(r"\w+")
_FOLDED: Final = re.compile(r"\w+(?:['’]\w+)*")
_GENITIVE: Final = re.compile(r"['’]s$")
_ENDS: Final = re.compile(r"[.!?]['\"”’)]*\s|[。！？][”’」』）]*|\n")
_LINE: Final = re.compile(r"[^\n.!?]+[\n.!?]*|[\n.!?]+")
_LONG: Final = 3  # letters of a word that has a capital in a title
_FEW: Final = 0.02


_SPACES: Final = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))
_LINE_ENDS: Final = re.compile("\r(?!\n)|[\x0b\x0c\x85\u2028\u2029]")  # beside the line feed
_MARKS: Final = re.compile(r"[ \t]*(?:>[ \t]?)*")  # of quoted mail
_ITEM: Final = re.compile(r"[-*•–—|#]\s|\(?(?:\d{1,3}|[A-Za-z])[.)]\s|\d+$")
_ENDED: Final = re.compile(r"[.!?:;…|][\"'”’)\]]*$")
_NOT_ENDED: Final = re.compile(r"(?:^|\s)(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Rev|Sgt|Capt|No|Jr|Hr|Fr)\.$")
_COLUMNS: Final = re.compile(r"\S(?:\t| {3,})\S")
_FILLER: Final = "\u2007"  # a space that is none of a table's columns
_NARROWEST: Final = 24  # characters of the longest line of a paragraph that is wrapped
_LOWER: Final = 0.3  # of its further lines begin in lower case


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


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text or a name, folded; of a script without spaces, each two characters."""
    folded = fold(text)
    runs = UNSPACED.findall(folded)
    pairs = (run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1)))
    words = _FOLDED.findall(UNSPACED.sub(" ", folded) if runs else folded)
    return frozenset([*(_GENITIVE.sub("", word) for word in words), *pairs])


def spaced(text: str) -> str:
    """Return the words of a text or a name, folded, between spaces; so are characters that have none."""
    parted = UNSPACED.sub(lambda run: f" {' '.join(run[0])} ", fold(text))
    return f" {' '.join(_WORDS.findall(parted))} "


def sentence_begins(text: str, mentions: Sequence[Mention]) -> list[int]:
    """Return where the sentences of a text begin, the first at 0; none ends within a mention."""
    inside = {place for mention in mentions for place in range(mention.start, mention.end)}
    ends = (match for match in _ENDS.finditer(text) if match.start() not in inside)
    return [
        0,
        *(match.end() for match in ends if match.end() < len(text) and begins_sentence(text, match.end())),
    ]


def with_lines_joined(text: str) -> str:
    """Return a text of the same length with a space for each line break within a sentence.

    So is it in a typed letter and a quoted mail: the line behind begins in lower case, or its first word has
    no place in the line before. Tables, lists, headlines and verse stay lines.
    """
    text = _LINE_ENDS.sub("\n", text.translate(_SPACES))
    if "\n" not in text:
        return text
    lines = text.split("\n")
    marks = [match.end() if (match := _MARKS.match(line)) else 0 for line in lines]
    bare = [line[mark:].strip() for line, mark in zip(lines, marks, strict=True)]
    widths = [0] * len(lines)  # of the longest line of the paragraph; 0 where it is none of wrapped lines
    begin = 0
    for end in range(len(lines) + 1):
        if end == len(lines) or not bare[end]:
            widths[begin:end] = [_width(bare[begin:end])] * (end - begin)
            begin = end + 1
    parts = [lines[0]]
    for number in range(1, len(lines)):
        if widths[number] and _goes_on(bare[number - 1], bare[number], widths[number]):
            parts += [" ", _FILLER * marks[number], lines[number][marks[number] :]]
        else:
            parts += ["\n", lines[number]]
    return "".join(parts).replace("\r ", "  ")


def _width(paragraph: Sequence[str]) -> int:
    """Return the length of the longest line of a paragraph; 0 if its lines are those of a table or a list."""
    if len(paragraph) < 2 or any(map(_COLUMNS.search, paragraph)):
        return 0
    lower = sum(line[0].islower() for line in paragraph[1:])
    if len(paragraph) > 2 and lower < max(1, _LOWER * (len(paragraph) - 1)):
        return 0
    return max(map(len, paragraph))


def _goes_on(line: str, behind: str, width: int) -> bool:
    """Say whether a sentence goes on from a line to the one behind it, in a paragraph of a width."""
    if not line or not behind or _ITEM.match(behind) or (line.isupper() and not behind.isupper()):
        return False
    if _ENDED.search(line) and not _NOT_ENDED.search(line):
        return False
    fits = len(line) + 1 + len(behind.split(maxsplit=1)[0]) <= width
    return behind[0].islower() or (width >= _NARROWEST and not fits)


class Text:
    """The words of a text.

    Args:
        text: text of a document.

    Attributes:
        text: the text, its `with_lines_joined`.
        words: words and signs, in order.
        uncased: whether the text has next to no capitals.
        lower: how often each word stands in lower case.
        inside: how often each word stands with a capital that no sentence's beginning explains.
        folded: its `words_of`.
    """

    def __init__(self, text: str) -> None:
        self.text = text = with_lines_joined(text)
        self.words = [Word(match.start(), match.end(), match[0]) for match in _WORD.finditer(text)]
        self._starts = [word.start for word in self.words]
        self._ends = [word.end for word in self.words]
        capitals = sum(word.text[0].isupper() for word in self.words)
        small = sum(word.text[0].islower() for word in self.words)
        self.uncased = small > 0 and capitals <= max(1 if small > 10 else 0, _FEW * (small + capitals))
        self.lower = Counter(word.text for word in self.words if word.text[0].islower())
        self.folded = words_of(text)
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
            elif (
                sum(len(word) > _LONG for word in words) > 2
                and all(word[0].isupper() for word in words if len(word) > _LONG)
                and not match[0].rstrip().endswith(".")
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
        """Return the text between a word and the next one: one space for two, a line break for columns."""
        if not 0 <= index < len(self.words) - 1:
            return "\n"
        gap = self.text[self.words[index].end : self.words[index + 1].start]
        if "\t" in gap or "   " in gap:
            return "\n"
        return " " if gap.isspace() and "\n" not in gap else gap
