"""A head on disk.

    config.json          its kind, and its settings
    model.safetensors    its weights
    README.md            a card that says what it is
    encoder/             its encoder, of a head that has one with it: as any other

No head itself: heads have this in common, and nothing else. `SavedHead` and `EncoderHead` say nothing of
what a head computes.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import msgspec
import torch
from torch import Tensor, nn

from kgkit.encoder.device import pick_device
from kgkit.encoder.folder import ENCODER, FLOATS, first_line
from kgkit.encoder.loading import pretrained, quiet
from kgkit.errors import DamagedModel, MissingExtra, NotThere, UnknownName, UsageError

if TYPE_CHECKING:
    from typing import Self

    from _typeshed import DataclassInstance
    from transformers import PreTrainedModel

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"

_TYPES: Final = {
    "BOOL": torch.bool, "C64": torch.complex64, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
    "I64": torch.int64, "U8": torch.uint8,
}  # fmt: skip
"""Other types that weights may have in a file, by safetensors' names."""

_LONGEST_CONFIG: Final = 64_000_000  # bytes: more than a label for each word of a vocabulary takes

Settings = TypeVar("Settings", bound="DataclassInstance")
Head = TypeVar("Head", bound=nn.Module)


class SavedHead(nn.Module, ABC):
    """A head that is saved into a folder, and loaded from there.

    Attributes:
        kind: kind of the head, as its configuration names it.
        settings: class of its settings.
        config: its settings.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[Any]]
    config: Any

    def save_pretrained(self, folder: Path | str, *, about: str = "") -> None:
        """Write the head into *folder*, which is made: weights, configuration, a model card, its encoder.

        Args:
            folder: folder for the head; what was saved there before is replaced.
            about: Markdown of the card: what it was trained on, under which licences, how well it does.

        Raises:
            MissingExtra: if safetensors is not installed.
        """
        folder = Path(folder)
        save_head(folder, self.kind, self._saved_config(), self._own_weights(), self._card(about))
        self._save_encoder(folder / ENCODER)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such device.
            MissingExtra: if safetensors is not installed.
        """
        return load_head(cls, Path(folder), cls.kind, cls.settings, device)

    def _saved_config(self) -> Any:
        """Return the settings that are written."""
        return self.config

    def _own_weights(self) -> Mapping[str, Tensor]:
        """Return the weights that are not the encoder's."""
        return self.state_dict()

    def _save_encoder(self, folder: Path) -> None:
        """Write the encoder, of a head that has one, into *folder*."""

    @abstractmethod
    def _card(self, about: str) -> str:
        """Return the model card."""


