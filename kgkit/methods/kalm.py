"""A trained KALM: perplexity of words, and, of both directions, names in documents.

models/NAME/
    model.json      `KALMManifest`
    kalm/           the model, as `KALM.save_pretrained` writes it
    words.txt       its vocabulary, a word a line

A tagger gives each word its likeliest type, by its context and its prior, equation (10) of Liu et al. (2019),
with the posterior of the type in the place of P(τ | contexts), and without the
share of type 0 in the prior of a word whose capital says something (docs/decisions/kalm-case-prior.md);
words of one type that follow each other in a sentence are one name, so that neighbours of one type melt into
one. The score of a name is the least of its words' probabilities. The words are the document's tokens; where
it has none, those of `kgkit.text`.

    N  words of a sequence    K  types    B, S  as `kgkit.heads.kalm` has them
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.loading import check_installed
from kgkit.errors import UsageError
from kgkit.evaluation.passage_scores import perplexity_of
from kgkit.evaluation.plain_text import sentence_spans
from kgkit.inputs.kalm import (
    Stretches,
    TypedVocabulary,
    WordBatch,
    load_words,
    may_be_names,
    spell_word,
    window_batch,
    word_spans,
    word_windows,
)
from kgkit.methods.kalm_settings import KALMManifest
from kgkit.methods.word_models import WordModel, WordPerplexity
from kgkit.models.manifest import broken_weights, damaged
from kgkit.models.opening import OpenModel
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention, TypedWord
from kgkit.text import token_spans
from kgkit.types import Document, Mention, Numbers, Progress

if TYPE_CHECKING:
    from kgkit.heads.kalm import KALM, KALMOutput
    from kgkit.models.opening import Opening

FOLDER: Final = "kalm"
WORDS: Final = "words.txt"
TYPE_PRIOR: Final = 0.6
"""β of equation (10), as published; α is 1 − β."""

_AT_ONCE: Final = 16  # windows, or rows


class TrainedKALM(WordModel, OpenModel):
    """A KALM with its vocabulary.

    Args:
        kalm: the model, in evaluation mode.
        vocabulary: words that it knows.
        manifest: what it says of itself.

    Examples:
        >>> model = kgkit.open_model("kalm-conll", "language_model")
        >>> model.perplexity([Path("testa.txt")])
    """

    def __init__(self, kalm: "KALM", vocabulary: TypedVocabulary, manifest: KALMManifest) -> None:
        self.kalm, self.vocabulary, self.manifest = kalm, vocabulary, manifest
        self._resources = ExitStack()  # it has none

    @property
    def bidirectional(self) -> bool:
        """Whether a word is predicted from both sides, so that its perplexity is a pseudo-perplexity."""
        return self.kalm.config.bidirectional

    def perplexity(
        self, paths: Sequence[Path], *, rows: int = _AT_ONCE, progress: Progress | None = None
    ) -> WordPerplexity:
        """Return how well the words of files of plain text are predicted.

        Args:
            paths: files, which are read as one sequence.
            rows: windows that are read at once; a model from left to right reads the sequence in so many
                rows, of which all but the first begin without context.
            progress: callback with the number of batches that are done.

        Raises:
            NotThere, SourceError, UsageError: if a file cannot be read.
            UsageError: if *rows* is below 1.
            TypeError: if *paths* is one path: give a list of it.
            DamagedModel: if the model gives words no probabilities.
        """
        if isinstance(paths, str | PathLike):
            raise TypeError("a list of files is expected, not one path: perplexity([path])")
        if rows < 1:
            raise UsageError(f"rows is {rows}; it is at least 1")
        paths = [Path(path) for path in paths]
        sequence, unknown = self.vocabulary.read(paths), self.vocabulary.all_unknown
        result = score_words(
            self.kalm, sequence, unknown, length=self.manifest.length, rows=rows, progress=progress
        )
        if not math.isfinite(result.nats):
            raise broken_weights(self.manifest.name, f"gives words the log likelihood {-result.nats}")
        return result


class KALMTagger(MentionTagger):
    """Finds names as words that have a type, without having seen a label.

    Args:
        trained: KALM of both directions, with types.
        type_prior: β of equation (10), in [0, 1]; α is 1 − β. 0: the knowledge base has no say.

    Raises:
        UsageError: if *type_prior* is out of range, or the model is of one direction or has no types.
    """

    def __init__(self, trained: TrainedKALM, *, type_prior: float = TYPE_PRIOR) -> None:
        super().__init__(trained.manifest.name)
        if not 0 <= type_prior <= 1:
            raise UsageError(f"type_prior is {type_prior}; it is from 0 to 1")
        if not trained.kalm.config.bidirectional or not trained.kalm.config.types:
            raise UsageError(f"{trained.manifest.name} is no KALM of both directions with types")
        self.trained, self.type_prior = trained, type_prior

    @property
    def types(self) -> tuple[str, ...]:
        """The types of names."""
        return self.trained.kalm.config.types

    def text_words(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the words of a plain text, cut as those that the model has learnt from."""
        return word_spans(text, self.trained.vocabulary.style)

    def mentions(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the names in each document, whatever mentions it has: `TaggedMention`s, in order."""
        return [
            [name for words in sentences for name in self._names(document, words)]
            for document, sentences in zip(documents, self._sentences(documents), strict=True)
        ]

    def typed_words(self, documents: Sequence[Document]) -> list[list[TypedWord]]:
        """Return the words of each document with the probabilities of their types."""
        return [[word for words in sentences for word in words] for sentences in self._sentences(documents)]

    def _names(self, document: Document, words: Sequence[TypedWord]) -> Iterator[TaggedMention]:
        """Yield the names of a sentence: words of one type that follow each other."""
        for kind, group in groupby(words, key=TypedWord.likeliest):
            if kind:
                parts = [*group]
                start, end = parts[0].start, parts[-1].end
                score = round(min(word.probabilities[kind] for word in parts), 6)
                text = document.text[start:end]
                yield TaggedMention(start, end, text, type=self.types[kind - 1], score=score)

    def _sentences(self, documents: Sequence[Document]) -> list[list[list[TypedWord]]]:
        """Return the typed words of each sentence of each document."""
        vocabulary = self.trained.vocabulary
        spans = [document_words(document, vocabulary) for document in documents]
        sequences = [
            _sequence(vocabulary, document, parts) for document, parts in zip(documents, spans, strict=True)
        ]
        capitals = [
            _capitals(vocabulary, document, parts) for document, parts in zip(documents, spans, strict=True)
        ]
        results: list[list[list[TypedWord]]] = []
        for parts, probabilities in zip(spans, self.probabilities(sequences, capitals), strict=True):
            rows = iter(probabilities[1:].tolist())
            sentences = []
            for words in parts:
                sentences.append([TypedWord(*span, tuple(next(rows))) for span in words])
                next(rows)  # <eos>
            results.append(sentences)
        return results

    def probabilities(
        self, sequences: Sequence[Numbers], capitals: Sequence[NDArray[np.bool_]]
    ) -> list[NDArray[np.float32]]:
        """Return (N, 1 + K), P(τ | contexts, y) of each word of sequences (N,); zeros for first and last.

        Args:
            sequences: words of documents.
            capitals: (N,) for each sequence: which words have a capital that says something.

        Raises:
            DamagedModel: if the model gives words no probabilities.
        """
        import torch

        kalm, length = self.trained.kalm, self.trained.manifest.length
        results = [np.zeros((len(words), 1 + len(kalm.config.types)), np.float32) for words in sequences]
        priors = list(map(self.trained.vocabulary.prior_of, sequences, capitals))
        parts = [
            (number, part)
            for number, words in enumerate(sequences)
            for part in word_windows(len(words), length=2 * length, context=length // 2)
        ]
        parts.sort(key=lambda pair: pair[1].end - pair[1].begin)
        for begin in range(0, len(parts), _AT_ONCE):
            chosen = parts[begin : begin + _AT_ONCE]
            batch = window_batch(
                [sequences[number] for number, _ in chosen], [part for _, part in chosen]
            ).to(kalm.embedding.device)
            prior = np.zeros((*batch.targets.shape, 1 + len(kalm.config.types)), np.float32)
            for row, (number, part) in enumerate(chosen):
                own = priors[number][part.begin + 1 :][: prior.shape[1]]
                prior[row, : len(own)] = own
            with torch.inference_mode():
                output = kalm(batch.words, batch.lengths)
                of_words = torch.from_numpy(prior).to(batch.targets.device)
                mixed = kalm.mixed_types(output, batch.targets, of_words, self.type_prior)
            if not bool((output.types.exp() + mixed)[batch.real].isfinite().all()):
                raise broken_weights(self.name, "gives words no probabilities")
            for row, (number, part) in enumerate(chosen):
                real = batch.real[row].nonzero()[:, 0]
                results[number][part.begin + 1 + real.cpu().numpy()] = mixed[row, real].float().cpu().numpy()
        return results


def score_words(
    kalm: "KALM",
    sequence: Numbers,
    unknown: Sequence[int],
    *,
    length: int,
    rows: int = _AT_ONCE,
    progress: Progress | None = None,
) -> WordPerplexity:
    """Return how well the words of a sequence (N,) are predicted, each once; the first is not.

    Args:
        kalm: model in evaluation mode; of both directions, the last word is not predicted either.
        sequence: (N,) words.
        unknown: ids that stand for words that the vocabulary lacks.
        length: words of a stretch; windows are twice as long, of which a quarter on each side is context.
        rows: rows of a batch.
        progress: callback with the number of batches that are done.

    Raises:
        UsageError: if there are no words to predict.
    """
    import torch

    surprise, count, missed = 0.0, 0, 0
    state = None
    batches = list(_evaluation_batches(kalm, sequence, length, rows))
    for number, item in enumerate(batches, 1):
        batch = item.to(kalm.embedding.device)
        with torch.no_grad():
            output: KALMOutput = kalm(batch.words, batch.lengths, state)
            likelihoods = kalm.log_likelihood(output, batch.targets)[batch.real]
        state = output.state
        surprise -= float(likelihoods.double().sum())
        count += len(likelihoods)
        missed += int(np.isin(batch.targets[batch.real].cpu().numpy(), unknown).sum())
        if progress is not None:
            progress("scoring", number, len(batches))
    if not count:
        raise UsageError("there are no words to predict")
    nats = surprise / count
    return WordPerplexity(perplexity_of(nats), nats, count, missed)


def _evaluation_batches(kalm: "KALM", sequence: Numbers, length: int, rows: int) -> Iterator[WordBatch]:
    if kalm.config.bidirectional:
        parts = word_windows(len(sequence), length=2 * length, context=length // 2)
        for begin in range(0, len(parts), rows):
            chosen = parts[begin : begin + rows]
            yield window_batch([sequence] * len(chosen), chosen)
    else:
        stretches = Stretches(sequence, rows, length)
        yield from stretches.epoch(0, range(len(stretches)))


def document_words(document: Document, vocabulary: TypedVocabulary) -> list[list[tuple[int, int]]]:
    """Return the spans of the words of a document, a list for each of its sentences.

    The words are the document's tokens. Where it has none, they are those of recipes, or what white space
    separates: whole where the vocabulary has it, as *Al-Ain*, else the tokens of `kgkit.text`.
    """
    text = document.text
    if document.tokens is not None:
        words = list(document.tokens)
    elif vocabulary.style == "recipe":
        words = word_spans(text, "recipe")
    else:
        words = [*_whole_words(text, vocabulary)]
    if document.sentences is not None:
        begins = [start for start, _ in document.sentences]
    else:
        begins, at = [], 0
        for line in text.split("\n"):
            begins += [at + start for start, _ in sentence_spans(line)]
            at += len(line) + 1
    starts = np.array([start for start, _ in words], np.int64)
    cuts = sorted({0, len(words), *np.searchsorted(starts, begins, "left").tolist()})
    return [words[first:last] for first, last in pairwise(cuts)]


def _whole_words(text: str, vocabulary: TypedVocabulary) -> Iterator[tuple[int, int]]:
    """Yield the spans of words: those that the vocabulary keeps whole, and the tokens of all others."""
    tokens = token_spans(text)
    ends = [end for _, end in tokens]
    at = 0
    for start, end in word_spans(text, "cased"):
        last = bisect_right(ends, end)
        if last - at > 1 and vocabulary.keeps_whole(text[start:end]):
            yield start, end
        else:
            yield from tokens[at:last]
        at = last


def _sequence(
    vocabulary: TypedVocabulary, document: Document, sentences: Sequence[Sequence[tuple[int, int]]]
) -> Numbers:
    """Return the words of a document as KALM reads them: `<eos>` first and behind each sentence."""
    sequence = [vocabulary.end]
    for spans in sentences:
        words = [spell_word(document.text[start:end], vocabulary.style) for start, end in spans]
        sequence += [*vocabulary.ids(words), vocabulary.end]
    return np.array(sequence, np.int64)


def _capitals(
    vocabulary: TypedVocabulary, document: Document, sentences: Sequence[Sequence[tuple[int, int]]]
) -> NDArray[np.bool_]:
    """Return (N,) which words of `_sequence` have a capital that says something; in recipes none has."""
    capitals = [False]
    for spans in sentences:
        words = [spell_word(document.text[start:end], vocabulary.style) for start, end in spans]
        capitals += [*may_be_names(words), False]
    return np.array(capitals, np.bool_)


def open_language_model(folder: Path, manifest: KALMManifest, opening: "Opening") -> TrainedKALM:
    """Open a KALM: the role `language_model` of the kind of that name."""
    check_installed()
    from kgkit.heads.kalm import KALM  # now that torch is known to be there

    kalm = KALM.from_pretrained(folder / FOLDER, device=opening.device)
    config = kalm.config
    if (config.types, config.bidirectional) != (manifest.types, manifest.bidirectional):
        raise damaged(folder, "its manifest has other types, or other directions, than the model itself")
    words = load_words(folder / WORDS, config.words)
    members, prior = kalm.members.cpu().numpy(), kalm.prior.float().cpu().numpy()
    vocabulary = TypedVocabulary(words, config.types, members, prior, manifest.style)
    return TrainedKALM(kalm, vocabulary, manifest)


def open_tagger(folder: Path, manifest: KALMManifest, opening: "Opening") -> KALMTagger:
    """Open a KALM of both directions as a tagger: the role `tagger` of the kind of that name."""
    return KALMTagger(open_language_model(folder, manifest, opening))
