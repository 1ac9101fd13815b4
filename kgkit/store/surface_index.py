"""The index of similar surfaces of a build: made with it, from its table `aliases`.

A build that begins as another one has that one's index linked beside its data: what was added follows there,
and an index of surfaces that are gone is made anew. A build without the index is as good as any; the command
`kgkit kb index` puts one beside its data, which stay as they are.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kgkit.errors import WriteFailed
from kgkit.store import codec
from kgkit.store.environments import acquire, drop_pages, release
from kgkit.store.layout import DATA, TRIGRAMS
from kgkit.store.trigrams import TrigramIndex, TrigramWriter
from kgkit.versions import free_space

__all__ = ["missing_surfaces", "write_index"]

_NEW = TRIGRAMS + ".new"
_BATCH: Final = 32_768
_KEYS: Final = 1 << 18  # after which the pages that were read are dropped


def write_index(data: Path, folder: Path) -> Path:
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
            additions = _keys(transaction, aliases, data)
            if path.exists():
                base = TrigramIndex(path)
                new = missing_surfaces(_keys(transaction, aliases, data), base)
                if new == []:
                    return path
                base, additions = (None, additions) if new is None else (base, iter(new))
            with TrigramWriter(folder / _NEW, base) as index:
                index.add(additions)
                index.finish()
    finally:
        release(environment)
    try:
        (folder / _NEW).replace(path)
    except OSError as error:
        raise WriteFailed(str(error), written=0, free=free_space(folder), where=folder) from error
    return path


def _keys(transaction: Any, aliases: Any, folder: Path) -> Iterator[bytes]:
    """Yield the surfaces, as they are in the table; not those that are too long for a key."""
    with transaction.cursor(aliases) as cursor:
        for number, key in enumerate(cursor.iternext(values=False), 1):
            if not key.startswith(codec.DIGEST):
                yield key
            if number % _KEYS == 0:
                drop_pages(folder / DATA)


def missing_surfaces(keys: Iterator[bytes], index: TrigramIndex) -> list[bytes] | None:
    """Return the keys that an index does not have; None if it has surfaces that are not among them.

    Args:
        keys: surfaces, ascending.
        index: index whose first surfaces ascend; what was added to these follows.
    """
    number, last = 0, b""  # of the surface that comes next, and the one before it
    missing: list[bytes] = []
    while batch := list(islice(keys, _BATCH)):
        if index.has_at(number, batch):  # so it is almost everywhere
            number, last = number + len(batch), batch[-1]
            index.drop_pages()
            continue
        surfaces = list(islice(index.surfaces_from(number), len(batch) + 1))
        position = 0
        for key in batch:
            surface = surfaces[position] if position < len(surfaces) else None
            if surface is None or surface <= last:  # what was added to the index begins
                missing.append(key)
            elif surface < key:
                return None
            elif surface == key:
                position, last = position + 1, surface
            else:
                missing.append(key)
        number += position
    tail = list(index.surfaces_from(number))
    if tail and tail[0] > last:
        return None
    added = set(tail)
    new = [key for key in missing if key not in added]
    return new if len(missing) - len(new) == len(tail) else None
