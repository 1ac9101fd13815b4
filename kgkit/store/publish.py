"""Making a build appear at once and whole, and putting old ones away.

    kbs/NAME/builds/.new-PID-…/   being written; a leftover is swept when the next build begins
    kbs/NAME/builds/.old-…/       going away
    kbs/NAME/builds/BUILD/        complete
    kbs/NAME/current              -> builds/BUILD
    kbs/.old-…/                   a KB going away with its lock; what a killed removal left is swept likewise

The folder is renamed into place, then the link is replaced; both are atomic,
and each is on the disk before the next step begins. What goes away is renamed
first too, so that a build is there or not, never in part.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import msgspec

from kgkit.errors import DamagedKB, KBBusy, NotThere, UsageError, WriteFailed, did_you_mean
from kgkit.home import Home, KBHome
from kgkit.store.layout import MANIFEST, TRIGRAMS, Manifest
from kgkit.store.manifest import read_manifest
from kgkit.store.reader import StoreReader
from kgkit.store.validate import damages, require_undamaged
from kgkit.versions import (
    COPIED,
    acquire_lock,
    file_sha256,
    free_space,
    link_current,
    path_aside,
    read_current,
    set_aside,
    sync_folder,
)

if TYPE_CHECKING:
    from filelock import FileLock

T = TypeVar("T")


class PublishedBuild(NamedTuple):
    """Where a build is: the KB's name, the BUILD, its folder."""

    name: str
    build: str
    folder: Path


class Staging:
    """The right to write the next build of one KB, and the folder to write it in.

    Use as a context manager; on the way out the folder is removed unless it
    was published.

    Raises:
        KBBusy: on entering, if another process is building or removing the same KB.
    """

    def __init__(self, kb: KBHome) -> None:
        self.kb = kb
        self._pid = os.getpid()
        self._removed = False
        self.folder = kb.builds / f".new-{self._pid}-{secrets.token_hex(4)}"

    def __enter__(self) -> Self:
        kb = self.kb
        try:
            self._lock = _lock(kb)
            # What a killed build, or removal, left is swept now: its room may be needed.
            for removed in kb.path.parent.glob(".old-*"):
                shutil.rmtree(removed, ignore_errors=True)
            _sweep(kb, set(kb.build_names()))
        except OSError as error:
            raise WriteFailed(str(error), written=0, free=free_space(kb.path), where=kb.path) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            return  # a child that a builder forked, ending as a program does: all this is its parent's
        if not self._removed:
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.kb.build_names():
                with suppress(WriteFailed):
                    self.remove()  # the first build of this name has failed
        self._lock.release()

    def remove(self) -> None:
        """Remove the folder of the KB, and the lock with it; nothing can be published any more.

        Raises:
            WriteFailed: if the disk refuses; the KB is there still.
        """
        # Renamed first: whoever builds this KB from here on has a folder and a lock of its own.
        self._removed = True
        kb = self.kb
        removed = path_aside(kb.path.parent)
        try:
            kb.path.rename(removed)
        except OSError as error:
            raise WriteFailed(str(error), written=0, free=free_space(kb.path), where=kb.path) from error
        shutil.rmtree(removed, ignore_errors=True)

    def publish(self, manifest: Manifest) -> PublishedBuild:
        """Write the manifest, make the staged build the current one, sweep what is no longer wanted.

        The build that was current stays beside it until `prune`. If the same
        build is already there and undamaged, the staged copy is dropped.

        Raises:
            WriteFailed: if the disk refuses; the published build is the one it was.
        """
        kb, final = self.kb, self.kb.builds / manifest.build
        previous = kb.published()
        arrived = False
        try:
            if not final.exists() or damages(final):
                self._write(manifest)
                if final.exists():
                    final.rename(path_aside(kb.builds))
                self.folder.rename(final)
                arrived = True
                sync_folder(kb.builds)
            elif TRIGRAMS in manifest.files:
                self.add_index(manifest.build)
            if previous != manifest.build or arrived:
                link_current(kb.path, Path("builds") / manifest.build)
        except OSError as error:
            if arrived and kb.published() != manifest.build:
                shutil.rmtree(final, ignore_errors=True)
            raise WriteFailed(
                str(error), written=sum(manifest.files.values()), free=free_space(kb.path), where=kb.path
            ) from error
        keep = {manifest.build, previous}
        if previous == manifest.build:  # built again: what was kept stays kept
            keep.update(_were_published(kb)[-2:])
        _sweep(kb, keep)
        return PublishedBuild(kb.name, manifest.build, final)

    def add_index(self, build: str) -> None:
        """Give a build that lacks it the index of surfaces that lies in the staged folder.

        Its data stay as they are. The index is in its place before the manifest that lists it; that is
        replaced at once, so a process that is killed leaves the build without the index or with it.

        Args:
            build: name of the build.

        Raises:
            OSError: if the disk refuses.
        """
        kb, final, staged = self.kb, self.kb.builds / build, self.folder / TRIGRAMS
        manifest = read_manifest(final)
        if TRIGRAMS in manifest.files:
            return
        sizes = {**manifest.files, TRIGRAMS: staged.stat().st_size}
        sums = {**manifest.sha256, TRIGRAMS: file_sha256(staged)}
        if build == kb.published() and not kb.current.is_symlink():
            link_current(kb.path, Path("builds") / build)  # a copy is identified by its manifest
        staged.replace(final / TRIGRAMS)
        sync_folder(final)
        self._write(msgspec.structs.replace(manifest, files=sizes, sha256=sums))
        (self.folder / MANIFEST).replace(final / MANIFEST)
        sync_folder(final)

    def _write(self, manifest: Manifest) -> None:
        with (self.folder / MANIFEST).open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)


