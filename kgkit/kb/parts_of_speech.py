"""The parts of speech of a build: which entities have which, and candidates of one of them."""

from typing import Final

import numpy as np

from kgkit.errors import UnknownEntity, UnknownName
from kgkit.store import StoreReader
from kgkit.store.layout import MAX_CLASS_BITS
from kgkit.types import Candidates, Ids

__all__ = ["POS", "PartsOfSpeech"]

# A part of speech people ask for -> those a KB may store: WordNet's adjectives
# include its satellites, and taggers write the universal names.
POS: Final = {
    "a": ("a", "s"), "ADJ": ("a", "s"), "ADV": ("r",), "NOUN": ("n",), "PROPN": ("n",),
    "VERB": ("v",), "AUX": ("v",),
    **dict.fromkeys("ADP CCONJ DET INTJ NUM PART PRON PUNCT SCONJ SYM X".split(), ()),
}  # fmt: skip

_WORDNET_POS: Final = ("n", "v", "a", "s", "r")


class PartsOfSpeech:
    """The part of a handle that knows parts of speech.

    Args:
        store: the build.
        name: name of the KB, for errors.
    """

    def __init__(self, store: StoreReader, name: str) -> None:
        self.store, self.name = store, name  # the store gives rows as they lie on disk
        self._classes: np.ndarray | None = None
        self._bits: bytes | None = None

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
