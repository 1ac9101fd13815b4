"""What KnowBert reads: a text, or a pair, as word pieces, and the mentions that knowledge bases know in it.

    B  texts of a batch    T  word pieces of one         M  mentions of one in a knowledge base
    C  candidates          U  entities of a batch, once  D  their width

A batch holds the vectors of its own entities alone, taken from where they are mapped: a knowledge base of
millions of entities needs no more of the device than a small one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kgkit.encoder import Encoder
from kgkit.inputs.knowledge import Knowledge, check_knowledge
from kgkit.inputs.linking import text_linker_inputs
from kgkit.inputs.mentions import find_mentions, join_spans, parts_around_cuts, spans_within
from kgkit.inputs.texts import SIZE, TextReader, TokenizedText
from kgkit.inputs.windows import windows
from kgkit.types import Document

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from kgkit.heads.entity_linker import LinkerInputs


class KnowBertBatch(NamedTuple):
    """What a KnowBert is called with: `knowbert(batch.knowledge, **batch.inputs)`.

    Attributes:
        inputs: `input_ids`, `attention_mask` and, if the encoder takes them, `token_type_ids`, (B, T) int64.
        knowledge: inputs of linkers, by the name of their knowledge base.
    """

    inputs: "dict[str, Tensor]"
    knowledge: "dict[str, LinkerInputs]"

    def to(self, device: "torch.device", **_: object) -> "KnowBertBatch":
        """Return it on a device."""
        return KnowBertBatch(
            {name: tensor.to(device) for name, tensor in self.inputs.items()},
            {name: inputs.to(device) for name, inputs in self.knowledge.items()},
        )


class KnowBertReader(TextReader):
    """Gives a KnowBert texts to read.

    Args:
        encoder: encoder whose tokenizer cuts them.
        knowledge: knowledge bases by name.
        size: number of word pieces of a text, special ones included; what is longer is cut, the longer of a
            pair first, and a warning is logged once.

    Raises:
        UsageError: if the encoder reads fewer pieces, or there is no room for any.

    Examples:
        >>> wordnet = Knowledge(LemmaGenerator(kb), (kb.vectors("tucker"), kb.vectors("text")))
        >>> reader = KnowBertReader(encoder, {"wordnet": wordnet})
        >>> batch = reader.batch([*reader([("The dog barks.",), ("A premise.", "A hypothesis.")])])
        >>> knowbert(batch.knowledge, **batch.inputs).model.last_hidden_state.shape
        torch.Size([2, 10, 384])
    """

    def __init__(self, encoder: Encoder, knowledge: Mapping[str, Knowledge], *, size: int = SIZE) -> None:
        super().__init__(encoder, size=size)
        self.knowledge = dict(knowledge)

    def check(self, trained_with: Mapping[str, Mapping[str, str]]) -> None:
        """Make sure that a model knows these knowledge bases: see `check_knowledge`."""
        check_knowledge(self.knowledge, trained_with)

    def __call__(self, texts: Iterable[tuple[str, ...]]) -> Iterator[TokenizedText]:
        """Yield each text, or pair, as it is read.

        Args:
            texts: tuples of one text, or of two.

        Raises:
            UsageError: if a tuple has more, or none.
        """
        generators = {name: knowledge.generator for name, knowledge in self.knowledge.items()}
        for example, documents in find_mentions(texts, generators):
            text, parts = self.tokenize(example)
            mentions = {
                name: join_spans(
                    [
                        spans_within(
                            part.pieces.of(document.mentions or []), document, 0, part.length, part.begin
                        )
                        for part, document in zip(parts, linked, strict=True)
                    ]
                )
                for name, linked in documents.items()
            }
            yield text._replace(mentions=mentions)

    def read_document(
        self, document: Document, linked: Mapping[str, Document], *, uncut: Mapping[str, int] | None = None
    ) -> list[TokenizedText]:
        """Return a document of any length as texts that are read one by one: nothing is left out of it.

        Sentences are kept whole and put together as long as there is room; mentions that a cut goes through
        are in none, unless *uncut* asks for them.

        Args:
            document: document whose own mentions are not read.
            linked: documents with mentions, by the name of their knowledge base; for the others mentions are
                generated.
            uncut: number of mentions, from the first on, that are to be in a text, by the name of their
                knowledge base. Behind the other texts come some with those that a cut goes through in the
                middle, and with all else that lies in that part once more; a mention longer than a text is in
                none even so.
        """
        plain = Document(document.id, document.text, document.sentences)
        documents = {
            name: linked[name] if name in linked else next(iter(knowledge.generator(iter([plain]))))
            for name, knowledge in self.knowledge.items()
        }
        pieces, room = self.tokens(document.text), self.room(1)
        begins = [pieces.within(*sentence)[0] for sentence in document.sentences or ()]
        ranges = {name: pieces.of(linked.mentions or []) for name, linked in documents.items()}  # (M, 2)
        parts = [(window.begin, window.end) for window in windows(len(pieces), begins, size=room, context=0)]
        cuts = [begin for begin, _ in parts]
        for name, count in (uncut or {}).items():
            parts += parts_around_cuts(ranges[name][:count], cuts, len(pieces), room)
        texts = []
        for begin, end in parts:
            ids, special = self.frame([pieces.ids[begin:end]])
            mentions = {
                name: spans_within(ranges[name], linked, begin, end, len(self.tokens.before))
                for name, linked in documents.items()
            }
            texts.append(TokenizedText(ids, np.zeros(len(ids), np.int64), special, mentions))
        return texts

    def batch(self, texts: Sequence[TokenizedText]) -> KnowBertBatch:
        """Return texts padded to the longest."""
        knowledge = {
            name: text_linker_inputs([text.mentions[name] for text in texts], about.gather)
            for name, about in self.knowledge.items()
        }
        return KnowBertBatch(self.pad(texts), knowledge)
