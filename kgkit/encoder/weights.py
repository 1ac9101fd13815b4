"""Weights in files of safetensors, for NumPy: mapped into memory, not copied, where they are float32.

    8 bytes     n, the length of the header
    n bytes     the header, JSON: {name: {dtype, shape, data_offsets: [begin, end]}}
    the rest    numbers, little endian; offsets count from here

Format: https://huggingface.co/docs/safetensors. What is computed with is float32, whatever a file has.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.folder import FLOATS
from kgkit.errors import SourceError
from kgkit.types import Matrix

_LONGEST: Final = 100_000_000  # bytes of a header, as safetensors itself has it
_TYPES: Final = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}


class WeightFile(Mapping[str, Matrix]):
    """The parameters in a file, by name; each is read when it is asked for.

    Attributes:
        path: the file.
        types: type of each, in the words of safetensors.
        shapes: shape of each.

    Raises:
        SourceError: if the file is damaged; where a parameter is read, if that has no floating point numbers,
            or one that is not finite.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.types: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._ranges: dict[str, tuple[int, int]] = {}
        try:
            # A copy on write: OpenVINO takes no array that cannot be written to.
            self._bytes: NDArray[np.uint8] = np.memmap(path, np.uint8, "c")
            begin = 8 + int.from_bytes(self._bytes[:8].tobytes(), "little")
            if not 8 < begin <= min(len(self._bytes), _LONGEST):
                raise ValueError(f"a header of {begin - 8:,} bytes in a file of {len(self._bytes):,}")
            header: dict[str, dict[str, Any]] = json.loads(self._bytes[8:begin].tobytes())
            header.pop("__metadata__", None)
            for name, about in header.items():
                first, last = (begin + int(offset) for offset in about["data_offsets"])
                if not begin <= first <= last <= len(self._bytes):
                    raise ValueError(f"{name} ends behind the end of the file")
                self.types[name] = str(about["dtype"])
                self.shapes[name] = tuple(int(size) for size in about["shape"])
                self._ranges[name] = first, last
                kind = _TYPES.get(self.types[name])
                if kind and math.prod(self.shapes[name]) * np.dtype(kind).itemsize != last - first:
                    raise ValueError(f"{name} of the shape {self.shapes[name]} has {last - first:,} bytes")
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SourceError(f"cannot be loaded: {type(error).__name__}: {error}", path=path) from error

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __getitem__(self, name: str) -> Matrix:
        check_type(self.path, name, self.types[name])
        numbers: NDArray[Any] = self._bytes[slice(*self._ranges[name])].view(_TYPES[self.types[name]])
        if self.types[name] == "BF16":
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        with np.errstate(over="ignore", invalid="ignore"):
            weights = numbers.astype(np.float32, copy=False)
            total = weights.sum()
        # A sum is not finite where one of its numbers is not, and is soon made.
        wrong = 0 if np.isfinite(total) else int((~np.isfinite(weights)).sum())
        if wrong:
            raise not_finite(self.path, name, wrong, weights.size)
        return np.require(np.asarray(weights).reshape(self.shapes[name]), requirements=["C", "A"])


def check_type(path: Path, name: str, kind: str) -> None:
    """Make sure that a parameter has floating point numbers.

    Args:
        path: file of the parameter.
        name: name of the parameter.
        kind: type of its numbers, in the words of safetensors.

    Raises:
        SourceError: if it has not.
    """
    if kind not in FLOATS:
        raise SourceError(
            f"the parameter {name!r} has numbers of the type {kind}, expected one of "
            f"{', '.join(sorted(FLOATS))}: get the model again",
            path=path,
        )


def not_finite(path: Path, name: str, wrong: int, count: int) -> SourceError:
    """Return the error of a parameter of which so many numbers are not finite."""
    return SourceError(
        f"{wrong:,} of the {count:,} numbers of the parameter {name!r} are not finite: the weights are "
        "damaged, or of a training that diverged; get the model again",
        path=path,
    )
