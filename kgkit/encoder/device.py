"""Where tensors are computed: the device that a name means here."""

from typing import TYPE_CHECKING

from kgkit.errors import UsageError

if TYPE_CHECKING:
    import torch


def pick_device(name: str) -> "torch.device":
    """Return the device *name*; `auto` is a GPU if there is one.

    Raises:
        UsageError: if there is no such device here.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device is {name!r}; it is auto, cpu, cuda, cuda:0, …") from None
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise UsageError(
                f"device is {name!r}, and torch {torch.__version__} finds {count or 'no'} GPUs here: use "
                "--device auto or cpu"
            )
    elif device.type not in ("cpu", "mps"):
        raise UsageError(f"device is {name!r}; it is auto, cpu, cuda, cuda:0, …")
    return device
