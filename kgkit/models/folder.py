"""Trained models on disk: a folder that says what it was made for.

    models/NAME/current     -> VERSION; see `kgkit.versions`
    models/NAME/VERSION/
        model.json      what it is: `kgkit.models.manifest`
        …               what its kind has beside

Models that older versions of kgkit have made, and those that come with kgkit, lie in NAME/ itself.

A linker holds ids of one BUILD, and was trained over one version of vectors: with others it is refused. A
tagger finds mentions for any knowledge base, and has its encoder with it; a KnowBert has its own too, and
takes the knowledge bases that it was trained with, and what was added to them.
"""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kgkit.errors import (
    KgkitError,
    NotThere,
    StaleModel,
    UnknownModel,
    UsageError,
    abbreviate,
)
from kgkit.home import Home, explicit_path, here_hint, is_name
from kgkit.models.kinds import Kind, LinkerManifest, Role, find_kind
from kgkit.models.manifest import MANIFEST, claimed_command, decode_manifest, read_header
from kgkit.vectors import find_vectors, vectors_names
from kgkit.vectors.matrix import read_manifest
from kgkit.vectors.partial import partial_folders
from kgkit.versions import file_sha256, find_content, read_current

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

BUILT_IN: Final = ("prior", "gloss")
"""The models that need no training; no other may have their names."""

AUTO: Final = "auto"
"""The model that stands for the one that is taken where nobody names one: `kgkit.linking.auto`."""

VECTORS: Final = "text"
"""The vectors that are taken unless others are named, or there are no others."""

SHIPPED: Final = Path(__file__).parent / "shipped"
"""The models that come with kgkit; none is trained under their names, but one in a home goes before them."""

Read = TypeVar("Read")


def model_folder(home: Home, name: str) -> Path:
    """Return the folder of the model *name* in *home*, which need not exist, for a training to write to.

    Its files lie in a version of it, see `find_model_folder`.

    Raises:
        UsageError: if *name* cannot be a folder's everywhere, or is that of a model that all have.
    """
    shipped = _names(SHIPPED)
    if not is_name(name) or name in (AUTO, *BUILT_IN, *shipped):
        raise UsageError(
            f"{name!r} cannot name a model: letters, digits, '.', '_' and '-', 64 at most, and not "
            f"{', '.join((AUTO, *BUILT_IN, *shipped))}, which are there without training"
        )
    return home.models / name


def find_model_folder(
    model: str | os.PathLike[str], home: Home, purpose: Kind[Any] | Role | None = None
) -> Path:
    """Return where the files of a model lie: of its current version, if it has versions.

    A training that ends may sweep that version: read its files by `read_model`.

    Args:
        model: a name in *home*, or a path, as `kgkit.home.explicit_path` tells them apart.
        home: where models lie; those that come with kgkit are found, too.
        purpose: kind or role that is looked for; whether the model has it is not asked here.

    Raises:
        UnknownModel: if there is none of that name; says which there are of the kind, or with the role.
        NotThere: if it is a path without a model.
        UsageError: if *model* is neither a name nor a path.
    """
    if not isinstance(model, str | os.PathLike):
        raise UsageError(f"the model is {model!r}; it is a name, or the path of a folder")
    if (path := explicit_path(model)) is not None:
        try:
            content = find_content(path, MANIFEST)
        except (OSError, ValueError) as error:  # what cannot be a path: it is too long, or has a NUL
            raise NotThere(f"no model in {str(path)!r}: {error}") from None
        if content is None:
            raise NotThere(f"no model in {path}: a model's folder has a {MANIFEST}")
        return content
    model = str(model)
    if not is_name(model):
        hint = _here(model) or "`kgkit models list` names those there are"
        raise NotThere(f"no model {abbreviate(model)!r} in {home.models}: {hint}")
    for folder in (home.models, SHIPPED):
        if (content := find_content(folder / model, MANIFEST)) is not None:
            return content
    if isinstance(purpose, Kind):
        title = purpose.title.partition(" ")[2]
        raise UnknownModel(title, model, names_with(purpose, home), hint=_here(model))
    noun = "model" if purpose in (None, "linker") else str(purpose).replace("_", " ")
    built_in = BUILT_IN if purpose in (None, "linker") else ()
    raise UnknownModel(noun, model, (*built_in, *names_with(purpose, home)), hint=_here(model))


def read_model(
    model: str | os.PathLike[str], home: Home, purpose: Kind[Any] | Role | None, read: Callable[[Path], Read]
) -> Read:
    """Return the result of a function that reads a model's folder; again, if a training replaced it.

    Args:
        model, home, purpose: as `find_model_folder` takes them.
        read: function of the folder.

    Raises:
        UnknownModel, NotThere: as `find_model_folder` does, beside what *read* raises.
    """
    return read_current(lambda: find_model_folder(model, home, purpose), read)


