"""Reading the tables of a build in a process of its own.

LMDB and marisa-trie trust the pages of their files: a crafted or damaged page can end the process that reads
it, by SIGSEGV, SIGBUS or SIGABRT. Here that ends the child alone, and is reported as damage.

The child writes one JSON object to its standard output: `problems`, or the class, text and attributes of the
error that it met.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit import errors
from kgkit.errors import KgkitError, StoreError

_FAULTS: Final = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
"""The signals that reading a damaged page ends with."""

_MOST_PROBLEMS: Final = 1000
_LONGEST: Final = 1000  # characters of a problem


class _Answer(msgspec.Struct):
    """Answer of the child: problems, or an error."""

    problems: list[str] = []
    error: str = ""
    text: str = ""
    facts: dict[str, str] = {}


def table_problems(folder: Path) -> list[str]:
    """Return the problems of the tables of a build, as `validate.check_tables` does, read in a child.

    Args:
        folder: folder of the build.

    Raises:
        NotThere, FormatMismatch, DamagedKB, MissingExtra: as `validate.check_tables` does.
        StoreError: if the child did not end by itself, as where the system is short of memory.
    """
    # The child imports what this process imports, and nothing else from the current directory (-P).
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 - a string
    child = subprocess.run(
        [sys.executable, "-P", "-c", f"from {__name__} import main; main()", str(folder.absolute())],
        env=os.environ | {"PYTHONPATH": paths}, stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    if -child.returncode in _FAULTS:
        name = signal.Signals(-child.returncode).name
        return [f"table: a page is damaged: reading it ended the process that read it ({name})"]
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise StoreError(
            f"the check of {folder} was ended by {name}, as a system does that is short of memory: "
            "its tables were not read to their end; check it again"
        )
    if child.returncode:
        _, _, last = child.stderr.decode(errors="replace").strip().rpartition("\n")
        raise StoreError(f"the check of {folder} ended with {child.returncode}: {last}")
    answer = msgspec.json.decode(child.stdout, type=_Answer)
    if answer.error:
        raise _error(answer)
    return answer.problems


def _error(answer: _Answer) -> KgkitError:
    """Return the error that the child met; made as unpickling does, since constructors differ."""
    kind: type[KgkitError] = getattr(errors, answer.error)
    error = kind.__new__(kind, answer.text)
    error.__dict__.update(answer.facts)
    return error


def _answer(folder: Path) -> _Answer:
    from kgkit.store.manifest import read_manifest
    from kgkit.store.validate import check_tables

    try:
        problems = check_tables(folder, read_manifest(folder))
    except KgkitError as error:
        facts: dict[str, Any] = {name: value for name, value in vars(error).items() if isinstance(value, str)}
        return _Answer(error=type(error).__name__, text=str(error), facts=facts)
    except MemoryError:
        text = f"the tables of {folder} cannot be checked in the memory that this process may have"
        return _Answer(error=StoreError.__name__, text=text)
    shown = [problem[:_LONGEST] for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        shown.append(f"table: {len(problems) - _MOST_PROBLEMS:,} further problems")
    return _Answer(shown)


def main() -> None:
    """Check the tables of the build that the command line names, as the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    sys.stdout.buffer.write(msgspec.json.encode(_answer(Path(sys.argv[1]))))
