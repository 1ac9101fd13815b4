"""The examples of a task as KnowBert reads them: Peters et al. (2019), section 4.3.

    relation    a sentence, [E1] and [/E1] around one name, [E2] and [/E2] around the other. Where the data
                (TACRED's) have types of names, a piece for each follows the sentence, such as
                [SUBJECT=PERSON]
    typing      a sentence, [E] and [/E] around a name
    tagging     a sentence, read at the first word piece of each token
    others      a text, or two, read at the first piece, [CLS]

    W  answers of a text    P  word pieces that one is read from

Names are read at [E1] and [E2], joined, or at [E].

Departures:
    The code that was released with the paper puts a [SEP] before each of the two pieces for types; here they
    follow the last word, and each other. What is read of a text as a whole: see `kgkit.heads.classifier`.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby, tee
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example, marker_pairs
from kgkit.inputs.kambert import WordTextReader
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.methods.contract import Reading, first_pieces
from kgkit.types import Numbers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_log = logging.getLogger(__name__)


class ExampleReader:
    """Gives a KnowBert the examples of a task.

    A text has at most `reader.size` word pieces, whatever is put into it: room for that is left where texts
    are cut. So `size` is chosen as without it: up to what the encoder reads.

    Args:
        reader: reader of texts.
        tokenizer: tokenizer of the encoder, which has the special pieces.
        specials: special pieces, as `Task.specials` has them.

    Raises:
        UsageError: if the tokenizer lacks a special piece.

    Examples:
        >>> reader = ExampleReader(knowbert_reader, tokenizer, task.specials(examples))
        >>> [reading] = reader(examples[:1])
        >>> reading.positions
        array([[2, 8]])
    """

    def __init__(
        self,
        reader: KnowBertReader | WordTextReader,
        tokenizer: "PreTrainedTokenizerBase",
        specials: Sequence[str],
    ) -> None:
        vocabulary = tokenizer.get_vocab()
        if missing := [name for name in specials if name not in vocabulary]:
            raise UsageError(
                f"the tokenizer lacks the special piece {missing[0]}: add it, and a row for it to the "
                "embeddings, when the model is made"
            )
        self.reader = reader
        self.specials = {name: int(vocabulary[name]) for name in specials}
        self._readers: dict[
            int, KnowBertReader | WordTextReader
        ] = {}  # by the number of pieces that are put into their texts
        self._warnings: set[str] = set()

    def __call__(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example as it is read.

        Raises:
            UsageError: if one has names that there are no pieces for; if texts are so short that nothing of
                them is left beside what is put into them.
        """
        for added, group in groupby(examples, lambda example: 2 * len(example.marks) + len(example.tail)):
            first, second = tee(group)
            texts = self._reader_leaving_room(added)(example.texts for example in first)
            yield from (self._read(example, text) for example, text in zip(second, texts, strict=True))

    def _reader_leaving_room(self, added: int) -> KnowBertReader | WordTextReader:
        """Return a reader of texts that leave room for so many pieces."""
        if added not in self._readers:
            reader, tokens = copy(self.reader), self.reader.tokens
            reader.size -= added
            least = sum(map(len, (tokens.before, tokens.between, tokens.after))) + 2
            if reader.size < least:
                raise UsageError(
                    f"texts of {self.reader.size} pieces, of which {added} are markers, leave no room for "
                    f"words: read {least + added} or more"
                )
            self._readers[added] = reader
        return self._readers[added]

    def _read(self, example: Example, text: TokenizedText) -> Reading:
        if example.tokens:
            return Reading(text, self._tokens(example, text))
        names = self._names(example, text)
        ids = [[self._marker(piece, example) for piece in pair] for pair in marker_pairs(len(names))]
        # Of markers that stand together, names end before others begin; the one that begins last ends first.
        opening = sorted(range(len(names)), key=lambda n: -names[n][1])
        closing = sorted(opening, key=lambda n: names[n][0])[::-1]
        openings = [
            *((names[n][0], ids[n][0]) for n in opening),
            *((names[n][1], ids[n][1]) for n in closing if names[n][0] == names[n][1]),
        ]
        ends = [(names[n][1], ids[n][1]) for n in closing if names[n][0] < names[n][1]]
        last = len(text.ids) - len(self.reader.tokens.after)
        markers = [*ends, *openings, *((last, piece) for piece in self._tail(example))]
        position = dict(zip(opening, marker_positions(markers)[len(ends) :], strict=False))
        positions = [position[n] for n in range(len(names))] or [0]
        return Reading(insert_markers(text, markers), np.array([positions], np.int64))

    def _length(self, text: TokenizedText) -> int:
        """Return how many word pieces of the first text are read."""
        begin = len(self.reader.tokens.before)
        special = np.flatnonzero(text.special[begin:])
        return int(special[0]) if len(special) else len(text.ids) - begin

    def _tokens(self, example: Example, text: TokenizedText) -> NDArray[np.int64]:
        """Return (W, 1) the first piece of each token, in a text that nothing has been put into."""
        length, begin = self._length(text), len(self.reader.tokens.before)
        starts = self.reader.tokens(example.texts[0]).starts[:length]
        return first_pieces(starts, example.tokens, np.arange(begin, begin + length))

    def _names(self, example: Example, text: TokenizedText) -> list[tuple[int, int]]:
        """Return the pieces of each name, in a text that nothing has been put into."""
        if not example.marks:
            return []
        pieces, begin = self.reader.tokens(example.texts[0]), len(self.reader.tokens.before)
        length = self._length(text)
        names = []
        for mark in example.marks:
            first, end = pieces.within(*mark)
            if length <= first and length < len(pieces):
                self._warn_once("a name is cut off, as that of %s: it is read at the last piece", example)
                first, end = max(0, length - 1), length
            names.append((begin + first, begin + min(end, length)))
        return names

    def _marker(self, piece: str, example: Example) -> int:
        if piece not in self.specials:
            raise UsageError(
                f"example {example.id} has a name to be marked with {piece}, which is not among the special "
                f"pieces: {', '.join(self.specials) or 'there are none'}"
            )
        return self.specials[piece]

    def _tail(self, example: Example) -> list[int]:
        if any(name not in self.specials for name in example.tail):
            self._warn_once("types that the model does not know are not read, as that of %s", example)
        return [self.specials[name] for name in example.tail if name in self.specials]

    def _warn_once(self, sentence: str, example: Example) -> None:
        if sentence not in self._warnings:
            self._warnings.add(sentence)
            _log.warning(sentence, example.id)


