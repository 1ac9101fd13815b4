"""What every command is made of: an option of one value is given once, all that is missing is one error.

Its help has the options in groups, and ends with an example and a page of the manual. A group of commands
says of a command that it lacks where that is, or what serves in its place.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from kgkit.commands.completion import set_completion
from kgkit.commands.examples import example_of
from kgkit.errors import UsageError

REQUIRED: Final = "Required options"
ACCESS: Final = "Access"
GENERAL: Final = "General options"

PANELS: Final[Mapping[str, Sequence[str]]] = {
    "Knowledge base and model": (
        "--kb", "--default", "--model", "--vectors", "--mentions", "--references", "--coherence", "--linker",
        "--encoder", "--senses", "--tagger", "--chunker", "--pmi",
    ),
    "Columns of a table": (
        "--key", "--label", "--aliases", "--description", "--count", "--fact", "--number", "--attribute",
        "--preview",
    ),
    "Input": (
        "--data", "--gold", "--dev", "--dev-gold", "--input-format", "--recursive", "--source", "--bad",
    ),
    "Output": (
        "--output", "--resume", "--html", "--svg", "--json", "--jsonl", "--table", "--picture",
        "--predictions", "--summary", "--exit-code", "--explain", "--top-k", "--nil",
    ),
    "Training": (
        "--epochs", "--steps", "--batch", "--size", "--lr", "--lr-new", "--seed", "--bf16",
        "--attention-dropout", "--heads", "--preset",
    ),
    ACCESS: ("--host", "--port", "--token-file", "--allow-host", "--allow-origin"),
    GENERAL: ("--device", "--workers", "--memory", "--help"),
}  # fmt: skip
"""The groups of options in the help of a command, in their order; what is in none stands before them."""

ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("search", "find", "lookup"),
        "`kgkit candidates NAME` lists what a name can mean, with --fuzzy through typing errors",
    ),
    **dict.fromkeys(
        ("neighbors", "neighbours", "entity"), "`kgkit show KEY` shows an entity and its neighbours"
    ),
    **dict.fromkeys(("download", "install"), "`kgkit build-kb wordnet` obtains WordNet and builds it"),
}
"""Commands that people try, and what serves in their place."""

_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("remove", "delete", "del", "uninstall"), "rm"), "ls": "list",
}  # fmt: skip
"""Other words for commands of a group."""

_NOTHING: Final[tuple[Any, ...]] = (None, [], ())
_LEAST_OPTIONS: Final = 8
"""Number of options from which on the help has groups."""


class Verb(TyperCommand):
    """A command of kgkit."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of one group of the help together."""
        parameters: list[Any] = super().get_params(ctx)
        _hide_values_of_flags(parameters)
        for each in parameters:
            set_completion(each)
        options = [each for each in parameters if each.param_type_name == "option"]
        if len(options) < _LEAST_OPTIONS:
            return parameters
        ranks = {panel: rank for rank, panel in enumerate((REQUIRED, None, *PANELS))}
        for option in options:
            option.rich_help_panel = option.rich_help_panel or (
                REQUIRED if option.required else _panel(option)
            )
        options.sort(key=lambda option: ranks.get(option.rich_help_panel, 1))
        return [each for each in parameters if each.param_type_name != "option"] + options

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, and under it an example and the page of the manual."""
        super().format_help(ctx, formatter)
        typer.echo(" Options of every command: --home DIR, --quiet; see kgkit --help\n")
        write_example(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: if an option that takes one value is given twice, or something is missing.
        """
        if not ctx.resilient_parsing:  # not while the shell completes an option
            try:
                values, _, parameters = self.make_parser(ctx).parse_args(args=[*args])
            except typer.TyperException:
                values, parameters = {"help": True}, []  # reported below
            _check_repeats(parameters, args)
            if not values.get("help"):
                self._check_missing(ctx, values)
        return super().parse_args(ctx, args)

    def _check_missing(self, ctx: Any, values: Mapping[str, Any]) -> None:
        """Refuse a command line that lacks something, and say all that it lacks."""
        missing = [
            each for each in self.get_params(ctx) if each.required and values.get(each.name) in _NOTHING
        ]
        if missing:
            listed = [_spelled(each) for each in missing]
            phrase = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
            example = example_of(ctx.command_path, self.params).line
            raise UsageError(f"missing {phrase}; for example `{example}`; see `{ctx.command_path} --help`")


class Group(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help of a flag names no value."""
        parameters: list[Any] = super().get_params(ctx)
        _hide_values_of_flags(parameters)
        return parameters

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names.

        Raises:
            UsageError: if it is a command of another group, or one that people try.
        """
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            root = ctx.find_root()
            synonym = _SYNONYMS.get(name, "")
            if self.get_command(ctx, synonym) is not None:
                raise UsageError(f"no such command {name!r}: there is `{ctx.command_path} {synonym}`")
            groups = [
                each for each in root.command.commands.values() if name in getattr(each, "commands", ())
            ]
            paths = [f"`{root.command_path} {each.name} {name}`" for each in groups]
            hint = f"there is {' and '.join(paths)}" if paths else ELSEWHERE.get(name)
            if hint:
                raise UsageError(f"no such command {name!r}: {hint}")
        return super().resolve_command(ctx, args)


def write_example(ctx: Any) -> None:
    """Write the example of a command and the page that describes it, below its help."""
    example = example_of(ctx.command_path, ctx.command.params)
    typer.echo(f" Example:  {example.line}\n Manual:   docs/{example.page}\n")


def _hide_values_of_flags(parameters: Sequence[Any]) -> None:
    """Have the help name no value of options that take none."""
    for each in parameters:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""


def _panel(option: Any) -> str | None:
    """Return the group of an option in the help."""
    return next((panel for panel, names in PANELS.items() if not {*option.opts}.isdisjoint(names)), None)


def _spelled(parameter: Any) -> str:
    """Return a parameter as the command line has it, with the values that it may have."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    choices = parameter.type_descriptor.choices or ()
    listed = f" ({', '.join(map(str, choices))})" if choices else ""
    return f"{max(parameter.opts, key=len)} {parameter.metavar or 'VALUE'}{listed}"


def _check_repeats(parameters: Sequence[Any], args: Sequence[str]) -> None:
    """Refuse a command line that gives an option several times, unless it takes several values, or none."""
    names_read = set[str]()
    for parameter in parameters:
        if parameter.param_type_name != "option" or parameter.multiple or parameter.count:
            continue
        if parameter.is_flag and not parameter.secondary_opts:
            continue  # a flag given twice means the same
        if parameter.name in names_read:
            names = [*parameter.opts, *parameter.secondary_opts]
            spelled = [name for name in names if any(arg.partition("=")[0] == name for arg in args)]
            shown = " and ".join(spelled or names[:1])
            raise UsageError(f"{shown}: given more than once, and this command takes one value")
        names_read.add(parameter.name)
