"""Arrays in the folder of a model, read so that a file takes no more memory than it is long.

NumPy makes room for what the header of an array says before it looks whether the numbers are there: a file of
a hundred bytes may ask for as many gigabytes. A file by itself is mapped, which its length must allow; of an
archive (`.npz`) each header is compared with what is behind it.
"""

from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Final
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kgkit.models.manifest import damaged

Array = NDArray[Any]

LARGEST: Final = 1e15
"""The largest number that a model's arrays may have: sums of squares of such are 32-bit numbers still."""

# What NumPy raises for a header that is none: it is parsed as Python.
_REFUSED = (
    OSError, ValueError, EOFError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError,
    OverflowError, BadZipFile, TokenError,
)  # fmt: skip


def read_array(path: Path) -> Array:
    """Return the array of numbers in a `.npy` file, mapped into memory.

    Raises:
        DamagedModel: if it is none, or says that it is longer than its file.
    """
    try:
        with path.open("rb") as stream:
            _described(stream, path.stat().st_size)
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _REFUSED as error:
        raise damaged(path.parent, f"{path.name} is no array of numbers: {error}") from error
    return array


def check_numbers(folder: Path, name: str, array: Array) -> None:
    """Make sure that all numbers of an array are finite, and none is larger than `LARGEST`.

    Others end as 0 in some sums, so that answers look plausible, and in others as no number.

    Args:
        folder: folder of the model.
        name: name of the array, for the error.
        array: array.

    Raises:
        DamagedModel: if one is.
    """
    if not _is_below(array, LARGEST):
        raise damaged(folder, f"{name} has numbers that are not finite, or above {LARGEST:g}")


def _is_below(array: Array, largest: float) -> bool:
    """Say whether all numbers of an array are from -*largest* to *largest*; NaN is not."""
    if array.dtype.kind != "f" or not array.size:
        return True
    if array.dtype == np.float16:
        # Above 65504 there are infinity and NaN alone, which have the greatest bits of each sign: that is ten
        # times faster than `isfinite`, for centroids of tens of thousands of meanings.
        return bool(array.view(np.int16).max() < 0x7C00 and array.view(np.uint16).max() < 0xFC00)
    return bool((np.abs(array) <= np.float64(largest)).all())


def read_archive(path: Path) -> dict[str, Array]:
    """Return the arrays of numbers in a `.npz` file that is not compressed, by name.

    Raises:
        DamagedModel: if it is none, an array says that it is longer than what the file has of it, or a number
            is not finite.
    """
    arrays: dict[str, Array] = {}
    try:
        with ZipFile(path) as archive:
            for member in archive.infolist():
                if member.compress_type != ZIP_STORED:
                    raise ValueError(f"{member.filename} is compressed")
                with archive.open(member) as stream:
                    arrays[member.filename.removesuffix(".npy")] = _read(stream, member.file_size)
    except (*_REFUSED, NotImplementedError, RuntimeError) as error:
        raise damaged(path.parent, f"{path.name} holds no arrays of numbers: {error}") from error
    for name, array in arrays.items():
        check_numbers(path.parent, f"{name!r} in {path.name}", array)
    return arrays


def _read(stream: IO[bytes], size: int) -> Array:
    """Return the array in a stream of *size* bytes."""
    shape, by_columns, kind, count = _described(stream, size)
    content = stream.read(count * kind.itemsize)
    return np.frombuffer(content, kind, count).reshape(shape, order="F" if by_columns else "C")


def _described(stream: IO[bytes], size: int) -> "tuple[tuple[int, ...], bool, np.dtype[Any], int]":
    """Return shape, whether it lies by columns, type and length of the array in a stream of *size* bytes."""
    version = npy.read_magic(stream)
    reads = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reads is None:
        raise ValueError(f"version {version} of the format is not known")
    shape, by_columns, kind = reads(stream)
    count = 1
    for side in shape:
        count *= side
    if kind.kind not in "fiu" or min(shape, default=0) < 0 or count * kind.itemsize > size:
        raise ValueError(f"it says that {size:,} bytes are {kind} of the shape {shape}")
    return shape, by_columns, kind, count
