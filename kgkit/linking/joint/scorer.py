"""The joint linker: whether a string is a name, of which entity, or of none of the KB, decided together.

    q(c)   = softmax over a mention's candidates of  w · r(c)
    r(c)   = log p(c | surface), the log of c's share of the population, [the surface is the label of c],
             [a fact about c names what stands behind the mention], cos(t, g(c)), cos(t(m), g(c)),
             log(1 + S(c)), cos(a(m), g(c))
    S(c)   = Σ over the other names of the text: the largest q of a candidate that c has to do with
    a(m)   = mean over the other names of the text: Σ q(c) g(c) of their candidates
    s(c)   = log q(c) + f(x(c), v(m))
    p(c|m) = exp(s(c)) / (1 + Σ exp(s)),  what is left being NIL's

The population counts where the KB has no counts. t(m) is the vector of the mention's sentence, with half of
that of the sentence before it, t their mean, g(c) the vector of the entity's text; S and a are computed
twice, first with the q that knows neither. f are two networks, each with its own w: the first one needs no
encoder, and settles most strings; the second one the rest, with vectors v(m) of the mention and of the words
beside it. A knowledge base in another language than English is linked by the first one alone: the encoder
reads English.

A document of thousands of mentions is read in parts, each with the text around it.

M  mentions    R  candidates of all of them    D  width of the encoder
"""

import logging
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.candidates.spelling import begins_sentence
from kgkit.inputs.spans import SpanConfig
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint import candidate_features, mention_features, unspaced
from kgkit.linking.joint.adaptation import ADAPTED, Adaptation
from kgkit.linking.joint.candidate_features import CandidateFeatures, Pairs
from kgkit.linking.joint.network import Network, load_network
from kgkit.linking.joint.text import Text, sentence_begins
from kgkit.linking.joint.types import SORTS
from kgkit.linking.joint.words import FUNCTION, TITLES, WordCounts
from kgkit.linking.scoring import ScoreParts, Scorer, Scores
from kgkit.models.folder import check_build
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import Needs
from kgkit.pauses import pause
from kgkit.types import NO_CANDIDATES, Document, Matrix, Mention, Numbers
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.inputs.spans import SpanReader
    from kgkit.models.opening import Opening
    from kgkit.vectors import Vectors

log = logging.getLogger(__name__)

RANKING: Final = ("prior", "population", "label", "behind", "text", "sentence", "support", "agreement")
"""r, in the order of its weights."""
RANKED: Final = ("log q", "log q, relative", *RANKING[4:])
FEATURES: Final = (
    *mention_features.FEATURES,
    *unspaced.FEATURES,
    *candidate_features.FEATURES,
    *SORTS,
    *RANKED,
)
READING: Final = SpanConfig(layers=(4, -1), scope="sentence")
"""The layers of the encoder that are read. What a sentence says hangs on no other, nor on which are read."""
WIDTH: Final = 384
"""Of the encoder that the networks have learnt from."""
READ: Final = ("mention, layer 4", "mention", "words before, layer 4", "words behind, layer 4")
"""Vectors that the second network reads; behind them the sentence's and the one's before, for `ranking`."""

PARTS: Final = (0, 1, 2, 4, 7, 9)
"""Vectors that are kept of the five `parts_of_mention` in the two layers."""
_BEFORE: Final = 0.5  # weight of the sentence before a mention's own
THRESHOLD: Final = 0.5
"""Least probability of a link, where nobody names another."""

_UNSETTLED: Final = (0.05, 0.95)
"""Probabilities of the best candidate between which a mention is read: beyond, the second network hardly ever
decides otherwise."""
_LIKELY: Final = 0.02  # probability of candidates whose texts are read
_BESIDE: Final = 2  # words
_SENTENCE: Final = 300  # characters on each side
_LEAST: Final = 1e-6
_MOST: Final = 2_000  # mentions that are read together
_AROUND: Final = 2_000  # characters that are read before and behind the mentions of a part
_NOT_BEARERS: Final = TITLES | FUNCTION
_OF_PRIOR, _OF_POPULATION, _OF_LABEL, _OF_DESCRIPTION, _OF_FACT, _OF_QUALIFIER = map(
    candidate_features.ABSOLUTE.index,
    ("log prior", "log population", "is label", "has description", "fact next", "qualifier next"),
)


