"""What KAM-BERT reads: texts, the maps of their words spread over word pieces, and auxiliary words.

    B  texts of a batch    N  word pieces of the longest, special ones included    W  words of a text
    T  pieces of auxiliary words, with one empty place before them                 k  maps

Maps of a pair of texts are one: words of both are correlated, and their entities may be neighbours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.entity_spans import EntitySpan
from kgkit.inputs.maps import (
    MapName,
    PhraseSpan,
    WordAssociations,
    WordMap,
    auxiliary_words,
    correlation_map,
    join_maps,
    knowledge_map,
    phrase_map,
    word_ranges,
)
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import SIZE, TextReader, TokenizedText
from kgkit.kb import KnowledgeBase
from kgkit.text import fold, token_spans
from kgkit.types import NO_CANDIDATES, Numbers

if TYPE_CHECKING:
    from kgkit.heads.kambert import KamBertInputs

_CACHE_BYTES: Final = 16_000_000

WORDS: Final = "words"
"""The name that the words of a text have among its mentions."""


class AnnotatedText(NamedTuple):
    """A text, and what its maps are made of: spans in code points, end exclusive.

    Attributes:
        text: the text.
        names: names in it, for the map `entity`.
        phrases: phrases in it with their levels, for the map `phrase`; chunks have level 1.
        links: its entities by the name of their knowledge base, for the map `knowledge`.
    """

    text: str
    names: Sequence[tuple[int, int]] = ()
    phrases: Sequence[PhraseSpan] = ()
    links: Mapping[str, Sequence[EntitySpan]] = {}


class TextMaps(NamedTuple):
    """The maps of a text, or of a pair.

    Attributes:
        maps: maps of its words; behind these stand, in `correlation`, the auxiliary words.
        size: W, words of all texts.
        auxiliary: auxiliary words.
    """

    maps: Mapping[MapName, WordMap]
    size: int
    auxiliary: tuple[str, ...] = ()


class MappedText(NamedTuple):
    """A text, or a pair, as a KAM-BERT reads it.

    Attributes:
        text: its word pieces; the mentions `WORDS` are those of its words.
        maps: maps of its words.
    """

    text: TokenizedText
    maps: TextMaps


class MapBuilder:
    """Makes the maps of texts.

    Args:
        maps: names of the maps.
        table: values of pairs of words, for the map `correlation` and for auxiliary words.
        kbs: knowledge bases by name, for the map `knowledge`.
        auxiliary: number of auxiliary words of a text, or of a pair.

    Examples:
        >>> builder = MapBuilder(["entity"])
        >>> text = AnnotatedText("Tim Cook is in Beijing", names=[(0, 8), (15, 22)])
        >>> builder([text]).maps["entity"].nonzero()
        5
    """

    def __init__(
        self,
        maps: Sequence[MapName],
        table: WordAssociations | None = None,
        kbs: Mapping[str, KnowledgeBase] | None = None,
        auxiliary: int = 0,
    ) -> None:
        self.maps, self.table, self.kbs, self.auxiliary = tuple(maps), table, dict(kbs or {}), auxiliary

    def __call__(
        self,
        texts: Sequence[AnnotatedText],
        read: Numbers | None = None,
    ) -> TextMaps:
        """Return the maps of a text, or of a pair.

        Args:
            texts: one text, or two.
            read: numbers of the words, ascending, that have cells, and by which auxiliary words are chosen;
                None: all of them.
        """
        parts = _texts_in_words(texts, read)
        size = parts[-1].shift + len(parts[-1].words) if parts else 0
        folded = {
            part.shift + word: fold(part.text.text[slice(*part.words[word])])
            for part in parts
            for word in part.read.tolist()
        }
        visible, words = np.array([*folded], np.int64), [*folded.values()]
        auxiliary = [] if self.table is None else auxiliary_words(words, self.table, self.auxiliary)
        maps = dict[MapName, WordMap]()
        for name in self.maps:
            if name == "correlation":
                assert self.table is not None  # the map has one
                where = np.append(visible, size + np.arange(len(auxiliary)))
                correlations = correlation_map(words, self.table, auxiliary)
                maps[name] = correlations.spread(where, where + 1, size + len(auxiliary))
            else:
                maps[name] = self._map_of_spans(name, parts, size)
        return TextMaps(maps, size, tuple(auxiliary))

    def _map_of_spans(self, name: MapName, parts: "Sequence[_TextInWords]", size: int) -> WordMap:
        """Return a map that is made of the spans of texts."""
        if name != "knowledge":
            phrases = list[PhraseSpan]()
            for part in parts:
                names = [PhraseSpan(*span) for span in part.text.names]
                own = names if name == "entity" else part.text.phrases
                words = part.ranges(phrase[:2] for phrase in own)
                phrases += [
                    PhraseSpan(first, end, phrase.level)
                    for phrase, (first, end) in zip(own, words, strict=True)
                ]
            return phrase_map(size, phrases)
        maps = []
        for kb_name, kb in self.kbs.items():
            links = [part.text.links.get(kb_name, ()) for part in parts]
            ranges = [
                words
                for own, part in zip(links, parts, strict=True)
                for words in part.ranges(link[:2] for link in own)
            ]
            entities = [link.entity for own in links for link in own]
            maps.append(knowledge_map(size, ranges, entities, kb))
        return join_maps(maps)


class _TextInWords(NamedTuple):
    """A text of those that maps are made of.

    Attributes:
        text: the text.
        words: spans of its words, in code points.
        shift: words of the texts before it.
        read: (R,) numbers of its words that have cells, ascending.
    """

    text: AnnotatedText
    words: Sequence[tuple[int, int]]
    shift: int
    read: Numbers

    def ranges(self, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the words of each span that are read, counted over all texts; an empty range: none."""
        end_of_read = int(self.read.max(initial=-1)) + 1
        ranges = np.minimum(word_ranges(self.words, spans), end_of_read) + self.shift
        return [(first, end) for first, end in ranges.tolist()]


