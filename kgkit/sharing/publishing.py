"""Publishing what a pack has brought, each thing at once and as a whole."""

import secrets
import shutil
from pathlib import Path
from typing import Any

import msgspec

from kgkit.building.registering import register, register_vectors
from kgkit.home import Home
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.manifest import read_header
from kgkit.models.publishing import stage_model
from kgkit.models.registering import catalogue
from kgkit.sharing.layout import PackItem
from kgkit.store import Staging
from kgkit.store.manifest import read_manifest as read_build
from kgkit.vectors.layout import MANIFEST as VECTORS_MANIFEST
from kgkit.vectors.layout import version_name
from kgkit.vectors.matrix import read_manifest as read_vectors
from kgkit.vectors.work import making
from kgkit.versions import NEW, publish_version, sweep, sync_tree


def publish_item(home: Home, item: PackItem, target: PackItem, folder: Path) -> None:
    """Publish something that has been checked.

    Args:
        home: home that it goes to.
        item: entry of the pack.
        target: the same under the name that it gets.
        folder: folder of its files, in *home*; they are moved.

    Raises:
        KBBusy: if another process writes there.
        WriteFailed, OSError: if the disk refuses; what was published before is as it was.
    """
    if item.kind == "kb":
        _publish_kb(home, target.name, folder)
    elif item.kind == "vectors":
        _publish_vectors(home, target, folder)
    else:
        _publish_model(home, item, target, folder)


def _publish_kb(home: Home, name: str, folder: Path) -> None:
    manifest = read_build(folder)
    sync_tree(folder)
    with Staging(home.kb(name)) as staging:
        folder.rename(staging.folder)
        published = staging.publish(manifest)
    register(home, name, published.build)


def _publish_vectors(home: Home, target: PackItem, folder: Path) -> None:
    kb_name, _, name = target.name.partition("/")
    manifest = read_vectors(folder)
    if (manifest.kb, manifest.name) != (kb_name, name):
        manifest = msgspec.structs.replace(manifest, kb=kb_name, name=name)
        manifest = msgspec.structs.replace(manifest, version=version_name(manifest))
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (folder / VECTORS_MANIFEST).write_bytes(content)
    kb_home = home.kb(kb_name)
    with making(kb_home, name):
        parent = kb_home.vectors / name
        parent.mkdir(parents=True, exist_ok=True)
        staged = parent / f"{NEW}{secrets.token_hex(6)}"
        try:
            folder.rename(staged)
            publish_version(parent, staged, manifest.version)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        sweep(parent)
    register_vectors(home, kb_name)


def _publish_model(home: Home, item: PackItem, target: PackItem, folder: Path) -> None:
    if target.name != item.name:
        path = folder / MODEL_MANIFEST
        fields: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        fields["name"] = target.name
        path.write_bytes(msgspec.json.format(msgspec.json.encode(fields), indent=2))
    with stage_model(home.models / target.name) as (staged, _):
        for path in sorted(folder.iterdir()):
            path.rename(staged / path.name)
        header = read_header(staged)
    catalogue(home, header)
