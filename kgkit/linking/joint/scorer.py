"""The joint linker: whether a string is a name, of which entity, or of none of the KB, decided together.

    b(c)   = 1.5 log p(c | surface) + 1.5 [the surface is the label of c] + 10 cos(t, g(c))
             + 4 cos(t(m), g(c)) + 3 [a fact about c names what stands behind the mention]
    q(c)   = softmax over a mention's candidates of  b(c) + 2.5 log(1 + S(c))
    S(c)   = Σ over the other names of the text: the largest q of a candidate that c has to do with; twice
    s(c)   = log q(c) + f(x(c), v(m))
    p(c|m) = exp(s(c)) / (1 + Σ exp(s)),  what is left being NIL's

p(c | surface) counts where the KB has counts; else .8 log of the share of the population does, where it
has that. t(m) is the vector of the mention's sentence, t their mean, g(c) the vector of the entity's
text. f are two networks: the first one needs no encoder, and settles most strings; the second one the
rest, with vectors v(m) of the mention and of the words beside it. A knowledge base in another language
than English is linked by the first one alone: the encoder reads English.

A document of thousands of mentions is read in parts, each with the text around it.

M  mentions    R  candidates of all of them    D  width of the encoder
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from kgkit.linking.joint.candidate_features import CandidateFeatures
from kgkit.linking.joint.network import Network, load_network
from kgkit.linking.joint.text import Text
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

PRIOR, POPULATION, LABEL, TEXT, SENTENCE, BEHIND, SUPPORT = 1.5, 0.8, 1.5, 10.0, 4.0, 3.0, 2.5
"""Weights of q, chosen on development sets, part of AIDA's testa among them; none was learnt from."""
RANKED: Final = ("log q", "log q, relative", "support", "cosines")
FEATURES: Final = (
    *mention_features.FEATURES,
    *unspaced.FEATURES,
    *candidate_features.FEATURES,
    *SORTS,
    *RANKED,
)
LAYERS: Final = (4, -1)
WIDTH: Final = 384
"""Of the encoder that the networks have learnt from."""
READ: Final = ("mention, layer 4", "mention", "words before, layer 4", "words behind, layer 4")

