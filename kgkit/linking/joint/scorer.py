"""The joint linker: whether a string is a name, of which entity, or of none of the KB, decided at once.

    b(c)   = .8 log p(c | surface) + 1.5 [the surface is the label of c] + 10 cos(t, g(c)) + 4 cos(t(m), g(c))
             + 3 [a fact about c names what stands behind the mention]
    q(c)   = softmax over a mention's candidates of  b(c) + 2.5 log(1 + S(c))
    S(c)   = Σ over the other names of the text: the largest q of a candidate that c has to do with; two rounds
    s(c)   = log q(c) + f(x(c), v(m))
    p(c|m) = exp(s(c)) / (1 + Σ exp(s)),  what is left being NIL's

p(c | surface) counts where the KB has counts; t(m) is the vector of the mention's sentence, t their mean, g(c)
the vector of the entity's text. f are two networks: one reads what needs no encoder, and settles most strings;
the other one the rest, with vectors v(m) of the mention and of the words beside it. A knowledge base in
another language than English is linked by the first one alone: the encoder reads English.

M  mentions    R  candidates of all of them    D  width of the encoder
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.candidates.spelling import begins_sentence
from kgkit.inputs.spans import SpanConfig
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint import candidate_features, mention_features, unspaced
from kgkit.linking.joint.candidate_features import CandidateFeatures
from kgkit.linking.joint.network import Network, load_network
from kgkit.linking.joint.text import Text
from kgkit.linking.joint.types import SORTS, named_sorts
from kgkit.linking.joint.words import FUNCTION, TITLES, WordCounts
from kgkit.linking.scoring import Scorer, Scores
from kgkit.models.kinds import LinkerManifest
from kgkit.pauses import pause
from kgkit.types import NO_CANDIDATES, Document, Matrix, Mention, Numbers
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.inputs.spans import SpanReader
    from kgkit.models.opening import Opening
    from kgkit.vectors import Vectors

PRIOR, LABEL, TEXT, SENTENCE, BEHIND, SUPPORT = 0.8, 1.5, 10.0, 4.0, 3.0, 2.5
"""Weights of q, chosen on documents of news that no network has learnt from."""
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
_OF_PRIOR, _OF_LABEL, _OF_DESCRIPTION, _OF_FACT, _OF_QUALIFIER = map(
    candidate_features.ABSOLUTE.index,
    ("log prior", "is label", "has description", "fact next", "qualifier next"),
)


@dataclass
class _State:
    """What is known of a document.

    Attributes:
        mentions: mentions with their candidates.
        sizes: (M,) numbers of candidates.
        of_mentions: (M, F).
        of_candidates: (R, F).
        names: (R,) number of the name whose candidate each is.
        pairs: (N, 2) candidates that have to do with each other.
    """

    text: Text
    mentions: list[Mention]
    sizes: Numbers
    of_mentions: Matrix
    of_candidates: Matrix
    names: Numbers
    pairs: Numbers

    @property
    def ids(self) -> Numbers:
        """(R,) ids of the candidates."""
        found = [(mention.candidates or NO_CANDIDATES).ids for mention in self.mentions]
        return np.concatenate([NO_CANDIDATES.ids, *found])


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
        self._german = kb.manifest.language.lower().startswith("de")

    @classmethod
    def open(cls, folder: Path, manifest: LinkerManifest, opening: "Opening") -> "JointScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            DamagedModel: if a file cannot be read.
            The rest as `kgkit.linking.text_vectors.linker_vectors` does.
        """
        from kgkit.linking.auto import encoder_is_installed, is_english

        kb = opening.kb_for(manifest.name)
        vectors: Any = None
        reader: Any = None
        if is_english(kb) and encoder_is_installed():
            from kgkit.embedding.partial import encoder_for
            from kgkit.inputs.spans import SpanReader
            from kgkit.linking.text_vectors import linker_vectors

            vectors = linker_vectors(manifest, opening)
            reader = SpanReader(encoder_for(vectors, device=opening.device), SpanConfig(layers=LAYERS))
        return cls(
            kb, WordCounts.load(folder), load_network(folder, "first", (len(FEATURES), 0)),
            load_network(folder, "second", (len(FEATURES), len(READ) * WIDTH)),
            vectors=vectors, reader=reader, name=manifest.name,
        )  # fmt: skip

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        states = [self.read(document) for document in documents]
        pause()
        scores = [self._first(state) for state in states]
        if self.reader is not None:
            self._settle(states, scores)
        return [_shares(score, state.sizes) for score, state in zip(scores, states, strict=True)]

    def read(self, document: Document) -> _State:
        """Return what the networks read of a document, but for what needs the encoder."""
        text, mentions = Text(document.text), document.mentions or []
        bounds = unspaced.word_bounds(document.text)
        owners: dict[int, set[int]] = defaultdict(set)  # of words: mentions
        for number, mention in enumerate(mentions):
            for word in range(*text.range(mention.start, mention.end)):
                owners[word].add(number)
        of_mentions = []
        bearers = other_bearers(text, owners)
        for number, mention in enumerate(mentions):
            others = frozenset(word for word, numbers in owners.items() if numbers != {number})
            of_mentions.append(
                mention_features.mention_features(
                    text, mention.start, mention.end, self.features.spellings(mention), self.counts, others,
                    bearers,
                    german=self._german,
                )
                + unspaced.unspaced_features(document.text, mention.start, mention.end, bounds)
            )  # fmt: skip
        of_candidates, pairs = self.features(text, mentions)
        sizes = np.array([len(rows) for rows in of_candidates], np.int64)
        folded = {name: number for number, name in enumerate(dict.fromkeys(map(_folded, mentions)))}
        names = np.repeat(np.array([folded[_folded(mention)] for mention in mentions], np.int64), sizes)
        width = len(mention_features.FEATURES) + len(unspaced.FEATURES)
        return _State(
            text, mentions, sizes, np.array(of_mentions, np.float32).reshape(-1, width),
            np.concatenate([np.empty((0, len(candidate_features.FEATURES)), np.float32), *of_candidates]),
            names, pairs,
        )  # fmt: skip

    def first_features(self, state: _State, cosines: Scores | None = None) -> tuple[Matrix, Scores]:
        """Return (R, F) in the order of `FEATURES`, and log q (R,).

        Args:
            state: document.
            cosines: (R,) weighted, of the entities' texts with the document's; None if they are not read.
        """
        log_q, support = ranked(state, cosines)
        best = np.repeat(_most(log_q, state.sizes), state.sizes)
        kinds = self._kinds(state.ids)
        shown = np.zeros(len(log_q), np.float32) if cosines is None else cosines
        columns = np.stack([log_q, log_q - best, support, shown], axis=1)
        of_mentions = np.repeat(state.of_mentions, state.sizes, axis=0)
        return np.concatenate([of_mentions, state.of_candidates, named_sorts(kinds), columns], axis=1).astype(
            np.float32
        ), log_q

    def second_features(self, state: _State, chosen: Numbers, read: Matrix) -> tuple[Matrix, Matrix, Scores]:
        """Return (r, F) in the order of `FEATURES`, vectors (m, V) of `READ`, and log q (r,), of some mentions.

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
        features, log_q = self.first_features(state, cosines)
        vectors = np.stack([read[:, 0, 0], read[:, 0, 1], read[:, 1, 0], read[:, 2, 0]], axis=1)
        return (
            features[rows],
            vectors.reshape(len(vectors), -1) * np.float32(np.sqrt(texts.shape[1])),
            log_q[rows],
        )

    def read_vectors(self, states: Sequence[_State], chosen: Sequence[Numbers]) -> list[Matrix]:
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

    def _first(self, state: _State) -> Scores:
        """Return s (R,) of the network that reads no encoder."""
        features, log_q = self.first_features(state)
        scores: Scores = log_q + self.first(
            features, np.empty((len(state.sizes), 0), np.float32), state.sizes
        )
        return scores

    def _settle(self, states: Sequence[_State], scores: list[Scores]) -> None:
        """Score again the mentions that the first network has not settled."""
        found = []
        for state, score in zip(states, scores, strict=True):
            best = np.array([_largest(share) for share in _shares(score, state.sizes)])
            found.append(np.flatnonzero((best > 1 - _SETTLED) & (best < _SETTLED)))
        at = [number for number, chosen in enumerate(found) if len(chosen)]
        if not at:
            return
        assert self.vectors is not None
        self.vectors.prepare(
            np.concatenate(
                [states[number].ids[_rows_of(states[number].sizes, found[number])] for number in at]
            )
        )
        read = self.read_vectors([states[number] for number in at], [found[number] for number in at])
        for number, vectors_read in zip(at, read, strict=True):
            state, chosen = states[number], found[number]
            features, vectors, log_q = self.second_features(state, chosen, vectors_read)
            scores[number][_rows_of(state.sizes, chosen)] = log_q + self.second(
                features, vectors, state.sizes[chosen]
            )

    def _kinds(self, ids: Numbers) -> list[str]:
        return [self.features.of(number).kind for number in ids.tolist()]


def ranked(state: _State, cosines: Scores | None) -> tuple[Scores, Scores]:
    """Return log q and log(1 + S), (R,) each."""
    features = state.of_candidates
    base = PRIOR * features[:, _OF_PRIOR] + LABEL * features[:, _OF_LABEL]
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
        if before.text.lower() in TITLES | FUNCTION or owners.get(index, set()) & owners.get(index - 1, set()):
            continue
        if not begins_sentence(text.text, before.start):
            found.add(word.text)
    return frozenset(found)


def _support(state: _State, shares: Scores) -> Scores:
    """Return S, (R,)."""
    best: dict[tuple[int, int], float] = {}
    names, weight = state.names.tolist(), shares.tolist()
    for one, other in state.pairs.tolist():
        for row, by in ((one, other), (other, one)):
            key = (row, names[by])
            best[key] = max(best.get(key, 0.0), weight[by])
    support = np.zeros(len(shares), np.float32)
    for (row, _), share in best.items():
        support[row] += share
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


def _filled(cosines: Scores, described: "np.ndarray[Any, Any]", sizes: Numbers) -> Scores:
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


def _largest(shares: Scores) -> float:
    return float(shares.max(initial=0.0))


def _rows_of(sizes: Numbers, chosen: Numbers) -> Numbers:
    """Return the rows of the candidates of some mentions."""
    begins = np.cumsum(sizes) - sizes
    return np.concatenate(
        [np.arange(begins[number], begins[number] + sizes[number]) for number in chosen.tolist()]
    )


def _folded(mention: Mention) -> str:
    return " ".join(mention.text.lower().split())
