"""`kgkit build-kb` and `kgkit kb …`: knowledge bases, a file per verb."""

from collections.abc import Callable, Mapping

import typer

from kgkit.commands.kb import (
    add,
    check,
    default,
    diff,
    edit,
    export,
    import_kb,
    info,
    list_kbs,
    prune,
    publish,
    rm,
    verify,
)
from kgkit.commands.kb.build import build_kb

app = typer.Typer(no_args_is_help=True, help="Manage the knowledge bases on this machine.")

_VERBS: Mapping[str, Callable[..., None]] = {
    "list": list_kbs.list_kbs, "info": info.info, "check": check.check, "add": add.add,
    "default": default.default, "edit": edit.edit, "diff": diff.diff, "export": export.export,
    "import": import_kb.import_kb,
    "verify": verify.verify, "rm": rm.rm, "prune": prune.prune,
    "publish": publish.publish,
}  # fmt: skip
for name, verb in _VERBS.items():
    app.command(name)(verb)

__all__ = ["app", "build_kb"]