def _here(model: str) -> str:
    """Return how to name the model in the current directory; empty if there is none of this name."""
    with suppress(OSError, ValueError):  # what cannot be a path
        if find_content(Path(model), MANIFEST) is not None:
            return here_hint(model)
    return ""


def model_names(home: Home) -> list[str]:
    """Return the names of the models in *home*, and of those that come with kgkit."""
    return sorted({*_names(home.models), *_names(SHIPPED)})


def names_with(purpose: Kind[Any] | Role | None, home: Home) -> list[str]:
    """Return the names of the models of a kind, or with a role, that can be read; None: of all models."""

    def fits(folder: Path) -> bool:
        """Say whether the model in *folder* is of the kind, or has the role."""
        header = read_header(folder)
        if isinstance(purpose, Kind):
            return header.kind == purpose.name
        kind = find_kind(header, folder)
        return purpose in kind.roles_in(decode_manifest(folder, kind.manifest))

    if purpose is None:
        return model_names(home)
    names = []
    for name in model_names(home):
        with suppress(KgkitError):
            if read_model(name, home, None, fits):
                names.append(name)
    return names


def manifest_digest(
    model: str | os.PathLike[str], home: Home, purpose: Kind[Any] | Role | None = None
) -> str:
    """Return the SHA-256 of what a model says of itself, which changes when it is trained again.

    Args:
        model, home, purpose: as `find_model_folder` takes them.

    Raises:
        UnknownModel, NotThere: as `find_model_folder` does.
    """
    return read_model(model, home, purpose, lambda folder: file_sha256(folder / MANIFEST))


def find_trained(home: Home, name: str) -> Path:
    """Return where the files of a model lie that was trained in *home*; see `find_model_folder`.

    Raises:
        NotThere: if there is none of that name.
    """
    content = find_content(home.models / name, MANIFEST) if is_name(name) else None
    if content is None:
        raise NotThere(f"no model {name!r} in {home.models}")
    return content


def has_model(home: Home, name: str) -> bool:
    """Say whether a model of this name was trained in *home*."""
    return is_name(name) and find_content(home.models / name, MANIFEST) is not None


def name_in_home(home: Home, model: str) -> str | None:
    """Return the name of a model that was trained in *home*, given by its name or its folder; else None."""
    if (path := explicit_path(model)) is None:
        return model if has_model(home, model) else None
    try:
        name = path.resolve().relative_to(home.models.resolve()).parts[0]
    except (OSError, ValueError, LookupError):  # elsewhere, or no path
        return None
    return name if has_model(home, name) else None


def lasting_name(home: Home, model: str) -> str:
    """Return what finds a model from any directory: its name in *home*, or else the absolute path of it.

    Args:
        home: home of the models.
        model: name or path of a model; what is no path of any is returned as it is.
    """
    if (path := explicit_path(model)) is None:
        return model
    try:
        is_model = find_content(path, MANIFEST) is not None
    except (OSError, ValueError):  # what cannot be a path
        return model
    return (name_in_home(home, str(path.absolute())) or str(path.absolute())) if is_model else model


def _names(folder: Path) -> list[str]:
    """Return the names of the models in *folder*."""
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(
        name for name in names if is_name(name) and find_content(folder / name, MANIFEST) is not None
    )


def model_vectors(
    manifest: LinkerManifest, kb: "KnowledgeBase", name: str | None, *, device: str = "auto"
) -> "Vectors | PartialTextVectors":
    """Open the vectors that a model takes, or those of *name* in their place.

    Its own are encoded as they are needed where they have not been made.

    Raises:
        UsageError: if it was trained for another KB.
        StaleModel: if it was trained for another build, or with vectors of another encoder.
        NotThere, StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
        NotThere: if vectors are to be made and their encoder is not there.
    """
    check_build(manifest, kb)
    own = manifest.vectors
    if not manifest.build:
        own = text_vectors(kb, name) if name is not None else _portable_vectors(manifest, kb)
    vectors: Vectors | PartialTextVectors
    try:
        vectors = kb.vectors(own if name is None else name)
    except NotThere:
        if name not in (None, own):
            raise
        if manifest.build and not manifest.texts:  # nothing says how the texts were written
            raise NotThere(
                f"the model {manifest.name} takes vectors {kb.name}/{own}, which are not there: "
                f"{_embedding(manifest, kb.name, own)} makes them"
            ) from None
        vectors = _partial_vectors(manifest, kb, own, device)
    if vectors.manifest.config.get("fingerprint") != manifest.fingerprint:
        if not manifest.build:
            advice = f"{_embedding(manifest, kb.name, manifest.name)} and `--vectors {manifest.name}` will do"
        elif name not in (None, own):
            advice = f"leave out --vectors {name}, or {train_again(manifest)}"
        else:
            advice = f"{_embedding(manifest, kb.name, own)} makes such, or {train_again(manifest)}"
        raise StaleModel(
            f"the model {manifest.name} was trained with vectors {manifest.vectors} of the encoder "
            f"{manifest.encoder}, those here were made by another: {advice}"
        )
    return vectors


