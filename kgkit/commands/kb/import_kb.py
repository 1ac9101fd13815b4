"""`kgkit kb import`: a knowledge base from a file of another program."""

from pathlib import Path
from typing import Annotated

import typer

from kgkit.commands.kb.build import LanguageOption, build_kb
from kgkit.commands.kb.export import FormatOption
from kgkit.commands.text_streams import BadOption
from kgkit.errors import NotThere


def import_kb(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="File to read; a folder for neo4j.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the knowledge base; by default the file's."),
    ] = None,
    format: FormatOption = None,
    language: LanguageOption = None,
    bad: BadOption = "stop",
) -> None:
    """Build a knowledge base from a file of another program, and publish it.

    The same as `kgkit build-kb` with the builder of that format.
    """
    from kgkit.exchange.exporting import chosen_format

    if not source.exists():
        raise NotThere(f"no file {source}")
    build_kb(
        chosen_format(source, format).builder,
        [str(source)],
        name=name if name is not None else source.absolute().name.split(".")[0],
        language=language,
        bad=bad,
    )
