"""E-BERT-MLM as a linker (Poerner et al. 2020): it predicts masked entities, the surest first.

models/NAME/
    model.json      `EBertManifest`
    ebert/          the model, as `EBertLinker.save_pretrained` writes it, with its tokenizer

A document is read in parts, see `kgkit.inputs.ebert_linking`. Candidates without a vector have no
probability. A mention that no part holds, or none of whose candidates has a vector, is not scored: where ε is
a candidate it means nothing, else it has its prior.

Where it chooses among mentions that overlap, the surest is kept: that with the highest 1 − p(ε), of those
whose likeliest candidate is not ε. Without ε, as for senses, the probability of the likeliest candidate takes
its place.

Departures:
    A part is read once. The paper reads it in three rounds, and spans that were linked stand as entities in
    the next: docs/decisions/ebert-packed-links.md.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.encoder.folder import ENCODER
from kgkit.inputs.ebert_linking import ADDED, CandidateSpan, DocumentPart, EBertLinkingReader
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
        exclusive: whether it chooses among mentions that overlap: all but the surest have no probability.
    """

    batch_size = 32

    def __init__(
        self,
        linker: "EBertLinker",
        reader: EBertLinkingReader,
        *,
        name: str = "ebert",
        exclusive: bool = False,
    ) -> None:
        self.linker, self.reader, self.name, self.exclusive = linker, reader, name, exclusive
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
            DamagedModel: if its files cannot be read, or it is of a kgkit that linked in rounds.
        """
        from kgkit.heads.ebert_linker import EBertLinker

        kb = linked_kb("an E-BERT", manifest, manifest.trained_with, opening)
        if not manifest.packed:
            raise damaged(folder, "it reads one mention at a time, as no model does any more")
        knowledge = knowledge_of(kb, vectors_names(manifest))
        check_knowledge({kb.name: knowledge}, manifest.trained_with)
        linker = EBertLinker.from_pretrained(folder / FOLDER, device=opening.device)
        stored = vectors_of(folder, manifest, knowledge, linker.ebert)
        encoder = encoder_inside(linker.ebert, manifest.encoder, folder / FOLDER / ENCODER)
        with checking_settings(folder):
            reader = EBertLinkingReader(encoder, stored, size=manifest.size)
        return cls(linker, reader, name=manifest.name, exclusive=opening.use_threshold)

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        results = [[self._unread(mention.candidates or NO_CANDIDATES) for mention in document.mentions or ()]
                   for document in documents]  # fmt: skip
        parts = [
            (own, part, [(part, spans) for spans in self.reader.passes(part, part.spans)])
            for own, document in zip(results, documents, strict=True)
            for part in self.reader.read(document)
        ]
        rows = self._probabilities([one for _, _, passes in parts for one in passes])
        for own, part, passes in parts:
            shares = {span.mention: next(rows) for _, spans in passes for span in spans}
            chosen = self._without_overlaps(part.spans, shares) if self.exclusive else part.spans
            kept = {span.mention for span in chosen}
            for span in part.spans:
                own[span.mention] = np.zeros_like(own[span.mention])
                if span.mention in kept or not any(span.overlaps(other) for other in chosen):
                    own[span.mention][span.rows] = shares[span.mention][: len(span.rows)]
        return results

    def _unread(self, candidates: Candidates) -> Scores:
        """Return the scores of a mention that is never read: NULL, if there is one, has all of them."""
        return np.zeros_like(candidates.priors) if self.scores_null else candidates.priors

    def _without_overlaps(
        self, spans: Sequence[CandidateSpan], shares: Mapping[int, Scores]
    ) -> list[CandidateSpan]:
        """Return the spans whose likeliest candidate is not ε, without those that overlap a surer one."""

        def confidence(span: CandidateSpan) -> float:
            own = shares[span.mention]
            return 1 - float(own[-1]) if self.scores_null else float(own.max())

        chosen: list[CandidateSpan] = []
        for span in sorted(spans, key=lambda span: (-confidence(span), span.first, -span.end)):
            is_link = int(shares[span.mention].argmax()) < len(span.ids)
            if is_link and not any(span.overlaps(other) for other in chosen):
                chosen.append(span)
        return chosen

    def _probabilities(self, passes: "Sequence[_Pass]") -> Iterator[Scores]:
        """Yield the probabilities of the candidates of each span of each pass, and of ε behind them."""
        import torch

        device = next(self.linker.parameters()).device
        lengths = [len(part.ids) + ADDED * len(spans) for part, spans in passes]
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


_Pass = tuple[DocumentPart, tuple[CandidateSpan, ...]]
"""A part of a document, and the spans whose entities are masked in one sequence of it."""
