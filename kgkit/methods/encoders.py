"""The encoder that a method begins as: a folder, a package, a hub id, or that of a trained KnowBert.

And what methods have in common whose head is around an encoder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from kgkit.encoder import Encoder
from kgkit.encoder.device import seeded_cpu
from kgkit.encoder.folder import ENCODER
from kgkit.encoder.loading import quiet
from kgkit.errors import UsageError
from kgkit.heads.classifier import Classifier
from kgkit.home import Home
from kgkit.methods.contract import TaskModel, group_parameters
from kgkit.methods.knowbert_settings import KNOWBERT
from kgkit.methods.links import check_linker
from kgkit.methods.settings import LinkedTextManifest, TaskTraining
from kgkit.models.encoders import load_encoder as load_by_name
from kgkit.models.folder import find_trained, has_model
from kgkit.models.kinds import Kind, find_kind
from kgkit.models.manifest import read_header
from kgkit.models.opening import Opening

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.heads.folder import EncoderHead

CLASSIFIER: Final = "classifier"
"""The folder, in that of a model, of what was put on top of its head for a task."""

HeadType = TypeVar("HeadType", bound="EncoderHead")


class EncoderMethod:
    """What methods have in common whose head is around an encoder.

    Args:
        task: name of the task.
        head: head, around a bare encoder.
        classifier: classifier of its vectors.
        encoder: encoder that the head is around, with its tokenizer.
        reader: reader whose `batch` makes the inputs of the head.

    Attributes:
        folder: folder of the head in that of a model.
    """

    folder: ClassVar[str]

    def __init__(
        self, task: str, head: "EncoderHead", classifier: Classifier, encoder: Encoder, reader: Any
    ) -> None:
        self.task, self.encoder, self.reader = task, encoder, reader
        self.model = TaskModel(head, classifier, _hidden)

    def collate(self, contents: Sequence[Any]) -> Any:
        """Return what the head reads of several texts, padded to the longest."""
        return self.reader.batch(contents)

    def groups(self, training: TaskTraining) -> list[dict[str, Any]]:
        """Return the parameters: the encoder with `lr`, the classifier with `lr_new`."""
        return group_parameters(self.model, set(map(id, self.model.head.parameters())), training)

    def save(self, folder: Path) -> None:
        """Write the head, its encoder with the tokenizer, and the classifier into *folder*."""
        head: Any = self.model.head
        head.save_pretrained(folder / self.folder)
        self.encoder.save_tokenizer(folder / self.folder / ENCODER)  # the weights lie there already
        self.model.classifier.save_pretrained(folder / CLASSIFIER)


def _hidden(head: "EncoderHead", inputs: Any) -> "Tensor":
    hidden: Tensor = head(inputs).last_hidden_state
    return hidden


def add_pieces(encoder: Encoder, pieces: Sequence[str], seed: int) -> None:
    """Add special pieces to a tokenizer, and rows to the table of its encoder, which *seed* draws.

    Rows are drawn on the CPU, so that they are the same on each device. Other random numbers stay as they
    are: a control, which has drawn fewer before, gets the same rows.
    """
    if not pieces:
        return
    encoder.tokenizer.add_tokens(list(pieces), special_tokens=True)
    around: Any = encoder.model
    device = around.device
    around.to("cpu")
    with quiet(), seeded_cpu(seed):
        around.resize_token_embeddings(len(encoder.tokenizer))
    around.to(device)


def encoder_at(home: Home, name: str, kind: Kind[Any]) -> str:
    """Return where an encoder is: the name of a KnowBert, as `kgkit train encoder` makes, means its own.

    Args:
        home: home of the models.
        name: name of a model, or of an encoder.
        kind: kind that begins as it.

    Raises:
        UsageError: if it is a K-BERT, an E-BERT or a KAM-BERT, or was trained with knowledge bases.
    """
    if not has_model(home, name):
        return name
    folder = find_trained(home, name)
    header = read_header(folder)
    found = find_kind(header, folder)
    if issubclass(found.manifest, LinkedTextManifest):
        raise UsageError(f"{name} is {found.title}, and no encoder: begin as what it began as")
    if header.kind != KNOWBERT.name:
        return name
    if any(about.joint for about in KNOWBERT.read(folder).kbs.values()):
        raise UsageError(
            f"the encoder of {name} was trained with its knowledge bases, which {kind.title} does not read: "
            "begin as one that was trained without, as `kgkit train encoder` makes"
        )
    return str((folder / KNOWBERT.encoder).absolute())


def load_encoder(home: Home, name: str, kind: Kind[Any], device: str) -> Encoder:
    """Load the encoder of `encoder_at`; it is called *name*.

    Raises:
        UsageError: as `encoder_at` does, or if a model has no encoder of its own.
        NotThere: if there is no such encoder.
    """
    encoder_at(home, name, kind)
    return load_by_name(name, home, device=device)


def open_head(
    head: type[HeadType], folder: Path, name: str, manifest: LinkedTextManifest, opening: Opening
) -> tuple[HeadType, Classifier, Encoder]:
    """Open what an `EncoderMethod` has: the head, its classifier and its encoder.

    Args:
        head: class of the head.
        folder: folder of the model.
        name: folder of the head within it.
        manifest: manifest of the model.
        opening: how the model is to be opened.

    Raises:
        StaleModel: if the linker whose links it reads was trained again.
        DamagedModel: if its files cannot be read.
    """
    check_linker(opening.home, manifest.name, manifest.linker, manifest.linker_sha256)
    encoder = Encoder.load(str((folder / name / ENCODER).absolute()), device=opening.device)
    module = head.around(encoder.model, folder / name)
    return module, Classifier.from_pretrained(folder / CLASSIFIER, device=opening.device), encoder
