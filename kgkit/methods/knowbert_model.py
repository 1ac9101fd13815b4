"""A KnowBert on disk: opened with its knowledge bases, for vectors in context, and as a linker.

models/NAME/
    model.json      `KnowBertManifest`
    knowbert/       the model, as `KnowBert.save_pretrained` writes it, with its tokenizer
    classifier/     what stands on it, if it was trained for a task
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.home import Home
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.knowledge import Knowledge, knowledge_of, open_knowledge
from kgkit.inputs.texts import TokenizedText
from kgkit.kb import KnowledgeBase
from kgkit.linking.models import linked_kb
from kgkit.linking.scoring import Scorer, Scores
from kgkit.methods.knowbert_settings import KNOWBERT, KnowBertManifest
from kgkit.models.encoders import encoder_inside
from kgkit.models.folder import find_model_folder
from kgkit.models.manifest import damaged
from kgkit.models.opening import Opening, OpenModel
from kgkit.types import NO_CANDIDATES, Document
from kgkit.versions import read_current

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

    from kgkit.encoder import Encoder
    from kgkit.heads.knowbert import KnowBert

FOLDER: Final = "knowbert"
"""The folder of the model, in that of all that belongs to it."""

_AT_ONCE: Final = 32  # texts


class Contextual(NamedTuple):
    """A text with vectors.

    Attributes:
        text: as it was given.
        spans: (P, 2) the code points of its word pieces, end exclusive.
        vectors: (P, H) float32.
    """

    text: str
    spans: NDArray[np.int64]
    vectors: NDArray[np.float32]


class TrainedKnowBert(OpenModel):
    """A KnowBert, and the knowledge bases that it was trained with.

    Args:
        knowbert: the model, in evaluation mode.
        encoder: its encoder, with its tokenizer.
        knowledge: by name.
        manifest: what it says of itself.
        folder: where it lies.

    Examples:
        >>> model = TrainedKnowBert.open("mine")
        >>> for text in model(["The dog barks at the bank."]):
        ...     print(text.spans, text.vectors.shape)
    """

    def __init__(
        self,
        knowbert: "KnowBert",
        encoder: "Encoder",
        knowledge: Mapping[str, Knowledge],
        manifest: KnowBertManifest,
        folder: Path,
    ) -> None:
        self.folder = folder
        self.knowbert, self.encoder, self.manifest = knowbert, encoder, manifest
        self.reader = KnowBertReader(encoder, knowledge, size=manifest.size)
        self._resources = ExitStack()

    @classmethod
    def open(
        cls,
        model: str,
        *,
        home: Home | Path | str | None = None,
        around: str | None = "AutoModel",
        device: str = "auto",
        kbs: Mapping[str, KnowledgeBase] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> "Self":
        """Open a model that `kgkit train knowbert` has made.

        Args:
            model: its name in *home*, or its folder.
            home: where it lies, and its knowledge bases.
            around: the class of transformers; None: the one that it was trained as.
            device: where it is to be.
            kbs: handles of knowledge bases that are open already; the others are opened, until `close`.
            settings: of what stands on the encoder, as `{"num_labels": 3}`.

        Raises:
            UnknownName, NotThere: if there is no such model, or a knowledge base or its vectors are gone.
            StaleModel: if a knowledge base is another build, or has other vectors.
            DamagedModel: if its files cannot be read.
        """
        where = home if isinstance(home, Home) else Home.find(home)
        return read_current(
            lambda: find_model_folder(model, where, KNOWBERT),
            lambda folder: cls.open_folder(
                folder, KNOWBERT.read(folder), where, around=around, device=device, kbs=kbs, settings=settings
            ),
        )

    @classmethod
    def open_folder(
        cls,
        folder: Path,
        manifest: KnowBertManifest,
        home: Home,
        *,
        around: str | None = "AutoModel",
        device: str = "auto",
        kbs: Mapping[str, KnowledgeBase] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> "Self":
        """Open the model in *folder*, of which *manifest* tells; the rest is as in `open`."""
        from kgkit.encoder.folder import ENCODER
        from kgkit.heads.knowbert import KnowBert

        knowbert = KnowBert.from_pretrained(folder / FOLDER, model=around, device=device, settings=settings)
        if strange := sorted({*manifest.kbs} - {*knowbert.trained_with}):
            raise damaged(folder, f"its layers know nothing of the knowledge base {strange[0]}")
        with ExitStack() as stack:
            knowledge = {
                name: knowledge_of((kbs or {})[name], about.vectors)
                if name in (kbs or {})
                else open_knowledge(name, about.vectors, knowbert.trained_with[name], home, stack)
                for name, about in manifest.kbs.items()
            }
            knowledge = {
                name: own.of_width(knowbert.kars[name].config.linker.stored_width)
                for name, own in knowledge.items()
            }
            encoder = encoder_inside(knowbert, manifest.encoder, folder / FOLDER / ENCODER)
            trained = cls(knowbert, encoder, knowledge, manifest, folder)
            trained.reader.check(knowbert.trained_with)
            trained._resources = stack.pop_all()
        return trained

    def __call__(self, texts: Iterable[str]) -> Iterator[Contextual]:
        """Yield each text with the vectors of its word pieces; what is longer than `size` is cut."""
        import torch

        device, source = next(self.knowbert.parameters()).device, iter(texts)
        while part := list(islice(source, _AT_ONCE)):
            read = list(self.reader((text,) for text in part))
            batch = self.reader.batch(read).to(device)
            with torch.inference_mode():
                output = self.knowbert(batch.knowledge, **batch.inputs).model
            hidden = output.last_hidden_state.float().cpu().numpy()
            for text, read_text, vectors in zip(part, read, hidden, strict=True):
                pieces = self.reader.tokens(text)
                count = int((~read_text.special).sum())
                spans = np.stack([pieces.starts[:count], pieces.ends[:count]], axis=1)
                yield Contextual(text, spans, vectors[: len(read_text.ids)][~read_text.special])


class KnowBertScorer(Scorer):
    """Scores candidates by the linker inside a KnowBert, of one of its knowledge bases.

    A document is read in windows. A mention that a cut between two of them goes through is read in one more
    window, around it. One that no window holds (it is longer, or has no word piece) is never scored: where
    the model knows NULL it means nothing, else it has its prior.

    Args:
        trained: the model.
        kb: the knowledge base that is linked to, by the name that the model has for it.
        use_threshold: whether a candidate has to score above δ, as published, if the model has one. Those
            that do share the probability with NULL, and the others have none.
    """

    batch_size = 32
    temperature: float

    def __init__(self, trained: TrainedKnowBert, kb: str, *, use_threshold: bool = False) -> None:
        self.trained, self.kb, self.name = trained, kb, trained.manifest.name
        self.temperature = trained.manifest.kbs[kb].temperature
        config = trained.knowbert.kars[kb].linker.config
        self.has_null = config.null
        self.threshold = config.threshold if use_threshold else None
        self.scores_null = config.null or self.threshold is not None

    @classmethod
    def open(cls, folder: Path, manifest: KnowBertManifest, opening: Opening) -> "Self":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            UsageError: if it was not trained with the knowledge base that it is opened on, or none is
                named; if vectors are named: it has its own.
        """
        kb = linked_kb("a KnowBert", manifest, manifest.kbs, opening)
        trained = TrainedKnowBert.open_folder(
            folder, manifest, Home(kb.home.path.parents[1]), device=opening.device, kbs={kb.name: kb}
        )
        return cls(trained, kb.name, use_threshold=opening.use_threshold)

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        reader, scores_of = self.trained.reader, list[list[Scores]]()
        reads: list[tuple[int, TokenizedText]] = []
        for number, document in enumerate(documents):
            mentions = document.mentions or []
            priors = [(mention.candidates or NO_CANDIDATES).priors for mention in mentions]
            # Of those that are never read: where there is NULL, it has all of the probability.
            scores_of.append([np.zeros_like(prior) for prior in priors] if self.scores_null else priors)
            windows = reader.read_document(
                document, {self.kb: self._among(document)}, uncut={self.kb: len(mentions)}
            )
            reads += [(number, window) for window in windows if len(window.mentions[self.kb].indices)]
        scored = set[tuple[int, int]]()  # a mention in several windows has the score of the first
        for begin in range(0, len(reads), _AT_ONCE):
            self._score(reads[begin : begin + _AT_ONCE], scores_of, scored)
        return scores_of

    def _among(self, document: Document) -> Document:
        """Return a document with its mentions first, and those beside them that training would show."""
        if not self.has_null:  # it was trained on the mentions of the data alone
            return document
        [generated] = self.trained.reader.knowledge[self.kb].generator(
            iter([Document(document.id, document.text, document.sentences)])
        )
        own = list(document.mentions or ())
        spans = {(mention.start, mention.end) for mention in own}
        further = [
            mention for mention in generated.mentions or () if (mention.start, mention.end) not in spans
        ]
        return structs.replace(document, mentions=[*own, *further])

    def _score(
        self,
        reads: Sequence[tuple[int, TokenizedText]],
        scores_of: list[list[Scores]],
        scored: set[tuple[int, int]],
    ) -> None:
        import torch

        knowbert = self.trained.knowbert
        batch = self.trained.reader.batch([text for _, text in reads]).to(next(knowbert.parameters()).device)
        with torch.inference_mode():
            output = knowbert(batch.knowledge, until=self.kb, **batch.inputs).linked[self.kb]
            likely = self._probabilities(output.scores.float()).cpu().numpy()
        for (number, text), each in zip(reads, likely, strict=True):
            mentions = text.mentions[self.kb]
            for index, candidates, shares in zip(
                mentions.indices.tolist(), mentions.candidates, each, strict=False
            ):
                new = index < len(scores_of[number]) and (number, index) not in scored
                if len(candidates) and new:
                    scores_of[number][index] = shares[: len(candidates)]
                    scored.add((number, index))

    def _probabilities(self, scores: "Tensor") -> "Tensor":
        """Return probabilities (B, M, C) for scores ψ (B, M, C); NULL, if there is one, is the last."""
        from kgkit.heads.parts import masked_softmax

        is_candidate = ~scores.isneginf()
        if self.threshold is not None:
            passing = scores > self.threshold
            if self.has_null:
                passing[..., -1] = True  # no link comes of it
            is_candidate &= passing
        return masked_softmax(scores / self.temperature, is_candidate)


def open_embedder(folder: Path, manifest: KnowBertManifest, opening: Opening) -> TrainedKnowBert:
    """Open a KnowBert for the vectors of word pieces in texts."""
    return TrainedKnowBert.open_folder(folder, manifest, opening.home, device=opening.device)


def open_language_model(folder: Path, manifest: KnowBertManifest, opening: Opening) -> TrainedKnowBert:
    """Open a KnowBert that guesses hidden words, inside the class of transformers that does."""
    return TrainedKnowBert.open_folder(folder, manifest, opening.home, around=None, device=opening.device)
