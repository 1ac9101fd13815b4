"""What E-BERT-MLM reads: a part of a document in which the entity of a span is masked.

(Poerner et al. 2020, on entity linking.)

    P  word pieces of a part    C  candidates of a span    N  spans of a batch    S  stored vector width

    [CLS] l [E-MASK] / s * r [SEP]

s is the span, l and r what stands beside it, [E-MASK] the mean of the vectors of the span's candidates. A
span that was linked before stands as its entity's vector, without its words.

Documents of more pieces than are read at once are split in two at the sentence end nearest the middle, and
these again, until all parts fit; no cut goes through a mention, nor through a word, if there is another cut.

Packed, all spans of a part that do not overlap are read in one sequence, each with its own [E-MASK], slash
and star. A sequence then has three pieces more for each of its spans, and parts are so short that these fit.

Departures:
    p(a), of which the score takes the logarithm, is 1e-6 (`LEAST_PRIOR`) at least: of a prior of 0 the paper
    says nothing.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.plain_text import sentence_begins
from kgkit.inputs.entity_sequences import EntitySequence, Piece, build_sequence, collate_sequences
from kgkit.inputs.entity_vectors import StoredEntityVectors
from kgkit.inputs.pieces import WordPieces
from kgkit.inputs.texts import TextReader
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Document, Numbers

if TYPE_CHECKING:
    from kgkit.heads.ebert_linker import EBertLinkerInputs


class Cuts(NamedTuple):
    """Positions between word pieces, by what a cut there would go through.

    Attributes:
        sentences: (·,) positions that sentences begin at.
        words: (·,) positions that words begin at.
        crossed: (P + 1,) bool, whether a span goes over a position.
    """

    sentences: Numbers
    words: Numbers
    crossed: NDArray[np.bool_]

    def nearest_middle(self, begin: int, end: int) -> int:
        """Return where a range of word pieces is cut: at the sentence end nearest the middle.

        Where no sentence ends, it is cut between words, else between word pieces; through a span only where
        spans are everywhere.
        """
        inside = np.arange(begin + 1, end)
        whole = inside[~self.crossed[inside]]
        choices = np.intersect1d(whole, self.sentences), np.intersect1d(whole, self.words), whole, inside
        cuts = next(positions for positions in choices if len(positions))
        return int(cuts[np.abs(2 * cuts - (begin + end)).argmin()])


def find_cuts(document: Document, pieces: WordPieces, spans: Sequence[tuple[int, int]]) -> Cuts:
    """Return where a document may be cut; a word begins behind what no word piece stands for, as a space.

    Args:
        document: document; where it has no sentences, they are looked for.
        pieces: its P word pieces.
        spans: spans of word pieces, end exclusive, that no cut is to go through.
    """
    crossed = np.zeros(len(pieces) + 1, np.bool_)
    for first, end in spans:
        crossed[first + 1 : end] = True
    words = np.flatnonzero(pieces.starts[1:] > pieces.ends[:-1]) + 1
    return Cuts(_sentence_ends(document, pieces), words, crossed)


def _sentence_ends(document: Document, pieces: WordPieces) -> Numbers:
    """Return the positions of the word pieces that sentences begin with, but the first."""
    if document.sentences:
        begins = [begin for begin, _ in document.sentences]
    else:
        begins = sentence_begins(document.text)
    return np.unique([pieces.within(begin, len(document.text))[0] for begin in begins] or [0]).astype(
        np.int64
    )


ADDED: Final = 3
"""Pieces that a span with a masked entity has beside its own: [E-MASK], slash, star."""


class CandidateSpan(NamedTuple):
    """A span that may be linked, in a part of a document.

    Attributes:
        first, end: its word pieces in the part, end exclusive.
        mention: index of the mention in its document.
        rows: (C,) indices of the candidates that have vectors, among all that the mention has.
        ids: their C ids in the knowledge base.
        log_priors: (C,) float32, log p(a) of each, p(a) being `LEAST_PRIOR` at least.
    """

    first: int
    end: int
    mention: int
    rows: Numbers
    ids: tuple[int, ...]
    log_priors: NDArray[np.float32]

    def overlaps(self, other: "CandidateSpan") -> bool:
        """Say whether both have a word piece in common."""
        return self.first < other.end and other.first < self.end


class DocumentPart(NamedTuple):
    """A part of a document that is read at once.

    Attributes:
        ids: (P,) int64, its word pieces, without special ones.
        spans: spans in it that may be linked, by their first piece, the longest first.
    """

    ids: Numbers
    spans: tuple[CandidateSpan, ...]


EntityLink = tuple[CandidateSpan, int]
"""A span that is linked, and the id of its entity."""


class MaskedSpans(NamedTuple):
    """A sequence, and the spans in it whose entities are masked.

    Attributes:
        sequence: word pieces and entities, special pieces included.
        positions: position of each [E-MASK].
        spans: the spans, in the same order.
    """

    sequence: EntitySequence
    positions: tuple[int, ...]
    spans: tuple[CandidateSpan, ...]


class EBertLinkingReader(TextReader):
    """Gives an E-BERT-MLM documents to read.

    Args:
        encoder: encoder whose tokenizer cuts them.
        vectors: vectors of entities: candidates without one are not scored.
        size: pieces of a sequence, [E-MASK], slash, star and special ones included; what is longer is split.
        packed: whether spans that do not overlap are read in one sequence; the paper reads each by itself.

    Raises:
        UsageError: if the encoder reads fewer pieces, or its tokenizer lacks a slash or a star.

    Examples:
        >>> reader = EBertLinkingReader(encoder, StoredEntityVectors(kb.vectors("text")))
        >>> [part] = reader.read(document)
        >>> inputs = reader.batch([reader.mask(part, spans) for spans in reader.passes(part, part.spans)])
        >>> linker(inputs).shape                                            # (N, C + 1)
    """

    def __init__(
        self,
        encoder: Encoder,
        vectors: StoredEntityVectors,
        *,
        size: int,
        packed: bool = False,
    ) -> None:
        super().__init__(encoder, size=size)
        self.vectors, self.packed = vectors, packed
        if self.room(1) < ADDED + 1:
            raise UsageError(f"texts of {size} pieces have no room for a span and its {ADDED} pieces")
        self.slash, self.star = (self._piece(sign, encoder) for sign in "/*")

    def read(self, document: Document) -> list[DocumentPart]:
        """Return a document as parts that are read one by one; together they have all of its words.

        Spans are its mentions with a candidate that has a vector. One that a cut goes through, or that is
        longer than a part, is in none.
        """
        pieces = self.tokens(document.text)
        spans = self._spans(document, pieces)
        cuts = find_cuts(document, pieces, [(span.first, span.end) for span in spans])
        parts = []
        for begin, end, own in self._split(0, len(pieces), spans, cuts):
            moved = (span._replace(first=span.first - begin, end=span.end - begin) for span in own)
            parts.append(DocumentPart(pieces.ids[begin:end], tuple(moved)))
        return parts

    def passes(self, part: DocumentPart, spans: Sequence[CandidateSpan]) -> list[tuple[CandidateSpan, ...]]:
        """Return spans of a part, by the sequence that each is masked in.

        A sequence has one of them; packed, it has as many as do not overlap: each span, by its first piece
        and the longest first, is in the first sequence in which it overlaps none and there is room.
        """
        if not self.packed:
            return [(span,) for span in spans]
        return _groups(spans, max(1, (self.room(1) - len(part.ids)) // ADDED))

    def mask(
        self, part: DocumentPart, spans: Sequence[CandidateSpan], links: Sequence[EntityLink] = ()
    ) -> MaskedSpans:
        """Return the sequence of a part in which the entities of spans, in their order, are masked.

        Args:
            part: part of a document.
            spans: spans whose entities are masked; none overlaps another, or one that is linked.
            links: spans that were linked before, and are read as their entities.
        """
        pieces: list[Piece] = [*self.tokens.before]
        positions, at = [], 0
        words: list[int] = part.ids.tolist()
        marks = [*((span, None) for span in spans), *links]
        for span, entity in sorted(marks, key=lambda mark: mark[0].first):
            pieces += words[at : span.first]
            if entity is None:
                positions.append(len(pieces))
                pieces += [span.ids, self.slash, *words[span.first : span.end], self.star]
            else:
                pieces.append((entity,))
            at = span.end
        pieces += [*words[at:], *self.tokens.after]
        return MaskedSpans(build_sequence(pieces), tuple(positions), tuple(spans))

    def batch(self, sequences: Sequence[MaskedSpans]) -> "EBertLinkerInputs":
        """Return sequences padded to the longest, with the candidates of their masked entities.

        The vectors of all candidates are taken from where they are mapped, each once.
        """
        import torch

        from kgkit.heads.ebert_linker import EBertLinkerInputs

        text = collate_sequences(
            [masked.sequence for masked in sequences], self.vectors, padding=self.padding, typed=self.typed
        )
        spans = [span for masked in sequences for span in masked.spans]
        masks = [(row, position) for row, masked in enumerate(sequences) for position in masked.positions]
        flat = np.array([entity for span in spans for entity in span.ids], np.int64)
        unique, rows = np.unique(flat, return_inverse=True)
        counts = np.array([len(span.ids) for span in spans], np.int64)
        owners = np.repeat(np.arange(len(spans)), counts)
        columns = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (len(spans), int(counts.max(initial=0)))
        candidates, log_priors = np.full(shape, -1, np.int64), np.zeros(shape, np.float32)
        candidates[owners, columns] = rows
        log_priors[owners, columns] = np.concatenate(
            [np.empty(0, np.float32), *(span.log_priors for span in spans)]
        )
        return EBertLinkerInputs(
            text,
            torch.tensor(masks, dtype=torch.int64).reshape(-1, 2),
            torch.from_numpy(self.vectors.gather(unique)),
            torch.from_numpy(candidates),
            torch.from_numpy(log_priors),
        )

    def _piece(self, sign: str, encoder: Encoder) -> int:
        piece = self.tokens.sign(sign)
        if piece is None or piece == encoder.tokenizer.unk_token_id:
            raise UsageError(f"the tokenizer of {encoder.name} has no word piece {sign}, which marks spans")
        return piece

    def _spans(self, document: Document, pieces: WordPieces) -> list[CandidateSpan]:
        """Return the mentions of a document whose candidates have vectors, by their first piece."""
        mentions = document.mentions or []
        candidates = [mention.candidates or NO_CANDIDATES for mention in mentions]
        counts = [len(each) for each in candidates]
        exists = self.vectors.exist(
            np.concatenate([np.empty(0, np.int64), *(each.ids for each in candidates)])
        )
        spans = []
        for index, has_vector in enumerate(np.split(exists, np.cumsum(counts)[:-1]) if mentions else ()):
            first, end = pieces.within(mentions[index].start, mentions[index].end)
            rows = np.flatnonzero(has_vector)
            if first < end and len(rows):
                ids = tuple(map(int, candidates[index].ids[rows]))
                priors = candidates[index].priors[rows]
                log_priors = np.log(np.maximum(priors, LEAST_PRIOR)).astype(np.float32)
                spans.append(CandidateSpan(first, end, index, rows, ids, log_priors))
        return sorted(spans, key=lambda span: (span.first, -span.end))

    def _split(
        self,
        begin: int,
        end: int,
        spans: Sequence[CandidateSpan],
        cuts: Cuts,
    ) -> Iterator[tuple[int, int, list[CandidateSpan]]]:
        """Yield the parts of a range of word pieces, with their spans: itself if it fits, else halves."""
        own = [span for span in spans if begin <= span.first and span.end <= end]
        masked = max(map(len, _groups(own, len(own))), default=1) if self.packed else 1
        if end - begin + ADDED * masked <= self.room(1) or end - begin < 2:
            yield begin, end, own
            return
        cut = cuts.nearest_middle(begin, end)
        yield from self._split(begin, cut, own, cuts)
        yield from self._split(cut, end, own, cuts)


def _groups(spans: Sequence[CandidateSpan], most: int) -> list[tuple[CandidateSpan, ...]]:
    """Return spans by the sequence that each is masked in, *most* in one at most."""
    groups: list[list[CandidateSpan]] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.end)):
        fitting = (group for group in groups if group[-1].end <= span.first and len(group) < most)
        group = next(fitting, None)
        if group is None:
            groups.append([span])
        else:
            group.append(span)
    return [tuple(group) for group in groups]
