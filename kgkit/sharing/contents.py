"""Checks of what a pack has brought, before any of it is published.

What something says of itself must agree with what the pack says of it, and its files must be those that its
manifest names: sizes, digests, the name of the build or version that these give.
"""

from pathlib import Path

import msgspec

from kgkit.errors import DamagedPack, FormatMismatch, KgkitError, MissingExtra, StoreError
from kgkit.models.card import CARD
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.manifest import ModelManifest, decode_manifest, read_header
from kgkit.models.verifying import verify_model
from kgkit.sharing.layout import PackItem
from kgkit.store.child import table_problems
from kgkit.store.layout import (
    DATA,
    MANIFEST,
    SURFACES,
    TRIGRAMS,
    FormatOnly,
    Manifest,
    build_name,
    readable_formats,
)
from kgkit.vectors import Vectors
from kgkit.vectors.layout import MANIFEST as VECTORS_MANIFEST
from kgkit.vectors.layout import VectorsManifest, version_name

Described = Manifest | VectorsManifest | ModelManifest
"""What something says of itself."""


def check_content(item: PackItem, folder: Path) -> Described:
    """Return the manifest of something whose files are those that it names, and can be used.

    The tables of a knowledge base are read as `kgkit kb verify` reads them: the name of a build is made from
    their digests, which are compared with the content.

    Args:
        item: entry of the pack; the files have its sizes and digests.
        folder: folder of the files.

    Raises:
        DamagedPack: if something in it cannot be used.
        FormatMismatch: if a build has a format that this kgkit does not read.
        DamagedModel: if no installed package knows the kind of a model.
        StoreError: if the check was ended, as where the system is short of memory.
        MissingExtra: if a package that reads it is not installed.
    """
    try:
        manifest = _decode(item, folder)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPack(f"the manifest of {item.title} cannot be read: {error}") from error
    sizes = manifest.sizes if isinstance(manifest, ModelManifest) else manifest.files
    declared = {path: file for number, (path, file) in enumerate(item.files.items()) if number}
    if item.kind == "model" and CARD not in sizes:
        declared.pop(CARD, None)
    if {path: file.size for path, file in declared.items()} != sizes:
        raise DamagedPack(f"the files of {item.title} are not those that its manifest names")
    if any(manifest.sha256.get(path) != file.sha256 for path, file in declared.items()):
        raise DamagedPack(f"the files of {item.title} have other digests than its manifest names")
    if (problem := _problem(item, manifest)) is not None:
        raise DamagedPack(f"{item.title} {problem}")
    try:
        problems: list[str] = []
        if item.kind == "kb":
            problems = table_problems(folder)
        elif item.kind == "vectors":
            Vectors.open(folder)
        else:
            problems = verify_model(folder)
    except (DamagedPack, MissingExtra):
        raise
    except KgkitError as error:
        if type(error) is StoreError:  # the check itself was ended: nothing is known of the pack
            raise
        raise DamagedPack(f"{item.title} cannot be used: {error}") from error
    if problems:
        raise DamagedPack(f"{item.title} is damaged: {problems[0]}")
    return manifest


def _decode(item: PackItem, folder: Path) -> Described:
    if item.kind == "kb":
        content = (folder / MANIFEST).read_bytes()
        head = msgspec.json.decode(content, type=FormatOnly)
        if readable_formats().get(head.format) != head.fingerprint:
            raise FormatMismatch(
                f"{item.title} has format {head.format}, which this kgkit does not read; it reads "
                f"{', '.join(map(str, readable_formats()))}: ask for a pack of another version of kgkit"
            )
        return msgspec.json.decode(content, type=Manifest)
    if item.kind == "vectors":
        return msgspec.json.decode((folder / VECTORS_MANIFEST).read_bytes(), type=VectorsManifest)
    header = read_header(folder)
    manifest: ModelManifest = decode_manifest(folder, find_kind(header, folder).manifest)
    return manifest


def _problem(item: PackItem, manifest: Described) -> str | None:
    """Return what is wrong with the names that something gives itself, as the end of a sentence."""
    if isinstance(manifest, Manifest):
        if DATA not in manifest.files or not set(manifest.files) <= {DATA, SURFACES, TRIGRAMS}:
            return f"has other files than {DATA}, {SURFACES} and {TRIGRAMS}"
        if not manifest.build == build_name(manifest) == item.version:
            return f"says that it is build {manifest.build[:40]}, and is not"
    elif isinstance(manifest, VectorsManifest):
        if f"{manifest.kb}/{manifest.name}" != item.name:
            return f"says that it is {manifest.kb[:40]}/{manifest.name[:40]}"
        if not manifest.version == version_name(manifest) == item.version:
            return f"says that it is version {manifest.version[:40]}, and is not"
    elif item.files[MODEL_MANIFEST].sha256 != item.version:
        return "has another version than the digest of its manifest"
    return None
