"""Trained models on disk: a folder that says what it was made for.

    models/NAME/
        model.json      what it is: a `ModelManifest` of a linker, or a `TaggerManifest`
        …               what its kind has beside

A linker holds ids of one BUILD, and was trained over one version of vectors: with others it is refused. A
tagger finds mentions for any knowledge base, and has its encoder with it.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from kgkit.errors import DamagedModel, NotThere, StaleModel, UnknownName, UsageError
from kgkit.home import Home, is_name
from kgkit.vectors import vectors_names

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

MANIFEST: Final = "model.json"
FORMAT: Final = 1
TAGGER: Final = "tagger"
"""The kind of a model that is no linker."""

BUILT_IN: Final = ("prior", "gloss")
"""The models that need no training; no other may have their names."""

VECTORS: Final = "text"
"""The vectors that are taken unless others are named, or there are no others."""

SHIPPED: Final = Path(__file__).parent / "shipped"
"""The models that come with kgkit; one in a home goes before them."""

_NAME: Final = re.compile(r"[\w.-]+")


class ModelManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained linker says of itself.

    Attributes:
        kind: the rung it was trained as.
        task: what it was trained on: `wsd` or `el`.
        kb, build: what its ids belong to; "" for a model that has none, and serves any.
        vectors, version: the vectors of the entities that it takes, and which version of them; empty if none.
        encoder, fingerprint: what reads the texts; empty if nothing does.
        reader: the fields of `SpanConfig`.
        config: everything else that decides its numbers.
        temperature: that scores are divided by, so that they are probabilities.
        coherence: settings of the second stage, if it was trained with one.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on.
        sizes: of its files in bytes.
    """

    format: int
    kind: str
    name: str
    task: str
    kb: str
    build: str
    vectors: str
    version: str
    encoder: str
    fingerprint: str
    reader: dict[str, Any]
    config: dict[str, Any]
    temperature: float
    coherence: dict[str, Any] | None = None
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    sizes: dict[str, int] = {}
    kgkit_version: str = ""
    created: str = ""


class TaggerManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained tagger says of itself.

    Attributes:
        kind: `tagger`.
        types: of names, as its data have them.
        encoder, fingerprint: what was fine-tuned; it lies in the folder as it is now.
        reader: the fields of `TaggingConfig`.
        config: everything else that decides its numbers.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on, and of those that chose the epoch.
        sizes: of its files in bytes.
    """

    format: int
    kind: str
    name: str
    types: tuple[str, ...]
    encoder: str
    fingerprint: str
    reader: dict[str, Any]
    config: dict[str, Any]
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    sizes: dict[str, int] = {}
    kgkit_version: str = ""
    created: str = ""


class _Kind(msgspec.Struct, frozen=True):
    """What every manifest says first."""

    format: int
    kind: str
    name: str


Manifest = TypeVar("Manifest", ModelManifest, TaggerManifest)


def model_folder(home: Home, name: str) -> Path:
    """Return the folder of the model *name* in *home*, which need not exist.

    Raises:
        UsageError: if *name* cannot be a folder's everywhere.
    """
    if not is_name(name) or name in BUILT_IN:
        raise UsageError(
            f"{name!r} cannot name a model: letters, digits, '.', '_' and '-', 64 at most, and not "
            f"{' or '.join(BUILT_IN)}, which need no training"
        )
    return home.models / name


def find_model_folder(model: str, home: Home) -> Path:
    """Return the folder of a model, which is a path or a name in *home*.

    Raises:
        UnknownName: if there is none of that name.
        NotThere: if it is a path without a model.
    """
    path = Path(model)
    if (path / MANIFEST).is_file():
        return path
    if not _NAME.fullmatch(model):
        raise NotThere(f"no model in {path}: a model's folder has a {MANIFEST}")
    for folder in (home.models, SHIPPED):
        if is_name(model) and (folder / model / MANIFEST).is_file():
            return folder / model
    raise UnknownName("model", model, (*BUILT_IN, *model_names(home)))


def model_names(home: Home) -> list[str]:
    """Return the names of the models in *home*, and of those that come with kgkit."""
    return sorted({path.parent.name for one in (home.models, SHIPPED) for path in one.glob(f"*/{MANIFEST}")})


def find_tagger_folder(model: str, home: Home) -> Path:
    """Return the folder of a tagger, which is a path or a name in *home*.

    Raises:
        UnknownName: if there is no model of that name; says which taggers there are.
        NotThere: if it is a path without a model.
    """
    try:
        return find_model_folder(model, home)
    except UnknownName:
        raise UnknownName("tagger", model, tagger_names(home)) from None


def tagger_names(home: Home) -> list[str]:
    """Return the names of the taggers in *home*."""
    found = []
    for name in model_names(home):
        with suppress(DamagedModel):
            if _kind(home.models / name).kind == TAGGER:
                found.append(name)
    return found


def read_model(folder: Path) -> ModelManifest:
    """Return what the linker in *folder* says of itself.

    Raises:
        UsageError: if it is a tagger.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = _kind(folder)
    if found.kind == TAGGER:
        raise UsageError(
            f"the model {found.name} is a tagger, and links nothing: it finds mentions, with "
            f"`--mentions {found.name}` or `kgkit tag --model {found.name}`"
        )
    return _read(folder, ModelManifest)


