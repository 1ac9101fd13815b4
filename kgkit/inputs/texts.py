"""Texts, and pairs of texts, as word pieces with an encoder's special ones around them.

    B  texts of a batch    T  word pieces of one, special ones included

    [CLS] the first text [SEP]
    [CLS] the first text [SEP] the second [SEP]

Which special pieces these are, and what stands between two texts, the tokenizer says.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.pieces import PieceTokenizer, WordPieces
from kgkit.types import Numbers

if TYPE_CHECKING:
    from torch import Tensor

SIZE: Final = 128
"""Pieces of a text, special ones and what is put in included, unless another number is asked for; KnowBert's
paper has as many for most tasks."""

_BEGINNING: Final = 40  # characters of a text that is cut, in the warning

_log = logging.getLogger(__name__)


class TokenizedText(NamedTuple):
    """A text, or a pair, as it is read.

    Attributes:
        ids: (T,) word pieces, special ones included.
        types: (T,) segment of each, as the encoder counts the texts of a pair.
        special: (T,) bool, whether a piece is a special one.
        mentions: mentions by the name of their knowledge base.
    """

    ids: Numbers
    types: Numbers
    special: NDArray[np.bool_]
    mentions: dict[str, MentionSpans]


class TextPieces(NamedTuple):
    """One text of those that are read together.

    Attributes:
        pieces: all of its word pieces.
        begin: position of the first of them in what is read.
        length: number of pieces that are read, from the first on.
    """

    pieces: WordPieces
    begin: int
    length: int


class TextReader:
    """Reads texts, or pairs, of so many word pieces: what the readers of all heads have in common.

    Args:
        encoder: encoder whose tokenizer cuts the texts.
        size: number of word pieces of a text, special ones included; of longer texts the rest is not read, of
            a pair the longer is cut first, and a warning is logged once.
        noun: word for what is read, in messages.

    Attributes:
        tokens: tokenizer without special pieces, of texts of any length.
        padding: piece that stands behind shorter texts.
        typed: whether the encoder has segments, for the two texts of a pair.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any.
    """

    def __init__(self, encoder: Encoder, *, size: int, noun: str = "texts") -> None:
        self.tokens = PieceTokenizer(encoder.pieces, lowercase=encoder.settings.lowercase)
        self.size = size
        self.padding = encoder.padding
        self.typed = getattr(encoder.model.config, "type_vocab_size", 0) > 1
        self._warned = False
        least = self.tokens.added(2) + 2
        if not least <= size <= encoder.window:
            raise UsageError(f"{noun} of {size} pieces; {encoder.name} reads {least} to {encoder.window}")

    def room(self, texts: int) -> int:
        """Return how many word pieces there is room for, in one text or in both of a pair."""
        return self.size - self.tokens.added(texts)

    def tokenize(self, texts: Sequence[str]) -> tuple[TokenizedText, list[TextPieces]]:
        """Return a text, or a pair, without mentions, and where each of the texts stands in it."""
        pieces = [self.tokens(text) for text in texts]
        counts = fit_pieces([len(part) for part in pieces], self.room(len(texts)))
        if sum(counts) < sum(map(len, pieces)):
            self.warn_of_cut(texts)
        begins = [len(self.tokens.before), len(self.tokens.before) + counts[0] + len(self.tokens.between)]
        ids, special = self.frame([part.ids[:count] for part, count in zip(pieces, counts, strict=True)])
        types = np.zeros(len(ids), np.int64)
        if len(texts) > 1:
            types[begins[1] :] = self.tokens.second
        parts = [TextPieces(*part) for part in zip(pieces, begins, counts, strict=False)]
        return TokenizedText(ids, types, special, {}), parts

    def frame(self, parts: Sequence[Numbers]) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return one text, or two, with special pieces around them; and (T,) bool, which are special."""
        tokens = self.tokens
        inside = [tokens.before, parts[0], *(ids for part in parts[1:] for ids in (tokens.between, part))]
        ids = [np.array(part, np.int64) for part in (*inside, tokens.after)]
        special = [np.full(len(part), number % 2 == 0) for number, part in enumerate(ids)]
        return np.concatenate(ids), np.concatenate(special)

    def pad(self, texts: Sequence[TokenizedText]) -> "dict[str, Tensor]":
        """Return an encoder's inputs, (B, T) int64: texts padded to the longest, and their attention mask."""
        import torch

        longest = max(len(text.ids) for text in texts)
        ids = np.full((len(texts), longest), self.padding, np.int64)
        types, mask = np.zeros_like(ids), np.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, : len(text.ids)] = text.ids
            types[row, : len(text.ids)] = text.types
            mask[row, : len(text.ids)] = 1
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if self.typed:
            inputs["token_type_ids"] = torch.from_numpy(types)
        return inputs

    def warn_of_cut(self, texts: Sequence[str]) -> None:
        """Log, once, that a text, or a pair, is longer than what is read of it."""
        if self._warned:
            return
        self._warned = True
        count = sum(len(self.tokens(text)) for text in texts) + self.tokens.added(len(texts))
        begin = texts[0] if len(texts[0]) <= _BEGINNING else f"{texts[0][:_BEGINNING]}…"
        _log.warning(
            "texts of more than %d word pieces are cut; the first such has %d%s: %r", self.size, count,
            "" if count > self.size else " before anything is put in", begin,
        )  # fmt: skip


def fit_pieces(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many pieces of each text fit into *room*: of a pair the longer is cut first.

    Examples:
        >>> fit_pieces([3, 9], 8)
        [3, 5]
    """
    if len(lengths) == 1:
        return [min(lengths[0], room)]
    first, second = lengths
    half = room // 2
    if first + second <= room:
        return [first, second]
    if first <= half:
        return [first, room - first]
    return [room - second, second] if second <= room - half else [half, room - half]
