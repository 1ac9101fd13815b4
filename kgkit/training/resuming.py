"""Stopping a training, and going on as if nothing had happened: signals, whole files, weights, chance.

Nothing here loads torch before it is called.
"""

import logging
import random
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from kgkit.errors import Terminated, UsageError
from kgkit.signals import raise_terminated

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

logger = logging.getLogger(__name__)


class Interrupts:
    """Lets Ctrl-C and SIGTERM wait while `busy`, where they would end the work at once; a second does not.

    Attributes:
        busy: set by whoever does what must not be cut in two.
        waits: whether there was one that is still to be obeyed.
    """

    def __init__(self) -> None:
        self.busy, self.waits = False, False
        self._terminated = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be in charge of both where Python is: in the main thread, if nobody handles or ignores them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            number: before
            for number, usual in (
                (signal.SIGINT, (signal.default_int_handler,)),
                (signal.SIGTERM, (signal.SIG_DFL, raise_terminated)),
            )
            if (before := signal.getsignal(number)) in usual
        }
        for number in handlers:
            signal.signal(number, self._came)
        try:
            yield
        finally:
            for number, before in handlers.items():
                signal.signal(number, before)

    def error(self) -> KeyboardInterrupt:
        """Return the error that obeys the last signal: `Terminated`, or that of Ctrl-C."""
        return Terminated() if self._terminated else KeyboardInterrupt()

    def _came(self, number: int, _: Any) -> None:
        self._terminated = number == signal.SIGTERM
        if self.waits or not self.busy:
            raise self.error()
        self.waits = True
        how = "SIGTERM" if self._terminated else "Ctrl-C"
        logger.warning("stopping after this step; a second %s stops at once, without a checkpoint", how)


def weights_of(model: "nn.Module") -> dict[str, "Tensor"]:
    """Return what a training may change: parameters that need a gradient, and buffers; each once."""
    saved = model.state_dict().keys()
    trained = {name: tensor.detach() for name, tensor in model.named_parameters() if tensor.requires_grad}
    return trained | {name: tensor for name, tensor in model.named_buffers() if name in saved}


def put_weights(model: "nn.Module", weights: Mapping[str, "Tensor"]) -> None:
    """Copy what `weights_of` returned into a model of the same kind.

    Raises:
        UsageError: if it is of another kind.
    """
    import torch

    current = weights_of(model)
    if {name: tensor.shape for name, tensor in current.items()} != {
        name: tensor.shape for name, tensor in weights.items()
    }:
        raise UsageError("the weights on disk are those of another model: begin anew")
    with torch.no_grad():
        for name, tensor in current.items():
            tensor.copy_(weights[name])


def random_states(device: "torch.device") -> dict[str, Any]:
    """Return the states of the random generators that everybody shares, as `torch.load` takes them safely."""
    import torch

    name, keys, *state = np.random.get_state()
    states: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": (name, [int(key) for key in keys], *state),
    }
    states["torch"] = torch.get_rng_state()
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Mapping[str, Any], device: "torch.device") -> None:
    """Put the generators where `random_states` found them."""
    import torch

    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
