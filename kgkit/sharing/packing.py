"""Packing: what is named, and what that needs, becomes one file."""

import hashlib
import io
import logging
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, get_args

import msgspec

from kgkit.errors import NotThere, StaleModel, StaleVectors, UsageError, did_you_mean
from kgkit.files import check_compression, compressing, compression_of, replacing
from kgkit.home import Home
from kgkit.kb.lineage import serving_builds
from kgkit.models.card import CARD as MODEL_CARD
from kgkit.models.card import file_name, model_card
from kgkit.models.folder import BUILT_IN, find_model_folder, has_model, model_names
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST as MODEL_MANIFEST
from kgkit.models.manifest import ModelManifest, check_sizes, damaged, file_in, read_header
from kgkit.plugins import kgkit_version
from kgkit.sharing.layout import (
    CARD,
    FORMAT,
    MANIFEST,
    MANIFESTS,
    ByteStream,
    CheckedStream,
    ItemKind,
    PackedFile,
    PackItem,
    PackManifest,
    path_problem,
)
from kgkit.store import find_build
from kgkit.store.layout import Manifest
from kgkit.store.manifest import read_manifest as read_build
from kgkit.types import Progress
from kgkit.vectors import vectors_names
from kgkit.vectors.finding import find_vectors
from kgkit.vectors.layout import VectorsManifest
from kgkit.vectors.matrix import read_manifest as read_vectors
from kgkit.versions import file_sha256, read_current

_COMPRESSED: Final = (".gz", ".tgz")

Header = TypeVar("Header")
log = logging.getLogger(__name__)


class Packed(NamedTuple):
    """A pack that has been written.

    Attributes:
        path: file of the pack.
        items: what is in it.
        encoders: names of the encoders that these need, and that are not in it.
        size: bytes of the file.
    """

    path: Path
    items: tuple[PackItem, ...]
    encoders: tuple[str, ...]
    size: int


class _Content(NamedTuple):
    """Something that is packed: its entry, the folder of its files, and its own manifest."""

    item: PackItem
    folder: Path
    manifest: Manifest | VectorsManifest | ModelManifest


def pack(
    names: str | Sequence[str],
    output: str | os.PathLike[str],
    *,
    home: str | os.PathLike[str] | None = None,
    licence: str = "",
    progress: Progress | None = None,
) -> Packed:
    """Write knowledge bases, vectors and models into one file, with what they need.

    An encoder that is not part of a model is named in it and not packed.

    Args:
        names: what is packed: `kb:NAME`, `kb:NAME@BUILD`, `vectors:KB/NAME`, `model:NAME`; a name alone where
            one thing only has it.
        output: file to write; it is compressed if its name ends in `.gz` or `.tgz`.
        home: folder of the data; `KGKIT_HOME` or the platform's place unless given.
        licence: licence of the models, for the card; those of knowledge bases are on it anyway.
        progress: callback that is told after each file how many bytes have been written.

    Raises:
        UsageError: if a name is ambiguous, two builds of one knowledge base would be packed, or the name of
            the file asks for another compression.
        NotThere: if something is not there.
        StaleModel, StaleVectors: if a build that something needs is gone.
        StoreError: if something on disk is damaged.
        OSError: if the disk refuses; no file is left behind.

    Examples:
        >>> kgkit.pack("model:mine", "mine.tar.gz").items[0].title
        'kb:names'
    """
    target = Path(output)
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file")
    check_compression(target)
    if compression_of(target) not in ("", ".gz"):
        raise UsageError(
            f"{target}: a pack is a tar archive, as it is or compressed by gzip: name it .tar.gz"
        )
    plan = _Plan(Home.find(home))
    for name in [names] if isinstance(names, str) else names:
        plan.add(*parse_name(name, plan.home), requested=True)
    contents = plan.contents()
    if not contents:
        raise UsageError("nothing is named: name what to pack, as kb:NAME, vectors:KB/NAME or model:NAME")
    encoders, items = tuple(plan.encoders), tuple(content.item for content in contents)
    card = "\n".join(_card(contents, encoders, licence, target.name)).encode()
    manifest = PackManifest(
        format=FORMAT, kgkit_version=kgkit_version(), items=items, encoders=encoders,
        card=PackedFile(len(card), hashlib.sha256(card).hexdigest()),
    )  # fmt: skip
    described = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"

    suffix = ".gz" if target.name.lower().endswith(_COMPRESSED) else ""
    with ExitStack() as stack:
        file = stack.enter_context(stack.enter_context(replacing(target)).open("wb"))
        stream = stack.enter_context(compressing(suffix, file))
        archive = stack.enter_context(tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT))
        _write_archive(archive, {MANIFEST: described, CARD: card}, contents, progress)
    return Packed(target, items, encoders, target.stat().st_size)


