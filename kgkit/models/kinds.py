"""Kinds of trained models, and the roles that they can be opened in.

    linker             scores the candidates of mentions: `kgkit.linking.scoring.Scorer`
    tagger             finds mentions in plain text: `kgkit.tagging.tagger.MentionTagger`
    predictor          answers what a task asks of a text: a label, labels, tags, a number, a choice
    language_model     guesses words, those that are hidden or those that follow
    embedder           gives the words of a text vectors
    association_table  says how strongly two words go together: `kgkit.pmi.PMITable`

A kind is found by the name that `model.json` has for it, in the entry-point group `kgkit.models`: kgkit's own
by the same door as a stranger's. It says what a manifest has beside the fields of `ModelManifest`, which
function opens a folder in which role, and, of a kind that `kgkit train` trains for tasks, the settings of a
training and the function that begins one. What it names is imported when it is needed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal

import msgspec

from kgkit.errors import DamagedModel, MissingExtra, UnknownName, UsageError
from kgkit.models.manifest import (
    ManifestType,
    ModelManifest,
    Temperature,
    check_sizes,
    damaged,
    decode_manifest,
    read_header,
)
from kgkit.plugins import entry_point_names, find_entry_point, load_object, owner_of

GROUP: Final = "kgkit.models"

Role = Literal["linker", "tagger", "predictor", "language_model", "embedder", "association_table"]

LACKS: Final[Mapping[Role, tuple[str, str]]] = {
    "linker": ("links nothing", "`kgkit train linker` makes a linker"),
    "tagger": ("finds no mentions in plain text", "`kgkit train tagger` makes a tagger"),
    "predictor": ("answers no task", "`kgkit train` makes models that do"),
    "language_model": ("guesses no words", "`kgkit train encoder` makes a model that does"),
    "embedder": ("gives words no vectors", "`kgkit train encoder` makes a model that does"),
    "association_table": ("scores no pairs of words", "`kgkit train pmi` makes a table that does"),
}
"""What a model without a role does not do, and what makes one that does."""


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[ManifestType]):
    """A kind of trained models.

    Attributes:
        name: in `model.json`; that of its entry point too.
        title: of one such model, in a sentence: `a tagger`.
        about: what such a model is, in a phrase, for the help of the command that trains it; "": not said.
        manifest: struct of what a model says of itself.
        roles: function that opens a model, as `MODULE:NAME`, by role; called with the folder, the manifest
            and a `kgkit.models.opening.Opening`.
        use: what one does with a model, in a sentence; `{name}` stands for the model's name.
        uses: the same by task, for tasks whose models are used otherwise.
        command: that trains one; `kgkit train NAME` unless given.
        roles_of: roles that a single model has, the main one first; None: all of them, in the order of
            *roles*.
        settings: class of the settings of a training, a `kgkit.methods.settings.Training`, as `MODULE:NAME`;
            "" for a kind that `kgkit.train` does not train.
        begin: function from these settings, the data (`kgkit.methods.answering.TaskData`) and
            `kgkit.methods.contract.Resources` to a `kgkit.methods.contract.Beginning`, as `MODULE:NAME`.
        plan: function that prepares a training for what is no task of `kgkit.evaluation.tasks`, as
            `MODULE:NAME`; a `kgkit.training.tasks.PlanTask`. "": it has none.
        encoder: path of the encoder in the folder of a model that has one, as `Encoder.load` takes it; "" for
            a kind that has none.
    """

    name: str
    title: str
    manifest: type[ManifestType]
    roles: Mapping[Role, str]
    use: str
    command: str = ""
    about: str = ""
    uses: Mapping[str, str] = field(default_factory=dict)
    roles_of: Callable[[ManifestType], tuple[Role, ...]] | None = None
    settings: str = ""
    begin: str = ""
    plan: str = ""
    encoder: str = ""

    def __post_init__(self) -> None:
        if not self.command:
            object.__setattr__(self, "command", f"kgkit train {self.name}")

    def read(self, folder: Path) -> ManifestType:
        """Return the manifest of the model in *folder*.

        Raises:
            UsageError: if it is of another kind; says what it is.
            DamagedModel: if it cannot be read, or a file has another size than it had.
        """
        header = read_header(folder)
        if header.kind != self.name:
            other = find_kind(header, folder)
            raise UsageError(
                f"the model {header.name} is {other.called(header)}, not {self.title}: "
                f"{other.used(header)}; `{self.command}` makes {self.title}"
            )
        manifest = decode_manifest(folder, self.manifest)
        check_sizes(folder, manifest)
        return manifest

    def load(self, target: str, part: str = "") -> Any:
        """Return what one of its names stands for; *part* says which, for errors: `the role linker of`.

        Raises:
            DamagedModel, MissingExtra: as `kgkit.plugins.load_object` does.
        """
        return load_object(target, f"{part} the kind {self.name}".lstrip(), DamagedModel)

    def called(self, manifest: ModelManifest) -> str:
        """Return what a model is, in a sentence."""
        return f"{self.title} (type {manifest.type})" if manifest.type else self.title

    def used(self, manifest: ModelManifest) -> str:
        """Return what one does with a model, in a sentence."""
        return self.uses.get(manifest.task, self.use).replace("{name}", manifest.name)

    def roles_in(self, manifest: ManifestType) -> tuple[Role, ...]:
        """Return the roles that a model has, the main one first.

        Raises:
            DamagedModel: if the kind cannot say which these are.
        """
        if self.roles_of is None:
            return tuple(self.roles)
        try:
            roles = tuple(self.roles_of(manifest))
        except Exception as error:  # whatever the package of a stranger does
            what = f"{type(error).__name__}: {error}"
            raise DamagedModel(f"the kind {self.name} cannot say which roles a model has ({what})") from error
        if not roles or not {*roles} <= self.roles.keys():
            names = ", ".join(map(str, roles)) or "none"
            raise DamagedModel(
                f"the kind {self.name} says that the model {manifest.name} has the roles {names}: expected "
                f"one or more of {', '.join(self.roles)}"
            )
        return roles

    def missing(self, role: Role, manifest: ModelManifest) -> UsageError:
        """Return the error that says what a model does in the place of a role that it does not have."""
        lacks, maker = LACKS[role]
        what = f"the model {manifest.name} is {self.called(manifest)}, and {lacks}"
        return UsageError(f"{what}: {self.used(manifest)}; {maker}")


def find_kind(manifest: ModelManifest, folder: Path) -> Kind[Any]:
    """Return the kind of a model.

    Args:
        manifest: of the model.
        folder: of the model.

    Raises:
        DamagedModel: if no package that is installed knows the kind.
    """
    if (entry := find_entry_point(GROUP, manifest.kind, DamagedModel)) is not None:
        return load_kind(entry)
    names = ", ".join(kind_names()) or "none: from a checkout, run `pip install -e .` first"
    raise damaged(
        folder,
        f"it is of the kind {manifest.kind!r}, which no installed package knows (known: {names}); install "
        "the package that it came with",
    )


def kind_names() -> list[str]:
    """Return the names of the kinds that installed packages know."""
    return entry_point_names(GROUP)


def find_method(name: str) -> Kind[Any]:
    """Return the kind that `kgkit train` *name* trains for tasks.

    Raises:
        UnknownName: if no installed package has one of that name; says which there are.
        DamagedModel: if its entry point cannot be loaded.
    """
    if (entry := find_entry_point(GROUP, name, DamagedModel)) is not None:
        kind = load_kind(entry)
        if kind.settings:
            return kind
    raise UnknownName("method", name, method_names())


def method_names() -> list[str]:
    """Return the names of the kinds that are trained for tasks; a kind that cannot be loaded is left out."""
    names = []
    for name in kind_names():
        with suppress(DamagedModel, MissingExtra):
            entry = find_entry_point(GROUP, name, DamagedModel)
            if entry is not None and load_kind(entry).settings:
                names.append(name)
    return names


def load_kind(entry: EntryPoint) -> Kind[Any]:
    """Return the kind of an entry point.

    Raises:
        DamagedModel: if its package is damaged, or it is no kind.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    owner = owner_of(entry)
    kind: object = load_object(entry.value, owner, DamagedModel)
    if not isinstance(kind, Kind):
        raise DamagedModel(
            f"{owner} is {entry.value}, a {type(kind).__name__}; it is to be a {__name__}.Kind"
        )
    manifest: object = kind.manifest
    if not (isinstance(manifest, type) and issubclass(manifest, ModelManifest)):
        raise DamagedModel(f"{owner} has the manifest {manifest!r}, which is no {ModelManifest.__name__}")
    if kind.name != entry.name:
        raise DamagedModel(f"{owner} is the kind {kind.name}: both are to have one name")
    if bool(kind.settings) != bool(kind.begin or kind.plan):
        raise DamagedModel(f"{owner} has `settings` and no `begin` or `plan`, or the other way round")
    return kind


