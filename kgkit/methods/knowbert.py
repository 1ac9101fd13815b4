"""KnowBert: what its trainings begin with, and a task on top of it (Peters et al. 2019, section 4.3)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.heads.classifier import Classifier
from kgkit.home import Home
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.knowledge import Knowledge, knowledge_of
from kgkit.inputs.texts import TokenizedText
from kgkit.kb import KnowledgeBase
from kgkit.methods.answering import TaskData
from kgkit.methods.contract import Beginning, Reading, Resources, TaskModel, group_parameters
from kgkit.methods.encoders import CLASSIFIER, add_pieces
from kgkit.methods.knowbert_model import FOLDER, TrainedKnowBert
from kgkit.methods.knowbert_reading import ExampleReader
from kgkit.methods.knowbert_settings import (
    EXAMPLE_TASKS,
    KNOWBERT,
    LINKING,
    KnowBertManifest,
    KnowBertTraining,
    KnownKB,
    linker_config,
)
from kgkit.methods.predicting import Predictor
from kgkit.methods.settings import ChosenKB, TaskTraining, check_knowledge, gold_beside
from kgkit.models.folder import find_model_folder
from kgkit.models.manifest import Needs
from kgkit.versions import read_current

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.encoder import Encoder
    from kgkit.heads.knowbert import KnowBert
    from kgkit.models.opening import Opening


@dataclass
class KnowBertStart:
    """A KnowBert that is to be trained.

    Attributes:
        knowbert: the model.
        encoder: the encoder inside it.
        knowledge: its knowledge bases, by name.
        kbs: entries of the manifest for these.
        origin: name of the encoder that it began as, before all stages.
        drawn: names of the model's parameters that no file had.
        language_model: whether it is a masked language model that has been trained.
        size: word pieces of a text.
    """

    knowbert: "KnowBert"
    encoder: "Encoder"
    knowledge: dict[str, Knowledge]
    kbs: dict[str, KnownKB]
    origin: str
    drawn: frozenset[str]
    language_model: bool
    size: int

    def __post_init__(self) -> None:
        self.reader = KnowBertReader(self.encoder, self.knowledge, size=self.size)

    def handle(self, kb: str) -> KnowledgeBase:
        """Return a knowledge base, open."""
        return self.knowledge[kb].generator.kb

    def identity(self, home: Home, training: KnowBertTraining) -> object:
        """Return everything beside settings and data that decides what is learnt."""
        vectors = {name: knowledge.about for name, knowledge in self.reader.knowledge.items()}
        created = ""  # of the model that it begins as, which may have been trained again
        if training.start:
            created = read_current(
                lambda: find_model_folder(training.start, home, KNOWBERT), KNOWBERT.read
            ).created
        return vectors, self.encoder.fingerprint, created

    def manifest(self, training: KnowBertTraining) -> dict[str, Any]:
        """Return the fields of the manifest that are known before training, and after it."""
        return {
            "kbs": self.kbs, "encoder": self.origin, "size": training.size, "start": training.start,
            "needs": Needs(
                kbs={name: self.handle(name).build for name in self.kbs},
                vectors=tuple(f"{kb}/{name}" for kb, about in self.kbs.items() for name in about.vectors),
            ),
        }  # fmt: skip


def begin_knowbert(
    home: Home, training: KnowBertTraining, chosen: Sequence[ChosenKB], device: str, stack: ExitStack
) -> KnowBertStart:
    """Return the model as it is before it is trained, with its new knowledge bases.

    Raises:
        UsageError: if the settings do not fit each other, or the model that it begins as.
        UnknownName, NotThere, StaleModel, DamagedModel: as `TrainedKnowBert.open` does.
    """
    check_knowledge(training.start, chosen, training.control)
    if training.task in LINKING and len(chosen) > 1:
        raise UsageError(
            f"{training.task} trains the linker of one knowledge base: put in {chosen[0].kb.name} first, "
            f"then {chosen[1].kb.name}, with --from"
        )
    model = (_continue if training.start else _from_encoder)(home, training, device, stack)
    if not training.control:
        _add_kbs(model, training, chosen)
    if training.task in LINKING and not model.kbs:
        raise UsageError(f"{training.task} trains the linker of a knowledge base: name one with --kb")
    model.reader = KnowBertReader(model.encoder, model.knowledge, size=training.size)
    return model


def _continue(home: Home, training: KnowBertTraining, device: str, stack: ExitStack) -> KnowBertStart:
    """Return the model that it begins as."""
    from kgkit.encoder.folder import ENCODER
    from kgkit.heads.knowbert import KnowBert

    def open_start(folder: Path) -> TrainedKnowBert:
        """Open the KnowBert in *folder* around the encoder that is trained on."""
        KNOWBERT.read(folder)  # says so, if it is another kind of model
        around = _around(training, folder / FOLDER / ENCODER)
        return TrainedKnowBert.open(str(folder), home=home, around=around, device=device)

    before = stack.enter_context(
        read_current(lambda: find_model_folder(training.start, home, KNOWBERT), open_start)
    )
    knowbert, manifest = before.knowbert, before.manifest
    drawn = knowbert.drawn
    language_model = manifest.language_model and is_language_model(drawn)
    if not training.control:
        knowledge = dict(before.reader.knowledge), dict(manifest.kbs)
        return KnowBertStart(
            knowbert, before.encoder, *knowledge, manifest.encoder, drawn, language_model, training.size
        )
    if any(about.joint for about in manifest.kbs.values()):
        raise UsageError(
            f"the encoder of {training.start} was trained with its knowledge bases, and is no control: begin "
            "as one that was trained without (--from)"
        )
    knowbert.detach()
    plain = KnowBert(knowbert.model, {})
    return KnowBertStart(
        plain, before.encoder, {}, {}, manifest.encoder, drawn, language_model, training.size
    )


def _from_encoder(home: Home, training: KnowBertTraining, device: str, stack: ExitStack) -> KnowBertStart:
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
    language_model = around != "AutoModel" and is_language_model(drawn)
    return KnowBertStart(
        KnowBert(model, {}), encoder, {}, {}, training.encoder, drawn, language_model, training.size
    )


def _around(training: KnowBertTraining, encoder: Path) -> str:
    """Return the class of transformers that is to stand around an encoder."""
    from kgkit.encoder.loading import language_class

    return "AutoModel" if training.task in EXAMPLE_TASKS else language_class(encoder)


def is_language_model(drawn: frozenset[str]) -> bool:
    """Say whether what guesses hidden words was read; what reads [CLS], and the next sentence, may be new."""
    return all("pooler" in name or "seq_relationship" in name for name in drawn)


def _add_kbs(model: KnowBertStart, training: KnowBertTraining, chosen: Sequence[ChosenKB]) -> None:
    """Put knowledge bases into a model, each above those that it has."""
    import torch

    from kgkit.heads.knowbert import KARConfig, usual_layers

    depth = model.encoder.model.config.num_hidden_layers
    generator = torch.Generator().manual_seed(training.seed)
    for kb, vectors in chosen:
        if kb.name in model.kbs:
            owner = training.start or "the model"
            raise UsageError(f"{owner} has the knowledge base {kb.name} already: leave out --kb {kb.name}")
        last = max((kar.config.layer for kar in model.knowbert.kars.values()), default=None)
        layer = usual_layers(depth, kbs=1)[0] if last is None else min(last + 1, depth)
        knowledge = knowledge_of(kb, vectors)
        tasks = {kb: "el" if gold_beside(data) is None else "wsd" for kb, data in training.linking}
        linker = linker_config(tasks.get(kb.name, training.task), model.encoder.width, knowledge.width)
        model.knowbert.add(kb.name, KARConfig(linker=linker, layer=layer), generator)
        model.knowbert.trained_with[kb.name] = knowledge.about
        model.knowledge[kb.name], model.kbs[kb.name] = knowledge, KnownKB(vectors=vectors)


def pretrained_parameters(model: KnowBertStart) -> set[int]:
    """Return the `id` of each parameter of the model around the encoder that has been trained before."""
    around: Any = model.knowbert.model
    pretrained = {id(weight) for name, weight in around.named_parameters() if name not in model.drawn}
    if model.language_model:
        return pretrained
    return pretrained & {id(weight) for weight in model.encoder.model.parameters()}


class KnowBertMethod:
    """A KnowBert with a classifier on top.

    Args:
        task: name of the task.
        knowbert: head, around a bare encoder; with no knowledge base it is that encoder.
        classifier: classifier of its vectors.
        encoder: encoder that the head is around, with its tokenizer.
        reader: reader of texts.
        specials: special pieces of the task, which the tokenizer has.
        start: what the training begins with; None of a model that has been trained.
    """

    def __init__(
        self,
        task: str,
        knowbert: "KnowBert",
        classifier: Classifier,
        encoder: "Encoder",
        reader: KnowBertReader,
        specials: Sequence[str] = (),
        start: KnowBertStart | None = None,
    ) -> None:
        self.task, self.encoder, self.start = task, encoder, start
        self.reader, self._batch = ExampleReader(reader, encoder.tokenizer, specials), reader.batch
        self.model = TaskModel(knowbert, classifier, _hidden)

    def read(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example as it is read; see `ExampleReader`."""
        return self.reader(examples)

    def collate(self, contents: Sequence[TokenizedText]) -> KnowBertBatch:
        """Return texts padded to the longest."""
        return self._batch(contents)

    def groups(self, training: TaskTraining) -> list[dict[str, Any]]:
        """Return the parameters: those that were trained before with `lr`, the others with `lr_new`."""
        pretrained = set[int]() if self.start is None else pretrained_parameters(self.start)
        return group_parameters(self.model, pretrained, training)

    def save(self, folder: Path) -> None:
        """Write the KnowBert, its tokenizer and the classifier into *folder*."""
        head: Any = self.model.head
        save_knowbert(head, self.encoder, folder)
        self.model.classifier.save_pretrained(folder / CLASSIFIER)


