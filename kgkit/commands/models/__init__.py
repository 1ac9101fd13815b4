"""`kgkit models …`: trained models, a file per verb."""

import typer

from kgkit.commands.models import info, list_models, rm, verify

app = typer.Typer(no_args_is_help=True, help="Look after the trained models on this machine.")

app.command("list")(list_models.list_models)
app.command("info")(info.info)
app.command("verify")(verify.verify)
app.command("rm")(rm.rm)

__all__ = ["app"]
