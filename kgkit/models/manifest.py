"""Manifest of a trained model: the `model.json` of its folder.

Every kind of model has the fields of `ModelManifest`; `kgkit.models.kinds` has what single kinds have beside.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from kgkit.errors import DamagedModel, UsageError
from kgkit.home import is_name

MANIFEST: Final = "model.json"
FORMAT: Final = 2

_LINKER_TYPES: Final = frozenset({"ridge", "head", "full", "prior", "gloss"})  # kinds in format 1

Temperature = Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]
"""What scores are divided by: of a model that was trained, near 1."""

_LONGEST_COMMAND: Final = 400  # characters of a command that an error shows


class Needs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model reads beside its own folder.

    Attributes:
        kbs: the build of each knowledge base that it was trained with, by name.
        exact: whether it reads these builds themselves; else later ones that only add to them serve too.
        vectors: of entities, as KB/NAME.
        linker: another model, by name.
        models: further models, by name, as taggers and PMI tables.
    """

    kbs: dict[str, str] = {}
    exact: bool = False
    vectors: tuple[str, ...] = ()
    linker: str = ""
    models: tuple[str, ...] = ()


class ModelManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Manifest of a trained model, whatever its kind.

    Attributes:
        format: of this file and of the folder.
        kind: the entry point in the group `kgkit.models` that knows the model.
        name: that it was trained under.
        type: variant of the kind, as `ridge` of a linker; empty where a kind has one only.
        task: what it was trained for; empty where a kind has one only.
        encoder: what it began as, or what made the vectors that it takes; empty if neither.
        needs: what it reads beside its own folder.
        config: everything else that decides its numbers.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on, and of those that chose the epoch.
        command: that trains the like, as it was typed, or the call of `kgkit.train`; empty if it is not
            known.
        sizes: of its files, in bytes, by their path in the folder.
        sha256: of its files.
        kgkit_version: of the kgkit that trained it.
        created: date and time.
    """

    format: int
    kind: str
    name: str
    type: str = ""
    task: str = ""
    encoder: str = ""
    needs: Needs = msgspec.field(default_factory=Needs)
    config: dict[str, Any] = {}
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    command: str = ""
    sizes: dict[str, int] = {}
    sha256: dict[str, str] = {}
    kgkit_version: str = ""
    created: str = ""

    @property
    def kb_titles(self) -> list[str]:
        """The knowledge bases that it was trained with, as people read them."""
        return list(self.needs.kbs)


ManifestType = TypeVar("ManifestType", bound=ModelManifest)


class _Older(msgspec.Struct, frozen=True):
    """What a manifest of any format says."""

    format: int
    kind: str
    name: str
    command: str = ""


def read_header(folder: Path) -> ModelManifest:
    """Return what every kind of model says of itself, of the model in *folder*.

    Raises:
        DamagedModel: if it cannot be read, or the format is another.
    """
    return decode_manifest(folder, ModelManifest)


def decode_manifest(folder: Path, manifest: type[ManifestType]) -> ManifestType:
    """Return the manifest of the model in *folder*, as a struct of one type.

    Raises:
        DamagedModel: if it cannot be read, or the format is another.
    """
    try:
        content = (folder / MANIFEST).read_bytes()
        older = msgspec.json.decode(content, type=_Older)
        if older.format == FORMAT:
            return msgspec.json.decode(content, type=manifest)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    problem = f"it has format {older.format}, this kgkit reads format {FORMAT}"
    raise damaged(folder, problem, _training_again(older) if older.format < FORMAT else "")


def check_sizes(folder: Path, manifest: ModelManifest) -> None:
    """Make sure that each file of a model is as long as it was, and that none could be read for ever.

    Raises:
        DamagedModel: if one is not there, or has another size, or something is a device or a pipe.
    """
    for path in folder.rglob("*"):
        if path.exists() and not path.is_file() and not path.is_dir():
            what = f"{path.relative_to(folder)} is a device or a pipe, or a link to one; expected a file"
            raise damaged(folder, what)
    for name, size in manifest.sizes.items():
        path = file_in(folder, name)
        if not path.is_file() or path.stat().st_size != size:
            raise damaged(folder, f"{name} is not the file of {size:,} bytes that it had")


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file that a manifest names.

    Raises:
        DamagedModel: if it is not in the folder of the model.
    """
    if "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise damaged(folder, f"{MANIFEST} names the file {name!r}, which is not in that folder")
    return folder / name


@contextmanager
def checking_settings(folder: Path) -> Iterator[None]:
    """Say that a model is damaged where what its manifest tells of its kind makes no sense.

    Raises:
        DamagedModel: if a setting is not there, or of another type, or out of range.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, msgspec.MsgspecError) as error:
        what = f"{type(error).__name__}: {error}"
        raise damaged(
            folder, f"a setting in {MANIFEST} is lacking, or is no such setting ({what})"
        ) from error
    except UsageError as error:
        if type(error) is not UsageError:  # of a name, or of what is not installed
            raise
        raise damaged(folder, f"a setting in {MANIFEST} is out of range: {error}") from error


def damaged(folder: Path, problem: str, advice: str = "") -> DamagedModel:
    """Return the error that says what is wrong with a model.

    Args:
        folder: folder of the model.
        problem: what is wrong.
        advice: text appended to "train it again".
    """
    return DamagedModel(f"the model in {folder} cannot be used: {problem}; train it again{advice}")


def claimed_command(command: str) -> str:
    """Return the command that a manifest names, marked as its claim: others may have written it.

    What is invisible, or turns the direction of the text, is escaped.
    """
    if not 0 < len(command) <= _LONGEST_COMMAND:
        return ""
    return f"; its manifest says that it was trained by {command!r}"


def broken_weights(model: str, finding: str) -> DamagedModel:
    """Return the error of a model that computes what is no number.

    Args:
        model: its name.
        finding: what it does, with which the sentence goes on.
    """
    return DamagedModel(f"the model {model} {finding}: its weights are damaged, or too large; train it again")


def _training_again(older: _Older) -> str:
    """Return how a model of an older format is trained again: the command, and the one that it claims."""
    kind = "linker" if older.kind in _LINKER_TYPES else older.kind
    claim = claimed_command(re.sub(r" --rung\b", " --type", older.command))
    if not is_name(older.kind) or not is_name(older.name):
        return claim
    return f" with `kgkit train {kind} --name {older.name} …`{claim}"