@dataclass
class State:
    """Features of a document's mentions, but for those that the encoder adds.

    Attributes:
        text: words of the document.
        mentions: mentions with their candidates.
        sizes: (M,) numbers of candidates.
        of_mentions: (M, F).
        of_candidates: (R, F).
        sorts: (R, T) sorts of the candidates' kinds.
        names: (R,) number of the name whose candidate each is.
        pairs: (N, 2) candidates that have to do with each other.
    """

    text: Text
    mentions: list[Mention]
    sizes: Numbers
    of_mentions: Matrix
    of_candidates: Matrix
    sorts: Matrix
    names: Numbers
    pairs: Pairs

    @property
    def ids(self) -> Numbers:
        """(R,) ids of the candidates."""
        found = [(mention.candidates or NO_CANDIDATES).ids for mention in self.mentions]
        return np.concatenate([NO_CANDIDATES.ids, *found])

    @cached_property
    def supporters(self) -> tuple[Numbers, Numbers, Numbers]:
        """Candidates that others have to do with, one row (K,) for each name of these.

        With them the others (2 N,), name by name, and where (K,) those of a name begin.
        """
        rows, by = self.pairs.astype(np.int64).ravel(), self.pairs[:, ::-1].astype(np.int64).ravel()
        keys = rows * (len(self.names) + 1) + self.names[by]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first[group], kind="stable")
        begins = np.flatnonzero(np.diff(first[group][order], prepend=-1))
        return rows[order][begins], by[order], begins