def _texts_in_words(texts: Sequence[AnnotatedText], read: Numbers | None) -> list[_TextInWords]:
    """Return texts with their words, and how many of them are read; None: all."""
    parts, shift = list[_TextInWords](), 0
    for text in texts:
        words = token_spans(text.text)
        numbers = np.arange(len(words)) if read is None else np.asarray(read, np.int64) - shift
        numbers = numbers[(numbers >= 0) & (numbers < len(words))]
        parts.append(_TextInWords(text, words, shift, numbers))
        shift += len(words)
    return parts


class WordTextReader(TextReader):
    """Reads texts, and which word pieces each of their words has.

    The words are those of `kgkit.text.token_spans`; they stand among the mentions of a text, as `WORDS`, so
    that markers which are put into it move them.

    Args:
        encoder: encoder whose tokenizer cuts the texts.
        size: number of word pieces of a text, special ones included; what is longer is cut, the longer of a
            pair first, and a warning is logged once.
    """

    def __init__(self, encoder: Encoder, *, size: int = SIZE) -> None:
        super().__init__(encoder, size=size)

    def __call__(self, texts: Iterable[tuple[str, ...]]) -> Iterator[TokenizedText]:
        """Yield each text, or pair, as it is read.

        Raises:
            UsageError: if a tuple has more texts than two, or none.
        """
        for example in texts:
            if not 1 <= len(example) <= 2:
                raise UsageError(f"a text or a pair of texts is read, not {len(example)} texts")
            text, parts = self.tokenize(example)
            spans, indices, shift = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)], 0
            for words, part in zip(map(token_spans, example), parts, strict=True):
                ranges = np.minimum(part.pieces.ranges(words), part.length)
                own = np.flatnonzero(ranges[:, 0] < ranges[:, 1])
                spans.append(ranges[own] + part.begin)
                indices.append(own + shift)
                shift += len(words)
            count = sum(map(len, spans))
            mentions = MentionSpans(
                np.concatenate(spans), [NO_CANDIDATES] * count, np.zeros(count, np.bool_),
                np.concatenate(indices),
            )  # fmt: skip
            yield text._replace(mentions={WORDS: mentions})

    def words_read(self, texts: tuple[str, ...]) -> Numbers:
        """Return the numbers of the words of a text, or of a pair, that have a piece which is read.

        There are no more of them than pieces, however long a text is. Markers are not counted: beside them
        fewer words are read.
        """
        [text] = self([texts])
        return text.mentions[WORDS].indices


