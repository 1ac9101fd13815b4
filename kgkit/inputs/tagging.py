"""From documents to what a tagger of words takes.

Words are those of `kgkit.text`, whatever tokens a document has: so a text is read alike with its tokens
apart, as data sets have them, and as it was written. A word is read at its first word piece. One that has
none of its own (a character that the tokenizer leaves out, or joins to the word before) is not read.

    n  windows of a batch    T  word pieces of the longest    W  words of the one with most
    N  words of a document   P  its word pieces

A long document is read in windows (`kgkit.inputs.windows`), none of its words left out. With `context` a word
near the edge of a window is read with what stands around it, in other sentences too, as Schweter and Akbik
(2020), "FLERT", have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.inputs.pieces import PieceTokenizer, WordPieces, check_window
from kgkit.inputs.windows import Scope, windows
from kgkit.text import token_spans
from kgkit.types import Document, Numbers

if TYPE_CHECKING:
    from kgkit.heads.tagger import TaggerInputs

SHAPES: Final = ("", "lower", "Title", "UPPER", "X", "miXed", "12", "x1", ".")
"""Shapes of words, by number: none (special pieces), letters of one case, begun with a capital, all capitals,
one capital alone, other mixtures, digits, letters or marks with digits, anything else."""

_SIZE: Final = 254


@dataclass(frozen=True, kw_only=True)
class TaggingConfig:
    """How a tagger reads.

    Attributes:
        size: number of word pieces read at once, special ones not counted; None: 254, or as many as the
            encoder reads.
        context: number of them, on each side, that are read for the others' sake alone; None: an eighth.
        scope: `sentence`, each alone, or `document`, as much of it as there is room for.
    """

    size: int | None = None
    context: int | None = None
    scope: Scope = "document"


class TaggingWindow(NamedTuple):
    """A window of a document, as word pieces.

    Attributes:
        ids: (T,) special ones included.
        shapes: (T,) shapes of the words that the pieces are of.
        begin: index of the first of the document's words that are the window's own.
        firsts: (W,) first piece of each of these.
    """

    ids: Numbers
    shapes: Numbers
    begin: int
    firsts: Numbers


class DocumentWords(NamedTuple):
    """The words of a document that can be read: (N,) where each starts and ends, and the windows."""

    starts: Numbers
    ends: Numbers
    windows: list[TaggingWindow]

    def __len__(self) -> int:
        return len(self.starts)


class WordReader:
    """Cuts documents into words and windows of word pieces.

    Args:
        encoder: encoder that will read them.
        config: settings.
        lowercase: whether texts are lowercased before they are cut into pieces; None: as the encoder says.

    Attributes:
        config: settings, with numbers instead of None.
        encoder: encoder that will read them.

    Raises:
        UsageError: if the encoder reads fewer pieces than a window has.
    """

    def __init__(
        self, encoder: Encoder, config: TaggingConfig | None = None, *, lowercase: bool | None = None
    ) -> None:
        self.encoder = encoder
        self.lowercase = encoder.settings.lowercase if lowercase is None else lowercase
        self.tokens = PieceTokenizer(encoder.pieces, lowercase=self.lowercase)
        self.padding = encoder.padding
        config, special = config or TaggingConfig(), self.tokens.added(1)
        self.size = min(_SIZE, encoder.window - special) if config.size is None else config.size
        self.context = self.size // 8 if config.context is None else config.context
        self.config = TaggingConfig(size=self.size, context=self.context, scope=config.scope)
        check_window(self.size, self.tokens, encoder)
        windows(0, (), size=self.size, context=self.context)  # raises for what cannot be

    def loses_case(self) -> bool:
        """Say whether letters of either case are the same word pieces."""
        return np.array_equal(self.tokens("Bank of IBM").ids, self.tokens("bank of ibm").ids)

    def __call__(self, document: Document) -> DocumentWords:
        """Return the words of *document*."""
        text, pieces = document.text, self.tokens(document.text)
        starts, ends, firsts = _words(text, pieces)  # (N,)
        shapes = np.array([shape(text[a:b]) for a, b in zip(starts, ends, strict=True)], np.int64)
        of_pieces = np.zeros(len(pieces), np.int64)  # (P,)
        if len(firsts):
            # From the first word's first piece on, every piece is of some word.
            positions = np.arange(int(firsts[0]), len(pieces))
            of_pieces[positions] = shapes[np.searchsorted(firsts, positions, "right") - 1]
        before, after = np.array(self.tokens.before, np.int64), np.array(self.tokens.after, np.int64)
        begins = [pieces.within(*sentence)[0] for sentence in document.sentences or ()]
        read = []
        for window in windows(
            len(pieces), begins, size=self.size, context=self.context, scope=self.config.scope
        ):
            first, end = np.searchsorted(firsts, [window.own, window.own_end], "left").tolist()
            if first == end:
                continue
            inside = slice(window.begin, window.end)
            ids = np.concatenate([before, pieces.ids[inside], after])
            piece_shapes = np.pad(of_pieces[inside], (len(before), len(after)))
            read.append(
                TaggingWindow(ids, piece_shapes, first, firsts[first:end] - window.begin + len(before))
            )
        return DocumentWords(starts, ends, read)


def _words(text: str, pieces: WordPieces) -> tuple[Numbers, Numbers, Numbers]:
    """Return where each word with a piece of its own starts and ends, and which piece is its first."""
    spans = np.array(token_spans(text), np.int64).reshape(-1, 2)
    firsts = np.searchsorted(pieces.ends, spans[:, 0], "right")
    real = firsts < np.searchsorted(pieces.starts, spans[:, 1], "left")
    spans, firsts = spans[real], firsts[real]
    own = np.append(True, firsts[1:] > firsts[:-1])[: len(firsts)]
    return spans[own, 0], spans[own, 1], firsts[own]


def shape(word: str) -> int:
    """Return the index in `SHAPES` of the shape of *word*.

    Examples:
        >>> [SHAPES[shape(word)] for word in ("the", "Rome", "EU", "A", "iPod", "1996", "B2", "$")]
        ['lower', 'Title', 'UPPER', 'X', 'miXed', '12', 'x1', '.']
    """
    if any(letter.isdigit() for letter in word):
        return 6 if all(letter.isdigit() for letter in word) else 7
    letters = "".join(letter for letter in word if letter.isalpha())
    if not letters:
        return 8
    if letters == letters.lower():
        return 1
    if letters == letters.upper():
        return 4 if len(letters) == 1 else 3
    return 2 if letters[0] != letters[0].lower() and letters[1:] == letters[1:].lower() else 5


def tagger_inputs(windows: Sequence[TaggingWindow], *, padding: int, shapes: bool = True) -> "TaggerInputs":
    """Return the inputs of windows.

    Args:
        windows: n windows.
        padding: id of the piece that fills the shorter ones.
        shapes: whether the tagger reads shapes of words.
    """
    import torch

    from kgkit.heads.tagger import TaggerInputs

    ids, real = _filled([window.ids for window in windows], padding)
    firsts, words = _filled([window.firsts for window in windows], 0)
    word_shapes = _filled([window.shapes for window in windows], 0)[0] if shapes else None
    return TaggerInputs(
        ids=torch.from_numpy(ids),
        pieces=torch.from_numpy(real),
        firsts=torch.from_numpy(firsts),
        words=torch.from_numpy(words),
        shapes=None if word_shapes is None else torch.from_numpy(word_shapes),
    )


def _filled(rows: Sequence[Numbers], filling: int) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return rows of numbers as one matrix, and where there is something in it."""
    longest = max(map(len, rows))
    array = np.full((len(rows), longest), filling, np.int64)
    real = np.zeros(array.shape, np.bool_)
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
        real[number, : len(row)] = True
    return array, real
