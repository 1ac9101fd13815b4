"""What an E-BERT-MLM learns from: sequences with masked entities (Poerner et al. 2020), loss and scores.

    N  spans of a batch    C  candidates of one

A span teaches the entity that it means, ε if it means nothing; one whose gold is not among its candidates, or
has no vector, teaches nothing, and stands in the text of others as it is.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.evaluation.calibration import Scored
from kgkit.heads.ebert_linker import EBertLinkerInputs
from kgkit.inputs.ebert_linking import CandidateSpan, DocumentPart, EBertLinkingReader
from kgkit.methods.ebert_linking import EBertScorer
from kgkit.training.linkers.labelled import LabelledDocument

if TYPE_CHECKING:
    from kgkit.linking.scoring import Scores

Flags = NDArray[np.bool_]

_AT_ONCE = 32  # documents that are scored together


class MaskedExample(NamedTuple):
    """A sequence to learn from.

    Attributes:
        part: part of a document.
        spans: spans whose entities are masked.
        right: for each of them (C,) bool, which candidates are right; none, if it means nothing.
    """

    part: DocumentPart
    spans: tuple[CandidateSpan, ...]
    right: tuple[Flags, ...]


class MaskedBatch(NamedTuple):
    """Sequences, and what their masked entities are.

    Attributes:
        inputs: what the head reads.
        gold: (N, C) bool, and ε behind them where it is a candidate.
    """

    inputs: EBertLinkerInputs
    gold: Tensor

    def to(self, device: torch.device, **_: object) -> "MaskedBatch":
        """Return it on a device."""
        return MaskedBatch(self.inputs.to(device), self.gold.to(device))


def masked_examples(
    documents: Sequence[LabelledDocument], reader: EBertLinkingReader, *, null: bool
) -> Iterator[MaskedExample]:
    """Yield documents as sequences to learn from; spans that teach nothing are masked in none.

    Args:
        documents: documents whose mentions have candidates.
        reader: reader of documents.
        null: whether a span that means nothing teaches ε.
    """
    for labelled in documents:
        for part in reader.read(labelled.document):
            learnable = [span for span in part.spans if _is_learnable(labelled, span, null=null)]
            for spans in reader.passes(part, learnable):
                right = tuple(labelled.right[span.mention][span.rows] for span in spans)
                yield MaskedExample(part, spans, right)


def _is_learnable(labelled: LabelledDocument, span: CandidateSpan, *, null: bool) -> bool:
    """Say whether a span teaches something: an entity that is a candidate with a vector, or ε."""
    right = labelled.right[span.mention]
    means_nothing = not right.any() and span.mention not in labelled.unmatched
    return bool(right[span.rows].any()) or (null and means_nothing)


def masked_batch(examples: Sequence[MaskedExample], reader: EBertLinkingReader, *, null: bool) -> MaskedBatch:
    """Return examples as a batch."""
    inputs = reader.batch([reader.mask(example.part, example.spans) for example in examples])
    right = [flags for example in examples for flags in _by_position(example)]
    gold = np.zeros((len(right), inputs.candidates.shape[1] + null), np.bool_)
    for row, flags in enumerate(right):
        gold[row, : len(flags)] = flags
        if null and not flags.any():
            gold[row, -1] = True
    return MaskedBatch(inputs, torch.from_numpy(gold))


def _by_position(example: MaskedExample) -> list[Flags]:
    """Return which candidates are right, of the spans as they stand in the text."""
    order = sorted(range(len(example.spans)), key=lambda index: example.spans[index].first)
    return [example.right[index] for index in order]


def loss(model: nn.Module, batch: MaskedBatch) -> tuple[Tensor, float]:
    """Return − log p(gold) as the mean over the spans of a batch, and their number."""
    scores: Tensor = model(batch.inputs)  # (N, C + 1)
    likely = torch.log_softmax(scores.float(), -1).masked_fill(~batch.gold, -torch.inf)
    return -torch.logsumexp(likely, -1).mean(), float(len(scores))


def score_labelled(scorer: EBertScorer, documents: Sequence[LabelledDocument]) -> Scored:
    """Return the probabilities of the candidates of each mention, and which are right; ε is behind them.

    Without ε, mentions none of whose candidates is right are left out.

    Args:
        scorer: scorer of documents.
        documents: documents whose mentions have candidates.
    """
    null, scored = scorer.scores_null, list[tuple["Scores", Flags]]()
    for begin in range(0, len(documents), _AT_ONCE):
        block = documents[begin : begin + _AT_ONCE]
        for labelled, results in zip(block, scorer([each.document for each in block]), strict=True):
            for scores, right in zip(results, labelled.right, strict=True):
                if null:
                    rest = np.float32(1 - scores.sum())
                    scored.append((np.append(scores, rest), np.append(right, not right.any())))
                elif right.any():
                    scored.append((scores, right))
    return scored
