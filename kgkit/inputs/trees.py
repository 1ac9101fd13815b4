"""What K-BERT reads: sentence trees as word pieces, padded.

B  trees of a batch    N  word pieces of one, those of its facts and special ones included
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.pieces import PieceTokenizer, WordPieces
from kgkit.trees import Flattener, FlatTree, Frame, TreeBuilder
from kgkit.types import Document, LinkedDocument

if TYPE_CHECKING:
    from kgkit.heads.kbert import KBertInputs

_log = logging.getLogger(__name__)

SIZE: Final = 128
"""Word pieces of a tree, facts and special pieces included, unless another number is asked for."""

_MAX_SEEN: Final = 100_000  # tokens


class TreeReader:
    """Gives K-BERT texts to read.

    Args:
        encoder: whose tokenizer cuts them, and what is injected.
        builder: makes their trees; one without knowledge bases makes trees without facts, for a control.
        size: word pieces of a tree; a text that is longer is cut, the longer of a pair first, and it is said.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any.

    Example:
        >>> reader = TreeReader(encoder, TreeBuilder([AliasGenerator(kb)]))
        >>> trees = [*reader([(Document("", "Tim Cook is visiting Beijing now"),)])]
        >>> KBert(encoder.model)(reader.batch(trees)).last_hidden_state.shape
        torch.Size([1, 16, 384])
    """

    def __init__(self, encoder: Encoder, builder: TreeBuilder, *, size: int = SIZE) -> None:
        self.tokens = PieceTokenizer(encoder.tokenizer, lowercase=encoder.settings.lowercase)
        self.builder, self.size = builder, size
        self.padding = encoder.tokenizer.pad_token_id or 0
        self.typed = getattr(encoder.model.config, "type_vocab_size", 0) > 1
        frame = Frame(self.tokens.before, self.tokens.between, self.tokens.after)
        least = sum(map(len, frame)) + 2
        if not least <= size <= encoder.window:
            raise UsageError(f"trees of {size} pieces; {encoder.name} reads {least} to {encoder.window}")
        self._flatten = Flattener(self.tokens, frame, size)
        self._said = False
        self._seen: dict[str, WordPieces] = {}

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
            texts: one, or two.
            tokens: code points of the first text, end exclusive: no word piece is of two of these.

        Raises:
            UsageError: if there are more texts than two, or none; as `TreeBuilder` does.
        """
        if not 1 <= len(texts) <= 2:
            raise UsageError(f"a text or a pair of texts is read, not {len(texts)} texts")
        [tree] = self.builder([texts])
        cut = [self._by_token(tree.texts[0], tokens), *map(self.tokens, tree.texts[1:])] if tokens else ()
        flat = self._flatten(tree, cut)
        if self._flatten.shortened and not self._said:
            self._said = True
            _log.warning("texts of more than %d word pieces are cut; this one has more", self.size)
        return flat

    def _by_token(self, text: str, tokens: Sequence[tuple[int, int]]) -> WordPieces:
        """Return the word pieces of a text, each token cut by itself."""
        cut = [self._token(text[start:end]) for start, end in tokens]
        begins = np.repeat([start for start, _ in tokens], [len(one) for one in cut])
        ids, starts, ends = (np.concatenate(column) for column in zip(*cut, strict=True))
        return WordPieces(ids, begins + starts, begins + ends)

    def _token(self, token: str) -> WordPieces:
        found = self._seen.get(token)
        if found is None:
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            found = self._seen[token] = self.tokens(token)
        return found

    def batch(self, trees: Sequence[FlatTree]) -> "KBertInputs":
        """Return trees padded to the longest."""
        import torch

        from kgkit.heads.kbert import KBertInputs

        longest = max(map(len, trees))
        rows = np.zeros((5, len(trees), longest), np.int64)
        rows[0] = self.padding
        real = np.zeros((len(trees), longest), np.bool_)
        for place, one in enumerate(trees):
            segments = one.texts * self.tokens.second
            own: tuple[Any, ...] = (one.tokens, one.positions, one.branches, one.hooks, segments)
            for row, numbers in zip(rows, own, strict=True):
                row[place, : len(one)] = numbers
            real[place, : len(one)] = True
        ids, positions, branches, hooks, types = map(torch.from_numpy, rows)
        there = torch.from_numpy(real)
        return KBertInputs(ids, positions, branches, hooks, there, types if self.typed else None)
