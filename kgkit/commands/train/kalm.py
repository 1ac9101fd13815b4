"""`kgkit train kalm`: train a language model of words with latent types, on plain text."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.options import (
    DeviceOption,
    HomeOption,
    JSONOption,
    NameOption,
    PlainTextsOption,
    QuietOption,
    SeedOption,
    flag,
)
from kgkit.commands.output import plain, typed, write_line
from kgkit.commands.train.methods import record_training, write_results

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.types import Progress


def kalm(
    data: PlainTextsOption,
    name: NameOption,
    dev: Annotated[
        list[Path] | None,
        typer.Option(
            "--dev", metavar="FILE", help="Plain text to choose the epoch; else the last tenth of the data."
        ),
    ] = None,
    kb: Annotated[
        str | None,
        typer.Option("--kb", metavar="KB", help="Knowledge base of types, as type_vocabulary builds it."),
    ] = None,
    senses: Annotated[
        str,
        typer.Option(
            "--senses",
            metavar="KB",
            help="Knowledge base that counts other senses of words with a type; auto: the one that --kb was "
            "made of; none: no word with a type is taken for a general word.",
        ),
    ] = "auto",
    words: Annotated[
        list[Path] | None,
        typer.Option(
            "--words",
            metavar="FILE",
            help="Plain text whose words the vocabulary has too. Repeat it for more.",
        ),
    ] = None,
    style: Annotated[
        Literal["cased", "recipe"],
        typer.Option(
            "--style",
            metavar="STYLE",
            help="Words are cut by white space (cased), or are letters and digits in lower case (recipe).",
        ),
    ] = "cased",
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count",
            min=1,
            metavar="N",
            help="Words without a type that occur less often in --data and --words are unknown.",
        ),
    ] = 1,
    overlap: Annotated[bool, flag("--overlap", help="Words with a type are general words too.")] = False,
    open_names: Annotated[
        bool, flag("--open", help="Words with a capital that --kb lacks may be of any type.")
    ] = False,
    bidirectional: Annotated[
        bool, flag("--bidirectional", help="Predict words from both sides; such a model is a tagger.")
    ] = False,
    no_feedback: Annotated[bool, flag("--no-feedback", help="Do not read types with the words.")] = False,
    control: Annotated[bool, flag("--control", help="The same words without types: an AWD-LSTM.")] = False,
    prior_weight: Annotated[
        float,
        typer.Option(
            "--prior-weight", min=0, metavar="X", help="Weight of the divergence of types from their prior."
        ),
    ] = 0.0,
    preset: Annotated[
        Literal["cpu", "paper"],
        typer.Option(
            "--preset", metavar="PRESET", help="Sizes and schedule: cpu, or those of the paper, for a GPU."
        ),
    ] = "cpu",
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", min=1, metavar="N", help="Epochs, at most; else the preset's."),
    ] = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a KALM: a language model of words with latent types (Liu et al. 2019), on plain text.

    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.models.kalm import KALM
    from kgkit.training.job import note_best_epoch
    from kgkit.training.kalm.settings import KALMTraining
    from kgkit.training.kalm.train import train_kalm

    training = KALMTraining(
        data=tuple(data), dev=tuple(dev or ()), kb=kb, senses=senses, words=tuple(words or ()), style=style,
        overlap=overlap, min_count=min_count, open_names=open_names, bidirectional=bidirectional,
        feedback=not no_feedback, control=control, prior_weight=prior_weight, preset=preset, epochs=epochs,
        seed=seed,
    )  # fmt: skip

    def train(where: "Home", tell: "Progress") -> Path:
        return train_kalm(where, name, training, device=device, command=typed(), progress=tell)

    manifest = record_training(
        KALM, name, asdict(training), training.files, train, note_best_epoch,
        seeds=[seed], device=device, home=home, as_json=as_json, quiet=quiet,
    )  # fmt: skip
    if manifest is None:
        return
    sides = "of both directions" if bidirectional else "from left to right"
    write_line(plain(f"{name}: {', '.join(manifest.types) or 'no types'}, {sides}"))
    write_results(manifest.results)