def insert_markers(text: TokenizedText, markers: Sequence[tuple[int, int]]) -> TokenizedText:
    """Return *text* with special pieces put into it.

    A mention keeps its pieces: a marker at the first of them stands before the mention, one behind the last
    stands outside, one between them makes it longer. A marker has the type of the piece that it was put
    before; behind the last, that of the last.

    Args:
        text: text of T pieces, one at least.
        markers: pairs of a position (0 to T) and the id of the piece that goes before the piece there; those
            at one position stand in the order of the list.
    """
    if not markers:
        return text
    positions, ids = np.array(markers, np.int64).T  # (K,)
    count = len(text.ids)
    ascending = np.sort(positions)
    return TokenizedText(
        np.insert(text.ids, positions, ids),  # of equal positions it keeps the order
        np.insert(text.types, positions, text.types[np.minimum(positions, count - 1)]),
        np.insert(text.special, positions, True),
        {name: _moved(mentions, ascending) for name, mentions in text.mentions.items()},
    )


def marker_positions(markers: Sequence[tuple[int, int]]) -> list[int]:
    """Return the position of each marker in the text that `insert_markers` gives."""
    positions = np.array([position for position, _ in markers], np.int64)
    order = np.argsort(positions, kind="stable")
    positions[order] += np.arange(len(order))
    return [int(position) for position in positions]


def _moved(mentions: MentionSpans, positions: Numbers) -> MentionSpans:
    """Return mentions with the spans that they have after pieces were put in at *positions*, ascending."""
    before = np.searchsorted(positions, mentions.spans[:, 0], "right")
    inside = np.searchsorted(positions, mentions.spans[:, 1], "left")
    return mentions._replace(spans=mentions.spans + np.stack([before, inside], axis=1))
