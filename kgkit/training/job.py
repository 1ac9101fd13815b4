"""One job for every training: from settings and data to a published model.

    prepare    data are read, and a model is begun            `Plan`
    digest     of settings, plan and the data's checksums     runs/KIND-NAME-DIGEST, which is locked
    train      in that folder; what was stopped goes on       `Outcome`
    save       into a staged folder, then `model.json`        models/NAME/VERSION
    publish    that version is current; older ones go, and what stopped trainings of the name have left

A method says `run_job(KIND, home, name, settings, prepare, files=…, seed=…)`. Its `prepare` returns a `Plan`,
whose function `train` returns the `Outcome`; most call `fit` there.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kgkit.catalog.runs import RunRecord, peak_memory, sha256_of
from kgkit.errors import MissingExtra, UsageError
from kgkit.home import Home
from kgkit.models.card import write_card
from kgkit.models.folder import model_folder, name_in_home
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ManifestType, ModelManifest, Needs
from kgkit.models.publishing import make_manifest, read_trained, stage_model, work_folder, write_manifest
from kgkit.models.registering import catalogue
from kgkit.training.config import TrainingConfig, check_seed
from kgkit.training.curve import TrainingState
from kgkit.types import Progress

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from kgkit.training.batches import Carried

log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What came out of a training.

    Attributes:
        results: what was measured. `seconds` among them are the training's, with what stopped ones took; else
            the job counts them.
        save: function that writes the model's files to the folder that it gets; it gets the results too.
            Returns the fields of the manifest that the job does not know: `task`, `encoder`, `needs`,
            `config` and what is the kind's own.
    """

    results: Mapping[str, Any]
    save: Callable[[Path, Mapping[str, Any]], Mapping[str, Any]]


class Plan(NamedTuple):
    """What a method has prepared for a job.

    Attributes:
        identity: everything beside settings and data that decides what is learnt, as the fingerprint of an
            encoder and the builds of knowledge bases; its `repr` is digested.
        train: function that trains, in the folder that it gets.
        exclusive: False for a training that writes nothing to its folder: the same one may run twice at once.
        needs: what the model reads beside its own folder; it is none of the models among them.
    """

    identity: object
    train: Callable[[Path], Outcome]
    exclusive: bool = True
    needs: Needs = Needs()


class TrainedModel(NamedTuple):
    """A model that was trained.

    Attributes:
        folder: folder of its files; it goes when the name is trained again.
        manifest: its manifest.
    """

    folder: Path
    manifest: ModelManifest