class JointScorer(Scorer):
    """Scores candidates by a joint linker.

    Args:
        kb: knowledge base that is linked to.
        counts: of words in general text.
        first: network that reads no encoder.
        second: network that reads one.
        vectors: of the entities' texts; None: the first network does all.
        reader: of mentions, with the encoder of *vectors*.
        name: that links carry.

    Attributes:
        adaptation: function that gives what was learnt from a user's documents, (R,), of a state, the two
            parts of its scores and their probabilities; None: nothing was.
    """

    batch_size, scores_null = 32, True

    def __init__(
        self,
        kb: KnowledgeBase,
        counts: WordCounts,
        first: Network,
        second: Network,
        *,
        vectors: "Vectors | PartialTextVectors | None" = None,
        reader: "SpanReader | None" = None,
        name: str = "joint",
    ) -> None:
        from kgkit.linking.auto import likely_language

        self.kb, self.counts, self.first, self.second = kb, counts, first, second
        self.vectors, self.reader, self.name = vectors, reader, name
        self.features = CandidateFeatures(kb)
        self.adaptation: Callable[[State, Scores, Scores, Sequence[Scores]], Scores] | None = None
        self._german = likely_language(kb).lower().startswith("de")

    @classmethod
    def open(cls, folder: Path, manifest: LinkerManifest, opening: "Opening") -> "JointScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            DamagedModel: if a file cannot be read.
            UsageError, StaleModel: if it was trained for another knowledge base, or another build.
            The rest as `kgkit.linking.text_vectors.linker_vectors` does.
        """
        from kgkit.encoder.finding import INSTALL
        from kgkit.linking.auto import encoder_is_installed, is_english

        kb = opening.kb_for(manifest.name)
        check_build(manifest, kb)
        manifest = msgspec.structs.replace(manifest, needs=Needs())  # any vectors of its encoder will do
        vectors, reader, in_english = None, None, is_english(kb)
        if opening.vectors is None and in_english and not encoder_is_installed():
            log.warning(
                "%s reads no sentences, since the encoder is not installed: `%s`", manifest.name, INSTALL
            )
        elif opening.vectors is not None or in_english:
            from kgkit.embedding.partial import encoder_for
            from kgkit.inputs.spans import SpanReader
            from kgkit.linking.text_vectors import linker_vectors

            vectors = linker_vectors(manifest, opening)
            reader = SpanReader(encoder_for(vectors, device=opening.device), READING)
        scorer = cls(
            kb, WordCounts.load(folder), load_network(folder, "first", (len(FEATURES), 0), len(RANKING)),
            load_network(folder, "second", (len(FEATURES), len(READ) * WIDTH), len(RANKING)),
            vectors=vectors, reader=reader, name=manifest.name,
        )  # fmt: skip
        if ADAPTED in manifest.config:
            scorer.adaptation = Adaptation.load(folder, kb).gain
        return scorer

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [[part.score for part in parts] for parts in self.explain(documents)]

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the scores with two parts: log q as the prior, and what a network adds as context."""
        result: list[list[ScoreParts]] = [[] for _ in documents]
        for group in _groups(documents):
            states = []
            for _, document in group:
                pause()
                states.append(self.read(document))
            scored = [self._first(state) for state in states]
            if self.reader is not None:
                self._settle(states, scored)
            for (number, _), state, (log_q, learnt) in zip(group, states, scored, strict=True):
                shares = shares_of(log_q + learnt, state.sizes)
                if self.adaptation is not None:
                    learnt = learnt + self.adaptation(state, log_q, learnt, shares)
                    shares = shares_of(log_q + learnt, state.sizes)
                cuts = np.cumsum(state.sizes)[:-1]
                parts = zip(shares, np.split(log_q, cuts), np.split(learnt, cuts), strict=False)
                result[number] += (ScoreParts(*each) for each in parts)
        return result

    def read(self, document: Document) -> State:
        """Return the features of a document, but for those that need the encoder."""
        text, mentions = Text(document.text), document.mentions or []
        bounds = unspaced.word_bounds(document.text)
        owners: dict[int, set[int]] = defaultdict(set)  # of words: mentions
        for number, mention in enumerate(mentions):
            for word in range(*text.range(mention.start, mention.end)):
                owners[word].add(number)
        bearers = other_bearers(text, owners)
        of_mentions = [
            [
                *mention_features.mention_features(
                    text, mention.start, mention.end, self.features.spellings(mention), self.counts,
                    owners.keys(), bearers, german=self._german,
                ).values(),
                *unspaced.unspaced_features(document.text, mention.start, mention.end, bounds),
            ]
            for mention in mentions
        ]  # fmt: skip
        of_candidates, pairs = self.features(text, mentions)
        sizes = np.array([len(rows) for rows in of_candidates], np.int64)
        folded = [self.features.fold(mention.text) for mention in mentions]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(folded))}
        names = np.repeat(np.array([numbers[name] for name in folded], np.int64), sizes)
        width = len(mention_features.FEATURES) + len(unspaced.FEATURES)
        sorts = [
            self.features.of(number).sort
            for mention in mentions
            for number in (mention.candidates or NO_CANDIDATES).ids.tolist()
        ]
        return State(
            text, mentions, sizes, np.array(of_mentions, np.float32).reshape(-1, width),
            np.concatenate([np.empty((0, len(candidate_features.FEATURES)), np.float32), *of_candidates]),
            np.array(sorts, np.float32).reshape(-1, len(SORTS)), names, pairs,
        )  # fmt: skip

    def read_vectors(self, states: Sequence[State], chosen: Sequence[Numbers]) -> list[Matrix]:
        """Return (m, 6, D) for each document, vectors of length 1 of `READ`, the sentence and the one before.

        Args:
            states: documents.
            chosen: mentions of each that are read, (m,).
        """
        assert self.reader is not None
        documents = [
            Document(
                str(number), state.text.text, list(pairwise([*begins, len(state.text.text)])),
                mentions=[
                    Mention(start, end, state.text.text[start:end])
                    for index in numbers.tolist()
                    for start, end in parts_of_mention(state.text, state.mentions[index], begins)
                ],
            )
            for number, (state, numbers) in enumerate(zip(states, chosen, strict=True))
            for begins in [sentence_begins(state.text.text, state.mentions)]
        ]  # fmt: skip
        width = self.reader.encoder.width
        return [
            unit(vectors.reshape(-1, width)).reshape(-1, 10, width)[:, PARTS]
            for _, vectors in self.reader(documents)
        ]

    def _first(self, state: State) -> tuple[Scores, Scores]:
        """Return log q and f, (R,) each, of the network that reads no encoder."""
        features, log_q = first_features(state, self.first.ranking)
        return log_q, self.first(features, np.empty((len(state.sizes), 0), np.float32), state.sizes)

    def _settle(self, states: Sequence[State], scored: Sequence[tuple[Scores, Scores]]) -> None:
        """Score again the mentions that the first network has not settled."""
        unsettled = []
        for number, (state, (log_q, learnt)) in enumerate(zip(states, scored, strict=True)):
            shares = np.concatenate([np.zeros(0, np.float32), *shares_of(log_q + learnt, state.sizes)])
            best = _most(shares, state.sizes)
            chosen = np.flatnonzero((best > _UNSETTLED[0]) & (best < _UNSETTLED[1]))
            if len(chosen):
                likely = np.flatnonzero(shares >= _LIKELY)
                linked = np.flatnonzero(shares >= _UNSETTLED[1])
                rows = np.union1d(np.intersect1d(_rows_of(state.sizes, chosen), likely), linked)
                unsettled.append((number, chosen, rows))
        if not unsettled:
            return
        assert self.vectors is not None
        pause()
        self.vectors.prepare(np.concatenate([states[at].ids[rows] for at, _, rows in unsettled]))
        read = self.read_vectors(
            [states[at] for at, _, _ in unsettled], [chosen for _, chosen, _ in unsettled]
        )
        for (at, chosen, rows), vectors in zip(unsettled, read, strict=True):
            state = states[at]
            features, of_mentions, log_q = second_features(
                state, self.second.ranking, chosen, vectors, rows, unit(self.vectors.gather(state.ids[rows]))
            )
            own = _rows_of(state.sizes, chosen)
            scored[at][0][own] = log_q
            scored[at][1][own] = self.second(features, of_mentions, state.sizes[chosen])


