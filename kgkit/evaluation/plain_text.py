"""Plain text: a blank line ends a document, and sentences are told by their ends."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import SourceError
from kgkit.evaluation.files import lines

# No character goes lost where a sentence ends: quotes and brackets that close stay with it.
_END: Final = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)])|(?<=[.!?][\"'”’)]{2}))\s+(?=[\"'“‘(]?[A-Z0-9])"
    r"|(?:(?<=[。！？])|(?<=[。！？][”’」』）])|(?<=[。！？][”’」』）]{2}))(?![。！？”’」』）])"
)
_LINES: Final = re.compile(r"\n+")


class PlainSentence(NamedTuple):
    """A sentence of a file.

    Attributes:
        text: text of the sentence, without white space around it.
        begins: whether a document begins with it.
    """

    text: str
    begins: bool


def read_sentences(path: Path) -> Iterator[PlainSentence]:
    """Yield the sentences of a file, which may be compressed; one line of it is in memory at a time.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it cannot be read, is not UTF-8, or has no text.
    """
    last = 0
    for number, line in lines(path):
        begins = not last or number > last + 1
        for start, end in sentence_spans(line):
            yield PlainSentence(line[start:end], begins)
            begins = False
        last = number
    if not last:
        raise SourceError("no text in it", path=path)


def sentence_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences of a line, end exclusive, without white space around them."""
    begin = 0
    for cut in [*(match.span() for match in _END.finditer(line)), (len(line), len(line))]:
        sentence = line[begin : cut[0]]
        if stripped := sentence.strip():
            start = begin + len(sentence) - len(sentence.lstrip())
            yield start, start + len(stripped)
        begin = cut[1]


def read_plain(path: Path) -> Iterator[list[str]]:
    """Yield the documents of a file, as their sentences.

    Raises:
        NotThere, SourceError: as `read_sentences` does.
    """
    document: list[str] = []
    for sentence in read_sentences(path):
        if sentence.begins and document:
            yield document
            document = []
        document.append(sentence.text)
    yield document


def sentence_begins(text: str) -> list[int]:
    """Return the code points that sentences of a text, or lines, begin with, in order, but not the first."""
    ends = (match.end() for pattern in (_END, _LINES) for match in pattern.finditer(text))
    return sorted({end for end in ends if end < len(text)})
