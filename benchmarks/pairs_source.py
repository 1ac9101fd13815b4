"""A synthetic source: pairs of a surface and an entity, both drawn from power laws.

Surfaces are made of one to three words of a vocabulary of syllables; a surface means up to some dozens of
entities, most often the first of them. All is a function of the seed.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np

from kgkit.building import Aliases, Builder, Entity, Files, Record, SourceInfo, Step

ROWS_A_PART = 1_000_000
DRAWN_AT_ONCE = 50_000
ENTITIES_A_PAIR = 1 / 20
SURFACES_A_PAIR = 1 / 4
MEANINGS = 40


@cache
def words() -> list[str]:
    """Return the vocabulary: 54,000 words of two to three syllables."""
    syllables = [first + vowel for first, vowel in product("bdfgklmnprstvz", "aeiou")]
    pairs = ["".join(pair) for pair in product(syllables, syllables)]
    return pairs + [f"{word}{syllables[index % len(syllables)]}n" for index, word in enumerate(pairs * 10)]


def surface(number: int) -> str:
    """Return the surface of a rank: the most frequent ones are single words."""
    vocabulary = words()
    size = len(vocabulary)
    if number < size // 2:
        return vocabulary[number]
    first, second = vocabulary[number % size], vocabulary[number * 7919 % 9973]
    return f"{first} {second}" if number % 3 else f"{first} {second} {vocabulary[number * 31 % 997]}"


def ranks(random: np.random.Generator, size: int, most: int, power: float) -> np.ndarray:
    """Return *size* ranks from 0 to *most* - 1, the lower the likelier."""
    return np.minimum((most * random.random(size) ** power).astype(np.int64), most - 1)


class PairsBuilder(Builder):
    """Reads nothing: the name of the source says how many pairs it has, `pairs-60000000`."""

    engine: ClassVar[str] = "local"
    unit: ClassVar[str] = "pairs"

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="synthetic pairs", version=source.name), [])

    def parts(self, source: Path) -> Sequence[str]:
        return [str(number) for number in range(-(-pairs_of(source) // ROWS_A_PART))]

    def observe(self, source: Path, part: str) -> Iterator[Record | Step]:
        pairs, number = pairs_of(source), int(part)
        entities = int(pairs * ENTITIES_A_PAIR)
        parts = -(-pairs // ROWS_A_PART)
        own = range(number * entities // parts, (number + 1) * entities // parts)
        for entity in own:
            yield Entity(f"E{entity}", f"entity {entity}")
        rows, random = 0, np.random.default_rng(number)
        while rows < ROWS_A_PART:
            counts = drawn(random, pairs, entities)
            rows += len(counts)
            yield Aliases(counts)
            yield Step(len(counts))


def drawn(random: np.random.Generator, pairs: int, entities: int) -> dict[tuple[str, str], float]:
    """Return some of the pairs of a source of so many."""
    names = ranks(random, DRAWN_AT_ONCE, int(pairs * SURFACES_A_PAIR), 3)
    meanings = (names * 40_503 + ranks(random, DRAWN_AT_ONCE, MEANINGS, 4) * 2_654_435_761) % entities
    counts: dict[tuple[str, str], float] = {}
    for name, entity in zip(names.tolist(), meanings.tolist(), strict=True):
        pair = surface(name), f"E{entity}"
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def pairs_of(source: Path) -> int:
    """Return how many pairs a source has."""
    return int(source.name.rpartition("-")[2])
