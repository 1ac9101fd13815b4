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
from kgkit.kb.nearest import ancestry
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
        wrong = self.max_candidates < 1 or not 0 <= self.reserved <= self.max_candidates
        wrong |= not 0 <= self.weight <= 1 or self.temperature <= 0 or self.batch < 1
        wrong |= self.context_weight < 0 or self.context < 0
        if wrong:
            raise UsageError(
                f"out of range in {self}: max_candidates >= 1, reserved in [0, max_candidates], weight in "
                "[0, 1], temperature > 0, context_weight >= 0, context >= 0, batch >= 1"
            )


class DenseGenerator:
    """Adds the nearest entities to what another generator finds.

    Mentions are those of the other generator, or the given ones. Mentions that
    are given with candidates keep them.

    Args:
        base: the other generator; of the same KB as *vectors*.
        encoder: of the texts; the one that made *vectors*.
        vectors: of the entities; of the build of the KB, or one that it extends.
        config: how.
        text: what gives the text of a mention, for an encoder that was trained on mentions in their
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
        made_by, used = vectors.manifest.config.get("encoder"), getattr(encoder, "name", None)
        if made_by and used and made_by != used:
            import logging  # here: two milliseconds at every start

            said = "%s were made by the encoder %s, mentions are encoded by %s"
            logging.getLogger(__name__).warning(said, vectors.name, made_by, used)

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield each document with mentions and candidates."""
        waiting: list[Document] = []
        count = 0
        for document in documents:
            waiting.append(document)
            # Nobody knows yet how many are in a text in which they have to be found.
            count += max(1, len(document.text) // 20 if document.mentions is None else len(document.mentions))
            if count >= self.config.batch:
                yield from self._filled(waiting)
                waiting, count = [], 0
        yield from self._filled(waiting)

    def _filled(self, documents: list[Document]) -> Iterator[Document]:
        sought: list[tuple[int, int]] = []  # document, mention
        found = [*self.base(documents)]
        for place, (before, document) in enumerate(zip(documents, found, strict=True)):
            given = before.mentions  # they keep their places
            for number, mention in enumerate(document.mentions or ()):
                had = given is not None and given[number].candidates is not None
                if not had and not (self.config.when == "unknown" and mention.candidates):
                    sought.append((place, number))
        mentions = [(found[place], (found[place].mentions or [])[number]) for place, number in sought]
        new = dict(zip(sought, self._candidates(mentions), strict=True))
        for place, document in enumerate(found):
            mentions_now = [
                structs.replace(mention, candidates=new.get((place, number), mention.candidates))
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
        scores, ids = self.vectors.nearest(queries, k)  # (M, K)
        return [
            self._mixed(mention, *self._near(mention, scores[row], ids[row]))
            for row, (_, mention) in enumerate(mentions)
        ]

    def _queries(self, mentions: list[tuple[Document, Mention]]) -> NDArray[np.float32]:
        """Return what is sought for each mention, (M, D)."""
        if self.text is not None:
            return self._encoded([self.text(*pair) for pair in mentions])
        surfaces = self._encoded([" ".join(mention.text.split()) for _, mention in mentions])
        if not self.config.context_weight:
            return surfaces
        around = self._encoded([sentence_of(*pair, self.config.context) for pair in mentions])
        found: NDArray[np.float32] = _unit(surfaces) + np.float32(self.config.context_weight) * _unit(around)
        return found

    def _encoded(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of texts (M, D), equal ones encoded once."""
        unique = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        rows = np.concatenate([self._encode(part) for part in _parts([*unique], self.config.batch)])
        return rows[[unique[text] for text in texts]]

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        rows = np.asarray(self.encoder.encode(texts), np.float32)
        if rows.shape != (len(texts), self.vectors.width):
            raise UsageError(
                f"{self.vectors.name} holds vectors of width {self.vectors.width}, the encoder made "
                f"{rows.shape} of {len(texts)} texts: use the encoder that the vectors were made with"
            )
        return rows

    def _near(
        self, mention: Mention, scores: NDArray[np.float32], ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the cosines and ids of what a mention may mean by its part of speech."""
        real = (ids >= 0) & (ids < len(self.base.kb))
        scores, ids = scores[real], ids[real]
        if mention.pos:
            kept = self.base.kb.has_pos(ids.astype(np.uint32), mention.pos)
            scores, ids = scores[kept], ids[kept]
        most = self.config.max_candidates
        return scores[:most].astype(np.float64), ids[:most]

    def _mixed(self, mention: Mention, scores: NDArray[np.float64], ids: NDArray[np.int64]) -> Candidates:
        config, known = self.config, mention.candidates or NO_CANDIDATES
        if not len(ids):
            return Candidates(known.rows[: config.max_candidates], known.null, known.link_probability)
        weights = np.exp((scores - scores.max()) / config.temperature)
        share = config.weight if len(known) else 1.0
        dense = dict(zip(ids.tolist(), (share * weights / weights.sum()).tolist(), strict=True))
        rows = mixed_rows(known.rows, 1 - share, dense, config.max_candidates, config.reserved)
        return Candidates(rows, known.null * (1 - share), 1 - (1 - known.link_probability) * (1 - share))


def mixed_rows(known: Rows, share: float, dense: dict[int, float], most: int, reserved: int) -> Rows:
    """Return the rows of one list under one budget, best prior first.

    Args:
        known: rows of the other generator, best first.
        share: what their priors count.
        dense: entity -> what it counts, nearest first.
        most: rows of the list.
        reserved: of these, for dense ones that are not among the first of *known*.
    """
    where = {entity: row for row, entity in reversed([*enumerate(known["entity"].tolist())])}
    others = [(entity, NO_SENSE, 0.0) for entity in dense if entity not in where]
    where.update((entity, row) for row, (entity, *_) in enumerate(others, len(known)))
    rows = np.empty(len(known) + len(others), CANDIDATE)  # all that may get a place
    rows[: len(known)] = known
    rows["prior"][: len(known)] *= share
    rows[len(known) :] = others
    for entity, weight in dense.items():
        rows["prior"][where[entity]] += weight
    first = range(min(len(known), most - reserved))
    order = dict.fromkeys([*first, *(where[entity] for entity in dense), *range(len(known))])
    rows = rows[[*order][:most]]
    return rows[np.argsort(-rows["prior"], kind="stable")]


def sentence_of(document: Document, mention: Mention, context: int) -> str:
    """Return the sentence of a mention; where it is not known, what is around it, without cut words.

    Args:
        document: where it stands.
        mention: which.
        context: characters on each side at most, where sentences are not known.
    """
    text, start, end = document.text, mention.start, mention.end
    for begin, stop in document.sentences or ():
        if begin <= start < stop:
            return " ".join(text[begin : max(stop, end)].split())
    first, last = max(0, start - context), min(len(text), end + context)
    left, right = text[first:start], text[end:last]
    if first and not text[first - 1].isspace() and (found := _SPACE.search(left)):
        left = left[found.start() :]
    if last < len(text) and not text[last].isspace() and (found := _LAST_SPACE.search(right)):
        right = right[: found.start()]
    return " ".join(f"{left}{text[start:end]}{right}".split())


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    found: NDArray[np.float32] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return found


def _parts(texts: list[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(texts), size):
        yield texts[begin : begin + size]
