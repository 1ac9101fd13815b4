r"""The files of a CN-DBpedia dump: which they are, where they can be cut, and their lines.

    baike_triples.txt   subject \t attribute \t value    65 million lines, sorted by subject
    m2e.txt             mention \t entity                1.1 million lines
    CnDbpedia.spo       as the first; what K-BERT made of it

A file is known by the first line that is one of either kind, not by its name. One that is not compressed is
divided into parts of about 64 MB, between two subjects; the name of a part is
`baike_triples.txt@67108912-134217801`: the first byte, and the byte behind the last. A compressed file is one
part: `baike_triples.txt.gz@all`.

Lines are read by the block and decoded together, and singly where one of them is no text.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kgkit.building import COMPRESSIONS, decoded_line, plain_name, text_or_bad_lines, without_mark
from kgkit.errors import SourceError

TRIPLE: Final = ("subject", "attribute", "value")
MENTION: Final = ("mention", "entity")

PART: Final = 64 << 20
"""Bytes of a part, but for the rest of the subject at its end."""

LINES: Final = 1000
"""Lines that are handed on together."""

_BLOCK: Final = 1 << 20
_LONGEST: Final = 16 << 20  # bytes of a line that `text_or_bad_lines` lets pass
_ENDINGS: Final = tuple(f"{plain}{packed}" for plain in (".txt", ".spo") for packed in ("", *COMPRESSIONS))
_ARCHIVES: Final = {b"PK\x03\x04": "zip", b"Rar!": "rar", b"7z\xbc\xaf": "7z"}
_ALL: Final = "all"


class DumpFile(NamedTuple):
    """One file of a dump.

    Attributes:
        path: path of the file.
        fields: columns of its lines: `TRIPLE` or `MENTION`.
    """

    path: Path
    fields: Sequence[str]


class Lines(NamedTuple):
    """Some lines of a file in a row; empty ones may be among them.

    Attributes:
        texts: the lines, without their ends; an error in the place of one that is no text.
        number: function that tells the number in the file of the line at a place in `texts`.
    """

    texts: list[str | SourceError]
    number: Callable[[int], int]


# -- which files ------------------------------------------------------------


def dump_files(source: Path) -> list[DumpFile]:
    """Return the files at *source*: itself, or those in a folder; triples come before mentions.

    Raises:
        NotThere: if nothing is there.
        SourceError: for a file of another kind, an archive, or a folder without a file of either kind.
    """
    if not source.is_dir():
        return [_recognise(source)]
    paths = sorted(path for path in source.iterdir() if path.name.endswith(_ENDINGS) and path.is_file())
    if not paths:
        raise SourceError(
            "is a folder without a .txt or .spo file: unpack the dump into it, or name the file",
            path=source,
        )
    plain: dict[str, Path] = {}
    for path in paths:
        other = plain.setdefault(plain_name(path.name), path)
        if other is not path:
            raise SourceError(f"lies beside {other.name}, the same file: leave one of them there", path=path)
    return sorted(map(_recognise, paths), key=lambda file: file.fields != TRIPLE)


def _recognise(path: Path) -> DumpFile:
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(4)
        if kind := _ARCHIVES.get(start):
            raise SourceError(
                f"is a {kind} archive: unpack it, and name the file or the folder that comes out", path=path
            )
    lines = [*islice(text_or_bad_lines(path), LINES)]
    for _, text in lines:
        for fields in (TRIPLE, MENTION):
            if isinstance(text, str) and text.count("\t") + 1 == len(fields):
                return DumpFile(path, fields)
    number, text = lines[0]
    if isinstance(text, SourceError):
        raise text
    raise SourceError(
        "neither triples (3 tab-separated fields) nor mentions (2), "
        f"the first line has {text.count(chr(9)) + 1}",
        path=path,
        line=number,
        text=text,
    )


# -- parts ------------------------------------------------------------------


def part_names(file: DumpFile) -> list[str]:
    """Return the names of the parts of *file*."""
    path = file.path
    if plain_name(path.name) != path.name:
        return [f"{path.name}@{_ALL}"]
    end = path.stat().st_size
    cuts = _cuts(path, end)
    return [f"{path.name}@{start}-{stop}" for start, stop in zip(cuts, [*cuts[1:], end], strict=True)]


def part_of(source: Path, name: str) -> tuple[DumpFile, tuple[int, int] | None]:
    """Return the file of a part, and the bytes that are it; None for all of a compressed file."""
    file, _, piece = name.rpartition("@")
    file_of_dump = _recognise(source / file if source.is_dir() else source)
    if piece == _ALL:
        return file_of_dump, None
    start, _, stop = piece.partition("-")
    return file_of_dump, (int(start), int(stop))


def _cuts(path: Path, end: int) -> list[int]:
    """Return where the parts of a file of *end* bytes begin, each with the first line of a subject."""
    cuts = [0]
    with path.open("rb") as file:
        while cuts[-1] + PART < end:
            file.seek(cuts[-1] + PART)
            _next_line(file)  # the rest of one
            subject = None
            while True:
                position = file.tell()
                line = _next_line(file)
                if not line:
                    return cuts
                first = line.split(b"\t", 1)[0].strip()
                if subject is not None and first != subject:
                    break
                subject = first
            cuts.append(position)
    return cuts


def _next_line(file: BinaryIO) -> bytes:
    """Return the next line, or its first bytes if it has no end: then reading it will fail anyway."""
    line = piece = file.readline(_LONGEST)
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(_LONGEST)
    return line


# -- lines ------------------------------------------------------------------


def lines_of(path: Path, span: tuple[int, int] | None) -> Iterator[Lines]:
    """Yield the lines within the bytes *span* of a file, or all of a compressed one, `LINES` at a time.

    Raises:
        SourceError: as `text_lines`.
    """
    if span is not None:
        yield from _plain_lines(path, *span)
        return
    numbers: list[int] = []
    texts: list[str | SourceError] = []
    for number, text in text_or_bad_lines(path):
        numbers.append(number)
        texts.append(text)
        if len(texts) == LINES:
            yield Lines(texts, numbers.__getitem__)
            numbers, texts = [], []
    yield Lines(texts, numbers.__getitem__)


def _plain_lines(path: Path, start: int, end: int) -> Iterator[Lines]:
    before = cache(lambda: _lines_before(path, start))  # counted when a number is asked for
    count = 0
    with path.open("rb") as file:
        file.seek(start)
        while (position := file.tell()) < end:
            block = file.read(min(_BLOCK, end - position))
            if not block.endswith(b"\n"):
                block += file.readline(_LONGEST)
            if not block:
                raise SourceError("has become shorter while it was read", path=path)
            if len(block) > _LONGEST and not block.endswith(b"\n"):
                while (rest := file.readline(_BLOCK)) and not rest.endswith(b"\n"):
                    pass  # the rest of a line that is too long
            if not position:
                block = without_mark(block, path)
            texts = _texts(block, path, partial(_number, before, count))
            for first in range(0, len(texts), LINES):
                yield Lines(texts[first : first + LINES], partial(_number, before, count + first))
            count += len(texts)


def _texts(block: bytes, path: Path, number: Callable[[int], int]) -> list[str | SourceError]:
    """Return the lines of a block; they are decoded singly if one of them is no text."""
    if b"\0" not in block and len(block) < _LONGEST:
        with suppress(UnicodeDecodeError):
            return [*block.decode().removesuffix("\n").split("\n")]
    lines: list[str | SourceError] = []
    for index, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
        if len(line) < _LONGEST:
            lines.append(decoded_line(line, path, number(index)))
        else:
            problem = f"a line of more than {_LONGEST >> 20} MiB: this is no file of lines"
            lines.append(SourceError(problem, path=path, line=number(index)))
    return lines


def _number(before: Callable[[], int], first: int, index: int) -> int:
    return before() + first + index + 1


def _lines_before(path: Path, position: int) -> int:
    """Return the number of lines of a file that end before a byte."""
    count = 0
    with path.open("rb") as file:
        while position > 0 and (block := file.read(min(_BLOCK, position))):
            count += block.count(b"\n")
            position -= len(block)
    return count