def _write_archive(
    archive: tarfile.TarFile,
    texts: Mapping[str, bytes],
    contents: Sequence[_Content],
    progress: Progress | None,
) -> None:
    """Write texts and the files of contents.

    Raises:
        DamagedPack: if a file is not what the manifests say, as one that is damaged or was replaced.
    """

    def add(name: str, size: int, stream: ByteStream) -> None:
        member = tarfile.TarInfo(name)
        member.size = size
        archive.addfile(member, stream)  # type: ignore[arg-type]

    for name, text in texts.items():
        add(name, len(text), io.BytesIO(text))
    written, total = 0, sum(content.item.size for content in contents)
    for item, folder, _ in contents:
        for path, file in item.files.items():
            with (folder / path).open("rb") as stream:
                checked = CheckedStream(stream, file, f"{path} of {item.title}")
                add(f"{item.kind}/{item.name}/{path}", file.size, checked)
            written += file.size
            if progress is not None:
                progress("packing", written, total)


# -- what is packed ---------------------------------------------------------


def parse_name(text: str, home: Home) -> tuple[ItemKind, str]:
    """Return the kind and the name of what *text* names, as `kb:NAME` or by its name alone.

    Raises:
        UsageError: if several things have the name; says which.
        NotThere: if nothing has it.
    """
    prefix, _, name = text.partition(":")
    for kind in get_args(ItemKind):
        if prefix == kind:
            return kind, name
    if "/" in text:
        return "vectors", text
    kbs, models = [kb.name for kb in home.kbs()], model_names(home)
    found: list[tuple[ItemKind, str]] = [("kb", text)] * (text.partition("@")[0] in kbs)
    found += [("model", text)] * (text in models)
    found += [("vectors", f"{kb.name}/{text}") for kb in home.kbs() if text in vectors_names(kb)]
    if len(found) > 1:
        choices = " or ".join(f"{kind}:{name}" for kind, name in found)
        raise UsageError(f"{text!r} names several things: say which, {choices}")
    if found:
        return found[0]
    names = sorted({*kbs, *models})
    raise NotThere(
        f"no knowledge base and no model {text!r} in {home.path}; there are: {', '.join(names) or 'none'}"
        f"{did_you_mean(text, names)}"
    )


