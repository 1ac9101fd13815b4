"""`kgkit du` and `kgkit clean`: what kgkit takes on the disk, and what of it can go."""

from typing import Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption, flag
from kgkit.commands.output import Column, confirm, counted, size, write_json, write_line, write_table

YesOption = Annotated[bool, flag("--yes", "-y", help="Do not ask.")]

_USAGE = (
    Column(heading="kind"),
    Column(heading="name", fit="keep"),
    Column(heading="size", align="right"),
    Column(heading="path", fit="wrap"),
)
_LEFTOVERS = (
    Column(heading="kind"),
    Column(heading="size", align="right"),
    Column(heading="days", align="right"),
    Column(heading="path", fit="wrap"),
)
_MEANINGS = {
    "training": "stopped training", "build": "stopped build", "vectors": "stopped vectors",
    "temporary": "temporary",
}  # fmt: skip


def du(as_json: JSONOption = False) -> None:
    """Show what knowledge bases, vectors, models, trainings and the cache take on the disk."""
    from kgkit.home import Home
    from kgkit.models.storage import disk_usage

    where = Home.find()
    entries = sorted(disk_usage(where), key=lambda entry: -entry.size)
    total = sum(entry.size for entry in entries)
    if as_json:
        listed = [{**entry._asdict(), "path": str(entry.path)} for entry in entries]
        write_json({"home": str(where.path), "size": total, "entries": listed})
        return
    if entries:
        rows = [(entry.kind, entry.name, size(entry.size), str(entry.path)) for entry in entries]
        write_table(_USAGE, rows)
    Messages().write(f"{total / 1e6:,.1f} MB in {where.path}")


def clean(
    days: Annotated[
        float,
        typer.Option(
            "--days", min=0, metavar="N", help="Age of the checkpoints of stopped jobs that go, in days."
        ),
    ] = 7,
    dry_run: Annotated[bool, flag("--dry-run", help="Show what can go, and remove nothing.")] = False,
    yes: YesOption = False,
    as_json: JSONOption = False,
) -> None:
    """Remove checkpoints and partial work of jobs that were stopped, and temporary folders.

    What a process works on stays. It asks first; where nobody can be asked, --yes is the answer.
    """
    from kgkit.home import Home
    from kgkit.models.storage import leftovers, remove_leftover

    where, messages = Home.find(), Messages()
    paths = leftovers(where, days=days)
    total = sum(leftover.size for leftover in paths)
    if as_json:
        write_json([leftover.to_dict() for leftover in paths])
    elif paths:
        facts = [leftover.to_dict() for leftover in paths]
        rows = [(_MEANINGS[f["kind"]], size(f["size"]), f"{f['days']:.1f}", f["path"]) for f in facts]
        write_table(_LEFTOVERS, rows)
    if not paths:
        messages.write(f"nothing to remove in {where.path}")
        return
    if dry_run:
        messages.write(f"{counted(len(paths), 'folder')}, {total / 1e6:,.1f} MB, can go")
        return
    confirm(f"Remove {counted(len(paths), 'folder')} ({total / 1e6:,.1f} MB)?", yes=yes, required=True)
    removed = [leftover for leftover in paths if remove_leftover(leftover)]
    for leftover in paths:
        if leftover not in removed and not as_json:
            write_line(f"in use by now: {leftover.path}")
    size_removed = sum(leftover.size for leftover in removed)
    messages.write(f"removed {counted(len(removed), 'folder')}, {size_removed / 1e6:,.1f} MB")
