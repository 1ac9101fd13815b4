"""What a linker is trained on, and how: its settings."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.files import check_data, check_gold_files, refuse_gold_files
from kgkit.inputs import SpanConfig
from kgkit.linking.head import KIND as HEAD
from kgkit.linking.ridge import KIND as RIDGE
from kgkit.linking.ridge import RidgeConfig
from kgkit.models.folder import AUTO, BUILT_IN
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings
from kgkit.training.data import Item
from kgkit.training.linkers.coherence import CoherenceTraining
from kgkit.training.linkers.labelled import CandidateSource

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.training.linkers.head import HeadConfig

UNTRAINED = BUILT_IN
"""Model types that learn nothing by themselves, but may have coherence above them."""

TYPES = (RIDGE, HEAD, *UNTRAINED)
"""Model types that can be trained."""

LAYERS = {RIDGE: (-1, -2, -3), HEAD: (-1, -2, -3, -5)}
"""Layers that are read for a model type, those that the encoder has; means are taken of the first three."""

_OPTIONS: Final = ("epochs", "seed", "heads", "portable", "text_weight", "control", "bf16")
"""Settings of the model types that follow a gradient, as far as the command has options for them."""


@dataclass(frozen=True, kw_only=True)
class LinkerTraining:
    """What a linker is trained on, and how.

    Attributes:
        task: `wsd` or `el`: what the data are; `text`: plain text, of which *teacher* says what it means.
        data: files; each is read with the file of *gold* at its place, if the task is `wsd`.
        gold: files.
        type: model type, one of `TYPES`.
        candidates: of the mentions of `wsd`: by `lemma` and part of speech, or by `surface`.
        examples: learn from the KB's usage examples too, if it has any.
        without: files of examples to leave out of training, one a line; only letters are compared.
        vectors: name of the vectors of the entities' texts, which must have been made; None: the published
            ones, else texts of candidates are encoded as they are needed.
        encoder: encoder of the texts and of the mentions, whose vectors are taken; None: that of the vectors.
        size: number of word pieces read at once, special ones not counted; None: the reader's.
        reader: settings of the reader of mentions; unless given, the layers in `LAYERS` for the model type.
        ridge: settings of the means and the map.
        head: settings of the model type `head`.
        coherence: settings of the second stage; None for none.
        mentions: tagger whose names the linker links by default; "": none. With one, a document in ten is
            held out of training, and the linker's threshold is the best on these.
        teacher: name or folder of the model whose scores of plain text a portable head learns; "": none.
        text: files of plain text, of which *teacher* says what it means, beside *data* that have gold.
        neighbours: relations, or `any`: the texts of an entity's neighbours by each are read beside its own.
    """

    task: Literal["wsd", "el", "text"]
    data: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    type: str = RIDGE
    candidates: CandidateSource = "surface"
    examples: bool = False
    without: tuple[Path, ...] = ()
    vectors: str | None = None
    encoder: str | None = None
    size: int | None = None
    reader: SpanConfig | None = None
    ridge: RidgeConfig = field(default_factory=RidgeConfig)
    head: "HeadConfig | None" = None
    coherence: CoherenceTraining | None = None
    mentions: str = ""
    teacher: str = ""
    text: tuple[Path, ...] = ()
    neighbours: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of all files that are read."""
        return (*self.data, *self.gold, *self.text, *self.without)

    def __post_init__(self) -> None:
        if self.task not in (tasks := ("wsd", "el", "text")):
            raise UnknownName("task", self.task, tasks)
        if self.type not in TYPES:
            raise UnknownName("model type", self.type, TYPES)
        convert_settings(self)
        if self.type in UNTRAINED and self.coherence is None:
            raise UsageError(
                f"{self.type} is not trained: link with --model {self.type}, or train coherence above it "
                "(--coherence)"
            )
        if self.encoder is not None and self.type == "prior":
            raise UsageError("--encoder is for types that read texts, not for prior: leave it out")
        check_range(self, "size", least=1)
        if self.size is not None and (self.type in UNTRAINED or self.reader is not None):
            raise UsageError(
                "size is a setting of the reader of mentions, and the reader has one"
                if self.reader is not None
                else f"--size is a setting of the types that are trained, not of {self.type}: leave it out"
            )
        if self.mentions and self.task != "el":
            raise UsageError("--mentions names a tagger of names, for --task el: leave it out for senses")
        self._check_teacher()
        portable = None if self.head is None else self.head.portable
        if portable is not None and (self.ridge.yielding or self.ridge.prior != "kb"):
            raise UsageError(
                "a portable head has no weights for --yielding and --prior; --portable names its prior: "
                f"leave them out beside --portable {portable}"
            )
        if self.neighbours and self.type not in (RIDGE, HEAD):
            raise UsageError(f"texts of neighbours are read by the types ridge and head, not by {self.type}")
        if self.task == "wsd":
            check_gold_files(self.data, self.gold)
        else:
            refuse_gold_files(self.task, self.gold)
        if not self.examples:
            check_data(self.data)
        self._check_effect()

    def _check_effect(self) -> None:
        """Make sure that what is set has an effect.

        Raises:
            UsageError: if not.
        """
        if self.without and not self.examples:
            raise UsageError("--without leaves out usage examples: add --examples, or leave it out")
        if self.candidates == "lemma" and self.task != "wsd":
            raise UsageError("--candidates lemma is for the lemmas of --task wsd: leave it out")
        if self.vectors is not None and self.type == "prior":
            raise UsageError("prior reads no vectors: leave out --vectors")
        for option, paths in (("data", self.data), ("text", self.text)):
            if (path := _repeated([path.resolve() for path in paths])) is not None:
                raise UsageError(f"{path} is named twice: name each file of --{option} once")
        if (relation := _repeated(self.neighbours)) is not None:
            raise UsageError(f"the relation {relation} is named twice: name each of --neighbours once")

    def _check_teacher(self) -> None:
        """Make sure that plain text has a teacher, and a teacher plain text, and that what learns of it can.

        Raises:
            UsageError: if not.
        """
        if (self.task == "text" or self.text) and not self.teacher:
            raise UsageError("plain text has no gold: name the model that says what it means with --teacher")
        if not self.teacher:
            return
        if self.teacher == AUTO:
            raise UsageError("--teacher auto names no model: say which one the head is to learn from")
        if self.task != "text" and not self.text:
            raise UsageError(
                f"--teacher says what plain text means, and the data of --task {self.task} have gold: name "
                "files of plain text with --text, or leave out --teacher"
            )
        if self.task == "text" and self.text:
            raise UsageError(
                "--text is plain text beside data with gold: say what the data are with --task wsd or --task "
                "el, or name all plain text with --data"
            )
        if self.text and not self.data:
            raise UsageError(
                "--text is plain text beside data with gold, and there are none: name them with --data, or "
                "name the text with --data and leave out --task"
            )
        portable = None if self.head is None else self.head.portable
        if self.type != HEAD or portable is None or (self.task == "text" and portable != "kb"):
            raise UsageError(
                "a teacher's scores are learnt by a head that is portable: add --type head --portable kb; or "
                "--portable data, where other data have gold that priors are counted on"
            )
        if self.task == "text" and self.coherence is not None:
            raise UsageError("coherence is learnt from gold, which plain text has not: leave out --coherence")


