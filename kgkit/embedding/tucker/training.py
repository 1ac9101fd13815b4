"""Training TuckER: PyKEEN's model, with negatives that a batch shares.

PyKEEN's loops contract the core for each triple, and hold scores against many tails as a tensor of batch x
tails x width; here all scores are one product of queries and candidates (`kgkit.embedding.tucker.scoring`).

    checkpoint.pt    model, optimizers, the curve
    best-EPOCH.pt    the model that ranked best

Each file is replaced as a whole. Everything that an epoch draws follows from the seed and its number, so a
run that goes on with a checkpoint comes to the same numbers on a CPU.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from kgkit.embedding.tucker import config as fixed
from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.triples import Split, TrueTails, both_ways
from kgkit.errors import BuildFailed, MissingExtra
from kgkit.files import replacing
from kgkit.types import Progress
from kgkit.versions import write_failures

try:
    import torch
    from pykeen.models import TuckER
    from pykeen.triples import CoreTriplesFactory
    from pykeen.utils import NoRandomSeedNecessary
except ImportError as error:  # pragma: no cover
    raise MissingExtra(error.name or "pykeen", "embed") from error

from kgkit.embedding.tucker.batches import SharedBatches
from kgkit.embedding.tucker.scoring import RankingScores, add_gradients, ranks, tables

CHECKPOINT: Final = "checkpoint.pt"

_CHECKPOINT_SECONDS = 300.0  # between two checkpoints
_ENTITY_STD: Final = 0.001  # of the normal numbers that entities begin as
_ROW_FACTOR: Final = 100.0  # of the entities' learning rate
_ROW_EPS: Final = 1e-4  # gradients much smaller than it move their rows but little
_ROW_DECAY: Final = 3.3  # what rows lose of themselves in an epoch by being drawn, in learning rates
_LR_DECAY: Final = 0.85  # factor of the learning rates after each epoch

_log = logging.getLogger(__name__)

Curve = list[dict[str, Any]]
"""A line for each epoch: its number, loss, seconds, and the ranking."""


@dataclass(frozen=True, kw_only=True)
class TrainedTuckER:
    """A trained model.

    Attributes:
        model: model in the state that ranked best, or the last if nothing was ranked.
        curve: a line for each epoch.
        best: the line of the curve that the state belongs to.
    """

    model: TuckER
    curve: Curve
    best: dict[str, Any]


def train(
    parts: Split,
    entities: int,
    relations: int,
    config: TuckERConfig,
    folder: Path,
    device: "torch.device",
    *,
    progress: Progress | None = None,
) -> TrainedTuckER:
    """Train on `parts.train`, rank `parts.held_out`, keep what a resumed run needs in *folder*.

    Args:
        parts: relations numbered from 0.
        entities: number of entities.
        relations: number of relations.
        config: settings.
        folder: folder of checkpoints; if it holds one, the run goes on from there.
        device: torch device to train on.
        progress: callback that is told steps done and steps at most.

    Raises:
        BuildFailed: if the loss is not finite.
        WriteFailed: if the disk refuses.
    """
    batches = SharedBatches(
        both_ways(parts.train),
        num_entities=entities,
        batch_size=fixed.BATCH_SIZE,
        num_negatives=fixed.NEGATIVES,
        seed=config.seed,
    )
    questions, true_tails = both_ways(parts.held_out), TrueTails(both_ways(np.concatenate(parts)))
    candidates = _candidates(entities, config.seed)
    unchecked: Any = torch.sparse.check_sparse_tensor_invariants
    with torch.random.fork_rng(devices=[]), unchecked(enable=False):  # else Adagrad warns
        torch.manual_seed(config.seed)
        model = new_model(parts.train, entities, relations, config.dim).to(device)
        optimizers = _optimizers(model)
        curve = _resume(folder, model, optimizers)
        saved = time.monotonic()
        while len(curve) < config.epochs and not stopped(curve):
            began, epoch = time.monotonic(), len(curve) + 1
            torch.manual_seed(int(np.random.default_rng([config.seed, 3, epoch]).integers(2**31)))
            loss = _train_epoch(model, batches, optimizers, epoch, config, progress)
            line = {"epoch": epoch, "loss": loss, "seconds": round(time.monotonic() - began, 1)}
            if len(questions):
                found = ranks(model.eval(), questions, true_tails, candidates)
                line |= asdict(RankingScores.of(found))
                _log.info("epoch %d: loss %.4f, MRR %.4f", epoch, loss, line["mrr"])
            curve.append(line)
            if len(questions) and best_line(curve) is line:
                _save(folder / _best_file(line), model.state_dict())
            if time.monotonic() - saved >= _CHECKPOINT_SECONDS:
                _save_checkpoint(folder, model, optimizers, curve)
                saved = time.monotonic()
    best = best_line(curve)
    if (path := folder / _best_file(best)).exists():
        model.load_state_dict(torch.load(path, weights_only=True, map_location=device))
    return TrainedTuckER(model=model.eval(), curve=curve, best=best)


def new_model(triples: np.ndarray, entities: int, relations: int, dim: int) -> TuckER:
    """Return PyKEEN's model before it has learnt, drawn from torch's generator; *triples* are (T, 3)."""
    factory = CoreTriplesFactory(torch.from_numpy(triples), entities, relations, create_inverse_triples=True)
    model = TuckER(
        triples_factory=factory,
        embedding_dim=dim,
        relation_dim=fixed.RELATION_DIM,
        dropout_0=fixed.INPUT_DROPOUT,
        dropout_1=fixed.RELATION_DROPOUT,
        dropout_2=fixed.HIDDEN_DROPOUT,
        entity_initializer=partial(torch.nn.init.normal_, std=_ENTITY_STD),
        random_seed=NoRandomSeedNecessary,  # a number would seed NumPy's generator
    )
    tables(model)[0]._embeddings.sparse = True  # a step reads and writes the rows of its entities only
    return model


def best_line(curve: Curve) -> dict[str, Any]:
    """Return the line of the best mean reciprocal rank, the first of equal ones; the last if none has one."""
    return max(curve, key=lambda line: line["mrr"]) if "mrr" in curve[-1] else curve[-1]


def stopped(curve: Curve) -> bool:
    """Say whether the last rankings have gained too little; small gains count from the best on."""
    mark, waited = -math.inf, 0
    for line in curve:
        mrr = line.get("mrr", math.inf)
        waited = 0 if mrr >= mark + fixed.MIN_GAIN else waited + 1
        mark = max(mark, mrr)
    return waited >= fixed.PATIENCE


def _train_epoch(
    model: TuckER,
    batches: SharedBatches,
    optimizers: "list[torch.optim.Optimizer]",
    epoch: int,
    config: TuckERConfig,
    progress: Progress | None,
) -> float:
    """Move the model along the batches of an epoch; return their mean loss."""
    lr = config.lr * _LR_DECAY ** (epoch - 1)
    rate = lr * _ROW_FACTOR
    for optimizer, its_lr in zip(optimizers, (rate, lr), strict=True):
        optimizer.param_groups[0]["lr"] = its_lr
    share = min(batches.num_negatives / batches.num_entities, 1.0)  # of the steps, those that draw a row
    decay = min(rate * _ROW_DECAY / max(len(batches) * share, 1.0), 1.0)
    table = tables(model)[0]._embeddings.weight
    model.train()
    total = 0.0
    for step, batch in enumerate(batches.epoch(epoch - 1), 1):
        model.zero_grad()
        total += add_gradients(model, batch.to(table.device))
        if not math.isfinite(total):
            raise BuildFailed(
                f"the loss of epoch {epoch} is not finite, so nothing was published: a smaller lr than "
                f"{config.lr:g} may do, TuckERConfig(lr={config.lr / 10:g}, …)"
            )
        table.grad = table.grad.coalesce()
        with torch.no_grad():
            table[table.grad.indices()[0]] *= 1 - decay
        for optimizer in optimizers:
            optimizer.step()
        if progress is not None:
            progress("training", (epoch - 1) * len(batches) + step, config.epochs * len(batches))
    return total / len(batches)


def _optimizers(model: TuckER) -> "list[torch.optim.Optimizer]":
    """Return Adagrad for the entities, which leaves rows without a gradient alone, and Adam for the rest."""
    table = tables(model)[0]._embeddings.weight
    others = [parameter for parameter in model.parameters() if parameter is not table]
    return [torch.optim.Adagrad([table], eps=_ROW_EPS), torch.optim.Adam(others)]


def _candidates(entities: int, seed: int) -> np.ndarray | None:
    if entities <= fixed.CANDIDATES:
        return None
    generator = np.random.default_rng([seed, 2])
    return np.sort(generator.choice(entities, fixed.CANDIDATES, replace=False))


def _best_file(line: dict[str, Any]) -> str:
    return f"best-{line['epoch']}.pt"


def _save_checkpoint(
    folder: Path, model: TuckER, optimizers: "list[torch.optim.Optimizer]", curve: Curve
) -> None:
    """Write the checkpoint; states that were the best before are not needed any more."""
    parts: list[Any] = [model, *optimizers]
    states = [part.state_dict() for part in parts]
    _save(folder / CHECKPOINT, {"states": states, "curve": curve})
    for path in folder.glob("best-*.pt"):
        if path.name != _best_file(best_line(curve)):
            path.unlink()


def _save(path: Path, state: Any) -> None:
    write: Callable[[Path], object] = partial(torch.save, state)
    with write_failures(path.parent), replacing(path) as new:
        write(new)


def _resume(folder: Path, model: TuckER, optimizers: "list[torch.optim.Optimizer]") -> Curve:
    """Put the model and its optimizers where the checkpoint was made; return the curve so far."""
    path = folder / CHECKPOINT
    if not path.exists():
        return []
    state = torch.load(path, weights_only=True, map_location="cpu")
    parts: list[Any] = [model, *optimizers]
    for part, saved in zip(parts, state["states"], strict=True):
        part.load_state_dict(saved)
    curve: Curve = state["curve"]
    return curve
