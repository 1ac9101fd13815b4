"""`kgkit evaluate …`: a file per kind of data set."""

import typer

from kgkit.commands.evaluate import (
    classes,
    el,
    kbert,
    language,
    ner,
    wsd,
)

app = typer.Typer(no_args_is_help=True, help="Score a model on a data set.")

app.command("classification")(classes.classification)
app.command("el")(el.el)
app.command("ner")(ner.ner)
app.command("ppl")(language.ppl)
app.command("probe")(language.probe)
app.command("ranking")(kbert.ranking)
app.command("relation")(classes.relation)
app.command("tagging")(kbert.tagging)
app.command("typing")(classes.typing)
app.command("wic")(classes.wic)
app.command("wsd")(wsd.wsd)
