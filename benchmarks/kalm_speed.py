"""Time of a training step of KALM beside an AWD-LSTM, all in one process and in turn.

    python -m benchmarks.kalm_speed --home HOME [--share 0.1] [--preset cpu] [--rounds 20] [--device cpu]

The words are those of the recipes, with the types of `benchmarks.kalm_recipes`; sizes, rows and lengths of
stretches are the preset's. A step is forward, loss, backward and the optimizer's.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import torch

from benchmarks.kalm_recipes import DATA, KB, RecipeBench
from benchmarks.kbert import timed
from benchmarks.report import Table, Target
from kgkit.heads.kalm import KALM, KALMConfig
from kgkit.home import Home
from kgkit.inputs.kalm import control_vocabulary
from kgkit.methods.kalm_settings import PRESETS, KALMTraining
from kgkit.training.kalm import (
    CarriedState,
    WordData,
    loss_with_states,
    make_optimizers,
    read_data,
    word_batches,
)

AWD: Final = "AWD-LSTM"
PLAIN: Final = "KALM, no feedback"
MODELS: Final = (AWD, PLAIN, "KALM")
BAR: Final = 1.25

NOTES: Final = """
Words that are read in a second of training, by the median time of a step; and this time over that of the
AWD-LSTM of the same directions: median of the ratios within a round. Recipes, {vocabulary:,} words in the
vocabulary, {types} types, preset `{preset}`, {rounds} rounds. Seconds are {clock}.
"""


def training_step(
    data: WordData, training: KALMTraining, device: torch.device, *, feedback: bool
) -> Callable[[], None]:
    """Return a function that takes a step of training, of the next batch at each call."""
    preset = PRESETS[training.preset]
    vocabulary = control_vocabulary(data.vocabulary) if training.control else data.vocabulary
    torch.manual_seed(training.seed)
    config = KALMConfig(
        words=len(vocabulary), types=vocabulary.types, bidirectional=training.bidirectional,
        feedback=feedback, **preset.sizes,  # type: ignore[arg-type]
    )  # fmt: skip
    members, prior = torch.from_numpy(vocabulary.members), torch.from_numpy(vocabulary.prior)
    kalm = KALM(config, members, prior).to(device).train()
    loss_of, optimizers = loss_with_states(kalm, CarriedState()), make_optimizers(kalm, preset)
    batches = word_batches(training, preset, data.learn)
    every = chain.from_iterable(batches.epoch(0, order) for order in repeat(range(len(batches))))

    def step() -> None:
        loss, _ = loss_of(kalm, next(every).to(device))
        torch.autograd.backward(loss)
        for optimizer in optimizers:
            optimizer.step()
        kalm.zero_grad(set_to_none=True)

    return step


def speed(
    data: WordData, training: KALMTraining, rounds: int, device: torch.device, directions: Sequence[bool]
) -> Table:
    """Return the table of speeds."""
    preset, clock = PRESETS[training.preset], timed(device)
    rows, targets = [], []
    for bidirectional in directions:
        steps = {
            name: training_step(
                data,
                replace(training, bidirectional=bidirectional, control=name == AWD),
                device,
                feedback=name != PLAIN,
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
        words = preset.batch * (preset.length - 2 * bidirectional)
        unit = 1 if device.type == "cpu" else 1e-3
        for name, durations in seconds.items():
            ratio = statistics.median(own / plain for own, plain in zip(durations, seconds[AWD], strict=True))
            title = f"{name}, both directions" if bidirectional else name
            median = statistics.median(durations)
            rows.append([title, f"{words / (median * unit):,.0f}", f"{median:.3g}", f"{ratio:.3f}"])
            if name == PLAIN:
                targets.append(
                    Target(what=f"{title}, over {AWD}", value=ratio, aim=BAR, unit="times", at_most=True)
                )
    notes = NOTES.format(
        vocabulary=len(data.vocabulary), types=len(data.vocabulary.types), preset=training.preset,
        rounds=rounds,
        clock="CPU seconds of one thread" if device.type == "cpu" else "milliseconds of the device",
    )  # fmt: skip
    columns = "model", "words / s", "s" if device.type == "cpu" else "ms", "ratio"
    return Table(title="KALM: words a second", notes=notes, columns=columns, rows=rows, targets=targets)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kalm_speed")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets")
    parser.add_argument("--share", type=float, default=0.1, help="share of the corpus, from 0 to 1")
    parser.add_argument("--preset", choices=[*PRESETS], default="cpu")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--forward-only", action="store_true", help="leave out models of both directions")
    chosen = parser.parse_args(arguments)
    home = Home(chosen.home)
    text = RecipeBench(home, chosen.data, chosen.share, ()).text("train")
    training = KALMTraining(data=(text,), kb=KB, style="recipe", preset=chosen.preset)
    directions = [False] if chosen.forward_only else [False, True]
    table = speed(read_data(home, training), training, chosen.rounds, torch.device(chosen.device), directions)
    print(table.markdown())
    for target in table.targets:
        print(" | ".join(target.row()))


if __name__ == "__main__":
    main()
