"""Training a KALM: from plain text and a knowledge base of types to a model's folder.

No label is read. It is a small one: about a minute an epoch of CoNLL-2003 on two cores.
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
from kgkit.methods.kalm_settings import KALMTraining
from kgkit.training.batches import Batches, Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.data import count_items
from kgkit.training.job import Outcome, Plan, fit, scores_by_epoch
from kgkit.types import Numbers, Progress

if TYPE_CHECKING:
    from torch import Tensor, nn

    from kgkit.heads.kalm import KALM, State
    from kgkit.methods.contract import Resources

log = logging.getLogger(__name__)

SIZES: Final[Mapping[str, Any]] = {
    "embedding": 100, "hidden": 200, "type_width": 32, "layers": 2, "dropout_words": 0.05,
    "dropout_input": 0.3, "dropout_hidden": 0.2, "dropout_output": 0.3, "activation": 1.0,
}  # fmt: skip
"""Settings of `KALMConfig`. The paper's, which are its defaults, are four times as wide, for a GPU."""

ROWS: Final = 20
"""Rows that are read at once."""

LENGTH: Final = 35
"""Words of each row that are read at once."""

RATE: Final = 4e-3
"""Learning rate of Adam."""

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


def read_data(
    home: Home, training: KALMTraining, kb: KnowledgeBase | None, progress: Progress | None = None
) -> WordData:
    """Return what a KALM learns from: words of its texts, and their types.

    Args:
        home: home of the knowledge base that the types were made of.
        training: settings.
        kb: knowledge base of types; None: there are none. A control has its words alone.
        progress: callback with the number of sentences that have been read.

    Raises:
        NotThere, SourceError: if a file cannot be read.
        UsageError: if there are too few words, or the knowledge base is none of types.
    """
    with ExitStack() as stack:
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
        _warn_of_spelling(builds[0], vocabulary, learn, types)
    return WordData(vocabulary, learn, dev, *builds)


def _warn_of_spelling(kb: str, vocabulary: TypedVocabulary, learn: Numbers, types: TypeCounts) -> None:
    """Warn where few or no words of the texts have a type as they are spelled."""
    occurring = compress(vocabulary.words, np.bincount(learn, minlength=len(vocabulary)).tolist())
    exact, in_any_case = count_typed_words(occurring, types)
    if not in_any_case:
        log.warning("no word to learn from has a type in %s: its types will not be learnt from it", kb)
    elif exact * _RARE < in_any_case:
        log.warning(
            "%d of the distinct words to learn from have a type in %s as they are spelled, and %d with other "
            "capitals: these are taken for words without a type. --style recipe reads texts and types in "
            "small letters",
            exact,
            kb,
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


def plan_kalm(training: KALMTraining, resources: "Resources", progress: Progress | None) -> Plan:
    """Read the data, and begin a KALM.

    Args:
        training: settings.
        resources: home and device, and the knowledge base of types.
        progress: as `kgkit.training.tasks.train_method` takes it.

    Raises:
        As `read_data` does; UsageError too if there is no knowledge base, or more than one.
    """
    import torch

    from kgkit.heads.kalm import KALM, KALMConfig

    kbs = [chosen.kb for chosen in resources.kbs]
    if len(kbs) > 1 or not (kbs or training.control):
        raise UsageError(
            f"a KALM has the types of one knowledge base, not of {len(kbs)}: name one with --kb, or train "
            "the AWD-LSTM below it with --control"
        )
    data = read_data(resources.home, training, kbs[0] if kbs else None, progress)
    vocabulary = data.vocabulary
    config = KALMConfig(
        words=len(vocabulary), types=vocabulary.types, bidirectional=training.bidirectional, **SIZES
    )
    kalm = KALM(config, torch.from_numpy(vocabulary.members), torch.from_numpy(vocabulary.prior))
    carried = CarriedState()

    def scored(_: object) -> dict[str, float]:
        score = score_words(kalm, data.dev, vocabulary.all_unknown, length=LENGTH)
        return {"log_likelihood": -score.nats, "perplexity": score.perplexity}

    def train(work: Path) -> Outcome:
        trained = fit(
            kalm, word_batches(training, data.learn), loss_with_states(kalm, carried),
            [torch.optim.Adam(kalm.parameters(), lr=RATE)], schedule_of(training, resources.device), work,
            evaluate=scored, carried=None if training.bidirectional else carried, progress=progress,
        )  # fmt: skip
        return Outcome(_results(trained, data), save)

    def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        kalm.save_pretrained(staged / FOLDER)
        vocabulary.save(staged / WORDS)
        return {
            "task": training.task,
            "types": vocabulary.types,
            "kb": data.kb,
            "bidirectional": training.bidirectional,
            "style": training.style,
            "length": LENGTH,
            "config": msgspec.to_builtins(asdict(training), enc_hook=str) | {"senses": data.senses},
        }

    return Plan((data.kb, data.senses, SIZES, ROWS, LENGTH, RATE), train)


def schedule_of(training: KALMTraining, device: str) -> TrainingConfig:
    """Return how a KALM is trained on a device."""
    return TrainingConfig(
        epochs=training.epochs, patience=3, schedule="cosine", warmup=0.05, clip=0.5, bf16=False,
        device=device, seed=training.seed,
    )  # fmt: skip


def word_batches(training: KALMTraining, learn: Numbers) -> Batches:
    """Return the batches of an epoch: stretches that follow each other, or windows in any order.

    Args:
        training: settings; of a model of both directions they are windows.
        learn: (N,) words to learn from.
    """
    if not training.bidirectional:
        return Stretches(learn, ROWS, LENGTH, training.seed)
    parts = word_windows(len(learn), length=LENGTH, context=1)

    def collate(chosen: Sequence[Any]) -> WordBatch:
        return window_batch([learn] * len(chosen), chosen)

    return Shuffled(parts, ROWS, collate, seed=training.seed)


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


def _results(trained: TrainingState, data: WordData) -> dict[str, Any]:
    return {
        "words": len(data.learn) - 1,
        "vocabulary": len(data.vocabulary),
        "held_out": len(data.dev) - 1,
        "unknown": int(np.isin(data.dev, data.vocabulary.all_unknown).sum()),
        "seconds": trained.seconds,
        **scores_by_epoch(trained),
    }
