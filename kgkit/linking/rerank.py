"""A linker in two stages: what another one thinks likeliest is read together, and scored again.

models/NAME/
    model.json      `LinkerManifest`, which names the first stage
    rerank/         the head, as `kgkit.heads.reranker` writes it
    encoder/        its encoder

Of the candidates of a mention the best k by the first stage are read with the context (after ESC, Barba et
al. 2021). They share out what the first stage gave them together; all others keep what they have:

    p(c) = softmax(s / T)(c) · Σ p₁ over the best k        s: see `kgkit.heads.reranker`

A mention with one candidate, or without a word piece, is left to the first stage. Nothing is stored of
single entities: such a model serves every knowledge base that its first stage does, and reads an entity that
was added later as any other.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.embedding.entity_text import Template
from kgkit.encoder.folder import ENCODER
from kgkit.errors import StaleModel
from kgkit.home import Home
from kgkit.inputs.reranking import CandidateSequence, MentionContext, RerankingReader
from kgkit.linking.models import find_scorer
from kgkit.linking.scoring import ScoreParts, Scorer, Scores, logarithms, shares
from kgkit.models.folder import BUILT_IN, manifest_digest
from kgkit.models.manifest import checking_settings, damaged
from kgkit.pauses import pause
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Candidates, Document

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.heads.reranker import Reranker
    from kgkit.kb import KnowledgeBase
    from kgkit.models.kinds import LinkerManifest
    from kgkit.models.opening import Opening

KIND: Final = "rerank"
HEAD: Final = "rerank"
"""The folder of the head, in that of a model; its encoder lies beside it, in `ENCODER`."""

MAX_BEST: Final = 100
"""The most candidates that are read together: attention goes over the square of their texts."""

_AT_ONCE: Final = 16  # sequences


class RerankReading(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a mention.

    Attributes:
        best: k, how many candidates are read together.
        context: word pieces around the mention.
        length: word pieces of the text of a candidate.
    """

    best: Annotated[int, msgspec.Meta(ge=2, le=MAX_BEST)] = 5
    context: Annotated[int, msgspec.Meta(ge=1)] = 64
    length: Annotated[int, msgspec.Meta(ge=1)] = 32


class BestCandidates(NamedTuple):
    """The candidates of a mention that are read together.

    Attributes:
        rows: (C,) their rows among those of all candidates of the mention.
        sequence: what is read.
    """

    rows: NDArray[np.int64]
    sequence: CandidateSequence


class RerankScorer(Scorer):
    """Scores the best candidates of another scorer again.

    Args:
        first: scorer of the first stage.
        reranker: the head, in evaluation mode.
        reader: reader of mentions and candidates.
        best: k.
        temperature: T.
        name: name of the model, which links carry.
    """

    batch_size = 32

    def __init__(
        self,
        first: Scorer,
        reranker: "Reranker",
        reader: RerankingReader,
        *,
        best: int = 5,
        temperature: float = 1.0,
        name: str = KIND,
    ) -> None:
        self.first, self.reranker, self.reader, self.best = first, reranker, reader, best
        self.scores_null = first.scores_null
        self.temperature: float = temperature
        self.name = name

    @classmethod
    def open(cls, folder: Path, manifest: "LinkerManifest", opening: "Opening") -> "RerankScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            UsageError: if it is opened on no knowledge base, or the first stage is of another one.
            UnknownName: if the first stage is gone.
            StaleModel: if the first stage was trained again since, or is for another build.
            NotThere: if vectors of the first stage are gone.
            DamagedModel: if a file cannot be read.
        """
        from kgkit.encoder import Encoder
        from kgkit.heads.reranker import Reranker

        kb = opening.kb_for(manifest.name)
        if not manifest.first:
            raise damaged(folder, "its manifest names no first stage")
        if first_digest(manifest.first, kb) != manifest.first_sha256:
            raise StaleModel(
                f"the model {manifest.name} scores again what the model {manifest.first} thinks likeliest, "
                "which has been trained again since: train it again too"
            )
        vectors = opening.vectors or manifest.vectors or None
        first = find_scorer(manifest.first, kb, vectors=vectors, device=opening.device)
        read_by = manifest.texts.get("first_fingerprint", "")  # models of 0.2.0 have none
        if read_by and text_fingerprint(first) != read_by:
            raise StaleModel(
                f"the model {manifest.name} scores again what {manifest.first} thinks likeliest by vectors "
                "of another encoder: name them with --vectors, or train it again"
            )
        encoder = Encoder.load(str(folder / ENCODER), device=opening.device)
        with checking_settings(folder):
            reading = msgspec.convert(manifest.reader, RerankReading)
            reader = reader_of(kb, encoder, reading, manifest.texts["template"])
        reranker = Reranker.around(encoder.model, folder / HEAD)
        return cls(
            first, reranker, reader, best=reading.best, temperature=manifest.temperature, name=manifest.name
        )

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return self._rescored(documents, self.first(documents))

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the scores with the parts of the first stage; what this one adds is context."""
        parts = self.first.explain(documents)
        rescored = self._rescored(documents, [[each.score for each in mentions] for mentions in parts])
        return [
            [_with_context(each, score) for each, score in zip(mentions, scores, strict=True)]
            for mentions, scores in zip(parts, rescored, strict=True)
        ]

    def _rescored(
        self, documents: Sequence[Document], first: Sequence[Sequence[Scores]]
    ) -> list[list[Scores]]:
        """Return the scores of candidates by those of the first stage."""
        results = [list(scores) for scores in first]
        readings: list[tuple[int, int, BestCandidates]] = []
        for number, (document, scores) in enumerate(zip(documents, first, strict=True)):
            chosen = best_candidates(self.reader, document, scores, self.best)
            readings += [(number, index, best) for index, best in enumerate(chosen) if best is not None]
        scored = score_sequences(self.reranker, self.reader, [best.sequence for _, _, best in readings])
        for (number, index, best), logits in zip(readings, scored, strict=True):
            own = results[number][index].copy()
            weights = np.exp((logits - logits.max()) / np.float32(self.temperature))
            own[best.rows] = shares(weights) * own[best.rows].sum()
            results[number][index] = own
        return results


