"""`kgkit train encoder`: a small BERT from scratch, for a language without a pretrained one."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.options import (
    NameOption,
    PlainTextsOption,
    SeedOption,
)
from kgkit.commands.output import typed, write_line
from kgkit.commands.train.methods import (
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
    dev: DevOption = None,
    layers: Annotated[int, typer.Option("--layers", min=1, metavar="N", help="Transformer layers.")] = 4,
    width: Annotated[int, typer.Option("--width", min=1, metavar="N", help="Width of the layers.")] = 256,
    epochs: EpochsOption = 3,
    steps: StepsOption = None,
    batch: TextsOption = 32,
    size: SizeOption = 128,
    lr: Annotated[float, typer.Option("--lr", metavar="RATE", help="The highest learning rate.")] = 5e-4,
    seed: SeedOption = 0,
    *,
    options: TrainingOptions,
) -> None:
    """Train a small BERT from scratch, on plain text: masked words and next sentences (Devlin et al. 2019).

    Texts are lowercased unless the vocabulary has pieces with a capital.
    It serves as --encoder of kgkit train kbert, and as --from of kgkit train knowbert.
    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.encoder.fresh import EncoderShape
    from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertTraining
    from kgkit.training.job import note_best_epoch
    from kgkit.training.knowbert.pretraining import begin_encoder
    from kgkit.training.tasks import train_method

    shape = EncoderShape(layers=layers, width=width, positions=max(512, size))
    training = KnowBertTraining(
        task="mlm", data=tuple(data), dev=tuple(dev or ()), control=True, epochs=epochs, steps=steps,
        batch=batch, size=size, lr=lr, lr_new=lr, seed=seed,
    )  # fmt: skip
    files = [*training.files, vocabulary]

    def train(where: "Home", tell: "Progress") -> Path:
        begins = begin_encoder(where, training, vocabulary, shape)
        return train_method(
            KNOWBERT, where, name, begins, device=options.device, command=typed(), progress=tell
        )

    manifest = record_training(
        KNOWBERT, name, asdict(training) | {"shape": asdict(shape)}, files, train, note_best_epoch,
        options, seeds=[seed],
    )  # fmt: skip
    if manifest is not None:
        write_line(f"{name}: {layers} layers of {width}")
        write_results(manifest.results)