def _groups(documents: Sequence[Document]) -> Iterator[list[tuple[int, Document]]]:
    """Yield documents, or parts of long ones, with their numbers: some thousand mentions together."""
    group: list[tuple[int, Document]] = []
    mentions = 0
    for number, document in enumerate(documents):
        for part in _parts(document):
            size = len(part.mentions or ())
            if group and mentions + size > _MOST:
                yield group
                group, mentions = [], 0
            group.append((number, part))
            mentions += size
    yield group


def _parts(document: Document) -> Iterator[Document]:
    """Yield a document, or in order its parts, each with some of the mentions and the text around them."""
    mentions = document.mentions or []
    if len(mentions) <= _MOST:
        yield document
        return
    for first in range(0, len(mentions), _MOST):
        part = mentions[first : first + _MOST]
        begin = max(0, min(mention.start for mention in part) - _AROUND)
        end = max(mention.end for mention in part) + _AROUND
        yield Document(
            document.id, document.text[begin:end],
            mentions=[
                msgspec.structs.replace(mention, start=mention.start - begin, end=mention.end - begin)
                for mention in part
            ],
        )  # fmt: skip


def first_features(state: State, weights: Matrix) -> tuple[Matrix, Scores]:
    """Return (R, F) in the order of `FEATURES`, and log q (R,), as without an encoder.

    Args:
        state: document.
        weights: (8,) of `RANKING`.
    """
    return _features(state, slice(None), ranking(state, weights), weights)


def second_features(
    state: State, weights: Matrix, chosen: Numbers, read: Matrix, rows: Numbers, texts: Matrix
) -> tuple[Matrix, Matrix, Scores]:
    """Return (r, F) of `FEATURES`, vectors (m, V) of `READ`, and log q (r,), of some mentions.

    Args:
        state: document.
        weights: (8,) of `RANKING`.
        chosen: (m,) the mentions.
        read: (m, 6, D) of `JointScorer.read_vectors`.
        rows: (t,) candidates whose texts were read: those of the mentions, and others.
        texts: (t, D), vectors of length 1 of their texts.
    """
    width = texts.shape[1]
    every = np.zeros((len(state.names), width), np.float32)
    every[rows] = texts
    sentences = np.zeros((len(state.sizes), width), np.float32)
    sentences[chosen] = sentences_of(read)
    features, log_q = _features(
        state, _rows_of(state.sizes, chosen), ranking(state, weights, every, sentences), weights
    )
    vectors = read[:, : len(READ)].reshape(len(read), -1) * np.float32(np.sqrt(width))
    return features, vectors, log_q


