"""Files of word and entity vectors, as word2vec and its kin write them.

    text      N D                            the first line; GloVe, and wikipedia2vec by default, leave it out
              NAME 0.1 -0.2 …                D numbers; a space or, in wikipedia2vec's default, a tab between
    binary    N D                            the same first line
              NAME and a space, D float32      little-endian, then perhaps a line end
    model     what wikipedia2vec pickles     read by the package itself, where that is allowed

Any of the first two may be compressed. In all of them an entity is a name with a mark, in
Wikipedia2Vec's `ENTITY/` before the title. Files are read once, from front to end, a batch at a time.

    n   rows of a batch
    D   numbers of a row
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

import numpy as np

from kgkit.errors import MissingExtra, NotThere, SourceError, UsageError
from kgkit.files import decompression_errors, open_zstd
from kgkit.types import Matrix, Progress

Form = Literal["auto", "text", "binary", "model"]
FORMS: Final = ("auto", "text", "binary", "model")

MODEL_MARK: Final = "ENTITY/"
"""What entities of a model come with here, as in wikipedia2vec's text files."""


_BATCH = 1 << 22  # bytes of a text or binary file that are read at once
_MODEL_BATCH = 8192  # rows
_LARGEST = float(np.finfo(np.float32).max)
_HEADER = re.compile(rb"(\d+)[ \t](\d+)\s*")
_NUMBER = re.compile(rb"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma", b"\x28\xb5\x2f\xfd": "zstd"}
_PICKLES: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x78\x9c")


class RowBatch(NamedTuple):
    """Some rows of a file.

    Attributes:
        names: n of them.
        rows: (n, D) float32, all finite.
    """

    names: list[str]
    rows: Matrix


def read_vectors(
    path: Path, form: Form = "auto", progress: Progress | None = None, *, allow_pickle: bool = False
) -> Iterator[RowBatch]:
    """Yield the rows of a file in its order; those of a model by how often they occur.

    Args:
        path: the file.
        form: form of the file; `auto` looks at its beginning.
        progress: callback that is told (bytes read, of how many); of a model, rows.
        allow_pickle: whether to open a model, which is a pickle: reading one runs whatever program is in it,
            with all that you may do. Only where whoever made the file is trusted.

    Raises:
        NotThere: if there is no such file.
        UsageError: if it is a model, whatever *form* says, and that is not allowed.
        SourceError: if a row is short, long or no row at all, a number is none or not finite, or rows are
            missing; with file and, in text, line.
        MissingExtra: for a model, if wikipedia2vec is not installed.
    """
    if not path.is_file():
        raise NotThere(f"no file of vectors {path}")
    if form == "auto":
        form = form_of(path)
    if form == "model":
        if not allow_pickle:
            raise UsageError(
                f"{path} is a pickle, as models of wikipedia2vec are, and reading one runs whatever program "
                "is in it: if you trust whoever made it, say --allow-pickle (allow_pickle=True in Python); "
                "else take its vectors as text or word2vec's binary, which run nothing: `wikipedia2vec "
                "save-text` writes such"
            )
        return _model(path, progress)
    return _text(path, progress) if form == "text" else _binary(path, progress)