_SETTLED: Final = 0.98
_BESIDE: Final = 2  # words
_SENTENCE: Final = 300  # characters on each side
_ENDS: Final = re.compile(r"[.!?]['\"”’)]*\s|\n")
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
    pairs: Numbers

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
        rows, by = self.pairs.ravel(), self.pairs[:, ::-1].ravel()
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
        self.kb, self.counts, self.first, self.second = kb, counts, first, second
        self.vectors, self.reader, self.name = vectors, reader, name
        self.features = CandidateFeatures(kb)
        self.adaptation: Callable[[State, Scores, Scores, Sequence[Scores]], Scores] | None = None
        self._german = kb.manifest.language.lower().startswith("de")

    @classmethod
    def open(cls, folder: Path, manifest: LinkerManifest, opening: "Opening") -> "JointScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            DamagedModel: if a file cannot be read.
            UsageError, StaleModel: if it was trained for another knowledge base, or another build.
            The rest as `kgkit.linking.text_vectors.linker_vectors` does.
        """
        from kgkit.linking.auto import INSTALL, encoder_is_installed, is_english

        kb = opening.kb_for(manifest.name)
        check_build(manifest, kb)
        manifest = msgspec.structs.replace(manifest, needs=Needs())  # any vectors of its encoder will do
        vectors, reader = None, None
        if opening.vectors is None and is_english(kb) and not encoder_is_installed():
            log.warning(
                "%s reads no sentences, since the encoder is not installed: `%s`", manifest.name, INSTALL
            )
        elif opening.vectors is not None or is_english(kb):
            from kgkit.embedding.partial import encoder_for
            from kgkit.inputs.spans import SpanReader
            from kgkit.linking.text_vectors import linker_vectors

            vectors = linker_vectors(manifest, opening)
            reader = SpanReader(encoder_for(vectors, device=opening.device), SpanConfig(layers=LAYERS))
        scorer = cls(
            kb, WordCounts.load(folder), load_network(folder, "first", (len(FEATURES), 0)),
            load_network(folder, "second", (len(FEATURES), len(READ) * WIDTH)),
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
                shares = _shares(log_q + learnt, state.sizes)
                if self.adaptation is not None:
                    learnt = learnt + self.adaptation(state, log_q, learnt, shares)
                    shares = _shares(log_q + learnt, state.sizes)
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
            mention_features.mention_features(
                text, mention.start, mention.end, self.features.spellings(mention), self.counts,
                owners.keys(), bearers, german=self._german,
            )
            + unspaced.unspaced_features(document.text, mention.start, mention.end, bounds)
            for mention in mentions
        ]  # fmt: skip
        of_candidates, pairs = self.features(text, mentions)
        sizes = np.array([len(rows) for rows in of_candidates], np.int64)
        folded = {name: number for number, name in enumerate(dict.fromkeys(map(_folded, mentions)))}
        names = np.repeat(np.array([folded[_folded(mention)] for mention in mentions], np.int64), sizes)
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

    def first_features(self, state: State, cosines: Scores | None = None) -> tuple[Matrix, Scores]:
        """Return (R, F) in the order of `FEATURES`, and log q (R,).

        Args:
            state: document.
            cosines: (R,) weighted, of the entities' texts with the document's; None if they are not read.
        """
        return _features(state, slice(None), cosines)

    def second_features(self, state: State, chosen: Numbers, read: Matrix) -> tuple[Matrix, Matrix, Scores]:
        """Return (r, F) of `FEATURES`, vectors (m, V) of `READ`, and log q (r,), of some mentions.

        Args:
            state: document.
            chosen: (m,) the mentions.
            read: (m, 4, 2, D), vectors of length 1 of `parts_of_mention`, in both layers.
        """
        assert self.vectors is not None
        rows, sizes = _rows_of(state.sizes, chosen), state.sizes[chosen]
        texts = unit(self.vectors.gather(state.ids[rows]))  # (r, D)
        described = state.of_candidates[rows, _OF_DESCRIPTION] > 0
        sentences = read[:, 3, 1]  # (m, D)
        cosines = np.zeros(len(state.names), np.float32)  # of the other mentions the text tells nothing
        near = np.einsum("rd,rd->r", texts, np.repeat(sentences, sizes, axis=0))
        fit = TEXT * (texts @ unit(sentences.mean(0)[None])[0]) + SENTENCE * near
        cosines[rows] = _filled(fit, described, sizes)
        features, log_q = _features(state, rows, cosines)
        vectors = np.stack([read[:, 0, 0], read[:, 0, 1], read[:, 1, 0], read[:, 2, 0]], axis=1)
        return features, vectors.reshape(len(vectors), -1) * np.float32(np.sqrt(texts.shape[1])), log_q

    def read_vectors(self, states: Sequence[State], chosen: Sequence[Numbers]) -> list[Matrix]:
        """Return (m, 4, 2, D) for each document, vectors of length 1 of `parts_of_mention` in two layers.

        Args:
            states: documents.
            chosen: mentions of each that are read, (m,).
        """
        assert self.reader is not None
        documents = [
            Document(
                str(number), state.text.text,
                mentions=[
                    Mention(start, end, state.text.text[start:end])
                    for index in numbers.tolist()
                    for start, end in parts_of_mention(state.text, state.mentions[index])
                ],
            )
            for number, (state, numbers) in enumerate(zip(states, chosen, strict=True))
        ]  # fmt: skip
        width = self.reader.encoder.width
        return [
            unit(vectors.reshape(-1, width)).reshape(-1, 4, 2, width) for _, vectors in self.reader(documents)
        ]

    def _first(self, state: State) -> tuple[Scores, Scores]:
        """Return log q and f, (R,) each, of the network that reads no encoder."""
        features, log_q = self.first_features(state)
        return log_q, self.first(features, np.empty((len(state.sizes), 0), np.float32), state.sizes)

    def _settle(self, states: Sequence[State], scored: Sequence[tuple[Scores, Scores]]) -> None:
        """Score again the mentions that the first network has not settled."""
        unsettled = []
        for number, (state, (log_q, learnt)) in enumerate(zip(states, scored, strict=True)):
            best = np.array([float(share.max(initial=0.0)) for share in _shares(log_q + learnt, state.sizes)])
            chosen = np.flatnonzero((best > 1 - _SETTLED) & (best < _SETTLED))
            if len(chosen):
                unsettled.append((number, chosen))
        if not unsettled:
            return
        assert self.vectors is not None
        pause()
        self.vectors.prepare(
            np.concatenate([states[at].ids[_rows_of(states[at].sizes, chosen)] for at, chosen in unsettled])
        )
        read = self.read_vectors([states[at] for at, _ in unsettled], [chosen for _, chosen in unsettled])
        for (at, chosen), read_vectors in zip(unsettled, read, strict=True):
            sizes = states[at].sizes
            features, vectors, log_q = self.second_features(states[at], chosen, read_vectors)
            rows = _rows_of(sizes, chosen)
            scored[at][0][rows] = log_q
            scored[at][1][rows] = self.second(features, vectors, sizes[chosen])


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


def _features(state: State, rows: slice | Numbers, cosines: Scores | None) -> tuple[Matrix, Scores]:
    """Return (r, F) in the order of `FEATURES`, and log q (r,), of some candidates.

    Args:
        state: document.
        rows: the candidates.
        cosines: (R,) weighted, of the entities' texts with the document's; None if they are not read.
    """
    log_q, support = ranked(state, cosines)
    best = np.repeat(_most(log_q, state.sizes), state.sizes)
    shown = np.zeros(len(log_q), np.float32) if cosines is None else cosines
    columns = np.stack([log_q, log_q - best, support, shown], axis=1)[rows]
    of_mentions = state.of_mentions[np.repeat(np.arange(len(state.sizes)), state.sizes)[rows]]
    features = np.concatenate([of_mentions, state.of_candidates[rows], state.sorts[rows], columns], axis=1)
    return features.astype(np.float32, copy=False), log_q[rows]


def ranked(state: State, cosines: Scores | None) -> tuple[Scores, Scores]:
    """Return log q and log(1 + S), (R,) each."""
    features = state.of_candidates
    prior, population = PRIOR * features[:, _OF_PRIOR], POPULATION * features[:, _OF_POPULATION]
    base = np.where(prior < 0, prior, population) + LABEL * features[:, _OF_LABEL]
    base += BEHIND * (features[:, _OF_FACT] + features[:, _OF_QUALIFIER])
    if cosines is not None:
        base = base + cosines
    scores, support = base, np.zeros(len(base), np.float32)
    for _ in range(2):
        support = np.log1p(_support(state, _softmax_each(scores, state.sizes)))
        scores = base + SUPPORT * support
    return np.log(_softmax_each(scores, state.sizes) + _LEAST).astype(np.float32), support


def parts_of_mention(text: Text, mention: Mention) -> list[tuple[int, int]]:
    """Return the spans of a mention, of the words before and behind it, and of its sentence."""
    start, end = mention.start, mention.end
    first, behind = text.range(start, end)
    before = text.word(max(0, first - _BESIDE)).start if first > 0 else start
    last = text.word(min(len(text.words) - 1, behind + _BESIDE - 1)).end if behind < len(text.words) else end
    left, right = max(0, start - _SENTENCE), min(len(text.text), end + _SENTENCE)
    for match in _ENDS.finditer(text.text, left, start):
        left = match.end()
    if (match_ := _ENDS.search(text.text, end, right)) is not None:
        right = match_.start() + 1
    return [
        (start, end), (before, start) if before < start else (start, end),
        (end, last) if last > end else (start, end), (left, right),
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


def _filled(cosines: Scores, described: NDArray[np.bool_], sizes: Numbers) -> Scores:
    """Return cosines (R,), of what has no description the mean of the mention's others."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    count = np.bincount(owner, described, len(sizes))
    total = np.bincount(owner, np.where(described, cosines, 0), len(sizes))
    mean = np.divide(total, count, out=np.zeros(len(sizes)), where=count > 0)
    result: Scores = np.where(described, cosines, mean[owner]).astype(np.float32)
    return result


def _shares(scores: Scores, sizes: Numbers) -> list[Scores]:
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


def _folded(mention: Mention) -> str:
    return " ".join(mention.text.lower().split())