class KamBertReader(WordTextReader):
    """Reads texts for a KAM-BERT, with their maps.

    Args:
        encoder: encoder whose tokenizer cuts them.
        builder: what makes their maps; one without maps and auxiliary words for a control.
        size: number of word pieces of a text, special ones included; auxiliary words are not counted, and
            have as many pieces at most: words for which there is no room are left out.

    Raises:
        UsageError: as `TextReader` does.

    Examples:
        >>> reader = KamBertReader(encoder, MapBuilder(["entity"]))
        >>> text = reader.read([AnnotatedText("Tim Cook is in Beijing", names=[(0, 8), (15, 22)])])
        >>> kambert(reader.batch([text])).last_hidden_state.shape
        torch.Size([1, 7, 384])
    """

    def __init__(self, encoder: Encoder, builder: MapBuilder, *, size: int = SIZE) -> None:
        super().__init__(encoder, size=size)
        self.builder = builder
        self._pieces = BoundedCache[str, tuple[int, ...]](_CACHE_BYTES)  # of auxiliary words

    def read(self, texts: Sequence[AnnotatedText]) -> MappedText:
        """Return a text, or a pair of texts, with its maps.

        Raises:
            UsageError: if there are more texts than two, or none.
        """
        [text] = self([tuple(text.text for text in texts)])
        return MappedText(text, self.builder(texts, read=text.mentions[WORDS].indices))

    def batch(self, texts: Sequence[MappedText]) -> "KamBertInputs":
        """Return texts padded to the longest, with the cells of their maps."""
        import torch

        from kgkit.heads.kambert import KamBertInputs

        inputs = self.pad([text.text for text in texts])
        length = inputs["input_ids"].shape[1]  # N
        pieces = [self._auxiliary_pieces(text.maps.auxiliary) for text in texts]
        counts = [sum(map(len, own)) for own in pieces]
        # An empty place between a text and its auxiliary words: no kernel joins the last of the one and the
        # first of the others, whatever padding stands between them.
        auxiliary = np.full((len(texts), max(counts) + 1 if any(counts) else 0), self.padding, np.int64)
        real = np.zeros(auxiliary.shape, np.bool_)
        cells, values = [np.zeros((0, 4), np.int64)], [np.zeros(0, np.float32)]
        for row, (text, own) in enumerate(zip(texts, pieces, strict=True)):
            if own:
                auxiliary[row, 1 : counts[row] + 1] = [piece for word in own for piece in word]
                real[row, 1 : counts[row] + 1] = True
            begins, ends = _piece_ranges(text, list(map(len, own)), length + 1)
            for index, name in enumerate(self.builder.maps):
                piece_cells = text.maps.maps[name].spread(begins, ends, length + auxiliary.shape[1]).cells()
                where = np.full((2, len(piece_cells.values)), [[row], [index]])
                cells.append(np.stack([*where, piece_cells.rows, piece_cells.columns], 1))
                values.append(piece_cells.values)
        return KamBertInputs(
            inputs["input_ids"],
            inputs["attention_mask"].bool(),
            torch.from_numpy(np.concatenate(cells)),
            torch.from_numpy(np.concatenate(values)),
            torch.from_numpy(auxiliary),
            torch.from_numpy(real),
            inputs.get("token_type_ids"),
        )

    def _auxiliary_pieces(self, words: Iterable[str]) -> list[tuple[int, ...]]:
        """Return the word pieces of auxiliary words; of those for which there is no room, none."""
        pieces, room = list[tuple[int, ...]](), self.size
        for word in words:
            cut = self._pieces.get(word)
            if cut is None:
                cut = self._pieces.keep(word, self.tokens.inside(word))
            own = cut if len(cut) <= room else ()
            pieces.append(own)
            room -= len(own)
        return pieces


def _piece_ranges(text: MappedText, lengths: Sequence[int], first: int) -> tuple[Numbers, Numbers]:
    """Return the first piece, and the piece behind the last, of each word and each auxiliary word.

    Args:
        text: text with its words.
        lengths: number of pieces of each auxiliary word.
        first: position of the first of these pieces.
    """
    words = text.text.mentions[WORDS]
    size = text.maps.size
    begins, ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
    begins[words.indices], ends[words.indices] = words.spans.T
    # A word without a piece, or cut off, is where the next one begins, so that a span over it keeps its ends.
    has_pieces = np.zeros(size, np.bool_)
    has_pieces[words.indices] = True
    following = np.append(begins, ends.max(initial=0))
    for word in np.flatnonzero(~has_pieces)[::-1].tolist():
        following[word] = following[word + 1]
    preceding = ends.copy()
    for word in np.flatnonzero(~has_pieces).tolist():
        preceding[word] = preceding[word - 1] if word else 0
    begins, ends = following[:size], preceding
    behind = first + np.cumsum([0, *lengths])
    return np.append(begins, behind[:-1]), np.append(ends, behind[1:])
