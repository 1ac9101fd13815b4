"""Options of `kgkit train linker`."""

from pathlib import Path
from typing import Annotated

import typer

from kgkit.commands.options import repeated

LinkerTaggerOption = Annotated[
    str,
    typer.Option(
        "--mentions",
        metavar="NAME",
        help="Tagger whose names the linker links by default; the threshold is chosen with it, on one "
        "document in ten.",
    ),
]
LinkerEncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="ENCODER",
        help="Encoder of texts and mentions, to train over it from nothing: folder, package or hub id.",
        show_default=False,
    ),
]
LinkerDataOption = Annotated[
    list[Path],
    repeated("--data", "FILE", "Entities, in any format of evaluate el; with --gold senses, X.data.xml"),
]
SenseGoldOption = Annotated[
    list[Path] | None,
    typer.Option("--gold", metavar="FILE", help="Senses, X.gold.key.txt; as often as --data, in its order."),
]
LinkerCorrectionsOption = Annotated[
    Path | None,
    typer.Option(
        "--corrections",
        metavar="FILE",
        help="Corrections of the links in --data: learns from documents with one of their own.",
        show_default=False,
    ),
]
LinkerEpochsOption = Annotated[
    int | None,
    typer.Option("--epochs", metavar="N", help="Number of times that the network reads all data."),
]
LinkerKeepOption = Annotated[
    bool,
    typer.Option(
        "--keep",
        help="Publish it even if it does not help on what was held out, for texts that are unlike these.",
    ),
]
