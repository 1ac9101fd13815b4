"""The answers of a run, as lines of JSON in `.NAME.partial` beside the output, until all are there.

A run that goes on counts the whole lines that are there, chunk by chunk of the documents, cuts off the rest,
and answers the chunks that follow. So its output has the bytes of a run that was not stopped.
"""

import codecs
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

import msgspec

from kgkit.commands.corpora.chunks import (
    Chunks,
    ResultColumn,
    RunCounts,
    SkippedRecord,
    parse_entries,
)
from kgkit.commands.corpora.parquet import is_parquet, write_parquet
from kgkit.commands.messages import Messages
from kgkit.commands.output import counted
from kgkit.errors import UsageError
from kgkit.files import compression_of, plain_name, replace_file, written
from kgkit.linking.corrections import context_of
from kgkit.tables import csv_cell, csv_line

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class AnswerFile:
    """The answers of a run, and the list of the records that it skipped.

    Args:
        output: file that the answers are for.
        file: file of the answers so far.
        skipped: file for the list.
        column: field of the answers that has links, or mentions.

    Attributes:
        counts: numbers of the chunks that are answered, those of an earlier run among them.
        model: name of the model of the earlier run, if this one goes on from it.
        list_path: file that gets the list, if a record was skipped.
    """

    def __init__(self, output: Path, file: IO[bytes], skipped: IO[bytes], column: ResultColumn) -> None:
        self.output, self._file, self._skipped, self._column = output, file, skipped, column
        self.counts, self.model = RunCounts(), ""
        self.list_path = output.with_name(f"{output.name}.skipped")
        self.write = file.write

    def commit(self, counts: RunCounts, skipped: Sequence[SkippedRecord]) -> None:
        """Count a chunk whose answers are written."""
        self.counts = self.counts.add(counts)
        self._skipped.writelines(msgspec.json.encode(record) + b"\n" for record in skipped)
        self._file.flush()

    def begin(
        self,
        chunks: Chunks,
        mention_fields: Sequence[str],
        *,
        resume: bool,
        skip_bad: bool,
        messages: Messages,
    ) -> Chunks:
        """Return the chunks that are to be answered; say from where a run goes on, or what it drops.

        Raises:
            UsageError: if the answers are those of other documents.
            SourceError: if a record cannot be read, and is not to be skipped.
        """
        if resume:
            chunks = self._resume(chunks, mention_fields, skip_bad=skip_bad)
            if documents := self.counts.documents:
                messages.write(f"going on behind {counted(documents, 'document')}")
            else:
                messages.write(f"{self.output} has no unfinished run: beginning with the first document")
        elif self._file.read(1):
            self._file.seek(0)
            self._file.truncate()
            dropped = f"the unfinished run of {self.output} is dropped"
            messages.write(f"beginning again: {dropped}; --resume would go on from it")
        return chunks

    def _resume(self, chunks: Chunks, mention_fields: Sequence[str], *, skip_bad: bool) -> Chunks:
        """Return the chunks that are not answered yet, and cut off what follows the answers of the others.

        Raises:
            UsageError: if the answers are those of other documents.
            SourceError: if a record cannot be read, and is not to be skipped.
        """
        end = 0
        for chunk in chunks:
            entries, skipped, counts = [*chunk], list[SkippedRecord](), RunCounts()
            for parsed in parse_entries(entries, mention_fields, skipped, skip_bad=skip_bad):
                answer = _parse_answer(self._file.readline(), self._column)
                if answer is None:
                    break
                name, self.model, items = answer
                if name != parsed.document.id:
                    raise UsageError(
                        f"the unfinished run of {self.output} had another input (document {name!r}, not "
                        f"{parsed.document.id!r}): name the same files, or leave out --resume to begin again"
                    )
                counts = counts.add(RunCounts(1, items))
            else:
                end = self._file.tell()
                self.commit(counts._replace(skipped=len(skipped)), skipped)
                continue
            chunks = chain([iter(entries)], chunks)
            break
        self._file.seek(end)
        self._file.truncate()
        return chunks

    def publish(self, path: Path) -> None:
        """Put the answers, which are in *path*, and the list of what was skipped, where they belong."""
        self._file.flush()
        self._file.seek(0)
        if is_parquet(self.output):
            write_parquet(self._file, self.output, self._column)
        elif is_table(self.output):
            write_table(self._file, self.output, self._column)
        elif compression_of(self.output):
            with written(self.output) as stream:
                shutil.copyfileobj(self._file, stream)
        else:
            os.fsync(self._file.fileno())
            replace_file(path, self.output)
        path.unlink(missing_ok=True)
        if not self.counts.skipped:
            self.list_path.unlink(missing_ok=True)
            return
        self._skipped.seek(0)
        with written(self.list_path) as stream:
            shutil.copyfileobj(self._skipped, stream)