def _features(state: State, rows: slice | Numbers, parts: Matrix, weights: Matrix) -> tuple[Matrix, Scores]:
    """Return (r, F) in the order of `FEATURES`, and log q (r,), of some candidates.

    Args:
        state: document.
        rows: the candidates.
        parts: (R, 8) of `ranking`.
        weights: (8,) of `RANKING`.
    """
    log_q = np.log(_softmax_each(parts @ weights, state.sizes) + _LEAST)
    best = np.repeat(_most(log_q, state.sizes), state.sizes)
    columns = np.concatenate([np.stack([log_q, log_q - best], axis=1), parts[:, 4:]], axis=1)[rows]
    of_mentions = state.of_mentions[np.repeat(np.arange(len(state.sizes)), state.sizes)[rows]]
    features = np.concatenate([of_mentions, state.of_candidates[rows], state.sorts[rows], columns], axis=1)
    return features.astype(np.float32, copy=False), log_q[rows].astype(np.float32)


def ranking(
    state: State, weights: Matrix, texts: Matrix | None = None, sentences: Matrix | None = None
) -> Matrix:
    """Return r, (R, 8) in the order of `RANKING`.

    Args:
        state: document.
        weights: (8,) of these; support and agreement depend on them.
        texts: (R, D) vectors of length 1 of the candidates' texts, 0 for those that are not read, which are
            taken to fit as badly as the worst of their mention's others; None if no encoder reads.
        sentences: (M, D) vectors of length 1 of the mentions' sentences; 0 for those that are not read.
    """
    features, owner = state.of_candidates, np.repeat(np.arange(len(state.sizes)), state.sizes)
    prior = features[:, _OF_PRIOR]
    parts = np.zeros((len(features), len(RANKING)), np.float32)
    parts[:, 0], parts[:, 1] = prior, np.where(prior < 0, 0, features[:, _OF_POPULATION])
    parts[:, 2], parts[:, 3] = features[:, _OF_LABEL], features[:, _OF_FACT] + features[:, _OF_QUALIFIER]
    read = (np.zeros(0) if texts is None else np.abs(texts).max(axis=1, initial=0)) > 0
    if texts is not None and sentences is not None and len(read):
        described = features[:, _OF_DESCRIPTION] > 0
        for column, cosines in (
            (4, texts @ unit(sentences.sum(0)[None])[0]),
            (5, np.einsum("rd,rd->r", texts, sentences[owner])),
        ):
            parts[:, column] = _filled(_worst(cosines, read, state.sizes), described, state.sizes)
    for _ in range(2):
        shares = _softmax_each(parts @ weights, state.sizes)
        parts[:, 6] = np.log1p(_support(state, shares))
        if texts is not None and len(read):
            agreement = np.einsum("rd,rd->r", texts, _of_others(state, shares, texts)[owner])
            parts[:, 7] = _worst(agreement, read, state.sizes)
    return parts


def sentences_of(read: Matrix) -> Matrix:
    """Return t(m), (m, D) of length 1: each mention's sentence, and the one before it."""
    return unit(read[:, -2] + np.float32(_BEFORE) * read[:, -1])


def _of_others(state: State, shares: Scores, texts: Matrix) -> Matrix:
    """Return a, (M, D), of length 1, or 0 where there is no other name."""
    own = state.sizes > 0
    begins = (np.cumsum(state.sizes) - state.sizes)[own]
    of_mentions = np.add.reduceat(shares[:, None] * texts, begins, axis=0)
    names = state.names[begins]
    count = np.bincount(names)
    of_names = np.zeros((len(count), texts.shape[1]), np.float32)
    np.add.at(of_names, names, of_mentions / count[names][:, None])
    result = np.zeros((len(state.sizes), texts.shape[1]), np.float32)
    result[own] = unit(of_names.sum(0) - of_names[names])
    return result


