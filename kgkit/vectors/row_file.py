"""Rows of vectors by 64-bit keys, in a file that several processes append to.

    FOLDER/rows.bin     records: key:u64 checksum:u64 row:f32*D, little-endian, all of one size
    FOLDER/lock         held while records are appended

A record never changes once it is complete, and a key has one record. Readers take no lock: they read the
complete records of the file, and of these only those whose checksum is right. What a process left that was
killed while it appended, less than a record, is written over by the next one that appends.

    N  keys    D  width of a row
"""

import mmap
import os
import weakref
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kgkit.types import Matrix
from kgkit.vectors.layout import Digests
from kgkit.versions import lock_folder

ROWS: Final = "rows.bin"

_BLOCK: Final = 4_096  # records that are checked at once
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

Indices = NDArray[np.int64]


class RowFile:
    """The rows in one file, of which there may be more with every call.

    May be used by one thread at a time, and by any number of processes.

    Args:
        folder: folder of the file; it is made.
        width: D.

    Raises:
        OSError: if the file can neither be read nor made.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.width = folder, width
        self._type = np.dtype([("key", "<u8"), ("checksum", "<u8"), ("row", "<f4", (width,))])
        self._records: NDArray[np.void] = np.empty(0, self._type)
        self._indices: dict[int, int] = {}
        path = folder / ROWS
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            path.touch()
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self.refresh()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._indices)

    def __contains__(self, key: int) -> bool:
        return key in self._indices

    @property
    def keys(self) -> Digests:
        """(N,) uint64, the keys that have a row."""
        return np.fromiter(self._indices, np.uint64, len(self._indices))

    def gather(self, keys: Digests) -> Matrix:
        """Return (N, D) a copy of the rows of *keys*.

        Raises:
            KeyError: if a key has none.
        """
        indices = np.fromiter((self._indices[key] for key in keys.tolist()), np.int64, len(keys))
        rows: Matrix = self._records["row"][indices]
        return rows

    def refresh(self) -> None:
        """Read what other processes have appended."""
        self._read(exclusive=False)

    def append(self, keys: Digests, rows: Matrix) -> None:
        """Append rows (N, D) under *keys*; a key that has a row by now keeps that.

        Raises:
            OSError: if the disk refuses, or the folder was removed.
        """
        if not self.folder.exists():  # else the lock would make it
            raise FileNotFoundError(f"{self.folder} was removed")
        with lock_folder(self.folder):
            end = self._read(exclusive=True)
            new = np.array([key not in self._indices for key in keys.tolist()], np.bool_)
            records = np.zeros(int(new.sum()), self._type)
            records["key"], records["row"] = keys[new], rows[new]
            records["checksum"] = _checksums(records)
            self._write(records.tobytes(), end)
            self._read(exclusive=True)

    def _write(self, content: bytes, end: int) -> None:
        with (self.folder / ROWS).open("rb+") as file:
            if not os.path.samestat(os.fstat(file.fileno()), os.fstat(self._file)):
                raise FileNotFoundError(f"{self.folder / ROWS} was replaced")
            file.seek(end)
            file.write(content)  # never truncated where that fails: readers may have mapped what is complete

    def _read(self, *, exclusive: bool) -> int:
        """Read the records that are new, and return where the next one begins.

        Unless this process has the lock, a record whose checksum is wrong may be one that is being written:
        it is read again the next time, and so is what follows.
        """
        size = self._type.itemsize
        begin, end = len(self._records), os.fstat(self._file).st_size // size
        if end <= begin:
            return end * size
        mapped = mmap.mmap(self._file, end * size, access=mmap.ACCESS_READ)
        records = np.frombuffer(mapped, self._type)
        for first in range(begin, end, _BLOCK):
            block = records[first : min(first + _BLOCK, end)]
            sound = block["checksum"] == _checksums(block)
            if not exclusive and not sound.all():
                end = first + int(np.argmin(sound))
                sound = sound[: end - first]
            for offset in np.flatnonzero(sound).tolist():
                self._indices.setdefault(int(block["key"][offset]), first + offset)
            if first + len(block) > end:
                break
        self._records = records[:end]
        return end * size


def row_count(folder: Path, width: int) -> int:
    """Return the number of rows in a folder, without looking at them; 0 if there is no file."""
    try:
        return (folder / ROWS).stat().st_size // (16 + 4 * width)
    except OSError:
        return 0


def _checksums(records: NDArray[np.void]) -> Digests:
    """Return (N,) uint64: sums of a record's numbers, each times an odd one, that zeros do not have."""
    width = records.dtype["row"].shape[0]
    factors = (np.arange(1, width + 1, dtype=np.uint64) * _MIX) | np.uint64(1)
    sums = np.empty(len(records), np.uint64)
    for begin in range(0, len(records), _BLOCK):
        block = records[begin : begin + _BLOCK]
        words = np.ascontiguousarray(block["row"]).view("<u4").astype(np.uint64)  # (n, D)
        sums[begin : begin + len(block)] = (words * factors).sum(axis=1, dtype=np.uint64) + block[
            "key"
        ] * _MIX
    return sums + _MIX
