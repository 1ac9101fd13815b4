"""A plain classifier of texts, or of names in them: Peters et al. (2019), section 4.3, as in BERT.

    B  texts    T  word pieces of one    H  encoder width    P  positions of a text that are read    L  labels

    hidden (B, T, H) ─at P positions─▶ (B, P, H) ─joined─▶ (B, P · H) ─linear─▶ logits (B, L)

A text as a whole is read at its first piece, [CLS]; a name at the special piece that was put before it; two
names at two places. Of the labels one holds, the likeliest, or each that is likelier than not
(`multi_label`). The encoder is no part of the head.

Departures:
    For a text as a whole, the code that was released with the paper reads [CLS] through BERT's pooler: a
    dense layer and tanh, pretrained to tell whether a sentence follows another. Here the vector itself is
    read: not every encoder has a pooler, and some have one that was never trained. Names are read as there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.errors import UsageError
from kgkit.heads.folder import card_of, load_head, save_head
from kgkit.heads.parts import draw_weights

if TYPE_CHECKING:
    from typing import Self

KIND: Final = "classifier"

_RENAMED: Final = {"places": "positions", "several": "multi_label"}
"""Settings as they were written before -> as they are called now."""


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """Settings of `Classifier`."""

    hidden: int  # H
    labels: tuple[str, ...]  # L names, in the order of the logits
    positions: int = 1  # P
    multi_label: bool = False  # any number of labels may hold; False: one does
    dropout: float = 0.1  # of what the labels are read from

    def __post_init__(self) -> None:
        if min(self.hidden, self.positions) < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"hidden is {self.hidden}, positions {self.positions}, dropout {self.dropout}; the first two "
                "are 1 or more, dropout is from 0 to below 1"
            )
        if len(set(self.labels)) < len(self.labels) or not all(self.labels):
            told = ", ".join(map(repr, self.labels))
            raise UsageError(f"labels are {told}: none of them may be empty, or come twice")
        least = 1 if self.multi_label else 2
        if len(self.labels) < least:
            told = ", ".join(self.labels) or "none"
            raise UsageError(f"labels: {told}; there is nothing to tell apart with fewer than {least}")


class Classifier(nn.Module):
    """Says which label a text has, or which ones, from the encoder's vectors at some of its positions.

    Args:
        config: settings.
        generator: that the first parameters are drawn with.

    Example:
        >>> classifier = Classifier(ClassifierConfig(hidden=384, labels=("F", "T")))
        >>> logits = classifier(hidden, positions)          # (B, T, H), (B, 1) zeros -> (B, 2)
        >>> classifier.loss(logits, gold).backward()        # gold: (B,) indices of labels
        >>> classifier.answers(logits)
        ['T', 'F', …]
        >>> classifier.save_pretrained("my-classifier")
    """

    def __init__(self, config: ClassifierConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.dropout = nn.Dropout(config.dropout)
        self.label = nn.Linear(config.positions * config.hidden, len(config.labels))
        draw_weights(self.label, generator)

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        """Return the logits of the labels, (B, L), float32 at least.

        Args:
            hidden: (B, T, H) of an encoder.
            positions: (B, P) int64, below T: where each text is read.

        Raises:
            UsageError: if the shapes do not fit each other, or the configuration.
        """
        width, count = self.config.hidden, self.config.positions
        if hidden.ndim != 3 or hidden.shape[2] != width or positions.shape != (len(hidden), count):
            raise UsageError(
                f"expected hidden (B, T, {width}) and positions (B, {count}), found {tuple(hidden.shape)} "
                f"and {tuple(positions.shape)}"
            )
        read = hidden.gather(1, positions[..., None].expand(-1, -1, width))  # (B, P, H)
        joined = read.flatten(1).to(self.label.weight.dtype)  # (B, P · H)
        with torch.autocast(hidden.device.type, enabled=False):  # rounded logits are often alike
            logits: Tensor = self.label(self.dropout(joined))  # (B, L)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def loss(self, logits: Tensor, gold: Tensor) -> Tensor:
        """Return the mean cross entropy: of texts, or, where several labels may hold, of texts and labels.

        Args:
            logits: (B, L).
            gold: (B,) int64, the label that holds; where several may, (B, L) bool, those that do.

        Raises:
            UsageError: if *gold* is of another kind, or shape.
        """
        several = self.config.multi_label
        shape, kind = (logits.shape, torch.bool) if several else (logits.shape[:1], torch.int64)
        if gold.shape != shape or gold.dtype != kind:
            raise UsageError(
                f"gold is {gold.dtype} of the shape {tuple(gold.shape)}, expected {kind} of {tuple(shape)}"
            )
        if several:
            return functional.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype))
        return functional.cross_entropy(logits, gold)

    def answers(self, logits: Tensor) -> list[str] | list[frozenset[str]]:
        """Return the likeliest label of each text, for logits (B, L).

        Where several may hold: those with a probability, the sigmoid of the logit, above 0.5; maybe none.
        """
        labels = self.config.labels
        if not self.config.multi_label:
            return [labels[best] for best in logits.argmax(-1).tolist()]
        return [
            frozenset(label for label, holds in zip(labels, row, strict=True) if holds)
            for row in (logits > 0).tolist()
        ]

    def save_pretrained(self, folder: Path | str, *, about: str = "") -> None:
        """Write the head into *folder*, which is made: weights, configuration, a model card.

        Args:
            folder: where; what a head saved there before is replaced.
            about: Markdown for the card: what it was trained on, under which licences, how well it does.

        Raises:
            MissingExtra: if safetensors is not installed.
        """
        save_head(Path(folder), KIND, self.config, self.state_dict(), self._card(about))

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the head that was saved in *folder*, ready to be asked.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other.
            UsageError: if it is another kind of head, or there is no such device.
            MissingExtra: if safetensors is not installed.
        """
        return load_head(cls, Path(folder), KIND, ClassifierConfig, device, renamed=_RENAMED)

    def _card(self, about: str) -> str:
        config = self.config
        return card_of(
            self, _CARD, about, hidden=config.hidden,
            places="one place of a text" if config.positions == 1 else f"{config.positions} places of a text",
            labels=", ".join(f"`{name}`" for name in config.labels),
            how="any number of them may hold" if config.multi_label else "one of them holds",
        )  # fmt: skip


_CARD: Final = """\
---
library_name: kgkit
pipeline_tag: text-classification
---

# A classifier

{about}A linear layer over an encoder's vectors at {places} (Peters et al. 2019, *Knowledge Enhanced
Contextual Word Representations*, section 4.3): {parameters} parameters, on top of an encoder of width
{hidden} that is not part of it.

It tells the labels {labels}; {how}.

```python
from kgkit.heads import Classifier

classifier = Classifier.from_pretrained("this folder")
```
"""