def form_of(path: Path) -> Form:
    """Return the form of a file, judged by its first bytes.

    Text that is not UTF-8 is text too: its reader says in which line.
    """
    with path.open("rb") as file:
        if file.read(2) in _PICKLES:
            return "model"
    with _open_binary(path) as (file, _):
        start = file.read(4096)
    # Floats have bytes that no text has; a title may be cut at the end of what was read.
    if re.search(rb"[\x00-\x08]", start):
        return "binary"
    try:
        re.sub(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z", b"", start).decode("utf-8")
    except UnicodeDecodeError:
        header, _, body = start.partition(b"\n")
        fields = body.partition(b"\n")[0].split()
        written = any(map(_NUMBER.fullmatch, fields[1:]))  # numbers as text has them
        return "binary" if _HEADER.fullmatch(header) and not written else "text"
    return "text"


@contextmanager
def _open_binary(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a file, decompressed; also give what tells how many of its bytes have been read.

    Raises:
        SourceError: if it is compressed and ends too early, or is damaged.
    """
    from bz2 import BZ2File
    from gzip import GzipFile
    from lzma import LZMAFile

    with path.open("rb") as raw:
        start = raw.read(6)
        raw.seek(0)
        kind = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")
        file: Any
        match kind:
            case "gzip":
                file = GzipFile(fileobj=raw)
            case "bz2":
                file = BZ2File(raw)
            case "lzma":
                file = LZMAFile(raw)  # noqa: SIM115
            case "zstd":
                file = open_zstd(raw)
            case _:
                file = raw
        try:
            yield file, raw.tell
        except decompression_errors() as error:
            # bz2 and gzip say as an OSError without a number that data are damaged.
            if isinstance(error, OSError) and not (kind and error.errno is None):
                raise
            raise SourceError(f"the compressed file cannot be read: {error}", path=path) from error


# -- text -------------------------------------------------------------------


def _text(path: Path, progress: Progress | None) -> Iterator[RowBatch]:
    size, read, expected = path.stat().st_size, 0, None
    with _open_binary(path) as (file, tell):
        first = file.readline()
        header = _HEADER.fullmatch(first)
        if header:
            expected, width = int(header[1]), int(header[2])
            first, before = file.readline(), 1
            if not width:
                raise SourceError("the header says that rows have no numbers", path=path, line=1)
        else:
            before, width = 0, _width(first)
        if not first:
            raise SourceError("a file of vectors holds none", path=path)
        if width < 1:
            expectation = "neither a header `ROWS WIDTH` nor a name with numbers behind it"
            raise SourceError(expectation, path=path, line=1, text=_shown(first))
        reader = _Lines(path, width, b"\t" in first)
        lines = [first]
        while lines:
            yield reader.batch(lines, before + read + 1)
            read += len(lines)
            lines = file.readlines(_BATCH)
            if progress is not None:
                progress("reading", tell(), size)
    if expected is not None and read != expected:
        raise SourceError(f"the header says {expected:,} rows, there are {read:,}", path=path, line=1)


def _width(line: bytes) -> int:
    """Return how many numbers are behind the name in *line*."""
    name, tab, numbers = line.rstrip(b" \t\r\n").partition(b"\t")
    return numbers.count(b" ") + 1 if tab else name.count(b" ")


class _Lines:
    """Reads lines of one file, all of one width."""

    def __init__(self, path: Path, width: int, tabs: bool) -> None:
        self.path, self.width, self.tabs = path, width, tabs

    def batch(self, lines: list[bytes], first: int) -> RowBatch:
        """Return what *lines* hold, of which the first is line number *first* of the file."""
        pairs = [self.cut(line, number) for number, line in enumerate(lines, first)]
        names = [name for name, _ in pairs]
        numbers = [texts for _, texts in pairs]
        try:
            rows = np.loadtxt(numbers, np.float32, comments=None, delimiter=" ", ndmin=2, encoding="latin-1")
        except ValueError:
            rows = np.empty((0, 0), np.float32)
        if rows.shape != (len(lines), self.width) or not np.isfinite(rows).all():
            self.blame(lines, numbers, first)
        return RowBatch(names, rows)

    def cut(self, line: bytes, number: int) -> tuple[str, str]:
        """Return the name in a line, and what is behind it."""
        line = line.rstrip(b" \t\r\n")
        name, separator, text = line.partition(b"\t" if self.tabs else b" ")
        if not self.tabs and text.count(b" ") >= self.width:
            # The name has blanks in it: the numbers are the last fields. Only where those are numbers,
            # else the row is too long.
            name, *numbers = line.rsplit(b" ", self.width)
            text = b" ".join(numbers)
            longer = all(map(_NUMBER.fullmatch, name.split(b" ")[1:]))
            separator = b"" if longer else separator
        if not separator or text.count(b" ") != self.width - 1:
            count = _width(line)
            raise SourceError(
                f"a row of {self.width} numbers was expected, found {count} behind the name",
                path=self.path,
                line=number,
                text=_shown(line),
            )
        try:
            return name.decode("utf-8"), text.decode("latin-1")
        except UnicodeDecodeError:
            raise SourceError(
                "a name that is not UTF-8", path=self.path, line=number, text=_shown(name)
            ) from None

    def blame(self, lines: list[bytes], numbers: list[str], first: int) -> None:
        """Raise the error of the first line with a number that is none, or not finite."""
        for number, (line, text) in enumerate(zip(lines, numbers, strict=True), first):
            for field in text.encode("latin-1").split(b" "):
                if not _NUMBER.fullmatch(field) or abs(float(field)) > _LARGEST:
                    raise SourceError(
                        f"{field.decode('latin-1')!r} is not a finite number",
                        path=self.path,
                        line=number,
                        text=_shown(line),
                    )
        raise SourceError("the numbers of these lines cannot be read", path=self.path, line=first)


def _shown(line: bytes) -> str:
    return line[:400].decode("utf-8", "replace").rstrip()


# -- binary -----------------------------------------------------------------


def _binary(path: Path, progress: Progress | None) -> Iterator[RowBatch]:
    size = path.stat().st_size
    with _open_binary(path) as (file, tell):
        header = _HEADER.fullmatch(file.readline(100))
        if header is None or not int(header[2]):
            raise SourceError("a binary file of vectors begins with `ROWS WIDTH`", path=path)
        total, width = int(header[1]), int(header[2])
        remaining, read = b"", 0
        while read < total:
            more = file.read(max(_BATCH, 8 * width))
            if not more:
                raise SourceError(
                    f"the file is cut off: its header says {total:,} rows, it ends in row {read + 1:,}",
                    path=path,
                )
            batch, remaining = _cut_binary(path, remaining + more, width, read, total)
            if batch.names:
                read += len(batch.names)
                yield batch
            if progress is not None:
                progress("reading", tell(), size)
        if remaining.strip() or file.read(1).strip():
            raise SourceError(f"the header says {total:,} rows, more bytes follow them", path=path)


def _cut_binary(path: Path, content: bytes, width: int, first: int, total: int) -> tuple[RowBatch, bytes]:
    """Return the whole rows at the start of *content*, and what is left of it."""
    names: list[str] = []
    starts: list[int] = []
    offset = 0
    while first + len(names) < total:
        if content[offset : offset + 1] == b"\n":
            offset += 1
        blank = content.find(b" ", offset, offset + 10_000)
        if blank < 0 and len(content) - offset >= 10_000:
            raise SourceError(f"row {first + len(names) + 1:,} has no name", path=path)
        end = blank + 1 + 4 * width
        if blank < 0 or end > len(content):
            break
        try:
            names.append(content[offset:blank].decode("utf-8"))
        except UnicodeDecodeError:
            row = first + len(names) + 1
            raise SourceError(f"the name of row {row:,} is not UTF-8", path=path) from None
        starts.append(blank + 1)
        offset = end
    rows = np.empty((len(names), width), np.float32)
    for row, start in enumerate(starts):
        rows[row] = np.frombuffer(content, "<f4", width, start)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        row = first + int(bad[0]) + 1
        name = names[int(bad[0])]
        raise SourceError(f"row {row:,} ({name!r}) holds a number that is not finite", path=path)
    return RowBatch(names, rows), content[offset:]


# -- a model ----------------------------------------------------------------


def _model(path: Path, progress: Progress | None) -> Iterator[RowBatch]:
    try:
        from wikipedia2vec import Wikipedia2Vec
    except ImportError:
        raise MissingExtra(
            "wikipedia2vec",
            "wikipedia2vec",
            f"{path} is a model that it has pickled; where it is installed, `wikipedia2vec save-text` writes "
            "a text file of it that can be read without it",
        ) from None
    model = Wikipedia2Vec.load(str(path), "r")
    items, count = _by_count(model.dictionary), 0
    while part := [*islice(items, _MODEL_BATCH)]:
        rows = np.asarray(model.syn0[[index for _, index in part]], np.float32)
        if not np.isfinite(rows).all():
            raise SourceError("the model holds a number that is not finite", path=path)
        yield RowBatch([name for name, _ in part], rows)
        count += len(part)
        if progress is not None:
            progress("reading", count, len(model.dictionary))


def _by_count(dictionary: Any) -> Iterator[tuple[str, int]]:
    """Yield the names and rows of a model: frequent ones first, by name where they are as frequent."""
    counts = np.zeros(len(dictionary), np.int64)
    for item in chain(dictionary.words(), dictionary.entities()):
        counts[item.index] = item.count
    order = np.argsort(-counts, kind="stable")
    for tied in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        yield from sorted((_name(dictionary, row), row) for row in tied.tolist())


def _name(dictionary: Any, row: int) -> str:
    if row < dictionary.word_size:
        return str(dictionary.get_word_by_index(row).text)
    return MODEL_MARK + str(dictionary.get_entity_by_index(row).title)
