"""Vectors of other entities of the same type: the control that differs from a head in its knowledge alone.

    python -m benchmarks.other_vectors --home HOME wordnet/text
    python -m benchmarks.other_vectors --home HOME lama/text --facts WORK_DIR/lama/facts.jsonl

Random vectors, zeros and unmapped vectors are foreign to an encoder, so that a head which is better than with
these may only read vectors of the right kind. Here each entity gets the vector of another one of its type, by
a fixed permutation: all that differs is whose vector it is. They are called KB/NAME-others, and have the maps
that KB/NAME has by then (`kgkit align`), as these are of the space. E-BERT and KnowBert read them like any
others: `kgkit train ebert|knowbert --vectors KB/NAME-others`, `python -m benchmarks.cloze --vectors
NAME-others`.

The type of an entity is its kind, part of speech, first type and, in WordNet, lexicographer's file. With
`--facts` it is the first relation that the facts of LAMA have of it instead, and the vectors are called
KB/NAME-others-of-relation: the vector then is of another subject of the same question, whose description says
as well what sort of answer is due.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import kgkit
from kgkit.home import Home
from kgkit.types import Entity
from kgkit.vectors import Work

OTHERS: Final = "-others"
OF_RELATION: Final = "-others-of-relation"


def type_of(entity: Entity) -> Hashable:
    """Return what is the same in entities that exchange vectors."""
    return entity.kind, entity.pos, entity.types[:1], entity.attributes.get("lexfile")


def relations_by_key(facts: Path) -> dict[str, str]:
    """Return the first relation that facts, as `benchmarks.lama_kb` writes them, have of each subject."""
    relations: dict[str, str] = {}
    with facts.open(encoding="utf-8") as lines:
        for fact in map(json.loads, lines):
            relations.setdefault(fact["subject_key"], fact["relation"])
    return relations


def others_within(groups: Sequence[Hashable], seed: int = 0) -> NDArray[np.int64]:
    """Return a permutation (N,) within groups that leaves nothing in its place.

    What is alone in its group is put into the largest one.

    Args:
        groups: the group of each of N things.
        seed: seed of the permutation.

    Raises:
        ValueError: if there are fewer than two things: one has no other.
    """
    if len(groups) < 2:
        raise ValueError(f"there are {len(groups)} vectors; expected two or more, to exchange them")
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        members[group].append(number)
    cycles = sorted(members.values(), key=len, reverse=True)
    largest = [number for cycle in cycles if cycle is cycles[0] or len(cycle) == 1 for number in cycle]
    generator = np.random.default_rng(seed)
    others = np.arange(len(groups))
    for cycle in [largest, *(cycle for cycle in cycles[1:] if len(cycle) > 1)]:
        order = generator.permutation(cycle)
        others[order] = np.roll(order, 1)
    return others


def write_other_vectors(
    home: Home, kb_name: str, vectors_name: str, facts: Path | None = None, seed: int = 0
) -> tuple[str, int]:
    """Write vectors in which each entity has that of another one; return their name and the number of them.

    Args:
        home: home of the knowledge base.
        kb_name: knowledge base.
        vectors_name: its vectors, whose maps are kept.
        facts: facts of LAMA, whose relations are the types; None: the types are those of the entities.
        seed: seed of the permutation.
    """
    name = f"{vectors_name}{OTHERS if facts is None else OF_RELATION}"
    relations = {} if facts is None else relations_by_key(facts)
    with kgkit.open_kb(kb_name, home=home.path) as kb:
        vectors = kb.vectors(vectors_name)
        rows = np.array(vectors.matrix)  # (R, D)
        with_vector = np.asarray(rows.any(1))
        entities = [entity for entity in kb if entity.id < len(rows) and with_vector[entity.id]]
        groups = [type_of(entity) if facts is None else relations.get(entity.key) for entity in entities]
        ids = np.array([entity.id for entity in entities])
        rows[ids] = rows[ids[others_within(groups, seed)]]
        settings = {**vectors.manifest.config, "others": {"of": vectors.manifest.version, "seed": seed}}
        with Work(kb, name, settings, resume=False) as work:
            matrix = work.matrix(*rows.shape)
            matrix[:] = rows
            matrix.flush()  # type: ignore[attr-defined]
            work.publish(vectors.manifest.method, extends=vectors)
    return f"{kb_name}/{name}", len(ids)


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.other_vectors")
    parser.add_argument("vectors", metavar="KB/NAME")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--facts", type=Path, metavar="FILE", help="facts.jsonl of lama_kb")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    kb_name, _, vectors_name = chosen.vectors.partition("/")
    name, count = write_other_vectors(
        Home(chosen.home), kb_name, vectors_name or "text", chosen.facts, chosen.seed
    )
    print(f"{name}: {count:,} entities with the vector of another one")


if __name__ == "__main__":
    main()
