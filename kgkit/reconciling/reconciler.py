"""The entity of a name in a table, through the forms in which people write names.

A name that is a surface as it stands, but for case and white space, means what that surface can mean; one
that is the key of an entity and none of its names means that entity. Any other name is compared with the
surfaces that are most similar to it (`kgkit.kb.names`), which gives the odds that it stands for each:

    weight(entity) = max over its surfaces of odds(surface | name) · p(entity | surface)
    score(entity)  = 0.98 · weight(entity) / (1 + Σ weights)

So a name of which several entities have a surface that is as similar is sure of none of them, and no name
that is no surface scores above one that is. Words that only the name has, as `Texas` in `Paris, Texas`, are
sought in the records of the entities: where a description, type, attribute or neighbour has them, the
surface is compared without them, and stands for these entities alone.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import UnknownName, UsageError, abbreviate, did_you_mean
from kgkit.kb import KnowledgeBase
from kgkit.kb.names import is_short_for, log_odds
from kgkit.kb.search import MAX_SCANNED
from kgkit.kb.similar import RankedSurface
from kgkit.kb.surfaces import MAX_NAME
from kgkit.pauses import pause
from kgkit.ranges import check_range
from kgkit.store.trigrams import plain_form
from kgkit.types import Candidates, Entity

__all__ = ["EntityScore", "NameMatch", "ReconcileConfig", "Reconciler"]

EXACT: Final = 0.98
"""Probability that a name which is a surface as it stands means what the surface can mean."""

_MAX_LOG_ODDS: Final = 20.0
_SURFACES: Final = 20
_SURFACES_OF_KIND: Final = 100
_MAX_EXPLAINED: Final = 100  # entities of a surface whose records are read for words that qualify a name
_MAX_NEIGHBOURS: Final = 20
_MAX_TEXTS, _MAX_LENGTH = 100, 2_000  # texts of a record that are read, and characters of each
_NAME: Final = re.compile(r"[A-Z]\w+(?:[ -][A-Z]\w+)+")  # words of which the first letters may qualify a name
_CACHE_BYTES: Final = 8_000_000
_CACHE_SIZE: Final = 20_000  # entities of which is known whether they are of the kind
_MAX_VALUES: Final = 10_000  # of an attribute, among which one that was meant is looked for
_LISTED: Final = 10  # types, and attributes, that an error names


class EntityScore(NamedTuple):
    """An entity that a name may mean.

    Attributes:
        key: its key.
        label: its label.
        score: probability that the name means it, in [0, 1].
    """

    key: str
    label: str
    score: float


class NameMatch(NamedTuple):
    """What a name means.

    Attributes:
        name: the name; None for an empty cell.
        candidates: the best entities, best score first; none where nothing is similar.
        match: whether the score of the first is at least the threshold.
    """

    name: str | None
    candidates: tuple[EntityScore, ...]
    match: bool

    @property
    def key(self) -> str | None:
        """The key of the best entity, None if there is none."""
        return self.candidates[0].key if self.candidates else None

    @property
    def label(self) -> str | None:
        """The label of the best entity, None if there is none."""
        return self.candidates[0].label if self.candidates else None

    @property
    def score(self) -> float:
        """The score of the best entity, 0 if there is none."""
        return self.candidates[0].score if self.candidates else 0.0


@dataclass(frozen=True, kw_only=True)
class ReconcileConfig:
    """Settings of a reconciliation.

    Attributes:
        kind: kind of the only entities (`synset`), one of their types, or `ATTRIBUTE=VALUE`; None for any.
        top: number of candidates of a name.
        threshold: least score of a match, in [0, 1].

    Raises:
        UsageError: if one is out of range.
    """

    kind: str | None = None
    top: int = 1
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "top", least=1)
        check_range(self, "threshold", least=0, most=1)
        if self.kind is not None and not self.kind.strip():
            raise UsageError("kind is empty; it is a kind, a type, or ATTRIBUTE=VALUE")
        if self.kind is not None and len(self.kind) > MAX_NAME:
            raise UsageError(f"kind has {len(self.kind):,} characters; it has {MAX_NAME:,} at most")


class Reconciler:
    """Says of names which entities of a knowledge base they mean.

    What it has answered and read it remembers, in up to 16 MB. A name of more than 1,000 characters is
    looked up as it stands, and not compared with similar ones.

    Args:
        kb: knowledge base.
        config: settings.
        check_kind: whether the entities are read for one of the kind, if the manifest does not have it.

    Raises:
        UsageError: if *kb* is the name of a knowledge base.
        NotThere: if the build has no index of its surfaces; names the command that adds it.
        UnknownName: if no entity is of that kind, and it is checked.

    Examples:
        >>> Reconciler(kgkit.open_kb("wordnet"))("hipopotamus").key
        'hippopotamus.n.01'
    """

    def __init__(
        self, kb: KnowledgeBase, config: ReconcileConfig | None = None, *, check_kind: bool = True
    ) -> None:
        handle: object = kb
        if isinstance(handle, str):
            raise UsageError(
                f"a Reconciler takes an open knowledge base: kgkit.open_kb({handle!r}) opens one by its name"
            )
        self.kb, self.config = kb, config or ReconcileConfig()
        self._names = kb.similar_names()
        self._filter = None if self.config.kind is None else _KindFilter(kb, self.config.kind)
        if self._filter is not None and check_kind:
            self._filter.check()
        self._cache = BoundedCache[str, tuple[EntityScore, ...]](_CACHE_BYTES)
        self._words = BoundedCache[int, frozenset[str]](_CACHE_BYTES)

    def __call__(self, name: str | None) -> NameMatch:
        """Return what a name means.

        Raises:
            TypeError: if it is neither a string nor None.
        """
        if name is None:
            return NameMatch(None, (), False)
        if not isinstance(name, str):
            raise TypeError(f"a name is a str, not {type(name).__name__}")
        candidates = self._cache.get(name)
        if candidates is None:
            candidates = self._cache.keep(name, self._candidates(name))
        is_match = bool(candidates) and candidates[0].score >= self.config.threshold
        return NameMatch(name, candidates, is_match)

    def pipe(self, names: Iterable[str | None]) -> Iterator[NameMatch]:
        """Yield what each of many names means, in order."""
        for name in names:
            pause()
            yield self(name)

    def _candidates(self, name: str) -> tuple[EntityScore, ...]:
        folded = self.kb.store.folding.fold(name)
        if not folded:
            return ()
        scores = self._scores_of_surface(name)
        if not scores and (number := self._entity_of_key(name)) is not None:
            scores = {number: 1.0}
        if not scores and len(name) <= MAX_NAME:
            scores = self._scores_of_similar(folded)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: self.config.top]
        entities = self.kb.store.entities([number for number, _ in best])
        return tuple(
            EntityScore(entity.key, entity.label, score)
            for entity, (_, score) in zip(entities, best, strict=True)
        )

    def _entity_of_key(self, name: str) -> int | None:
        """Return the id of the entity of the kind whose key a name is."""
        number = self.kb.store.id_of(name.strip())
        return number if number is None or self._filter is None or self._filter.accepts(number) else None

    def _scores_of_surface(self, name: str) -> dict[int, float]:
        """Return the scores of what a name means as it stands; none if it is no surface."""
        shares = self._shares(self.kb.store.candidates(name, prefer_case=True))
        total = sum(shares.values())
        # Of the kind that is asked for, the name may mean little: then the others are as good as none.
        factor = EXACT / (EXACT * total + 1 - EXACT) if total else 0.0
        return {number: factor * share for number, share in shares.items()}

    def _scores_of_similar(self, folded: str) -> dict[int, float]:
        count = _SURFACES if self._filter is None else _SURFACES_OF_KIND
        with self.kb.store.reading():
            proposed = self._names.proposed(folded)
        similar = self._names.rank(folded, proposed)[:count]
        weights: dict[int, float] = {}
        for surface in similar:
            shares = self._shares(self.kb.store.candidates(surface.surface, prefer_case=False))
            odds = math.exp(min(surface.log_odds, _MAX_LOG_ODDS))
            if shares and (explained := self._explained(folded, surface, shares)):
                odds, shares = explained
            for number, share in shares.items():
                weights[number] = max(weights.get(number, 0.0), odds * share)
        total = 1 + sum(weights.values())
        return {number: EXACT * weight / total for number, weight in weights.items()}

    def _explained(
        self, folded: str, surface: RankedSurface, shares: Mapping[int, float]
    ) -> tuple[float, dict[int, float]] | None:
        """Return odds and shares of the entities whose records have most of the words that qualify a name.

        Without these words the name is the likelier to be the surface. None if no record has any of them.
        """
        if surface.comparison is None or not surface.comparison.unexplained:
            return None

        def odds_without(words: frozenset[str]) -> float:
            comparison = self._names.compare(folded, surface.surface, words)
            return -math.inf if comparison is None else log_odds(comparison.features)

        words = frozenset(surface.comparison.unexplained)
        if odds_without(words) < 0:
            return None
        pause()
        numbers = sorted(shares, key=lambda number: -shares[number])[:_MAX_EXPLAINED]
        found = {number: self._known_words(number, words) for number in numbers}
        most = max(found.values(), key=len)
        if not most:
            return None
        explained = {number: shares[number] for number, known in found.items() if known == most}
        total = sum(explained.values())
        odds = math.exp(min(odds_without(most), _MAX_LOG_ODDS))
        return odds, {number: share / total for number, share in explained.items()}

    def _known_words(self, number: int, words: frozenset[str]) -> frozenset[str]:
        """Return those of some words that an entity's description, types, attributes or neighbours have."""
        known = self._words.get(number)
        if known is None:
            known = self._words.keep(number, self._words_of(number))
        return frozenset(
            word for word in words if word in known or any(is_short_for(word, each) for each in known)
        )

    def _words_of(self, number: int) -> frozenset[str]:
        """Return the words of an entity's record, and the first letters of the names in it."""
        kb, entity = self.kb, self.kb[number]
        texts = [entity.description, entity.kind, *entity.types]
        texts += [kb[each].label for each in kb.neighbors(number)[:_MAX_NEIGHBOURS].tolist()]
        texts += [str(value) for value in islice(entity.attributes.values(), _MAX_TEXTS)]
        texts = [text[:_MAX_LENGTH] for text in texts[:_MAX_TEXTS]]
        fold = kb.store.folding.fold
        words = {word for text in texts for word in plain_form(fold(text)).split()}
        names = [name for text in texts for name in _NAME.findall(text)]
        return frozenset(words | {"".join(re.findall(r"\b\w", name)).lower() for name in names})

    def _shares(self, candidates: Candidates | None) -> dict[int, float]:
        """Return p(entity | surface) of the entities of the kind; none for a surface that means nothing."""
        shares: dict[int, float] = {}
        if candidates is None:
            return shares
        for number, prior in zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True):
            if self._filter is None or self._filter.accepts(number):
                shares[number] = shares.get(number, 0.0) + prior
        return shares


