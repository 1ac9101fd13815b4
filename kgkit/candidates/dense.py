"""Candidates by meaning: a mention in its context is compared with the vectors of all entities.

BLINK's first stage (Wu et al. 2020) with whatever encoder made the vectors, which comes as an argument:
nothing here imports torch. It finds what the surfaces of a KB cannot: names that are misspelt, or that no
source ever gave to the entity. What both find share one budget:

    1  the candidates of the other generator, best first, but for the places reserved for dense ones
    2  the nearest entities that are not among these
    3  the rest of the other generator's, if places are left

    prior(e) = (1 − w) · prior of the other generator + w · softmax(cosine / temperature)

where a mention has both, else what it has counts alone. The softmax is over the `max_candidates` nearest
entities that the mention may mean by its part of speech, whether they get a place or not; so priors and NULL
sum to 1 at most, and entities that both find gain.

What is sought is the surface and, a little, its sentence:

    query = unit(encode(surface)) + c · unit(encode(sentence))

A sentence encoder that was not trained for this puts a surface within its sentence near what the sentence is
about, not near what the surface means: recall halved (docs/dense-candidates.md). An encoder that was, as
BLINK's, takes a text of its own, see `DenseGenerator`.

    M   mentions whose texts are encoded
    K   nearest entities that are looked at
    D   numbers of a vector
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.candidates.matching import Generator
from kgkit.errors import StaleVectors, UsageError
from kgkit.kb.lineage import ancestry
from kgkit.ranges import check_range
from kgkit.types import CANDIDATE, NO_CANDIDATES, NO_SENSE, Candidates, Document, Mention, Rows

if TYPE_CHECKING:
    from kgkit.vectors import Vectors

_PER_POS = 8  # so many times more are looked at where only one part of speech is wanted

Show = Callable[[Document, Mention], str]
"""Gives the text of a mention."""

_SPACE, _LAST_SPACE = re.compile(r"\s"), re.compile(r"\s\S*\Z")


class TextEncoder(Protocol):
    """What turns texts into vectors, as `kgkit.encoder.Encoder` does."""

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return (N, D) float32, a row for each text."""


@dataclass(frozen=True, kw_only=True)
class DenseConfig:
    """Settings of `DenseGenerator`."""

    max_candidates: int = 30  # a mention, of both kinds together
    reserved: int = 0  # places that the other generator's cannot take while there are dense ones
    when: Literal["always", "unknown"] = "always"  # unknown: only where the other generator has none
    weight: float = 0.1  # w, the dense part of a prior where there are both
    temperature: float = 0.05  # of cosines
    context_weight: float = 0.2  # c; 0 encodes surfaces alone
    context: int = 150  # characters on each side of a mention, where its sentence is not known
    batch: int = 256  # mentions that are encoded together

    def __post_init__(self) -> None:
        if self.when not in ("always", "unknown"):
            raise UsageError(f"when is {self.when!r}; it is 'always' or 'unknown'")
        check_range(self, "max_candidates", "batch", least=1)
        check_range(self, "reserved", least=0, most=self.max_candidates)
        check_range(self, "weight", least=0, most=1)
        check_range(self, "temperature", above=0)
        check_range(self, "context_weight", "context", least=0)


