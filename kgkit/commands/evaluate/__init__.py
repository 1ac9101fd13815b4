"""`kgkit evaluate …`: a file per kind of data set."""

import typer

from kgkit.commands.evaluate import cloze, el, language, ner, task, wsd

app = typer.Typer(no_args_is_help=True, help="Score a model on a data set.")

for command in (cloze.cloze, el.el, ner.ner, language.ppl, task.task, wsd.wsd):
    app.command(command.__name__)(command)
