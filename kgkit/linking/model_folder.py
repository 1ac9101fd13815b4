"""Trained linkers on disk: a folder that says what it was made for.

    models/NAME/
        model.json      what it is: a `ModelManifest`
        …               what its kind has beside

A model holds ids of one BUILD, and was trained over one version of vectors: with others it is refused.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kgkit.errors import DamagedModel, NotThere, StaleModel, UnknownName, UsageError
from kgkit.home import Home, is_name

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

MANIFEST: Final = "model.json"
FORMAT: Final = 1

BUILT_IN: Final = ("prior", "gloss")
"""The models that need no training; no other may have their names."""

_NAME: Final = re.compile(r"[\w.-]+")


class ModelManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained linker says of itself.

    Attributes:
        kind: the rung it was trained as.
        task: what it was trained on: `wsd` or `el`.
        kb, build: what its ids belong to.
        vectors, version: the vectors of the entities that it takes, and which version of them.
        encoder, fingerprint: what reads the texts.
        reader: the fields of `SpanConfig`.
        config: everything else that decides its numbers.
        temperature: that scores are divided by, so that they are probabilities.
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
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    sizes: dict[str, int] = {}
    kgkit_version: str = ""
    created: str = ""


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
    if is_name(model) and (home.models / model / MANIFEST).is_file():
        return home.models / model
    raise UnknownName("model", model, (*BUILT_IN, *model_names(home)))


def model_names(home: Home) -> list[str]:
    """Return the names of the models in *home*."""
    return sorted(path.parent.name for path in home.models.glob(f"*/{MANIFEST}"))


def read_model(folder: Path) -> ModelManifest:
    """Return what the model in *folder* says of itself.

    Raises:
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=ModelManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    if found.format != FORMAT:
        raise damaged(folder, f"it has format {found.format}, this kgkit reads format {FORMAT}")
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
    from kgkit.kb.near import ancestry

    again = f"train it again with `kgkit train linker --name {manifest.name}`"
    if manifest.kb != kb.name:
        raise UsageError(
            f"the model {manifest.name} was trained for the knowledge base {manifest.kb!r}, not for "
            f"{kb.name!r}: link with --kb {manifest.kb}"
        )
    if manifest.build not in ancestry(kb):
        raise StaleModel(
            f"the model {manifest.name} was trained for {manifest.kb}@{manifest.build}, this is "
            f"{kb.name}@{kb.build}: {again}"
        )
    vectors = kb.vectors(name or manifest.vectors)
    if vectors.manifest.config.get("fingerprint") != manifest.fingerprint:
        raise StaleModel(
            f"the model {manifest.name} was trained with vectors {manifest.vectors} of the encoder "
            f"{manifest.encoder}, those here were made by another: {again}"
        )
    return vectors


def damaged(folder: Path, what: str) -> DamagedModel:
    """Return the error that says what is wrong with a model."""
    return DamagedModel(f"the model in {folder} cannot be used: {what}; train it again")
