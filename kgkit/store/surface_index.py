"""The index of surfaces of a build: made with it, from its tables `aliases`, `entities` and `names`.

A build that begins as another one has that one's index linked beside its data: what was added follows there,
and an index of surfaces that are gone, or of an older version, is made anew. Builds of older versions of
kgkit lack the index, or parts of it; all else of them works.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from kgkit.errors import WriteFailed
from kgkit.pauses import pause
from kgkit.store import codec
from kgkit.store.environments import acquire, release
from kgkit.store.layout import TRIGRAMS, U32
from kgkit.store.trigrams import Labels, TrigramIndex, TrigramWriter
from kgkit.text import Folding
from kgkit.versions import free_space

__all__ = ["missing_surfaces", "uncontained_labels", "write_index"]

_PAUSED: Final = 1_000  # entities
_NEW = TRIGRAMS + ".new"
_HEADS: Final = [bytes((0xC4, length)) for length in range(0xFF)]  # MessagePack's of so many bytes


class _Label(msgspec.Struct, array_like=True, gc=False):
    """The first fields of a stored entity."""

    key: str
    label: str = ""


_decode_label: Final = msgspec.msgpack.Decoder(_Label).decode


def write_index(data: Path, folder: Path, folding: Folding) -> Path:
    """Write the index of the build whose data lie in *data* to *folder*, and return its path.

    An index that is there is taken for that of the build that this one began as.

    Raises:
        WriteFailed: if the disk refuses.
        DamagedKB: if the data cannot be opened.
        lmdb.Error: if they cannot be read.
    """
    path, base = folder / TRIGRAMS, None
    environment = acquire(data)
    try:
        with environment.lmdb.begin() as transaction:
            aliases = environment.tables["aliases"]
            additions = _keys(transaction, aliases)
            entities, names = environment.tables["entities"], environment.tables.get("names")
            labels = uncontained_labels(
                transaction.cursor(entities), () if names is None else transaction.cursor(names), folding
            )
            if path.exists():
                base, new = TrigramIndex(path), None
                if base.labels is not None:  # it is of the version that is written
                    new = missing_surfaces(_keys(transaction, aliases), base)
                    if new == [] and labels.same_as(base.labels):
                        return path
                base, additions = (None, additions) if new is None else (base, iter(new))
            with TrigramWriter(folder / _NEW, base) as index:
                index.add(additions)
                index.finish(labels)
    finally:
        release(environment)
    try:
        (folder / _NEW).replace(path)
    except OSError as error:
        raise WriteFailed(str(error), written=0, free=free_space(folder), where=folder) from error
    return path


def _keys(transaction: Any, aliases: Any) -> Iterator[bytes]:
    """Yield the surfaces, as they are in the table; not those that are too long for a key."""
    with transaction.cursor(aliases) as cursor:
        for key in cursor.iternext(values=False):
            if not key.startswith(codec.DIGEST):
                yield key


def uncontained_labels(
    entities: Iterable[tuple[bytes, bytes]], names: Iterable[tuple[bytes, bytes]], folding: Folding
) -> Labels:
    """Return the labels that no surface of their entity contains, and those that have two forms.

    Args:
        entities, names: items of these tables, in the order of ids; of a build without `names`, none.
            Surfaces of an entity that is not there are left out.
        folding: folding of the surfaces.
    """
    heads, digest = _HEADS, codec.DIGEST
    folds_to_lower = folding.lowered("I") is not None  # ASCII without full stops
    found: list[bytes] = []
    numbers: list[bytes] = []
    remaining = iter(names)
    named, row = next(remaining, (b"", b""))
    for count, (number, entity) in enumerate(entities):
        if not count % _PAUSED:
            pause()
        label = _decode_label(entity).label
        if folds_to_lower and label.isascii() and "." not in label:
            written = " ".join(label.lower().split()).encode()  # ten times as fast, of most labels
        else:  # two forms are within no surface
            written = "\n".join(dict.fromkeys((folding.fold(label), label.lower()))).encode()
        while named and named[::-1] < number[::-1]:  # of no entity; ids are little-endian
            named, row = next(remaining, (b"", b""))
        if named == number:
            surfaces = row
            named, row = next(remaining, (b"", b""))
            packed = heads[len(written)] + written if len(written) < len(heads) else b"\xff"
            if packed in surfaces and digest not in surfaces:  # most labels are a surface as a whole
                continue
            if any(
                written in surface and not surface.startswith(digest)
                for surface in codec.decode_alias_keys(surfaces)
            ):
                continue
        if written:
            found.append(written)
            numbers.append(number)
    text = b"".join([written + b"\n" for written in found])
    ends = np.cumsum(np.fromiter(map(len, found), np.uint64, len(found)) + np.uint64(1), dtype=np.uint64)
    return Labels(np.frombuffer(text, np.uint8), ends, np.frombuffer(b"".join(numbers), U32))


def missing_surfaces(keys: Iterator[bytes], index: TrigramIndex) -> list[bytes] | None:
    """Return the keys that an index does not have; None if it has surfaces that are not among them.

    Args:
        keys: surfaces, ascending.
        index: index whose first surfaces ascend; what was added to these follows.
    """
    tail: list[bytes] = []
    ascending = _ascending(index.surfaces(), tail)
    following, missing = next(ascending, None), []
    for key in keys:
        if following is not None and following < key:
            return None
        if following == key:
            following = next(ascending, None)
        else:
            missing.append(key)
    if following is not None:
        return None
    indexed = set(tail)
    new = [key for key in missing if key not in indexed]
    return new if len(missing) - len(new) == len(tail) else None


def _ascending(surfaces: Iterator[bytes], tail: list[bytes]) -> Iterator[bytes]:
    """Yield surfaces for as long as they ascend; then put all others into *tail*."""
    last = b""
    for surface in surfaces:
        if surface <= last:
            tail.append(surface)
            tail.extend(surfaces)
            return
        yield surface
        last = surface
