"""One training loop for every head: plain torch, on one device.

    folder/
      checkpoint.pt             what a training that was stopped needs to go on as if nothing had happened
      best-STEP.safetensors     the weights that `evaluate` liked best
      curve.jsonl               see `curve`

A *step* moves the optimizers once, by the gradient of the next batch of the epoch's order.

Files are replaced as a whole. What a step does follows from the weights, the optimizers' states, the random
states and the number of steps done; all that is in the checkpoint, which is written between two steps.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import set_seed

from kgkit.encoder.device import computes_bf16, pick_device
from kgkit.errors import BuildFailed, StoppedTraining, UsageError
from kgkit.files import replacing
from kgkit.training import resuming
from kgkit.training.batches import Batches, Carried
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import CURVE, Curve, TrainingState
from kgkit.training.resuming import put_weights, weights_of
from kgkit.types import Progress
from kgkit.versions import write_failures

__all__ = ["Evaluate", "Loss", "train"]

_log = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint.pt"
_END: Final = object()

Loss = Callable[[nn.Module, Any], Tensor | tuple[Tensor, float]]
"""From the model and a batch to the mean loss of its items, and their number or nothing.

A batch of no items moves nothing.
"""

Evaluate = Callable[[Any], float | Mapping[str, float]]
"""From the model to a number, or to several by name, of which the first decides; higher is better."""


def train(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    optimizers: Sequence[Optimizer],
    config: TrainingConfig,
    folder: Path,
    *,
    evaluate: Evaluate | None = None,
    carried: Carried | None = None,
    progress: Progress | None = None,
    resume: bool = False,
) -> TrainingState:
    """Train a model in place; it ends in evaluation mode, with its best weights if there was an evaluation.

    It is trained in training mode as a whole: a part that shall stay in evaluation mode (a frozen encoder)
    is kept there by the model's own method `train`. Parameters that need no gradient are not saved: whoever
    goes on with a training makes them anew. Ctrl-C and SIGTERM wait for the end of the step and leave a
    checkpoint; a second one does not wait. The seeds of Python, NumPy and torch are set.

    Args:
        model: on any device; it is moved.
        batches: see `Batches`.
        loss: see `Loss`; computed under autocast where the settings say bf16.
        optimizers: dense and sparse ones; together they have what is to be trained.
        config: settings.
        folder: for the files.
        evaluate: see `Evaluate`; called after each epoch and at the end, without gradients in evaluation
            mode. It may draw random numbers: training does not notice.
        carried: what the loss carries from batch to batch; None: nothing.
        progress: callback after each step.
        resume: go on from the checkpoint in *folder*, if there is one; else begin, and forget what is there.

    Raises:
        StoppedTraining: on Ctrl-C or SIGTERM, once the checkpoint is there.
        BuildFailed: if the loss, the gradient, or the weights that are evaluated or returned are not finite.
        UsageError: if there are no batches, or fewer than promised; for a checkpoint of other settings.
        WriteFailed: if the disk refuses; what was written before stays, and the training can go on from it.
    """
    return _Training(model, batches, loss, optimizers, config, folder, evaluate, carried, progress).run(
        resume
    )


@dataclass
class _Training:
    """A training under way; what it is told is what `train` is."""

    model: nn.Module
    batches: Batches
    loss: Loss
    optimizers: Sequence[Optimizer]
    config: TrainingConfig
    folder: Path
    evaluate: Evaluate | None
    carried: Carried | None
    progress: Progress | None

    def __post_init__(self) -> None:
        if not len(self.batches):
            raise UsageError("there is nothing to train on: no batches")
        self.device = pick_device(self.config.device)
        bf16 = computes_bf16(self.config.bf16, self.device)
        self.autocast = partial(torch.autocast, self.device.type, torch.bfloat16, bf16)
        self.model.to(self.device)
        self.groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        self.rates = [group.setdefault("initial_lr", group["lr"]) for group in self.groups]
        self.total = self.config.steps or self.config.epochs * len(self.batches)
        self.state = TrainingState()
        self.ctrl_c = resuming.Interrupts()
        self.checkpointed: float | None = None  # the step of the best weights that the checkpoint speaks of
        self.since = self.saved = time.monotonic()

    def run(self, resume: bool) -> TrainingState:
        """Do all that is left to do."""
        set_seed(self.config.seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        if resume and (self.folder / CHECKPOINT).exists():
            self._resume()
        else:
            for name in (CURVE, CHECKPOINT):
                (self.folder / name).unlink(missing_ok=True)
            self._drop_weights(keep=set())
        self.curve = Curve(self.folder, self.state.lines)
        self.model.train()
        try:
            with self.ctrl_c.waiting():
                self._steps()
        except KeyboardInterrupt as error:
            if self.ctrl_c.busy:
                raise
            self._save()
            raise self._stopped(error) from error
        finally:
            self.curve.close()
            self.model.eval()
        if self.ctrl_c.waits:  # it came when no step was left to wait for
            raise self._stopped(self.ctrl_c.error())
        if self.state.best is not None:
            put_weights(self.model, load_file(_best(self.folder, self.state.best["step"])))
        return self.state

    def _stopped(self, cause: KeyboardInterrupt) -> StoppedTraining:
        """Return the error of a training that has kept a checkpoint, and say so."""
        stopped = StoppedTraining(self.state.steps, self.total, cause)
        _log.warning("%s, with a checkpoint", stopped)
        return stopped

    def _steps(self) -> None:
        state, batches, due = self.state, None, False
        while True:
            if self._evaluation_is_due():
                self._check_weights()
                self._evaluate()
                due = True  # what an evaluation took is not done again
            if state.steps >= self.total or state.stopped:
                self._check_weights()
                break
            if due:
                self._save()
            epoch, step = divmod(state.steps, len(self.batches))
            if batches is None or not step:
                batches = iter(self.batches.epoch(epoch, range(step, len(self.batches))))
            due = self._step(batches)
        self._save()

    # -- a step -----------------------------------------------------------------

    def _step(self, batches: Iterator[Any]) -> bool:
        """Move the optimizers once; say whether it is time for a checkpoint."""
        state, self.ctrl_c.busy = self.state, True
        for group, rate in zip(self.groups, self.rates, strict=True):
            group["lr"] = rate * self.config.rate(state.steps, self.total)
        mean, items = self._loss_of(batches)
        sums = mean * items
        torch.autograd.backward(sums)
        due = time.monotonic() - self.saved >= self.config.checkpoint_seconds
        numbers = torch.stack([sums.detach(), torch.tensor(items, device=self.device)])
        loss, items = numbers.tolist()
        # A step without items has no gradient.
        loss, share = (loss / items, 1 / items) if items else (0.0, 0.0)
        self._demand_finite("loss", loss)
        norm = self._move(share) if items else self._skip_step()
        state.steps += 1
        if items:
            state.losses.append(loss)
        if state.steps % self.config.curve_every == 0 or state.steps == self.total:
            lately = sum(state.losses) / max(1, len(state.losses))
            rates = [group["lr"] for group in self.groups]
            self._write(loss=lately, norm=norm, lr=rates, seconds=round(self._spent(), 1))
            state.losses = []
        self.ctrl_c.busy = False
        if self.progress is not None:
            self.progress(f"training, loss {loss:.3f}, step", state.steps, self.total)
        if self.ctrl_c.waits:
            raise self.ctrl_c.error()
        return due

    def _loss_of(self, batches: Iterator[Any]) -> tuple[Tensor, float]:
        batch = next(batches, _END)
        if batch is _END:
            raise UsageError(f"the batches of an epoch ended early: there were to be {len(self.batches)}")
        with self.autocast():
            loss = self.loss(self.model, _to_device(batch, self.device))
        mean, weight = loss if isinstance(loss, tuple) else (loss, 1.0)
        return mean.float(), float(weight)

    def _move(self, share: float) -> float:
        """Multiply the gradients with *share*, clip them, follow them; return how long they were."""
        numbers = []
        for parameter in (parameter for group in self.groups for parameter in group["params"]):
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
                numbers.append(parameter.grad.values())
            elif parameter.grad is not None:
                numbers.append(parameter.grad)
        norm = float(nn.utils.get_total_norm(numbers)) * share
        self._demand_finite("length of the gradient", norm)
        if self.config.clip is not None and norm > self.config.clip:
            share *= self.config.clip / norm
        if numbers and share != 1:
            torch._foreach_mul_(numbers, share)
        for optimizer in self.optimizers:
            optimizer.step()
        self.model.zero_grad(set_to_none=True)
        return norm

    def _skip_step(self) -> float:
        """Let a step without items move nothing."""
        self.model.zero_grad(set_to_none=True)
        return 0.0

    def _check_weights(self) -> None:
        """Make sure that the last step has left weights that something can be computed with.

        Raises:
            BuildFailed: if their length is not finite in float32.
        """
        weights = [parameter.detach() for group in self.groups for parameter in group["params"]]
        self._demand_finite("length of the weights", float(nn.utils.get_total_norm(weights)), ended=True)

    def _demand_finite(self, what: str, value: float, *, ended: bool = False) -> None:
        """Make sure that a number is finite; *ended*: of the step that has ended, not of the one under way.

        Raises:
            BuildFailed: if it is not.
        """
        if not math.isfinite(value):
            rates = ", ".join(f"{group['lr']:.3g}" for group in self.groups)
            step = f"{'after' if ended else 'in'} step {self.state.steps + (not ended)} of {self.total}"
            raise BuildFailed(
                f"the {what} is {value} {step}, at learning rate {rates}: a lower one, or a longer warm-up, "
                "may help"
            )

    def _write(self, **values: Any) -> None:
        self.curve.add(self.state.steps, epoch=self.state.steps / len(self.batches), **values)

    # -- evaluation -------------------------------------------------------------

    def _evaluation_is_due(self) -> bool:
        step = self.state.steps
        if self.evaluate is None or not step or (step % len(self.batches) and step != self.total):
            return False
        return all(evaluation["step"] != step for evaluation in self.state.evaluations[-1:])

    def _evaluate(self) -> None:
        assert self.evaluate is not None
        state, before = self.state, resuming.random_states(self.device)
        self.model.eval()
        try:
            with torch.no_grad(), self.autocast():
                metrics = self.evaluate(self.model)
        finally:
            resuming.set_random_states(before, self.device)
            self.model.train()
        self.ctrl_c.busy = True
        named = metrics if isinstance(metrics, Mapping) else {"metric": metrics}
        values = {name: float(value) for name, value in named.items()}
        [(name, value), *_] = values.items()
        self._write(**values)
        state.evaluations.append({"step": state.steps, "epoch": state.steps / len(self.batches), **values})
        mark = -math.inf if state.best is None else state.best[name]
        gained = value > mark  # never, if it is not a number
        state.waited = 0 if gained else state.waited + 1
        state.stopped = bool(self.config.patience) and state.waited >= self.config.patience
        if gained:
            state.best = state.evaluations[-1]
            weights = {key: tensor.contiguous() for key, tensor in weights_of(self.model).items()}
            self._replace(_best(self.folder, state.steps), lambda path: save_file(weights, path))
            self._drop_weights(keep={state.steps, self.checkpointed})
        self.ctrl_c.busy = False

    # -- files ------------------------------------------------------------------

    def _save(self) -> None:
        """Write the checkpoint."""
        state = self.state
        state.seconds, state.lines = self._spent(), self.curve.lines
        saved = {
            "settings": self._settings(),
            "state": asdict(state),
            "random": [resuming.random_states(self.device)],
            "weights": weights_of(self.model),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "carried": None if self.carried is None else self.carried.state_dict(),
        }
        self._replace(self.folder / CHECKPOINT, lambda path: torch.save(saved, path))
        self.checkpointed = state.best["step"] if state.best is not None else None
        self._drop_weights(keep={self.checkpointed})
        self.saved = time.monotonic()

    def _replace(self, path: Path, write: Callable[[Path], object]) -> None:
        """Replace a file of the folder by what *write* writes.

        Raises:
            WriteFailed: if the disk refuses; the older file is as it was.
        """
        with write_failures(self.folder), replacing(path) as new:
            write(new)

    def _resume(self) -> None:
        saved = torch.load(self.folder / CHECKPOINT, weights_only=True, map_location="cpu")
        for name, value in self._settings().items():
            if (had := saved["settings"].get(name)) != value:
                differs = f"the training in {self.folder} had {name} {had}, this one has {value}"
                raise UsageError(f"{differs}: go on with the same settings, or begin anew")
        put_weights(self.model, saved["weights"])
        for optimizer, state in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self.groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        if self.carried is not None:
            self.carried.load_state_dict(saved["carried"])
        self.state = TrainingState(**saved["state"])
        self.checkpointed = self.state.best["step"] if self.state.best is not None else None
        resuming.set_random_states(saved["random"][0], self.device)
        if 0 < self.state.steps < self.total:
            _log.warning("goes on after %s of %s steps", f"{self.state.steps:,}", f"{self.total:,}")

    def _settings(self) -> dict[str, Any]:
        """Return what a training must have in common with the one it goes on with."""
        decides = asdict(self.config) | {"batches": len(self.batches)}
        for free in ("device", "checkpoint_seconds"):
            del decides[free]
        return decides | {"learning rates": self.rates}

    def _drop_weights(self, keep: set[float | None]) -> None:
        paths = {_best(self.folder, step) for step in keep if step is not None}
        for path in set(self.folder.glob("best-*.safetensors")) - paths:
            path.unlink()

    def _spent(self) -> float:
        now = time.monotonic()
        self.state.seconds, self.since = self.state.seconds + now - self.since, now
        return self.state.seconds


def _best(folder: Path, step: float) -> Path:
    return folder / f"best-{step:.0f}.safetensors"


def _to_device(batch: Any, device: torch.device) -> Any:
    """Return a batch on a device: what has a method `to`, and lists, tuples and dictionaries of it."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {name: _to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_to_device(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
