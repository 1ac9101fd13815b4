"""Checks of files of data: ids that differ, sizes that memory holds, and gold that is there."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, Literal

from kgkit.errors import SourceError, UsageError

_CHUNK: Final = 1 << 20


class LimitedStream:
    """A stream of which so many bytes are read at most.

    Args:
        stream: the stream.
        limit: number of bytes.
        problem: message of the error where there are more.
        path: its file, for the error.

    Attributes:
        count: bytes that were read; whoever reads may set it back.
    """

    def __init__(self, stream: BinaryIO, limit: int, problem: str, path: Path) -> None:
        self._stream, self._limit, self._problem, self._path = stream, limit, problem, path
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            SourceError: if there are more than the limit.
        """
        content = self._stream.read(min(size, _CHUNK) if size >= 0 else _CHUNK)
        self.count += len(content)
        if self.count > self._limit:
            raise SourceError(self._problem, path=self._path)
        return content


class UniqueIds:
    """Makes sure that no two examples of a file have one id: answers go by it.

    Args:
        path: the file.
        unit: what the positions that `check` takes count: lines, instances of one line, or records.
    """

    def __init__(self, path: Path | None, unit: Literal["line", "instance", "record"] = "line") -> None:
        self._path, self._unit = path, unit
        self._positions: dict[str, int] = {}

    def check(self, name: str, position: int, text: str | None = None) -> None:
        """Take note of the id *name*.

        Raises:
            SourceError: if an example before it has the same.
        """
        earlier = self._positions.setdefault(name, position)
        if earlier != position:
            raise SourceError(
                f"two examples have the id {name!r}, those of {self._unit} {earlier} and {position}: each "
                "needs its own, as answers go by it",
                path=self._path, line=position if self._unit == "line" else None, text=text,
            )  # fmt: skip


def missing_gold(example: str, gold: str = "label") -> UsageError:
    """Return the error for an example that is to be scored and has no gold.

    Args:
        example: what it is called, with its id: `pair 3`.
        gold: what it lacks.
    """
    return UsageError(f"{example} has no {gold}: score on a file with gold")


def check_data(data: Sequence[Path]) -> None:
    """Refuse a training without data.

    Raises:
        UsageError: if there is no file.
    """
    if not data:
        raise UsageError("there are no training data: name one or more files of data")


def check_gold_files(data: Sequence[Path], gold: Sequence[Path]) -> None:
    """Refuse files of gold that are not as many as the files of data.

    Raises:
        UsageError: if there are more or fewer.
    """
    if len(data) != len(gold):
        raise UsageError(
            f"files of data: {len(data)}, files of gold: {len(gold)}; name a file of gold for each file of "
            "data, in the same order"
        )
