"""Surfaces and what they can mean, in both directions, and parts of speech."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.store import StoreReader
from kgkit.store.layout import MAX_CLASS_BITS
from kgkit.store.trigrams import TrigramIndex
from kgkit.types import NO_CANDIDATES, NO_SENSE, Candidate, Candidates, Entity, Ids

if TYPE_CHECKING:
    from kgkit.kb.similar import SimilarNames, SimilarSurface

__all__ = ["POS", "EntitySurface", "Node", "SurfaceQueries"]

Node = int | str | Entity
"""An entity, by its id, by its key, or itself."""

# A part of speech people ask for -> those a KB may store: WordNet's adjectives
# include its satellites, and taggers write the universal names.
POS: Final = {
    "a": ("a", "s"), "ADJ": ("a", "s"), "ADV": ("r",), "NOUN": ("n",), "PROPN": ("n",),
    "VERB": ("v",), "AUX": ("v",),
    **dict.fromkeys("ADP CCONJ DET INTJ NUM PART PRON PUNCT SCONJ SYM X".split(), ()),
}  # fmt: skip

_WORDNET_POS: Final = ("n", "v", "a", "s", "r")

_NEVER_LINKED: Final = 0.5  # what counts as links where a surface was never one
_LEAST_SIMILARITY: Final = 0.5  # of the surface that stands for a text which is none

MAX_NAME: Final = 1_000
"""Characters of a name that are compared with surfaces; the index has few surfaces that are longer."""


class EntitySurface(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A surface that can mean an entity.

    Attributes:
        surface: surface as it is spelled.
        prior: p(entity | surface), in [0, 1], as `KnowledgeBase.candidates` gives it for this spelling.
        count: number of times that it was seen with this meaning; 0 where nobody counted.
        sense: key of the entity that stands for this very pairing, as a sense key of WordNet; None in most
            KBs.
    """

    surface: str
    prior: float
    count: float
    sense: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON, without a sense that is None."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class SurfaceQueries(ABC):
    """The part of a handle that knows what surfaces can mean, what an entity is called, and parts of speech.

    Args:
        store: the build.
        name: name of the KB, for errors.
    """

    def __init__(self, store: StoreReader, name: str) -> None:
        self.store, self.name = store, name  # the store gives rows as they lie on disk
        self._classes: np.ndarray | None = None
        self._bits: bytes | None = None
        self._similar: SimilarNames | None = None

    @abstractmethod
    def id(self, entity: Node) -> int:
        """Return the id of an entity."""

    def candidates(
        self,
        text: str,
        k: int | None = None,
        pos: str | None = None,
        *,
        prefer_case: bool = True,
        fuzzy: bool = False,
    ) -> Candidates:
        """Return what a surface can mean, best prior first.

        Case and white space are folded; where a KB knows several spellings of
        a folded surface, the meanings seen in this very spelling are preferred.

        Args:
            text: the surface, uninflected.
            k: largest number of candidates; None for all. Priors are not stretched by the cut.
            pos: part of speech of the meanings: `n`, `v`, `a` (satellites included), `s`, `r`, or a
                universal name (`NOUN`). Priors then sum to 1 over what is left.
            prefer_case: whether the exact spelling counts more; False takes all spellings alike.
            fuzzy: whether, if there is no such surface, to take the most similar one that the text more
                likely stands for than not (see `similar_surfaces`); without the index that it needs, every
                surface of the KB is read.

        Returns:
            The candidates; none, if the surface is not known. `decode` gives entities.

        Raises:
            TypeError: if *text* is no string.
        """
        _check_size(k)
        if pos is not None:
            self._check_pos(pos)
        try:
            result = self.store.candidates(text, prefer_case=prefer_case)
        except AttributeError:  # checked only on failure: this call is in inner loops
            if isinstance(text, str):
                raise
            raise TypeError(f"a surface is a str, not {type(text).__name__}") from None
        if result is None:
            nearest = self._nearest_surface(self.store.folding.fold(text)) if fuzzy else None
            if nearest is None:
                return NO_CANDIDATES
            result = self.store.candidates(nearest, prefer_case=False) or NO_CANDIDATES
        if pos is not None:
            result = self.filter(result, pos)
        return result if k is None or k >= len(result.rows) else Candidates(result.rows[:k], result.null)

    def link_probability(self, text: str) -> float | None:
        """Return how likely an occurrence of a surface in a text is a link; None where nobody counted.

        That is links / occurrences. A surface that was never a link counts as half of one: that it was none
        in a few places does not say that it never is. Case and white space are folded, and all meanings and
        spellings together.

        Examples:
            >>> kgkit.open_kb("enwiki").link_probability("of")
            0.0004…
        """
        counts = self.store.occurrences(self.store.folding.fold(text)) if self.store.has_occurrences else None
        if counts is None:
            return None
        count, linked = counts
        return min((linked or _NEVER_LINKED) / count, 1.0)

    def decode(self, candidates: Candidates) -> list[Candidate]:
        """Return candidates with their entities and the keys of their senses."""
        return self.store.decode(candidates)

    def surfaces(self) -> Iterator[str]:
        """Yield every folded surface, in order."""
        return self.store.iter_surfaces()

    def similar_surfaces(self, text: str, k: int = 10) -> "list[SimilarSurface]":
        """Return the surfaces that are most similar to a text, the most similar first.

        Case and white space are folded. Accents and punctuation count next to nothing, numbers much: see
        `kgkit.kb.names`.

        Args:
            text: text that need be no surface.
            k: largest number of surfaces.

        Raises:
            NotThere: if the build has no index of its surfaces; names the command that adds it.
            UsageError: if *k* is negative.

        Examples:
            >>> kgkit.open_kb("wordnet").similar_surfaces("hipopotamus", k=1)
            [SimilarSurface(surface='hippopotamus', similarity=0.82…)]
        """
        from kgkit.kb.similar import SimilarSurface

        _check_size(k)
        if not k:
            return []
        names, folded = self.similar_names(), self.store.folding.fold(text)[:MAX_NAME]
        with self.store.reading():
            proposed = names.proposed(folded)
        return [SimilarSurface(each.surface, each.similarity) for each in names.rank(folded, proposed)[:k]]

    def similar_names(self) -> "SimilarNames":
        """Return a finder of the surfaces that are like a name.

        Raises:
            NotThere: if the build has no index of its surfaces; names the command that adds it.
            ClosedKB: if the handle has been closed.
        """
        from kgkit.kb.similar import SimilarNames

        index = self.surface_index()
        if self._similar is None:
            self._similar = SimilarNames(index, self.store.manifest.language)
        return self._similar

    def surface_index(self) -> TrigramIndex:
        """Return the index of the surfaces.

        Raises:
            NotThere: if the build has none; names the command that adds it.
            ClosedKB: if the handle has been closed.
        """
        if (index := self.store.trigrams) is None:
            raise self.store.without_index()
        return index

    def surfaces_of(self, entity: Node, k: int | None = None) -> list[EntitySurface]:
        """Return the surfaces that can mean an entity, as they are spelled, the most frequent first.

        Those that were counted alike, as all are where nobody counted, come by their priors, then in
        alphabetical order.

        Args:
            entity: key of the entity, its id or itself.
            k: largest number of surfaces; None for all.

        Raises:
            UnknownEntity: if there is no such entity.
            FormatMismatch: if the build is of an older format, which cannot tell; names the command that
                builds it again.
            UsageError: if *k* is negative.

        Examples:
            >>> [name.surface for name in kgkit.open_kb("wordnet").surfaces_of("dog.n.01")]
            ['dog', 'Canis familiaris', 'domestic dog']
        """
        _check_size(k)
        surfaces = self.store.surfaces_of(self.id(entity))
        surfaces.sort(key=lambda each: (-each[2], -each[1], each[0]))
        return [
            EntitySurface(surface, prior, count, None if sense == NO_SENSE else self.store.key_of(sense))
            for surface, prior, count, sense in surfaces[:k]
        ]

    # -- parts of speech ----------------------------------------------------

    def filter(self, candidates: Candidates, pos: str) -> Candidates:
        """Return those of *candidates* that have this part of speech; they share what NULL leaves."""
        mask = self.has_pos(candidates.ids, pos)
        if mask.all():
            return candidates
        rows = candidates.rows[mask]
        if len(rows):
            total = rows["prior"].sum()
            rows["prior"] = (1 - candidates.null) * (rows["prior"] / total if total else 1 / len(rows))
        return Candidates(rows, candidates.null, candidates.link_probability)

    def classes_of(self, ids: Ids) -> np.ndarray:
        """Return (n,) uint8, parts of speech: 0 for none, else 1 + the place in `store.classes`."""
        if self._classes is None:
            self._classes = self.store.class_of_entity()
        try:
            classes: np.ndarray = self._classes[ids]
        except IndexError:
            raise UnknownEntity(int(max(ids)), self.name) from None
        return classes

    def has_pos(self, ids: Ids, pos: str) -> np.ndarray:
        """Return (n,) bool: which of *ids* (n,) have the part of speech *pos*.

        In a KB that knows no parts of speech, all of them.

        Raises:
            UnknownName: if there is no such part of speech.
        """
        self._check_pos(pos)
        classes = self.store.classes
        numbers = self.classes_of(ids)
        mask = np.full(len(ids), not classes)
        for name in POS.get(pos, (pos,)):
            if name in classes:
                mask |= numbers == classes.index(name) + 1
        return mask

    def _check_pos(self, pos: str) -> None:
        names = {*POS, *self.store.classes, *_WORDNET_POS}
        if pos not in names:
            raise UnknownName("part of speech", pos, sorted(names))

    def pos_bits(self, pos: str) -> int:
        """Return the bits that `alias_row` has for a part of speech; all of them if it cannot tell apart."""
        classes = self.store.classes
        if len(classes) > MAX_CLASS_BITS:
            return 0xFF
        return sum(1 << classes.index(name) for name in POS.get(pos, (pos,)) if name in classes)

    def class_bits(self) -> bytes:
        """Return, for every entity, the bit of its part of speech as in `pos_bits`."""
        if self._bits is None:
            table = [0, *(1 << bit for bit in range(MAX_CLASS_BITS))]
            classes = self.store.class_of_entity().tobytes()
            small = len(self.store.classes) <= MAX_CLASS_BITS
            self._bits = (
                classes.translate(bytes(table) + bytes(256 - len(table))) if small else b"\xff" * len(classes)
            )
        return self._bits

    def _nearest_surface(self, folded: str) -> str | None:
        from kgkit.kb.similar import SimilarNames, with_fewest_edits  # here: wanted by few, 20 ms

        folded = folded[:MAX_NAME]
        if self.store.trigrams is not None:
            names = self.similar_names()
            with self.store.reading():
                proposed = names.proposed(folded)
        else:
            names = SimilarNames(None, self.store.manifest.language)
            proposed = with_fewest_edits(folded, [*self.surfaces()])
        ranked = names.rank(folded, proposed)
        return ranked[0].surface if ranked and ranked[0].similarity >= _LEAST_SIMILARITY else None


def _check_size(k: int | None) -> None:
    """Make sure that *k* is a number of answers.

    Raises:
        UsageError: if it is negative.
    """
    if k is not None and k < 0:
        raise UsageError(f"k is {k}; it cannot be negative")
