"""Settings of a linker's training, and the command that repeats it."""

import shlex
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from kgkit.errors import UsageError
from kgkit.evaluation.files import check_data, check_gold_files
from kgkit.inputs import SpanConfig
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings
from kgkit.training.config import check_seed

if TYPE_CHECKING:
    from kgkit.encoder import Encoder

LAYERS: Final = (-1, -2, -3, -5)
"""Layers that are read, those that the encoder has."""

EPOCHS: Final = 4


@dataclass(frozen=True, kw_only=True)
class LinkerTraining:
    """Settings of a linker's training.

    Attributes:
        data: files of documents with entities; with *gold*, files of senses.
        gold: files of the senses, one for each file of data.
        corrections: file of corrections of the links in the data; only documents with one of their own are
            learnt from. None: all mentions of the data are right.
        encoder: encoder of the texts and of the mentions, whose vectors are taken; None: that of the vectors.
            With it, or with *vectors*, a linker of names begins from nothing, else as `links-minilm`.
        vectors: name of the vectors of the entities' texts, which must have been made; None: the published
            ones, else texts of candidates are encoded as they are needed.
        mentions: tagger whose names the linker links by default; "": none. With one, a document in ten is
            held out of training, and the linker's threshold is the best on these.
        reader: settings of the reader of mentions; None: the usual ones for the encoder.
        epochs: number of times that the network reads all data.
        seed: seed of weights, order and dropout.
        keep: whether a linker is published that is worse on what was held out than linking without training.
    """

    data: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    corrections: Path | None = None
    encoder: str | None = None
    vectors: str | None = None
    mentions: str = ""
    reader: SpanConfig | None = None
    epochs: int = EPOCHS
    seed: int = 0
    keep: bool = False

    def __post_init__(self) -> None:
        convert_settings(self)
        check_range(self, "epochs", least=1)
        check_seed(self.seed)
        check_data(self.data)
        if self.gold:
            check_gold_files(self.data, self.gold)
        if self.corrections is not None and (self.gold or self.mentions):
            raise UsageError(
                "--corrections is for links that were written by kgkit link: leave out --gold and --mentions"
            )
        if self.gold and self.mentions:
            raise UsageError("--mentions is for names, not for senses (--gold)")
        files = [path.resolve() for path in self.data]
        if repeated := next((path for number, path in enumerate(files) if path in files[:number]), None):
            raise UsageError(f"{repeated} is named twice: name each file of --data once")

    @property
    def task(self) -> Literal["wsd", "el"]:
        """`wsd` for senses, `el` for entities."""
        return "wsd" if self.gold else "el"

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of all files that are read."""
        return (*self.data, *self.gold, *([] if self.corrections is None else [self.corrections]))


def command_of(kb: str, name: str, training: LinkerTraining) -> str:
    """Return the command that trains the model *name* for *kb*, with the settings that are options of it."""
    words = ["--name", name, "--kb", kb]
    for data, gold in zip_longest(training.data, training.gold):
        words += ["--data", str(data), *(("--gold", str(gold)) if gold else ())]
    usual_values = {
        "corrections": None, "encoder": None, "vectors": None, "mentions": "", "epochs": EPOCHS, "seed": 0
    }  # fmt: skip
    for option, usual in usual_values.items():
        value = getattr(training, option)
        words += [] if value == usual else [f"--{option}", str(value)]
    words += ["--keep"] * training.keep
    return f"kgkit train linker {shlex.join(words)}"


def usual_reader(encoder: "Encoder") -> SpanConfig:
    """Return the reader's settings: layers that the encoder has, windows that fit it.

    Args:
        encoder: encoder that reads.
    """
    deepest, usual = encoder.depth, SpanConfig()
    size = min(usual.size, encoder.window - encoder.pieces.num_special_tokens_to_add(False))
    return SpanConfig(
        layers=tuple(layer for layer in LAYERS if -layer <= deepest + 1),
        size=size,
        context=min(usual.context, size // 4),
    )