def _hidden(knowbert: "KnowBert", inputs: KnowBertBatch) -> "Tensor":
    hidden: Tensor = knowbert(inputs.knowledge, **inputs.inputs).model.last_hidden_state
    return hidden


def save_knowbert(knowbert: "KnowBert", encoder: "Encoder", folder: Path) -> None:
    """Write a KnowBert with its tokenizer into the folder of a model."""
    from kgkit.encoder.folder import ENCODER

    knowbert.save_pretrained(folder / FOLDER)
    encoder.tokenizer.save_pretrained(folder / FOLDER / ENCODER)
    encoder.save_settings(folder / FOLDER / ENCODER)


def begin_task(training: KnowBertTraining, data: TaskData, resources: Resources) -> Beginning:
    """Return a KnowBert that is to be trained for a task.

    Args:
        training: settings.
        data: examples of the task.
        resources: knowledge bases that are put above those that the model has already, from the bottom up;
            the home of the model that it begins as.

    Raises:
        As `begin_knowbert` does.
    """
    home = resources.home
    start = begin_knowbert(home, training, resources.kbs, resources.device, resources.stack)
    specials = data.task.specials(data.learn)
    if specials:
        add_pieces(start.encoder, specials, training.seed)
        # Its tokenizer was copied before the pieces were added.
        start.reader = KnowBertReader(start.encoder, start.knowledge, size=training.size)
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(data.classifier_config(start.encoder.width), drawn).to(start.encoder.device)
    start.knowbert.unfreeze()
    method = KnowBertMethod(
        training.task, start.knowbert, classifier, start.encoder, start.reader, specials, start
    )
    kbs_after = {name: msgspec.structs.replace(about, joint=True) for name, about in start.kbs.items()}
    fields = {**start.manifest(training), "kbs": kbs_after, "specials": specials}
    count = _count_mentions if start.kbs else None
    return Beginning(method, start.identity(home, training), fields, count)


def _count_mentions(text: TokenizedText) -> dict[str, int]:
    """Return how many mentions with candidates a text has in each knowledge base."""
    return {f"mentions in {name}": len(mentions.spans) for name, mentions in text.mentions.items()}


def open_predictor(folder: Path, manifest: KnowBertManifest, opening: "Opening") -> Predictor:
    """Open a KnowBert that was trained for a task.

    Raises:
        NotThere: if a knowledge base or its vectors are gone.
        StaleModel: if a knowledge base is another build, or has other vectors.
        DamagedModel: if its files cannot be read.
    """
    classifier = Classifier.from_pretrained(folder / CLASSIFIER, device=opening.device)
    with ExitStack() as stack:
        trained = stack.enter_context(
            TrainedKnowBert.open_folder(folder, manifest, opening.home, device=opening.device)
        )
        method = KnowBertMethod(
            manifest.task, trained.knowbert, classifier, trained.encoder, trained.reader, manifest.specials
        )
        return Predictor(method, manifest, stack.pop_all())
