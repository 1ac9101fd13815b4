"""Unpacking: the files of a pack are written aside, checked, and published when all of them are there.

    HOME/.unpack-…/lock     held while a pack is read
    HOME/.unpack-…/N/       files of the item N of the pack

A pack that is refused leaves nothing behind. What a killed process leaves the next one that unpacks removes,
and `kgkit clean`.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgkit.building.registering import register, register_vectors
from kgkit.errors import KgkitError, WriteFailed
from kgkit.home import Home
from kgkit.models.folder import find_model_folder
from kgkit.models.manifest import read_header
from kgkit.models.needs import check_needs
from kgkit.models.publishing import stage_model
from kgkit.models.registering import catalogue
from kgkit.models.storage import UNPACKING, sweep_unpacking
from kgkit.sharing.checks import Action, Plan, check_builds, check_content, plan_actions
from kgkit.sharing.layout import CHUNK, LARGEST_PACK, PackItem
from kgkit.sharing.reading import PackReader, open_pack
from kgkit.store import Staging
from kgkit.store.manifest import read_manifest as read_build
from kgkit.types import Progress
from kgkit.vectors.matrix import read_manifest as read_vectors
from kgkit.vectors.work import making
from kgkit.versions import NEW, free_space, lock_folder, publish_version, read_current, sweep, sync_tree


class Unpacked(NamedTuple):
    """What has become of a pack.

    Attributes:
        items: entries of what it holds, in the order in which it was published, each with what was done:
            `add`, `replace`, or `keep` for what was there already.
        encoders: names of the encoders that these need, and that are not in it.
        missing: what its models need, and is neither in it nor here.
        card: card of the pack, in Markdown.
    """

    items: tuple[tuple[PackItem, Action], ...]
    encoders: tuple[str, ...]
    missing: tuple[str, ...]
    card: str


def unpack(
    source: str | os.PathLike[str],
    *,
    home: str | os.PathLike[str] | None = None,
    replace: bool = False,
    max_bytes: int = LARGEST_PACK,
    progress: Progress | None = None,
) -> Unpacked:
    """Publish the knowledge bases, vectors and models of a pack.

    Before anything is published, every file is compared with its digest, and the tables of a knowledge base
    are checked as `kgkit kb verify` does; a pack that is refused leaves nothing behind. What is there
    already, the same to its digest, is left as it is.

    Args:
        source: path of the pack, its address (http, https), or `hf:ORG/NAME[/FILE][@REV]`.
        home: folder of the data; `KGKIT_HOME` or the platform's place unless given.
        replace: whether what has its name and is something else is replaced; of a knowledge base the older
            build stays until `kgkit kb prune`.
        max_bytes: largest number of bytes of all files in it.
        progress: callback that is told after each file how many bytes have been read.

    Raises:
        NotThere: if there is no such pack, or the knowledge base of vectors is neither in it nor here.
        NetworkForbidden: if it would have to be fetched, and `KGKIT_OFFLINE` is set.
        NameConflict: if something else has a name that it brings, unless *replace* is given.
        DamagedPack, FormatMismatch, DamagedModel: if it is not what it declares, or cannot be read here.
        StaleVectors: if its vectors are of another build than the one here.
        UsageError: if it is larger than allowed.
        KBBusy: if a knowledge base or vectors of its are being made.
        WriteFailed: if the disk refuses.

    Examples:
        >>> [action for _, action in kgkit.unpack("mine.tar.gz").items]
        ['add', 'add']
    """
    where = Home.find(home)
    with open_pack(os.fspath(source), max_bytes) as reader:
        manifest = reader.manifest
        plan = plan_actions(manifest, where, replace=replace)
        with _staging(where, plan) as staged:
            _extract(reader, plan, staged, progress)
            _publish(where, plan, staged)
    models = [item.name for item in manifest.items if item.kind == "model"]
    needs = [read_current(partial(find_model_folder, name, where), read_header).needs for name in models]
    missing = dict.fromkeys(
        need.name for each in needs for need in check_needs(each, where) if not need.available
    )
    return Unpacked(tuple(plan), manifest.encoders, tuple(missing), reader.card)


def _extract(reader: PackReader, plan: Plan, staged: Path, progress: Progress | None) -> None:
    """Read a pack to its end, and write what is new into *staged*.

    Raises:
        DamagedPack: if it does not hold what its manifest says.
        OSError: if the disk refuses.
    """
    done = 0
    for number, (item, action) in enumerate(plan):
        for name, file in item.files.items():
            content = reader.file(f"{item.kind}/{item.name}/{name}", file)
            path = Path(os.devnull) if action == "keep" else staged / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as target:
                shutil.copyfileobj(content, target, CHUNK)
            done += file.size
            if progress is not None:
                progress("unpacking", done, reader.manifest.size)
    reader.check_end()


def _publish(home: Home, plan: Plan, staged: Path) -> None:
    """Check what has been written, all of it, and then publish it.

    Raises:
        KBBusy: if another process writes there.
        WriteFailed, OSError: if the disk refuses; what was published before is as it was.
    """
    described = [
        None if action == "keep" else check_content(item, staged / str(number))
        for number, (item, action) in enumerate(plan)
    ]
    check_builds(plan, described, home)
    for number, (item, action) in enumerate(plan):
        if action != "keep":
            publish = {"kb": _publish_kb, "vectors": _publish_vectors, "model": _publish_model}[item.kind]
            publish(home, item.name, staged / str(number))


def _publish_kb(home: Home, name: str, folder: Path) -> None:
    manifest = read_build(folder)
    sync_tree(folder)
    with Staging(home.kb(name)) as staging:
        folder.rename(staging.folder)
        published = staging.publish(manifest)
    register(home, name, published.build)


def _publish_vectors(home: Home, full_name: str, folder: Path) -> None:
    kb_name, _, name = full_name.partition("/")
    kb_home = home.kb(kb_name)
    with making(kb_home, name):
        parent = kb_home.vectors / name
        parent.mkdir(parents=True, exist_ok=True)
        staged = parent / f"{NEW}{secrets.token_hex(6)}"
        try:
            folder.rename(staged)
            publish_version(parent, staged, read_vectors(staged).version)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        sweep(parent)
    register_vectors(home, kb_name)


def _publish_model(home: Home, name: str, folder: Path) -> None:
    with stage_model(home.models / name) as (staged, _):
        for each in sorted(folder.iterdir()):
            each.rename(staged / each.name)
        header = read_header(staged)
    catalogue(home, header)


@contextmanager
def _staging(home: Home, plan: Plan) -> Iterator[Path]:
    """Give a folder to write to, which is gone at the end.

    Raises:
        WriteFailed: if there is not room for what is new, or the disk refuses.
    """
    needed = sum(item.size for item, action in plan if action != "keep")
    sweep_unpacking(home)  # first: its room may be needed
    free = free_space(home.path)
    if needed > free:
        reason = f"the pack has {needed / 1e6:,.1f} MB to be written"
        raise WriteFailed(reason, written=0, free=free, where=home.path)
    folders = [folder for folder in (home.path, *home.path.parents) if not folder.exists()]
    staged = home.path / f"{UNPACKING}{secrets.token_hex(6)}"
    try:
        with lock_folder(staged):  # a process that sweeps may hold it for a moment
            yield staged
    except OSError as error:
        if isinstance(error, KgkitError):
            raise
        raise WriteFailed(str(error), written=0, free=free_space(home.path), where=home.path) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        for folder in folders:  # those that were made for it, and have nothing in them
            with suppress(OSError):
                folder.rmdir()
