"""What a re-ranker reads: a mention in its context, and behind it the texts of its candidates.

    B  mentions    C  candidates of one    N  word pieces of context and candidates

    [CLS] … context with the mention … [SEP] text of candidate 1 [SEP] text of candidate 2 [SEP] …
    0     1                            T-1   T                      T

Each text stands where it would stand if it were the only one behind the context: positions begin anew.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.inputs.texts import TextReader
from kgkit.types import Document, Numbers

if TYPE_CHECKING:
    from kgkit.heads.reranker import RerankerInputs

_MOST_TEXTS = 100_000  # that are kept in pieces


class MentionContext(NamedTuple):
    """A mention in what is read around it.

    Attributes:
        ids: word pieces, without special ones.
        first, end: those of the mention, end exclusive.
    """

    ids: Numbers
    first: int
    end: int


class CandidateSequence(NamedTuple):
    """A mention with the candidates that are read together.

    Attributes:
        context: the mention in its context.
        texts: word pieces of the text of each candidate, which may be none.
        first: (C,) float32, the first stage's log p of each.
    """

    context: MentionContext
    texts: tuple[Numbers, ...]
    first: NDArray[np.float32]

    @property
    def length(self) -> int:
        """Number of pieces, without special ones."""
        return len(self.context.ids) + sum(map(len, self.texts))


class RerankingReader(TextReader):
    """Gives a re-ranker mentions to read.

    Args:
        encoder: encoder whose tokenizer cuts the texts.
        texts: function from ids of entities to the text of each.
        context: word pieces that are read around a mention, its own among them; special ones are not counted.
        length: word pieces that are read of the text of a candidate.

    Raises:
        UsageError: if the encoder reads fewer pieces than context, text and special pieces are.

    Examples:
        >>> reader = RerankingReader(encoder, texts)
        >>> [context] = reader.contexts(document)
        >>> reranker(reader.batch([reader.sequence(context, ids, log_scores)]))         # (1, C)
    """

    def __init__(
        self,
        encoder: Encoder,
        texts: Callable[[Sequence[int]], Sequence[str]],
        *,
        context: int = 64,
        length: int = 32,
    ) -> None:
        special = encoder.tokenizer.num_special_tokens_to_add(pair=True)
        super().__init__(encoder, size=context + length + special, noun="a context and a candidate")
        self._texts, self.context, self.length = texts, context, length
        self._pieces: dict[int, Numbers] = {}

    def contexts(self, document: Document) -> list[MentionContext | None]:
        """Return what is read around each mention of a document, whatever sentences it is in.

        The mention stands in the middle, as far as the document goes; of one that is longer than what is read
        the end is left out. None for a mention without a word piece.
        """
        mentions = document.mentions or []
        pieces = self.tokens(document.text) if mentions else None
        contexts: list[MentionContext | None] = []
        for mention in mentions:
            assert pieces is not None
            first, end = pieces.within(mention.start, mention.end)
            end = min(end, first + self.context)
            if first == end:
                contexts.append(None)
                continue
            before = (self.context - (end - first)) // 2
            begin = max(0, min(first - before, len(pieces) - self.context))
            ids = pieces.ids[begin : begin + self.context]
            contexts.append(MentionContext(ids, first - begin, end - begin))
        return contexts

    def sequence(
        self, context: MentionContext, ids: Sequence[int], first: NDArray[np.float32]
    ) -> CandidateSequence:
        """Return a mention with candidates.

        Args:
            context: the mention in its context.
            ids: C ids of entities.
            first: (C,) the first stage's log p of each.
        """
        if len(self._pieces) > _MOST_TEXTS:
            self._pieces = {}  # another thread may still read the old one
        pieces = self._pieces
        new = [entity for entity in dict.fromkeys(ids) if entity not in pieces]
        for entity, text in zip(new, self._texts(new) if new else (), strict=True):
            pieces[entity] = self.tokens(text).ids[: self.length]
        texts = tuple(pieces[entity] for entity in ids)
        return CandidateSequence(context, texts, np.asarray(first, np.float32))

    def batch(self, sequences: Sequence[CandidateSequence]) -> "RerankerInputs":
        """Return sequences padded to the longest, as a re-ranker reads them."""
        import torch

        from kgkit.heads.kbert import KBertInputs
        from kgkit.heads.reranker import RerankerInputs

        rows = [self._row(sequence) for sequence in sequences]
        shape = (len(rows), max(len(row.ids) for row in rows))
        ids, positions, branches, types = (np.full(shape, fill, np.int64) for fill in (self.padding, 0, 0, 0))
        real, mentions = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        counts = [len(sequence.texts) for sequence in sequences]
        first = np.zeros((len(rows), max(counts)), np.float32)
        exist = np.arange(max(counts)) < np.array(counts)[:, None]
        for number, (row, sequence) in enumerate(zip(rows, sequences, strict=True)):
            end = len(row.ids)
            ids[number, :end], positions[number, :end] = row.ids, row.positions
            branches[number, :end], types[number, :end] = row.branches, row.types
            real[number, :end] = True
            begin = len(self.tokens.before)
            mentions[number, begin + sequence.context.first : begin + sequence.context.end] = True
            first[number, : counts[number]] = sequence.first
        text = KBertInputs(
            torch.from_numpy(ids),
            torch.from_numpy(positions),
            torch.from_numpy(branches),
            torch.from_numpy(real).long(),  # all hang from the context as a whole
            torch.from_numpy(real),
            torch.from_numpy(types) if self.typed else None,
        )
        return RerankerInputs(text, *map(torch.from_numpy, (mentions, exist, first)))

    def _row(self, sequence: CandidateSequence) -> "_Row":
        """Return the pieces of a sequence, special ones included."""
        tokens = self.tokens
        trunk = np.array([*tokens.before, *sequence.context.ids, *tokens.between], np.int64)
        branches = [trunk, *(np.array([*text, *tokens.after], np.int64) for text in sequence.texts)]
        sizes = [len(branch) for branch in branches]
        positions = [np.arange(len(trunk)), *(len(trunk) + np.arange(size) for size in sizes[1:])]
        numbers = np.repeat(np.arange(len(branches)), sizes)
        types = np.where(numbers > 0, tokens.second, 0)
        return _Row(np.concatenate(branches), np.concatenate(positions), numbers, types)


class _Row(NamedTuple):
    """A sequence: (N,) word pieces, where they stand, which candidate they are of, and their segments."""

    ids: Numbers
    positions: Numbers
    branches: Numbers
    types: Numbers
