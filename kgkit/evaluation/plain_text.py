"""Plain text: a blank line ends a document, and sentences are told by their ends."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.files import lines

# No character goes lost where a sentence ends: quotes and brackets that close stay with it.
_END: Final = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)])|(?<=[.!?][\"'”’)]{2}))\s+(?=[\"'“‘(]?[A-Z0-9])"
    r"|(?:(?<=[。！？])|(?<=[。！？][”’」』）])|(?<=[。！？][”’」』）]{2}))(?![。！？”’」』）])"
)
_LINES: Final = re.compile(r"\n+")
_LABELLED: Final = re.compile(r"\S+(?:[ \t]+\S+)*[ \t]+(?:O|[BI]-\S+)")
_KEYS: Final = re.compile(r"\S[^\s.]*+\.\S++(?:[ \t]++[^\s%]++%\d\S*+)++")
_XML: Final = ("<?xml", "<corpus")
_FIRST: Final = 20  # lines that are looked at for labels


class PlainSentence(NamedTuple):
    """A sentence of a file.

    Attributes:
        text: text of the sentence, without white space around it.
        begins: whether a document begins with it.
    """

    text: str
    begins: bool


def check_plain(path: Path) -> None:
    """Make sure that the beginning of a file looks like plain text.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or is not UTF-8.
        UsageError: if each of its first lines ends in a label, as in files of CoNLL-2003, or is an instance
            with its senses, as in key files; or the first one is a record of JSON, or begins XML.
    """
    first = [line for _, line in islice(lines(path), _FIRST)]
    if first and _is_record(first[0]):
        raise UsageError(
            f"{path} has records of JSON, and is read as plain text: write the texts in them to a file, a "
            "sentence a line"
        )
    if first and first[0].lstrip().startswith(_XML):
        raise UsageError(
            f"{path} is XML, and is read as plain text: write the texts in it to a file, a sentence a line"
        )
    if first and all(_KEYS.fullmatch(line.strip()) for line in first):
        raise UsageError(
            f"{path} is a key file, with an instance and its senses in each line, and is read as plain text: "
            "name the texts themselves, a sentence a line"
        )
    if len(first) > 1 and all(_LABELLED.fullmatch(line.strip()) for line in first):
        raise UsageError(
            f"{path} has a label at the end of each line, and is read as plain text, without labels: write "
            "its words to a file, a sentence a line"
        )


def _is_record(line: str) -> bool:
    """Say whether a line is an object of JSON, or a list that begins with one."""
    with suppress(msgspec.DecodeError):
        decoded = msgspec.json.decode(line)
        return isinstance(decoded[0] if isinstance(decoded, list) and decoded else decoded, dict)
    return False


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
