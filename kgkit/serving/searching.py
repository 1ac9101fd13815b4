"""Search for entities in bounded time: by exact match, by prefix, then by the index of similar surfaces.

`KnowledgeBase.search` may scan all of a knowledge base; this reads a bounded number of its rows.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from kgkit.errors import NotThere, UnknownName
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.store import codec
from kgkit.text import fold
from kgkit.types import Entity

_MAX_ROWS: Final = 1_000  # keys and surfaces that begin with a text, which are read
_MAX_SCANNED: Final = 50_000  # entities and surfaces of a knowledge base that is read for parts of labels
_SIMILAR: Final = 100
_LEAST_SIMILARITY: Final = 0.5


class SearchHit(NamedTuple):
    """An entity that a text finds, and why.

    Attributes:
        entity: the entity.
        field: field that matches: `key`, `surface` or `label`; `text` where vectors were compared.
        text: matching key, folded surface or label; empty where vectors were compared.
        match: `exact`, `prefix`, `similar`, `part` or `near`.
        score: prior of the entity given the surface; 1 of a key, 0 of a part; the cosine where vectors were
            compared.
    """

    entity: Entity
    field: str
    text: str
    match: str
    score: float


_Match = tuple[int, str, str, str, float]


def search_entities(kb: KnowledgeBase, text: str, k: int, kind: str | None = None) -> list[SearchHit]:
    """Return the entities that match a text, each once.

    Exact matches come first, of keys and of surfaces; then keys and surfaces that begin with the text, then
    similar surfaces; within each group the highest prior first. In a small knowledge base, surfaces and
    labels that contain the text follow.

    Args:
        kb: knowledge base.
        text: text to search for.
        k: largest number of entities.
        kind: kind of the only entities.

    Raises:
        UnknownName: if there is no such kind.
    """
    if kind is not None and kind not in kb.manifest.counts.entities:
        raise UnknownName(f"kind of entity in {kb.name!r}", kind, sorted(kb.manifest.counts.entities))
    hits: dict[int, SearchHit] = {}
    for number, field, matched, match, score in _matches(kb, text):
        if number not in hits:
            pause()
            entity = kb[number]
            if kind in (None, entity.kind):
                hits[number] = SearchHit(entity, field, matched, match, score)
                if len(hits) == k:
                    return list(hits.values())
    if max(kb.manifest.aliases, len(kb)) < _MAX_SCANNED:
        for result in kb.search(text, k, kind=kind, scan=True):
            hit = SearchHit(result.entity, result.field, result.text, result.match, 0.0)
            hits.setdefault(result.entity.id, hit)
    return list(hits.values())[:k]


def _matches(kb: KnowledgeBase, text: str) -> Iterator[_Match]:
    folded = fold(text)
    keys = list(dict.fromkeys((text, text.replace(" ", "_"))))
    for key in keys:
        if (number := kb.store.id_of(key)) is not None:
            yield number, "key", key, "exact", 1.0
    yield from _of_surface(kb, folded, "exact", text)
    prefixed = [*_keys_with_prefix(kb, keys), *_surfaces_with_prefix(kb, folded)]
    yield from sorted(prefixed, key=lambda match: (-match[4], len(match[2]), match[2]))
    try:
        similar = kb.similar_surfaces(text, _SIMILAR)
    except NotThere:  # a build without the index
        return
    for surface in similar:
        if surface.similarity < _LEAST_SIMILARITY:
            return
        yield from _of_surface(kb, surface.surface, "similar")


def _keys_with_prefix(kb: KnowledgeBase, keys: list[str]) -> Iterator[_Match]:
    for key in keys:
        with kb.store.reading():
            rows = list(islice(kb.store.items("keys", codec.bounded_key(key)), _MAX_ROWS))
        for raw, value in rows:
            if not raw.startswith(codec.DIGEST):
                yield int.from_bytes(value, "little"), "key", raw.decode(), "prefix", 1.0


def _surfaces_with_prefix(kb: KnowledgeBase, folded: str) -> Iterator[_Match]:
    if folded:
        with kb.store.reading():
            rows = list(islice(kb.store.items("aliases", codec.bounded_key(folded)), _MAX_ROWS))
        for raw, _ in rows:
            if not raw.startswith(codec.DIGEST):
                yield from _of_surface(kb, raw.decode(), "prefix")


def _of_surface(kb: KnowledgeBase, surface: str, match: str, text: str | None = None) -> Iterator[_Match]:
    candidates = kb.candidates(surface if text is None else text)
    for number, prior in zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True):
        yield number, "surface", surface, match, prior
