"""A run over a corpus: what is read, who answers, and where it is written."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kgkit.candidates.memory import Omissions
from kgkit.commands.corpora.answers import AnswerFile, is_table, open_answers, partial_path
from kgkit.commands.corpora.chunks import (
    AnswererFactory,
    ChunkResult,
    Chunks,
    ChunkTask,
    DocumentAnswer,
    RunCounts,
    SkippedRecord,
    answer_chunk,
    chunked,
)
from kgkit.commands.corpora.documents import InputFormat, find_files, is_read, read_entries
from kgkit.commands.corpora.parquet import answer_schema, is_parquet
from kgkit.commands.corpora.workers import map_in_workers
from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.output import Write, counted, on_terminal, plain, write_bytes
from kgkit.commands.text_streams import STDIN
from kgkit.errors import UsageError
from kgkit.files import COMPRESSIONS, JSON_LINES, check_output_path, plain_name, written
from kgkit.signals import terminations

_MAX_TYPES: Final = 5  # that a message names
_MAX_MISSING: Final = 5  # documents that a message names
_SUFFIX: Final = re.compile(r"\.(?!\d+$)\w{1,8}")  # not a date or a version, nor what `mktemp` appends

Take = Callable[[DocumentAnswer], None]
"""Does something with the answer to one document."""


@dataclass(kw_only=True)
class CorpusJob:
    """What is read and written.

    Attributes:
        files: files and folders to read; `-` is standard input, which is also read if there are none.
        output: file to write; None or `-`: standard output, if anything.
        html: file for a page.
        jsonl: whether JSON lines on standard output are asked for.
        input_format: what a document is.
        workers: number of processes.
        resume: whether to go on from an earlier run into the same file.
        bad: what becomes of a record that cannot be read.

    Raises:
        NotThere: if a file is not there, or a folder has no text.
        UsageError: if options exclude each other, standard input is named twice, or a file that is to be
            written cannot be, is named twice, is one of those to read, or has the suffix of a format that is
            not written.
        MissingExtra: for Parquet, if pyarrow is not installed.
    """

    files: Sequence[Path]
    output: Path | None = None
    html: Path | None = None
    jsonl: bool = False
    input_format: InputFormat = "auto"
    workers: int = 1
    resume: bool = False
    bad: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        self.files = self.files or [STDIN]
        if self.files.count(STDIN) > 1:
            raise UsageError("standard input can be read once only: name - once")
        if self.output == STDIN:
            self.jsonl, self.output = True, None
        for path in (self.output, self.html):
            if path is not None:
                check_output_path(path, self.files)
        find_files(self.files)  # before a knowledge base is opened
        if self.resume and not self.is_kept:
            raise UsageError("--resume goes on writing a file: name it with --output FILE")
        if self.resume and STDIN in self.files:
            raise UsageError("--resume reads its input again, and standard input is read once: name files")
        if self.output is not None:
            self._check_output(self.output)

    def _check_output(self, output: Path) -> None:
        if is_read(output, self.files):
            raise UsageError(f"{output} is one of the files to read; write to another file")
        if self.html is not None and output.resolve() == self.html.resolve():
            raise UsageError(f"--output and --html both name {output}; give each a file of its own")
        name = output.with_name(plain_name(output.name))
        if is_parquet(name):
            answer_schema("links")
            if name != output:
                raise UsageError(f"{output}: Parquet is compressed within; name the file {name}")
            if not self.is_kept:
                raise UsageError(f"{output} is no file, and Parquet is written to one: name a file")
        elif is_table(output):
            return
        elif self.is_kept and name.suffix.lower() not in JSON_LINES and _SUFFIX.fullmatch(name.suffix):
            raise UsageError(
                f"{output}: links and names are not written as {name.suffix}: name a file of JSON lines "
                f"({' or '.join(JSON_LINES)}) or CSV (.csv), perhaps compressed ({', '.join(COMPRESSIONS)}), "
                "or of Parquet (.parquet)"
            )

    @property
    def is_kept(self) -> bool:
        """Whether the output is a file, which a later run can go on writing; no pipe or device."""
        return self.output is not None and (self.output.is_file() or not self.output.exists())

    @property
    def is_drawn(self) -> bool:
        """Whether tables go to standard output, if anything does."""
        return self.output is None and on_terminal() and not self.jsonl

    @property
    def is_titled(self) -> bool:
        """Whether tables have the names of their documents."""
        return self.files != [STDIN] or self.input_format not in ("auto", "text")

    def is_finished(self, messages: Messages) -> bool:
        """Return whether `resume` has nothing to do, and say so: the output is whole."""
        path = self.output
        if not self.resume or path is None or not path.is_file():
            return False
        if not path.stat().st_size or partial_path(path).exists():  # of `mktemp`, or stopped
            return False
        messages.write(f"{path} is finished; without --resume it is written again")
        return True


def run_job(
    job: CorpusJob,
    factory: AnswererFactory,
    *,
    messages: Messages,
    write: Write | None = write_bytes,
    takes: Sequence[Take] = (),
    on_start: Callable[[str], None] = lambda model: None,
) -> None:
    """Answer all documents of a corpus, in order, and say how many there were.

    Args:
        job: what is read and written.
        factory: what opens the answerer, in this process or in workers.
        messages: where progress, counts and skipped records are shown.
        write: function that takes the answers if *job* names no file; None: they go nowhere.
        takes: functions that get each answer; only where there are no workers.
        on_start: function that gets the name of the model, once it is known.

    Raises:
        UsageError: if *takes* are given with workers, another run is writing the file, or the earlier run had
            another input or another model.
        SourceError: if a record cannot be read, and is not to be skipped.
        Terminated: on SIGTERM; what is written is kept.
    """
    if takes and job.workers > 1:
        raise UsageError(
            "--workers is for JSON lines and Parquet; tables and pages are drawn by one process: leave it out"
        )
    skip_bad = job.bad == "skip"
    other_types: Counter[str] = Counter()
    omissions = Omissions()
    paths = find_files(job.files, other_types=other_types)
    chunks = chunked(read_entries(paths, job.input_format))
    verb, noun = ("linking", "link") if factory.column == "links" else ("tagging", "name")
    with ExitStack() as stack:
        stack.enter_context(terminations())  # what is written is kept, and workers are ended in order
        answers: AnswerFile | _Stream
        if job.output is not None and job.is_kept:
            answers = stack.enter_context(open_answers(job.output, factory.column, messages))
            chunks = answers.begin(
                chunks, factory.mention_fields, resume=job.resume, skip_bad=skip_bad, messages=messages
            )
        elif job.output is not None:
            answers = _Stream(stack.enter_context(written(job.output)).write, messages)
        else:
            answers = _Stream(write or (lambda content: None), messages)
        tell = stack.enter_context(messages.progress(verb))
        before, shown = answers.counts.documents, answers.counts

        def start(model: str) -> None:
            if answers.model not in ("", model):
                raise UsageError(
                    f"the unfinished run of {job.output} had another model ({answers.model}, not {model}): "
                    "name the same, or leave out --resume to begin again"
                )
            on_start(model)

        def show(counts: RunCounts) -> None:
            nonlocal shown
            shown = counts
            described = f"{counted(shown.documents, 'document')}, {counted(shown.items, noun)}"
            tell(described, shown.documents - before)

        def count(answer: DocumentAnswer) -> None:
            for take in takes:
                take(answer)
            show(shown.add(RunCounts(1, answer.items)))

        results = (
            _worker_results(factory, chunks, job.workers, start, skip_bad=skip_bad)
            if job.workers > 1
            else _results(factory, chunks, answers.write, start, tell, count, skip_bad=skip_bad)
        )
        missing: frozenset[str] | None = None
        for result in results:
            missing = result.missing_documents if missing is None else missing & result.missing_documents
            answers.write(result.content)
            answers.commit(result.counts, result.skipped)
            show(answers.counts)
            for surface in result.omissions:
                omissions.add(surface)
    messages.write_omissions([omissions])
    if missing and not before:
        listed = ", ".join([*sorted(missing)[:_MAX_MISSING], *["…"][: len(missing) > _MAX_MISSING]])
        messages.write(
            f"corrections are about {counted(len(missing), 'document')} that did not come: {listed}"
        )
    if names := ", ".join(str(path) for path in (job.output, job.html) if path is not None):
        items = counted(answers.counts.items, noun)
        messages.write(f"{items} in {counted(answers.counts.documents, 'document')}: {names}")
    if skipped := answers.counts.skipped:
        where = "" if answers.list_path is None else f": {answers.list_path}"
        messages.write(f"{counted(skipped, 'record')} skipped{where}")
    if total := other_types.total():
        types = other_types.most_common(_MAX_TYPES)
        listed = ", ".join(f"{plain(suffix)} {count:,}" for suffix, count in types)
        verb = "was" if total == 1 else "were"
        messages.write(f"{counted(total, 'file')} of other types {verb} left out: {listed}")


class _Stream:
    """Answers that go to standard output, to a pipe or a device: nothing is kept of them."""

    model: Final = ""
    list_path: Final = None

    def __init__(self, write: Write, messages: Messages) -> None:
        self.write, self._messages, self.counts = write, messages, RunCounts()

    def commit(self, counts: RunCounts, skipped: Sequence[SkippedRecord]) -> None:
        """Count a chunk, and name the records of it that were skipped."""
        self.counts = self.counts.add(counts)
        for record in skipped:
            self._messages.write(f"skipped: {record}")


def _results(
    factory: AnswererFactory, chunks: Chunks, write: Write, start: Callable[[str], None],
    tell: ProgressCallback, count: Take, *, skip_bad: bool,
) -> Iterator[ChunkResult]:  # fmt: skip
    """Yield the results of chunks; their answers are written on the way."""
    with factory.open() as answerer:
        start(answerer.model)
        answerer.report_encoding(tell)
        for chunk in chunks:
            yield answer_chunk(answerer, chunk, factory.mention_fields, write, skip_bad=skip_bad, take=count)


def _worker_results(
    factory: AnswererFactory, chunks: Chunks, workers: int, start: Callable[[str], None], *, skip_bad: bool
) -> Iterator[ChunkResult]:
    """Yield the results of chunks, with the bytes of their answers."""
    task = ChunkTask(factory=factory, skip_bad=skip_bad)
    for number, result in enumerate(map_in_workers(task, ([*chunk] for chunk in chunks), workers=workers)):
        if not number:
            start(result.model)
        yield result
