"""`kgkit nearest`: the entities whose vectors are nearest, or the words of the highest PMI."""

from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    EntityKindOption,
    JSONOption,
    RecentKBOption,
    check_text,
    find_entity,
    flag,
    open_chosen_kb,
)
from kgkit.commands.output import Column, plain, write_json, write_table
from kgkit.commands.ranked import write_ranked
from kgkit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from kgkit.kb import KnowledgeBase


def nearest(
    query: Annotated[
        str,
        typer.Argument(
            metavar="ENTITY", help="Its key: dog.n.01; with --text, any text; with --pmi, a word, or several."
        ),
    ],
    kb: RecentKBOption = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            "--vectors", metavar="NAME", help="Vectors to search; not needed where the KB has one kind only."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="Number of results.")] = 10,
    kind: EntityKindOption = None,
    text: Annotated[
        bool, flag("--text", help="Encode ENTITY as a text, by the encoder that made the vectors.")
    ] = False,
    pmi: Annotated[
        str | None,
        typer.Option(
            "--pmi",
            metavar="NAME",
            help="List the words of the highest PMI with the words ENTITY, by a table of `kgkit train pmi`.",
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """List the entities whose vectors are nearest to an entity's, or to a text's; or words, by their PMI."""
    if pmi is not None:
        if kb is not None or vectors is not None or kind is not None or text:
            raise UsageError("--pmi lists words: leave out --kb, --vectors, --kind and --text")
        _list_words(check_text(query, "ENTITY"), pmi, k, as_json=as_json)
        return
    from kgkit.kb.json_records import scored_record

    with open_chosen_kb(kb) as base:
        target = _encode(base, vectors, check_text(query, "TEXT")) if text else find_entity(base, query)
        neighbours = base.nearest(target, k, vectors=vectors, kind=kind)
        name = base.vectors(vectors).name
    if as_json:
        write_json([scored_record(each.entity, each.score) for each in neighbours])
    elif neighbours:
        write_ranked("cosine", [(neighbour.score, neighbour.entity, None) for neighbour in neighbours])
    if not neighbours:
        Messages().write(f"{query!r} has no vector in {name}, or nothing is near it")


def _list_words(text: str, name: str, k: int, *, as_json: bool) -> None:
    """List the words of the highest mean PMI with those of a text."""
    from kgkit.models.opening import open_model
    from kgkit.pmi import text_words

    table = open_model(name, "association_table")
    words = text_words(text)
    strongest = table.strongest(words, k)
    if as_json:
        write_json([{"word": word, "pmi": float(f"{value:.7g}")} for word, value in strongest])
    elif strongest:
        columns = [Column(heading="PMI", align="right"), Column(heading="word", wide=True)]
        write_table(columns, [(f"{value:.4f}", plain(word)) for word, value in strongest])
    unknown = [word for word in dict.fromkeys(words) if word not in table]
    if not strongest:
        lacking = f", which does not have: {', '.join(unknown)}" if unknown else ""
        Messages().write(f"no word goes with {text!r} in {name}{lacking}")
    elif unknown:
        Messages().write(f"{name} does not have: {', '.join(unknown)}")


def _encode(kb: "KnowledgeBase", vectors: str | None, text: str) -> "np.ndarray":
    """Return the vector of a text, by the encoder that made the vectors of the entities."""
    from kgkit.embedding.text import encoder_of

    vector: np.ndarray = encoder_of(kb.vectors(vectors)).encode([text])[0]
    return vector
