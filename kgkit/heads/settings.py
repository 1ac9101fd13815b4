"""Settings of heads on disk, and those of the heads that are asked without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import msgspec

from kgkit.errors import DamagedModel, NotThere, UsageError
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CONFIG, WEIGHTS = "config.json", "model.safetensors"

Settings = TypeVar("Settings", bound="DataclassInstance")


@dataclass(frozen=True, kw_only=True)
class EntityLinkerConfig:
    """Settings of `EntityLinker`.

    The defaults are those of KnowBert-WordNet; KnowBert-Wiki has `loss="margin", threshold=0.0, null=True,
    width=300`.
    """

    hidden: int  # H
    width: int = 200  # E
    stored: int | None = None  # D, projected to E by a learned map; None: it is E, and there is no map
    features: int = 1  # F
    attention: bool = True  # between the mentions of a sentence, (2)
    heads: int = 4  # of (2)
    inner: int = 1024  # hidden width of (2)
    scorer: int = 100  # hidden width of the MLP of (3)
    null: bool = False  # NULL is a candidate of every mention
    mask: bool = False  # there is an entity [MASK], for mentions whose words are hidden
    threshold: float | None = None  # δ: candidates that score less are not in the weighted vector
    loss: Literal["softmax", "margin"] = "softmax"  # (4) or (5)
    margin: float = 0.2  # γ of (5)
    dropout: float = 0.1  # inside (2), as in BERT
    input_dropout: float = 0.0  # of the encoder's vectors: those that are cached have had none

    REMOVED: ClassVar[Mapping[str, object]] = {
        "entities": 0, "norms": True, "entity_dropout": 0.0, "control": False,
    }  # fmt: skip
    """Settings that heads of older versions have."""

    @property
    def stored_width(self) -> int:
        """D: numbers in a stored vector."""
        return self.width if self.stored is None else self.stored

    def __post_init__(self) -> None:
        check_range(self, "hidden", "width", "stored", "heads", "inner", "scorer", least=1)
        check_range(self, "features", "margin", least=0)
        check_range(self, "dropout", "input_dropout", least=0, below=1)
        if self.attention and self.width % self.heads:
            raise UsageError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if self.loss not in ("softmax", "margin"):
            raise UsageError(f"loss is {self.loss!r}; it is 'softmax' or 'margin'")


@dataclass(frozen=True, kw_only=True)
class WordTaggerConfig:
    """Settings of `WordTagger`."""

    types: tuple[str, ...]  # K names of types, in the order of their labels
    shapes: int = 0  # of words, that pieces are told; 0: none
    lowercase: bool = False  # whether texts are lowercased before they are cut into pieces
    dropout: float = 0.1  # of what the labels are read from

    def __post_init__(self) -> None:
        if not self.types or len(set(self.types)) < len(self.types) or not all(self.types):
            raise UsageError(f"types are {self.types}: one at least, none of them empty or twice")
        check_range(self, "shapes", least=0)
        check_range(self, "dropout", least=0, below=1)

    @property
    def labels(self) -> int:
        """L."""
        return 1 + 2 * len(self.types)


@dataclass(frozen=True, kw_only=True)
class FrozenTaggerConfig(WordTaggerConfig):
    """Settings of `FrozenWordTagger`."""

    layers: tuple[int, ...] = (2, 4, 6)  # N layers that are read, from 1
    width: int = 128  # D
    blocks: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "width", "blocks", "shapes", least=1)
        if not self.layers or min(self.layers) < 1 or len({*self.layers}) < len(self.layers):
            raise UsageError(f"layers are {self.layers}: each from 1, none twice")


def read_settings(folder: Path, kind: str, settings: type[Settings]) -> Settings:
    """Return the settings of the head in *folder*.

    Args:
        folder: folder of the head.
        kind: kind of the head.
        settings: class of the settings. Its class variable `REMOVED` has the only value of each setting that
            heads of older versions have beside these.

    Raises:
        NotThere: if there is none.
        DamagedModel: if they cannot be understood.
        UsageError: if it is of another kind.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise NotThere(f"no head in {folder}: there is no {CONFIG}")
    try:
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedModel(f"{path} cannot be read: {error}") from error
    if (other := content.pop("head", None)) != kind:
        raise UsageError(f"{path} is of a head of kind {other!r}, expected {kind!r}")
    removed, known = getattr(settings, "REMOVED", {}), {field.name for field in fields(settings)}
    for name in sorted(content.keys() - known):
        if name not in removed or content[name] != removed[name]:
            raise DamagedModel(
                f"{path} has the setting {name} {content[name]!r}, which this kgkit does not know: train the "
                "model again"
            )
    try:
        return msgspec.convert(content, settings)
    except (msgspec.ValidationError, UsageError, TypeError, ValueError, OverflowError) as error:
        raise DamagedModel(f"{path} is no configuration of the kind {kind}: {error}") from error
