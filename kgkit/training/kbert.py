"""Training a K-BERT for a task, and opening one that was trained (Liu et al. 2020).

The encoder and what stands on it are trained together, on trees with the facts of knowledge bases, or for a
control on the same texts without: the same batches, steps, learning rates and seeds.

A batch is of texts of like lengths, and a step weighs as much whatever these are: in tagging a tag of a short
text counts for more than one of a long text.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from kgkit.encoder import Encoder, pick_device
from kgkit.errors import MissingExtra, NotThere, StaleModel, UnknownName, UsageError
from kgkit.home import Home
from kgkit.inputs.trees import TreeReader
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.linking.knowbert import FOLDER as KNOWBERT_FOLDER
from kgkit.linking.multi_kb import SeveralLinkers
from kgkit.models.folder import (
    BUILT_IN,
    find_kbert_folder,
    find_model_folder,
    find_trained,
    has_model,
    model_folder,
)
from kgkit.models.manifest import (
    FORMAT,
    KBERT,
    KNOWBERT,
    MANIFEST,
    KBertManifest,
    is_kind,
    read_kbert,
    read_knowbert,
)
from kgkit.models.publishing import kgkit_version, sizes_of, stage_model, work_folder
from kgkit.training.batches import Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.kbert_plan import KBertTraining
from kgkit.training.runs import peak_memory, sha256_of
from kgkit.trees import TreeBuilder, TreeConfig, generators_of
from kgkit.types import Document, LinkedDocument, Progress
from kgkit.versions import read_current

if TYPE_CHECKING:
    from typing import Self

    from kgkit.training.kbert_tasks import Answered, Example, TaskReader, TreeTask

log = logging.getLogger(__name__)

FOLDER: Final = "kbert"
ENCODER: Final = "encoder"
CLASSIFIER: Final = "classifier"
_MAX_KNOWN: Final = 200_000  # linked texts that are kept

HELD_OUT: Final = 10
"""One example in so many is not learnt from, where no others are named."""

Look = Callable[[Iterable[Document]], Iterable[Document | LinkedDocument]]


def train_kbert(
    home: Home,
    name: str,
    training: KBertTraining,
    kbs: Sequence[KnowledgeBase] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train a K-BERT, and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        home: where it is kept; a training that was stopped goes on there.
        name: of the model.
        training: on what, and how.
        kbs: whose facts are injected; those of the first come first.
        device: where it is trained.
        command: that was typed.
        progress: is told what is done.

    Returns:
        Where the model's files lie, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        UsageError: if *name* cannot name a model, the settings do not fit each other, or there is nothing to
            learn.
        NotThere: if an encoder or a file is not there.
        SourceError: if a file is not what it should be.
        BuildFailed: if the loss is not finite.
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    with ExitStack() as stack:
        return _trained(stack, home, name, training, kbs, device, command, progress)


def _trained(
    stack: ExitStack,
    home: Home,
    name: str,
    training: KBertTraining,
    kbs: Sequence[KnowledgeBase],
    device: str,
    command: str,
    progress: Progress | None,
) -> Path:
    """Train a K-BERT; the work folder is held until *stack* is closed."""
    try:
        import torch
        from transformers import set_seed

        from kgkit.training.loop import train
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error
    from kgkit.training.examples import warn_of_labels
    from kgkit.training.kbert_tasks import answers_of, labels_of, loss_of, scores_of

    if not (kbs or training.control):
        raise UsageError("there is no knowledge base: name one with --kb, or say --control")
    folder, began = model_folder(home, name), time.monotonic()
    set_seed(training.seed)
    used = () if training.control else tuple(kbs)
    taught, held_out = _examples(training)
    if not held_out:
        log.warning("too few data to hold some out: no epoch is chosen, the last one is it; or name --dev")
    labels = labels_of(training.task, taught if training.dev else [*taught, *held_out])
    if training.task != "tagging":
        warn_of_labels(labels, len(taught))
    if strange := sorted({label for one in held_out for label in one.gold or ()} - {*labels}):
        log.warning("the data teach nothing of %s, which --dev has", ", ".join(strange))
    encoder = _encoder(home, training.encoder, device)
    made = _begun(home, training, encoder, used, labels, device)
    data = {str(path): sha256_of(path) for path in training.files}
    builds = {kb.name: kb.build for kb in used}
    linker_made = _checksum(home, training.linker) if used else ""
    told = training, builds, encoder.fingerprint, data, linker_made
    work = stack.enter_context(work_folder(home, "kbert", name, told))

    def evaluate(asked: "TreeTask") -> dict[str, float]:
        answers = answers_of(asked, made.reader, held_out, size=training.batch)
        return scores_of(training.task, held_out, answers)

    reading = time.monotonic() - began
    trained = train(
        made.model,
        Shuffled(
            taught, training.batch, made.reader.batch, training.seed,
            lengths=[sum(map(len, one.texts)) for one in taught],  # the same with facts and without
        ),
        loss_of(made.model.classifier),
        [torch.optim.AdamW(_groups(made.model, training), fused=True)],
        TrainingConfig(
            epochs=training.epochs, steps=training.steps, bf16=training.bf16, device=device,
            seed=training.seed,
        ),
        work,
        evaluate=evaluate if held_out else None,
        progress=progress,
        resume=True,
    )  # fmt: skip
    counts = {"examples": len(taught), "labels": len(labels), "held_out": len(held_out)}
    results = _results(trained, labels) | counts
    results |= {"seconds": round(reading + trained.seconds, 1), "peak_memory": peak_memory()}
    with stage_model(folder) as (staged, final):
        about = ", ".join(f"`{one.name}`" for one in training.data)
        about = (
            f"Trained for the task {training.task} on {about}. Their licence may bind what is made of them."
        )
        made.model.kbert.save_pretrained(staged / FOLDER, about=about)
        encoder.save_tokenizer(staged / FOLDER / ENCODER)  # the weights lie there already
        made.model.classifier.save_pretrained(staged / CLASSIFIER, about=about)
        manifest = KBertManifest(
            format=FORMAT, kind=KBERT, name=name, task=training.task, kbs=builds, encoder=training.encoder,
            size=training.size, query=training.query, linker=training.linker, linker_made=linker_made,
            coherence=training.coherence, max_facts=training.max_facts, relations=training.says_relations,
            attributes=training.attributes, config=msgspec.to_builtins(asdict(training), enc_hook=str),
            results=results, data=data, command=command, sizes=sizes_of(staged),
            kgkit_version=kgkit_version(), created=datetime.now(UTC).isoformat(timespec="seconds"),
        )  # fmt: skip
        (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    return final


class _Begun(NamedTuple):
    """A model that is to be trained, and what gives it examples."""

    model: "TreeTask"
    reader: "TaskReader"


def _begun(
    home: Home,
    training: KBertTraining,
    encoder: Encoder,
    kbs: Sequence[KnowledgeBase],
    labels: tuple[str, ...],
    device: str,
) -> _Begun:
    import torch

    from kgkit.heads import Classifier, ClassifierConfig, KBert, KBertConfig
    from kgkit.training.kbert_tasks import TreeTask

    reader = _reader(encoder, kbs, training, training.says_relations, labels, device)
    config = KBertConfig(soft_positions=training.soft_positions, visible_matrix=training.visible_matrix)
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(ClassifierConfig(hidden=encoder.width, labels=labels), drawn)
    return _Begun(TreeTask(KBert(encoder.model, config), classifier.to(encoder.device)), reader)


def _results(trained: TrainingState, labels: Sequence[str]) -> dict[str, Any]:
    """Return the scores of each epoch, and of the best one."""
    epochs = [{key: one for key, one in each.items() if key != "step"} for each in trained.evaluations]
    best = {key: one for key, one in (trained.best or {}).items() if key != "step"}
    return {"told_apart": list(labels), "best_epoch": best.pop("epoch", None), **best, "epochs": epochs}


class TrainedKBert:
    """A K-BERT that was trained for a task, and the knowledge bases whose facts it reads.

    Args:
        model: in evaluation mode.
        reader: gives it examples.
        manifest: what it says of itself.

    Example:
        >>> with TrainedKBert.open("opinions") as model:
        ...     [answer] = model([Example("1", ("房间很干净",))])
        >>> answer.labels, answer.right
        (('1',), 0.97)
    """

    def __init__(self, model: "TreeTask", reader: "TaskReader", manifest: KBertManifest) -> None:
        self.model, self.reader, self.manifest = model, reader, manifest
        self._open = ExitStack()

    @classmethod
    def open(cls, model: str, *, home: Home | Path | str | None = None, device: str = "auto") -> "Self":
        """Open a model that `kgkit train kbert` has made.

        Args:
            model: its name in *home*, or its folder.
            home: where it lies, and its knowledge bases.
            device: where it is to be.

        Raises:
            UnknownName, NotThere: if there is no such model, or a knowledge base is gone.
            StaleModel: if a build that it was trained with is gone, or its linker was trained again.
            DamagedModel: if its files cannot be read.
        """
        where = home if isinstance(home, Home) else Home.find(home)
        return read_current(
            lambda: find_kbert_folder(model, where),
            lambda folder: cls._open_from(folder, model, where, device),
        )

    @classmethod
    def _open_from(cls, folder: Path, model: str, where: Home, device: str) -> "Self":
        from kgkit.heads import Classifier, KBert, KBertConfig
        from kgkit.heads.folder import read_settings
        from kgkit.heads.kbert import KIND
        from kgkit.training.kbert_tasks import TreeTask

        manifest = read_kbert(folder)
        if manifest.linker_made and _checksum(where, manifest.linker) != manifest.linker_made:
            raise StaleModel(
                f"the model {model} reads links of the model {manifest.linker}, which has been trained again "
                "since, or is gone: train it again too"
            )
        encoder = Encoder.load(str((folder / FOLDER / ENCODER).absolute()), device=device)
        kbert = KBert(encoder.model, read_settings(folder / FOLDER, KIND, KBertConfig))
        classifier = Classifier.from_pretrained(folder / CLASSIFIER, device=device)
        with ExitStack() as stack:
            kbs = [_as_trained(name, build, where, stack) for name, build in manifest.kbs.items()]
            labels = classifier.config.labels
            reader = _reader(encoder, kbs, manifest, manifest.relations, labels, device)
            found = cls(TreeTask(kbert, classifier).eval(), reader, manifest)
            found._open = stack.pop_all()
        return found

    def __call__(
        self,
        examples: "Sequence[Example]",
        *,
        size: int = 32,
        progress: Progress | None = None,
    ) -> "list[Answered]":
        """Return what it says of examples; see `kgkit.training.kbert_tasks.answers_of`."""
        from kgkit.training.kbert_tasks import answers_of

        return answers_of(self.model, self.reader, examples, size=size, progress=progress)

    def close(self) -> None:
        """Close the knowledge bases that were opened for it."""
        self._open.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _as_trained(name: str, build: str, home: Home, stack: ExitStack) -> KnowledgeBase:
    """Open a knowledge base as it was trained with: its facts decide what is read.

    Raises:
        StaleModel: if that build is gone.
    """
    now = stack.enter_context(open_kb(name, home.path))
    if now.build == build:
        return now
    try:
        return stack.enter_context(open_kb(f"{name}@{build}", home.path))
    except NotThere:
        raise StaleModel(
            f"the model reads facts of {name}@{build}, which is gone; here is {name}@{now.build}: train it "
            "again, or build that one again"
        ) from None


def _checksum(home: Home, linker: str) -> str:
    """Return a checksum of what a linker says of itself; nothing if there is none, or it is not trained."""
    if linker in ("", *BUILT_IN):
        return ""
    try:
        return read_current(
            lambda: find_model_folder(linker, home), lambda folder: sha256_of(folder / MANIFEST)
        )
    except (NotThere, UnknownName):
        return ""


def _encoder(home: Home, name: str, device: str) -> Encoder:
    """Load the encoder that `encoder_at` tells of."""
    if not has_model(home, name):
        return Encoder.load(name, device=device)
    return read_current(
        lambda: find_trained(home, name), lambda _: Encoder.load(encoder_at(home, name), device=device)
    )


def encoder_at(home: Home, name: str) -> str:
    """Return where an encoder is: the name of a KnowBert, as `kgkit train encoder` makes, means its own.

    Raises:
        UsageError: if it is a K-BERT, or was trained with knowledge bases.
    """
    if not has_model(home, name):
        return name
    folder = find_trained(home, name)
    if is_kind(KBERT, folder):
        raise UsageError(f"{name} is a K-BERT, and no encoder: begin as what it began as")
    if not is_kind(KNOWBERT, folder):
        return name
    if any(about.joint for about in read_knowbert(folder).kbs.values()):
        raise UsageError(
            f"the encoder of {name} was trained with its knowledge bases, which a K-BERT does not read: "
            "begin as one that was trained without, as `kgkit train encoder` makes"
        )
    return str((folder / KNOWBERT_FOLDER / ENCODER).absolute())


def _examples(training: KBertTraining) -> "tuple[list[Example], list[Example]]":
    """Return what is learnt from, and what is held out."""
    from kgkit.training.kbert_tasks import read_task

    def read(files: Sequence[Path]) -> "list[Example]":
        sets = [read_task(training.task, path) for path in files]
        for path, some in zip(files, sets, strict=True):
            if lacking := next((one.id for one in some if one.gold is None), None):
                raise UsageError(
                    f"{path}: example {lacking} has no label: nothing can be learnt from it, nor an "
                    "epoch chosen"
                )
        if len(sets) == 1:
            return sets[0]
        return [
            one._replace(id=f"{number}.{one.id}", group=f"{number}.{one.group}" if one.group else "")
            for number, some in enumerate(sets, 1)
            for one in some
        ]

    taught, held_out = read(training.data), read(training.dev)
    if training.dev or len(taught) < HELD_OUT:
        return taught, held_out
    groups = sorted({one.group or one.id for one in taught})  # a question's answers stay together
    order = np.random.default_rng(0).permutation(len(groups))  # the same for all seeds; files may be sorted
    out = {groups[place] for place in order[: len(groups) // HELD_OUT].tolist()}
    return (
        [one for one in taught if (one.group or one.id) not in out],
        [one for one in taught if (one.group or one.id) in out],
    )


def _reader(
    encoder: Encoder,
    kbs: Sequence[KnowledgeBase],
    told: KBertTraining | KBertManifest,
    relations: bool,
    labels: Sequence[str],
    device: str,
) -> "TaskReader":
    """Return what gives a model its examples, as it is told to read them."""
    from kgkit.training.kbert_tasks import TaskReader

    facts = TreeConfig(max_facts=told.max_facts, relations=relations, attributes=told.attributes)
    builder = TreeBuilder(generators_of(kbs, told.query), facts)
    trees = TreeReader(encoder, builder, size=told.size)
    if told.query != "link" or not kbs:
        return TaskReader(trees, labels)
    linkers = SeveralLinkers(kbs, model=told.linker, coherence=told.coherence, device=device)
    return TaskReader(trees, labels, _remembering(linkers, device))


def _remembering(linkers: SeveralLinkers, device: str) -> Look:
    """Return what links texts, and words that refer back, each text once."""
    known: dict[str, LinkedDocument] = {}  # texts come again in each epoch

    def look(documents: Iterable[Document]) -> Iterator[LinkedDocument]:
        import torch

        asked = [*documents]
        new = [one for one in asked if one.text not in known]
        if len(known) + len(new) > _MAX_KNOWN:
            known.clear()
            new = asked
        with torch.autocast(pick_device(device).type, enabled=False):  # links do not depend on who asks
            known.update((one.text, one) for one in linkers(new))
        return (known[one.text] for one in asked)

    return look


def _groups(model: "TreeTask", training: KBertTraining) -> list[dict[str, Any]]:
    """Return what is trained, at which rate; biases and norms do not decay."""
    groups: dict[tuple[float, float], list[Any]] = {}
    for part, rate in ((model.kbert, training.lr), (model.classifier, training.lr_new)):
        for one in part.parameters():
            groups.setdefault((rate, training.decay if one.ndim > 1 else 0.0), []).append(one)
    return [{"params": some, "lr": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]
