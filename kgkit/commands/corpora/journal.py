"""What a run writes into a file, kept beside it until it is whole, so that a run that was stopped can go on.

    .NAME.partial/    content    answers so far; more than the state says has not been acknowledged
                      skipped    records that were skipped, as lines of JSON
                      state      `JournalState`, replaced as a whole
                      lock       held while a run writes

    .NAME.settings             `FinishedRun`, beside a file that a run with --resume has written to its end

The state is written every few seconds, after what it says is on the disk. Who goes on cuts both files to the
sizes in it, and reads on behind its entries.
"""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from kgkit.commands.corpora.formats import ResultFormat
from kgkit.errors import UsageError
from kgkit.versions import acquire_lock

_SECONDS: Final = 2.0  # between two states
_MAX_RECORD: Final = 1 << 20  # bytes of a record of settings; a longer file is none


class SkippedRecord(msgspec.Struct, frozen=True):
    """A record that could not be read.

    Attributes:
        file: name of its file.
        line: line at which it begins, or row of a Parquet file; None for a whole file.
        error: text of what is wrong with it.
    """

    file: str
    line: int | None
    error: str

    def __str__(self) -> str:
        return f"{self.file if self.line is None else f'{self.file}:{self.line}'}: {self.error}"


class RunCounts(NamedTuple):
    """How much has been read and answered.

    Attributes:
        entries: documents that were read, or skipped.
        documents: documents that were answered.
        items: links, or names, of these.
        skipped: records that could not be read.
    """

    entries: int = 0
    documents: int = 0
    items: int = 0
    skipped: int = 0

    def add(self, more: "RunCounts") -> "RunCounts":
        """Return the sums."""
        return RunCounts(*map(sum, zip(self, more, strict=True)))


class JournalState(msgspec.Struct, frozen=True):
    """How far a run is.

    Attributes:
        settings: what the answers depend on, by name.
        counts: how much is answered.
        size: bytes of the answers.
        skipped_size: bytes of the list of skipped records.
    """

    settings: dict[str, str]
    counts: RunCounts = RunCounts()
    size: int = 0
    skipped_size: int = 0


class FinishedRun(msgspec.Struct, frozen=True):
    """What a whole file was made with.

    Attributes:
        settings: what the answers depend on, by name.
        size: bytes of the file.
        modified: time of its last change, in nanoseconds: of another file nothing is said here.
    """

    settings: dict[str, str]
    size: int
    modified: int