def _portable_vectors(manifest: LinkerManifest, kb: "KnowledgeBase") -> str:
    """Return the name of the vectors that a model which serves any knowledge base takes in this one.

    They are those that `text_vectors` chooses, unless only those that it was trained with are of its encoder.

    Raises:
        NotThere: as `text_vectors` does.
    """
    usual, trained = "", manifest.vectors
    with suppress(NotThere):
        usual = text_vectors(kb, None)
    fits = usual and _made_by(manifest.fingerprint, kb, usual)
    if not fits and is_name(trained) and _made_by(manifest.fingerprint, kb, trained):
        return trained
    return usual or text_vectors(kb, None)


def _made_by(fingerprint: str, kb: "KnowledgeBase", name: str) -> bool:
    """Say whether the vectors of a name, published or partial, were made by the encoder of a fingerprint."""
    if name in vectors_names(kb.home):
        with suppress(KgkitError):
            manifest = read_current(lambda: find_vectors(kb.home, name), read_manifest)
            return manifest.config.get("fingerprint") == fingerprint
        return False
    return any(folder.settings.get("fingerprint") == fingerprint for folder in partial_folders(kb.home, name))


def _partial_vectors(
    manifest: LinkerManifest, kb: "KnowledgeBase", name: str, device: str
) -> "PartialTextVectors":
    """Open the vectors of a model that are encoded as they are needed."""
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.embedding.text import TextConfig

    usual = TextConfig(encoder=manifest.encoder, name=name)
    template = str(manifest.texts.get("template", usual.template))
    kinds = tuple(map(str, manifest.texts.get("kinds", ())))
    config = replace(usual, template=template, kinds=kinds)
    try:
        return PartialTextVectors.open(kb, config, device=device)
    except NotThere as error:
        if manifest.encoder == TextConfig().encoder:
            raise
        raise NotThere(
            f"the model {manifest.name} takes vectors {kb.name}/{name}, which are not there, and neither is "
            f"their encoder {manifest.encoder}: {_embedding(manifest, kb.name, name)} makes them"
        ) from error


def text_vectors(kb: "KnowledgeBase", name: str | None) -> str:
    """Return the name of the vectors that a model takes: *name*, else the only ones, else `VECTORS`.

    Raises:
        NotThere: if none was named, and there are others only; says which.
    """
    if name is not None:
        return name
    names = vectors_names(kb.home)
    if len(names) == 1:
        return names[0]
    if names and VECTORS not in names:
        listed = ", ".join(f"{kb.name}/{vectors}" for vectors in names)
        raise NotThere(
            f"knowledge base {kb.name!r} has no vectors {VECTORS!r}; there are {listed}: name one with "
            f"--vectors, or make some with `kgkit embed {kb.name} --method text`"
        )
    return VECTORS


def check_build(manifest: LinkerManifest, kb: "KnowledgeBase") -> None:
    """Make sure that a model was trained for *kb*, or for a build that it only adds to.

    Raises:
        UsageError: if it was trained for another KB.
        StaleModel: if it was trained for another build.
    """
    from kgkit.kb.lineage import ancestry

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
            f"{kb.name}@{kb.build}: {train_again(manifest)}"
        )


def _embedding(manifest: LinkerManifest, kb: str, name: str) -> str:
    """Return the command that makes vectors called *name*, as the model takes them."""
    from kgkit.embedding.text import TextConfig

    usual = TextConfig()
    options = {"name": name, "encoder": manifest.encoder, **manifest.texts}
    words = ["kgkit", "embed", kb, "--method", "text"]
    for option in ("name", "encoder", "template"):
        value = options.get(option, getattr(usual, option))
        words += [] if value == getattr(usual, option) else [f"--{option}", value]
    words += [word for kind in options.get("kinds", ()) for word in ("--kind", kind)]
    complete = manifest.texts or not manifest.build  # older models do not say how the texts were written
    return f"`{shlex.join(words)}`" + ("" if complete else ", with the --template that they had,")


def train_again(manifest: LinkerManifest) -> str:
    """Return the advice to train a linker again, with the command."""
    options = shlex.join(["--name", manifest.name, *(["--kb", manifest.kb] if manifest.kb else [])])
    return f"train it again (`kgkit train linker {options} …`{claimed_command(manifest.command)})"
