"""`kgkit pack`: knowledge bases, vectors and models as one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import size, write_json, write_line

if TYPE_CHECKING:
    from kgkit.sharing.layout import PackItem

PackOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="File to write; .gz or .tgz at its end compresses it."
    ),
]
LicenceOption = Annotated[
    str, typer.Option("--licence", metavar="TEXT", help="Licence of the models, for the card.")
]


def pack(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="What to pack: kb:NAME, kb:NAME@BUILD, vectors:KB/NAME, model:NAME; or the name alone.",
        ),
    ],
    output: PackOption,
    licence: LicenceOption = "",
    as_json: JSONOption = False,
) -> None:
    """Write knowledge bases, vectors and models into one file, with what they need.

    `kgkit unpack` reads it, on this machine or another. An encoder that a model needs is named, not packed.
    """
    from kgkit.sharing.packing import pack as write_pack

    messages = Messages(bars=not as_json)
    with messages.progress(f"packing {output.name}") as tell:
        packed = write_pack(
            names, output, licence=licence,
            progress=lambda _, count, total: tell(f"{count / 1e6:,.0f} MB", count, total),
        )  # fmt: skip
    for name in packed.encoders:
        messages.write(f"not in it: the encoder {name}, which is needed to use it")
        if Path(name).is_absolute() or Path(name).is_dir():
            messages.write("that is a folder of this machine: others need an encoder of the same name")
    if as_json:
        write_json(
            {
                "path": str(packed.path),
                "bytes": packed.size,
                "encoders": packed.encoders,
                "items": [describe_item(item) for item in packed.items],
            }
        )
        return
    for item in packed.items:
        write_line(f"{item.title}\t{size(item.size)}{'' if item.requested else ' (needed)'}")
    messages.write(f"wrote {packed.path}: {size(packed.size)}")


def describe_item(item: "PackItem", **fields: str) -> dict[str, object]:
    """Return an item of a pack, ready for JSON, with further fields."""
    return {
        "kind": item.kind, "name": item.name, "version": item.version, "bytes": item.size,
        "requested": item.requested, **fields,
    }  # fmt: skip