def read_tagger(folder: Path) -> TaggerManifest:
    """Return what the tagger in *folder* says of itself.

    Raises:
        UsageError: if it is a linker.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = _kind(folder)
    if found.kind != TAGGER:
        raise UsageError(
            f"the model {found.name} is a linker (rung {found.kind}), and finds no mentions: link with "
            f"`--model {found.name}`, train a tagger with `kgkit train tagger`"
        )
    return _read(folder, TaggerManifest)


def _kind(folder: Path) -> _Kind:
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Kind)
    except (OSError, msgspec.DecodeError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    if found.format != FORMAT:
        raise damaged(folder, f"it has format {found.format}, this kgkit reads format {FORMAT}")
    return found


def _read(folder: Path, kind: type[Manifest]) -> Manifest:
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    for name, size in found.sizes.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise damaged(folder, f"{name} is not the file of {size:,} bytes that it had")
    return found


def model_vectors(manifest: ModelManifest, kb: "KnowledgeBase", name: str | None) -> "Vectors":
    """Open the vectors that a model takes, or those of *name* in their place.

    Raises:
        UsageError: if it was trained for another KB.
        StaleModel: if it was trained for another build, or with vectors of another encoder.
        NotThere, StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
    """
    check_build(manifest, kb)
    if name is None:
        name = manifest.vectors if manifest.build else text_vectors(kb, None)
    vectors = kb.vectors(name)
    if vectors.manifest.config.get("fingerprint") != manifest.fingerprint:
        raise StaleModel(
            f"the model {manifest.name} was trained with vectors {manifest.vectors} of the encoder "
            f"{manifest.encoder}, those here were made by another: {_again(manifest)}"
        )
    return vectors


def text_vectors(kb: "KnowledgeBase", name: str | None) -> str | None:
    """Return the name of the vectors that a model takes: *name*, else the only ones, else `VECTORS`."""
    if name is not None or len(vectors_names(kb.home)) == 1:
        return name
    return VECTORS


def check_build(manifest: ModelManifest, kb: "KnowledgeBase") -> None:
    """Make sure that a model was trained for *kb*, or for a build that it only adds to.

    Raises:
        UsageError: if it was trained for another KB.
        StaleModel: if it was trained for another build.
    """
    from kgkit.kb.near import ancestry

    if not manifest.build:  # it knows nothing of single entities
        return
    if manifest.kb != kb.name:
        raise UsageError(
            f"the model {manifest.name} was trained for the knowledge base {manifest.kb!r}, not for "
            f"{kb.name!r}: link with --kb {manifest.kb}"
        )
    if manifest.build not in ancestry(kb):
        raise StaleModel(
            f"the model {manifest.name} was trained for {manifest.kb}@{manifest.build}, this is "
            f"{kb.name}@{kb.build}: {_again(manifest)}"
        )


def _again(manifest: ModelManifest) -> str:
    return f"train it again with `kgkit train linker --name {manifest.name}`"


def damaged(folder: Path, what: str) -> DamagedModel:
    """Return the error that says what is wrong with a model."""
    return DamagedModel(f"the model in {folder} cannot be used: {what}; train it again")
