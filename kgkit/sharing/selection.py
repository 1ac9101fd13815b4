"""What is packed: the things that are named, and what these need."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from kgkit.errors import NotThere, StaleModel, StaleVectors, UsageError, did_you_mean
from kgkit.home import Home
from kgkit.kb.lineage import serving_builds
from kgkit.models.card import CARD
from kgkit.models.folder import BUILT_IN, find_model_folder, has_model, model_names
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.manifest import ModelManifest, check_sizes, damaged, file_in, read_header
from kgkit.sharing.layout import MANIFESTS, ItemKind, PackedFile, PackItem, path_problem
from kgkit.store import find_build
from kgkit.store.layout import Manifest
from kgkit.store.manifest import read_manifest as read_build
from kgkit.vectors import vectors_names
from kgkit.vectors.finding import find_vectors
from kgkit.vectors.layout import VectorsManifest
from kgkit.vectors.matrix import read_manifest as read_vectors
from kgkit.versions import file_sha256, read_current

KINDS: Final[tuple[ItemKind, ...]] = ("kb", "vectors", "model")

Header = TypeVar("Header")
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Content:
    """Something that is packed, where it lies, and what it says of itself.

    Attributes:
        item: its entry in the manifest of the pack.
        folder: folder of its files.
        manifest: its own manifest.
    """

    item: PackItem
    folder: Path
    manifest: Manifest | VectorsManifest | ModelManifest


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All that is packed.

    Attributes:
        contents: in the order in which they can be published.
        encoders: names of the encoders that these need, and that are not among them.
    """

    contents: tuple[Content, ...]
    encoders: tuple[str, ...]


def parse_name(text: str, home: Home) -> tuple[ItemKind, str]:
    """Return the kind and the name of what *text* names, as `kb:NAME` or by its name alone.

    Raises:
        UsageError: if several things have the name; says which.
        NotThere: if nothing has it.
    """
    kind, _, name = text.partition(":")
    if kind in KINDS:
        return kind, name
    if "/" in text:
        return "vectors", text
    kbs = [kb.name for kb in home.kbs()]
    titles = [f"kb:{text}"] * (text.partition("@")[0] in kbs)
    titles += [f"model:{text}"] * (text in model_names(home))
    titles += [f"vectors:{kb.name}/{text}" for kb in home.kbs() if text in vectors_names(kb)]
    if len(titles) > 1:
        raise UsageError(f"{text!r} names several things: say which, {' or '.join(titles)}")
    if titles:
        return parse_name(titles[0], home)
    names = sorted({*kbs, *model_names(home)})
    raise NotThere(
        f"no knowledge base and no model {text!r} in {home.path}; there are: {', '.join(names) or 'none'}"
        f"{did_you_mean(text, names)}"
    )


def select(names: Sequence[str], home: Home, *, alone: bool = False) -> Selection:
    """Return what is packed for *names*.

    Args:
        names: knowledge bases, vectors and models, as `parse_name` reads them.
        home: where they lie.
        alone: whether only they are packed, and not what they need.

    Raises:
        UsageError: if a name is ambiguous, or a pack would hold two builds of a knowledge base.
        NotThere: if something is not there.
        StaleModel, StaleVectors: if the build that something needs is gone.
        DamagedKB, DamagedModel, DamagedVectors: if something cannot be read.
    """
    if not names:
        raise UsageError("nothing is named: name what to pack, as kb:NAME, vectors:KB/NAME or model:NAME")
    plan = _Plan(home, alone=alone)
    for text in names:
        plan.add(*parse_name(text, home), requested=True)
    return plan.selection()


