"""`kgkit train …`: a command for each method, made from its settings, and files for what is no method."""

from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from kgkit.commands.examples import epilog
from kgkit.commands.train import encoder, linker, tagger
from kgkit.commands.train.generated import method_command
from kgkit.errors import KgkitError


class Methods(TyperGroup):
    """The commands that train: those of methods, of kgkit's own and of other packages, and the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands; a method that cannot be loaded is left out."""
        from kgkit.models.kinds import kind_names

        names = super().list_commands(ctx)
        for name in kind_names():
            if name not in names:
                with suppress(KgkitError):
                    _command_of(name)
                    names.append(name)
        return names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if there is none of that name.

        Raises:
            DamagedModel, UnknownName, MissingExtra: if its package cannot be loaded, or the kind is not
                trained for tasks.
        """
        from kgkit.models.kinds import kind_names

        own = super().get_command(ctx, cmd_name)
        return own or (_command_of(cmd_name) if cmd_name in kind_names() else None)


def _command_of(name: str) -> Any:
    if name == "pmi":  # its settings load NumPy
        from kgkit.commands.train.pmi import pmi as command
    else:
        command = method_command(name)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, epilog=epilog(f"kgkit train {name}"))(command)
    return typer.main.get_command(app)


app = typer.Typer(cls=Methods, no_args_is_help=True, help="Train a model.")

app.command("linker")(linker.linker)
app.command("encoder")(encoder.encoder)
app.command("tagger")(tagger.tagger)
