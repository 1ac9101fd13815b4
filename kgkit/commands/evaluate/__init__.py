"""`kgkit evaluate …`: a file per kind of data set."""

from typing import Any

import typer

from kgkit.commands.evaluate import cloze, el, language, ner, tasks, wsd
from kgkit.commands.verb import Group


class EvaluateCommands(Group):
    """The group, which answers the command that another has taken the place of."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that *args* begin with.

        Raises:
            UsageError: if it is `probe`; says the line to use.
        """
        if args[:1] == ["probe"]:
            raise cloze.answer_probe(args[1:])
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=EvaluateCommands, no_args_is_help=True, help="Score a model on a data set.")

for command in (cloze.cloze, el.el, ner.ner, language.ppl, wsd.wsd):
    app.command(command.__name__)(command)
for name, sentence in tasks.HELP.items():
    app.command(name, help=sentence)(tasks.task_command(name))
