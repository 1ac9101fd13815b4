"""The generator that a knowledge base asks for in its manifest."""

from typing import Literal

from kgkit.candidates.alias import AliasConfig, AliasGenerator
from kgkit.candidates.lemma import LemmaConfig, LemmaGenerator
from kgkit.candidates.matching import Generator
from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase


def generator_for(
    kb: KnowledgeBase,
    *,
    max_candidates: int | None = 30,
    overlaps: bool = False,
    all_surfaces: bool = False,
    nouns: bool = False,
) -> Generator:
    """Return the generator that suits *kb*, as its builder said.

    Args:
        kb: knowledge base whose surfaces are sought.
        max_candidates: largest number of candidates of a mention; None for all.
        overlaps: flag for an alias generator to find every surface that occurs, not
            the leftmost-longest only; a lemma generator always does.
        all_surfaces: flag for mentions that are function words, surfaces that are hardly
            ever links, or words in lower case that the KB writes with capitals only.
        nouns: flag for a lemma generator to find function words as nouns (*the can*), for a scorer that
            reads parts of speech.

    Raises:
        UnknownName: if this kgkit has no generator of that name.
    """
    match kb.manifest.generator:
        case "alias":
            matches: Literal["all", "longest"] = "all" if overlaps else "longest"
            return AliasGenerator(
                kb, AliasConfig(max_candidates=max_candidates, matches=matches, all_surfaces=all_surfaces)
            )
        case "lemma":
            return LemmaGenerator(
                kb, LemmaConfig(max_candidates=max_candidates, all_surfaces=all_surfaces, nouns=nouns)
            )
        case name:
            raise UnknownName("candidate generator", name, ["alias", "lemma"])
