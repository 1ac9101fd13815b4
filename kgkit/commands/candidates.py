"""`kgkit candidates`: the entities that a word or name can mean."""

from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    JSONOption,
    RecentKBOption,
    check_pos,
    check_text,
    flag,
    open_chosen_kb,
)
from kgkit.commands.output import write_json
from kgkit.commands.ranked import write_ranked

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Candidates


def candidates(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A word or name, as it may stand in a text.")],
    kb: RecentKBOption = None,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, metavar="N", help="Number of candidates, at most; by default all."),
    ] = None,
    pos: Annotated[
        str | None,
        typer.Option("--pos", metavar="POS", help="Only meanings of this part of speech: n, v, a, r."),
    ] = None,
    fuzzy: Annotated[
        bool, flag("--fuzzy", help="If the text is unknown, use the most similar known surface.")
    ] = False,
    as_json: JSONOption = False,
) -> None:
    """List what a word or name can mean, best prior first; the exit code is 1 if there is nothing."""
    from kgkit.candidates import GeneratorConfig
    from kgkit.kb.json_records import candidate_record, link_probability

    with open_chosen_kb(kb) as base:
        decoded = base.decode(
            _find_candidates(base, check_text(text, "TEXT"), k, check_pos(base, pos), fuzzy=fuzzy)
        )
        probabilities = link_probability(base, text)
        least = GeneratorConfig().min_link_probability
    if as_json:
        write_json([candidate_record(candidate) | probabilities for candidate in decoded])
    elif decoded:
        for probability in probabilities.values():
            rare = f": under {least:g}, so it is not sought in texts" if probability < least else ""
            Messages().write(f"link probability of {text!r}: {probability}{rare}")
        write_ranked(
            "prior",
            [(candidate.prior, candidate.entity, candidate.sense) for candidate in decoded],
            senses=True,
        )
    if not decoded:
        hint = "" if fuzzy else "; --fuzzy looks for the most similar"
        Messages().write(f"{text!r} is not known in knowledge base {base.name!r}{hint}")
        raise typer.Exit(1)


def _find_candidates(
    kb: "KnowledgeBase", text: str, k: int | None, pos: str | None, *, fuzzy: bool
) -> "Candidates":
    """Return the candidates of *text* as a whole, and of its lemmas where the KB knows how to find them."""
    from kgkit.candidates import generator_for
    from kgkit.types import Mention

    generator = generator_for(kb, max_candidates=k)
    results = generator.candidates_of(Mention(0, len(text), text, pos=pos or ""))
    return kb.candidates(text, k, pos, fuzzy=True) if fuzzy and not len(results) else results
