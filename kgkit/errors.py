"""Every error kgkit raises on purpose.

    KgkitError
      SourceError          a source file is not what its reader expects
      BuildFailed          a build cannot go on: memory, a worker that was killed, numbers that diverged
      UsageError           the call itself is wrong
        UnknownName          no builder, relation … of that name
          UnknownModel         no model of that name (also a NotThere)
        MissingExtra         an optional dependency is not installed
        NameConflict         something else has the name that is to be unpacked
      NotThere             a KB, model or data set is not where it was looked for
        UnknownEntity        a KB has no entity of that key or id (also a KeyError)
        NoPath               no path joins two entities
        NetworkForbidden     it would have to be fetched, and KGKIT_OFFLINE forbids that
      StoreError           a knowledge base on disk cannot be used as it is
        FormatMismatch       it was written in another format
        DamagedKB            its files do not match its manifest
        DamagedVectors       vectors, or their index, do not match what is written of them
        StaleKB              the build a handle was opened on is gone
        StaleVectors         vectors were made for another build
        DamagedModel         the files of a trained model do not match what is written of it
        StaleModel           a model was trained for another build, or with other vectors
        DamagedPack          a pack does not hold what it declares, or declares what it may not hold
        ClosedKB             the handle has been closed
        KBBusy               another process builds or removes it, makes the same vectors or the same model
        WriteFailed          the disk refused a write: full, or a size limit
      UnsupportedPlatform  the operating system lacks what publishing needs
      CatalogError         the catalog cannot be reached, written or understood

Those that a program may want to act on carry their facts as attributes, as
well as in the sentence. The command line exits with 3 for `NotThere`, 2 for a `UsageError`, 1 for the rest.
"""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)  # room would not help

LONGEST: Final = 120
"""Characters of what was found that an error shows."""


