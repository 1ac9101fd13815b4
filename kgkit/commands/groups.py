"""Groups of commands, each of which is imported when it is called, completed or listed."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperGroup

from kgkit.commands.examples import epilog


class CommandGroup(TyperGroup):
    """Group of commands that are imported when they are used; the docstring of a subclass is its help.

    Args:
        attrs: arguments of `TyperGroup`, where they are not as usual.

    Attributes:
        PATH: command line that calls the group: `kgkit kb`.
        PLACES: place of each command, by its name: the module below `kgkit.commands` and the function in it,
            or the subclass of this class, as `kb.add:add`.
        PANELS: title that a command has in the help, by its name.
    """

    PATH: ClassVar[str]
    PLACES: ClassVar[Mapping[str, str]]
    PANELS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **attrs: Any) -> None:
        usual = {"name": self.PATH.rpartition(" ")[2], "help": type(self).__doc__, "no_args_is_help": True}
        super().__init__(**{**usual, **attrs, "commands": cast("Any", _Commands(self))})

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return [*self.commands]


def make_command(path: str, name: str, function: Callable[..., Any]) -> Any:
    """Return the command of a function.

    Args:
        path: command line that calls its group.
        name: name of the command.
        function: function whose parameters are the arguments and options.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, epilog=epilog(f"{path} {name}"))(function)
    return typer.main.get_command(app)


class _Commands(Mapping[str, Any]):
    """Commands of a group by their names, imported when they are asked for."""

    def __init__(self, group: CommandGroup) -> None:
        self._group, self._imported = group, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._imported:
            module, _, attribute = self._group.PLACES[name].partition(":")
            found = getattr(import_module(f"kgkit.commands.{module}"), attribute)
            command = found() if isinstance(found, type) else make_command(self._group.PATH, name, found)
            command.rich_help_panel = self._group.PANELS.get(name)
            self._imported[name] = command
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._group.PLACES)

    def __len__(self) -> int:
        return len(self._group.PLACES)
