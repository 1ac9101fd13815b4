"""Which entity a name in a table means: names to entities, through typing errors and changed word order.

A name that is a surface as it stands, but for case and white space, means what that surface can mean; one
that is the key of an entity and none of its names means that entity.
Otherwise the surfaces that are most similar to it are weighed:

    p(surface | name) ∝ exp(-4.96 d)        d  edits between the two: (1 - similarity) · length of the longer
    p(none | name)    ∝ exp(-4.96 d₁) · exp(3.86 - 4.81 l + 0.61 l² + 1.42 d₁ + 0.81 d₁² - 0.49 d₁ l)
                                            d₁ those of the most similar; l the logarithm of the name's length
    score(entity)     = Σ p(surface | name) · p(entity | surface)

So a surface that stands alone is surer than one of several that are as similar, and a short name, which is
near some surface by chance, less sure than a long one. The seven numbers are fitted by maximum likelihood on
surfaces of two knowledge bases with none, one and two random edits, of which a quarter were taken out of the
index: names that the knowledge base does not have. `benchmarks/reconcile.py` fits them again, to numbers
that differ somewhat by the names drawn, and measures how well the scores of other surfaces are calibrated.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import UnknownName, UsageError, abbreviate, did_you_mean
from kgkit.kb import KnowledgeBase
from kgkit.kb.search import MAX_SCANNED
from kgkit.kb.similar import SimilarSurface, similar_surfaces
from kgkit.pauses import pause
from kgkit.ranges import check_range
from kgkit.text import fold
from kgkit.types import Candidates, Entity

__all__ = ["EntityScore", "NameMatch", "ReconcileConfig", "Reconciler", "surface_probabilities"]

EXACT: Final = 0.98
"""Probability that a name which is a surface as it stands means what the surface can mean."""

_EDIT: Final = 4.96
_NONE: Final = 3.86, -4.81, 0.61
_NEAREST: Final = 1.42, 0.81, -0.49
_MAX_EDITS: Final = 6.0  # more than these are as improbable
_LENGTHS: Final = 2, 60
_SURFACES: Final = 20
_SURFACES_OF_KIND: Final = 100
_MAX_NAME: Final = 1_000  # characters; index and surfaces have none that is similar to a longer name
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
        if self.kind is not None and len(self.kind) > _MAX_NAME:
            raise UsageError(f"kind has {len(self.kind):,} characters; it has {_MAX_NAME:,} at most")


class Reconciler:
    """Says of names which entities of a knowledge base they mean.

    What it has answered it remembers, in up to 8 MB. A name of more than 1,000 characters is looked up as it
    stands, and not compared with similar ones.

    Args:
        kb: knowledge base.
        config: settings.
        check_kind: whether the entities are read for one of the kind, if the manifest does not have it.

    Raises:
        NotThere: if the build has no index of its surfaces; names the command that adds it.
        UnknownName: if no entity is of that kind, and it is checked.

    Examples:
        >>> Reconciler(kgkit.open_kb("wordnet"))("hipopotamus").key
        'hippopotamus.n.01'
    """

    def __init__(
        self, kb: KnowledgeBase, config: ReconcileConfig | None = None, *, check_kind: bool = True
    ) -> None:
        self.kb, self.config = kb, config or ReconcileConfig()
        self._index = kb.surface_index()
        self._filter = None if self.config.kind is None else _KindFilter(kb, self.config.kind)
        if self._filter is not None and check_kind:
            self._filter.check()
        self._cache = BoundedCache[str, tuple[EntityScore, ...]](_CACHE_BYTES)

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
        folded = fold(name)
        if not folded:
            return ()
        scores = self._scores_of_surface(name)
        if (number := self._entity_of_key(name)) is not None and number not in scores:
            scores = {number: 1.0}
        if not scores and len(name) <= _MAX_NAME:
            scores = self._scores_of_similar(folded)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: self.config.top]
        entities = self.kb.store.entities([number for number, _ in best])
        return tuple(
            EntityScore(entity.key, entity.label, score)
            for entity, (_, score) in zip(entities, best, strict=True)
        )

    def _entity_of_key(self, name: str) -> int | None:
        """Return the id of the entity whose key a name is, if it is none of its labels."""
        number = self.kb.store.id_of(name.strip())
        if number is None or (self._filter is not None and not self._filter.accepts(number)):
            return None
        return None if fold(self.kb[number].label) == fold(name) else number

    def _scores_of_surface(self, name: str) -> dict[int, float]:
        """Return the scores of what a name means as it stands; none if it is no surface."""
        shares = self._shares(self.kb.store.candidates(name, prefer_case=True))
        total = sum(shares.values())
        # Of the kind that is asked for, the name may mean little: then the others are as good as none.
        factor = EXACT / (EXACT * total + 1 - EXACT) if total else 0.0
        return {number: factor * share for number, share in shares.items()}

    def _scores_of_similar(self, folded: str) -> dict[int, float]:
        count = _SURFACES if self._filter is None else _SURFACES_OF_KIND
        surfaces: list[SimilarSurface] = []
        shares: list[dict[int, float]] = []
        with self.kb.store.reading():
            similar = similar_surfaces(self._index, folded, count)
        for surface in similar:
            candidates = self.kb.store.candidates(surface.surface, prefer_case=False)
            if of_surface := self._shares(candidates):
                surfaces.append(surface)
                shares.append(of_surface)
        scores: dict[int, float] = {}
        for probability, of_surface in zip(surface_probabilities(folded, surfaces), shares, strict=True):
            for number, share in of_surface.items():
                scores[number] = scores.get(number, 0.0) + probability * share
        return scores

    def _shares(self, candidates: Candidates | None) -> dict[int, float]:
        """Return p(entity | surface) of the entities of the kind; none for a surface that means nothing."""
        shares: dict[int, float] = {}
        if candidates is None:
            return shares
        for number, prior in zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True):
            if self._filter is None or self._filter.accepts(number):
                shares[number] = shares.get(number, 0.0) + prior
        return shares


def surface_probabilities(folded: str, surfaces: Sequence[SimilarSurface]) -> list[float]:
    """Return the probability of each surface that a name stands for it; with that of none, they sum to 1.

    Args:
        folded: the name, folded.
        surfaces: surfaces that are similar to it, the most similar first.
    """
    if not surfaces:
        return []
    edits = [(1 - each.similarity) * max(len(folded), len(each.surface)) for each in surfaces]
    nearest = min(edits)
    length = math.log(min(max(len(folded), _LENGTHS[0]), _LENGTHS[1]))
    distance = min(nearest, _MAX_EDITS)
    constant, linear, square = _NONE
    of_none = constant + linear * length + square * length**2
    linear, square, product = _NEAREST
    of_none += linear * distance + square * distance**2 + product * distance * length
    weights = [math.exp(_EDIT * (nearest - each)) for each in edits]
    total = sum(weights) + math.exp(of_none)
    return [weight / total for weight in weights]


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
