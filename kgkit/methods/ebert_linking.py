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
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.encoder.folder import ENCODER
from kgkit.inputs.ebert_linking import ADDED, CandidateSpan, DocumentPart, EBertLinkingReader, EntityLink
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
        self.spans, self.null = spans, null
        self.links: list[EntityLink] = []
        self.probabilities: dict[int, Scores] = {}

    @property
    def unlinked(self) -> list[CandidateSpan]:
        """The spans that overlap no link: a round reads them."""
        return [span for span in self.spans if not any(span.overlaps(other) for other, _ in self.links)]

    def update(self, number: int, rounds: int = ROUNDS) -> bool:
        """Link the surest spans of a round by their probabilities, and return whether there are any.

        Args:
            number: j, from 1.
            rounds: J.
        """

        def confidence(span: CandidateSpan) -> float:
            own = self.probabilities[span.mention]
            return 1 - float(own[-1]) if self.null else float(own.max())

        best = {mention: int(own.argmax()) for mention, own in self.probabilities.items()}
        linkable = [span for span in self.unlinked if best[span.mention] < len(span.ids)]
        before = len(self.links)
        most = -(-number * (before + len(linkable)) // rounds)
        for span in sorted(linkable, key=lambda span: (-confidence(span), span.first, -span.end)):
            if len(self.links) < most and not any(span.overlaps(other) for other, _ in self.links):
                self.links.append((span, span.ids[best[span.mention]]))
        return len(self.links) > before


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
        self.linker, self.reader, self.name = linker, reader, name
        self.rounds, self.exclusive = rounds, exclusive
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
        linking = manifest.linking
        assert linking is not None  # its role says so
        knowledge = knowledge_of(kb, vectors_names(manifest))
        check_knowledge({kb.name: knowledge}, manifest.trained_with)
        linker = EBertLinker.from_pretrained(folder / FOLDER, device=opening.device)
        stored = vectors_of(folder, manifest, knowledge, linker.ebert)
        encoder = encoder_inside(linker.ebert, manifest.encoder, folder / FOLDER / ENCODER)
        with checking_settings(folder):
            reader = EBertLinkingReader(encoder, stored, size=manifest.size, packed=linking.packed)
        return cls(linker, reader, name=manifest.name, rounds=linking.rounds, exclusive=opening.use_threshold)

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        results = [[self._unread(mention.candidates or NO_CANDIDATES) for mention in document.mentions or ()]
                   for document in documents]  # fmt: skip
        parts = [
            (own, part)
            for own, document in zip(results, documents, strict=True)
            for part in self.reader.read(document)
        ]
        refined = self._refine([part for _, part in parts])
        for (own, part), refinement in zip(parts, refined, strict=True):
            kept = [*refinement.unlinked, *(span for span, _ in refinement.links)]
            for span in part.spans:
                own[span.mention] = np.zeros_like(own[span.mention])
            for span in kept if self.exclusive else part.spans:
                own[span.mention][span.rows] = refinement.probabilities[span.mention][: len(span.rows)]
        return results

    def _unread(self, candidates: Candidates) -> Scores:
        """Return the scores of a mention that is never read: NULL, if there is one, has all of them."""
        return np.zeros_like(candidates.priors) if self.scores_null else candidates.priors

    def _refine(self, parts: Sequence[DocumentPart]) -> list[Refinement]:
        """Link parts of documents in rounds, each for itself; what is read in a round is read together."""
        refined = [Refinement(part.spans, null=self.scores_null) for part in parts]
        pending = [*zip(parts, refined, strict=True)]
        for number in range(1, self.rounds + 1):
            passes = [
                (refinement, (part, spans, refinement.links))
                for part, refinement in pending
                for spans in self.reader.passes(part, refinement.unlinked)
            ]
            rows = self._probabilities([one for _, one in passes])
            for refinement, (_, spans, _) in passes:
                refinement.probabilities |= {span.mention: next(rows) for span in spans}
            # A part without new links would be read again as it was.
            changed = [refinement.update(number, self.rounds) for refinement in refined]
            pending = [*compress(zip(parts, refined, strict=True), changed)]
        return refined

    def _probabilities(self, passes: "Sequence[_Pass]") -> Iterator[Scores]:
        """Yield the probabilities of the candidates of each span of each pass, and of ε behind them."""
        import torch

        device = next(self.linker.parameters()).device
        lengths = [len(part.ids) + ADDED * len(spans) for part, spans, _ in passes]
        order = sorted(range(len(passes)), key=lengths.__getitem__)
        results: dict[int, list[Scores]] = {}
        for begin in range(0, len(order), _AT_ONCE):
            indices = order[begin : begin + _AT_ONCE]
            inputs = self.reader.batch([self.reader.mask(*passes[index]) for index in indices]).to(device)
            with torch.inference_mode():
                rows = iter(torch.softmax(self.linker(inputs), -1).cpu().numpy())
            for index in indices:
                results[index] = [self._real(next(rows), len(span.ids)) for span in passes[index][1]]
        for index in range(len(passes)):
            yield from results[index]

    def _real(self, row: Scores, count: int) -> Scores:
        """Return the probabilities of *count* candidates, and of ε, without those of padding."""
        return np.append(row[:count], row[-1:]) if self.scores_null else row[:count]


_Pass = tuple[DocumentPart, Sequence[CandidateSpan], Sequence[EntityLink]]
"""A part of a document, the spans whose entities are masked in one sequence, and those that are linked."""
