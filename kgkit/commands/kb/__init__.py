"""`kgkit build-kb` and `kgkit kb …`: knowledge bases, a file per verb."""

import typer

from kgkit.commands.kb import (
    add,
    default,
    diff,
    edit,
    export,
    import_kb,
    index,
    info,
    list_kbs,
    prune,
    publish,
    rm,
    verify,
)
from kgkit.commands.kb.build import build_kb

app = typer.Typer(no_args_is_help=True, help="Manage the knowledge bases on this machine.")

app.command("list")(list_kbs.list_kbs)
app.command("info")(info.info)
app.command("add")(add.add)
app.command("default")(default.default)
app.command("edit")(edit.edit)
app.command("diff")(diff.diff)
app.command("export")(export.export)
app.command("import")(import_kb.import_kb)
app.command("index")(index.index)
app.command("verify")(verify.verify)
app.command("rm")(rm.rm)
app.command("prune")(prune.prune)
app.command("publish")(publish.publish)

__all__ = ["app", "build_kb"]
