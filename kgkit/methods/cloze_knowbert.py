"""Cloze questions for a KnowBert, or for a plain masked language model: one without knowledge bases."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgkit.encoder import Encoder
from kgkit.evaluation.facts import ClozeQuestion
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.masking import NOTHING, HiddenPieces
from kgkit.methods.cloze import ClozeModel, hide_names
from kgkit.methods.hidden_words import predict_hidden

if TYPE_CHECKING:
    from kgkit.heads.knowbert import KnowBert


class KnowBertClozeModel(ClozeModel):
    """A KnowBert, or a plain masked language model, which is one without knowledge bases.

    What knowledge bases say of a mention with a hidden piece is hidden too: [MASK] is its candidate.

    Args:
        name: name in messages.
        encoder: encoder whose tokenizer cuts the questions.
        knowbert: KnowBert around a masked language model, in evaluation mode.
        reader: reader of the questions.
    """

    def __init__(self, name: str, encoder: Encoder, knowbert: "KnowBert", reader: KnowBertReader) -> None:
        super().__init__(name, encoder, reader.tokens)
        self.knowbert, self.reader = knowbert, reader

    def predict(self, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
        """Return predictions for the masked pieces of the names that questions hide, read at once."""
        texts = self.reader((question.text,) for question in questions)
        counts, names = hide_names(self.tokens, questions, texts, self.mask)
        masked = [name.text for name in names if name is not None]
        if not masked:
            return self.no_pieces(counts)
        for name in names:
            if name is not None:
                name.text.labels[name.others] = NOTHING
        logits, gold, _ = predict_hidden(self.knowbert, self.reader, masked)
        return HiddenPieces(logits, gold, counts)