def abbreviate(text: str) -> str:
    """Return a text as an error shows it: its beginning, where it is long."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return the question whether a similar name was meant, to end a sentence with; empty where none is."""
    from difflib import get_close_matches  # here: it is needed for an error only

    near = get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class KgkitError(Exception):
    """The root: catch this to catch everything kgkit raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is made again from its sentence alone. A pool of
        # processes waits for ever for a result that it cannot unpickle.
        return _again, (type(self), self.args, self.__dict__)


class SourceError(KgkitError):
    """A source file is not what its reader expects.

    Attributes:
        message: text of what is wrong, without where.
        path: the file.
        line: its line, counted from 1, if the trouble has a line.
        text: the offending text, shortened.
    """

    def __init__(
        self, message: str, *, path: Path | None = None, line: int | None = None, text: str | None = None
    ) -> None:
        self.message, self.path, self.line = message, path, line
        self.text = None if text is None else abbreviate(text)
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message + ("" if text is None else f"\n    {self.text!r}"))

    def with_remedy(self) -> "SourceError":
        """Return the error of a record that need not end the reading."""
        message = f"{self.message}; --bad skip leaves out what cannot be read"
        return SourceError(message, path=self.path, line=self.line, text=self.text)


class BuildFailed(KgkitError):
    """A build, or the making of vectors, cannot go on as it is; what it has done is kept."""


class UsageError(KgkitError):
    """The call itself is wrong: a value out of range, options that exclude each other."""


class UnknownName(UsageError):
    """Nothing of that kind goes by that name; says which names there are."""

    def __init__(self, kind: str, name: str, names: Sequence[str], *, hint: str = "") -> None:
        self.kind, self.name, self.names = kind, name, tuple(names)
        listed = f"there are: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        super().__init__(f"no {kind} named {name!r}; {hint or listed}")


class NotThere(KgkitError):
    """A knowledge base, model or data set is not where it was looked for."""


class UnknownModel(UnknownName, NotThere):
    """No model, or nothing with a role that models have, goes by that name; says which there are."""


class MissingExtra(UsageError):
    """An optional dependency is not installed; says which extra brings it."""

    def __init__(self, package: str, extra: str, hint: str = "") -> None:
        self.package, self.extra = package, extra
        needed = f"this needs the package {package!r}: pip install 'kgkit[{extra}]'"
        super().__init__(f"{needed}; {hint}" if hint else needed)


class NameConflict(UsageError):
    """Something else has the name of what is to be unpacked."""


class UnknownEntity(NotThere, KeyError):
    """A knowledge base has no entity of that key or id.

    Attributes:
        entity: the key or id.
        kb: name of the knowledge base.
    """

    def __init__(self, entity: object, kb: str, hint: Callable[[], str] | None = None) -> None:
        # The hint takes a search: it is asked for when somebody reads the error, not by who catches it.
        self.entity, self.kb, self._hint = entity, kb, hint
        super().__init__(f"no entity {entity!r} in knowledge base {kb!r}")

    @property
    def hint(self) -> str:
        """What may have been meant, or what to do next; empty where nothing is known."""
        hint = self._hint
        if callable(hint):
            self._hint = None
            try:
                text = hint()
            except KgkitError:  # a handle that has been closed
                text = ""
            self._text = text
        return getattr(self, "_text", "")

    def __str__(self) -> str:  # KeyError would show the sentence in quotes
        return f"{self.args[0]}; {self.hint}" if self.hint else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        if self.hint:  # as text: a handle does not travel with an error
            self._hint = None
        return super().__reduce__()


class NoPath(NotThere):
    """No path joins two entities."""


class NetworkForbidden(NotThere):
    """Something would have to be fetched, and `KGKIT_OFFLINE` forbids that.

    Attributes:
        target: what would have been fetched.
    """

    def __init__(self, target: str, hint: str = "") -> None:
        self.target = target
        message = f"{target} is not fetched: KGKIT_OFFLINE forbids the network; unset it"
        super().__init__(f"{message}, or {hint}" if hint else message)


class StoreError(KgkitError):
    """A knowledge base on disk cannot be used as it is."""


class FormatMismatch(StoreError):
    """A knowledge base was written in another format."""


class DamagedKB(StoreError):
    """The files of a knowledge base do not match its manifest."""


class StaleKB(StoreError):
    """The build that a handle was opened on is gone."""


class DamagedVectors(StoreError):
    """The files of vectors, or of their index, do not match what is written of them."""


class StaleVectors(StoreError):
    """Vectors were made for another build of their knowledge base."""


class DamagedModel(StoreError):
    """The files of a trained model do not match what is written of it."""


class StaleModel(StoreError):
    """A model was trained for another build of its knowledge base, or with other vectors."""


class DamagedPack(StoreError):
    """A pack does not hold what it declares, or declares what it may not hold."""


class ClosedKB(StoreError):
    """The handle has been closed."""


class KBBusy(StoreError):
    """Another process builds or removes this knowledge base, or makes the same vectors or the same model."""


class WriteFailed(StoreError):
    """The disk refused a write.

    Attributes:
        written: bytes of this build on disk when it failed.
        free: bytes the file system still has.
        where: the folder written to.
    """

    def __init__(self, reason: str, *, written: int, free: int, where: Path) -> None:
        self.reason, self.written, self.free, self.where = reason, written, free, where
        sizes = f"; {written / 1e6:.1f} MB of this build written, {free / 1e6:.1f} MB free"
        remedy = "make room"
        if any(os.strerror(code) in reason for code in _FORBIDDEN):
            sizes, remedy = "", "give this user the right to write there"
        super().__init__(
            f"cannot write to {where}: {reason}{sizes}. What was published before is untouched; {remedy}, "
            "or name another folder with --home or KGKIT_HOME"
        )


class UnsupportedPlatform(KgkitError):
    """The operating system lacks what publishing needs: see `docs/stability.md`."""


class CatalogError(KgkitError):
    """The catalog cannot be reached, written or understood; knowledge bases can be used without it."""


class Terminated(KeyboardInterrupt):
    """The process got SIGTERM, as of Slurm, Kubernetes or `timeout`.

    Attributes:
        exit_code: exit code of the command line.
    """

    exit_code: Final = 143


class StoppedTraining(KeyboardInterrupt):
    """A training was stopped, by Ctrl-C or SIGTERM, and has kept a checkpoint, from which it can go on.

    Attributes:
        steps: number of steps that are done.
        total: number of steps that there are to be.
        exit_code: exit code of the command line: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, steps: int, total: int, cause: KeyboardInterrupt) -> None:
        self.steps, self.total = steps, total
        self.exit_code: int = getattr(cause, "exit_code", 130)
        super().__init__(f"stopped after {steps:,} of {total:,} steps")


class StoppedCounting(KeyboardInterrupt):
    """A training that counts was stopped, by Ctrl-C or SIGTERM, and goes on behind the counts that it wrote.

    Attributes:
        counts: phrase that says which counts are there; empty if none are.
        exit_code: exit code of the command line: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, counts: str, cause: KeyboardInterrupt) -> None:
        self.counts = counts
        self.exit_code: int = getattr(cause, "exit_code", 130)
        super().__init__(f"stopped; kept are {counts}" if counts else "stopped; nothing was kept so far")


def _again(kind: type[KgkitError], args: tuple[Any, ...], facts: dict[str, Any]) -> KgkitError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
