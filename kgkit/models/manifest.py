"""What a trained model says of itself: the `model.json` of its folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from kgkit.errors import DamagedModel, UsageError

MANIFEST: Final = "model.json"
FORMAT: Final = 1
TAGGER: Final = "tagger"
"""The kind of a model that finds mentions."""
KNOWBERT: Final = "knowbert"
"""The kind of a model that has knowledge bases between the layers of its encoder, and links to each."""
KBERT: Final = "kbert"
"""The kind of a model that reads texts with facts in them, for a task."""
FULL: Final = "full"
"""The rung that has encoders of its own, and vectors of the entities that are called as the model is."""


Temperature = Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]
"""What scores are divided by: of a model that was trained, near 1."""


class ModelManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained linker says of itself.

    Attributes:
        kind: the rung it was trained as.
        task: what it was trained on: `wsd` or `el`.
        kb, build: what its ids belong to; "" for a model that has none, and serves any.
        vectors, version: the vectors of the entities that it takes, and which version of them; empty if none.
        encoder, fingerprint: what made these vectors, of the entities' texts; empty if nothing did.
        texts: the template and the kinds of entities that they were made with; empty if that is not known.
        reader: the fields of `SpanConfig`.
        config: everything else that decides its numbers.
        temperature: that scores are divided by, so that they are probabilities.
        coherence: settings of the second stage, if it was trained with one.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on.
        command: that trains the like; empty if it is not known.
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
    temperature: Temperature
    texts: dict[str, Any] = {}
    coherence: dict[str, Any] | None = None
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    command: str = ""
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


class KnownKB(msgspec.Struct, frozen=True, kw_only=True):
    """What a KnowBert knows of one of its knowledge bases.

    Attributes:
        task: what its linker was trained on: `wsd`, `el`, or "" if it was not by itself.
        vectors: of its entities; those of several kinds are joined. Which versions, the model itself says.
        temperature: that the linker's scores are divided by.
        joint: whether all has been trained together since.
        zero_vectors: whether vectors are read as zeros, as in the control that keeps the layers.
    """

    vectors: tuple[str, ...]
    task: str = ""
    temperature: Temperature = 1.0
    joint: bool = False
    zero_vectors: bool = False


class KnowBertManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained KnowBert says of itself.

    Attributes:
        kind: `knowbert`.
        task: what it was trained on last.
        kbs: its knowledge bases by name, from the bottom up; none in a control.
        encoder: what it began as; it lies in the folder as it is now.
        size: word pieces of a text, special ones included.
        specials: pieces that were added for the task.
        guesses: whether it is a masked language model that has been trained, and not an encoder alone, or one
            with a head that was drawn at random.
        start: the model that it began as; "" if it began as an encoder.
        config: everything else that decides its numbers.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on, and of those that chose the epoch.
        command: trains the like.
        sizes: of its files in bytes.
    """

    format: int
    kind: str
    name: str
    task: str
    kbs: dict[str, KnownKB]
    encoder: str
    size: int
    start: str
    config: dict[str, Any]
    specials: tuple[str, ...] = ()
    guesses: bool = False
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    command: str = ""
    sizes: dict[str, int] = {}
    kgkit_version: str = ""
    created: str = ""


class KBertManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a trained K-BERT says of itself.

    Attributes:
        kind: `kbert`.
        task: what it was trained for.
        kbs: its knowledge bases and their builds, those whose facts come first first; none in a control.
        encoder: what it began as; it lies in the folder as it is now.
        size: word pieces of a tree, facts and special ones included.
        query: which words of a text the knowledge bases are asked for, and `linker` by which linker.
        coherence: of the links; None: none.
        linker_made: the checksum of what that linker says of itself; empty where it is none that is trained.
        max_facts, relations, attributes: what is injected, see `TreeConfig`.
        config: everything else that decides its numbers.
        results: what was measured while it was trained.
        data: the SHA-256 of each file it was trained on, and of those that chose the epoch.
        command: trains the like.
        sizes: of its files in bytes.
    """

    format: int
    kind: str
    name: str
    task: str
    kbs: dict[str, str]
    encoder: str
    size: int
    query: str
    linker: str
    max_facts: int
    relations: bool
    config: dict[str, Any]
    linker_made: str = ""
    coherence: Literal["graph"] | None = None
    attributes: bool = False
    results: dict[str, Any] = {}
    data: dict[str, str] = {}
    command: str = ""
    sizes: dict[str, int] = {}
    kgkit_version: str = ""
    created: str = ""


class _Kind(msgspec.Struct, frozen=True):
    """What every manifest says first."""

    format: int
    kind: str
    name: str


Manifest = TypeVar("Manifest", ModelManifest, TaggerManifest, KnowBertManifest, KBertManifest)


def read_model(folder: Path) -> ModelManifest:
    """Return what the linker in *folder* says of itself.

    Raises:
        UsageError: if it is a tagger.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = kind_of(folder)
    if found.kind == TAGGER:
        raise UsageError(
            f"the model {found.name} is a tagger, and links nothing: it finds mentions, with "
            f"`--mentions {found.name}` or `kgkit tag --model {found.name}`"
        )
    if found.kind == KBERT:
        raise UsageError(
            f"the model {found.name} is a K-BERT, and links nothing: `kgkit evaluate` scores it on its task"
        )
    if found.kind == KNOWBERT:
        raise UsageError(
            f"the model {found.name} is a KnowBert, and has no rung: link with `--model {found.name}`, or "
            "open it with kgkit.linking.knowbert.TrainedKnowBert"
        )
    return _read(folder, ModelManifest)


