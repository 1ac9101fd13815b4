"""`kgkit vectors`: list vectors, and remove them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kgkit.commands.completion import complete_kb, complete_vectors
from kgkit.commands.groups import CommandGroup
from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import Column, number, size, write_json, write_table
from kgkit.errors import KgkitError, UsageError

if TYPE_CHECKING:
    from kgkit.home import Home, KBHome
    from kgkit.vectors.partial import PartialFolder

_COLUMNS = (
    Column(heading="vectors", fit="keep"),
    Column(heading="method"),
    Column(heading="entities", align="right"),
    Column(heading="width", align="right"),
    Column(heading="index"),
    Column(heading="size", align="right"),
    Column(heading="created", fit="keep"),
    Column(heading="build", fit="wrap"),
)


class VectorCommands(CommandGroup):
    """Manage the vectors on this machine."""

    PATH = "kgkit vectors"
    PLACES: ClassVar = {"list": "vectors:list_vectors", "rm": "vectors:remove"}


def list_vectors(
    kb: Annotated[
        str | None,
        typer.Argument(
            metavar="KB", autocompletion=complete_kb, help="Only of this knowledge base; by default of all."
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """List the vectors on this machine, and the index of each."""
    from kgkit.home import Home
    from kgkit.store import find_build
    from kgkit.vectors import vectors_names
    from kgkit.vectors.partial import partial_folders, partial_names

    where = Home.find()
    kb_homes = where.kbs() if kb is None else [where.kb(find_build(where, kb).name)]
    summaries = [_summary(kb_home, name) for kb_home in kb_homes for name in vectors_names(kb_home)]
    summaries += [
        _partial_summary(kb_home, name, folder)
        for kb_home in kb_homes
        for name in partial_names(kb_home)
        for folder in partial_folders(kb_home, name)
    ]
    if as_json:
        write_json(summaries)
    elif summaries:
        write_table(_COLUMNS, [_row(summary) for summary in summaries])
    if not summaries:
        Messages().write(f"no vectors in {where.path}: `kgkit embed {kb or 'KB'} --method text` makes some")


def remove(
    names: Annotated[
        list[str],
        typer.Argument(metavar="KB/NAME", autocompletion=complete_vectors, help="Vectors to remove."),
    ],
) -> None:
    """Remove vectors with their index, and the partial work of stopped jobs."""
    from kgkit.building.registering import register_vectors
    from kgkit.home import Home
    from kgkit.vectors import find_vectors, remove_vectors
    from kgkit.vectors.partial import partial_folders

    where = Home.find()
    parsed = list(dict.fromkeys(parse_vectors_name(where, name) for name in names))
    for kb, name in parsed:
        if not partial_folders(kb, name):
            find_vectors(kb, name)  # all of them are there, or nothing is removed
    for kb, name in parsed:
        remove_vectors(kb, name)
        register_vectors(where, kb.name)
        Messages().write(f"removed {kb.name}/{name}")


def parse_vectors_name(where: "Home", name: str) -> "tuple[KBHome, str]":
    """Return the KB and the vectors that `KB/NAME` names.

    Raises:
        UsageError: if it is no such name.
    """
    kb, _, last = name.partition("/")
    if not last:
        raise UsageError(f"vectors are named KB/NAME, as in wordnet/text; {name!r} is not")
    return where.kb(kb.partition("@")[0]), last


def _summary(kb: "KBHome", name: str) -> dict[str, Any]:
    """Return what a manifest says; of vectors that cannot be used, why."""
    from kgkit.vectors import find_vectors
    from kgkit.vectors.index import index_manifest
    from kgkit.vectors.matrix import read_manifest
    from kgkit.versions import read_current

    summary: dict[str, Any] = {"vectors": f"{kb.name}/{name}"}
    try:
        manifest, index, file_size = read_current(
            lambda: find_vectors(kb, name),
            lambda folder: (read_manifest(folder), index_manifest(folder), _bytes(folder)),
        )
    except (KgkitError, OSError) as error:
        return {**summary, "error": str(error)}
    return {
        **summary,
        "method": manifest.method,
        "entities": manifest.covered,
        "width": manifest.width,
        "index": None if index is None else index.kind,
        "size": file_size,
        "created": manifest.created,
        "build": manifest.build,
        "current": manifest.build == kb.published(),
    }


def _partial_summary(kb: "KBHome", name: str, folder: "PartialFolder") -> dict[str, Any]:
    """Return what is there of vectors that are encoded as links need them."""
    return {
        "vectors": f"{kb.name}/{name}",
        "method": "text",
        "partial": True,
        "entities": folder.rows,
        "width": folder.settings["width"],
        "index": None,
        "size": _bytes(folder.path),
    }


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _row(summary: dict[str, Any]) -> list[str]:
    if "error" in summary:
        return [summary["vectors"], "", "", "", "", "", "", summary["error"]]
    if "partial" in summary:
        numbers = number(summary["entities"]), str(summary["width"])
        return [summary["vectors"], "text (partial)", *numbers, "", size(summary["size"]), "", ""]
    return [
        summary["vectors"],
        summary["method"],
        number(summary["entities"]),
        str(summary["width"]),
        summary["index"] or "",
        size(summary["size"]),
        summary["created"][:10],
        summary["build"] + ("" if summary["current"] else " (not current)"),
    ]
