"""What a build reads: a source as its builder sees it, or another knowledge base."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.building.contract import Builder, SourceInfo, Traits
from kgkit.building.records import StoredRecords
from kgkit.errors import SourceError, UsageError
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.types import Record

__all__ = ["KB_SOURCE", "Material", "batches", "blamed", "opened"]

KB_SOURCE: Final = "kb:"
"""How a source is written that is a knowledge base: `kb:NAME` or `kb:NAME@BUILD`."""

_EVERY = 2_000


class Material(NamedTuple):
    """A source, looked at.

    Attributes:
        path: how errors name it.
        traits: what the build has to know beyond the records.
        records: gives them, from the first one.
        info: gives what the manifest says of it, once it has been read.
    """

    path: Path
    traits: Traits
    records: Callable[[], Iterator[Record]]
    info: Callable[[], SourceInfo]


@contextmanager
def opened(builder: Builder | None, source: str | os.PathLike[str] | None, home: Home) -> Iterator[Material]:
    """Give what *builder* makes of *source*: of a path, of `kb:NAME`, or of what it obtains itself.

    Without a builder the source is a KB, and is taken as it is.

    Raises:
        NotThere: nothing is there.
        SourceError: it is not what the builder reads.
        UsageError: the builder has to be told, or does not read such a source.
    """
    if source is not None and os.fspath(source).startswith(KB_SOURCE):
        with open_kb(os.fspath(source).removeprefix(KB_SOURCE), home.path) as kb:
            records = StoredRecords(kb)
            name = f"{KB_SOURCE}{kb.name}@{kb.build}"
            info = SourceInfo(
                name=kb.name, version=kb.build, licence=records.info.licence, url=records.info.url, path=name
            )
            if builder is None:
                yield Material(Path(name), records.traits, records.everything, lambda: info)
            else:
                yield Material(Path(name), builder.traits, lambda: builder.derive(records), lambda: info)
        return
    if builder is None:
        raise UsageError(f"{source} is no knowledge base: name a builder that reads it")
    with _readable("fetched"):
        path = Path(source) if source is not None else builder.obtain(home.cache)
    with _readable("read", path):
        files = builder.look(path)

    def records_of_parts() -> Iterator[Record]:
        return chain.from_iterable(builder.observe(path, part) for part in builder.parts(path))

    def described() -> SourceInfo:
        digest = hashlib.sha256()
        with _readable("read", path):
            for file in sorted(files.read):
                with file.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
        # Sources of no files are not all the same: there is no checksum to tell them apart by.
        checksum = digest.hexdigest() if files.read else ""
        return msgspec.structs.replace(files.info, path=str(path.absolute()), sha256=checksum)

    yield Material(path, files.traits or builder.traits, records_of_parts, described)


def batches(material: Material) -> Iterator[list[Record]]:
    """Yield the records of *material*, some thousands at a time."""
    with _readable("read", material.path):
        records = material.records()
    while True:
        with _readable("read", material.path):
            batch = list(islice(records, _EVERY))
        if not batch:
            return
        yield batch


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """Say of records that cannot be taken (text that is no Unicode, a key twice) that *path* has them."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise SourceError("holds text that is not Unicode", path=path, text=str(error.object)) from error
    except SourceError as error:
        if error.path is not None:
            raise
        raise SourceError(error.message, path=path, text=error.text) from error


@contextmanager
def _readable(done: str, path: Path | None = None) -> Iterator[None]:
    """Say of a file that cannot be read that it is the source that cannot."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot be {done}: {error}", path=path) from error
