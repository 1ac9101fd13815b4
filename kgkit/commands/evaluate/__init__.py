"""`kgkit evaluate …`: a file per kind of data set."""

from typing import Any

import typer
from typer.core import TyperGroup

from kgkit.commands.evaluate import cloze, el, language, ner, task, wsd


class EvaluateCommands(TyperGroup):
    """The group, in which a task's name stands for `task` and makes sure that it is the model's."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name; None if there is none."""
        if cmd_name not in self.commands:
            from kgkit.evaluation.tasks import TASKS

            cmd_name = "task" if cmd_name in TASKS else cmd_name
        return super().get_command(ctx, cmd_name)


app = typer.Typer(cls=EvaluateCommands, no_args_is_help=True, help="Score a model on a data set.")

for command in (cloze.cloze, el.el, ner.ner, language.ppl, task.task, wsd.wsd):
    app.command(command.__name__)(command)
