"""Training a KnowBert: Algorithm 1 of Peters et al. (2019), a stage at a time, and tasks behind it.

    wsd, el       the linker of the knowledge base named last, the rest frozen
    mlm           all: hidden words and, in pairs, what follows; and links, in a fifth of the batches
    relation, …   all, for a task: see `kgkit.methods.knowbert`

A stage begins as the one before it ended (`start`), so Algorithm 1 for two knowledge bases is wsd, mlm, el,
mlm or, shorter, wsd, el, mlm. Entities' vectors are no parameters, and are never trained.

Departures:
    Usage examples of WordNet, which teach its linker in the released code, are left out.
    A linker is as published for entities (`el`) or for senses, whatever knowledge base it is of.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.inputs.knowledge import knowledge_of
from kgkit.methods.knowbert import KnowBertStart
from kgkit.methods.knowbert_settings import LINKING, KnowBertTraining, linker_config
from kgkit.methods.settings import gold_beside
from kgkit.training.curve import TrainingState
from kgkit.training.data import hold_out_each_tenth
from kgkit.training.job import Outcome, Plan, scores_by_epoch
from kgkit.training.linkers.labelled import labelled_files
from kgkit.training.linkers.ridge import held_out_metrics as calibrated
from kgkit.training.passages import passages_of
from kgkit.training.tasks import fit_method, manifest_fields
from kgkit.types import Progress

if TYPE_CHECKING:
    from torch import nn

    from kgkit.heads.knowbert import KnowBert
    from kgkit.methods.contract import Resources


_log = logging.getLogger(__name__)


class Stage(NamedTuple):
    """What is done with a model.

    Attributes:
        model: what is trained.
        batches, loss, evaluate: as `train` wants them.
        results: what came of it, once it is trained.
    """

    model: "nn.Module"
    batches: Any
    loss: Callable[..., Any]
    evaluate: Callable[[Any], Mapping[str, float]] | None
    results: Callable[[TrainingState], dict[str, Any]]


def stage_of(training: KnowBertTraining, model: KnowBertStart, progress: Progress | None) -> Stage:
    """Return what is done with a model: reads the data, and says which parameters are trained.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if there is nothing to learn, or the model cannot learn it.
    """
    if training.task in LINKING:
        return _linking(training, model, progress)
    return _language(training, model, progress)


def _linking(training: KnowBertTraining, model: KnowBertStart, progress: Progress | None) -> Stage:
    """Train the linker of the last knowledge base: the first stage of Algorithm 1."""
    from kgkit.training.knowbert.examples import (
        Mixture,
        links_of,
        loss_of,
        read_linking_examples,
        score_examples,
    )

    kb = list(model.kbs)[-1]
    null = model.knowbert.kars[kb].linker.config.null
    if null != linker_config(training.task, model.encoder.width, 1).null:
        other = "el" if null else "wsd"
        raise UsageError(
            f"the linker of {kb} was made for the task {other}, not for {training.task}: the two differ in "
            "their loss, and in NULL"
        )
    model.knowbert.unfreeze(kb)
    handle = model.handle(kb)
    links = links_of(training, handle, knowledge_of(handle, ()).generator, progress)
    learn, held_out = (
        list(read_linking_examples(documents, model.reader, kb, null=null)) for documents in links
    )
    lost = sum(example.lost for example in links.held_out)
    at_null = frozenset([kb] if null else [])
    batches = Mixture(
        model.reader, None, (), {kb: learn}, null=at_null, size=training.batch, seed=training.seed
    )

    def scored(knowbert: "KnowBert") -> Scored:
        return score_examples(knowbert, model.reader, kb, held_out, null=null, size=training.batch)

    def results(trained: TrainingState) -> dict[str, Any]:
        predictions, about = scored(model.knowbert), model.kbs[kb]
        temperature = best_temperature(predictions, about.temperature)
        model.kbs[kb] = msgspec.structs.replace(about, task=training.task, temperature=temperature)
        if not about.joint:
            model.knowbert.kars[kb].invert()
        return {
            "texts": len(learn),
            "mentions": sum(len(example.right) for example in learn),
            **calibrated(predictions, temperature),
            "epochs": scores_by_epoch(trained)["epochs"],
        }

    return Stage(
        model.knowbert, batches, loss_of(model.knowbert),
        (lambda knowbert: linking_scores(scored(knowbert), null=null, lost=lost)) if held_out else None,
        results,
    )  # fmt: skip


def linking_scores(scored: Scored, *, null: bool, lost: int = 0) -> dict[str, float]:
    """Return how well mentions are linked, in [0, 1].

    Args:
        scored: scores of the candidates of each mention, and which are right.
        null: whether the last candidate is NULL: links are then scored, by F1, and what means nothing counts
            only where it is linked; else each mention has a right candidate, and accuracy is all.
        lost: mentions that mean something, and that no link can be right for; F1 counts them as missed.
    """
    right = [bool(gold[scores.argmax()]) for scores, gold in scored]
    if not null:
        return {"accuracy": float(np.mean(right)) if right else 0.0}
    linked = [int(scores.argmax()) < len(scores) - 1 for scores, _ in scored]
    mentions = sum(not gold[-1] for _, gold in scored) + lost
    hits = sum(is_right and is_linked for is_right, is_linked in zip(right, linked, strict=True))
    precision, recall = hits / max(1, sum(linked)), hits / max(1, mentions)
    return {"f1": 2 * hits / max(1, sum(linked) + mentions), "precision": precision, "recall": recall}


def _language(training: KnowBertTraining, model: KnowBertStart, progress: Progress | None) -> Stage:
    """Train all as a language model, and the linkers too: the second stage of Algorithm 1."""
    from kgkit.inputs.masking import masking_of
    from kgkit.methods.hidden_words import perplexity
    from kgkit.training.knowbert.examples import Mixture, loss_of, read_linking_examples, score_examples

    around: Any = model.knowbert.model
    if around.get_output_embeddings() is None:
        raise UsageError(
            f"{model.origin} is no masked language model but a {type(around).__name__}: begin as an encoder "
            "that guesses hidden words, as BERT and RoBERTa do"
        )
    files_by_kb = {} if training.control else _supervision(training, model)
    if not model.language_model and not training.control:
        _log.warning(
            "what guesses hidden words is new, and drawn at random: train it first, with --control, and "
            "begin as that (--from)"
        )
    for kb, about in model.kbs.items():
        if not about.task and not about.joint:
            _log.warning("the linker of %s has not been trained by itself (wsd, el)", kb)
        if kb not in files_by_kb:
            _log.warning("no links of %s are learnt from: name some with --linking %s=…", kb, kb)
        if training.back == "nothing" and not about.joint:
            model.knowbert.kars[kb].silence()
    model.knowbert.unfreeze()
    paired = hasattr(getattr(around, "cls", None), "seq_relationship")
    passages = passages_of(training, model.reader, paired=paired, progress=progress)
    null = frozenset(kb for kb, kar in model.knowbert.kars.items() if kar.linker.config.null)
    links = {}
    for kb, files in files_by_kb.items():
        handle, gold = model.handle(kb), list(map(gold_beside, files))
        documents = labelled_files(handle, knowledge_of(handle, ()).generator, files, gold, progress)
        links[kb] = hold_out_each_tenth(documents)
    learn, held_out = (
        {
            kb: list(read_linking_examples(documents[part], model.reader, kb, null=kb in null))
            for kb, documents in links.items()
        }
        for part in (0, 1)
    )
    masking = masking_of(model.encoder)
    batches = Mixture(
        model.reader, masking, passages.learn, learn, null=null,
        idle=training.control and bool(training.linking), size=training.batch, seed=training.seed,
    )  # fmt: skip
    strict = masking_of(model.encoder, "mask")

    def evaluate(knowbert: "KnowBert") -> dict[str, float]:
        score = perplexity(knowbert, model.reader, strict, passages.held_out, size=training.batch)
        return {"gain": -score.perplexity, "perplexity": score.perplexity, "accuracy": score.accuracy}

    def results(trained: TrainingState) -> dict[str, Any]:
        linkers = {}
        for kb, about in model.kbs.items():
            model.kbs[kb] = msgspec.structs.replace(about, joint=True)
            if kb not in links:
                continue
            scored = score_examples(model.knowbert, model.reader, kb, held_out[kb], null=kb in null)
            temperature = best_temperature(scored, about.temperature)
            model.kbs[kb] = msgspec.structs.replace(model.kbs[kb], temperature=temperature)
            if scored:
                lost = sum(document.lost for document in links[kb].held_out)
                linkers[kb] = linking_scores(scored, null=kb in null, lost=lost)
                linkers[kb] |= calibrated(scored, temperature)
        columns = ("epoch", "perplexity", "accuracy")
        return {
            "passages": len(passages.learn),
            "links": {kb: len(some) for kb, some in learn.items()},
            "held_out": len(passages.held_out),
            "linkers": linkers,
            "epochs": [{key: scores[key] for key in columns} for scores in trained.evaluations],
        }

    return Stage(
        model.knowbert, batches, loss_of(model.knowbert), evaluate if passages.held_out else None, results
    )


def _supervision(training: KnowBertTraining, model: KnowBertStart) -> dict[str, list[Path]]:
    """Return the files of links to learn from too, by knowledge base."""
    files: dict[str, list[Path]] = {}
    for kb, path in training.linking:
        if kb not in model.kbs:
            has = ", ".join(model.kbs) or "none"
            raise UsageError(f"--linking {kb}=…: the model has no such knowledge base; it has: {has}")
        files.setdefault(kb, []).append(path)
    return files


def plan_stage(training: KnowBertTraining, resources: "Resources", progress: Progress | None) -> Plan:
    """Begin a KnowBert, and read the data of its stage (wsd, el, mlm).

    Args:
        training: settings.
        resources: home and device; its knowledge bases are put above those that the model has already, from
            the bottom up.
        progress: as `kgkit.training.tasks.train_method` takes it.

    Raises:
        StaleModel: if the model that it begins as was trained with other builds.
        The rest as `kgkit.training.tasks.train_method` does.
    """
    from kgkit.methods.contract import group_parameters
    from kgkit.methods.knowbert import begin_knowbert, pretrained_parameters, save_knowbert

    home, kbs, device, stack = resources
    start = begin_knowbert(home, training, kbs, device, stack)
    stage = stage_of(training, start, progress)

    def train(work: Path) -> Outcome:
        groups = group_parameters(stage.model, pretrained_parameters(start), training)
        trained = fit_method(
            stage.model, stage.batches, stage.loss, groups, training, work, device=device,
            evaluate=stage.evaluate, progress=progress,
        )  # fmt: skip
        results = stage.results(trained)
        if trained.best is not None:  # the epoch whose weights these are
            results["best_epoch"] = trained.best["epoch"]
        return Outcome({**results, "seconds": trained.seconds}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        save_knowbert(start.knowbert, start.encoder, folder)
        language_model = training.task == "mlm" or start.language_model
        return {**manifest_fields(training), **start.manifest(training), "language_model": language_model}

    return Plan(start.identity(home, training), train)