def read_tagger(folder: Path) -> TaggerManifest:
    """Return what the tagger in *folder* says of itself.

    Raises:
        UsageError: if it is a linker.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = kind_of(folder)
    if found.kind == KBERT:
        raise UsageError(
            f"the model {found.name} is a K-BERT, and finds no mentions in plain text: `kgkit evaluate "
            "tagging --predictions FILE` writes the tags of one that was trained to tag; "
            "`kgkit train tagger` makes a tagger"
        )
    if found.kind != TAGGER:
        what = "KnowBert" if found.kind == KNOWBERT else f"linker (rung {found.kind})"
        raise UsageError(
            f"the model {found.name} is a {what}, and finds no mentions: link with "
            f"`--model {found.name}`, train a tagger with `kgkit train tagger`"
        )
    return _read(folder, TaggerManifest)


def read_knowbert(folder: Path) -> KnowBertManifest:
    """Return what the KnowBert in *folder* says of itself.

    Raises:
        UsageError: if it is another kind of model.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = kind_of(folder)
    if found.kind != KNOWBERT:
        raise UsageError(
            f"the model {found.name} is no KnowBert but of the kind {found.kind}: `kgkit train knowbert` "
            "makes one"
        )
    return _read(folder, KnowBertManifest)


def read_kbert(folder: Path) -> KBertManifest:
    """Return what the K-BERT in *folder* says of itself.

    Raises:
        UsageError: if it is another kind of model.
        DamagedModel: if it cannot be read, or a file has another size than it had.
    """
    found = kind_of(folder)
    if found.kind != KBERT:
        raise UsageError(
            f"the model {found.name} is no K-BERT but of the kind {found.kind}: `kgkit train kbert` makes one"
        )
    return _read(folder, KBertManifest)


def kind_of(folder: Path) -> _Kind:
    """Return the format, the kind and the name of the model in *folder*.

    Raises:
        DamagedModel: if they cannot be read, or the format is another.
    """
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Kind)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    if found.format != FORMAT:
        raise damaged(folder, f"it has format {found.format}, this kgkit reads format {FORMAT}")
    return found


def is_kind(kind: str, folder: Path) -> bool:
    """Say whether there is a model of this kind in *folder*, one that can be read."""
    with suppress(DamagedModel):
        return kind_of(folder).kind == kind
    return False


def _read(folder: Path, kind: type[Manifest]) -> Manifest:
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {error}") from error
    for name, size in found.sizes.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise damaged(folder, f"{name} is not the file of {size:,} bytes that it had")
    return found


@contextmanager
def understanding(folder: Path) -> Iterator[None]:
    """Say that a model is damaged where what its manifest tells of its kind makes no sense.

    Raises:
        DamagedModel: if a setting is not there, or of another type, or out of range.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, msgspec.MsgspecError) as error:
        told = f"{type(error).__name__}: {error}"
        raise damaged(
            folder, f"a setting in {MANIFEST} is lacking, or is no such setting ({told})"
        ) from error
    except UsageError as error:
        if type(error) is not UsageError:  # of a name, or of what is not installed
            raise
        raise damaged(folder, f"a setting in {MANIFEST} is out of range: {error}") from error


def damaged(folder: Path, what: str) -> DamagedModel:
    """Return the error that says what is wrong with a model."""
    return DamagedModel(f"the model in {folder} cannot be used: {what}; train it again")