class DenseGenerator:
    """Adds the nearest entities to what another generator finds.

    Mentions are those of the other generator, or the given ones. Mentions that
    are given with candidates keep them.

    Args:
        base: other generator; of the same KB as *vectors*.
        encoder: encoder of the texts; the one that made *vectors*.
        vectors: vectors of the entities; of the build of the KB, or one that it extends.
        config: settings of the search and of the mixture.
        text: callable that gives the text of a mention, for an encoder that was trained on mentions in their
            context; surface and sentence are not encoded then.

    Raises:
        StaleVectors: if *vectors* are of another KB or build, where their ids are other entities.
    """

    def __init__(
        self,
        base: Generator,
        encoder: TextEncoder,
        vectors: "Vectors",
        config: DenseConfig | None = None,
        *,
        text: Show | None = None,
    ) -> None:
        self.base, self.encoder, self.vectors, self.text = base, encoder, vectors, text
        self.config = config or DenseConfig()
        if vectors.manifest.build not in ancestry(base.kb):
            raise StaleVectors(
                f"{vectors.name} are vectors of build {vectors.manifest.build}, candidates are of "
                f"{base.kb.name}@{base.kb.build}: open the vectors with `kb.vectors()` of that KB"
            )
        vectors_encoder, text_encoder = vectors.manifest.config.get("encoder"), getattr(encoder, "name", None)
        if vectors_encoder and text_encoder and vectors_encoder != text_encoder:
            import logging  # here: two milliseconds at every start

            message = "%s were made by the encoder %s, mentions are encoded by %s"
            logging.getLogger(__name__).warning(message, vectors.name, vectors_encoder, text_encoder)

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield each document with mentions and candidates."""
        waiting: list[Document] = []
        count = 0
        for document in documents:
            waiting.append(document)
            # Nobody knows yet how many are in a text in which they have to be found.
            count += max(1, len(document.text) // 20 if document.mentions is None else len(document.mentions))
            if count >= self.config.batch:
                yield from self._fill(waiting)
                waiting, count = [], 0
        yield from self._fill(waiting)

    def _fill(self, documents: list[Document]) -> Iterator[Document]:
        positions: list[tuple[int, int]] = []  # document, mention
        results = [*self.base(documents)]
        for index, (before, document) in enumerate(zip(documents, results, strict=True)):
            input_mentions = before.mentions  # they keep their places
            for number, mention in enumerate(document.mentions or ()):
                has_candidates = input_mentions is not None and input_mentions[number].candidates is not None
                if not has_candidates and not (self.config.when == "unknown" and mention.candidates):
                    positions.append((index, number))
        mentions = [(results[index], (results[index].mentions or [])[number]) for index, number in positions]
        new = dict(zip(positions, self._candidates(mentions), strict=True))
        for index, document in enumerate(results):
            mentions_now = [
                structs.replace(mention, candidates=new.get((index, number), mention.candidates))
                for number, mention in enumerate(document.mentions or ())
            ]
            yield structs.replace(document, mentions=mentions_now)

    def _candidates(self, mentions: list[tuple[Document, Mention]]) -> list[Candidates]:
        """Return the candidates of mentions, of both kinds."""
        if not mentions:
            return []
        queries = self._queries(mentions)  # (M, D)
        wide = any(mention.pos for _, mention in mentions)
        k = self.config.max_candidates * (_PER_POS if wide else 1)
        device = getattr(self.encoder, "device", "cpu")
        scores, ids = self.vectors.nearest(queries, k, device=device)  # (M, K)
        return [
            self._mix(mention, *self._filter_by_pos(mention, scores[row], ids[row]))
            for row, (_, mention) in enumerate(mentions)
        ]

    def _queries(self, mentions: list[tuple[Document, Mention]]) -> NDArray[np.float32]:
        """Return what is sought for each mention, (M, D)."""
        if self.text is not None:
            return self._encode([self.text(*pair) for pair in mentions])
        surfaces = self._encode([" ".join(mention.text.split()) for _, mention in mentions])
        if not self.config.context_weight:
            return surfaces
        around = self._encode([sentence_of(*pair, self.config.context) for pair in mentions])
        queries: NDArray[np.float32] = _unit(surfaces) + np.float32(self.config.context_weight) * _unit(
            around
        )
        return queries

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of texts (M, D), equal ones encoded once."""
        unique = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        rows = np.concatenate([self._encode_batch(part) for part in _batches([*unique], self.config.batch)])
        return rows[[unique[text] for text in texts]]

    def _encode_batch(self, texts: list[str]) -> NDArray[np.float32]:
        rows = np.asarray(self.encoder.encode(texts), np.float32)
        if rows.shape != (len(texts), self.vectors.width):
            raise UsageError(
                f"{self.vectors.name} holds vectors of width {self.vectors.width}, the encoder made "
                f"{rows.shape} of {len(texts)} texts: use the encoder that the vectors were made with"
            )
        return rows

    def _filter_by_pos(
        self, mention: Mention, scores: NDArray[np.float32], ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the cosines and ids of what a mention may mean by its part of speech."""
        store = self.base.kb.store
        real = (ids >= 0) & (ids < store.id_count)
        if store.retired:  # vectors that were opened by their folder do not hide these
            real &= ~np.isin(ids, sorted(store.retired))
        scores, ids = scores[real], ids[real]
        if mention.pos:
            matches = self.base.kb.has_pos(ids.astype(np.uint32), mention.pos)
            scores, ids = scores[matches], ids[matches]
        most = self.config.max_candidates
        return scores[:most].astype(np.float64), ids[:most]

    def _mix(self, mention: Mention, scores: NDArray[np.float64], ids: NDArray[np.int64]) -> Candidates:
        config, base = self.config, mention.candidates or NO_CANDIDATES
        if not len(ids):
            return Candidates(base.rows[: config.max_candidates], base.null, base.link_probability)
        weights = np.exp((scores - scores.max()) / config.temperature)
        share = config.weight if len(base) else 1.0
        dense = dict(zip(ids.tolist(), (share * weights / weights.sum()).tolist(), strict=True))
        rows = mix_rows(base.rows, 1 - share, dense, config.max_candidates, config.reserved)
        return Candidates(rows, base.null * (1 - share), 1 - (1 - base.link_probability) * (1 - share))


def mix_rows(base_rows: Rows, share: float, dense: dict[int, float], most: int, reserved: int) -> Rows:
    """Return the rows of one list under one budget, best prior first.

    Args:
        base_rows: rows of the other generator, best first.
        share: weight of their priors.
        dense: mapping of entities to their weights, nearest first.
        most: number of rows of the list.
        reserved: number of these for dense ones that are not among the first of *base_rows*.
    """
    where = {entity: row for row, entity in reversed([*enumerate(base_rows["entity"].tolist())])}
    dense_rows = [(entity, NO_SENSE, 0.0) for entity in dense if entity not in where]
    where.update((entity, row) for row, (entity, *_) in enumerate(dense_rows, len(base_rows)))
    rows = np.empty(len(base_rows) + len(dense_rows), CANDIDATE)  # all that may get a place
    rows[: len(base_rows)] = base_rows
    rows["prior"][: len(base_rows)] *= share
    rows[len(base_rows) :] = dense_rows
    for entity, weight in dense.items():
        rows["prior"][where[entity]] += weight
    first = range(min(len(base_rows), most - reserved))
    order = dict.fromkeys([*first, *(where[entity] for entity in dense), *range(len(base_rows))])
    rows = rows[[*order][:most]]
    return rows[np.argsort(-rows["prior"], kind="stable")]


def sentence_of(document: Document, mention: Mention, context: int) -> str:
    """Return the sentence of a mention; where it is not known, what is around it, without cut words.

    Args:
        document: document of the mention.
        mention: mention in it.
        context: characters on each side at most, where sentences are not known.
    """
    text, start, end = document.text, mention.start, mention.end
    for begin, stop in document.sentences or ():
        if begin <= start < stop:
            return " ".join(text[begin : max(stop, end)].split())
    first, last = max(0, start - context), min(len(text), end + context)
    before, after = text[first:start], text[end:last]
    if first and not text[first - 1].isspace() and (match := _SPACE.search(before)):
        before = before[match.start() :]
    if last < len(text) and not text[last].isspace() and (match := _LAST_SPACE.search(after)):
        after = after[: match.start()]
    return " ".join(f"{before}{text[start:end]}{after}".split())


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit_rows: NDArray[np.float32] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit_rows


def _batches(texts: list[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(texts), size):
        yield texts[begin : begin + size]
