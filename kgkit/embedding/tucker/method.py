"""TuckER (Balažević et al. 2019, "TuckER: Tensor Factorization for Knowledge Graph Completion"), by PyKEEN.

    N  entities    T  triples    D  entity width

From the triples of a knowledge base to vectors of its entities. The model is PyKEEN's, trained through
`SharedNegativesTrainingLoop`, with an inverse for each relation; held-out triples tell how good it is.

Departures from the paper, in every preset: dropout of the contracted core is drawn for each relation of a
step, not for each triple. The preset `cpu` also replaces binary cross entropy over all entities by a softmax
over a sample, and the optimizer of the entity table by Adagrad with decay.
"""

import gc
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.triples import Split, split, stored_triples
from kgkit.encoder import pick_device
from kgkit.errors import BuildFailed, MissingExtra, UsageError
from kgkit.files import replacing
from kgkit.types import Progress
from kgkit.vectors import Vectors, Work
from kgkit.versions import write_failures

try:
    import torch
    from pykeen.models import TuckER
    from pykeen.training.training_loop import NonFiniteLossError
    from pykeen.triples import CoreTriplesFactory
    from pykeen.utils import NoRandomSeedNecessary
    from safetensors.torch import save_file
except ImportError as error:  # pragma: no cover
    raise MissingExtra(error.name or "pykeen", "embed") from error

from kgkit.embedding.tucker.rows import RowOptimizer
from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop
from kgkit.embedding.tucker.true_tails import TrueTails
from kgkit.embedding.tucker.watch import CURVE, Watch

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

__all__ = ["TrainedTuckER", "TuckERConfig", "both_ways", "embed_tucker", "pykeen_settings", "train"]

logger = logging.getLogger(__name__)

METHOD: Final = "tucker"
REMAINING: Final = "rest.safetensors"
_TABLE: Final = "entity_representations.0._embeddings.weight"
_NOT_NUMBERS: Final = ("checkpoint_seconds", "name")  # settings that do not decide the numbers


@dataclass(frozen=True, kw_only=True)
class TrainedTuckER:
    """What came out of a training.

    Attributes:
        model: model in the state that ranked best, or the last if nothing was ranked.
        best: the line of the curve that it belongs to, if it was ranked.
        curve: a line for each epoch.
        seconds: seconds of training and ranking, in all runs.
        settings: settings as PyKEEN's pipeline would take them.
    """

    model: TuckER
    best: dict[str, Any] | None
    curve: list[dict[str, Any]]
    seconds: float
    settings: dict[str, Any]


