"""`kgkit train …`: a file per method."""

import typer

from kgkit.commands.train import (
    encoder,
    kbert,
    knowbert,
    linker,
    tagger,
)

app = typer.Typer(no_args_is_help=True, help="Train a model.")

app.command("linker")(linker.linker)
app.command("encoder")(encoder.encoder)
app.command("kbert")(kbert.kbert)
app.command("knowbert")(knowbert.knowbert)
app.command("tagger")(tagger.tagger)
