"""`kgkit evaluate …`: a file per kind of data set."""

import typer

from kgkit.commands.evaluate import el, language, ner, tasks, wsd

app = typer.Typer(no_args_is_help=True, help="Score a model on a data set.")

app.command("el")(el.el)
app.command("ner")(ner.ner)
app.command("ppl")(language.ppl)
app.command("probe")(language.probe)
app.command("wsd")(wsd.wsd)
for name, sentence in tasks.HELP.items():
    app.command(name, help=sentence)(tasks.task_command(name))
