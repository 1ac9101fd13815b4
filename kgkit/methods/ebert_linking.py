"""E-BERT-MLM as a linker (Poerner et al. 2020): it predicts masked entities, the surest first.

models/NAME/
    model.json      `EBertManifest`
    ebert/          the model, as `EBertLinker.save_pretrained` writes it, with its tokenizer

A document is read in parts, see `kgkit.inputs.ebert_linking`. Candidates without a vector have no
probability. A mention that no part holds, or none of whose candidates has a vector, is not scored: where ε is
a candidate it means nothing, else it has its prior.

A part is read in rounds:

    J  rounds    j  this one, from 1    m  links so far    n  spans whose likeliest candidate is not ε

A round reads the spans that overlap no link, and gives each a distribution over its candidates and ε. The n
spans are sorted by 1 − p(ε), and one that overlaps a surer one is left out. The first k of those that are
left, or all, become links, and stand in the text as entities when the next round reads it:

    k = ⌈j (m + n) / J⌉ − m                                                              their footnote 11

Departures:
    Without ε, as for senses, the probability of the likeliest candidate takes the place of 1 − p(ε). The
    released code rounds down, sorts by the index of the likeliest candidate in its list, and lets spans whose
    likeliest candidate is ε stand in the way of others.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kgkit.encoder.folder import ENCODER
from kgkit.inputs.ebert_linking import (
    ADDED,
    CandidateSpan,
    DocumentPart,
    EBertLinkingReader,
    EntityLink,
)
from kgkit.inputs.entity_vectors import RescaledEntityVectors, StoredEntityVectors, choose_entity_vectors
from kgkit.inputs.knowledge import Knowledge, check_knowledge, knowledge_of
from kgkit.linking.models import linked_kb
from kgkit.linking.scoring import Scorer, Scores
from kgkit.methods.ebert_settings import EBERT, EBertManifest
from kgkit.models.encoders import encoder_inside
from kgkit.models.manifest import checking_settings, damaged
from kgkit.types import NO_CANDIDATES, Candidates, Document

if TYPE_CHECKING:
    from typing import Self

    from kgkit.heads.ebert import EBert
    from kgkit.heads.ebert_linker import EBertLinker
    from kgkit.models.opening import Opening


ROUNDS: Final = 3
"""J, as published."""


class Refinement:
    """The spans of one part of a document, linked in rounds.

    Args:
        spans: spans that may be linked; they may overlap.
        null: whether distributions have ε, as their last number.

    Attributes:
        links: spans that are linked, the surest of the first round first.
        probabilities: the latest distribution of each span, by the index of its mention.
    """

    def __init__(self, spans: Sequence[CandidateSpan], *, null: bool) -> None:
        self.spans, self.null = tuple(spans), null
        self.links: list[EntityLink] = []
        self.probabilities: dict[int, Scores] = {}

    @property
    def unlinked(self) -> list[CandidateSpan]:
        """The spans that overlap no link: a round reads them."""
        linked = [span for span, _ in self.links]
        return [span for span in self.spans if not any(span.overlaps(other) for other in linked)]

    def update(self, probabilities: Mapping[int, Scores], number: int, rounds: int = ROUNDS) -> int:
        """Take the distributions of a round, link the surest spans, and return how many these are.

        Args:
            probabilities: (C,) of each span that was read, and of ε behind them, by its mention's index.
            number: j, from 1.
            rounds: J.
        """
        self.probabilities |= probabilities
        linkable = [span for span in self.unlinked if self._best(span) < len(span.ids)]
        before = len(self.links)
        count = max(0, -(-number * (before + len(linkable)) // rounds) - before)
        self.links += self._without_overlaps(linkable)[:count]
        return len(self.links) - before

    def is_excluded(self, span: CandidateSpan) -> bool:
        """Say whether a span overlaps one that was linked, and is not linked itself."""
        linked = {other.mention for other, _ in self.links}
        return span.mention not in linked and any(span.overlaps(other) for other, _ in self.links)

    def _without_overlaps(self, linkable: Sequence[CandidateSpan]) -> list[EntityLink]:
        """Return the links of spans, the surest first, without those that overlap a surer one."""
        chosen: list[EntityLink] = []
        for span in sorted(linkable, key=lambda span: (-self._confidence(span), span.first, -span.end)):
            if not any(span.overlaps(other) for other, _ in chosen):
                chosen.append((span, span.ids[self._best(span)]))
        return chosen

    def _best(self, span: CandidateSpan) -> int:
        return int(np.argmax(self.probabilities[span.mention]))

    def _confidence(self, span: CandidateSpan) -> float:
        probabilities = self.probabilities[span.mention]
        return 1 - float(probabilities[-1]) if self.null else float(probabilities.max())


def vectors_fields(ebert: "EBert", vectors: StoredEntityVectors | None) -> dict[str, Any]:
    """Return the fields of a manifest that tell of vectors and their map.

    Args:
        ebert: head.
        vectors: vectors that it reads; None: it reads none.
    """
    weight = None if ebert.weight is None else ebert.weight.cpu().numpy().tobytes()
    return {
        "alignment": "" if weight is None else hashlib.blake2b(weight, digest_size=8).hexdigest(),
        "norm": vectors.norm if isinstance(vectors, RescaledEntityVectors) else 0.0,
    }


def vectors_of(
    folder: Path, manifest: EBertManifest, knowledge: Knowledge, ebert: "EBert"
) -> StoredEntityVectors:
    """Return the vectors that a trained model reads.

    Args:
        folder: folder of the model.
        manifest: of the model.
        knowledge: its knowledge base, with its vectors as they are stored.
        ebert: its head.

    Raises:
        DamagedModel: if the model reads vectors without a map, as some of version 0.2.0.
    """
    [vectors] = knowledge.vectors
    if ebert.weight is None:
        raise damaged(folder, "it reads random vectors, or vectors without a map, as no model does any more")
    return choose_entity_vectors(vectors, ebert.weight.cpu().numpy(), manifest.norm)


def vectors_names(manifest: EBertManifest) -> list[str]:
    """Return the names that a model's vectors have in their knowledge base."""
    return [path.rpartition("/")[2] for path in manifest.needs.vectors]


