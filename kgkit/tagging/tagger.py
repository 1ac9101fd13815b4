"""A trained tagger: documents in, documents with the names that it found in them out.

Names are sought in one sentence at a time; where sentences are not known, in stretches of 256 words at most,
each of which ends where it is least likely that a name goes on. Where a document has tokens, names are
widened to begin and end where these do; of two that meet in one token the likelier stays.

    N  words of a document    L  labels
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kgkit.encoder import Encoder
from kgkit.encoder.batches import batches
from kgkit.encoder.loading import check_installed
from kgkit.errors import StaleModel
from kgkit.evaluation.ner import Name, NamedDocument, NameScores, score_names
from kgkit.heads.arrays import softmax
from kgkit.heads.word_network import TaggedSpan, WordNetwork, decode
from kgkit.inputs.tagging import DocumentWords, TaggingConfig, TaggingWindow, WordReader, tagger_inputs
from kgkit.models.kinds import TaggerManifest
from kgkit.models.manifest import broken_weights, checking_settings
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention, TypedWord
from kgkit.types import Document, Matrix, Mention, Numbers

if TYPE_CHECKING:
    from kgkit.heads.tagger import WordTagger
    from kgkit.models.opening import Opening

HEAD: Final = "head"

_LEAST, _MOST = 1_024, 8_192  # word pieces of a batch
_MAX_WORDS: Final = 256  # words
_AT_ONCE: Final = 64  # stretches that names are sought in


class Tagger(MentionTagger):
    """Finds names with an encoder that was fine-tuned for it, or over one that stays as it is.

    Args:
        head: what labels words: a network over the encoder of *reader*, or a head with an encoder of its own,
            by torch.
        reader: of documents, as they were read in training.
        name: what it is called by.

    Examples:
        >>> tagger = Tagger.open("conll")
        >>> [document] = tagger(["EU rejects German call."])
        >>> [(mention.text, mention.type) for mention in document.mentions]
        [('EU', 'ORG'), ('German', 'MISC')]
    """

    def __init__(self, head: "WordTagger | WordNetwork", reader: WordReader, *, name: str = "tagger") -> None:
        super().__init__(name)
        self.head, self.reader = head, reader

    @classmethod
    def open_folder(cls, folder: Path, manifest: TaggerManifest, *, device: str = "auto") -> "Tagger":
        """Open the tagger in *folder*, of which *manifest* tells; the rest is as in `open`."""
        head: Any
        if manifest.frozen:
            encoder = _encoder_of(manifest, device)
            head = WordNetwork.load(folder / HEAD, encoder.width, encoder.depth)
        else:
            check_installed()
            from kgkit.heads.tagger import WordTagger  # now that torch is known to be there

            head = WordTagger.from_pretrained(folder / HEAD, device=device)
            encoder = head.reads
        with checking_settings(folder):
            config = msgspec.convert(manifest.reader, TaggingConfig)
            reader = WordReader(encoder, config, lowercase=head.config.lowercase)
        return cls(head, reader, name=manifest.name)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of names."""
        return self.head.config.types

    def typed_words(self, documents: Sequence[Document]) -> list[list[TypedWord]]:
        """Return the words of each document with the probabilities of their types.

        They are those of each word by itself, before decoding.
        """
        results = []
        words = [self.reader(document) for document in documents]
        for document, logits in zip(words, self._logits(words), strict=True):
            labels = softmax(logits)  # (N, L)
            types = np.concatenate([labels[:, :1], labels[:, 1::2] + labels[:, 2::2]], axis=1)
            spans = zip(document.starts.tolist(), document.ends.tolist(), types.tolist(), strict=True)
            results.append([TypedWord(start, end, tuple(row)) for start, end, row in spans])
        return results

    def mentions(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the names in each document, whatever mentions it has: `TaggedMention`s, in order."""
        words = [self.reader(document) for document in documents]
        logits = self._logits(words)
        ranges = [
            (number, begin, end)
            for number, (document, read) in enumerate(zip(documents, words, strict=True))
            for begin, end in _sentence_ranges(document, read, logits[number])
        ]
        mentions: list[list[TaggedMention]] = [[] for _ in documents]
        tokens = [np.array(document.tokens or (), np.int64).reshape(-1, 2) for document in documents]
        for part, names in self._decoded(ranges, logits):
            for (number, begin, _), spans in zip(part, names, strict=True):
                text, starts, ends = documents[number].text, words[number].starts, words[number].ends
                for span in spans:
                    start, end = int(starts[begin + span.first]), int(ends[begin + span.end - 1])
                    start, end = _widened(tokens[number], start, end)
                    kind, score = self.head.config.types[span.type], round(span.score, 6)
                    mentions[number].append(
                        TaggedMention(start, end, text[start:end], type=kind, score=score)
                    )
        return [_without_overlaps(names) for names in mentions]

    def _logits(self, words: Sequence[DocumentWords]) -> list[Matrix]:
        """Return the logits of the words of each document, (N, L).

        Raises:
            DamagedModel: if one is no number.
        """
        results = [np.zeros((len(document), self.head.config.labels), np.float32) for document in words]
        readings = [
            (number, reading) for number, document in enumerate(words) for reading in document.windows
        ]
        for row, logits in self._window_logits([window for _, window in readings]):
            number, window = readings[row]
            if not np.isfinite(logits).all():
                raise broken_weights(self.name, "gives words no probabilities")
            results[number][window.begin : window.begin + len(window.firsts)] = logits
        return results

    def _window_logits(self, windows: Sequence[TaggingWindow]) -> Iterator[tuple[int, Matrix]]:
        """Yield which window, and the logits of its own words (W, L)."""
        if isinstance(self.head, WordNetwork):
            tokens = [window.ids.tolist() for window in windows]
            for rows, states in self.reader.encoder.layers(tokens, self.head.config.layers):
                for row, features in zip(rows.tolist(), states, strict=True):
                    firsts = windows[row].firsts
                    yield row, self.head(features[firsts], windows[row].shapes[firsts])
            return
        import torch

        device = self.head.reads.model.device
        fast = self.head.reads.dtype == "bfloat16"
        ids = [window.ids for window in windows]
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=fast):
            for batch in batches(ids, least=_LEAST, most=_MOST, padding=self.reader.padding):  # type: ignore[arg-type]
                chosen = [windows[row] for row in batch.rows]
                inputs = tagger_inputs(chosen, padding=self.reader.padding).to(device)
                logits = self.head(inputs).cpu().numpy()  # (n, W, L)
                for row, own, window in zip(batch.rows.tolist(), logits, chosen, strict=True):
                    yield row, own[: len(window.firsts)]

    def _decoded(
        self, ranges: Sequence[tuple[int, int, int]], logits: Sequence[Matrix]
    ) -> Iterator[tuple[list[tuple[int, int, int]], list[list[TaggedSpan]]]]:
        """Yield stretches, some at a time, with the names in them."""
        order = sorted(ranges, key=lambda bounds: bounds[2] - bounds[1])
        for at in range(0, len(order), _AT_ONCE):
            part = order[at : at + _AT_ONCE]
            longest = part[-1][2] - part[-1][1]
            filled = np.zeros((len(part), longest, self.head.config.labels), np.float32)
            is_word = np.zeros((len(part), longest), np.bool_)
            for row, (number, begin, end) in enumerate(part):
                filled[row, : end - begin] = logits[number][begin:end]
                is_word[row, : end - begin] = True
            yield part, decode(filled, is_word)


def open_tagger(folder: Path, manifest: TaggerManifest, opening: "Opening") -> Tagger:
    """Open a tagger: the role `tagger` of the kind of that name."""
    return Tagger.open_folder(folder, manifest, device=opening.device)


def _encoder_of(manifest: TaggerManifest, device: str) -> Encoder:
    """Return the encoder that a tagger reads which left it as it is.

    Raises:
        NotThere: if it is not installed.
        StaleModel: if it is another one of that name.
    """
    encoder = Encoder.load(manifest.encoder, device=device)
    if encoder.fingerprint != manifest.fingerprint:
        raise StaleModel(
            f"the tagger {manifest.name} reads the encoder {manifest.encoder} of the fingerprint "
            f"{manifest.fingerprint}; the one that is here has {encoder.fingerprint}"
        )
    return encoder


def _sentence_ranges(document: Document, words: DocumentWords, logits: Matrix) -> Iterator[tuple[int, int]]:
    """Yield the ranges of words that names are sought in."""
    begins = np.searchsorted(words.starts, [start for start, _ in document.sentences or ()], "left")
    cuts = sorted({0, len(words), *begins.tolist()})
    for first, last in pairwise(cuts):
        begin = first
        while last - begin > _MAX_WORDS:
            part = logits[begin + _MAX_WORDS // 2 : begin + _MAX_WORDS]
            inside = part[:, 2::2].max(1) - part[:, [0, *range(1, part.shape[1], 2)]].max(1)
            end = begin + _MAX_WORDS // 2 + int(inside.argmin())
            yield begin, end
            begin = end
        yield begin, last


def _widened(tokens: Numbers, start: int, end: int) -> tuple[int, int]:
    """Return the span from the beginning of the token that *start* is in to the end of that of *end*."""
    first = int(np.searchsorted(tokens[:, 1], start, "right"))
    last = int(np.searchsorted(tokens[:, 0], end, "left")) - 1
    if 0 <= first <= last < len(tokens):
        start, end = min(start, int(tokens[first, 0])), max(end, int(tokens[last, 1]))
    return start, end


def _without_overlaps(names: list[TaggedMention]) -> list[Mention]:
    """Return names by their start; of two that meet the likelier one."""
    results: list[Mention] = []
    score = 0.0
    for name in sorted(names, key=lambda mention: mention.start):
        if results and name.start < results[-1].end:
            if name.score <= score:
                continue
            results.pop()
        results.append(name)
        score = name.score
    return results


def score_tagger(
    tagger: MentionTagger,
    documents: Iterable[NamedDocument],
    on_document: Callable[[NamedDocument, list[Name]], object] | None = None,
) -> NameScores:
    """Return the score of the names that a tagger finds in documents.

    Args:
        tagger: tagger that is scored.
        documents: documents with their names.
        on_document: function that receives each document, and the names that the tagger finds in it.
    """
    scores, waiting = NameScores(), deque[NamedDocument]()

    def texts() -> Iterator[Document]:
        for gold in documents:
            waiting.append(gold)
            yield msgspec.structs.replace(gold.document, mentions=None)

    for document in tagger(texts()):
        gold = waiting.popleft()
        names = [
            Name(mention.start, mention.end, mention.type)
            for mention in document.mentions or ()
            if isinstance(mention, TaggedMention)
        ]
        scores += score_names(gold.names, names, gold.document.tokens or ())
        if on_document is not None:
            on_document(gold, names)
    return scores
