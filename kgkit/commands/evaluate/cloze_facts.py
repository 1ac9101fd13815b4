"""The facts that `kgkit evaluate cloze` asks for: those of a knowledge base, and some drawn at random."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kgkit.evaluation.facts import Fact
    from kgkit.types import Triple

    FactT = TypeVar("FactT", Fact, Triple)


def facts_of_kb(kb: str, relations: Sequence[str], limit: int | None, seed: int) -> "tuple[list[Fact], int]":
    """Return facts of a knowledge base, entities by their labels, and how many have none that can be used."""
    from kgkit.evaluation.facts import Fact
    from kgkit.kb import open_kb

    with open_kb(kb) as base:
        every = [
            triple
            for relation in relations
            if relation in base.relations
            for triple in base.match(relation=relation)
        ]
        named = [
            Fact(base[triple.subject].label.strip(), triple.relation, base[triple.object].label.strip())
            for triple in draw_facts(every, limit, seed)
        ]
        facts = [fact for fact in named if fact.subject and fact.object and fact.subject != fact.object]
        return facts, len(named) - len(facts)


def draw_facts(facts: "list[FactT]", limit: int | None, seed: int) -> "list[FactT]":
    """Return at most so many facts of each relation, in their order."""
    if limit is None:
        return facts
    import numpy as np

    counts, chosen = Counter[str](), set[int]()
    for index in np.random.default_rng(seed).permutation(len(facts)).tolist():
        if counts[facts[index].relation] < limit:
            counts[facts[index].relation] += 1
            chosen.add(index)
    return [fact for index, fact in enumerate(facts) if index in chosen]
