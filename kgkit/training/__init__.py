"""One training loop for every head, and the diary of what was trained and evaluated.

    loop      from a model, batches and a loss to trained weights; checkpoints, several processes
    curves    what goes with it: settings, batches, curves of loss and metrics
    resuming  what it needs to be stopped, and to go on
    runs      a row in the catalog for a training or an evaluation

Importing this package loads no torch; what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from kgkit.training.curves import Batches, Shuffled, Trained, TrainingConfig
from kgkit.training.runs import Record, recorded

if TYPE_CHECKING:
    from kgkit.training.loop import train

__all__ = ["Batches", "Record", "Shuffled", "Trained", "TrainingConfig", "recorded", "train"]


def __getattr__(name: str) -> Any:
    if name != "train":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kgkit.training.loop import train

    return train