class Journal:
    """The answers of a run, and how far it is.

    Args:
        path: file that the answers are for.
        folder: folder of the journal, which is locked.
        settings: what the answers depend on, by name.
        resume: whether to go on from the state in the folder, if there is one.

    Attributes:
        state: how far the run is; at the beginning, how far an earlier one was.
        abandoned: number of documents of an earlier run, where this one does not go on from it.

    Raises:
        UsageError: if the earlier run had other settings.
    """

    def __init__(self, path: Path, folder: Path, settings: Mapping[str, str], *, resume: bool) -> None:
        self.path, self._target, self._folder, self._resume = path, path.resolve(), folder, resume
        self._files: list[BinaryIO] = []
        earlier = self._earlier_state()
        if resume and earlier is not None:
            _check_unfinished(path, earlier.settings, settings)
        self.state = earlier if resume and earlier is not None else JournalState(dict(settings))
        self.abandoned = 0 if resume or earlier is None else earlier.counts.documents
        self._due = time.monotonic() + _SECONDS
        with name_path(path):
            if not resume:
                (folder / "state").unlink(missing_ok=True)
            self._content = self._open("content", self.state.size)
            self._skipped = self._open("skipped", self.state.skipped_size)

    @property
    def list_path(self) -> Path:
        """The file of the list of skipped records, beside the output."""
        return self.path.with_name(f"{self.path.name}.skipped")

    def write(self, content: bytes) -> None:
        """Write answers; `commit` acknowledges them."""
        with name_path(self.path):
            self._content.write(content)

    def commit(self, counts: RunCounts, skipped: Sequence[SkippedRecord]) -> None:
        """Acknowledge the answers of a chunk, which are written.

        Args:
            counts: numbers of the chunk.
            skipped: records of it that were skipped.
        """
        with name_path(self.path):
            for record in skipped:
                self._skipped.write(msgspec.json.encode(record) + b"\n")
            sizes = self._content.tell(), self._skipped.tell()
            self.state = JournalState(self.state.settings, self.state.counts.add(counts), *sizes)
            if time.monotonic() >= self._due:
                self.save()

    def save(self) -> None:
        """Have the disk keep the answers that are acknowledged, and write the state."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        temporary = self._folder / "state.new"
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(self.state))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._folder / "state")
        self._due = time.monotonic() + _SECONDS

    def publish(self, form: ResultFormat) -> str:
        """Put the answers, and the list of what was skipped, where they belong; the journal is removed.

        Returns:
            Warning, if the settings could not be kept; else empty.
        """
        with name_path(self.path):
            self.save()
            self._close()
            if self.state.counts.skipped:
                replace_file(self._folder / "skipped", self.list_path)
            else:
                self.list_path.unlink(missing_ok=True)
            output = self._folder / "content"
            if not form.streams:
                output = self._folder / "output"
                output.unlink(missing_ok=True)
                create_temporary(output, self._target)
                form.finish(self._folder / "content", output)
            warning = self._record_settings(output)
            replace_file(output, self._target)
        shutil.rmtree(self._folder, ignore_errors=True)
        return warning

    def _record_settings(self, output: Path) -> str:
        """Write what *output* was made with, where a later run may ask; else remove an older record.

        Returns:
            Warning, where that fails, which keeps no answers back; else empty.
        """
        path = _record_path(self._target)
        if not self._resume:
            with suppress(OSError):
                if _read_record(path) is not None:
                    path.unlink()
            return ""
        status, temporary = output.stat(), self._folder / "settings"
        run = FinishedRun(self.state.settings, status.st_size, status.st_mtime_ns)
        try:
            temporary.write_bytes(msgspec.json.encode(run))
            temporary.replace(path)
        except OSError as error:
            return (
                f"warning: the settings of {self.path} are not kept ({path.name}: {error.strerror}): a later "
                "--resume cannot compare its own with them"
            )
        return ""

    def abandon(self) -> int:
        """Keep what is acknowledged for a later run, so far as the disk lets us.

        Returns:
            Number of documents from which that can go on; where it is 0, nothing is kept.
        """
        with suppress(OSError):
            if self._files and self.state.counts.entries:
                self.save()
        self._close()
        state = self._earlier_state()
        if state is None or not state.counts.entries:
            shutil.rmtree(self._folder, ignore_errors=True)
            return 0
        return state.counts.documents

    def _open(self, name: str, size: int) -> BinaryIO:
        path = self._folder / name
        if not size:
            path.unlink(missing_ok=True)
            create_temporary(path, self._target)
        file = path.open("r+b")
        self._files.append(file)
        file.truncate(size)
        file.seek(size)
        return file

    def _close(self) -> None:
        for file in self._files:
            with suppress(OSError):
                file.close()
        self._files = []

    def _earlier_state(self) -> JournalState | None:
        """Return the state in the folder; None if there is none, or it speaks of more than there is."""
        with suppress(OSError, msgspec.MsgspecError):
            state = msgspec.json.decode((self._folder / "state").read_bytes(), type=JournalState)
            sizes = [(self._folder / name).stat().st_size for name in ("content", "skipped")]
            if sizes[0] >= state.size >= 0 and sizes[1] >= state.skipped_size >= 0:
                return state
        (self._folder / "state").unlink(missing_ok=True)
        return None


def _check_unfinished(path: Path, earlier: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Refuse to go on with answers that were made otherwise.

    Raises:
        UsageError: if a setting differs; names it.
    """
    if difference := find_difference(earlier, settings):
        raise UsageError(
            f"the unfinished run of {path} had {difference}: give it as before, or leave out --resume to "
            "begin again"
        )