class EncoderHead(SavedHead):
    """A head around an encoder, or around a model of transformers; its settings name that one's class.

    Attributes:
        model: the encoder, or the model around it.
    """

    model: "PreTrainedModel"

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, model: str | None = None, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, with its encoder, ready to be asked.

        Args:
            folder: folder of the head.
            model: class of transformers for the encoder, where it is not the one that it was saved as:
                `AutoModel` leaves out what stood on top.
            device: name of the torch device.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such class, or device.
            MissingExtra: if safetensors is not installed.
        """
        folder, where = Path(folder), pick_device(device)
        config = read_settings(folder, cls.kind, cls.settings)
        own = cls._read_own(folder, config)  # before the encoder: it is quickly refused
        encoder, _ = encoder_below(folder, folder.absolute() / ENCODER, config.model, model)
        return cls(encoder, config, *own).to(where).eval()

    @classmethod
    def around(cls, model: "PreTrainedModel", folder: Path) -> "Self":
        """Return the head in *folder* around an encoder that is loaded already.

        Raises:
            NotThere, DamagedModel, UsageError, MissingExtra: as `from_pretrained` does.
        """
        config = read_settings(folder, cls.kind, cls.settings)
        return cls(model, config, *cls._read_own(folder, config))

    def _saved_config(self) -> Any:
        return replace(self.config, model=type(self.model).__name__)

    def _own_weights(self) -> Mapping[str, Tensor]:
        return {}

    def _save_encoder(self, folder: Path) -> None:
        with quiet():
            self.model.save_pretrained(folder)

    @classmethod
    def _read_own(cls, folder: Path, config: Any) -> tuple[Any, ...]:
        """Return what the head takes beside its encoder and its settings."""
        return ()


def save_head(
    folder: Path, kind: str, config: "DataclassInstance", weights: Mapping[str, Tensor], card: str
) -> None:
    """Write a head into *folder*, which is made; what a head saved there before is replaced.

    Raises:
        MissingExtra: if safetensors is not installed.
    """
    write = _safetensors().save_file
    folder.mkdir(parents=True, exist_ok=True)
    write({name: weight.contiguous() for name, weight in weights.items()}, folder / WEIGHTS)
    settings = json.dumps({"head": kind, **asdict(config)}, indent=2)
    (folder / CONFIG).write_text(settings + "\n", encoding="utf-8")
    (folder / CARD).write_text(card, encoding="utf-8")


def card_of(head: nn.Module, template: str, about: str, **facts: object) -> str:
    """Return *template* with `parameters`, how many *head* has, `about`, what a user says, and *facts*."""
    parameters = f"{sum(parameter.numel() for parameter in head.parameters()):,}"
    about = f"{about.strip()}\n\n" if about.strip() else ""
    return template.format(about=about, parameters=parameters, **facts)


def read_settings(folder: Path, kind: str, settings: type[Settings]) -> Settings:
    """Return the settings of the head in *folder*.

    Args:
        folder: folder of the head.
        kind: kind of the head.
        settings: class of the settings.

    Raises:
        NotThere: if there is none.
        DamagedModel: if they cannot be understood.
        UsageError: if it is of another kind.
        MissingExtra: if safetensors is not installed.
    """
    _safetensors()
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).exists():
            raise NotThere(f"no head in {folder}: there is no {name}")
        if not (folder / name).is_file():
            raise DamagedModel(f"{folder / name} is no file: it is a folder, a device or a pipe")
    path = folder / CONFIG
    if (size := path.stat().st_size) > _LONGEST_CONFIG:
        raise DamagedModel(f"{path} has {size:,} bytes; expected {_LONGEST_CONFIG:,} at most")
    try:
        content = json.loads(path.read_bytes(), parse_constant=_finite)
    except (OSError, ValueError, RecursionError) as error:  # brackets in brackets, a hundred thousand deep
        raise DamagedModel(f"{path} cannot be read: {error}") from error
    other = content.pop("head", None) if isinstance(content, dict) else None
    if other != kind:
        raise UsageError(f"{path} is of a head of kind {other!r}, expected {kind!r}")
    if strange := sorted(set(content) - {field.name for field in fields(settings)}):
        raise DamagedModel(f"{path} has settings that this kgkit does not know: {', '.join(strange)}")
    try:
        return msgspec.convert(content, settings)
    except (msgspec.ValidationError, UsageError, TypeError, ValueError, OverflowError) as error:
        article = "an" if kind.startswith(("a", "e", "i", "o", "u")) else "a"
        raise DamagedModel(f"{path} is no configuration of {article} {kind}: {error}") from error


def check_shapes(folder: Path, weights: Callable[[], Mapping[str, Tensor | Sequence[int]]]) -> None:
    """Make sure that the weights in *folder* are what its settings ask for, before room is made for them.

    Settings of a few bytes may ask for terabytes. Weights of floating point numbers are such in the file too,
    whatever their precision: torch would convert others, and drop the half of a complex number.

    Args:
        folder: folder of the head.
        weights: function that makes the weights, or their shapes, by name; it is called where tensors take
            no memory.

    Raises:
        DamagedModel: if they are others.
    """
    from safetensors import SafetensorError, safe_open

    refused = f"the head in {folder} cannot be loaded"
    try:
        with torch.device("meta"):
            made = dict(weights())
        expected = {
            name: list(tensor.shape if isinstance(tensor, Tensor) else tensor)
            for name, tensor in made.items()
        }
    except (RuntimeError, TypeError, ValueError, OverflowError, UsageError) as error:
        what = f"{CONFIG} asks for what nobody can make: {first_line(error)}"
        raise DamagedModel(f"{refused}: {what}") from error
    try:
        with safe_open(folder / WEIGHTS, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            actual = {name: list(part.get_shape()) for name, part in slices.items()}
            types = {name: str(part.get_dtype()) for name, part in slices.items()}
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedModel(f"{refused}: {first_line(error)}") from error
    for name in sorted({*expected, *actual}):
        if expected.get(name) != actual.get(name):
            expected_shape, actual_shape = (str(shapes.get(name, "none")) for shapes in (expected, actual))
            raise DamagedModel(
                f"{refused}: {CONFIG} asks for {name} {expected_shape}, {WEIGHTS} has {actual_shape}"
            )
        weight = made[name]
        is_floating = weight.is_floating_point() if isinstance(weight, Tensor) else True
        if is_floating and types[name] not in FLOATS:
            raise DamagedModel(
                f"{refused}: its weights are {_TYPES.get(types[name], types[name])}, as {name} in {WEIGHTS}; "
                "expected floating point numbers: get the model again, or train it again"
            )


@contextmanager
def reading_weights(folder: Path) -> Iterator[dict[str, Tensor]]:
    """Give the weights in *folder*, to be put into the head that its settings have made.

    Raises:
        DamagedModel: if they cannot be read, are not finite, or the head does not take them.
    """
    from safetensors import SafetensorError

    try:
        weights = _safetensors().load_file(folder / WEIGHTS)
        for name, weight in weights.items():
            if not weight.isfinite().all():
                raise DamagedModel(f"the head in {folder} cannot be loaded: {name} is not finite")
        yield weights
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedModel(f"the head in {folder} cannot be loaded: {first_line(error)}") from error


def load_head(
    head: Callable[[Settings], Head],
    folder: Path,
    kind: str,
    settings: type[Settings],
    device: str,
) -> Head:
    """Return a head without an encoder, in the precision of its files, ready to be asked.

    Args:
        head: class of the head, which takes its settings.
        folder: folder of the head.
        kind: kind of the head, as its settings name it.
        settings: class of the settings.
        device: name of the device.

    Raises:
        NotThere, DamagedModel, UsageError, MissingExtra: as `read_settings` and `check_shapes` do.
    """
    where = pick_device(device)
    config = read_settings(folder, kind, settings)
    check_shapes(folder, lambda: head(config).state_dict())
    module = head(config)
    with reading_weights(folder) as weights:
        precisions = {weight.dtype for weight in weights.values()}
        if len(precisions) == 1:
            module.to(precisions.pop())
        module.load_state_dict(weights)
    return module.to(where).eval()


def encoder_below(
    folder: Path,
    encoder: Path,
    saved_as: str,
    model: str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> "tuple[PreTrainedModel, frozenset[str]]":
    """Return the encoder that a head stands on, or the model around it, and the parameters its files lack.

    Args:
        folder: folder of the head.
        encoder: folder of the encoder, absolute.
        saved_as: class of transformers that the head's settings name.
        model: class that is asked for instead.
        settings: settings of that class.

    Raises:
        DamagedModel: if it cannot be loaded, or transformers has no class of the head's settings.
        UsageError: if it has none that is asked for, or the encoder needs a program of its own.
    """
    try:
        return pretrained(encoder, model or saved_as, settings)
    except UnknownName:
        if model is not None:
            raise UsageError(f"transformers has no class {model} of models") from None
        raise DamagedModel(f"the head in {folder} stands in a {saved_as}, which transformers lacks") from None
    except UsageError:
        raise
    except Exception as error:  # safetensors, pickle and torch have each their own
        what = f"{type(error).__name__}: {first_line(error)}"
        raise DamagedModel(f"the encoder of the head in {folder} cannot be loaded: {what}") from error


def _finite(constant: str) -> float:
    """Refuse NaN and infinities, which are no JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{constant} is no number that a setting can have")


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise MissingExtra("safetensors", "models") from None
    return safetensors.torch
