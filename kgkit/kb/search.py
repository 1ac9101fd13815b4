"""Entities by a text: their keys, surfaces and labels, exactly, by the beginning, by likeness, or by a part.

Parts are found by the index of a build's surfaces; without one, all surfaces are read.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from kgkit.errors import UnknownName, UsageError
from kgkit.pauses import pause
from kgkit.store import codec
from kgkit.types import Candidates, Entity

if TYPE_CHECKING:
    from kgkit.kb.handle import KnowledgeBase

__all__ = ["SearchResult", "key_hint", "search", "search_result", "suggest_keys"]

MAX_SCANNED: Final = 1_000_000
"""Of so many surfaces or entities, not all are read for a guess."""

_MAX_ROWS: Final = 1_000  # keys and surfaces that begin with a text, which are read
_MAX_PARTS: Final = 5_000  # surfaces, and labels, that contain a text, which are read, unless more are wanted
_PAUSED: Final = 1_000  # surfaces
_SIMILAR: Final = 100
_LEAST_SIMILARITY: Final = 0.05
_SUGGESTED: Final = 5
_TYPED: Final = "abcdefghijklmnopqrstuvwxyz0123456789_"
_LONGEST_TYPED: Final = 64  # letters: all that one error can make of a longer key takes long to look up
_PIECES: Final = re.compile(r"[.%#:(/]")

Field = Literal["key", "surface", "label", "text"]
How = Literal["exact", "prefix", "similar", "part", "near"]
_Match = tuple[int, Field, str, How, float]


class SearchResult(NamedTuple):
    """An entity, and why it was an answer.

    Attributes:
        entity: the entity.
        field: `key`, `surface` or `label`: what the text is, begins, is like or is a part of; `text` where
            vectors of texts were compared.
        text: that key, folded surface or label; empty where vectors were compared.
        match: `exact`, `prefix`, `similar` or `part`; `near` where vectors were compared.
        ids: identifiers of the entity elsewhere, as `KnowledgeBase.identifiers` gives them.
        url: its address on the web; empty if it has none.
        score: prior of the entity given the surface; 1 of a key, 0 of a part; the cosine where vectors were
            compared.
    """

    entity: Entity
    field: Field
    text: str
    match: How
    ids: Mapping[str, Any]
    url: str
    score: float = 0.0

    @property
    def key(self) -> str:
        """The key of the entity."""
        return self.entity.key

    @property
    def label(self) -> str:
        """The label of the entity."""
        return self.entity.label


def search_result(
    kb: "KnowledgeBase", entity: Entity, field: Field, text: str, how: How, score: float
) -> SearchResult:
    """Return an entity that was found, with its identifiers elsewhere."""
    return SearchResult(entity, field, text, how, kb.identifiers(entity.id), kb.url(entity.id) or "", score)


def search(kb: "KnowledgeBase", text: str, k: int = 10, kind: str | None = None) -> list[SearchResult]:
    """Return the entities that a text finds, as `KnowledgeBase.search` promises."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not {type(text).__name__}")
    if not text.strip():
        raise UsageError("there is nothing to search for: the text is empty")
    if k < 1:
        raise UsageError(f"k is {k}; it is at least 1")
    if kind is not None and kind not in kb.manifest.counts.entities:
        raise UnknownName(f"kind of entity in {kb.name!r}", kind, sorted(kb.manifest.counts.entities))
    results: dict[int, SearchResult] = {}
    with closing(_matches(kb, text, max(k, _MAX_PARTS))) as matches:
        for number, field, matched, how, score in matches:
            if number not in results:
                pause()
                entity = kb[number]
                if kind in (None, entity.kind):
                    results[number] = search_result(kb, entity, field, matched, how, score)
                    if len(results) == k:
                        break
    return list(results.values())


def _matches(kb: "KnowledgeBase", text: str, most: int) -> Generator[_Match, None, None]:
    """Yield what a text finds, best first; an entity may come several times."""
    store, folded = kb.store, kb.store.folding.fold(text)
    keys = list(dict.fromkeys((text, text.replace(" ", "_"))))
    for key in keys:
        if (number := store.id_of(key)) is not None:
            yield number, "key", key, "exact", 1.0
    candidates = kb.candidates(text)
    for number, prior in zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True):
        yield number, "surface", folded, "exact", prior
    beginnings = [*_keys_with_prefix(kb, keys), *_surfaces_with_prefix(kb, folded)]
    yield from sorted(beginnings, key=lambda match: (-match[4], len(match[2]), match[2]))
    if store.trigrams is not None:
        for surface in kb.similar_surfaces(text, _SIMILAR):
            if surface.similarity >= _LEAST_SIMILARITY:
                yield from _of_surface(kb, surface.surface, "similar")
    if part := folded.encode("utf-8", "surrogatepass"):
        with store.reading():
            for name in islice(_surfaces_with_part(kb, folded, part), most):
                yield from ((*match[:4], 0.0) for match in _of_surface(kb, name, "part"))
            for number in islice(store.uncontained_labels().containing(part), most):
                yield number, "label", store.entities([number])[0].label, "part", 0.0


