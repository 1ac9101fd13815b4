"""One training loop for every head.

    loop      from a model, batches and a loss to trained weights; checkpoints, several processes
    config    its settings
    batches   what it reads
    curve     its state, and the curves of loss and metrics
    resuming  what it needs to be stopped, and to go on

`recorded` keeps a training in the catalog, see `kgkit.catalog.runs`. Importing this package loads no torch;
what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from kgkit.catalog.runs import RunRecord, recorded
from kgkit.lazy import lazy_attributes
from kgkit.training.batches import Batches, Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState

if TYPE_CHECKING:
    from kgkit.training.loop import train

__all__ = ["Batches", "RunRecord", "Shuffled", "TrainingConfig", "TrainingState", "recorded", "train"]

__getattr__ = lazy_attributes(__name__, {"train": ".loop"})
