"""What K-BERT reads: sentence trees as word pieces, padded.

B  trees of a batch    N  word pieces of one, those of its facts and special ones included
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.pieces import WordPieces
from kgkit.inputs.texts import SIZE, TextReader
from kgkit.trees import Flattener, FlatTree, Frame, TreeBuilder
from kgkit.types import Document, LinkedDocument

if TYPE_CHECKING:
    from kgkit.heads.kbert import KBertInputs

_CACHE_BYTES: Final = 32_000_000


class TreeReader(TextReader):
    """Gives K-BERT texts to read.

    Args:
        encoder: encoder whose tokenizer cuts them, and what is injected.
        builder: builder of their trees; one without knowledge bases makes trees without facts, for a control.
        size: number of word pieces of a tree; of longer texts the rest is not read, of a pair the longer is
            cut first, and a warning is logged once.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any.

    Examples:
        >>> reader = TreeReader(encoder, TreeBuilder([AliasGenerator(kb)]))
        >>> trees = [*reader([(Document("", "Tim Cook is visiting Beijing now"),)])]
        >>> KBert(encoder.model)(reader.batch(trees)).last_hidden_state.shape
        torch.Size([1, 16, 384])
    """

    def __init__(self, encoder: Encoder, builder: TreeBuilder, *, size: int = SIZE) -> None:
        super().__init__(encoder, size=size, noun="trees")
        self.builder = builder
        frame = Frame(self.tokens.before, self.tokens.between, self.tokens.after)
        self._flatten = Flattener(self.tokens, frame, size)
        self._cache = BoundedCache[str, WordPieces](_CACHE_BYTES)

    def __call__(self, texts: Iterable[Sequence[Document | LinkedDocument]]) -> Iterator[FlatTree]:
        """Yield the tree of each text, or pair of texts, as it is read.

        Raises: as `read` does.
        """
        return map(self.read, texts)

    def read(
        self, texts: Sequence[Document | LinkedDocument], tokens: Sequence[tuple[int, int]] = ()
    ) -> FlatTree:
        """Return the tree of a text, or of a pair of texts.

        Args:
            texts: sequence of one text, or two.
            tokens: spans of tokens in the first text, in code points, end exclusive: no word piece is of two
                of these.

        Raises:
            UsageError: if there are more texts than two, or none; as `TreeBuilder` does.
        """
        if not 1 <= len(texts) <= 2:
            raise UsageError(f"a text or a pair of texts is read, not {len(texts)} texts")
        [tree] = self.builder([texts])
        cut = [self._by_token(tree.texts[0], tokens), *map(self.tokens, tree.texts[1:])] if tokens else ()
        flat = self._flatten(tree, cut)
        if self._flatten.shortened:
            self.warn_of_cut(tree.texts)
        return flat

    def _by_token(self, text: str, tokens: Sequence[tuple[int, int]]) -> WordPieces:
        """Return the word pieces of a text, each token cut by itself."""
        cut = [self._token(text[start:end]) for start, end in tokens]
        begins = np.repeat([start for start, _ in tokens], [len(pieces) for pieces in cut])
        ids, starts, ends = (np.concatenate(column) for column in zip(*cut, strict=True))
        return WordPieces(ids, begins + starts, begins + ends)

    def _token(self, token: str) -> WordPieces:
        pieces = self._cache.get(token)
        if pieces is None:
            pieces = self._cache.keep(token, self.tokens(token))
        return pieces

    def batch(self, trees: Sequence[FlatTree]) -> "KBertInputs":
        """Return trees padded to the longest."""
        import torch

        from kgkit.heads.kbert import KBertInputs

        longest = max(map(len, trees))
        rows = np.zeros((5, len(trees), longest), np.int64)
        rows[0] = self.padding
        real = np.zeros((len(trees), longest), np.bool_)
        for index, tree in enumerate(trees):
            segments = tree.texts * self.tokens.second
            own: tuple[Any, ...] = (tree.tokens, tree.positions, tree.branches, tree.hooks, segments)
            for row, numbers in zip(rows, own, strict=True):
                row[index, : len(tree)] = numbers
            real[index, : len(tree)] = True
        ids, positions, branches, hooks, types = map(torch.from_numpy, rows)
        return KBertInputs(
            ids, positions, branches, hooks, torch.from_numpy(real), types if self.typed else None
        )
