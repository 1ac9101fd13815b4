"""What a method is: a head that reads the examples of a task and answers them.

    R  answers of a batch    P  word pieces that one is read from    L  labels    W  answers of a text

A method gives its head texts to read (`Method.read`, `Method.collate`), says how its parameters are trained
(`Method.groups`) and writes itself into a folder (`Method.save`). What does not depend on the head stands
once, in `kgkit.methods.answering`: what is learnt of an example, the loss, the predictions. So every method
takes every task that it can read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.home import Home
from kgkit.methods.settings import ChosenKB, TaskTraining

if TYPE_CHECKING:
    from kgkit.heads.classifier import Classifier


class Reading(NamedTuple):
    """An example as a method reads it.

    Attributes:
        content: the method's own form of the text, or pair of texts.
        positions: (W, P) int64, the word pieces that its answers are read from; a row of -1 where a token
            was cut off. W is 1, or the number of tokens.
    """

    content: Any
    positions: NDArray[np.int64]


class Batch(NamedTuple):
    """Examples as a model takes them.

    Attributes:
        inputs: what the head reads, as `Method.collate` makes it; it has a method `to(device)`.
        rows: (R,) int64, the text of each answer.
        positions: (R, P) int64, its word pieces.
        examples: (R,) int64, the index of the example that it answers.
        items: (R,) int64, the index of the token, or of the choice, in that example.
        gold: as `Classifier.loss` takes it; None if an example has none.
    """

    inputs: Any
    rows: Tensor
    positions: Tensor
    examples: Tensor
    items: Tensor
    gold: Tensor | None

    def to(self, device: torch.device, **_: object) -> "Batch":
        """Return it on a device."""
        gold = None if self.gold is None else self.gold.to(device)
        rows, positions, examples, items = (part.to(device) for part in self[1:5])
        return Batch(self.inputs.to(device), rows, positions, examples, items, gold)


class TaskModel(nn.Module):
    """A head with a classifier on top.

    Args:
        head: around a bare encoder.
        classifier: reads the vectors of its word pieces.
        hidden: function from the head and the inputs of a batch to the vectors (B, T, H).

    Raises:
        UsageError: if the head's model is more than an encoder, or of another width.
    """

    def __init__(
        self, head: nn.Module, classifier: "Classifier", hidden: Callable[[Any, Any], Tensor]
    ) -> None:
        super().__init__()
        model: Any = head.model
        if model.base_model is not model:
            raise UsageError(
                f"a classifier stands on an encoder, not on a {type(model).__name__}: read the "
                f"{type(head).__name__} with model='AutoModel'"
            )
        if model.config.hidden_size != classifier.config.hidden:
            raise UsageError(
                f"the classifier reads vectors of width {classifier.config.hidden}, the encoder has "
                f"{model.config.hidden_size}"
            )
        self.head, self.classifier, self._hidden = head, classifier, hidden

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits of the answers, (R, L)."""
        logits: Tensor = self.classifier(self._hidden(self.head, batch.inputs), batch.positions, batch.rows)
        return logits


class Method(Protocol):
    """A head that reads the examples of a task.

    Attributes:
        task: name of the task.
        model: module from a `Batch` to the logits of its answers.
    """

    @property
    def task(self) -> str:
        """Name of the task that its examples are of, as `kgkit.evaluation.tasks` lists it."""

    @property
    def model(self) -> TaskModel:
        """Head with its classifier: a `Batch` to the logits of its answers, (R, L)."""

    def read(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example, of a text or a pair, as it is read.

        Raises:
            UsageError: if one cannot be read.
        """
        ...

    def collate(self, contents: Sequence[Any]) -> Any:
        """Return what the head reads of several texts, padded to the longest."""
        ...

    def groups(self, training: TaskTraining) -> list[dict[str, Any]]:
        """Return the groups of parameters that an optimizer takes, each with its learning rate."""
        ...

    def save(self, folder: Path) -> None:
        """Write the head, its encoder and its classifier into *folder*."""
        ...


class Resources(NamedTuple):
    """What a training has beside its settings and data.

    Attributes:
        home: home of knowledge bases and models.
        kbs: knowledge bases, open, in the order in which they were named; of a control none.
        device: name of the torch device on which it is trained.
        stack: stack for what the method opens: it is closed when the model is published.
    """

    home: Home
    kbs: Sequence[ChosenKB]
    device: str
    stack: ExitStack


class Beginning(NamedTuple):
    """A method that is to be trained.

    Attributes:
        method: the method, whose model has the weights that it begins with.
        identity: everything beside settings and data that decides what is learnt, as the fingerprint of the
            encoder and the builds of knowledge bases; its `repr` is digested.
        manifest: fields of the manifest that the method knows.
        count_knowledge: function from what a text is read as (`Reading.content`) to how much it has of each
            kind of knowledge, by a plural noun, as entities or facts; None: there is none to read, as in a
            control.
    """

    method: Method
    identity: object
    manifest: dict[str, Any]
    count_knowledge: Callable[[Any], Mapping[str, int]] | None = None


def first_pieces(
    starts: NDArray[np.int64], tokens: Sequence[tuple[int, int]], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (W, 1) the first word piece of each token; -1 where it has none, or was cut off.

    Args:
        starts: (P,) first code point of each word piece of the text, ascending.
        tokens: W spans of code points, end exclusive.
        positions: (P,) where these word pieces stand among all that are read.
    """
    spans = np.array(tokens, np.int64).reshape(-1, 2)
    first = np.searchsorted(starts, spans[:, 0])  # (W,)
    exists = first < len(starts)
    first = first[exists]
    firsts = np.full(len(spans), -1, np.int64)
    firsts[exists] = np.where(starts[first] < spans[exists, 1], positions[first], -1)
    return firsts[:, None]


def group_parameters(model: nn.Module, pretrained: set[int], training: TaskTraining) -> list[dict[str, Any]]:
    """Return the parameters of a model by learning rate and weight decay.

    Args:
        model: all that is trained.
        pretrained: the `id` of each parameter with the learning rate `lr`; the others have `lr_new`.
        training: settings.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            rate = training.lr if id(parameter) in pretrained else training.lr_new
            groups.setdefault((rate, training.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return [{"params": some, "lr": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]
