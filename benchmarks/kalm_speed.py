"""Time of a training step of KALM beside an AWD-LSTM, all in one process and in turn.

    python -m benchmarks.kalm_speed --home HOME [--share 0.1] [--rounds 20] [--device cpu]

The words are those of the recipes, with the types of `benchmarks.kalm_recipes`; sizes, rows and lengths of
stretches are those of a training. A step is forward, loss, backward and the optimizer's.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import torch

from benchmarks.kalm import data_of
from benchmarks.kalm_recipes import DATA, KB, RecipeBench
from benchmarks.kbert import timed
from benchmarks.report import Table
from kgkit.heads.kalm import KALM, KALMConfig
from kgkit.home import Home
from kgkit.inputs.kalm import control_vocabulary
from kgkit.methods.kalm_settings import KALMTraining
from kgkit.training.kalm import (
    LENGTH,
    RATE,
    ROWS,
    SIZES,
    CarriedState,
    WordData,
    loss_with_states,
    word_batches,
)

AWD: Final = "AWD-LSTM"
MODELS: Final = (AWD, "KALM")

NOTES: Final = """
Words that are read in a second of training, by the median time of a step; and this time over that of the
AWD-LSTM of the same directions: median of the ratios within a round. Recipes, {vocabulary:,} words in the
vocabulary, {types} types, {rounds} rounds. Seconds are {clock}.
"""


def training_step(data: WordData, training: KALMTraining, device: torch.device) -> Callable[[], None]:
    """Return a function that takes a step of training, of the next batch at each call."""
    vocabulary = control_vocabulary(data.vocabulary) if training.control else data.vocabulary
    torch.manual_seed(training.seed)
    config = KALMConfig(
        words=len(vocabulary), types=vocabulary.types, bidirectional=training.bidirectional, **SIZES
    )
    members, prior = torch.from_numpy(vocabulary.members), torch.from_numpy(vocabulary.prior)
    kalm = KALM(config, members, prior).to(device).train()
    loss_of, optimizer = loss_with_states(kalm, CarriedState()), torch.optim.Adam(kalm.parameters(), lr=RATE)
    batches = word_batches(training, data.learn)
    every = chain.from_iterable(batches.epoch(0, order) for order in repeat(range(len(batches))))

    def step() -> None:
        loss, _ = loss_of(kalm, next(every).to(device))
        torch.autograd.backward(loss)
        optimizer.step()
        kalm.zero_grad(set_to_none=True)

    return step


def speed(
    data: WordData, training: KALMTraining, rounds: int, device: torch.device, directions: Sequence[bool]
) -> Table:
    """Return the table of speeds."""
    clock, rows = timed(device), []
    for bidirectional in directions:
        steps = {
            name: training_step(
                data, replace(training, bidirectional=bidirectional, control=name == AWD), device
            )
            for name in MODELS
        }
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for number in range(rounds + 1):
            for name, step in steps.items():
                duration = clock(step)
                if number:  # the first round warms up
                    seconds[name].append(duration)
        # A window of both directions predicts all but its first and last word.
        words = ROWS * (LENGTH - 2 * bidirectional)
        unit = 1 if device.type == "cpu" else 1e-3
        for name, durations in seconds.items():
            ratio = statistics.median(own / plain for own, plain in zip(durations, seconds[AWD], strict=True))
            title = f"{name}, both directions" if bidirectional else name
            median = statistics.median(durations)
            rows.append([title, f"{words / (median * unit):,.0f}", f"{median:.3g}", f"{ratio:.3f}"])
    notes = NOTES.format(
        vocabulary=len(data.vocabulary), types=len(data.vocabulary.types), rounds=rounds,
        clock="CPU seconds of one thread" if device.type == "cpu" else "milliseconds of the device",
    )  # fmt: skip
    columns = "model", "words / s", "s" if device.type == "cpu" else "ms", "ratio"
    return Table(title="KALM: words a second", notes=notes, columns=columns, rows=rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kalm_speed")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets")
    parser.add_argument("--share", type=float, default=0.1, help="share of the corpus, from 0 to 1")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--forward-only", action="store_true", help="leave out models of both directions")
    chosen = parser.parse_args(arguments)
    home = Home(chosen.home)
    text = RecipeBench(home, chosen.data, chosen.share, ()).text("train")
    training, device = KALMTraining(data=(text,), style="recipe"), torch.device(chosen.device)
    directions = [False] if chosen.forward_only else [False, True]
    print(speed(data_of(home, training, KB), training, chosen.rounds, device, directions).markdown())


if __name__ == "__main__":
    main()
