"""A head on disk.

    config.json          its kind, and its settings
    model.safetensors    its weights
    README.md            a card that says what it is

No head itself: heads have this in common, and nothing else.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import torch
from torch import Tensor, nn

from kgkit.encoder.device import pick_device
from kgkit.encoder.loading import pretrained
from kgkit.errors import DamagedModel, MissingExtra, NotThere, UnknownName, UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from transformers import PreTrainedModel

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"

Settings = TypeVar("Settings", bound="DataclassInstance")
Head = TypeVar("Head", bound=nn.Module)


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
    told = json.dumps({"head": kind, **asdict(config)}, indent=2)
    (folder / CONFIG).write_text(told + "\n", encoding="utf-8")
    (folder / CARD).write_text(card, encoding="utf-8")


def card_of(head: nn.Module, template: str, about: str, **told: object) -> str:
    """Return *template* with `parameters`, how many *head* has, `about`, what a user says, and *told*."""
    parameters = f"{sum(one.numel() for one in head.parameters()):,}"
    about = f"{about.strip()}\n\n" if about.strip() else ""
    return template.format(about=about, parameters=parameters, **told)


def read_settings(
    folder: Path, kind: str, settings: type[Settings], *, renamed: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of the head in *folder*.

    Args:
        folder: of the head.
        kind: of the head.
        settings: class of the settings.
        renamed: names of settings as they were written before, and as they are called now.

    Raises:
        NotThere: if there is none.
        DamagedModel: if they cannot be understood.
        UsageError: if it is of another kind.
        MissingExtra: if safetensors is not installed.
    """
    _safetensors()
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise NotThere(f"no head in {folder}: there is no {name}")
    path = folder / CONFIG
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:  # brackets in brackets, a hundred thousand deep
        raise DamagedModel(f"{path} cannot be read: {error}") from error
    other = found.pop("head", None) if isinstance(found, dict) else None
    if other != kind:
        raise UsageError(f"{path} is of a head of kind {other!r}, expected {kind!r}")
    found = {(renamed or {}).get(name, name): value for name, value in found.items()}
    if strange := sorted(set(found) - {field.name for field in fields(settings)}):
        raise DamagedModel(f"{path} has settings that this kgkit does not know: {', '.join(strange)}")
    try:
        return msgspec.convert(found, settings)
    except (msgspec.ValidationError, UsageError, TypeError, OverflowError) as error:
        raise DamagedModel(f"{path} is no configuration of a {kind}: {error}") from error


def check_shapes(folder: Path, made: Callable[[], Mapping[str, Tensor | Sequence[int]]]) -> None:
    """Make sure that the weights in *folder* are what its settings ask for, before room is made for them.

    Settings of a few bytes may ask for terabytes.

    Args:
        folder: of the head.
        made: makes the weights, or their shapes, by name; is called where tensors take no memory.

    Raises:
        DamagedModel: if they are others.
    """
    from safetensors import SafetensorError, safe_open

    refused = f"the head in {folder} cannot be loaded"
    try:
        with torch.device("meta"):
            asked = {
                name: list(one.shape if isinstance(one, Tensor) else one) for name, one in made().items()
            }
    except (RuntimeError, TypeError, ValueError, OverflowError, UsageError) as error:
        raise DamagedModel(f"{refused}: {CONFIG} asks for what nobody can make: {error}") from error
    try:
        with safe_open(folder / WEIGHTS, "pt") as file:
            held = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedModel(f"{refused}: {error}") from error
    for name in sorted({*asked, *held}):
        if asked.get(name) != held.get(name):
            wanted, there = (str(one.get(name, "none")) for one in (asked, held))
            raise DamagedModel(f"{refused}: {CONFIG} asks for {name} {wanted}, {WEIGHTS} has {there}")


@contextmanager
def reading_weights(folder: Path) -> Iterator[dict[str, Tensor]]:
    """Give the weights in *folder*, to be put into the head that its settings have made.

    Raises:
        DamagedModel: if they cannot be read, or the head does not take them.
    """
    from safetensors import SafetensorError

    try:
        yield _safetensors().load_file(folder / WEIGHTS)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedModel(f"the head in {folder} cannot be loaded: {error}") from error


def load_head(
    head: Callable[[Settings], Head],
    folder: Path,
    kind: str,
    settings: type[Settings],
    device: str,
    *,
    renamed: Mapping[str, str] | None = None,
) -> Head:
    """Return a head without an encoder, in the precision of its files, ready to be asked.

    Args:
        head: class of the head, which takes its settings.
        folder: of the head.
        kind: of the head, as its settings name it.
        settings: class of the settings.
        device: name of the device.
        renamed: names of settings as they were written before, and as they are called now.

    Raises:
        NotThere, DamagedModel, UsageError, MissingExtra: as `read_settings` and `check_shapes` do.
    """
    where = pick_device(device)
    config = read_settings(folder, kind, settings, renamed=renamed)
    check_shapes(folder, lambda: head(config).state_dict())
    made = head(config)
    with reading_weights(folder) as weights:
        precisions = {weight.dtype for weight in weights.values()}
        if len(precisions) == 1:
            made.to(precisions.pop())
        made.load_state_dict(weights)
    return made.to(where).eval()


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
        folder: of the head.
        encoder: the folder of the encoder, absolute.
        saved_as: the class of transformers that the head's settings name.
        model: the one that is asked for in its place.
        settings: of that class.

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
        raise DamagedModel(f"the encoder of the head in {folder} cannot be loaded: {error}") from error


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise MissingExtra("safetensors", "models") from None
    return safetensors.torch