# -- linkers and taggers -----------------------------------------------------


class LinkerManifest(ModelManifest, frozen=True, kw_only=True):
    """Manifest of a trained linker; its `type` is what learns: `ridge`, `head`, ….

    Attributes:
        vectors, version: vectors of the entities, empty if none; no version: encoded as they were needed.
        fingerprint: of the encoder that made these vectors; empty if none did.
        texts: the template and the kinds of entities that they were made with; empty if that is not known.
        reader: the fields of `SpanConfig`.
        temperature: that scores are divided by, so that they are probabilities.
        coherence: settings of the second stage of a model of older versions, which is refused.
        mentions: tagger whose names it links by default; "": the knowledge base's generator finds them.
        threshold: least score of its links where nobody names another.
        neighbours: relations whose neighbours' texts it reads beside that of an entity.
    """

    vectors: str
    version: str
    fingerprint: str
    reader: dict[str, Any]
    temperature: Temperature
    texts: dict[str, Any] = msgspec.field(default_factory=dict)
    coherence: dict[str, Any] | None = None
    mentions: str = ""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    neighbours: tuple[str, ...] = ()

    @property
    def kb(self) -> str:
        """The knowledge base that its ids belong to; "" for a model that has none, and serves any."""
        return next(iter(self.needs.kbs), "")

    @property
    def build(self) -> str:
        """The build that its ids belong to; "" for a model that has none, and serves any."""
        return self.needs.kbs.get(self.kb, "")


class TaggerManifest(ModelManifest, frozen=True, kw_only=True):
    """Manifest of a trained tagger; the encoder lies in the folder as it is now.

    Attributes:
        types: of names, as its data have them.
        fingerprint: of the encoder that was fine-tuned.
        reader: the fields of `TaggingConfig`.
        frozen: whether the encoder was left as it is: it is then the one called `encoder`, not in the folder.
    """

    types: tuple[str, ...]
    fingerprint: str
    reader: dict[str, Any]
    frozen: bool = False


LINKER: Final = Kind(
    name="linker", title="a linker", manifest=LinkerManifest, encoder="encoder",
    roles={"linker": "kgkit.linking.models:open_linker"}, use="link with `--model {name}`",
)  # fmt: skip

TAGGER: Final = Kind(
    name="tagger", title="a tagger", manifest=TaggerManifest, encoder="head/encoder",
    roles={"tagger": "kgkit.tagging.tagger:open_tagger"},
    use="it finds mentions, with `--mentions {name}` or `kgkit tag --model {name}`",
)  # fmt: skip
