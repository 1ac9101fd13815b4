"""What every command is made of: an option of one value is given once."""

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from kgkit.errors import UsageError


class Verb(TyperCommand):
    """A command that takes an option of one value once only: the last of several would win in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            UsageError: if an option that takes one value is given twice.
        """
        if not ctx.resilient_parsing:  # not while the shell completes an option
            try:
                _, _, parameters = self.make_parser(ctx).parse_args(args=[*args])
            except typer.TyperException:
                parameters = []  # reported below
            _check_repeats(parameters, args)
        return super().parse_args(ctx, args)


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