FOLDER: Final = EBERT.name
"""The folder of the model, in that of all that belongs to it."""

_AT_ONCE: Final = 32  # sequences


class EBertScorer(Scorer):
    """Scores candidates as the entities that a masked language model predicts.

    Args:
        linker: the model, in evaluation mode.
        reader: reader of documents.
        name: name of the model, which links carry.
        rounds: rounds of refinement; 1: all spans are read once, and none as an entity.
        exclusive: whether it chooses among mentions that overlap: all but the surest have no probability.
            Else each has its latest distribution.
    """

    batch_size = 32

    def __init__(
        self,
        linker: "EBertLinker",
        reader: EBertLinkingReader,
        *,
        name: str = "ebert",
        rounds: int = ROUNDS,
        exclusive: bool = False,
    ) -> None:
        self.linker, self.reader, self.name, self.rounds = linker, reader, name, rounds
        self.exclusive = exclusive
        self.scores_null = linker.config.null

    @classmethod
    def open(cls, folder: Path, manifest: EBertManifest, opening: "Opening") -> "Self":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            UsageError: if it was not trained with the knowledge base that it is opened on, or none is
                named; if vectors are named: it has its own.
            StaleModel: if that is another build than one that adds to that of the training, or has other
                vectors.
            NotThere: if the vectors are gone.
            DamagedModel: if its files cannot be read.
        """
        from kgkit.heads.ebert_linker import EBertLinker

        kb = linked_kb("an E-BERT", manifest, manifest.trained_with, opening)
        if manifest.linking is None or not manifest.linking.prime:
            raise damaged(folder, "it has no settings of a linker, or those of an older kgkit")
        knowledge = knowledge_of(kb, vectors_names(manifest))
        check_knowledge({kb.name: knowledge}, manifest.trained_with)
        linker = EBertLinker.from_pretrained(folder / FOLDER, device=opening.device)
        stored = vectors_of(folder, manifest, knowledge, linker.ebert)
        encoder = encoder_inside(linker.ebert, manifest.encoder, folder / FOLDER / ENCODER)
        with checking_settings(folder):
            reader = EBertLinkingReader(
                encoder, stored, size=manifest.size, packed=manifest.linking.packed, spaced=manifest.spaced
            )
        return cls(
            linker, reader, name=manifest.name, rounds=manifest.linking.rounds,
            exclusive=opening.use_threshold,
        )  # fmt: skip

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        parts = [
            (number, part)
            for number, document in enumerate(documents)
            for part in self.reader.read(document)
            if part.spans
        ]
        refined = self._refine([part for _, part in parts])
        results = [[self._unread(mention.candidates or NO_CANDIDATES) for mention in document.mentions or ()]
                   for document in documents]  # fmt: skip
        for (number, part), refinement in zip(parts, refined, strict=True):
            for span in part.spans:
                scores = np.zeros_like(results[number][span.mention])
                if not (self.exclusive and refinement.is_excluded(span)):
                    scores[span.rows] = refinement.probabilities[span.mention][: len(span.rows)]
                results[number][span.mention] = scores
        return results

    def _unread(self, candidates: Candidates) -> Scores:
        """Return the scores of a mention that is never read: NULL, if there is one, has all of them."""
        return np.zeros_like(candidates.priors) if self.scores_null else candidates.priors

    def _refine(self, parts: Sequence[DocumentPart]) -> list[Refinement]:
        """Link parts of documents in rounds, each for itself; what is read in a round is read together."""
        refinements = [Refinement(part.spans, null=self.linker.config.null) for part in parts]
        changed = set(range(len(parts)))  # what would be read again as it was is not
        for number in range(1, self.rounds + 1):
            passes = [
                _Pass(index, parts[index], spans, tuple(refinements[index].links))
                for index in sorted(changed)
                for spans in self.reader.passes(
                    parts[index], refinements[index].unlinked, refinements[index].links
                )
            ]
            probabilities: list[dict[int, Scores]] = [{} for _ in parts]
            for reading, rows in zip(passes, self._probabilities(passes), strict=True):
                for span, row in zip(reading.spans, rows, strict=True):
                    probabilities[reading.number][span.mention] = row
            changed = {
                index
                for index, refinement in enumerate(refinements)
                if refinement.update(probabilities[index], number, self.rounds)
            }
        return refinements

    def _probabilities(self, passes: "Sequence[_Pass]") -> Iterator[list[Scores]]:
        """Yield, for each pass and span, the probabilities of its candidates, and of ε behind them."""
        import torch

        device = next(self.linker.parameters()).device
        order = sorted(range(len(passes)), key=lambda index: passes[index].length)
        results: dict[int, list[Scores]] = {}
        for begin in range(0, len(order), _AT_ONCE):
            indices = order[begin : begin + _AT_ONCE]
            masked = [
                self.reader.mask(passes[index].part, passes[index].spans, passes[index].links)
                for index in indices
            ]
            inputs = self.reader.batch(masked).to(device)
            with torch.inference_mode():
                rows = iter(torch.softmax(self.linker(inputs), -1).cpu().numpy())
            for index in indices:
                results[index] = [self._real(next(rows), len(span.ids)) for span in passes[index].spans]
        yield from (results[index] for index in range(len(passes)))

    def _real(self, row: Scores, count: int) -> Scores:
        """Return the probabilities of *count* candidates, and of ε, without those of padding."""
        return np.append(row[:count], row[-1:]) if self.linker.config.null else row[:count]


class _Pass(NamedTuple):
    """A sequence that is to be read.

    Attributes:
        number: index of the part of a document among those that are linked together.
        part: the part.
        spans: spans whose entities are masked, as they stand in the text.
        links: spans that are read as entities.
    """

    number: int
    part: DocumentPart
    spans: tuple[CandidateSpan, ...]
    links: tuple[EntityLink, ...]

    @property
    def length(self) -> int:
        """Number of pieces, without special ones."""
        linked = sum(span.end - span.first - 1 for span, _ in self.links)
        return len(self.part.ids) - linked + ADDED * len(self.spans)
