"""`kgkit kb list`: which knowledge bases there are."""

from typing import Any

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, JSONOption, QuietOption
from kgkit.commands.output import Column, number, size, write_json, write_table

_COLUMNS = (
    Column(heading="name"),
    Column(heading="build"),
    Column(heading="entities", align="right"),
    Column(heading="triples", align="right"),
    Column(heading="size", align="right"),
    Column(heading="created"),
    Column(heading="source", fit="wrap"),
)


def list_kbs(home: HomeOption = None, as_json: JSONOption = False, quiet: QuietOption = False) -> None:
    """List the knowledge bases on this machine, and make the catalog agree with them."""
    from kgkit.building.registering import agrees, reconcile
    from kgkit.errors import KgkitError
    from kgkit.home import Home
    from kgkit.kb.listing import kbs

    where, messages = Home.find(home), Messages(quiet=quiet)
    summaries = [kb.to_dict() for kb in kbs(where.path)]
    try:
        if as_json:
            write_json(summaries)
        elif summaries:
            write_table(_COLUMNS, [_row(kb) for kb in summaries])
        if not summaries:
            messages.write(f"no knowledge base in {where.path}: `kgkit build-kb wordnet` builds one")
    finally:  # whether or not the reader has heard enough
        try:
            if not agrees(where):
                reconcile(where)
        except KgkitError as error:
            messages.write(f"warning: {error}")


def _row(kb: dict[str, Any]) -> list[str]:
    if "error" in kb:
        return [kb["name"], str(kb["build"]), "", "", "", "", kb["error"]]
    figures = (number(kb[key]) for key in ("entities", "triples"))
    return [kb["name"], kb["build"], *figures, size(kb["size"]), kb["created"][:10], kb["source"]]
