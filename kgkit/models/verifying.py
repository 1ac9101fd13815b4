"""Whether the files of a trained model are those that were published."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.errors import DamagedModel
from kgkit.models.arrays import read_archive, read_array
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import damaged, decode_manifest, file_in, read_header
from kgkit.versions import file_sha256


def verify_model(folder: Path) -> list[str]:
    """Return the problems of the model in *folder*, a sentence each.

    Sizes and checksums of all files are compared with the manifest, and headers are read: those of arrays and
    of weights, and JSON. A model without checksums (none that `kgkit train` makes) has its headers read.
    """
    try:
        header = read_header(folder)
        decode_manifest(folder, find_kind(header, folder).manifest)
        paths = {name: file_in(folder, name) for name in header.sizes}
    except DamagedModel as error:
        return [str(error)]
    problems = []
    for name, size in header.sizes.items():
        path = paths[name]
        if not path.is_file():
            problems.append(f"{name} is not there")
        elif path.stat().st_size != size:
            problems.append(f"{name} has {path.stat().st_size:,} bytes, and had {size:,}")
        elif name in header.sha256 and file_sha256(path) != header.sha256[name]:
            problems.append(f"{name} has another content than it had (SHA-256)")
        else:
            problems += _header_problem(path)
    return problems


def _header_problem(path: Path) -> Iterator[str]:
    """Yield what is wrong with the header of a file, of those types that have one."""
    try:
        if (read := _READERS.get(path.suffix)) is not None:
            read(path)
    except DamagedModel as error:
        yield str(error)
    except (OSError, LookupError, TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        yield str(damaged(path.parent, f"{path.name} cannot be read: {error}"))


def _read_json(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())


def _read_safetensors(path: Path) -> None:
    """Read the header of a file of weights: its length, 8 bytes little-endian, then JSON.

    Raises:
        ValueError: if it is longer than the file, or tells of more numbers than are behind it.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError(f"its header is to be {length:,} bytes long, in a file of {size:,}")
        header = msgspec.json.decode(file.read(length), type=dict[str, dict[str, Any]])
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    if max(ends, default=0) != size - 8 - length:
        raise ValueError(
            f"it tells of {max(ends, default=0):,} bytes of numbers, and has {size - 8 - length:,}"
        )


_READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    ".json": _read_json,
    ".npy": read_array,
    ".npz": read_archive,
    ".safetensors": _read_safetensors,
}
