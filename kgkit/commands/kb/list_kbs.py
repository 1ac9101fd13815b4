"""`kgkit kb list`: which knowledge bases there are."""

from typing import Any

from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import Column, number, on_terminal, size, write_json, write_table

_COLUMNS = (
    Column(heading="name", fit="keep"),
    Column(heading="build", fit="keep"),
    Column(heading="entities", align="right"),
    Column(heading="triples", align="right"),
    Column(heading="size", align="right"),
    Column(heading="created", fit="keep"),
    Column(heading="source", fit="wrap"),
)
_DEFAULT = Column(heading="default")


def list_kbs(as_json: JSONOption = False) -> None:
    """List the knowledge bases on this machine, and make the catalog agree with them.

    A star marks the default, which commands take where none is named.
    """
    from kgkit.building.registering import agrees, reconcile
    from kgkit.errors import KgkitError
    from kgkit.home import Home
    from kgkit.kb.listing import kbs

    where, messages = Home.find(), Messages()
    default = where.chosen_default.partition("@")[0]
    summaries = [{**kb.to_dict(), "default": kb.name == default} for kb in kbs(where.path)]
    try:
        if as_json:
            write_json(summaries)
        elif summaries:
            _write(summaries)
        if not summaries:
            messages.write(f"no knowledge base in {where.path}: `kgkit build-kb wordnet` builds one")
    finally:  # whether or not the reader has heard enough
        try:
            if not agrees(where):
                reconcile(where)
        except KgkitError as error:
            messages.write(f"warning: {error}")


def _write(summaries: list[dict[str, Any]]) -> None:
    """Draw the table; the star stands behind the name on a terminal, and in a column of its own in a pipe."""
    rows = [_row(kb) for kb in summaries]
    marks = ["*" if kb["default"] else "" for kb in summaries]
    if on_terminal():
        rows = [[f"{row[0]} {mark}".rstrip(), *row[1:]] for mark, row in zip(marks, rows, strict=True)]
        write_table(_COLUMNS, rows)
    else:
        write_table([*_COLUMNS, _DEFAULT], [[*row, mark] for mark, row in zip(marks, rows, strict=True)])


def _row(kb: dict[str, Any]) -> list[str]:
    if "error" in kb:
        return [kb["name"], str(kb["build"]), "", "", "", "", kb["error"]]
    figures = (number(kb[key]) for key in ("entities", "triples"))
    return [kb["name"], kb["build"], *figures, size(kb["size"]), kb["created"][:10], kb["source"]]