class _Plan:
    """What is to be packed, by kind and name; knowledge bases come last, once all their users are there."""

    def __init__(self, home: Home, *, alone: bool) -> None:
        self.home, self.alone = home, alone
        self.builds: dict[str, str] = {}  # those that are requested, by knowledge base
        self.users: dict[str, dict[str, bool]] = {}  # by knowledge base: builds needed, and whether exactly
        self.vectors: dict[str, Content] = {}
        self.models: dict[str, Content] = {}
        self.encoders: dict[str, None] = {}

    def add(self, kind: ItemKind, name: str, *, requested: bool) -> None:
        """Add something, and what it needs."""
        match kind:
            case "kb":
                build = find_build(self.home, name)
                if self.builds.setdefault(build.name, build.build) != build.build:
                    raise UsageError(f"a pack holds one build of a knowledge base, and two of {build.name} "
                                     "are named: pack them apart")  # fmt: skip
            case "vectors":
                self._add_vectors(name, requested)
            case "model":
                self._add_model(name, requested)

    def _add_vectors(self, name: str, requested: bool) -> None:
        kb, _, short = name.partition("/")
        if not short:
            raise UsageError(f"vectors are named as KB/NAME, and {name!r} has no '/'")
        previous = self.vectors.get(name)
        if previous is not None and (previous.item.requested or not requested):
            return
        find_build(self.home, kb)  # raises if there is no such knowledge base
        folder, manifest = _located(partial(find_vectors, self.home.kb(kb), short), read_vectors)
        files = _files("vectors", folder, manifest.files, manifest.sha256)
        item = PackItem(kind="vectors", name=name, version=manifest.version, files=files, requested=requested)
        self.vectors[name] = Content(item=item, folder=folder, manifest=manifest)
        if isinstance(encoder := manifest.config.get("encoder"), str) and encoder:
            self._add_encoder(encoder)
        self.users.setdefault(kb, {}).setdefault(manifest.build, False)

    def _add_model(self, name: str, requested: bool) -> None:
        previous = self.models.get(name)
        if previous is not None and (previous.item.requested or not requested):
            return
        if name in BUILT_IN:
            raise UsageError(f"the model {name} needs no files: it is there wherever kgkit is")

        def read(folder: Path) -> ModelManifest:
            """Return the manifest of a model whose files are as long as it says."""
            header = read_header(folder)
            check_sizes(folder, header)
            return header

        folder, header = _located(partial(find_model_folder, name, self.home), read)
        if not header.sha256:
            raise damaged(folder, "it has no checksums, without which it cannot be packed")
        for path in header.sizes:
            file_in(folder, path)
        card = {CARD: (folder / CARD).stat().st_size} if (folder / CARD).is_file() else {}
        files = _files("model", folder, card | header.sizes, header.sha256)
        version = files[MODEL_MANIFEST].sha256
        item = PackItem(kind="model", name=name, version=version, files=files, requested=requested)
        # After what it needs.
        if not self.alone:
            for needed in (header.needs.linker, *header.needs.models):
                if needed and needed not in BUILT_IN:
                    self._add_model(needed, requested=False)
        self._add_needs(header)
        if header.encoder and not _has_encoder(header, folder):
            self._add_encoder(header.encoder)
        self.models.pop(name, None)
        self.models[name] = Content(item=item, folder=folder, manifest=header)

    def _add_needs(self, header: ModelManifest) -> None:
        """Add the builds and the vectors that a model needs."""
        for kb, build in header.needs.kbs.items():
            builds = self.users.setdefault(kb, {})
            builds[build] = builds.get(build, False) or header.needs.exact
        for vectors in () if self.alone else header.needs.vectors:
            kb, _, name = vectors.partition("/")
            if name in vectors_names(self.home.kb(kb)):
                self._add_vectors(vectors, requested=False)
            elif header.encoder:
                log.warning("the vectors %s are not there: %s encodes them as they are needed", vectors,
                            header.name)  # fmt: skip
            else:
                raise NotThere(f"the model {header.name} needs vectors {vectors}, which are not there")

    def _add_encoder(self, name: str) -> None:
        """Note the name of an encoder; one of a trained model in the home comes with it."""
        if not has_model(self.home, name):
            self.encoders[name] = None
        elif not self.alone and name not in self.models:
            self._add_model(name, requested=False)

    def selection(self) -> Selection:
        """Return all that was added, with the builds that serve it."""
        names = dict.fromkeys([*self.builds, *(() if self.alone else self.users)])
        builds = [self._build(name) for name in names]
        return Selection(
            contents=(*builds, *self.vectors.values(), *self.models.values()),
            encoders=tuple(self.encoders),
        )

    def _build(self, name: str) -> Content:
        """Return the build of a knowledge base that is requested, or that serves all its users.

        It is unpacked without the builds that it was made from, and serves what was made for these.
        """
        kb, users = self.home.kb(name), {} if self.alone else self.users.get(name, {})
        requested = self.builds.get(name)
        present = kb.build_names()
        serving = (build for user in users for build in serving_builds(kb, user))
        candidates = [requested] if requested else [kb.published(), *users, *serving]
        for build in dict.fromkeys(candidates):
            if build is None or build not in present:
                continue
            folder = kb.builds / build
            manifest = read_build(folder)
            served = {manifest.base, *manifest.bases}
            if all(user == build or (user in served and not exact) for user, exact in users.items()):
                files = _files("kb", folder, manifest.files, manifest.sha256)
                item = PackItem(
                    kind="kb", name=name, version=build, files=files, requested=bool(requested),
                    exact=any(users.values()),
                )  # fmt: skip
                return Content(item=item, folder=folder, manifest=manifest)
        needed = ", ".join(f"{name}@{build}" for build in users)
        if len(users) > 1 or requested:
            reason = f"{name}@{requested} does not serve it" if requested else "no build serves them all"
            raise UsageError(
                f"a pack holds one build of a knowledge base, and what is packed needs {needed}: {reason}; "
                "pack them apart"
            )
        error = StaleModel if self.models else StaleVectors
        raise error(f"what is packed needs {needed}, which is gone: train it again, or embed --update it")


def _located(find: Callable[[], Path], read: Callable[[Path], Header]) -> tuple[Path, Header]:
    """Return the folder of something, and its manifest."""
    return read_current(find, lambda folder: (folder, read(folder)))


def _has_encoder(header: ModelManifest, folder: Path) -> bool:
    """Say whether a model has its encoder in its folder."""
    path = find_kind(header, folder).encoder
    return bool(path) and (folder / path).is_dir()


def _files(
    kind: ItemKind, folder: Path, sizes: Mapping[str, int], digests: Mapping[str, str]
) -> dict[str, PackedFile]:
    """Return the files of something by their paths, its manifest first.

    Raises:
        UsageError: if one of them is of a kind that a pack does not hold.
    """
    manifest = folder / MANIFESTS[kind]
    files = {manifest.name: PackedFile(manifest.stat().st_size, file_sha256(manifest))}
    for path, size in sorted(sizes.items()):
        if problem := path_problem(path):
            raise UsageError(f"{folder / path} cannot be packed: it {problem}")
        files[path] = PackedFile(size, digests[path] if path in digests else file_sha256(folder / path))
    return files
