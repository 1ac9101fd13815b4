"""What E-BERT reads: texts with the entities that they mention, as sequences of both.

    P  word pieces of a text    T  pieces of a sequence: word pieces and entities

    [CLS] the Jean_Marais / Jean Mara ##is film [SEP]

The entity, a slash, and its mention (`concat` of Poerner et al. 2020, section 3.2). The mention of an entity
without a vector is read as word pieces alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.entity_sequences import ENTITY, EntitySequence, collate_sequences
from kgkit.inputs.entity_spans import EntitySpan, LinkedText
from kgkit.inputs.entity_vectors import StoredEntityVectors
from kgkit.inputs.pieces import WordPieces
from kgkit.inputs.texts import SIZE, TextReader, fit_pieces
from kgkit.types import Numbers

if TYPE_CHECKING:
    from kgkit.heads.ebert import EBertInputs


class EBertReader(TextReader):
    """Gives an E-BERT texts to read.

    Args:
        encoder: encoder whose tokenizer cuts them.
        vectors: vectors of entities; None: none is read, as by a control.
        size: number of pieces of a sequence, entities and special pieces included; of longer texts the rest
            is not read, of a pair the longer is cut first, and a warning is logged once.

    Attributes:
        slash: word piece between an entity and its mention.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any; if its tokenizer has no
            piece for a slash.

    Examples:
        >>> reader = EBertReader(encoder, StoredEntityVectors(kb.vectors("text")))
        >>> dog = LinkedText("the dog barks", (EntitySpan(4, 7, kb.id("dog.n.01")),))
        >>> ebert(reader.batch([reader.read([dog])])).last_hidden_state.shape
        torch.Size([1, 7, 384])
    """

    def __init__(
        self,
        encoder: Encoder,
        vectors: StoredEntityVectors | None,
        *,
        size: int = SIZE,
    ) -> None:
        super().__init__(encoder, size=size)
        self.vectors = vectors
        slash = self.tokens.sign("/")
        if slash is None:
            raise UsageError(f"the tokenizer of {encoder.name} has no word piece for a slash")
        self.slash = slash

    def read(
        self,
        texts: Sequence[LinkedText],
        *,
        marks: Sequence[tuple[int, int]] = (),
        markers: Sequence[tuple[int, int]] = (),
        tail: Sequence[int] = (),
    ) -> EntitySequence:
        """Return a text, or a pair of texts, as a sequence.

        Of mentions that overlap the one that begins first is read, of those that begin together the longest;
        of an entity without a vector none is. A mention that the end of what is read goes through is read as
        word pieces. A marker stands outside of the entity that its name has.

        Args:
            texts: one text, or two.
            marks: spans of names in the first text: code points, end exclusive.
            markers: word pieces before and behind each of these.
            tail: word pieces that follow the last text.

        Raises:
            UsageError: if there are more texts than two, or none; if so many pieces are put in that there is
                no room for words.
        """
        if not 1 <= len(texts) <= 2:
            raise UsageError(f"a text or a pair of texts is read, not {len(texts)} texts")
        added = 2 * len(marks) + len(tail)
        room = self.room(len(texts)) - added
        if added and room < 2:
            raise UsageError(
                f"texts of {self.size} pieces, of which {added} are markers, leave no room for words: read "
                f"{self.size - room + 2} or more"
            )
        pieces = [self.tokens(text.text) for text in texts]
        mentions = [self._mentions(text, part) for text, part in zip(texts, pieces, strict=True)]
        counts = self._fit(pieces, mentions, room)
        if sum(counts) < sum(map(len, pieces)):
            self.warn_of_cut([text.text for text in texts])
        names = [_Name(*span, *pair) for span, pair in zip(marks, markers, strict=True)]
        parts = [
            self._inject(*part, names if not number else ())
            for number, part in enumerate(zip(pieces, mentions, counts, strict=True))
        ]
        return self._frame(parts, tail)

    def batch(self, sequences: Sequence[EntitySequence]) -> "EBertInputs":
        """Return sequences padded to the longest, with the vectors of their entities."""
        return collate_sequences(sequences, self.vectors, padding=self.padding, typed=self.typed)

    def _mentions(self, text: LinkedText, pieces: WordPieces) -> "list[_Mention]":
        """Return the mentions of entities with vectors, by their pieces; none overlaps another."""
        if self.vectors is None or not text.spans:
            return []
        exists = self.vectors.exist([span.entity for span in text.spans]).tolist()
        mentions = [
            _Mention(*pieces.within(span.start, span.end), span)
            for span, has_vector in zip(text.spans, exists, strict=True)
            if has_vector
        ]
        chosen: list[_Mention] = []
        for mention in sorted(mentions, key=lambda mention: (mention.first, -mention.end)):
            if mention.first < mention.end and (not chosen or chosen[-1].end <= mention.first):
                chosen.append(mention)
        return chosen

    def _fit(
        self, pieces: Sequence[WordPieces], mentions: "Sequence[Sequence[_Mention]]", room: int
    ) -> list[int]:
        """Return how many word pieces of each text are read, so that their entities have room as well."""
        lengths = []  # of what is read, up to the end of each word piece
        for part, own in zip(pieces, mentions, strict=True):
            length = np.ones(len(part), np.int64)
            for mention in own:
                length[mention.end - 1] = 3
            lengths.append(np.cumsum(length))
        fitting = fit_pieces([int(length[-1]) if len(length) else 0 for length in lengths], room)
        counts = zip(lengths, fitting, strict=True)
        return [int(np.searchsorted(length, count, "right")) for length, count in counts]

    def _inject(
        self,
        pieces: WordPieces,
        mentions: "Sequence[_Mention]",
        count: int,
        names: "Sequence[_Name]",
    ) -> "_Part":
        """Return the first *count* pieces of a text, with entities and markers among them."""
        mentions = [mention for mention in mentions if mention.end <= count]
        insertions = self._markers(pieces, count, names)
        for mention in mentions:
            span = (mention.span.start, mention.span.end)
            insertions.append(_Insertion(mention.first, _ENTITY_ORDER, ENTITY, *span))
            insertions.append(_Insertion(mention.first, _ENTITY_ORDER, self.slash, -1, -1))
        if not insertions:
            return _Part(pieces.ids[:count], pieces.starts[:count], pieces.ends[:count])
        insertions.sort(key=lambda insertion: insertion[:2])
        positions = [insertion.position for insertion in insertions]
        ids, starts, ends = (
            np.insert(column[:count], positions, [insertion[field] for insertion in insertions])
            for column, field in zip(pieces, (2, 3, 4), strict=True)
        )
        return _Part(ids, starts, ends, tuple((mention.span.entity,) for mention in mentions))

    def _markers(
        self,
        pieces: WordPieces,
        count: int,
        names: "Sequence[_Name]",
    ) -> "list[_Insertion]":
        """Return the markers of names, each with the word piece that it stands before.

        Where markers stand together, names end before others begin; the one that begins last ends first.
        """
        insertions = []
        for number, (start, end, opening, closing) in enumerate(names):
            first, last = (min(position, count) for position in pieces.within(start, end))
            if first < last:
                orders = (1, -last, number), (0, -first, -number)
            else:
                orders = (2, number, 0), (2, number, 1)
            insertions.append(_Insertion(first, orders[0], opening, -1, -1))
            insertions.append(_Insertion(last, orders[1], closing, -1, -1))
        return insertions

    def _frame(self, parts: "Sequence[_Part]", tail: Sequence[int]) -> EntitySequence:
        """Return one text, or two, with special pieces around them."""
        tokens = self.tokens
        framed = [_special(tokens.before), parts[0]]
        for part in parts[1:]:
            framed += [_special(tokens.between), part]
        framed.append(_special([*tail, *tokens.after]))
        ids, starts, ends = (np.concatenate([part[field] for part in framed]) for field in range(3))
        types = np.zeros(len(ids), np.int64)
        if len(parts) > 1:
            types[sum(len(part.ids) for part in framed[:3]) :] = tokens.second
        entities = tuple(entities for part in parts for entities in part.entities)
        return EntitySequence(ids, entities, types, starts, ends)


class _Mention(NamedTuple):
    """A mention by its word pieces, end exclusive."""

    first: int
    end: int
    span: EntitySpan


class _Name(NamedTuple):
    """The span of a name in its text, and the word pieces of its markers."""

    start: int
    end: int
    opening: int
    closing: int


class _Insertion(NamedTuple):
    """A piece that is put in before the word piece at *position*; those at one position stand by *order*."""

    position: int
    order: tuple[int, int, int]
    id: int
    start: int
    end: int


class _Part(NamedTuple):
    """One text of a sequence, or special pieces."""

    ids: Numbers
    starts: Numbers
    ends: Numbers
    entities: tuple[tuple[int, ...], ...] = ()


_ENTITY_ORDER: Final = (3, 0, 0)
"""Entities stand behind all markers: within those of their names."""


def _special(ids: Sequence[int]) -> _Part:
    none = np.full(len(ids), -1, np.int64)
    return _Part(np.array(ids, np.int64), none, none)
