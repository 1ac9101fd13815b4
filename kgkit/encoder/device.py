"""Where tensors are computed: the device that a name means here, and whether in bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from kgkit.errors import UsageError

if TYPE_CHECKING:
    import torch


_GPUS: Final = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Files of which a machine has one that has a GPU of NVIDIA's or AMD's, or one lent by Windows."""


def is_processor(name: str) -> bool:
    """Say whether *name* means the processor here; torch, which takes seconds, is asked where there is a GPU.

    Raises:
        UsageError: as `pick_device` does.
    """
    if name != "auto":
        return name == "cpu"
    if find_spec("torch") is None or not any(Path(path).exists() for path in _GPUS):
        return True
    return pick_device(name).type == "cpu"


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


@contextmanager
def seeded_cpu(seed: int) -> Iterator[None]:
    """Let torch draw on the CPU from *seed* in the `with` block; its random state is restored after it.

    Random states of other devices stay as they are; `torch.manual_seed` would set them too.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def has_bf16(device: "torch.device") -> bool:
    """Say whether a device multiplies bf16 faster than float32; not by a clock, which says this and that."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    return any(
        getattr(torch.cpu, f"_is_{feature}_supported", lambda: False)()
        for feature in ("avx512_bf16", "amx_tile")
    )


def computes_bf16(setting: bool | Literal["auto"], device: "torch.device") -> bool:
    """Say whether to multiply in bfloat16: `auto` does where the device is made for it.

    Raises:
        UsageError: if a GPU cannot; a CPU always can, if slowly.
    """
    if setting is True and device.type == "cuda" and not has_bf16(device):
        raise UsageError(f"the device {device} does not compute in bfloat16: train without bf16")
    return has_bf16(device) if setting == "auto" else setting
