"""Training a KALM: from plain text and a knowledge base of types to a model's folder.

No label is read. Presets (`kgkit.methods.kalm_settings`) say how large the model is, and how it learns.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.inputs.kalm import (
    Stretches,
    TypeCounts,
    TypedVocabulary,
    WordBatch,
    control_vocabulary,
    count_typed_words,
    count_types,
    make_vocabulary,
    read_words,
    window_batch,
    word_windows,
)
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.methods.kalm import FOLDER, WORDS, score_words
from kgkit.methods.kalm_settings import KALM as KALM_KIND
from kgkit.methods.kalm_settings import PRESETS, KALMPreset, KALMTraining
from kgkit.training.batches import Batches, Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.data import count_items
from kgkit.training.job import Outcome, Plan, Trainer, fit, scores_by_epoch
from kgkit.types import Numbers, Progress

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from kgkit.heads.kalm import KALM, State

log = logging.getLogger(__name__)

TASK: Final = "lm"
_HELD_OUT: Final = 10  # the last part in so many, where no file is named
_RARE: Final = 10  # so many times more words have a type where capitals do not count


class WordData(NamedTuple):
    """What a KALM learns from.

    Attributes:
        vocabulary: words, and their types.
        learn: (N,) words to learn from.
        dev: (N,) words that choose the epoch.
        kb: the build of the knowledge base of types, as KB@BUILD; empty if there is none.
        senses: that of the other senses; empty if there is none.
    """

    vocabulary: TypedVocabulary
    learn: Numbers
    dev: Numbers
    kb: str
    senses: str


class CarriedState:
    """The states of an LSTM, which go on from one batch to the next: see `Carried`."""

    def __init__(self) -> None:
        self.state: State | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the states, for a checkpoint."""
        return {"state": None if self.state is None else [list(pair) for pair in self.state]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take the states of a checkpoint."""
        pairs = state["state"]
        self.state = None if pairs is None else [(hidden, cell) for hidden, cell in pairs]


def read_data(home: Home, training: KALMTraining, progress: Progress | None = None) -> WordData:
    """Return what a KALM learns from: words of its texts, and their types.

    Raises:
        NotThere, SourceError: if a file or a knowledge base is not there, or cannot be read.
        UsageError: if there are too few words, or the knowledge base is none of types.
    """
    with ExitStack() as stack:
        kb = None if training.kb is None else stack.enter_context(open_kb(training.kb, home.path))
        senses = None if kb is None else _open_senses(stack, home, kb)
        types = None if kb is None else count_types(kb, senses, training.style)
        sentences = chain.from_iterable(
            read_words(path, training.style) for path in (*training.data, *training.words)
        )
        vocabulary = make_vocabulary(
            count_items(sentences, "reading sentences", progress), types, style=training.style,
            open_names=training.open_names, min_count=training.min_count,
        )  # fmt: skip
        builds = [f"{used.name}@{used.build}" if used is not None else "" for used in (kb, senses)]
    if training.control:
        vocabulary = control_vocabulary(vocabulary)
        builds = ["", ""]
    learn, dev = vocabulary.read(training.data), vocabulary.read(training.dev)
    if not training.dev:
        cut = len(learn) - len(learn) // _HELD_OUT
        learn, dev = learn[:cut], learn[cut:]
    for what, words in (("learn from", learn), ("choose the epoch by", dev)):
        if len(words) < 4:
            raise UsageError(
                f"there are {len(words)} words to {what}, the ends of sentences among them; expected 4 or "
                "more"
            )
    if types is not None and not training.control:
        _warn_of_spelling(training, vocabulary, learn, types)
    return WordData(vocabulary, learn, dev, *builds)


def _warn_of_spelling(
    training: KALMTraining, vocabulary: TypedVocabulary, learn: Numbers, types: TypeCounts
) -> None:
    """Warn where few or no words of the texts have a type as they are spelled."""
    occurring = compress(vocabulary.words, np.bincount(learn, minlength=len(vocabulary)).tolist())
    exact, in_any_case = count_typed_words(occurring, types)
    if not in_any_case:
        log.warning(
            "no word to learn from has a type in %s: its types will not be learnt from it", training.kb
        )
    elif exact * _RARE < in_any_case:
        log.warning(
            "%d of the distinct words to learn from have a type in %s as they are spelled, and %d with other "
            "capitals: these are taken for words without a type. --style recipe reads texts and types in "
            "small letters",
            exact,
            training.kb,
            in_any_case - exact,
        )


def _open_senses(stack: ExitStack, home: Home, kb: KnowledgeBase) -> KnowledgeBase | None:
    """Open the knowledge base that the types were made of, which counts other senses; None if it is gone."""
    sources = {str(entity.attributes.get("source", "")) for entity in kb}
    if len(sources) != 1 or not (source := sources.pop()):
        return None
    try:
        return stack.enter_context(open_kb(source, home.path))
    except (NotThere, UnknownName):
        log.warning(
            "%s was made of %s, which is gone: words with a type have no share of type 0",
            kb.name,
            source,
        )
        return None


def _prepare(home: Home, _: str, training: KALMTraining, device: str, progress: Progress | None) -> Plan:
    """Read the data, and begin a KALM."""
    import torch

    from kgkit.heads.kalm import KALM, KALMConfig

    preset = PRESETS[training.preset]
    data = read_data(home, training, progress)
    vocabulary = data.vocabulary
    config = KALMConfig(
        words=len(vocabulary), types=vocabulary.types, bidirectional=training.bidirectional,
        **preset.sizes,  # type: ignore[arg-type]
    )  # fmt: skip
    kalm = KALM(config, torch.from_numpy(vocabulary.members), torch.from_numpy(vocabulary.prior))
    carried = CarriedState()

    def scored(_: object) -> dict[str, float]:
        score = score_words(kalm, data.dev, vocabulary.all_unknown, length=preset.length)
        return {"log_likelihood": -score.nats, "perplexity": score.perplexity}

    def train(work: Path) -> Outcome:
        trained = fit(
            kalm, word_batches(training, preset, data.learn), loss_with_states(kalm, carried),
            make_optimizers(kalm, preset), schedule_of(training, preset, device), work, evaluate=scored,
            carried=None if training.bidirectional else carried, progress=progress,
        )  # fmt: skip
        return Outcome(_results(trained, data), save)

    def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        kalm.save_pretrained(staged / FOLDER)
        vocabulary.save(staged / WORDS)
        return {
            "task": TASK,
            "types": vocabulary.types,
            "kb": data.kb,
            "bidirectional": training.bidirectional,
            "style": training.style,
            "length": preset.length,
            "config": msgspec.to_builtins(asdict(training), enc_hook=str) | {"senses": data.senses},
        }

    return Plan((data.kb, data.senses, preset), train)


train_kalm: Final = Trainer(KALM_KIND, _prepare)
"""Function that trains a KALM; it raises `UsageError` too if a file has labels, or no types are found."""


def word_batches(training: KALMTraining, preset: KALMPreset, learn: Numbers) -> Batches:
    """Return the batches of an epoch: stretches that follow each other, or windows in any order.

    Args:
        training: settings; of a model of both directions they are windows.
        preset: rows of a batch, and words of each.
        learn: (N,) words to learn from.
    """
    if not training.bidirectional:
        return Stretches(learn, preset.batch, preset.length, training.seed)
    parts = word_windows(len(learn), length=preset.length, context=1)

    def collate(chosen: Sequence[Any]) -> WordBatch:
        return window_batch([learn] * len(chosen), chosen)

    return Shuffled(parts, preset.batch, collate, seed=training.seed)


def loss_with_states(
    kalm: "KALM", carried: CarriedState
) -> "Callable[[nn.Module, Any], tuple[Tensor, float]]":
    """Return the function from a model and a batch to its loss, for `kgkit.training.loop.train`.

    Args:
        kalm: model that is trained.
        carried: states that go on from batch to batch, of a model from left to right.
    """

    def loss(model: "nn.Module", batch: WordBatch) -> "tuple[Tensor, float]":
        state = None
        if not kalm.config.bidirectional and not batch.first and carried.state is not None:
            device = batch.words.device
            state = [(hidden.to(device), cell.to(device)) for hidden, cell in carried.state]
        output = model(batch.words, batch.lengths, state)
        if output.state is not None:
            carried.state = [(hidden.detach(), cell.detach()) for hidden, cell in output.state]
        count = int(batch.real.sum())
        if not count:
            return output.vectors.sum() * 0, 0.0
        return kalm.loss(output, batch.targets, batch.real), float(count)

    return loss


def schedule_of(training: KALMTraining, preset: KALMPreset, device: str) -> TrainingConfig:
    """Return how long a model is trained, on which device, and when it stops."""
    return TrainingConfig(
        epochs=training.epochs or preset.epochs, patience=preset.patience, bf16=False, device=device,
        seed=training.seed, **preset.schedule,
    )  # fmt: skip


def make_optimizers(kalm: "nn.Module", preset: KALMPreset) -> "list[Optimizer]":
    """Return the optimizers of a model's parameters, as a preset has them."""
    import torch

    if preset.optimizer == "sgd":
        return [torch.optim.SGD(kalm.parameters(), lr=preset.lr, weight_decay=preset.decay)]
    return [torch.optim.Adam(kalm.parameters(), lr=preset.lr, weight_decay=preset.decay)]


def _results(trained: TrainingState, data: WordData) -> dict[str, Any]:
    return {
        "words": len(data.learn) - 1,
        "vocabulary": len(data.vocabulary),
        "held_out": len(data.dev) - 1,
        "unknown": int(np.isin(data.dev, data.vocabulary.all_unknown).sum()),
        "seconds": trained.seconds,
        **({} if trained.averaged_from is None else {"averaged_from_step": trained.averaged_from}),
        **scores_by_epoch(trained),
    }