_TABLE_COLUMNS: Final[dict[ResultColumn, Sequence[str]]] = {
    "links": ("entity", "label", "score", "kb"), "mentions": ("type", "score"),
}  # fmt: skip


def is_table(path: Path) -> bool:
    """Return whether the name of a file says that it is CSV."""
    return Path(plain_name(path.name)).suffix.lower() == ".csv"


def write_table(lines: Iterable[bytes], path: Path, column: ResultColumn) -> None:
    """Write answers, which are lines of JSON, as CSV: a row a mention, as corrections have it.

    It begins with a byte order mark, without which Excel does not take it for UTF-8.

    Args:
        lines: the lines.
        path: file to write, which appears whole or not at all.
        column: column of what was found in a text.
    """
    own = _TABLE_COLUMNS[column]
    with written(path) as stream:
        stream.write(codecs.BOM_UTF8)
        stream.write(csv_line(["document", "start", "text", *own, "before", "after"]).encode())
        for line in lines:
            answer: dict[str, Any] = msgspec.json.decode(line)
            for item in answer[column]:
                start, words = item["start"], " ".join(item["text"].split())
                cells = [answer["id"], start, words, *map(item.get, own)]
                context = context_of(answer["text"], start, item["end"])
                stream.write(csv_line([*map(csv_cell, cells), *context]).encode())


def _parse_answer(line: bytes, column: ResultColumn) -> tuple[str, str, int] | None:
    """Return the id, the model and the number of items of an answer; None if its line is not whole."""
    if line.endswith(b"\n"):
        with suppress(msgspec.MsgspecError, KeyError):
            fields = _decode_fields(line)
            name, model = _decode_text(fields["id"]), _decode_text(fields["model"])
            return name, model, len(_decode_items(fields[column]))
    return None


def partial_path(output: Path) -> Path:
    """Return the file beside *output* that has the answers until all are there."""
    target = output.resolve()  # a symbolic link stays one
    return target.with_name(f".{target.name}.partial")


@contextmanager
def open_answers(output: Path, column: ResultColumn, messages: Messages) -> Iterator[AnswerFile]:
    """Give the answers of a run, which become *output* when the block ends without an error.

    After an error, or a `kill -9`, those that are written are there for a run that goes on.

    Args:
        output: regular file that is going to be written, or none yet.
        column: field of the answers that has links, or mentions.
        messages: where it is said, after an error, how to go on.

    Raises:
        UsageError: if another run is writing the file.
        OSError: if the disk refuses; says which file.
    """
    path = partial_path(output)
    try:
        path.touch(0o600 if output.exists() else 0o666)  # less the umask; readers of the output may be few
        with path.open("r+b") as file, TemporaryFile() as skipped:
            _lock(file, path, output)
            answers = AnswerFile(output, file, skipped, column)
            try:
                yield answers
                answers.publish(path)
            except BaseException:
                if documents := answers.counts.documents:
                    written_so_far = f"{counted(documents, 'document')} are written so far"
                    messages.write(f"{written_so_far}; the same command with --resume goes on behind them")
                else:
                    path.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.filename is None or Path(error.filename) == path:
            raise OSError(error.errno, error.strerror, str(output)) from error
        raise


def _lock(file: IO[bytes], path: Path, output: Path) -> None:
    """Lock the file for this run.

    Raises:
        UsageError: if another run has it, or has made it the output a moment ago.
    """
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return
    raise UsageError(f"another run is writing {output}: wait for it, or name another file")
