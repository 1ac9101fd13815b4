"""Records of entities as JSON has them: what commands write with `--json`, and the service answers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from kgkit.kb.facts import Facts
from kgkit.kb.handle import KnowledgeBase
from kgkit.types import Candidate, Entity

__all__ = [
    "KeysByRelation",
    "candidate_record",
    "entity_record",
    "link_probability",
    "neighbor_keys",
    "neighbor_records",
    "scored_record",
]

KeysByRelation = dict[str, list[str]]
"""Keys of entities by relation."""


def candidate_record(candidate: Candidate) -> dict[str, Any]:
    """Return what a surface can mean as a record."""
    entity = candidate.entity
    return {
        "entity": entity.key,
        "sense": candidate.sense,
        "prior": _float32(candidate.prior),
        "label": entity.label,
        "pos": entity.pos,
        "description": entity.description,
    }


def scored_record(entity: Entity, score: float) -> dict[str, Any]:
    """Return an entity with a score as a record."""
    return {
        "entity": entity.key,
        "score": _float32(score),
        "label": entity.label,
        "kind": entity.kind,
        "description": entity.description,
    }


def link_probability(kb: KnowledgeBase, surface: str) -> dict[str, float]:
    """Return the link probability of a surface by its name; nothing where the KB does not know it."""
    probability = kb.link_probability(surface)
    return {} if probability is None else {"link_probability": float(f"{probability:.4g}")}


def entity_record(kb: KnowledgeBase, entity: Entity, most: int | None = None) -> dict[str, Any]:
    """Return all that is known of an entity.

    Args:
        kb: knowledge base of the entity.
        entity: entity to describe.
        most: largest number of surfaces, of facts outward, and of facts inward; None for all.
    """
    outward, inward = neighbor_keys(kb, entity, most=most)
    surfaces = (
        [each.to_dict() for each in islice(kb.surfaces_of(entity), most)] if kb.store.has_names else None
    )
    names = {"ids": kb.identifiers(entity), "url": kb.url(entity)}
    return {
        **entity.to_dict(),
        **link_probability(kb, entity.label),
        **({} if surfaces is None else {"surfaces": surfaces}),
        **{name: value for name, value in names.items() if value},
        "kb": kb.name,
        "out": neighbor_records(kb, outward),
        "in": neighbor_records(kb, inward),
    }


def neighbor_keys(
    kb: KnowledgeBase, entity: Entity, relation: str | None = None, most: int | None = None
) -> tuple[KeysByRelation, KeysByRelation]:
    """Return the objects of the entity's facts, and the subjects of facts on it by relations without inverse.

    A relation with an inverse is listed from the entity's side only: that it has
    the hypernym A implies that A has it as a hyponym.

    Args:
        kb: knowledge base of the entity.
        entity: entity whose facts are listed.
        relation: name of the only relation; None for any.
        most: largest number of facts in each direction; None for all.
    """
    outward = ((fact.relation, fact.object) for fact in kb.match(subject=entity, relation=relation))
    facts = Facts(kb.store, kb.name).without_inverse(entity.id, relation)
    inward = ((fact.relation, fact.subject) for fact in facts)
    return _by_relation(islice(outward, most)), _by_relation(islice(inward, most))


def neighbor_records(kb: KnowledgeBase, keys: Mapping[str, Sequence[str]]) -> dict[str, list[dict[str, str]]]:
    """Return neighbours by relation, each with its key and label."""
    return {
        relation: [{"key": key, "label": kb[key].label} for key in of_relation]
        for relation, of_relation in keys.items()
    }


def _by_relation(facts: Iterable[tuple[str, str]]) -> KeysByRelation:
    keys: KeysByRelation = {}
    for relation, key in facts:
        keys.setdefault(relation, []).append(key)
    return keys


def _float32(value: float) -> float:
    """Return a number with as many digits as a float32 has."""
    return float(f"{value:.7g}")