def _repeated(items: Sequence[Item]) -> Item | None:
    """Return the first item that comes twice; None if none does."""
    return next((item for number, item in enumerate(items) if item in items[:number]), None)


def command_of(kb: str, name: str, training: LinkerTraining) -> str:
    """Return the command that trains the model *name* for *kb*, with the settings that are options of it."""
    words = [
        *([] if training.task == "text" else ["--task", training.task]),
        "--type",
        training.type,
        "--name",
        name,
        "--kb",
        kb,
    ]
    for data, gold in zip_longest(training.data, training.gold):
        words += ["--data", str(data), *(("--gold", str(gold)) if gold else ())]
    for option, value, usual in (
        ("candidates", training.candidates, "surface"), ("vectors", training.vectors, None),
        ("encoder", training.encoder, None), ("size", training.size, None),
        ("teacher", training.teacher, ""),
        ("balance", training.ridge.balance, 0.0), ("prior", training.ridge.prior, "kb"),
    ):  # fmt: skip
        words += [f"--{option}", str(value)] if value != usual else []
    words += [word for path in training.text for word in ("--text", str(path))]
    words += ["--examples"] if training.examples else []
    words += ["--yielding"] if training.ridge.yielding else []
    words += [word for relation in training.neighbours for word in ("--neighbours", relation)]
    words += ["--mentions", training.mentions] if training.mentions else []
    words += [word for path in training.without for word in ("--without", str(path))]
    settings = training.head
    for option_field in () if settings is None else fields(settings):
        value = getattr(settings, option_field.name)
        if option_field.name in _OPTIONS and value != option_field.default:
            option = f"--{'no-' if value is False else ''}{option_field.name.replace('_', '-')}"
            words += [option] if isinstance(value, bool) else [option, str(value)]
    if training.coherence is not None:
        words += ["--coherence", *(["--nil"] if training.coherence.nil else [])]
        words += [
            word for option_field in training.coherence.popularity for word in ("--popularity", option_field)
        ]
        seeded = training.coherence.seed and "--seed" not in words
        words += ["--seed", str(training.coherence.seed)] if seeded else []
    return f"kgkit train linker {shlex.join(words)}"


def usual_reader(model_type: str, encoder: "Encoder", size: int | None = None) -> SpanConfig:
    """Return the reader's settings for a model type: layers that the encoder has, windows that fit it.

    Args:
        model_type: one of `TYPES` that is trained.
        encoder: encoder that reads.
        size: number of word pieces read at once, without special ones; None: the usual one, if they fit.
    """
    deepest, usual = encoder.model.config.num_hidden_layers, SpanConfig()
    size = size or min(usual.size, encoder.window - encoder.tokenizer.num_special_tokens_to_add())
    return SpanConfig(
        layers=tuple(layer for layer in LAYERS[model_type] if -layer <= deepest + 1),
        size=size,
        context=min(usual.context, size // 4),
    )
