"""Where to look for surfaces in a text when there are too many for the table `starts`: tries in one file.

A row of `starts` holds all that may follow a token; of a KB with millions of
aliases the row of `the` would take long to read, and all of them much memory
to make. So a build of more than `layout.MANY` aliases has, in
`surfaces.marisa`, tries of its folded surfaces instead. They are mapped into
memory and say of a text which surfaces begin it.

The surfaces come in order and are divided, so that a build holds one part in
memory at a time. A text is sought in the one trie where it would stand itself:
surfaces of earlier tries that begin a later one are in that one too.

Left out are surfaces that are one word of ASCII letters and digits, which a
text is not searched for but asked about; and those over the length of a key or
with a NUL, which marisa would cut: these are for `starts`.
"""

import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kgkit.errors import DamagedKB, MissingExtra, StoreError, WriteFailed
from kgkit.store import codec
from kgkit.store.codec import Shard
from kgkit.store.layout import MAX_KEY, SURFACES

Matcher = Callable[[str], list[str]]
"""Returns the surfaces that begin a text, short ones first."""

_SURFACES: Final = 500_000  # of one trie, and
_CHARACTERS: Final = 16 << 20
_ALIGNED: Final = 8


class SurfaceWriter:
    """Writes the tries of a build.

    Args:
        folder: the build's; `surfaces.marisa` is written there.
        size: number of surfaces in a trie.

    Attributes:
        aside: the surfaces that no trie takes though they may be of several tokens; they are for `starts`.

    Raises:
        MissingExtra: if marisa-trie is not installed.

    Examples:
        surfaces = SurfaceWriter(store.folder)
        for batch in sorted_folded_surfaces:
            surfaces.add(batch)
        store.append("starts", start_rows(starts(surfaces.aside)))
        store.append("meta", [..., surfaces.finish()])
    """

    def __init__(self, folder: Path, size: int = _SURFACES) -> None:
        self.aside: list[str] = []
        self._trie = _marisa().Trie
        self._path, self._size = folder / SURFACES, size
        self._shards: list[Shard] = []
        self._surfaces: list[str] = []
        self._carried = self._characters = self._written = 0
        self._last = ""

    def add(self, surfaces: Iterable[str]) -> None:
        """Take in folded *surfaces*; they ascend, within the call and from call to call.

        Raises:
            WriteFailed: if the disk has no room for them.
            StoreError: if one is not greater than the one before it.
        """
        shard, characters, last = self._surfaces, self._characters, self._last
        for surface in surfaces:
            if surface.isalnum() and surface.isascii():
                continue
            if cannot_be_sought(surface):
                self.aside.append(surface)
                continue
            if surface <= last:
                raise StoreError(f"surfaces do not ascend at {surface!r}, which follows {last!r}")
            if len(shard) >= self._size + self._carried or characters >= _CHARACTERS:
                self._close(surface)
                shard, characters = self._surfaces, 0
            shard.append(surface)
            characters += len(surface)
            last = surface
        self._characters, self._last = characters, last

    def finish(self) -> tuple[bytes, bytes]:
        """Bring the file to the disk; return the row of the table `meta` that tells of it.

        Raises:
            WriteFailed: if the disk has no room.
        """
        self._close("")
        try:
            with self._path.open("rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise self._failure(error) from error
        return b"surfaces", codec.encode(self._shards)

    def _close(self, following: str) -> None:
        """Write a trie of what has come; the next one begins with *following* and with what begins that."""
        trie = self._trie(self._surfaces)
        content = trie.tobytes()
        content += bytes(-len(content) % _ALIGNED)
        first = self._surfaces[self._carried] if self._shards else ""
        self._shards.append(Shard(first, self._written, len(content), len(self._surfaces) - self._carried))
        try:
            with self._path.open("ab" if self._written else "wb") as file:
                file.write(content)
        except OSError as error:
            raise self._failure(error) from error
        self._written += len(content)
        self._surfaces = trie.prefixes(following)
        self._carried = len(self._surfaces)

    def _failure(self, error: OSError) -> WriteFailed:
        folder = self._path.parent
        return WriteFailed(
            str(error), written=self._written, free=shutil.disk_usage(folder).free, where=folder
        )


def cannot_be_sought(surface: str) -> bool:
    """Say whether a folded surface is too odd for a trie."""
    return "\0" in surface or (
        len(surface) > MAX_KEY // 4 and codec.bounded_key(surface).startswith(codec.DIGEST)
    )


class Surfaces:
    """The tries of a build, mapped into memory; marisa-trie is loaded when they are first asked.

    Use it from any number of threads, and in forked children. What it has
    mapped stays when the build is removed.

    Args:
        path: path of the file.
        shards: the tries that lie in it.

    Raises:
        DamagedKB: if the file has no room for them.
        OSError: if the file cannot be mapped.
    """

    def __init__(self, path: Path, shards: Sequence[Shard]) -> None:
        with path.open("rb") as file:
            self._content = mmap(file.fileno(), 0, access=ACCESS_READ)
        if any(shard.offset + shard.size > len(self._content) for shard in shards):
            raise DamagedKB(f"{path} is shorter than its table 'meta' says")
        self.path, self.shards = path, shards
        self._firsts = [shard.first for shard in shards]
        self._loaded: list[Any] | None = None

    @property
    def _tries(self) -> list[Any]:
        # Two threads may both come here; what either loads will do.
        if self._loaded is None:
            self._loaded = [*self._load()]
        return self._loaded

    def _load(self) -> Iterator[Any]:
        class Mapped(_marisa().Trie):  # type: ignore[misc]
            """A trie that keeps alive what it is mapped to."""

            part: memoryview

        content = memoryview(self._content)
        for shard in self.shards:
            trie = Mapped()
            trie.part = content[shard.offset : shard.offset + shard.size]
            try:
                trie.map(trie.part)
            except RuntimeError as error:
                raise DamagedKB(f"{self.path} cannot be read: {error}; build it again") from error
            yield trie

    def prefixes(self, text: str) -> list[str]:
        """Return the surfaces that begin *text*, short ones first.

        Raises:
            MissingExtra: if marisa-trie is not installed.
            DamagedKB: if the tries cannot be read.
            UnicodeEncodeError: if a lone surrogate is in *text*.
        """
        surfaces: list[str] = self._tries[self._index(text)].prefixes(text)
        return surfaces

    def __contains__(self, surface: str) -> bool:
        return surface in self._tries[self._index(surface)]

    def __len__(self) -> int:
        return sum(shard.count for shard in self.shards)

    def matchers(self, token: str) -> tuple[Matcher | None, Matcher | None]:
        """Return what does as `prefixes` for texts that go on behind *token* with a space, and at once.

        None stands for nothing: no surface goes on so.

        Raises:
            MissingExtra, DamagedKB: as `prefixes` does.
        """
        try:
            index = self._index(token)
            # The tries after this one begin with longer texts: with *token*, or with none that has it.
            if index + 1 < len(self._firsts) and self._firsts[index + 1].startswith(token):
                return self.prefixes, self.prefixes
            trie, spaced = self._tries[index], token + " "
            matcher: Matcher = trie.prefixes
            longer = next((surface for surface in trie.iterkeys(token) if surface != token), None)
            if longer is None:
                return None, None
            if longer.startswith(spaced) or next(trie.iterkeys(spaced), None) is not None:
                return matcher, matcher
            return None, matcher
        except UnicodeEncodeError:
            return None, None

    def _index(self, text: str) -> int:
        return bisect_right(self._firsts, text) - 1


def _marisa() -> ModuleType:
    try:
        import marisa_trie
    except ImportError:
        raise MissingExtra("marisa-trie", "scale") from None
    module: ModuleType = marisa_trie
    return module
