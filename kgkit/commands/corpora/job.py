"""A run over a corpus: what is read, who answers, where it is written, and how it goes on after a stop."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from kgkit.candidates.memory import Omissions
from kgkit.commands.corpora.chunks import (
    AnswererFactory,
    ChunkResult,
    ChunkTask,
    ChunkWriter,
    DocumentAnswer,
)
from kgkit.commands.corpora.chunks import chunked as chunks_of
from kgkit.commands.corpora.entries import InputFormat, SourceEntry, find_files, is_read, read_entries
from kgkit.commands.corpora.formats import ResultColumn, ResultFormat, result_format
from kgkit.commands.corpora.journal import (
    Journal,
    JournalState,
    RunCounts,
    SkippedRecord,
    find_difference,
    finished_settings,
    journal_folder,
    open_journal,
)
from kgkit.commands.corpora.workers import map_in_workers
from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.output import Write, counted, write_bytes
from kgkit.commands.text_streams import STDIN
from kgkit.errors import UsageError
from kgkit.signals import terminations

_MAX_TYPES: Final = 5  # that a message names

Take = Callable[[DocumentAnswer], None]
"""Does something with the answer to one document."""


@dataclass(frozen=True, kw_only=True)
class CorpusJob:
    """What is read and written.

    Attributes:
        files: files and folders to read; `-` is standard input.
        output: file to write; None for standard output, if anything.
        input_format: what a document is.
        workers: number of processes.
        resume: whether to go on from an earlier run into the same file.
        bad: what becomes of a record that cannot be read.

    Raises:
        NotThere: if a file is not there, or a folder has no text.
        UsageError: if options exclude each other, or the output is one of the files to read.
    """

    files: Sequence[Path]
    output: Path | None
    input_format: InputFormat = "auto"
    workers: int = 1
    resume: bool = False
    bad: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        find_files(self.files)  # before a knowledge base is opened
        if self.resume and not self.is_resumable:
            raise UsageError("--resume goes on writing a file: name it with --output FILE")
        if self.resume and STDIN in self.files:
            raise UsageError("--resume reads its input again, and standard input is read once: name files")
        if self.output is not None and is_read(self.output, self.files):
            raise UsageError(f"{self.output} is one of the files to read; write to another file")

    @property
    def is_resumable(self) -> bool:
        """Whether the output is a file, which a later run can go on writing."""
        return self.output is not None and (self.output.is_file() or not self.output.exists())

    @property
    def is_finished(self) -> bool:
        """Whether `resume` has nothing to do: the output is whole, and no input has changed since."""
        if not self.resume or self.output is None or not self.output.is_file():
            return False
        written = self.output.stat()
        if not written.st_size or journal_folder(self.output).exists():  # of `mktemp`, or stopped
            return False
        paths = find_files(self.files)
        return all(path.stat().st_mtime_ns <= written.st_mtime_ns for path in paths)

    @property
    def has_settings(self) -> bool:
        """Whether it is on record what the finished output was made with."""
        return self.output is not None and finished_settings(self.output) is not None

    def report_finished(self, messages: Messages, settings: Mapping[str, str] | None = None) -> None:
        """Say why nothing is done, where the job is finished.

        Args:
            messages: where it is said.
            settings: what the answers depend on, by name; None where there is nothing to compare it with.

        Raises:
            UsageError: if the output was made with other settings; names one.
        """
        assert self.output is not None
        if settings is not None:
            settings = {**settings, "input format": self.input_format}
            if difference := find_difference(finished_settings(self.output) or settings, settings):
                raise UsageError(
                    f"{self.output} is finished, and was made with {difference}: name another file, or leave "
                    "out --resume to write it again"
                )
        made = "made with these settings" if settings is not None else "its settings are not on record"
        messages.write(
            f"{self.output} is finished: it is whole, newer than what it was made of, and {made}; "
            "without --resume it is written again"
        )


class JobResult(NamedTuple):
    """What a run has done.

    Attributes:
        counts: numbers of all documents, those of an earlier run among them.
        omissions: surfaces that were left out by their spelling.
        skipped_list: file that lists the skipped records; None if there is none.
        other_types: number of files in folders that are no texts, by their suffix.
    """

    counts: RunCounts
    omissions: Omissions
    skipped_list: Path | None
    other_types: Mapping[str, int] = {}

    def report(self, messages: Messages, noun: str, written: Sequence[Path | None]) -> None:
        """Say how much was written, how many records were skipped and files left out, and which.

        Args:
            messages: where it is said.
            noun: name of an item: `link`.
            written: files that were written; None where an option named none.
        """
        if names := ", ".join(str(path) for path in written if path is not None):
            items, documents = counted(self.counts.items, noun), counted(self.counts.documents, "document")
            messages.write(f"{items} in {documents}: {names}")
        if self.counts.skipped:
            where = "" if self.skipped_list is None else f": {self.skipped_list}"
            messages.write(f"{counted(self.counts.skipped, 'record')} skipped{where}")
        if self.other_types:
            types = sorted(self.other_types.items(), key=lambda item: (-item[1], item[0]))
            listed = ", ".join(f"{suffix} {count:,}" for suffix, count in types[:_MAX_TYPES])
            total, more = sum(self.other_types.values()), ", …" if len(types) > _MAX_TYPES else ""
            verb = "was" if total == 1 else "were"
            messages.write(f"{counted(total, 'file')} of other types {verb} left out: {listed}{more}")


class _Stream:
    """Answers that go to standard output, to a pipe or a device: nothing is kept of them."""

    state: Final = JournalState({})  # there is no earlier run to go on from
    list_path: Final = None

    def __init__(self, write: Write, messages: Messages) -> None:
        self.write, self._messages = write, messages

    def commit(self, counts: RunCounts, skipped: Sequence[SkippedRecord]) -> None:
        """Name the records that were skipped."""
        for record in skipped:
            self._messages.write(f"skipped: {record}")


def run_job(
    job: CorpusJob,
    factory: AnswererFactory,
    column: ResultColumn,
    *,
    messages: Messages,
    settings: Mapping[str, str],
    write: Write | None = write_bytes,
    take: Take | None = None,
    on_start: Callable[[str], None] = lambda model: None,
) -> JobResult:
    """Answer all documents of a corpus, in order.

    Args:
        job: what is read and written.
        factory: what opens the answerer, in this process or in workers.
        column: field of the answers that has links, or mentions.
        messages: where progress and skipped records are shown.
        settings: what the answers depend on, by name; a run that goes on must have the same.
        write: where answers go if *job* names no file; None: nowhere.
        take: function that gets each answer; only where there are no workers.
        on_start: function that gets the name of the model, once it is known.

    Raises:
        UsageError: if *take* is given with workers, or another run is writing the file.
        SourceError: if a record cannot be read, and is not to be skipped.
        Terminated: on SIGTERM, once what is written is kept.
    """
    if take is not None and job.workers > 1:
        raise UsageError(
            "--workers is for JSON lines and Parquet; tables and pages are drawn by one process: leave it out"
        )
    form = result_format(job.output, column)
    other_types: Counter[str] = Counter()
    paths = find_files(job.files, other_types=other_types)
    verb, noun = ("linking", "link") if column == "links" else ("tagging", "name")
    with ExitStack() as stack:
        stack.enter_context(terminations())  # what is written is kept, and workers are ended in order
        output = _open_answers(stack, job, form, settings, write, messages)
        total, list_path = output.state.counts, output.list_path
        tell = stack.enter_context(messages.progress(verb))
        progress = _JobProgress(tell, noun, total, take)
        entries = read_entries(paths, job.input_format)
        for _ in islice(entries, total.entries):
            pass
        result: ChunkResult | None = None
        omissions = Omissions()
        chunks = chunks_of(entries)
        for result in _results(job, factory, chunks, form, output.write, progress.count, on_start, tell):
            if job.workers > 1:
                output.write(result.content)
            output.commit(result.counts, result.skipped)
            total = total.add(result.counts)
            for surface in result.omissions:
                omissions.add(surface)
            progress.show(total)
    return JobResult(total, omissions, list_path if total.skipped else None, other_types)


def _open_answers(
    stack: ExitStack,
    job: CorpusJob,
    form: ResultFormat,
    settings: Mapping[str, str],
    write: Write | None,
    messages: Messages,
) -> Journal | _Stream:
    """Return what takes answers until *stack* is closed: the journal of a file, or a stream."""
    if job.output is not None and job.is_resumable:
        settings = {**settings, **_input_settings(job)}
        journal = stack.enter_context(
            open_journal(
                job.output, settings, form,
                resume=job.resume, on_stop=_reporter(messages), warn=messages.write,
            )
        )  # fmt: skip
        _report_earlier(journal, job, messages)
        return journal
    if job.output is not None:
        _check_streams(job.output, form)
        write = stack.enter_context(job.output.open("wb", buffering=0)).write
    return _Stream(write or _drop, messages)


class _JobProgress:
    """Shows how many documents are answered.

    Args:
        tell: what shows progress.
        noun: name of an item of the answers.
        total: numbers of an earlier run, from which this one goes on.
        take: function that gets each answer.
    """

    def __init__(self, tell: ProgressCallback, noun: str, total: RunCounts, take: Take | None) -> None:
        self._tell, self._noun, self._take = tell, noun, take
        self._begin, self._shown = total.documents, total

    def count(self, answer: DocumentAnswer) -> None:
        """Count an answer of a chunk that is not complete."""
        self._shown = self._shown.add(RunCounts(1, 1, answer.items))
        if self._take is not None:
            self._take(answer)
        self._show()

    def show(self, total: RunCounts) -> None:
        """Show the numbers of all chunks that are complete."""
        self._shown = total
        self._show()

    def _show(self) -> None:
        counts = self._shown
        described = f"{counted(counts.documents, 'document')}, {counted(counts.items, self._noun)}"
        self._tell(described, counts.documents - self._begin)


def _results(
    job: CorpusJob,
    factory: AnswererFactory,
    chunks: Iterator[Iterator[SourceEntry]],
    form: ResultFormat,
    write: Write,
    take: Take,
    on_start: Callable[[str], None],
    tell: ProgressCallback,
) -> Iterator[ChunkResult]:
    """Yield the results of chunks; if there are no workers, their answers are written on the way."""
    skip_bad = job.bad == "skip"
    if job.workers > 1:
        task = ChunkTask(factory=factory, form=form, skip_bad=skip_bad)
        entries = ([*chunk] for chunk in chunks)
        for number, result in enumerate(map_in_workers(task, entries, workers=job.workers)):
            if not number:
                on_start(result.model)
            yield result
        return
    with factory.open() as answerer:
        on_start(answerer.model)
        answerer.report_encoding(tell)
        write_chunk = ChunkWriter(answerer, form, skip_bad=skip_bad, take=take)
        for chunk in chunks:
            yield write_chunk(chunk, write)


def all_of(takes: Sequence[Take]) -> Take | None:
    """Return what does with an answer all that *takes* do; None if they are none."""

    def take_all(answer: DocumentAnswer) -> None:
        for take in takes:
            take(answer)

    return take_all if takes else None


def _drop(content: bytes) -> None:
    """Write nothing: answers are only drawn."""


def _check_streams(path: Path, form: ResultFormat) -> None:
    """Refuse Parquet on what is no file."""
    if not form.streams:
        raise UsageError(f"{path} is no file, and Parquet is written to one: name a file")


def _input_settings(job: CorpusJob) -> dict[str, str]:
    """Return what a run reads: its files with their sizes and times, as a digest."""
    digest = hashlib.sha256()
    for path in find_files(job.files):
        if path != STDIN:
            status = path.stat()
            line = (os.fsencode(path), status.st_size, status.st_mtime_ns)
            digest.update(repr(line).encode())
    return {"input": digest.hexdigest()[:16], "input format": job.input_format}


def _report_earlier(journal: Journal, job: CorpusJob, messages: Messages) -> None:
    """Say from where a run goes on, or what it throws away."""
    if journal.abandoned:
        messages.write(
            f"beginning again: {counted(journal.abandoned, 'document')} of an unfinished run of "
            f"{journal.path} are dropped; --resume would go on from them"
        )
    elif job.resume and journal.state.counts.entries:
        messages.write(f"going on behind {counted(journal.state.counts.documents, 'document')}")
    elif job.resume:
        messages.write(f"{journal.path} has no unfinished run: beginning with the first document")


def _reporter(messages: Messages) -> Callable[[int], None]:
    """Return what says, where a run stops, from how many documents a later one goes on."""

    def report(documents: int) -> None:
        if documents:
            count = counted(documents, "document")
            messages.write(f"{count} are written so far; the same command with --resume goes on behind them")

    return report
