"""Checks of a pack before anything of it is published: names that are taken, and contents.

The manifest of each thing must agree with that of the pack, and its files must be those that it names: sizes,
digests, the name of the build or version that these give.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from kgkit.errors import (
    DamagedPack,
    FormatMismatch,
    KgkitError,
    MissingExtra,
    NameConflict,
    StaleVectors,
    StoreError,
)
from kgkit.home import Home, KBHome
from kgkit.kb import open_kb
from kgkit.kb.lineage import ancestry
from kgkit.models.card import CARD
from kgkit.models.folder import AUTO, BUILT_IN, SHIPPED
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.manifest import ModelManifest, decode_manifest, read_header
from kgkit.models.verifying import verify_model
from kgkit.sharing.layout import PackItem, PackManifest
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
from kgkit.store.validate import damages
from kgkit.vectors import Vectors
from kgkit.vectors.finding import damages as vector_damages
from kgkit.vectors.layout import MANIFEST as VECTORS_MANIFEST
from kgkit.vectors.layout import VectorsManifest, version_name
from kgkit.versions import current_version, file_sha256, find_content

Action = Literal["add", "replace", "keep"]
"""What is done with an item: it is new, it takes the place of something, or the same is there."""

REPLACE: Final = "`--replace` puts it in the place of that, `--home FOLDER` unpacks it into another home"


Plan = Sequence[tuple[PackItem, Action]]
"""Actions for each item of a pack."""


def plan_actions(manifest: PackManifest, home: Home, *, replace: bool) -> Plan:
    """Return the items of a pack, each with what is to be done with it.

    Args:
        manifest: manifest of the pack.
        home: home that it is unpacked in.
        replace: whether what has its name and is something else is replaced.

    Raises:
        NameConflict: if something else has a name, and it is not to be replaced.
    """
    plan = [(item, _action(item, home)) for item in manifest.items]
    for item, action in plan:
        if action == "replace" and not replace:
            raise NameConflict(
                f"{item.title} is here already, and is another one than that of the pack: {REPLACE}"
            )
    return plan


def _action(item: PackItem, home: Home) -> Action:
    """Return the action for an item."""
    if item.kind == "kb":
        return _action_of_kb(item, home.kb(item.name))
    if item.kind == "vectors":
        kb, _, short = item.name.partition("/")
        version = current_version(home.kb(kb).vectors / short)
        if version is None or not (version / VECTORS_MANIFEST).is_file():
            return "add"
        return "keep" if version.name == item.version and not vector_damages(version) else "replace"
    if item.name in (AUTO, *BUILT_IN):
        raise NameConflict(f"{item.name} is the name of a model that needs no training")
    for folder in (home.models, SHIPPED):
        content = find_content(folder / item.name, MODEL_MANIFEST)
        if content is None:
            continue
        if file_sha256(content / MODEL_MANIFEST) == item.version and not verify_model(content):
            return "keep"
        if folder == SHIPPED and not item.requested:
            return "keep"  # what needs it says so when it is opened, if this one does not do
        if folder == SHIPPED:
            raise NameConflict(f"{item.title} comes with kgkit, and is another one than that of the pack")
        return "replace"
    return "add"


def _action_of_kb(item: PackItem, kb: KBHome) -> Action:
    current = kb.published()
    if current is None:
        return "add"
    if item.version == current or (item.version in kb.build_names() and not item.requested):
        return "keep" if not damages(kb.builds / item.version) else "replace"
    if not item.exact:
        with suppress(KgkitError), open_kb(kb.name, kb.path.parents[1]) as handle:
            if item.version in ancestry(handle):
                return "keep"
    return "replace"


def check_builds(plan: Plan, described: Sequence[object], home: Home) -> None:
    """Make sure that the vectors of a pack belong to the builds that they will lie beside.

    Args:
        plan: items of the pack.
        described: what each item says of itself; None of those that are kept.
        home: home that it is unpacked in.

    Raises:
        StaleVectors: if vectors are of another build.
        NotThere: if their knowledge base is neither in the pack nor here.
    """
    new_builds = {each.build: each for each in described if isinstance(each, Manifest)}
    builds = {item.name: new_builds[item.version] for item, _ in plan if item.version in new_builds}
    for (item, _), vectors in zip(plan, described, strict=True):
        if not isinstance(vectors, VectorsManifest):
            continue
        if (build := builds.get(item.kb)) is not None:
            served, ids = [build.build, build.base, *build.bases], build.id_count
        else:
            with open_kb(item.kb, home.path) as handle:
                served, ids = [*ancestry(handle)], handle.manifest.id_count
        if vectors.build not in served:
            raise StaleVectors(
                f"{item.title} of the pack was made for build {vectors.build} of {item.kb!r}, here is build "
                f"{served[0]}: unpack the knowledge base that it was made for, or make such vectors here "
                "with `kgkit embed`"
            )
        if vectors.rows > ids:
            raise StaleVectors(f"{item.title} has {vectors.rows:,} rows, {item.kb!r} has {ids:,} entities")


Described = Manifest | VectorsManifest | ModelManifest
"""Manifest of a build, of vectors or of a model."""


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
    """Return the problem of the names that something gives itself, as the end of a sentence."""
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
