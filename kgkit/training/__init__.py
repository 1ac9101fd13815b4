"""One training loop for every head, and the diary of what was trained and evaluated.

    loop      from a model, batches and a loss to trained weights; checkpoints, several processes
    config    its settings
    batches   what it reads
    curve     its state, and the curves of loss and metrics
    resuming  what it needs to be stopped, and to go on
    runs      a row in the catalog for a training or an evaluation

Importing this package loads no torch; what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from kgkit.training.batches import Batches, Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.runs import RunRecord, recorded

if TYPE_CHECKING:
    from kgkit.training.loop import train

__all__ = ["Batches", "RunRecord", "Shuffled", "TrainingConfig", "TrainingState", "recorded", "train"]


def __getattr__(name: str) -> Any:
    if name != "train":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kgkit.training.loop import train

    return train
