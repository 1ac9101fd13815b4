"""Texts as word pieces that know where they stand.

P  word pieces of a document
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kgkit.encoder.batches import SURROGATES
from kgkit.errors import UsageError
from kgkit.types import Mention, Numbers

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from kgkit.encoder import Encoder


class WordPieces(NamedTuple):
    """The word pieces of a document, special ones not among them.

    Attributes:
        ids: (P,) ids in the tokenizer's vocabulary.
        starts: (P,) first code point of each, in the document's text.
        ends: (P,) code point after the last of each.
    """

    ids: Numbers
    starts: Numbers
    ends: Numbers

    def __len__(self) -> int:
        return len(self.ids)

    def within(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of pieces that share a code point with the span; an empty one if none does."""
        first = int(np.searchsorted(self.ends, start, "right"))
        return first, max(first, int(np.searchsorted(self.starts, end, "left")))

    def of(self, mentions: Sequence[Mention]) -> Numbers:
        """Return (M, 2), the ranges of pieces of mentions."""
        return self.ranges((mention.start, mention.end) for mention in mentions)

    def ranges(self, spans: Iterable[tuple[int, int]]) -> Numbers:
        """Return (S, 2), the range of pieces of each span, as `within` has it."""
        return np.array([self.within(*span) for span in spans], np.int64).reshape(-1, 2)


class PieceTokenizer:
    """Cuts texts into word pieces, as the package tokenizers has them, of any length.

    Args:
        tokenizer: tokenizer that cuts nothing off, as `Encoder.pieces` is.
        lowercase: whether texts are lowercased first, as some sentence encoders want it.

    Attributes:
        before, after: ids of the special pieces that a text begins and ends with.
        between: ids of those between two texts.
        second: segment of the second of two texts.
    """

    def __init__(self, tokenizer: "Tokenizer", *, lowercase: bool = False) -> None:
        self._tokens = tokenizer
        self._lowercase = lowercase
        framed = self._tokens.encode("a")
        special = np.flatnonzero(np.array(framed.special_tokens_mask) == 0)
        self.before = tuple(framed.ids[: int(special[0])])
        self.after = tuple(framed.ids[int(special[-1]) + 1 :])
        pair = self._tokens.encode("a", "a")
        first, second = (np.flatnonzero(np.array(pair.sequence_ids) == number) for number in (0, 1))
        self.between = tuple(pair.ids[int(first[-1]) + 1 : int(second[0])])
        self.second = pair.type_ids[int(second[0])]

    def added(self, texts: int) -> int:
        """Return how many special pieces are put around one text, or around two and between them."""
        return len(self.before) + len(self.after) + (texts - 1) * len(self.between)

    def __call__(self, text: str) -> WordPieces:
        """Return the pieces of *text*; offsets are those of *text* as given."""
        plain = text.translate(SURROGATES)
        if self._lowercase:
            lowered = plain.lower()
            # A few letters grow when they are lowered, which would move all that follows.
            plain = lowered if len(lowered) == len(plain) else "".join(_lower(letter) for letter in plain)
        encoding = self._tokens.encode(plain, add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        return WordPieces(np.array(encoding.ids, np.int64), offsets[:, 0], offsets[:, 1])

    def inside(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word as it is cut between other words, with a piece of the white space before.

        Tokenizers of bytes, as RoBERTa's, have the white space before a word in its first piece (`Ġdog`), and
        other pieces for a word that a text begins with.
        """
        pieces = self(f"a {word} a")
        first, end = pieces.within(1, 2 + len(word))
        return tuple(pieces.ids[first:end].tolist())

    def sign(self, sign: str) -> int | None:
        """Return the id of a sign that is put between words, as a slash; of several pieces the last.

        None if the tokenizer has no piece for it.
        """
        ids = self.inside(sign)
        return ids[-1] if ids else None


def _lower(letter: str) -> str:
    lowered = letter.lower()
    return lowered if len(lowered) == 1 else letter


def check_window(size: int, tokens: PieceTokenizer, encoder: "Encoder") -> None:
    """Make sure that windows of *size* word pieces, with special ones around them, fit into *encoder*.

    Raises:
        UsageError: if not; says which size fits.
    """
    special = tokens.added(1)
    if size + special > encoder.window:
        raise UsageError(
            f"windows of {size} pieces and {special} special ones do not fit into the {encoder.window} that "
            f"{encoder.name} reads: choose a size of at most {encoder.window - special}"
        )
