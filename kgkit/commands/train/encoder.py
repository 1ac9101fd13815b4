"""`kgkit train encoder`: a small BERT from scratch, for a language without a pretrained one."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.options import (
    NameOption,
    PlainTextsOption,
    SeedOption,
    flag,
)
from kgkit.commands.output import typed, write_line
from kgkit.commands.train.methods import (
    Bf16Option,
    DevOption,
    EpochsOption,
    SizeOption,
    StepsOption,
    TextsOption,
    TrainingOptions,
    record_training,
    with_training_options,
    write_results,
)

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.types import Progress


@with_training_options
def encoder(
    data: PlainTextsOption,
    vocabulary: Annotated[
        Path, typer.Option("--vocabulary", metavar="FILE", help="A word piece a line, as vocab.txt of BERT.")
    ],
    name: NameOption,
    task: Annotated[
        Literal["mlm"], typer.Option("--task", metavar="TASK", help="mlm: masked words and next sentences.")
    ] = "mlm",
    dev: DevOption = None,
    layers: Annotated[int, typer.Option("--layers", min=1, metavar="N", help="Transformer layers.")] = 4,
    width: Annotated[int, typer.Option("--width", min=1, metavar="N", help="Width of the layers.")] = 256,
    heads: Annotated[
        int, typer.Option("--heads", min=1, metavar="N", help="Attention heads of a layer.")
    ] = 4,
    cased: Annotated[bool, flag("--cased", help="Do not lowercase the texts.")] = False,
    epochs: EpochsOption = 3,
    steps: StepsOption = None,
    batch: TextsOption = 32,
    size: SizeOption = 128,
    lr: Annotated[float, typer.Option("--lr", metavar="RATE", help="The highest learning rate.")] = 5e-4,
    seed: SeedOption = 0,
    bf16: Bf16Option = None,
    *,
    options: TrainingOptions,
) -> None:
    """Train a small BERT from scratch, on plain text (Devlin et al. 2019).

    It serves as --encoder of kgkit train kbert, and as --from of kgkit train knowbert.
    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.encoder.fresh import EncoderShape
    from kgkit.training.job import note_best_epoch
    from kgkit.training.masked_lm.pretraining import KIND, EncoderTraining, begin_encoder
    from kgkit.training.tasks import train_method

    shape = EncoderShape(
        layers=layers, width=width, heads=heads, positions=max(512, size), lowercase=not cased
    )
    training = EncoderTraining(
        task=task, data=tuple(data), dev=tuple(dev or ()), control=True, epochs=epochs, steps=steps,
        batch=batch, size=size, lr=lr, lr_new=lr, seed=seed, bf16="auto" if bf16 is None else bf16,
    )  # fmt: skip
    files = [*training.files, vocabulary]

    def train(where: "Home", tell: "Progress") -> Path:
        begins = begin_encoder(where, training, vocabulary, shape)
        return train_method(KIND, where, name, begins, device=options.device, command=typed(), progress=tell)

    manifest = record_training(
        KIND, name, asdict(training) | {"shape": asdict(shape)}, files, train, note_best_epoch,
        options, seeds=[seed],
    )  # fmt: skip
    if manifest is not None:
        write_line(f"{name}: {layers} layers of {width}")
        write_results(manifest.results)
