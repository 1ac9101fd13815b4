"""The stages of training a KnowBert: what it begins as, and what is done with it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from kgkit.encoder.loading import quiet
from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.home import Home
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.knowledge import Knowledge
from kgkit.kb import KnowledgeBase
from kgkit.linking.knowbert import FOLDER, TrainedKnowBert, knowledge_of
from kgkit.models.folder import find_knowbert_folder
from kgkit.models.manifest import KnownKB, read_knowbert
from kgkit.training.batches import Shuffled
from kgkit.training.curve import TrainingState
from kgkit.training.knowbert import data
from kgkit.training.knowbert.settings import CLASSES, LINKING, Chosen, KnowBertTraining, linker_config
from kgkit.training.linkers.ridge import measured as calibrated
from kgkit.types import Progress
from kgkit.versions import read_current

if TYPE_CHECKING:
    from torch import nn

    from kgkit.encoder import Encoder
    from kgkit.heads.classifier import Classifier
    from kgkit.heads.knowbert import KnowBert

_log = logging.getLogger(__name__)


@dataclass
class BegunModel:
    """A KnowBert that is to be trained.

    Attributes:
        knowbert: the model.
        encoder: inside it.
        knowledge: its knowledge bases.
        kbs: what is told of each.
        origin: the encoder that it began as, long ago.
        drawn: the model's parameters that no file had, by name.
        guesses: whether it is a masked language model that has been trained.
        size: word pieces of a text.
        classifier: what is put on top for a task.
        specials: pieces that are added for it.
    """

    knowbert: "KnowBert"
    encoder: "Encoder"
    knowledge: dict[str, Knowledge]
    kbs: dict[str, KnownKB]
    origin: str
    drawn: frozenset[str]
    guesses: bool
    size: int
    classifier: "Classifier | None" = None
    specials: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.reader = KnowBertReader(self.encoder, self.knowledge, size=self.size)

    def handle(self, kb: str) -> KnowledgeBase:
        """Return a knowledge base, open."""
        return self.knowledge[kb].generator.kb


def begun(
    home: Home, training: KnowBertTraining, chosen: Sequence[Chosen], device: str, stack: ExitStack
) -> BegunModel:
    """Return the model as it is before it is trained, with its new knowledge bases.

    Raises:
        UsageError: if the settings do not fit each other, or the model that it begins as.
        UnknownName, NotThere, StaleModel, DamagedModel: as `TrainedKnowBert.open` does.
    """
    if not (training.start or chosen or training.control):
        raise UsageError("there is no knowledge base: name one with --kb, or say --control")
    if training.task in LINKING and len(chosen) > 1:
        raise UsageError(
            f"{training.task} trains the linker of one knowledge base: put in {chosen[0].kb.name} first, "
            f"then {chosen[1].kb.name}, with --from"
        )
    model = (_continued if training.start else _fresh)(home, training, device, stack)
    if not training.control:
        _put_in(model, training, chosen)
    if training.zero_vectors:
        _zero_vectors(model)
    if training.task in LINKING and not model.kbs:
        raise UsageError(f"{training.task} trains the linker of a knowledge base: name one with --kb")
    model.reader = KnowBertReader(model.encoder, model.knowledge, size=training.size)
    return model


def _continued(home: Home, training: KnowBertTraining, device: str, stack: ExitStack) -> BegunModel:
    """Return the model that it begins as."""
    from kgkit.heads.knowbert import ENCODER, KnowBert

    def opened(folder: Path) -> TrainedKnowBert:
        read_knowbert(folder)  # says so, if it is another kind of model
        around = _around(training, folder / FOLDER / ENCODER)
        return TrainedKnowBert.open(str(folder), home=home, around=around, device=device)

    before = stack.enter_context(read_current(lambda: find_knowbert_folder(training.start, home), opened))
    knowbert, manifest = before.knowbert, before.manifest
    drawn = knowbert.drawn
    guesses = manifest.guesses and _guesses(drawn)
    if not training.control:
        kept = dict(before.reader.knowledge), dict(manifest.kbs)
        return BegunModel(knowbert, before.encoder, *kept, manifest.encoder, drawn, guesses, training.size)
    if any(about.joint for about in manifest.kbs.values()):
        raise UsageError(
            f"the encoder of {training.start} was trained with its knowledge bases, and is no control: begin "
            "as one that was trained without (--from)"
        )
    knowbert.detach()
    plain = KnowBert(knowbert.model, {})
    return BegunModel(plain, before.encoder, {}, {}, manifest.encoder, drawn, guesses, training.size)


def _fresh(home: Home, training: KnowBertTraining, device: str, stack: ExitStack) -> BegunModel:
    """Return an encoder, with no knowledge base yet."""
    from kgkit.encoder import Encoder
    from kgkit.encoder.finding import find_model
    from kgkit.encoder.loading import load_as
    from kgkit.heads.knowbert import KnowBert

    folder = find_model(training.encoder)
    around = _around(training, folder)
    model, tokenizer, drawn = load_as(folder, around, device)
    base: Any = model.base_model
    encoder = Encoder(training.encoder, folder, base, tokenizer)
    guesses = around != "AutoModel" and _guesses(drawn)
    return BegunModel(KnowBert(model, {}), encoder, {}, {}, training.encoder, drawn, guesses, training.size)


def _around(training: KnowBertTraining, encoder: Path) -> str:
    """Return the class of transformers that is to stand around an encoder."""
    from kgkit.encoder.loading import language_class

    return "AutoModel" if training.task in CLASSES else language_class(encoder)


def _guesses(drawn: frozenset[str]) -> bool:
    """Say whether what guesses hidden words was read; what reads [CLS], and the next sentence, may be new."""
    return all("pooler" in name or "seq_relationship" in name for name in drawn)


def _put_in(model: BegunModel, training: KnowBertTraining, chosen: Sequence[Chosen]) -> None:
    """Put knowledge bases into a model, each above those that it has."""
    import torch

    from kgkit.heads.knowbert import KARConfig, usual_layers

    depth = model.encoder.model.config.num_hidden_layers
    generator = torch.Generator().manual_seed(training.seed)
    for one in chosen:
        name = one.kb.name
        if name in model.kbs:
            has = training.start or "the model"
            raise UsageError(f"{has} has the knowledge base {name} already: leave out --kb {name}")
        last = max((kar.config.layer for kar in model.knowbert.kars.values()), default=None)
        layer = usual_layers(depth, kbs=1)[0] if last is None else min(last + 1, depth)
        known = knowledge_of(one.kb, one.vectors)
        means = {beside.kb: "el" if beside.gold is None else "wsd" for beside in training.linking}
        linker = linker_config(means.get(name, training.task), model.encoder.width, known.width)
        model.knowbert.add(name, KARConfig(linker=linker, layer=layer), generator)
        model.knowbert.trained_with[name] = known.about
        model.knowledge[name], model.kbs[name] = known, KnownKB(vectors=one.vectors)


def _zero_vectors(model: BegunModel) -> None:
    """Let all knowledge bases of a model, those that it has had before too, read vectors as zeros."""
    if not model.kbs:
        raise UsageError("there is no knowledge base whose vectors could be zeros: name one with --kb")
    for name, kar in model.knowbert.kars.items():
        kar.zero_vectors()
        model.kbs[name] = msgspec.structs.replace(model.kbs[name], zero_vectors=True)


def weights_of(home: Home, training: KnowBertTraining) -> str:
    """Return what changes when the model that this one begins as is trained anew."""
    if not training.start:
        return ""
    return read_current(lambda: find_knowbert_folder(training.start, home), read_knowbert).created


def groups_of(trained: "nn.Module", model: BegunModel, training: KnowBertTraining) -> list[dict[str, Any]]:
    """Return what is trained, at which rate: see `KnowBertTraining.lr`; biases and norms do not decay."""
    around: Any = model.knowbert.model
    read = {id(one) for name, one in around.named_parameters() if name not in model.drawn}
    old = read if model.guesses else read & {id(one) for one in model.encoder.model.parameters()}
    groups: dict[tuple[float, float], list[Any]] = {}
    for one in trained.parameters():
        if one.requires_grad:
            rate = training.lr if id(one) in old else training.lr_new
            groups.setdefault((rate, training.decay if one.ndim > 1 else 0.0), []).append(one)
    return [{"params": some, "lr": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]


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


def stage_of(training: KnowBertTraining, model: BegunModel, progress: Progress | None) -> Stage:
    """Return what is done with a model: reads the data, and says which parameters are trained.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if there is nothing to learn, or the model cannot learn it.
    """
    if training.task in LINKING:
        return _linking(training, model, progress)
    if training.task in CLASSES:
        return _classifying(training, model)
    return _language(training, model, progress)


def _linking(training: KnowBertTraining, model: BegunModel, progress: Progress | None) -> Stage:
    """Train the linker of the last knowledge base: the first stage of Algorithm 1."""
    from kgkit.training.knowbert.language import Mixture, loss_of, scored_lessons

    kb = list(model.kbs)[-1]
    null = model.knowbert.kars[kb].linker.config.null
    if null != linker_config(training.task, model.encoder.width, 1).null:
        other = "el" if null else "wsd"
        raise UsageError(
            f"the linker of {kb} was made for the task {other}, not for {training.task}: the two differ in "
            "their loss, and in NULL"
        )
    model.knowbert.unfreeze(kb)
    links = data.links_of(training, model.handle(kb), progress)
    taught, held_out = (data.lessons(some, model.reader, kb, null=null, progress=progress) for some in links)
    lost = sum(one.lost for one in links.held_out)
    at_null = frozenset([kb] if null else [])
    batches = Mixture(
        model.reader, None, (), {kb: taught}, null=at_null, size=training.batch, seed=training.seed
    )

    def scored(knowbert: "KnowBert") -> Scored:
        return scored_lessons(knowbert, model.reader, kb, held_out, null=null, size=training.batch)

    def results(trained: TrainingState) -> dict[str, Any]:
        found, about = scored(model.knowbert), model.kbs[kb]
        temperature = best_temperature(found, about.temperature)
        model.kbs[kb] = msgspec.structs.replace(about, task=training.task, temperature=temperature)
        if not about.joint:
            model.knowbert.kars[kb].invert()
        epochs = [{key: one for key, one in each.items() if key != "step"} for each in trained.evaluations]
        return {
            "texts": len(taught),
            "mentions": sum(len(one.right) for one in taught),
            **calibrated(found, temperature),
            "epochs": epochs,
        }

    return Stage(
        model.knowbert, batches, loss_of(model.knowbert),
        (lambda knowbert: linking_scores(scored(knowbert), null=null, lost=lost)) if held_out else None,
        results,
    )  # fmt: skip


def linking_scores(scored: Scored, *, null: bool, lost: int = 0) -> dict[str, float]:
    """Return how well mentions are linked, in [0, 1].

    Args:
        scored: of each mention the scores of its candidates, and which are right.
        null: whether the last candidate is NULL: links are then scored, by F1, and what means nothing counts
            only where it is linked; else each mention has a right candidate, and accuracy is all.
        lost: mentions that mean something, and that no link can be right for; F1 counts them as missed.
    """
    right = [bool(gold[scores.argmax()]) for scores, gold in scored]
    if not null:
        return {"accuracy": float(np.mean(right)) if right else 0.0}
    linked = [int(scores.argmax()) < len(scores) - 1 for scores, _ in scored]
    meant = sum(not gold[-1] for _, gold in scored) + lost
    hits = sum(one and two for one, two in zip(right, linked, strict=True))
    precision, recall = hits / max(1, sum(linked)), hits / max(1, meant)
    return {
        "f1": 2 * hits / max(1, sum(linked) + meant),
        "precision": precision,
        "recall": recall,
    }


def _language(training: KnowBertTraining, model: BegunModel, progress: Progress | None) -> Stage:
    """Train all as a language model, and the linkers too: the second stage of Algorithm 1."""
    from kgkit.training.knowbert.language import Mixture, loss_of, masking_of, perplexity, scored_lessons

    around: Any = model.knowbert.model
    if around.get_output_embeddings() is None:
        raise UsageError(
            f"{model.origin} is no masked language model but a {type(around).__name__}: begin as an encoder "
            "that guesses hidden words, as BERT and RoBERTa do"
        )
    beside = {} if training.control else _beside(training, model)
    if not model.guesses and not training.control:
        _log.warning(
            "what guesses hidden words is new, and drawn at random: train it first, with --control, and "
            "begin as that (--from)"
        )
    for kb, about in model.kbs.items():
        if not about.task and not about.joint:
            _log.warning("the linker of %s has not been trained by itself (wsd, el)", kb)
        if kb not in beside:
            _log.warning("no links of %s are learnt from: name some with --linking %s=…", kb, kb)
        if training.back == "nothing" and not about.joint:
            model.knowbert.kars[kb].silence()
    model.knowbert.unfreeze()
    paired = hasattr(getattr(around, "cls", None), "seq_relationship")
    passages = data.passages_of(training, model.reader, paired=paired, progress=progress)
    null = frozenset(kb for kb, kar in model.knowbert.kars.items() if kar.linker.config.null)
    links = {
        kb: data.held_apart(data.supervised(files, model.handle(kb), progress))
        for kb, files in beside.items()
    }
    taught, held_out = (
        {
            kb: data.lessons(some[place], model.reader, kb, null=kb in null, progress=progress)
            for kb, some in links.items()
        }
        for place in (0, 1)
    )
    masking = masking_of(model.encoder)
    batches = Mixture(
        model.reader, masking, passages.taught, taught, null=null,
        idle=training.control and bool(training.linking), size=training.batch, seed=training.seed,
    )  # fmt: skip
    strict = masking_of(model.encoder, "mask")

    def evaluate(knowbert: "KnowBert") -> dict[str, float]:
        found = perplexity(knowbert, model.reader, strict, passages.held_out, size=training.batch)
        return {"gain": -found.perplexity, "perplexity": found.perplexity, "accuracy": found.accuracy}

    def results(trained: TrainingState) -> dict[str, Any]:
        linkers = {}
        for kb, about in model.kbs.items():
            model.kbs[kb] = msgspec.structs.replace(about, joint=True)
            if kb not in links:
                continue
            scored = scored_lessons(model.knowbert, model.reader, kb, held_out[kb], null=kb in null)
            temperature = best_temperature(scored, about.temperature)
            model.kbs[kb] = msgspec.structs.replace(model.kbs[kb], temperature=temperature)
            if scored:
                lost = sum(one.lost for one in links[kb].held_out)
                linkers[kb] = linking_scores(scored, null=kb in null, lost=lost)
                linkers[kb] |= calibrated(scored, temperature)
        told = ("epoch", "perplexity", "accuracy")
        return {
            "passages": len(passages.taught),
            "links": {kb: len(some) for kb, some in taught.items()},
            "held_out": len(passages.held_out),
            "linkers": linkers,
            "epochs": [{key: one[key] for key in told} for one in trained.evaluations],
        }

    return Stage(
        model.knowbert, batches, loss_of(model.knowbert), evaluate if passages.held_out else None, results
    )


def _beside(training: KnowBertTraining, model: BegunModel) -> dict[str, list[Any]]:
    """Return the files of links to learn beside, by knowledge base."""
    found: dict[str, list[Any]] = {}
    for one in training.linking:
        if one.kb not in model.kbs:
            has = ", ".join(model.kbs) or "none"
            raise UsageError(f"--linking {one.kb}=…: the model has no such knowledge base; it has: {has}")
        found.setdefault(one.kb, []).append(one)
    return found


def _classifying(training: KnowBertTraining, model: BegunModel) -> Stage:
    """Train all, and a classifier on top, for a task."""
    import torch

    from kgkit.heads.classifier import Classifier, ClassifierConfig
    from kgkit.training import classification as task
    from kgkit.training.examples import labels_of, scores_of, specials_of, warn_of_labels

    examples = data.examples_of(training)
    seen = examples.taught if training.dev else [*examples.taught, *examples.held_out]
    labels = labels_of(training.task, seen)
    model.specials = specials_of(training.task, examples.taught)
    several = training.task == "typing"
    if several and not any(one.label for one in examples.taught):
        raise UsageError("there is nothing to learn: no example has a label")
    if training.task == "classification":
        warn_of_labels(labels, len(examples.taught))
    if model.specials:
        around: Any = model.knowbert.model
        model.encoder.tokenizer.add_tokens(list(model.specials), special_tokens=True)
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(training.seed)  # the same rows for a control, which has drawn less before
            around.resize_token_embeddings(len(model.encoder.tokenizer))
        model.reader = KnowBertReader(model.encoder, model.knowledge, size=training.size)  # knows them too
    reader = task.ExampleReader(model.reader, model.encoder.tokenizer, model.specials, labels)
    config = ClassifierConfig(
        hidden=model.encoder.width, labels=labels, positions=2 if training.task == "relation" else 1,
        multi_label=several,
    )  # fmt: skip
    model.classifier = Classifier(config, torch.Generator().manual_seed(training.seed))
    model.classifier.to(model.encoder.device)
    model.knowbert.unfreeze()
    whole = task.Classified(model.knowbert, model.classifier)

    def evaluate(asked: task.Classified) -> dict[str, float]:
        answers = task.answers_of(asked, reader, examples.held_out, size=training.batch)
        return scores_of(training.task, examples.held_out, answers, labels)

    def results(trained: TrainingState) -> dict[str, Any]:
        for kb, about in model.kbs.items():
            model.kbs[kb] = msgspec.structs.replace(about, joint=True)
        epochs = [{key: one for key, one in each.items() if key != "step"} for each in trained.evaluations]
        best = {key: one for key, one in (trained.best or {}).items() if key not in ("step", "epoch")}
        return {
            "examples": len(examples.taught),
            "labels": len(labels),
            "told_apart": list(labels),
            "held_out": len(examples.held_out),
            **best,
            "epochs": epochs,
        }

    batches = Shuffled(examples.taught, training.batch, reader.batch, training.seed)
    loss = task.loss_of(model.classifier)
    return Stage(whole, batches, loss, evaluate if examples.held_out else None, results)
