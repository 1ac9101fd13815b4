"""Rows of a published build as they are after a change: what additions and edits share."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kgkit.building import aliases
from kgkit.building.grouping import MAX_CLASSES, checked_counts
from kgkit.building.numbers import NONE, numbering
from kgkit.store import Manifest, StoreReader, codec
from kgkit.store.writer import Item
from kgkit.types import NO_SENSE

__all__ = ["AliasPair", "class_rows", "classes_of", "grouped_aliases", "rows_of_surfaces", "sum_counts"]

AliasPair = tuple[str, int, int, float]
"""A surface as it is spelled, an entity that it can mean, its sense or `NO_SENSE`, and a count."""


def grouped_aliases(
    pairs: Sequence[AliasPair], manifest: Manifest, class_of: NDArray[np.uint8]
) -> tuple[int, list[Item]]:
    """Return how many rows *pairs* make, and the items of `aliases`.

    Args:
        pairs: all that the surfaces among them can mean.
        manifest: manifest of the build.
        class_of: (N,) classes of the entities.
    """
    numbers = numbering()
    surface = np.array([numbers[pair[0]] for pair in pairs], np.int64)
    entity = np.array([pair[1] for pair in pairs], np.int64)
    sense = np.array([NONE if pair[2] == NO_SENSE else pair[2] for pair in pairs], np.int64)
    counts = checked_counts(np.array([pair[3] for pair in pairs]), lambda index: pairs[index][0])
    names = aliases.Names([*numbers], manifest.folding)
    columns = aliases.Columns(surface, entity, sense, counts)
    rows, spellings = aliases.add_up(columns, names, manifest.smoothing)
    items = aliases.alias_rows(rows, spellings, names, aliases.class_bits(class_of))
    return len(rows.name), list(items)


def rows_of_surfaces(
    store: StoreReader, surfaces: Sequence[str], forms: Iterable[str] = ()
) -> dict[str, list[Item]]:
    """Return the rows of `starts` and `variants` that change: what they have, and what is added.

    Args:
        store: build before the change.
        surfaces: new surfaces, as they are spelled.
        forms: new irregular forms.
    """
    variants = aliases.variants(surfaces, {}, store.folding)
    starts = aliases.starts([*surfaces, *forms, *variants], {}, store.folding)
    for first, after in starts.items():
        for second, lengths in (store.starts(first) or {}).items():
            after[second] = after.get(second, 0) | lengths
    for variant, keys in variants.items():
        keys.update(store.variant_keys(variant))
    return {"starts": aliases.start_rows(starts), "variants": aliases.variant_rows(variants)}


def class_rows(
    store: StoreReader, added: Sequence[str] = (), changed: Mapping[int, str] | None = None
) -> list[Item]:
    """Return the parts of speech as the table `meta` has them.

    Args:
        store: build before the change.
        added: parts of speech of new entities, in the order of their ids.
        changed: new part of speech of entities that are there, by id.
    """
    changed = changed or {}
    names = dict.fromkeys(["", *store.classes, *added, *changed.values()])
    numbers = {name: number if number <= MAX_CLASSES else 0 for number, name in enumerate(names)}
    class_of = np.append(store.class_of_entity(), np.array([numbers[pos] for pos in added], np.uint8))
    class_of[[*changed]] = [numbers[pos] for pos in changed.values()]
    return [
        (b"class_of_entity", class_of.tobytes()),
        (b"classes", codec.encode([*names][1 : MAX_CLASSES + 1])),
    ]


def classes_of(rows: Iterable[Item]) -> NDArray[np.uint8]:
    """Return (N,) the classes of the entities that *rows* of `class_rows` have."""
    return np.frombuffer(dict(rows)[b"class_of_entity"], np.uint8)


def sum_counts(stored: Mapping[str, int], added: Mapping[str, int]) -> dict[str, int]:
    """Return both added up, names in the order of *stored*, then of *added*."""
    return {name: stored.get(name, 0) + added.get(name, 0) for name in {**stored, **added}}