def find_build(home: Home, name: str) -> PublishedBuild:
    """Return the build that `NAME` or `NAME@BUILD` stands for.

    Raises:
        NotThere: if the KB has not been built, or has no such build.
        UsageError: if *name* is no name.
    """
    if not isinstance(name, str):
        raise UsageError(f"the knowledge base is {name!r}; expected its name; home= is where it lies")
    name, _, build = name.partition("@")
    kb = home.kb(name)
    current = kb.published()
    if current is None:
        kbs = [kb_home.name for kb_home in home.kbs()]
        listed = f"are: {', '.join(kbs)}" if kbs else "is none"
        message = f"no knowledge base {name!r} in {home.path} (there {listed})"
        if hint := did_you_mean(name, kbs):
            raise NotThere(f"{message}{hint}")
        raise NotThere(
            f"{message}: `kgkit build-kb BUILDER --name {name}` builds it; for WordNet `kgkit build-kb "
            f"wordnet` will do"
        )
    if build and build not in (names := kb.build_names()):
        raise NotThere(
            f"knowledge base {name!r} has no build {build!r}; there are: {', '.join(names)}. "
            f"`kgkit kb list` tells which is current; {name!r} alone names that one"
        )
    return PublishedBuild(name, build or current, kb.builds / (build or current))


def open_build(home: Home, name: str, *, verify: bool = False) -> tuple[PublishedBuild, StoreReader]:
    """Find and open the build that `NAME` or `NAME@BUILD` stands for.

    Args:
        home: folder of the knowledge bases.
        name: name of the KB, or the build.
        verify: whether to read its files first, and compare their checksums with those of the manifest.

    Raises:
        NotThere, FormatMismatch, DamagedKB: as `find_build` and `StoreReader.open` do.
    """

    def open_reader(folder: Path) -> StoreReader:
        """Open the build in *folder*, verified if that is wanted."""
        if verify:
            require_undamaged(folder)
        return StoreReader.open(folder)

    return read_build(home, name, open_reader)


def read_build(home: Home, name: str, read: Callable[[Path], T]) -> tuple[PublishedBuild, T]:
    """Return the build that `NAME` or `NAME@BUILD` stands for, and what *read* returns for its folder.

    Between the two steps rebuilds may land and sweep what was found; then
    there is another one to be found.

    Raises:
        NotThere: as `find_build` does, or as *read* does of the build that is still the one to be found.
    """
    build: PublishedBuild

    def find() -> Path:
        """Return the folder of the build that is current now."""
        nonlocal build
        build = find_build(home, name)
        return build.folder

    content = read_current(find, read)
    return build, content


def publish_build(kb: KBHome, build: str) -> None:
    """Make a build that is on the disk the published one; the one that was stays until `prune`.

    Raises:
        NotThere: if there is no such KB, or build.
        DamagedKB: if the build is not as it was written.
        KBBusy: if the KB is being built.
    """
    _must_exist(kb)
    with Staging(kb):
        if build not in kb.build_names():
            raise NotThere(
                f"knowledge base {kb.name!r} has no build {build!r}; there are: {', '.join(kb.build_names())}"
            )
        if problems := damages(kb.builds / build):
            raise DamagedKB(f"{kb.name}@{build} cannot be published: {problems[0]}")
        if kb.published() != build:
            link_current(kb.path, Path("builds") / build)


def prune(kb: KBHome) -> list[str]:
    """Remove every build but the published one, and what stopped ones have read; return the names of builds.

    Raises:
        NotThere: if there is no KB of that name.
        KBBusy: if the KB is being built.
    """
    _must_exist(kb)
    with Staging(kb):
        current = kb.published()
        removed = [build for build in kb.build_names() if build != current]
        _sweep(kb, {current})
        shutil.rmtree(kb.unfinished, ignore_errors=True)
        return removed


def remove(kb: KBHome) -> None:
    """Remove a KB with all its builds.

    Raises:
        NotThere: if there is none of that name.
        KBBusy: if it is being built.
        WriteFailed: if the disk refuses.
    """
    _must_exist(kb)
    with Staging(kb) as staging:
        for unfinished in (kb.unfinished, kb.unfinished_vectors):
            shutil.rmtree(unfinished, ignore_errors=True)
        staging.remove()


def _lock(kb: KBHome) -> "FileLock":
    """Make the folder of a KB and take its lock.

    Raises:
        KBBusy: if another process has it.
        OSError: if the disk refuses.
    """
    try:
        lock = acquire_lock(kb.path, patience=0)
    except TimeoutError:
        raise KBBusy(
            f"another process is building or removing {kb.name!r} in {kb.path}; wait for it to end"
        ) from None
    kb.builds.mkdir(exist_ok=True)
    return lock


def _must_exist(kb: KBHome) -> None:
    if not kb.path.is_dir() and not kb.unfinished.is_dir():
        raise NotThere(f"no knowledge base {kb.name!r} in {kb.path.parent}")


def _were_published(kb: KBHome) -> list[str]:
    """Return the builds that have been current, oldest first.

    A build that was killed between its last two steps is whole, but nobody
    published it; it is younger than the link.
    """
    linked = kb.current.lstat().st_mtime_ns
    return [build for build in kb.build_names() if (kb.builds / build).stat().st_mtime_ns <= linked]


def _sweep(kb: KBHome, keep: set[str] | set[str | None]) -> None:
    """Remove everything beside the builds to keep; whoever has one open keeps reading it."""
    for path in sorted(kb.builds.iterdir()):
        if path.name not in keep:
            set_aside(path)
    for path in sorted(kb.path.glob(".current-*")):
        path.unlink(missing_ok=True)
    shutil.rmtree(kb.path / COPIED, ignore_errors=True)