def find_difference(earlier: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Return which setting differs first, as `another threshold (None, not 0.5)`; empty if none does."""
    for name, value in settings.items():
        if earlier.get(name) != value:
            return f"another {name} ({earlier.get(name)}, not {value})"
    return ""


def finished_settings(path: Path) -> Mapping[str, str] | None:
    """Return what a whole file was made with, by name; None if that is not on record."""
    target = path.resolve()
    with suppress(OSError):
        run, status = _read_record(_record_path(target)), target.stat()
        if run is not None and (run.size, run.modified) == (status.st_size, status.st_mtime_ns):
            return run.settings
    return None


def _record_path(target: Path) -> Path:
    return target.with_name(f".{target.name}.settings")


def _read_record(path: Path) -> FinishedRun | None:
    """Return the record in a file; None if it holds none, or is no file."""
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        if path.is_file() and path.stat().st_size <= _MAX_RECORD:  # a pipe would be waited for
            return msgspec.json.decode(path.read_bytes(), type=FinishedRun)
    return None


def journal_folder(path: Path) -> Path:
    """Return the folder beside a file in which a run keeps what it is going to write there."""
    target = path.resolve()  # a symbolic link stays one
    return target.with_name(f".{target.name}.partial")


@contextmanager
def open_journal(
    path: Path,
    settings: Mapping[str, str],
    form: ResultFormat,
    *,
    resume: bool = False,
    on_stop: Callable[[int], None] = lambda documents: None,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[Journal]:
    """Give the journal of a run that writes *path*, which appears whole when the block ends without an error.

    After an error, or a `kill -9`, what the state acknowledges is there for `resume`.

    Args:
        path: regular file that is going to be written, or none yet.
        settings: what the answers depend on, by name; another run must have the same to go on.
        form: how answers are written.
        resume: whether to go on from an earlier run.
        on_stop: function that gets, after an error, the number of documents from which another run can go on.
        warn: function that gets a warning, where the settings of the whole file could not be kept.

    Raises:
        UsageError: if another run is writing the file, or the earlier one had other settings.
        OSError: if the disk refuses; says which file.
    """
    folder = journal_folder(path)
    with name_path(path):
        try:
            lock = acquire_lock(folder, 0.0)
        except TimeoutError:
            raise UsageError(f"another run is writing {path}: wait for it, or name another file") from None
    try:
        journal = Journal(path, folder, settings, resume=resume)
        try:
            yield journal
            warning = journal.publish(form)
        except BaseException:
            on_stop(journal.abandon())
            raise
        if warning:
            warn(warning)
    finally:
        if folder.exists() and not (folder / "state").exists():  # nothing to go on from
            shutil.rmtree(folder, ignore_errors=True)
        lock.release()


@contextmanager
def name_path(path: object) -> Iterator[None]:
    """Add the path that could not be written, in words, to an error of the disk."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def create_temporary(temporary: Path, target: Path) -> None:
    """Make the empty file *temporary*, which `replace_file` is to put in the place of *target*.

    Until then it is its owner's alone where there is an earlier file, whose readers may be few; else its mode
    is that of any new file.

    Raises:
        OSError: if it is there already, or cannot be made.
    """
    mode = 0o600 if target.exists() else 0o666  # less the umask
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def replace_file(temporary: Path, target: Path) -> None:
    """Rename *temporary* to *target*, with the mode, the owner and the group of the file that was there.

    Where the group cannot be kept, the group has no rights: it would be another one.

    Raises:
        OSError: if the disk refuses.
    """
    with suppress(FileNotFoundError):
        old, new = target.stat(), temporary.stat()
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if old.st_gid != new.st_gid:
            try:
                os.chown(temporary, -1, old.st_gid)
            except PermissionError:
                mode &= ~0o070
        if old.st_uid != new.st_uid:
            with suppress(PermissionError):  # only root may give a file away
                os.chown(temporary, old.st_uid, -1)
        temporary.chmod(mode)
    temporary.replace(target)
