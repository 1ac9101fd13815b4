"""`kgkit index`: build the index over existing vectors."""

from typing import Annotated

import typer

from kgkit.commands.completion import complete_vectors
from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import write_json, write_line


def index(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KB/NAME", autocompletion=complete_vectors, help="Vectors to index: wordnet/text."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option("--kind", metavar="KIND", help="Kind of the index: auto, exact, hnsw or ivfpq."),
    ] = "auto",
    recall: Annotated[
        float,
        typer.Option(
            "--recall", metavar="SHARE", help="Share of the ten true neighbours that a search should find."
        ),
    ] = 0.95,
    as_json: JSONOption = False,
) -> None:
    """Build the index over vectors again, in place of the existing one.

    Until it is done, searches use the old one.
    """
    from kgkit.building.registering import register_vectors
    from kgkit.commands.embed import describe_vectors, summary
    from kgkit.commands.vectors import parse_vectors_name
    from kgkit.home import Home
    from kgkit.vectors import Vectors, find_vectors
    from kgkit.vectors.indexing import build_index
    from kgkit.vectors.work import making

    where = Home.find()
    kb, last = parse_vectors_name(where, name)
    messages = Messages(bars=not as_json)
    find_vectors(kb, last)
    with messages.progress(f"indexing {kb.name}/{last}") as show, making(kb, last):
        vectors = Vectors.open(find_vectors(kb, last))
        built = build_index(
            vectors.matrix,
            vectors.folder,
            kind=kind,
            recall=recall,
            progress=lambda _, count, total: show(f"{count:,} of {total:,} rows", count, total),
        )
    register_vectors(where, kb.name)
    messages.write(f"built in {built.manifest.seconds:.1f} s: {vectors.folder}")
    if as_json:
        write_json(describe_vectors(vectors))
    else:
        write_line(summary(vectors))
