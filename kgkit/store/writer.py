"""Writing one build, from nothing or from the build before it; each table has its own digest."""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Self

import lmdb
import numpy as np

from kgkit.errors import StoreError, WriteFailed
from kgkit.store.damage import damage_error
from kgkit.store.layout import BY_ID, DATA, OPTIONAL, SURFACES, TABLES, TRIGRAMS
from kgkit.versions import copy_file, file_sha256, free_space, link_file

Item = tuple[bytes, bytes]

_BATCH = 8192
_FIRST_MAP = 64 << 20


class TableDigest:
    """BLAKE2b over a table's items in key order; how they were batched does not matter."""

    def __init__(self) -> None:
        self._lengths = hashlib.blake2b(digest_size=16)
        self._bytes = hashlib.blake2b(digest_size=16)

    def update(self, items: list[Item]) -> None:
        """Take in the next *items*."""
        joined = list(chain.from_iterable(items))
        self._lengths.update(np.fromiter(map(len, joined), "<u8", len(joined)).tobytes())
        self._bytes.update(b"".join(joined))

    def hexdigest(self) -> str:
        """Return the digest of all that was taken in."""
        return hashlib.blake2b(self._lengths.digest() + self._bytes.digest(), digest_size=16).hexdigest()


class StoreWriter:
    """A build being written: one writer, and nobody reads until it is published.

    Nothing is synchronous until `finish`: a build that does not finish is
    thrown away, so its pages need no protection.

    Args:
        folder: folder of the new build.
        tables: names of its tables, but for those of `OPTIONAL`.
    """

    def __init__(self, folder: Path, tables: Iterable[str] = TABLES) -> None:
        self.folder = folder
        self._digests = {table: TableDigest() for table in tables}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._env = lmdb.open(
                str(folder),
                map_size=_FIRST_MAP,
                max_dbs=len(TABLES) + len(OPTIONAL),
                sync=False,
                metasync=False,
                lock=False,
            )
            self._tables = {
                table: self._env.open_db(table.encode(), integerkey=table in BY_ID) for table in self._digests
            }
        except (OSError, lmdb.Error) as error:
            raise self._failure(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._env.close()

    def append(self, table: str, items: Iterable[Item]) -> None:
        """Append *items* to *table*; keys ascend, within the call and from call to call.

        A table of `OPTIONAL` is there from its first item on.

        Raises:
            WriteFailed: if the disk has no room for them.
            StoreError: if a key is not greater than the one before it.
        """
        for batch in _batches(items):
            self._have(table)
            if (added := self._write(table, batch, append=True)) != len(batch):
                raise StoreError(f"keys of table {table!r} do not ascend at {batch[added][0]!r}")
            self._digests[table].update(batch)

    def finish(self) -> dict[str, str]:
        """Bring everything to the disk and close; return the digest of each table."""
        try:
            self._env.sync(True)
        except lmdb.Error as error:
            raise self._failure(error) from error
        self._env.close()
        return {table: digest.hexdigest() for table, digest in self._digests.items()}

    def _have(self, table: str) -> None:
        """Make a table that a build may lack."""
        if table in OPTIONAL and table not in self._tables:
            try:
                self._tables[table] = self._env.open_db(table.encode())
            except lmdb.Error as error:
                raise self._failure(error) from error
            self._digests[table] = TableDigest()

    def _write(self, table: str, batch: list[Item], *, append: bool) -> int:
        """Write *batch*, return how many rows that were; appending ends at a key that does not ascend."""
        while True:
            try:
                with self._env.begin(write=True) as transaction:
                    cursor = transaction.cursor(self._tables[table])
                    added: int = cursor.putmulti(batch, append=append)[1]
            except lmdb.MapFullError:
                # The transaction is undone: nothing of the batch is in the table.
                self._grow()
                continue
            except (lmdb.Error, OSError) as error:
                raise self._failure(error) from error
            return added

    def _grow(self) -> None:
        try:
            self._env.set_mapsize(self._env.info()["map_size"] * 2)
        except (lmdb.Error, OSError, MemoryError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StoreError:
        data = self.folder / DATA
        written = data.stat().st_size if data.exists() else 0
        free = free_space(self.folder)
        reason = str(error)
        if os.strerror(errno.EIO) in reason:
            # So LMDB calls a write that was cut short.
            short = os.strerror(errno.ENOSPC) if free < _FIRST_MAP else "or a limit on the size of files"
            reason = f"{reason} ({short})"
        return WriteFailed(reason, written=written, free=free, where=self.folder)


class StoreEditor(StoreWriter):
    """A build that begins as a copy of another one: rows are added to it and replaced.

    Args:
        folder: folder of the new build.
        base: the folder of the build that it begins as.
        tables: the digests that the base's manifest has.
    """

    def __init__(self, folder: Path, base: Path, tables: Mapping[str, str]) -> None:
        self.folder, self._base, self._table_names = folder, base, dict(tables)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            copy_file(base / DATA, folder / DATA)
            for name in (SURFACES, TRIGRAMS):
                if (base / name).exists():
                    link_file(base / name, folder / name)
        except OSError as error:
            raise self._failure(error) from error
        super().__init__(folder, (table for table in TABLES if table in tables))
        for table in OPTIONAL.keys() & tables.keys():
            self._have(table)

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Write *items* to *table*, over the rows that their keys have; a row that says the same stays.

        Raises:
            WriteFailed: if the disk has no room for them.
            DamagedKB: if the rows that the table had are not those of its digest.
        """
        for batch in _batches(items):
            self._have(table)
            with self._env.begin() as transaction:
                database = self._tables[table]
                new = [(key, value) for key, value in batch if transaction.get(key, db=database) != value]
            if new:
                self._check(table)
                self._write(table, new, append=False)

    def remove(self, table: str, keys: Iterable[bytes]) -> None:
        """Remove the rows of *keys* from *table*; a key without a row is passed over.

        Raises:
            WriteFailed: if the disk has no room for it.
            DamagedKB: if the rows that the table had are not those of its digest.
        """
        database = self._tables[table]
        with self._env.begin() as transaction:
            present = [key for key in keys if transaction.get(key, db=database) is not None]
        if present:
            self._check(table)
        while present:
            try:
                with self._env.begin(write=True) as transaction:
                    for key in present:
                        transaction.delete(key, db=database)
            except lmdb.MapFullError:
                self._grow()  # the transaction is undone
                continue
            except (lmdb.Error, OSError) as error:
                raise self._failure(error) from error
            return

    @property
    def has_changed(self) -> bool:
        """Whether anything has been written over the copy."""
        return not self._tables.keys() <= self._table_names.keys()

    def finish(self) -> dict[str, str]:
        """Return the digest of each table: of a changed one over all its rows, else the one of the base."""
        for table in self._tables:
            if table not in self._table_names:
                self._digests[table] = self._digest(table)
        return {**super().finish(), **self._table_names}

    def _check(self, table: str) -> None:
        """Compare a table with the digest of the base, before its first change: then it gets a new one.

        Raises:
            DamagedKB: if its rows are not those that were written.
        """
        expected = self._table_names.get(table)
        if expected is not None and self._digest(table).hexdigest() != expected:
            raise damage_error(self._base, f"table {table!r} is not what was written")
        self._table_names.pop(table, None)

    def _digest(self, table: str) -> TableDigest:
        """Return the digest of all rows that a table has now."""
        digest = TableDigest()
        with self._env.begin() as transaction:
            for batch in _batches(transaction.cursor(self._tables[table])):
                digest.update(batch)
        return digest


def checksums(folder: Path, earlier: Mapping[str, str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return size and SHA-256 of each file of the build that was written in *folder*, but for the manifest.

    Args:
        folder: folder of the build.
        earlier: the checksums of the build that this one began as, whose tries it keeps.
    """
    sizes: dict[str, int] = {}
    sums: dict[str, str] = {}
    for name in (DATA, SURFACES, TRIGRAMS):
        path = folder / name
        if name != DATA and not path.exists():
            continue
        sizes[name] = path.stat().st_size
        if name == SURFACES and name in earlier:
            sums[name] = earlier[name]
        else:
            sums[name] = file_sha256(path)
    return sizes, sums


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, _BATCH)):
        yield batch