def parts_of_mention(text: Text, mention: Mention, begins: Sequence[int]) -> list[tuple[int, int]]:
    """Return the spans of a mention, the words before and behind it, its sentence, and the sentence before.

    Words are those of its sentence; where it is the first one, it stands for the one before.

    Args:
        text: text of the document.
        mention: mention.
        begins: where the sentences of the text begin.
    """
    start, end = mention.start, mention.end
    at = bisect_right(begins, start)
    left = max(begins[at - 1], start - _SENTENCE)
    right = min(begins[at] if at < len(begins) else len(text.text), end + _SENTENCE)
    first, behind = text.range(start, end)
    before = max(left, text.word(max(0, first - _BESIDE)).start) if first > 0 else start
    last = text.word(min(len(text.words) - 1, behind + _BESIDE - 1)).end if behind < len(text.words) else end
    own = (left, right)
    return [
        (start, end), (before, start) if before < start else (start, end),
        (end, min(last, right)) if min(last, right) > end else (start, end), own,
        (max(begins[at - 2], begins[at - 1] - _SENTENCE), begins[at - 1]) if at > 1 else own,
    ]  # fmt: skip


def other_bearers(text: Text, owners: Mapping[int, set[int]]) -> frozenset[str]:
    """Return words that stand behind a first name somewhere in a text, and not as a name that the KB has.

    Args:
        text: the text.
        owners: mentions by the words that are in them.
    """
    found = set()
    for index in range(1, len(text.words)):
        word, before = text.words[index], text.words[index - 1]
        if not (word.capital and before.capital) or text.gap(index - 1) != " " or text.style(word.start):
            continue
        if before.text.lower() in _NOT_BEARERS or owners.get(index, set()) & owners.get(index - 1, set()):
            continue
        if not begins_sentence(text.text, before.start):
            found.add(word.text)
    return frozenset(found)


def _support(state: State, shares: Scores) -> Scores:
    """Return S, (R,)."""
    support = np.zeros(len(shares), np.float32)
    rows, by, begins = state.supporters
    if len(rows):
        np.add.at(support, rows, np.maximum.reduceat(shares[by], begins))
    return support


def _softmax_each(scores: Scores, sizes: Numbers) -> Scores:
    """Return the softmax (R,) within each mention."""
    if not len(scores):
        return scores
    weights = np.exp(scores - np.repeat(_most(scores, sizes), sizes))
    begins = (np.cumsum(sizes) - sizes)[sizes > 0]
    result: Scores = weights / np.repeat(np.add.reduceat(weights, begins), sizes[sizes > 0])
    return result


def _most(values: Scores, sizes: Numbers) -> Scores:
    """Return the largest value (M,) of each mention; 0 where it has none."""
    result = np.zeros(len(sizes), np.float32)
    if len(values):
        begins = (np.cumsum(sizes) - sizes)[sizes > 0]
        result[sizes > 0] = np.maximum.reduceat(values, begins)
    return result


def _worst(cosines: Scores, read: NDArray[np.bool_], sizes: Numbers) -> Scores:
    """Return cosines (R,), of what is not read the least of the mention's others; 0 where none is read."""
    if read.all():
        return cosines
    least = -_most(np.where(read, -cosines, -np.inf).astype(np.float32), sizes)
    least = np.repeat(np.where(np.isfinite(least), least, 0), sizes)
    result: Scores = np.where(read, cosines, least).astype(np.float32)
    return result


def _filled(cosines: Scores, described: NDArray[np.bool_], sizes: Numbers) -> Scores:
    """Return cosines (R,), of what has no description the mean of the mention's others."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    count = np.bincount(owner, described, len(sizes))
    total = np.bincount(owner, np.where(described, cosines, 0), len(sizes))
    mean = np.divide(total, count, out=np.zeros(len(sizes)), where=count > 0)
    result: Scores = np.where(described, cosines, mean[owner]).astype(np.float32)
    return result


def shares_of(scores: Scores, sizes: Numbers) -> list[Scores]:
    """Return p (C,) of the candidates of each mention."""
    result = []
    for part in np.split(scores, np.cumsum(sizes)[:-1]) if len(sizes) else []:
        most = max(0.0, float(part.max(initial=0.0)))
        weights = np.exp(part - most)
        result.append((weights / (weights.sum() + np.exp(-most))).astype(np.float32))
    return result


def _rows_of(sizes: Numbers, chosen: Numbers) -> Numbers:
    """Return the rows of the candidates of some mentions."""
    begins = np.cumsum(sizes) - sizes
    return np.concatenate(
        [np.arange(begins[number], begins[number] + sizes[number]) for number in chosen.tolist()]
    )
