"""KnowBert, or an encoder without knowledge, for a task: Peters et al. (2019), section 4.3."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from kgkit.evaluation.examples import Example
from kgkit.heads.classifier import Classifier
from kgkit.inputs.knowbert import KnowBertBatch, KnowBertReader
from kgkit.inputs.texts import TokenizedText
from kgkit.linking.knowbert import CLASSIFIER, FOLDER, TrainedKnowBert
from kgkit.methods.answering import TaskData
from kgkit.methods.contract import Beginning, Reading, Resources, TaskModel, group_parameters
from kgkit.methods.encoders import add_pieces
from kgkit.methods.knowbert_reading import ExampleReader
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.methods.knowbert_start import KnowBertStart, begin_knowbert, pretrained_parameters
from kgkit.methods.predicting import Predictor
from kgkit.methods.settings import TaskTraining
from kgkit.models.kinds import KnowBertManifest

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.encoder import Encoder
    from kgkit.heads.knowbert import KnowBert
    from kgkit.models.opening import Opening


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

    def save(self, folder: Path, *, about: str = "") -> None:
        """Write the KnowBert, its tokenizer and the classifier into *folder*."""
        head: Any = self.model.head
        save_knowbert(head, self.encoder, folder, about)
        self.model.classifier.save_pretrained(folder / CLASSIFIER, about=about)


def _hidden(knowbert: "KnowBert", inputs: KnowBertBatch) -> "Tensor":
    hidden: Tensor = knowbert(inputs.knowledge, **inputs.inputs).model.last_hidden_state
    return hidden


def save_knowbert(knowbert: "KnowBert", encoder: "Encoder", folder: Path, about: str) -> None:
    """Write a KnowBert with its tokenizer into the folder of a model."""
    from kgkit.encoder.folder import ENCODER

    knowbert.save_pretrained(folder / FOLDER, about=about)
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
