"""What becomes of each item of a pack in a home: whether its name is free there, or stands for the same."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

import msgspec

from kgkit.errors import KgkitError, NameConflict, NotThere, StaleVectors, UsageError
from kgkit.home import Home, KBHome, is_name
from kgkit.kb import open_kb
from kgkit.kb.lineage import ancestry
from kgkit.models.folder import AUTO, BUILT_IN, SHIPPED
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.verifying import verify_model
from kgkit.sharing.layout import PackItem, PackManifest
from kgkit.store.layout import Manifest
from kgkit.store.validate import damages
from kgkit.vectors.finding import damages as vector_damages
from kgkit.vectors.layout import MANIFEST as VECTORS_MANIFEST
from kgkit.vectors.layout import VectorsManifest
from kgkit.versions import current_version, file_sha256, find_content

Action = Literal["add", "replace", "keep"]
"""What is done with an item: it is new, it takes the place of something, or the same is there."""

RENAME: Final = "`--as NAME` gives it another name"
OPTIONS: Final = f"{RENAME}, `--replace` puts it in the place of that"


def plan_actions(manifest: PackManifest, home: Home, *, name: str | None, replace: bool) -> list[Action]:
    """Return what is to be done with each item of a pack.

    Args:
        manifest: manifest of the pack.
        home: home that it is unpacked in.
        name: name of the item that was requested, in the place of its own; None: its own.
        replace: whether what has its name and is something else is replaced.

    Raises:
        NameConflict: if something else has a name, and it is not to be replaced.
        UsageError: if *name* cannot be, or is that of several items.
        NotThere: if vectors come without their knowledge base, and it is not here.
    """
    if name is not None:
        _check_rename(manifest, name)
    actions: list[Action] = []
    for item in manifest.items:
        target = renamed_item(manifest, item, name)
        action = _action(target, home, keeps_version=target.name == item.name)
        if action == "replace" and not replace:
            raise NameConflict(
                f"{target.title} is here already, and is another one than that of the pack: {OPTIONS}"
            )
        actions.append(action)
    titles = {item.title for item in manifest.items}
    for item, action in zip(manifest.items, actions, strict=True):
        if item.kind == "vectors" and f"kb:{item.kb}" not in titles and action != "keep":
            _check_kb(item, home)
    return actions


def renamed_item(manifest: PackManifest, item: PackItem, name: str | None) -> PackItem:
    """Return an item under the name that it gets; with a knowledge base its vectors get another one too."""
    if name is None:
        return item
    [requested] = (each for each in manifest.items if each.requested)
    if item is requested:
        full = f"{item.kb}/{name}" if item.kind == "vectors" else name
        return msgspec.structs.replace(item, name=full)
    if requested.kind == "kb" and item.kb == requested.name:
        return msgspec.structs.replace(item, name=f"{name}/{item.name.partition('/')[2]}")
    return item


def _check_rename(manifest: PackManifest, name: str) -> None:
    requested = [item.title for item in manifest.items if item.requested]
    if len(requested) > 1:
        raise UsageError(
            f"the pack was made for {', '.join(requested)}: one name cannot be that of all; "
            "unpack it without --as, or in another home"
        )
    if not is_name(name):
        raise UsageError(
            f"{name!r} cannot be a name: use letters, digits, '.', '_' and '-', 64 at most, "
            "starting with a letter or digit"
        )
    [title] = requested
    models = [item.title for item in manifest.items if item.kind == "model" and item.title != title]
    if models and not title.startswith("model:"):
        raise UsageError(
            f"{', '.join(models)} need {title} by its name: unpack it without --as, or in another home"
        )


def _action(item: PackItem, home: Home, *, keeps_version: bool) -> Action:
    """Return what is to be done with an item, under the name that it gets."""
    if item.kind == "kb":
        return _action_of_kb(item, home.kb(item.name))
    if item.kind == "vectors":
        kb, _, short = item.name.partition("/")
        version = current_version(home.kb(kb).vectors / short)
        if version is None or not (version / VECTORS_MANIFEST).is_file():
            return "add"
        same = keeps_version and version.name == item.version and not vector_damages(version)
        return "keep" if same else "replace"
    if item.name in (AUTO, *BUILT_IN):
        raise NameConflict(f"{item.name} is the name of a model that needs no training: {RENAME}")
    for folder in (home.models, SHIPPED):
        content = find_content(folder / item.name, MODEL_MANIFEST)
        if content is None:
            continue
        if (
            keeps_version
            and file_sha256(content / MODEL_MANIFEST) == item.version
            and not verify_model(content)
        ):
            return "keep"
        if folder == SHIPPED:
            raise NameConflict(
                f"{item.title} comes with kgkit, and is another one than that of the pack: {RENAME}"
            )
        return "replace"
    return "add"


def _action_of_kb(item: PackItem, kb: KBHome) -> Action:
    current = kb.published()
    if current is None:
        return "add"
    if item.version == current or (item.version in kb.build_names() and not item.requested):
        return "keep" if not damages(kb.builds / item.version) else "replace"
    if not item.exact and item.version in _builds_served(kb):
        return "keep"
    return "replace"


def _builds_served(kb: KBHome) -> list[str]:
    """Return the published build and those that it only adds to."""
    with suppress(KgkitError), open_kb(kb.name, kb.path.parents[1]) as handle:
        return ancestry(handle)
    return []


def check_builds(manifest: PackManifest, described: Sequence[object], home: Home) -> None:
    """Make sure that the vectors of a pack belong to the builds that they will lie beside.

    Args:
        manifest: manifest of the pack.
        described: what each item says of itself; None of those that are kept.
        home: home that it is unpacked in.

    Raises:
        StaleVectors: if vectors are of another build.
    """
    new_builds = {each.build: each for each in described if isinstance(each, Manifest)}
    builds = {item.name: new_builds[item.version] for item in manifest.items if item.version in new_builds}
    for item, vectors in zip(manifest.items, described, strict=True):
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


def _check_kb(item: PackItem, home: Home) -> None:
    """Make sure that vectors have a knowledge base.

    Raises:
        NotThere: if there is none of the name.
    """
    if home.kb(item.kb).published() is None:
        raise NotThere(
            f"{item.title} is unpacked beside the knowledge base {item.kb}, which is neither in "
            f"the pack nor in {home.path}: unpack that first"
        )