class _KindFilter:
    """Says which entities are of a kind, have a type, or have a value of an attribute."""

    def __init__(self, kb: KnowledgeBase, kind: str) -> None:
        self._kb, self._kind = kb, kind
        self._attribute, _, self._value = kind.partition("=")
        self._accepted: dict[int, bool] = {}

    def check(self) -> None:
        """Refuse a kind that no entity has; a large knowledge base is not read for one.

        Raises:
            UnknownName: if there is no such entity.
        """
        kb, kind = self._kb, self._kind
        kinds = sorted(kb.manifest.counts.entities)
        if kind in kinds or len(kb) >= MAX_SCANNED:
            return
        types: set[str] = set()
        attributes: set[str] = set()
        values: set[str] = set()
        for entity in kb:
            if self._fits(entity):
                return
            types.update(entity.types)
            attributes.update(entity.attributes)
            if len(values) < _MAX_VALUES:
                values.update(self._values(entity))
        raise unknown_kind(kb.name, kind, [*kinds, *sorted(types)], attributes, values)

    def accepts(self, number: int) -> bool:
        """Say whether the entity of an id is wanted."""
        accepted = self._accepted.get(number)
        if accepted is None:
            if len(self._accepted) >= _CACHE_SIZE:
                self._accepted.clear()
            accepted = self._accepted[number] = self._fits(self._kb[number])
        return accepted

    def _fits(self, entity: Entity) -> bool:
        if self._kind == entity.kind or self._kind in entity.types:
            return True
        return "=" in self._kind and self._value in self._values(entity)

    def _values(self, entity: Entity) -> list[str]:
        """Return the values of the attribute that an entity has, as texts."""
        value = entity.attributes.get(self._attribute)
        values = value if isinstance(value, list | tuple) else [value]
        return [str(each) for each in values if each is not None]


def unknown_kind(
    kb: str, kind: str, types: Iterable[str], attributes: Iterable[str], values: Iterable[str] = ()
) -> UnknownName:
    """Return the error for a kind that no entity has, with names that there are.

    Args:
        kb: name of the knowledge base.
        kind: kind, type, or `ATTRIBUTE=VALUE`.
        types: kinds of its entities, and types.
        attributes: names of the attributes of its entities.
        values: values of the attribute that *kind* names; empty if none has it.
    """
    attribute = kind.partition("=")[0]
    names = [abbreviate(f"{attribute}={value}") for value in sorted(values)]
    if not names:
        with_attributes = [abbreviate(f"{name}=…") for name in sorted(attributes)]
        names = [*dict.fromkeys(map(abbreviate, types))][:_MAX_VALUES]
        names = [*names[:_LISTED], *with_attributes[:_LISTED], *names[_LISTED:]]
    listed = ", ".join(names[: 2 * _LISTED]) + (", …" if len(names) > 2 * _LISTED else "")
    hint = f"there are: {listed or 'none'}{did_you_mean(kind, names)}"
    return UnknownName(f"kind of entity, type or ATTRIBUTE=VALUE in {kb!r}", kind, names, hint=hint)
