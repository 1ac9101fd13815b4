"""Where trained models go, and where they are trained.

    models/NAME/VERSION/         a model; see `kgkit.versions`
    models/NAME/current          -> VERSION
    models/NAME/lock             held while a model is written
    runs/KIND-NAME-JOB/          what a training has done; JOB is a digest of its settings
    runs/KIND-NAME-JOB/lock      held by the training

Models that older versions of kgkit have written lie in models/NAME itself, until the name is trained again.
"""

import hashlib
import logging
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import msgspec

from kgkit.errors import DamagedModel, KBBusy, WriteFailed
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.kinds import Kind
from kgkit.models.manifest import FORMAT, MANIFEST, ManifestType, ModelManifest, read_header
from kgkit.plugins import kgkit_version
from kgkit.versions import (
    LOCK,
    NEW,
    file_sha256,
    find_content,
    free_space,
    lock_folder,
    publish_version,
    read_current,
    remove,
    set_aside,
    write_failures,
)
from kgkit.versions import sweep as sweep_versions

log = logging.getLogger(__name__)

_JOB: Final = "[0-9a-f]" * 12
_PATIENCE: Final = 1.0  # seconds: what is being swept is gone by then


@contextmanager
def stage_model(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Give a folder to write a model to, which is what *folder* stands for at the end.

    Another process that publishes a model of that name waits until this one is there. After an error, or a
    kill at any moment, the older model is as it was; once the new one is current, the older one is swept.

    Args:
        folder: `models/NAME` of a home.

    Yields:
        The folder to write to, and where the model lies once it is published.

    Raises:
        WriteFailed: if the disk refuses.
    """
    version = token_hex(6)
    staged = folder / f"{NEW}{version}"
    with write_failures(folder), lock_folder(folder):
        try:
            sweep_versions(folder)  # what a killed process left: its room may be needed
            replaced = older(folder)
            staged.mkdir()
            yield staged, folder / version
            publish_version(folder, staged, version)
            sweep_versions(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            if find_content(folder, MANIFEST) is None and not _has_content(folder):
                shutil.rmtree(folder, ignore_errors=True)  # the first model of this name has failed
    if replaced:
        log.info("%s has taken the place of %s", folder.name, replaced)


def read_trained(home: Home, name: str, folder: Path, kind: Kind[ManifestType]) -> ManifestType:
    """Return the manifest of a model that has just been trained.

    Args:
        home: where it was trained.
        name: of the model.
        folder: of it. If another training of the name has replaced it since, that one's model is read.
        kind: of the model.
    """
    return read_current(lambda: folder if folder.is_dir() else find_trained(home, name), kind.read)


def remove_model(home: Home, name: str) -> None:
    """Remove the model *name* from *home*.

    Raises:
        NotThere: if there is none of that name.
    """
    find_trained(home, name)
    folder = home.models / name
    with lock_folder(folder):
        remove(folder)


@contextmanager
def work_folder(home: Home, kind: str, name: str, settings: object, *, alone: bool = True) -> Iterator[Path]:
    """Give the folder that a training works in, the same one for the same settings.

    A training that is stopped leaves it to the next one. A training that ends removes it, and those that
    stopped ones of the same kind and name have left; not those of trainings that run.

    Args:
        home: where the model will be.
        kind: what is trained, as `linker`.
        name: of the model.
        settings: everything that decides what is learnt; its `repr` is digested.
        alone: False for a training that writes nothing there: the same one may run twice at once.

    Raises:
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses.
    """
    job = hashlib.blake2b(repr(settings).encode(), digest_size=6).hexdigest()
    work = home.path / "runs" / f"{kind}-{name}-{job}"
    if not alone:
        yield work
    else:
        with _holding(work, _PATIENCE):
            try:
                yield work
            except BaseException:
                if not _has_content(work):
                    set_aside(work)
                raise
            set_aside(work)
    for path in sorted(work.parent.glob(f"{kind}-{name}-{_JOB}")):
        with suppress(KBBusy, WriteFailed), _holding(path, 0):
            set_aside(path)


@contextmanager
def _holding(work: Path, patience: float) -> Iterator[None]:
    """Hold the lock of a training's folder, which is made.

    Raises:
        KBBusy: if another process has it for longer than *patience*, in seconds.
    """
    with ExitStack() as held:
        try:
            held.enter_context(lock_folder(work, patience))
        except TimeoutError:
            raise KBBusy(
                f"another process is training the same model with the same settings, in {work}; wait for it "
                "to end"
            ) from None
        except OSError as error:
            raise WriteFailed(str(error), written=0, free=free_space(work), where=work) from error
        yield


def older(folder: Path) -> str:
    """Return what to call the model that *folder* has: `the older NAME (TYPE, for KB)`; "" if it has none."""
    try:
        if (content := find_content(folder, MANIFEST)) is None:
            return ""
        header = read_header(content)
    except (OSError, DamagedModel):
        return ""
    kbs = ", ".join(header.needs.kbs)
    return f"the older {header.name} ({header.type or header.kind}{', for ' if kbs else ''}{kbs})"


def make_manifest(kind: Kind[ManifestType], name: str, **fields: Any) -> ManifestType:
    """Return the manifest of a model of a kind.

    Raises:
        DamagedModel: if the manifest lacks one of the fields, needs one that is not among them, or could not
            be read again, as one of another type could not.
    """
    try:
        manifest = kind.manifest(format=FORMAT, kind=kind.name, name=name, **fields)
        msgspec.json.decode(msgspec.json.encode(manifest), type=kind.manifest)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise DamagedModel(
            f"the kind {kind.name} gives its manifest fields that {kind.manifest.__name__} does not take, or "
            f"lacks one: {error}"
        ) from error
    return manifest


def write_manifest(staged: Path, manifest: ModelManifest) -> None:
    """Write what a model says of itself into its folder, in which all its other files lie.

    Args:
        staged: folder of the model.
        manifest: of the model; what is known of every folder is filled in: sizes and checksums of its files,
            the version of kgkit, date and time.
    """
    files = sorted(path for path in staged.rglob("*") if path.is_file())
    names = [path.relative_to(staged).as_posix() for path in files]
    manifest = msgspec.structs.replace(
        manifest,
        sizes={name: path.stat().st_size for name, path in zip(names, files, strict=True)},
        sha256={name: file_sha256(path) for name, path in zip(names, files, strict=True)},
        kgkit_version=kgkit_version(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))


def _has_content(folder: Path) -> bool:
    """Say whether there is anything in a folder beside its lock."""
    return any(path.name != LOCK for path in folder.iterdir())