def text_fingerprint(first: Scorer) -> str:
    """Return the fingerprint of the encoder whose vectors of texts a first stage reads; "" if of none."""
    vectors = getattr(first, "vectors", None)
    own = getattr(vectors, "vectors", vectors)  # of texts alone, without those of neighbours
    return "" if own is None else str(own.manifest.config.get("fingerprint", ""))


def first_digest(model: str, kb: "KnowledgeBase") -> str:
    """Return the SHA-256 of the manifest of a first stage; "" for one that needs no training.

    Raises:
        UnknownName, NotThere: if there is no such model.
    """
    if model in BUILT_IN:
        return ""
    return manifest_digest(model, Home(kb.home.path.parents[1]), "linker")


def reader_of(
    kb: "KnowledgeBase", encoder: "Encoder", reading: RerankReading, template: str
) -> RerankingReader:
    """Return a reader of mentions and of the texts of a knowledge base's entities.

    Args:
        kb: knowledge base.
        encoder: encoder whose tokenizer cuts the texts.
        reading: how much is read.
        template: template of the texts.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no such template.
    """
    return RerankingReader(
        encoder, entity_texts(kb, template), context=reading.context, length=reading.length
    )


def entity_texts(kb: "KnowledgeBase", template: str) -> Callable[[Sequence[int]], list[str]]:
    """Return a function from ids of entities to the text of each, "" where there is no such entity."""
    write = Template(template)

    def texts(ids: Sequence[int]) -> list[str]:
        """Return the texts of entities."""
        return [write(entity) for entity in kb.store.entities([*ids])]

    return texts


def best_candidates(
    reader: RerankingReader, document: Document, scores: Sequence[Scores], best: int
) -> list[BestCandidates | None]:
    """Return the candidates of each mention that are read together; None for what the first stage decides.

    Args:
        reader: reader of mentions and candidates.
        document: document whose mentions have candidates.
        scores: for each mention the first stage's scores (C,).
        best: how many candidates are read at most.
    """
    mentions = document.mentions or ()
    return [
        None if context is None else _best_of(reader, context, mention.candidates or NO_CANDIDATES, own, best)
        for mention, context, own in zip(mentions, reader.contexts(document), scores, strict=True)
    ]


def _best_of(
    reader: RerankingReader, context: MentionContext, candidates: Candidates, scores: Scores, best: int
) -> BestCandidates | None:
    if len(candidates) < 2 or not scores.any():
        return None
    # Where scores are equal ids decide, so that the order of the candidates does not.
    rows = np.lexsort((candidates.senses, candidates.ids, -scores))[:best]
    first = np.log(np.maximum(shares(scores[rows]), LEAST_PRIOR))
    return BestCandidates(rows, reader.sequence(context, candidates.ids[rows].tolist(), first))


def score_sequences(
    reranker: "Reranker", reader: RerankingReader, sequences: Sequence[CandidateSequence]
) -> list[Scores]:
    """Return the scores (C,) of the candidates of each sequence; those of like lengths are read together."""
    results = [np.empty(0, np.float32) for _ in sequences]
    order = sorted(range(len(sequences)), key=lambda index: sequences[index].length)
    for begin in range(0, len(order), _AT_ONCE):
        if begin:
            pause()
        indices = order[begin : begin + _AT_ONCE]
        rows = _scores_of(reranker, reader, [sequences[index] for index in indices])
        for index, row in zip(indices, rows, strict=True):
            results[index] = row
    return results


def _scores_of(
    reranker: "Reranker", reader: RerankingReader, sequences: Sequence[CandidateSequence]
) -> Iterator[Scores]:
    import torch

    inputs = reader.batch(sequences).to(reranker.scorer.weight.device)
    with torch.inference_mode():
        scores = reranker(inputs).float().cpu().numpy()
    for row, sequence in zip(scores, sequences, strict=True):
        yield row[: len(sequence.texts)]


def _with_context(parts: ScoreParts, score: Scores) -> ScoreParts:
    """Return parts whose context has what a second stage adds."""
    gain = logarithms(score) - logarithms(parts.score)
    return parts._replace(score=score, context=gain if parts.context is None else parts.context + gain)