def _surfaces_with_part(kb: "KnowledgeBase", folded: str, part: bytes) -> Iterator[str]:
    """Yield the surfaces that contain a folded text, of those that are keys, in alphabetical order."""
    if (index := kb.store.trigrams) is not None:
        yield from index.containing(folded, part)
        return
    for count, (raw, _) in enumerate(kb.store.items("aliases")):
        if not count % _PAUSED:
            pause()
        if part in raw and not raw.startswith(codec.DIGEST):
            yield raw.decode()


def _keys_with_prefix(kb: "KnowledgeBase", keys: list[str]) -> Iterator[_Match]:
    for key in keys:
        with kb.store.reading():
            rows = list(islice(kb.store.items("keys", codec.bounded_key(key)), _MAX_ROWS))
        for raw, value in rows:
            if not raw.startswith(codec.DIGEST):
                yield int.from_bytes(value, "little"), "key", raw.decode(), "prefix", 1.0


def _surfaces_with_prefix(kb: "KnowledgeBase", folded: str) -> Iterator[_Match]:
    if folded:
        with kb.store.reading():
            rows = list(islice(kb.store.items("aliases", codec.bounded_key(folded)), _MAX_ROWS))
        for raw, _ in rows:
            if not raw.startswith(codec.DIGEST):
                yield from _of_surface(kb, raw.decode(), "prefix")


def _of_surface(kb: "KnowledgeBase", surface: str, how: How) -> Iterator[_Match]:
    candidates = kb.candidates(surface)
    for number, prior in zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True):
        yield number, "surface", surface, how, prior


def suggest_keys(kb: "KnowledgeBase", key: str) -> list[str]:
    """Return keys that may have been meant by one that *kb* does not have.

    They are those of what it stands for as a word, or as the word in a key; else the keys that differ by one
    typing error; else those of the most similar surface.
    """
    word = _PIECES.split(key.replace("_", " "))[0] or key
    for text in (key, word):
        candidates = kb.candidates(text, k=_SUGGESTED)
        if len(candidates):
            return _keys_of(kb, candidates)
    with kb.store.reading():
        similar = [edited for edited in _typing_errors(key) if kb.store.id_of(edited) is not None]
    if similar:
        return list(dict.fromkeys(similar))
    fuzzy = kb.store.trigrams is not None or kb.manifest.aliases < MAX_SCANNED
    return _keys_of(kb, kb.candidates(word, k=_SUGGESTED, fuzzy=fuzzy))


def _keys_of(kb: "KnowledgeBase", candidates: Candidates) -> list[str]:
    return list(dict.fromkeys(each.entity.key for each in kb.decode(candidates)))


def _typing_errors(key: str) -> Iterator[str]:
    """Yield what *key* is without one error: two letters in the wrong order, one extra, wrong or missing."""
    if len(key) > _LONGEST_TYPED:
        return
    cuts = range(len(key))
    for at in cuts[1:]:
        yield key[: at - 1] + key[at] + key[at - 1] + key[at + 1 :]
    for at in cuts:
        yield key[:at] + key[at + 1 :]
    for at in cuts:
        yield from (key[:at] + letter + key[at + 1 :] for letter in _TYPED)
    for at in range(len(key) + 1):
        yield from (key[:at] + letter + key[at:] for letter in _TYPED)


SEARCH_HINT: Final = "kb.search(TEXT) searches keys and surfaces"
"""What to do about a key that nothing resembles."""


def key_hint(kb: "KnowledgeBase", entity: object) -> str:
    """Return what to say of a key or id that *kb* does not have."""
    if kb.store.is_retired(entity):
        return "it was retired by `kgkit kb edit`, which `kgkit kb publish` takes back"
    if isinstance(entity, str):
        keys = list(islice(suggest_keys(kb, entity), _SUGGESTED))
        return f"did you mean {', '.join(keys)}?" if keys else SEARCH_HINT
    return f"ids run from 0 to {kb.id_count - 1:,}"