def run_job(
    kind: Kind[Any],
    home: Home,
    name: str,
    settings: object,
    prepare: Callable[[ExitStack], Plan],
    *,
    files: Iterable[Path],
    command: str = "",
    seed: int | None = None,
) -> Path:
    """Train a model and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        kind: kind of the model.
        home: home that the model is kept in; a training that was stopped goes on there.
        name: name of the model.
        settings: settings of the training; their `repr` is digested.
        prepare: function that reads the data and begins a model; what it puts on the stack stays open until
            the model is published.
        files: files that are read, data and those that choose the epoch.
        command: command that trains the like.
        seed: seed of Python, NumPy and torch while the model is begun; None: nothing is trained by torch's
            gradient, and transformers is not needed for it.

    Returns:
        Folder of the model's files, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        UsageError: if *name* cannot name a model, or is that of one which the model needs, *seed* is out of
            range, or a file is a pipe.
        MissingExtra: if torch or transformers is needed and not installed.
        NotThere: if a file is not there.
        DamagedModel: if the fields of the manifest are not those that the kind's has; what was trained is
            kept, and published by the same call once that is mended.
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    folder, began, files = model_folder(home, name), time.monotonic(), [*files]
    if pipe := next((path for path in files if path.is_fifo()), None):
        raise UsageError(f"{pipe} is a pipe, and a training reads its data twice: write them to a file")
    if seed is not None:
        check_seed(seed)
        check_gradient()
        from transformers import set_seed

        set_seed(seed)
    with ExitStack() as stack:
        plan = prepare(stack)
        check_not_replaced(home, name, (plan.needs.linker, *plan.needs.models))
        data = {str(path): sha256_of(path) for path in files}
        identity = settings, plan.identity, data
        work = stack.enter_context(work_folder(home, kind.name, name, identity, alone=plan.exclusive))
        prepared = time.monotonic()
        outcome = plan.train(work)
        results = dict(outcome.results)
        seconds = results.pop("seconds", time.monotonic() - prepared)
        results |= {"seconds": round(prepared - began + seconds, 3), "peak_memory": peak_memory()}
        with stage_model(folder) as (staged, final):
            own = outcome.save(staged, results)
            about = {"results": results, "data": data, "command": command}
            manifest = make_manifest(kind, name, **{**about, **own})
            write_manifest(staged, manifest)
            write_card(staged, kind, manifest)
    return final


def check_not_replaced(home: Home, name: str, models: Iterable[str]) -> None:
    """Make sure that a training does not replace a model that it reads.

    Args:
        home: home that the new model is kept in.
        name: name of the new model.
        models: names or folders of the models that are read; "" is none.

    Raises:
        UsageError: if one of them has that name in *home*.
    """
    for model in models:
        if model and name_in_home(home, model) == name:
            raise UsageError(
                f"the model {name} would replace the model {model}, which it is trained with: give it "
                "another name"
            )


def train_recorded(
    run: AbstractContextManager[RunRecord],
    home: Home,
    name: str,
    kind: Kind[ManifestType],
    train: Callable[[], Path],
    note_scores: Callable[[RunRecord, ManifestType], object],
) -> TrainedModel:
    """Train a model, and keep it and its scores in the catalog.

    Args:
        run: run that the training is, as `kgkit.catalog.runs.recorded` makes it.
        home: home that the model is kept in.
        name: name of the model.
        kind: kind of the model.
        train: function that trains the model, and returns the folder of its files.
        note_scores: function that notes what was measured, of the model's manifest.
    """
    with run as record:
        folder = train()
        manifest = read_trained(home, name, folder, kind)
        record.model = name if catalogue(home, manifest) else None
        note_scores(record, manifest)
    return TrainedModel(folder, manifest)


def note_best_epoch(record: RunRecord, manifest: ModelManifest) -> None:
    """Note the scores of the epoch whose weights a model has, on what was held out, if it has epochs."""
    results = manifest.results
    for epoch in results.get("epochs", ()):
        if epoch["epoch"] == results.get("best_epoch"):
            for metric in sorted(set(epoch) - {"epoch"}):
                items = int(results.get("held_out", 0))
                record.score(manifest.task, "held out", metric, epoch[metric], items)


def fit(
    model: "nn.Module",
    batches: Any,
    loss: Callable[..., Any],
    optimizers: "Sequence[Optimizer]",
    config: TrainingConfig,
    work: Path,
    *,
    evaluate: Callable[[Any], Mapping[str, float]] | None,
    carried: "Carried | None" = None,
    progress: Progress | None = None,
) -> TrainingState:
    """Train a model by gradient, as part of a job: `kgkit.training.loop.train`, which goes on where it was.

    Args:
        model: module that is trained in place.
        batches, loss, optimizers, config: as `train` takes them.
        work: folder of the job.
        carried: as `train` takes it.
        evaluate: function that scores what is held out; None: nothing is, which is warned of.
        progress: function that receives how many steps are done.

    Raises:
        As `train` does.
    """
    from kgkit.training.loop import train

    if evaluate is None:
        log.warning("too few data to hold some out: no epoch is chosen, the last one is it; or name --dev")

    return train(
        model, batches, loss, optimizers, config, work, evaluate=evaluate, carried=carried,
        progress=progress, resume=True,
    )  # fmt: skip


def scores_by_epoch(trained: TrainingState) -> dict[str, Any]:
    """Return what was measured of the best epoch, its number as `best_epoch`, and of each one as `epochs`."""
    epochs = [{key: value for key, value in row.items() if key != "step"} for row in trained.evaluations]
    best = {key: value for key, value in (trained.best or {}).items() if key != "step"}
    chosen = {"best_epoch": best.pop("epoch")} if "epoch" in best else {}
    return {**chosen, **best, "epochs": epochs}


def check_gradient() -> None:
    """Make sure that a model can be trained by gradient.

    Raises:
        MissingExtra: if what it takes is not installed.
    """
    try:
        import kgkit.training.loop  # noqa: F401  # needs torch and transformers
    except ImportError as error:
        raise MissingExtra(error.name or "transformers", "train") from error
