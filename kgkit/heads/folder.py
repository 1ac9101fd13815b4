"""A head on disk.

    config.json          its kind, and its settings
    model.safetensors    its weights
    encoder/             its encoder, of a head that has one with it: as any other

No head itself: heads have this in common, and nothing else. `SavedHead` and `EncoderHead` say nothing of
what a head computes.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from kgkit.encoder.device import pick_device
from kgkit.encoder.folder import ENCODER, first_line
from kgkit.encoder.loading import pretrained, quiet
from kgkit.errors import DamagedModel, UnknownName, UsageError
from kgkit.heads.settings import CONFIG, WEIGHTS, read_settings

if TYPE_CHECKING:
    from typing import Self

    from _typeshed import DataclassInstance
    from transformers import PreTrainedModel

_LONGEST: Final = 300  # characters of an error of torch

_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

Head = TypeVar("Head", bound=nn.Module)


class SavedHead(nn.Module):
    """A head that is saved into a folder, and loaded from there.

    Attributes:
        kind: kind of the head, as its configuration names it.
        settings: class of its settings.
        config: its settings.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[Any]]
    config: Any

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the head into *folder*, which is made: weights, configuration, its encoder.

        Args:
            folder: folder for the head; what was saved there before is replaced.
        """
        folder = Path(folder)
        save_head(folder, self.kind, self._saved_config(), self._own_weights())
        self._save_encoder(folder / ENCODER)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, in the precision of its files, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such device.
        """
        where = pick_device(device)
        config = read_settings(Path(folder), cls.kind, cls.settings)
        return load_module(Path(folder), lambda: cls(config)).to(where).eval()

    def _saved_config(self) -> Any:
        """Return the settings that are written."""
        return self.config

    def _own_weights(self) -> Mapping[str, Tensor]:
        """Return the weights that are not the encoder's."""
        return self.state_dict()

    def _save_encoder(self, folder: Path) -> None:
        """Write the encoder, of a head that has one, into *folder*."""


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
            NotThere, DamagedModel, UsageError: as `from_pretrained` does.
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


def save_head(folder: Path, kind: str, config: "DataclassInstance", weights: Mapping[str, Tensor]) -> None:
    """Write a head into *folder*, which is made; what a head saved there before is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: weight.contiguous() for name, weight in weights.items()}, folder / WEIGHTS)
    settings = json.dumps({"head": kind, **asdict(config)}, indent=2)
    (folder / CONFIG).write_text(settings + "\n", encoding="utf-8")


def load_module(folder: Path, make: Callable[[], Head]) -> Head:
    """Return a module with the weights in *folder*, in the precision that they have there.

    It takes no memory before the weights are known to fit: settings of a few bytes may ask for terabytes.

    Args:
        folder: folder of the head.
        make: function that makes the module. It is called where new tensors are on the device `meta`; those
            are the ones that the file has.

    Raises:
        DamagedModel: if the weights are others, or cannot be read, or the settings ask for what nobody can
            make.
    """
    weights = load_weights(folder, (*_TYPES, torch.bool))
    try:
        with torch.device("meta"):
            module = make()
        made = {name for name, tensor in module.state_dict().items() if tensor.is_meta}
        if strange := sorted(made ^ weights.keys()):
            raise _unloadable(folder, f"{CONFIG} and {WEIGHTS} differ in {strange[0]}")
        module.load_state_dict(weights, strict=False, assign=True)
    except (RuntimeError, TypeError, ValueError, OverflowError, UsageError) as error:
        raise _unloadable(folder, shorten(str(error), _LONGEST)) from error
    return module


def load_weights(folder: Path, types: Collection[torch.dtype] = _TYPES) -> dict[str, Tensor]:
    """Return the weights in *folder*.

    Raises:
        DamagedModel: if they cannot be read, are of other types, or not finite.
    """
    try:
        # A copy is aligned in memory as all tensors are: products are the same to the last bit.
        weights = {name: weight.clone() for name, weight in load_file(folder / WEIGHTS).items()}
    except (OSError, SafetensorError, RuntimeError) as error:
        raise _unloadable(folder, first_line(error)) from error
    for name, weight in weights.items():
        if weight.dtype not in types:
            raise _unloadable(folder, f"its weights are {weight.dtype}, as {name}; expected floating point")
        if not weight.isfinite().all():
            raise _unloadable(folder, f"{name} is not finite")
    return weights


def _unloadable(folder: Path, what: str) -> DamagedModel:
    return DamagedModel(f"the head in {folder} cannot be loaded: {what}")


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
