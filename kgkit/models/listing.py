"""The trained models on this machine, and what each needs."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from kgkit.errors import KgkitError
from kgkit.home import Home
from kgkit.models.folder import model_names, read_model
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST, check_sizes, decode_manifest, read_header
from kgkit.models.needs import Need, check_needs

__all__ = ["ModelSummary", "describe_model", "models"]


class ModelSummary(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What the manifest of a trained model says.

    Of one that cannot be used `error` says why, and all but its name is empty.

    Attributes:
        name: name that opens it.
        error: reason why the model cannot be used; None for one that can.
        kind: kind, as `linker`.
        type: variant of the kind, as `ridge` of a linker.
        roles: roles in which `open_model` opens it.
        task: task that it was trained for, where its kind has several.
        encoder: encoder that it began as, or that made the vectors it takes.
        needs: builds, vectors and models that it reads, and whether they are there.
        size: bytes on disk.
        created: time at which it was trained, as ISO 8601.
        path: folder of its files.
    """

    name: str
    error: str | None = None
    kind: str = ""
    type: str = ""
    roles: tuple[str, ...] = ()
    task: str = ""
    encoder: str = ""
    needs: tuple[Need, ...] = ()
    size: int = 0
    created: str = ""
    path: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON, without those that are empty."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        if self.needs:
            fields["needs"] = [need._asdict() for need in self.needs]
        return fields


def models(home: str | os.PathLike[str] | None = None) -> list[ModelSummary]:
    """Return what the trained models on this machine say of themselves, those that come with kgkit too.

    The name calls the package `kgkit.models`, which has the parts of trained models.

    Args:
        home: folder of the models; `KGKIT_HOME` or the platform's place unless given.

    Examples:
        >>> [model.name for model in kgkit.models() if "linker" in model.roles]
        ['wsd-minilm']
    """
    where = Home.find(home)
    return [_summary(name, where) for name in model_names(where)]


def _summary(name: str, home: Home) -> ModelSummary:
    try:
        model = describe_model(name, home)
    except KgkitError as error:
        return ModelSummary(name, str(error))
    return ModelSummary(
        name,
        kind=model["kind"],
        type=model["type"],
        roles=tuple(model["roles"]),
        task=model["task"],
        encoder=model["encoder"],
        needs=tuple(Need(**need) for need in model["needs"]),
        size=model["bytes"],
        created=model["created"],
        path=model["path"],
    )


def describe_model(model: str, home: Home) -> dict[str, Any]:
    """Return all that a model says of itself, and whether what it needs is there.

    Raises:
        UnknownName, NotThere: if there is no such model.
        DamagedModel: if it cannot be read.
    """
    return read_model(model, home, None, partial(_description, home=home))


def _description(folder: Path, home: Home) -> dict[str, Any]:
    header = read_header(folder)
    kind = find_kind(header, folder)
    manifest = decode_manifest(folder, kind.manifest)
    check_sizes(folder, manifest)
    own = folder / MANIFEST
    return {
        **msgspec.to_builtins(manifest),
        "path": str(folder),
        "bytes": sum(manifest.sizes.values()) + own.stat().st_size,
        "what": kind.called(manifest),
        "roles": list(kind.roles_in(manifest)),
        "needs": [need._asdict() for need in check_needs(manifest.needs, home)],
    }