def embed_tucker(
    kb: "KnowledgeBase",
    config: TuckERConfig | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Train TuckER on the facts of a knowledge base and publish the entities' vectors.

    Entities of which no fact tells have a row of zeros. A call with the same
    settings goes on where one that was stopped left off, and comes to the same
    numbers on a CPU.

    Args:
        kb: the open knowledge base.
        config: settings; the preset `cpu` if left out.
        resume: whether to go on with a stopped job; False begins again.
        progress: callback that is told steps done and steps at most.

    Raises:
        UsageError: if the knowledge base has no facts, or the device is not there.
        KBBusy: if another process is making these vectors.
        BuildFailed: if training diverges.
        WriteFailed: if the disk refuses.
    """
    config = config or TuckERConfig.preset("cpu")
    device = pick_device(config.device)
    triples = stored_triples(kb)
    if not len(triples):
        raise UsageError(
            f"{kb.name!r} has no facts, so there is nothing for TuckER to learn from; "
            "vectors of its texts can be had: `kgkit embed --method text`"
        )
    relations = [relation for relation, _ in kb.store.relations]
    used = np.unique(triples[:, 1])
    triples[:, 1] = np.searchsorted(used, triples[:, 1])
    decides = {key: value for key, value in asdict(config).items() if key not in _NOT_NUMBERS}
    with Work(kb, config.name, {"method": METHOD, **decides}, resume=resume) as work:
        count = min(round(config.held_out * len(triples)), config.held_out_at_most)
        parts = split(triples, count, kb.id_count, np.random.default_rng([config.seed, 1]))
        trained = train(parts, kb.id_count, len(used), config, work.folder, device, progress=progress)
        _write(trained.model, triples, work)
        return work.publish(
            METHOD,
            files=[REMAINING, CURVE],
            config={
                "method": METHOD, **decides, "relations": [relations[index] for index in used],
                "triples": {"train": len(parts.train), "held_out": len(parts.held_out)},
                "pykeen": trained.settings,
            },
            results={
                **(trained.best or {"epoch": len(trained.curve)}), "epochs": len(trained.curve),
                "seconds": round(trained.seconds, 1),
                "random_mrr": _random_mrr(config, kb.id_count),
            },
        )  # fmt: skip


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
    """
    factory = CoreTriplesFactory(
        torch.from_numpy(parts.train), entities, relations, create_inverse_triples=True
    )
    rows = len(parts.train) * 2
    if config.scoring == "all":
        rows = len(np.unique(both_ways(parts.train)[:, :2], axis=0))
    steps = max(rows // config.batch_size, 1)
    settings = pykeen_settings(config, entities, steps)
    with _quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        loop = _loop(factory, config, settings, device)
        watch = Watch(
            folder, config,
            questions=both_ways(parts.held_out),
            true_tails=TrueTails(both_ways(np.concatenate(parts))),
            candidates=_candidates(config, entities),
            steps=steps,
            progress=progress,
        )  # fmt: skip
        resumed = watch.resume(loop)
        if not watch.stopped:
            try:
                loop.train(
                    factory, num_epochs=config.epochs, batch_size=config.batch_size,
                    label_smoothing=config.label_smoothing, continue_training=resumed, callbacks=watch,
                    use_tqdm=False, checkpoint_directory=folder,
                )  # fmt: skip
            except NonFiniteLossError as error:
                raise _divergence(loop, config) from error
    if watch.best is not None:
        loop.model.load_state_dict(watch.best_state(device))
    return TrainedTuckER(
        model=cast("TuckER", loop.model.eval()),
        best=watch.best,
        curve=watch.curve,
        seconds=watch.seconds,
        settings=settings,
    )


def both_ways(triples: np.ndarray) -> np.ndarray:
    """Return triples and their inverses, relations numbered as PyKEEN numbers them: 2r, and 2r + 1."""
    forth = triples * np.array([1, 2, 1])
    back = forth[:, ::-1] + np.array([0, 1, 0])
    return np.concatenate([forth, back])


def pykeen_settings(config: TuckERConfig, entities: int, steps: int) -> dict[str, Any]:
    """Return the settings in the words of `pykeen.pipeline.pipeline`, JSON-like.

    Args:
        config: settings, from which PyKEEN's follow.
        entities: number of entities.
        steps: number of steps of an epoch.
    """
    optimizer: dict[str, Any] = {"lr": config.lr}
    if config.optimizer == "rows":
        decay = config.decay_a_touch(steps, entities)
        optimizer |= {"row_factor": config.row_factor, "row_eps": config.row_eps, "row_decay": decay}
    loop = "kgkit.embedding.tucker.shared_negatives.SharedNegativesTrainingLoop"
    return {
        "model": "TuckER",
        "model_kwargs": {
            "embedding_dim": config.dim,
            "relation_dim": config.relation_dim,
            "dropout_0": config.input_dropout,
            "dropout_1": config.relation_dropout,
            "dropout_2": config.hidden_dropout,
        },
        "entity_std": config.entity_std,
        "dataset_kwargs": {"create_inverse_triples": True},
        "loss": config.loss,
        "optimizer": "RowOptimizer" if config.optimizer == "rows" else "Adam",
        "optimizer_kwargs": optimizer,
        "lr_scheduler": None if config.lr_decay == 1 else "ExponentialLR",
        "lr_scheduler_kwargs": None if config.lr_decay == 1 else {"gamma": config.lr_decay},
        "training_loop": loop,
        "training_loop_kwargs": {
            "num_negatives": config.negatives,
            "grouped": config.scoring == "all",
            "half": config.half,
            "seed": config.seed,
        },
        "training_kwargs": {
            "num_epochs": config.epochs,
            "batch_size": config.batch_size,
            "label_smoothing": config.label_smoothing,
        },
        "random_seed": config.seed,
    }


def _divergence(loop: SharedNegativesTrainingLoop, config: TuckERConfig) -> BuildFailed:
    return BuildFailed(
        f"the loss of epoch {loop._epoch + 1} is not finite, so nothing was published: a smaller lr than "
        f"{config.lr:g} may do, TuckERConfig(lr={config.lr / 10:g}, …)"
    )


def _loop(
    factory: CoreTriplesFactory, config: TuckERConfig, settings: dict[str, Any], device: "torch.device"
) -> SharedNegativesTrainingLoop:
    normal: dict[str, Any] = {}
    if config.entity_std is not None:
        normal = {"entity_initializer": partial(torch.nn.init.normal_, std=config.entity_std)}
    model = TuckER(
        triples_factory=factory,
        loss=config.loss,
        random_seed=cast(int, NoRandomSeedNecessary),  # a number would seed Python's and NumPy's generators
        **settings["model_kwargs"],
        **normal,
    ).to(device)
    return SharedNegativesTrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=RowOptimizer if config.optimizer == "rows" else "Adam",
        optimizer_kwargs=settings["optimizer_kwargs"],
        lr_scheduler=settings["lr_scheduler"],
        lr_scheduler_kwargs=settings["lr_scheduler_kwargs"],
        automatic_memory_optimization=False,
        **settings["training_loop_kwargs"],
    )


def _candidates(config: TuckERConfig, entities: int) -> np.ndarray | None:
    if config.candidates is None or config.candidates >= entities:
        return None
    generator = np.random.default_rng([config.seed, 2])
    return np.sort(generator.choice(entities, config.candidates, replace=False))


def _write(model: TuckER, triples: np.ndarray, work: Work) -> None:
    state = {key: value.cpu().contiguous() for key, value in model.state_dict().items()}
    table = state.pop(_TABLE)
    matrix = work.matrix(*table.shape)
    matrix[:] = 0
    rows = np.unique(triples[:, [0, 2]])
    matrix[rows] = table.numpy()[rows]
    cast("np.memmap[Any, Any]", matrix).flush()
    with write_failures(work.folder), replacing(work.folder / REMAINING) as new:
        save_file(state, new)


def _random_mrr(config: TuckERConfig, entities: int) -> float:
    """Return the mean of 1 / rank if each rank is as likely as the others."""
    count = entities if config.candidates is None else min(config.candidates + 1, entities)
    return float((1.0 / np.arange(1, count + 1)).mean())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyKEEN's and torch's warnings about each other from the user, and its collections short."""
    names = ("pykeen.training.training_loop", "pykeen.models.base", "pykeen.triples.triples_factory")
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    gc.freeze()  # PyKEEN collects garbage after each epoch; what was there before need not be looked at
    try:
        with warnings.catch_warnings():
            # PyKEEN passes the epoch to the scheduler, which torch would rather not be told.
            warnings.filterwarnings(
                "ignore", message="The epoch parameter in `scheduler.step", category=UserWarning
            )
            yield
    finally:
        gc.unfreeze()
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
