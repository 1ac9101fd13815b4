"""A row in the catalog for each training and evaluation: what it takes to do it again, what it measured.

The row is written when a run begins, so that one that was killed can be told by its status `running`, and
completed when it ends. With several processes the first one keeps the diary.
"""

import datetime
import logging
import math
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.errors import KgkitError, NotThere, UsageError
from kgkit.home import Home
from kgkit.versions import file_sha256

__all__ = ["RunRecord", "recorded", "sha256_of"]

LIBRARIES: Final = (
    "kgkit", "faiss-cpu", "numpy", "openvino", "safetensors", "scikit-learn", "scipy",
    "tokenizers", "torch", "transformers",
)  # fmt: skip
"""Those that may decide a number; the versions of the installed ones are kept."""

_digests: dict[tuple[str, int, int], str] = {}  # by path, size and time of change: a file is read once
log = logging.getLogger(__name__)


@dataclass
class RunRecord:
    """A run under way.

    Attributes:
        scores: what it measured, value and number of items, by task, dataset and metric.
        model: the name of the model that was trained or evaluated, once it is in the catalog.
    """

    scores: dict[tuple[str, str, str], tuple[float, int]] = field(default_factory=dict)
    model: str | None = None

    def score(self, task: str, dataset: str, metric: str, value: float, n: int) -> None:
        """Note what was measured over *n* items; a second value of the same metric replaces the first."""
        if math.isfinite(value):
            self.scores[task, dataset, metric] = float(value), int(n)
        else:  # a database may refuse it, and the whole row with it
            log.warning("%s of %s on %s is %s: not recorded", metric, task, dataset, value)


@contextmanager
def recorded(
    home: Home,
    *,
    command: str,
    config: Any,
    seeds: Sequence[int] = (),
    data: Iterable[str | os.PathLike[str]] = (),
    device: str = "cpu",
    model: str | None = None,
) -> Iterator[RunRecord]:
    """Keep a run in the catalog: how it was done, how it ended, what it measured.

    That the catalog cannot be told takes nothing from the run: it is logged as a warning.

    Args:
        home: whose catalog.
        command: as it was typed.
        config: settings: a mapping or a dataclass.
        seeds: all of them.
        data: files that are read; of a folder, all files in it.
        device: where tensors were computed.
        model: name of the model that is used, which may be told later, as the record's attribute; the
            catalog keeps that of a model that was trained in the home.

    Examples:
        >>> with recorded(home, command="kgkit evaluate wsd", config={"model": "prior"}) as run:
        ...     run.score("wsd", "semeval2007", "f1", 0.547, n=455)
    """
    record = RunRecord(model=model)
    if os.environ.get("RANK", "0") != "0":
        yield record
        return
    row = {
        "command": command, "config": _plain(config), "seeds": [int(seed) for seed in seeds],
        "data": {name: digest for path in data for name, digest in _digests_of(Path(path))},
        "versions": _versions(), "device": str(device), "started": datetime.datetime.now(datetime.UTC),
    }  # fmt: skip
    number = _begin(home, row)
    since, status, code = time.monotonic(), "failed", 1
    try:
        yield record
        status, code = "done", 0
    except BaseException as error:
        status, code = _ending(error)
        raise
    finally:
        row |= {
            "status": status, "exit_code": code, "ended": datetime.datetime.now(datetime.UTC),
            "seconds": time.monotonic() - since, "peak_memory": peak_memory(),
        }  # fmt: skip
        _end(home, number, row, record)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file; one that has not changed since is not read again.

    Raises:
        OSError: if it cannot be read.
    """
    stat = path.stat()
    key = (str(path.absolute()), stat.st_size, stat.st_mtime_ns)
    if key not in _digests:
        _digests[key] = file_sha256(path)
    return _digests[key]


def peak_memory() -> int | None:
    """Return the most bytes of memory that this process has had since it began; None where nobody counts."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _begin(home: Home, values: Mapping[str, Any]) -> int | None:
    """Write the row of a run that begins; return its number, None if it could not be written."""
    from kgkit.catalog import Catalog, Run

    try:
        with Catalog.open(home) as catalog:
            row = Run(home=catalog.home, status="running", **values)
            catalog.add(row)
            return row.id
    except (KgkitError, OSError) as error:
        log.warning("this run is not in the catalog yet: %s", error)
        return None


def _end(home: Home, number: int | None, values: Mapping[str, Any], record: RunRecord) -> None:
    """Complete the row of a run, or write it whole if that did not succeed before."""
    from kgkit.catalog import Catalog, Run, Score
    from kgkit.catalog.database import LONG_PATIENCE

    try:
        with (
            Catalog.open(home, patience=LONG_PATIENCE) as catalog,
            catalog.writing() as session,
        ):
            row = session.get(Run, number) if number is not None else None
            if row is None:
                row = Run(home=catalog.home)
                session.add(row)
            for name, value in values.items():
                setattr(row, name, value)
            row.model_id = _model_id(session, catalog.home, record.model)
            row.scores = [
                Score(task=task, dataset=dataset, metric=metric, value=value, n=n)
                for (task, dataset, metric), (value, n) in record.scores.items()
            ]
    except (KgkitError, OSError) as error:
        log.warning("this run and its scores are not in the catalog: %s", error)


def _model_id(session: Any, home: str, name: str | None) -> int | None:
    from sqlalchemy import select

    from kgkit.catalog import Model

    if name is None:
        return None
    query = select(Model.id).where(Model.home == home, Model.name == name, Model.gone.is_(None))
    number: int | None = session.scalar(query)
    return number


def _ending(error: BaseException) -> tuple[str, int]:
    """Return status and exit code of a run that an exception ended; codes are those of the command line."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", getattr(error, "exit_code", 130)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    else:
        code = 2 if isinstance(error, UsageError) else 3 if isinstance(error, NotThere) else 1
        code = getattr(error, "exit_code", code)  # of the command line's own
    return ("done" if code == 0 else "interrupted" if code in (130, 143) else "failed"), code


def _digests_of(path: Path) -> Iterator[tuple[str, str | None]]:
    """Give the path and SHA-256 of a file, or of those in a folder; None for one that cannot be read here."""
    files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
    for file in files:
        try:
            # A pipe can be read once, by the run itself.
            yield str(file), sha256_of(file) if file.is_file() else None
        except OSError:
            yield str(file), None  # the run will say so itself


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _plain(config: Any) -> dict[str, Any]:
    """Return settings as JSON has them: a path becomes a string, a number of NumPy a number, nan nothing."""

    def plain(value: Any) -> Any:
        return value.item() if hasattr(value, "item") else str(value)

    settings: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config, enc_hook=plain))
    return settings
