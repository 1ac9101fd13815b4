"""A plain classifier of texts, or of names or tokens in them: Peters et al. (2019), section 4.3, as in BERT.

    B  texts              H  encoder width                         L  labels; 1 for a number, or a choice
    T  word pieces of one P  word pieces of a text that are read   C  choices

    hidden (B, T, H) ─at P positions─▶ (B, P, H) ─joined─▶ (B, P · H) ─linear─▶ logits (B, L)

A text as a whole is read at its first piece, [CLS]; a name at the special piece that was put before it; two
names at two positions; a token at its first piece. What the logits mean depends on the kind of the answers:

    label, tags    softmax over the labels of a text, or of a token; the likeliest label holds
    labels         a sigmoid for each label; all with more than one half hold
    number         one output, the number in standard deviations from the mean of the training data
    choice         one output for each of C texts, softmax over these

The encoder is no part of the head.

Departures:
    For a text as a whole, the code that was released with the paper reads [CLS] through BERT's pooler: a
    dense layer and tanh, pretrained to tell whether a sentence follows another. Here the vector itself is
    read: not every encoder has a pooler, and some have one that was never trained. Names are read as there.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.errors import UsageError
from kgkit.heads.folder import SavedHead
from kgkit.heads.parts import draw_weights

KIND: Final = "classifier"


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """Settings of `Classifier`.

    Attributes:
        hidden: H.
        labels: L names, in the order of the logits; none for a number or a choice.
        positions: P.
        answer: kind of the answers.
        mean, scale: of a number: mean and standard deviation of the training data.
        dropout: of the vectors that are read.
    """

    hidden: int
    labels: tuple[str, ...] = ()
    positions: int = 1
    answer: Literal["label", "labels", "tags", "number", "choice"] = "label"
    mean: float = 0.0
    scale: float = 1.0
    dropout: float = 0.1

    @property
    def outputs(self) -> int:
        """L: the number of logits."""
        return len(self.labels) or 1

    def __post_init__(self) -> None:
        if min(self.hidden, self.positions) < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"hidden is {self.hidden}, positions {self.positions}, dropout {self.dropout}; the first two "
                "are 1 or more, dropout is from 0 to below 1"
            )
        if not (math.isfinite(self.mean) and 0 < self.scale < math.inf):
            raise UsageError(f"mean is {self.mean}, scale {self.scale}; both are finite, scale is above 0")
        names = ", ".join(map(repr, self.labels)) or "none"
        if len(set(self.labels)) < len(self.labels) or not all(self.labels):
            raise UsageError(f"labels are {names}: none of them may be empty, or come twice")
        if self.answer in ("number", "choice"):
            if self.labels:
                raise UsageError(f"labels are {names}: a {self.answer} has none")
            return
        least = 1 if self.answer == "labels" else 2
        if len(self.labels) < least:
            raise UsageError(f"labels: {names}; there is nothing to tell apart with fewer than {least}")


class Classifier(SavedHead):
    """Says which label a text has, or which ones, from the encoder's vectors at some of its word pieces.

    Args:
        config: settings.
        generator: generator that the first parameters are drawn with.

    Examples:
        >>> classifier = Classifier(ClassifierConfig(hidden=384, labels=("F", "T")))
        >>> logits = classifier(hidden, positions)          # (B, T, H), (B, 1) zeros -> (B, 2)
        >>> classifier.loss(logits, gold).backward()        # gold: (B,) indices of labels
        >>> classifier.probabilities(logits)
        tensor([[0.1, 0.9], [0.7, 0.3], …])
        >>> classifier.save_pretrained("my-classifier")
    """

    kind, settings = KIND, ClassifierConfig
    config: ClassifierConfig

    def __init__(self, config: ClassifierConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.dropout = nn.Dropout(config.dropout)
        self.label = nn.Linear(config.positions * config.hidden, config.outputs)
        draw_weights(self.label, generator)

    def forward(self, hidden: Tensor, positions: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return the logits, (R, L), float32 at least.

        Args:
            hidden: (B, T, H) of an encoder.
            positions: (R, P) int64, below T: the word pieces that each answer is read from.
            rows: (R,) int64, below B: the text of each answer; None: one answer for each text, R = B.
        """
        if rows is None:
            rows = torch.arange(len(hidden), device=hidden.device)
        vectors = hidden[rows[:, None], positions]  # (R, P, H)
        joined = vectors.flatten(1).to(self.label.weight.dtype)  # (R, P · H)
        with torch.autocast(hidden.device.type, enabled=False):  # rounded logits are often alike
            logits: Tensor = self.label(self.dropout(joined))  # (R, L)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def loss(self, logits: Tensor, gold: Tensor) -> Tensor:
        """Return the mean loss: the cross entropy, or the squared error of a standardised number.

        Args:
            logits: (R, L); of choices (B, C), -inf where a text has fewer.
            gold: (R,) int64, the index of the label or choice; of several labels (R, L) bool, those that
                hold; of numbers (R,) float32.
        """
        answer = self.config.answer
        if answer == "labels":
            return functional.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype))
        if answer == "number":
            return functional.mse_loss(logits[:, 0], (gold - self.config.mean) / self.config.scale)
        return functional.cross_entropy(logits, gold)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probability of each label or choice, as *logits*; of numbers (R, 1) the numbers."""
        if self.config.answer == "number":
            return logits * self.config.scale + self.config.mean
        return logits.sigmoid() if self.config.answer == "labels" else logits.softmax(-1)
