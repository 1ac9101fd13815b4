"""What goes on beside the training of TuckER: rankings, the best state, checkpoints, progress.

    checkpoint.pt    model, optimizer, scheduler, torch's random states, epoch and step, the curve
    best.pt          the model that ranked best, and its epoch
    curve.jsonl      a line for each epoch: loss, seconds, the ranking if there was one

Each file is replaced as a whole. A run that was killed begins again at its checkpoint and does what it would
have done: batches are drawn from the epoch and the step, everything else from torch's generator.
"""

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from pykeen.training.callbacks import TrainingCallback

from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.ranking import RankingScores, ranks
from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop
from kgkit.embedding.tucker.true_tails import TrueTails
from kgkit.files import replacing
from kgkit.types import Progress
from kgkit.versions import write_failures

logger = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint.pt"
BEST: Final = "best.pt"
CURVE: Final = "curve.jsonl"


class Watch(TrainingCallback):
    """Ranks, remembers, saves and stops.

    Args:
        folder: folder for the files.
        config: settings: how often, and when to stop.
        questions: (Q, 3) questions to be ranked, relations as the model numbers them; may be none.
        true_tails: true tails.
        candidates: entities to rank against; None for all.
        steps: number of steps of an epoch.
        progress: callback that is told steps done and steps at most.
    """

    def __init__(
        self,
        folder: Path,
        config: TuckERConfig,
        *,
        questions: np.ndarray,
        true_tails: TrueTails,
        candidates: np.ndarray | None,
        steps: int,
        progress: Progress | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.folder, self.config, self.steps = folder, config, steps
        self.questions, self.true_tails, self.candidates = questions, true_tails, candidates
        self.progress = progress
        self.curve: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self.mark = -math.inf  # the best MRR so far, of whatever state
        self.waited = 0  # rankings since the last gain
        self.step = 0  # of this epoch
        self.loss_sum = 0.0  # of these steps together
        self.seconds = 0.0  # of training, in all runs
        self._random: list[torch.Tensor] | None = None
        self._since = self._saved = time.monotonic()

    # -- called by the loop -----------------------------------------------------

    def pre_batch(self, **kwargs: Any) -> None:
        """Save, if it is time: here all of the last step has been done, and nothing of the next."""
        if self._random is not None:  # what the loop drew on its way here it had drawn before
            torch.set_rng_state(self._random[0])
            if self.model.device.type == "cuda" and len(self._random) > 1:
                torch.cuda.set_rng_state(self._random[1], self.model.device)
            self._random = None
        if time.monotonic() - self._saved >= self.config.checkpoint_seconds and self._finished_steps():
            self.save()

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **kwargs: Any) -> None:
        """Add up the loss: PyKEEN's sum of an epoch that was gone on with lacks the steps before."""
        self.loss_sum += batch_loss

    def post_batch(self, epoch: int, batch: Any, **kwargs: Any) -> None:
        """Count the step."""
        self.step += 1
        if self.progress is not None:
            self.progress("training", self._finished_steps(), self.config.epochs * self.steps)

    def post_epoch(self, epoch: int, epoch_loss: float, **kwargs: Any) -> None:
        """Rank, if it is time, and stop, if nothing has been gained for long."""
        loss = self.loss_sum / self.step
        self.step, self.loss_sum = 0, 0.0
        line: dict[str, Any] = {"epoch": epoch, "loss": loss, "seconds": round(self._spent(), 1)}
        if len(self.questions) and (epoch % self.config.evaluate_every == 0 or epoch == self.config.epochs):
            line |= asdict(
                RankingScores.of(ranks(self.model, self.questions, self.true_tails, self.candidates))
            )
            self._compare(line)
        self.curve.append(line)
        text = "".join(json.dumps(entry) + "\n" for entry in self.curve)
        self._replace(CURVE, lambda path: path.write_text(text, encoding="utf-8"))

    # -- the rest ---------------------------------------------------------------

    def _compare(self, line: dict[str, Any]) -> None:
        logger.info("epoch %d: loss %.4f, MRR %.4f", line["epoch"], line["loss"], line["mrr"])
        # Small gains are kept as the best, but do not buy more time.
        gained = line["mrr"] > self.mark and line["mrr"] >= self.mark + self.config.min_gain
        self.waited = 0 if gained else self.waited + 1
        self.mark = max(self.mark, line["mrr"])
        if self.best is None or line["mrr"] > self.best["mrr"]:
            self.best = line
            state = {"epoch": line["epoch"], "model": self.model.state_dict()}
            self._replace(BEST, lambda path: torch.save(state, path))
        if self.stopped:
            self.training_loop._should_stop = True

    def save(self) -> None:
        """Write the checkpoint."""
        loop = self.training_loop
        random = [torch.get_rng_state()]
        if loop.device.type == "cuda":
            random.append(torch.cuda.get_rng_state(loop.device))
        state = {
            "model": loop.model.state_dict(),
            "optimizer": loop.optimizer.state_dict(),
            "scheduler": loop.lr_scheduler.state_dict() if loop.lr_scheduler is not None else None,
            "random": random,
            "epoch": loop._epoch,
            "step": self.step,
            "loss": self.loss_sum,
            "losses": loop.losses_per_epochs,
            "curve": self.curve,
            "best": self.best,
            "mark": self.mark,
            "waited": self.waited,
            "seconds": self._spent(),
        }
        self._replace(CHECKPOINT, lambda path: torch.save(state, path))
        self._saved = time.monotonic()

    def _replace(self, name: str, write: Callable[[Path], object]) -> None:
        """Replace a file of the folder; raises `WriteFailed` if the disk refuses."""
        with write_failures(self.folder), replacing(self.folder / name) as new:
            write(new)

    def resume(self, loop: SharedNegativesTrainingLoop) -> bool:
        """Put *loop* and this where the checkpoint was made; False if there is none."""
        path = self.folder / CHECKPOINT
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True, map_location="cpu")
        loop.model.load_state_dict(state["model"])
        assert loop.optimizer is not None
        loop.optimizer.load_state_dict(state["optimizer"])
        if loop.lr_scheduler is not None:
            loop.lr_scheduler.load_state_dict(state["scheduler"])
        loop._epoch, loop.first_step = state["epoch"], state["step"]
        loop.losses_per_epochs = state["losses"]
        self.curve, self.mark, self.waited = state["curve"], state["mark"], state["waited"]
        self.step, self.loss_sum = state["step"], state["loss"]
        self.seconds, self._random = state["seconds"], state["random"]
        if state["best"] is not None and state["best"]["epoch"] == self._best_epoch():
            self.best = state["best"]
        return True

    def best_state(self, device: torch.device) -> dict[str, torch.Tensor]:
        """Return the model that ranked best."""
        state: dict[str, torch.Tensor] = torch.load(
            self.folder / BEST, weights_only=True, map_location=device
        )["model"]
        return state

    def _best_epoch(self) -> int | None:
        """Return whose state is kept: a later one's than the checkpoint knows, if the run went on behind it.

        Such a state cannot be told from what this run will make of that epoch: on a GPU it is another.
        """
        path = self.folder / BEST
        if not path.exists():
            return None
        return int(torch.load(path, weights_only=True, map_location="cpu", mmap=True)["epoch"])

    @property
    def stopped(self) -> bool:
        """Whether nothing has been gained for as long as the settings allow."""
        return bool(self.config.patience) and self.waited >= self.config.patience

    def _finished_steps(self) -> int:
        return int(self.training_loop._epoch) * self.steps + self.step

    def _spent(self) -> float:
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        return self.seconds
