"""`kgkit train …`: a command for each method, made from its settings, and files for what is no method."""

from contextlib import suppress
from typing import Any, ClassVar

from kgkit.commands.groups import CommandGroup, make_command
from kgkit.errors import KgkitError


class TrainCommands(CommandGroup):
    """Train a model."""

    PATH = "kgkit train"
    PLACES: ClassVar = {
        "linker": "train.linker:linker", "encoder": "train.encoder:encoder", "tagger": "train.tagger:tagger",
        "pmi": "train.pmi:pmi",
    }  # fmt: skip

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, with the methods; one that cannot be loaded is left out."""
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
    from kgkit.commands.train.generated import method_command

    return make_command(TrainCommands.PATH, name, method_command(name))
