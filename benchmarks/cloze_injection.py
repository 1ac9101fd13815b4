"""Cloze questions for E-BERT: the vector of the subject stands beside its name.

    [CLS] Jean_Marais / Jean Mara ##is speaks [MASK] . [SEP]

(Poerner et al. 2020.) Nothing is trained: the masked language model is the plain one. A subject
without a vector is read as word pieces, and so is one whose own name is hidden.

`python -m benchmarks.cloze` asks it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgkit.evaluation.facts import ClozeQuestion
from kgkit.heads.ebert import EBert
from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.entity_sequences import ENTITY, EntitySequence
from kgkit.inputs.entity_spans import EntitySpan, LinkedText
from kgkit.inputs.masking import HiddenPieces, logits_of
from kgkit.methods.cloze import ClozeModel
from kgkit.methods.cloze_opening import (
    MaskedLanguageModel,
)
from kgkit.methods.ebert_encoder import begin_head
from kgkit.types import Numbers

if TYPE_CHECKING:
    from kgkit.vectors import Vectors


class EBertClozeModel(ClozeModel):
    """A masked language model that reads the vectors of subjects.

    Args:
        ebert: E-BERT around the masked language model, in evaluation mode.
        reader: reader of the questions.
        entities: (F,) entity of the subject of each fact that is asked for; -1 where there is none.
        encoder: as `ClozeModel` has it.
    """

    def __init__(self, encoder: Any, ebert: EBert, reader: EBertReader, entities: NDArray[np.int64]) -> None:
        super().__init__(encoder.name, encoder, reader.tokens)
        self.ebert, self.reader, self.entities = ebert, reader, entities

    @torch.inference_mode()
    def predict(self, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
        """Return predictions for the masked pieces of the names that questions hide, read at once."""
        counts, sequences, targets = list[int](), list[EntitySequence](), list[Numbers]()
        for question in questions:
            sequence = self.reader.read([self._linked(question)])
            target = _positions(sequence, question.span)
            fits = len(target) == len(self.hidden_pieces(question)) > 0
            counts.append(len(target) if fits else 0)
            if fits:
                targets.append(target)
                sequences.append(sequence)
        gold = [sequence.ids[target] for sequence, target in zip(sequences, targets, strict=True)]
        if not sequences:
            return self.no_pieces(counts)
        device = next(self.ebert.parameters()).device
        fitting = [question for question, count in zip(questions, counts, strict=True) if count]
        masked = [self._hide(*pair) for pair in zip(sequences, fitting, strict=True)]
        output = self.ebert(self.reader.batch(masked).to(device))
        logits = logits_of(output)  # (B, T, V)
        rows: list[Tensor] = [logits[row, target] for row, target in enumerate(targets)]
        return HiddenPieces(
            torch.cat(rows).float(), torch.from_numpy(np.concatenate(gold)).to(device), counts
        )

    def _linked(self, question: ClozeQuestion) -> LinkedText:
        """Return a question with the entity of its subject, unless the subject is what is hidden."""
        entity = int(self.entities[question.fact])
        if entity < 0 or question.subject is None or question.hidden == "subject":
            return LinkedText(question.text)
        return LinkedText(question.text, (EntitySpan(*question.subject, entity),))

    def _hide(self, sequence: EntitySequence, question: ClozeQuestion) -> EntitySequence:
        """Return a sequence with [MASK] for all word pieces that say the name that is asked for."""
        ids = sequence.ids.copy()
        for span in (question.span, *question.others):
            ids[_positions(sequence, span)] = self.mask
        return EntitySequence(ids, *sequence[1:])


def _positions(sequence: EntitySequence, span: tuple[int, int]) -> Numbers:
    """Return the positions of the word pieces that share a code point with a span."""
    start, end = span
    within = (sequence.ids != ENTITY) & (sequence.starts >= 0)
    return np.flatnonzero(within & (sequence.starts < end) & (sequence.ends > start))


def injected_cloze_model(
    masked_lm: MaskedLanguageModel, vectors: "Vectors", entities: NDArray[np.int64]
) -> EBertClozeModel:
    """Return a masked language model that reads vectors of subjects as if they were word pieces.

    Args:
        masked_lm: plain masked language model.
        vectors: vectors of the entities, which `kgkit align` has mapped to the model's encoder.
        entities: (F,) entity of the subject of each fact; -1 where there is none.
    """
    model, encoder, size = masked_lm
    ebert, stored = begin_head(encoder, vectors, around=model)
    reader = EBertReader(encoder, stored, size=size)
    return EBertClozeModel(encoder, ebert.to(model.device).eval(), reader, entities)
