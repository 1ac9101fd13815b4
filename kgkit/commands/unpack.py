"""`kgkit unpack`: publish what a pack holds."""

from typing import Annotated, Final

import typer

from kgkit.commands.kb.lost_builds import lost_builds_warned, removals_reported
from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption, flag
from kgkit.commands.output import size, write_json, write_line
from kgkit.commands.pack import describe_item

_RESULTS: Final = {"add": "added", "replace": "replaced", "keep": "is here already"}


def unpack(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A pack: a file, an address (https://…) or hf:ORG/NAME@REV."),
    ],
    replace: Annotated[
        bool, flag("--replace", help="Replace what is here under a name of the pack, and is another.")
    ] = False,
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Largest size of all that is in it, as 4GB.")
    ] = "100GB",
    as_json: JSONOption = False,
) -> None:
    """Publish the knowledge bases, vectors and models of a pack that `kgkit pack` has written.

    Everything is compared with its digests first: a pack that is refused leaves nothing behind.
    """
    from kgkit.building.options import bytes_of
    from kgkit.home import Home
    from kgkit.sharing.unpacking import unpack as read_pack

    messages, where = Messages(bars=not as_json), Home.find()
    present = [kb.name for kb in where.kbs()]
    with (
        lost_builds_warned(where, present, messages),
        removals_reported(where, present, messages),
        messages.progress(f"unpacking {source}") as tell,
    ):
        unpacked = read_pack(
            source, replace=replace, max_bytes=bytes_of(max_size),
            progress=lambda _, count, total: tell(f"{count / 1e6:,.0f} MB", count, total),
        )  # fmt: skip
    for encoder in unpacked.encoders:
        messages.write(f"it needs the encoder {encoder}, which is not in it")
    if unpacked.missing:
        messages.write(f"it needs {', '.join(unpacked.missing)}, which is not here")
    if as_json:
        write_json(
            {
                "items": [describe_item(item, action=action) for item, action in unpacked.items],
                "encoders": unpacked.encoders,
                "missing": unpacked.missing,
                "card": unpacked.card,
            }
        )
        return
    for item, action in unpacked.items:
        write_line(f"{item.title}\t{_RESULTS[action]}\t{size(item.size)}")
