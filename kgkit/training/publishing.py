"""A trained model's folder: written beside its place, and put there as a whole."""

import logging
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from kgkit.errors import WriteFailed
from kgkit.linking.manifest import MANIFEST

log = logging.getLogger(__name__)


class _About(msgspec.Struct):
    """What is told of a model that is replaced; a tagger has no KB, a portable head has ""."""

    kind: str
    name: str
    kb: str | None = None


@contextmanager
def published(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which then takes the place of *folder*; after an error all is as it was.

    Raises:
        WriteFailed: if the disk refuses.
    """
    staged = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    old, replaced = staged.with_suffix(".old"), older(folder)
    try:
        staged.mkdir(parents=True)
        yield staged
        if folder.exists():
            folder.rename(old)
        try:
            staged.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
        if replaced:
            log.info("%s has taken the place of %s", folder.name, replaced)
    except OSError as error:
        free = shutil.disk_usage(next(path for path in folder.parents if path.exists())).free
        raise WriteFailed(str(error), written=0, free=free, where=folder) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def older(folder: Path) -> str:
    """Return what to call the model that *folder* has: `the older NAME (RUNG, for KB)`; "" if it has none."""
    try:
        about = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_About)
    except (OSError, msgspec.DecodeError):
        return ""
    of = "" if about.kb is None else f", for {about.kb or 'any knowledge base'}"
    return f"the older {about.name} ({about.kind}{of})"


def sizes_of(folder: Path) -> dict[str, int]:
    """Return the size of each file under *folder*, in bytes, by its path within."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def kgkit_version() -> str:
    """Return the version of this kgkit; `unknown` if it is not installed."""
    try:
        return version("kgkit")
    except PackageNotFoundError:
        return "unknown"