class _Plan:
    """The contents of a pack, by kind and name; knowledge bases come last, once all their users are there."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.builds: dict[str, str] = {}  # those that are requested, by knowledge base
        self.users: dict[str, dict[str, bool]] = {}  # by knowledge base: builds needed, and whether exactly
        self.vectors: dict[str, _Content] = {}
        self.models: dict[str, _Content] = {}
        self.encoders: dict[str, None] = {}

    def add(self, kind: ItemKind, name: str, *, requested: bool) -> None:
        """Add something, and what it needs.

        Raises:
            UsageError: if it cannot be packed.
            NotThere: if it is not there.
        """
        if kind == "kb":
            build = find_build(self.home, name)
            if self.builds.setdefault(build.name, build.build) != build.build:
                raise UsageError(f"a pack holds one build of a knowledge base, and two of {build.name} "
                                 "are named: pack them apart")  # fmt: skip
            return
        previous = (self.vectors if kind == "vectors" else self.models).get(name)
        if previous is None or (requested and not previous.item.requested):
            (self._add_vectors if kind == "vectors" else self._add_model)(name, requested)

    def _add_vectors(self, name: str, requested: bool) -> None:
        kb, _, short = name.partition("/")
        if not short:
            raise UsageError(f"vectors are named as KB/NAME, and {name!r} has no '/'")
        find_build(self.home, kb)  # raises if there is no such knowledge base
        folder, manifest = _located(partial(find_vectors, self.home.kb(kb), short), read_vectors)
        files = _files("vectors", folder, manifest.files, manifest.sha256)
        item = PackItem(kind="vectors", name=name, version=manifest.version, files=files, requested=requested)
        self.vectors[name] = _Content(item, folder, manifest)
        if isinstance(encoder := manifest.config.get("encoder"), str) and encoder:
            self._add_encoder(encoder)
        self.users.setdefault(kb, {}).setdefault(manifest.build, False)

    def _add_model(self, name: str, requested: bool) -> None:
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
        own_card = folder / MODEL_CARD
        card = {MODEL_CARD: own_card.stat().st_size} if own_card.is_file() else {}
        files = _files("model", folder, card | header.sizes, header.sha256)
        item = PackItem(
            kind="model", name=name, version=files[MODEL_MANIFEST].sha256, files=files, requested=requested
        )
        needs = header.needs
        for needed in (needs.linker, *needs.models):
            if needed and needed not in BUILT_IN:
                self.add("model", needed, requested=False)
        for vectors in needs.vectors:
            self._add_needed_vectors(vectors, header)
        for kb, build in needs.kbs.items():
            builds = self.users.setdefault(kb, {})
            builds[build] = builds.get(build, False) or needs.exact
        encoder_folder = find_kind(header, folder).encoder
        if header.encoder and not (encoder_folder and (folder / encoder_folder).is_dir()):
            self._add_encoder(header.encoder)
        self.models.pop(name, None)  # it comes after what it needs
        self.models[name] = _Content(item, folder, header)

    def _add_needed_vectors(self, vectors: str, header: ModelManifest) -> None:
        kb, _, name = vectors.partition("/")
        if name in vectors_names(self.home.kb(kb)):
            self.add("vectors", vectors, requested=False)
        elif header.encoder:
            log.warning("the vectors %s are not there: %s encodes them as they are needed", vectors,
                        header.name)  # fmt: skip
        else:
            raise NotThere(f"the model {header.name} needs vectors {vectors}, which are not there")

    def _add_encoder(self, name: str) -> None:
        """Note the name of an encoder; one of a trained model in the home comes with it."""
        if not has_model(self.home, name):
            self.encoders[name] = None
        elif name not in self.models:
            self.add("model", name, requested=False)

    def contents(self) -> list[_Content]:
        """Return all that was added, with the builds that serve it, in the order of publication."""
        names = dict.fromkeys([*self.builds, *self.users])
        return [*map(self._build, names), *self.vectors.values(), *self.models.values()]

    def _build(self, name: str) -> _Content:
        """Return the build of a knowledge base that is requested, or that serves all its users.

        It is unpacked without the builds that it was made from, and serves what was made for these.
        """
        kb, users = self.home.kb(name), self.users.get(name, {})
        requested, present = self.builds.get(name), kb.build_names()
        serving = (build for user in users for build in serving_builds(kb, user))
        for build in [requested] if requested else dict.fromkeys([kb.published(), *users, *serving]):
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
                return _Content(item, folder, manifest)
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


# -- the card ---------------------------------------------------------------


def _card(contents: Sequence[_Content], encoders: Sequence[str], licence: str, file: str) -> Iterator[str]:
    """Yield the lines of the card of a pack, in Markdown: what is in it, and how it is used."""
    titles = [f"`{content.item.title}`" for content in contents if content.item.requested]
    yield f"# {', '.join(titles)}\n\nA pack of kgkit. To use it:\n\n```sh\nkgkit unpack {file}\n```\n"
    if encoders:
        names = ", ".join(f"`{file_name(name)}`" for name in encoders)
        yield f"It needs the encoder {names}, a package or a name on the hub, which is not in it.\n"
    for item, folder, manifest in contents:
        if isinstance(manifest, Manifest):
            yield f"## The knowledge base {item.name}\n"
            yield f"- {manifest.entities:,} entities, {manifest.triples:,} facts, {manifest.aliases:,} names"
            for source in (manifest.source, *manifest.added):
                version = f"{source.name} {source.version}".strip()
                yield f"- source: {version or 'not stated'}; licence: {source.licence or 'not stated'}"
            yield f"- build {manifest.build}, by kgkit {manifest.kgkit_version}\n"
            yield f"```sh\nkgkit link text.txt --kb {item.name}\n```\n"
        elif isinstance(manifest, VectorsManifest):
            yield f"## The vectors {item.name}\n"
            yield f"- {manifest.rows:,} rows of {manifest.width}, by the method {manifest.method}"
            yield f"- of build {manifest.build}, version {manifest.version}\n"
        else:
            own = folder / MODEL_CARD
            if own.is_file() and not licence:
                text = own.read_text(encoding="utf-8", errors="replace")
            else:
                text = model_card(find_kind(manifest, folder), manifest, licence=licence)
            yield from (f"#{line}" if line.startswith("#") else line for line in text.splitlines())
            yield ""
