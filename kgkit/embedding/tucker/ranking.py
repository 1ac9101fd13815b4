"""How well a model ranks what it was not shown: the filtered rank of a tail, among all entities or a sample.

    Q  questions (head, relation, tail)    N  entities    C  candidates of a sample    D  entity width

A model trained with inverse triples is asked for the tails of (h, r) and, for heads, of (t, inverse of r), as
it was trained. The rank of the true tail is 1 + the candidates that score higher + half of those that score
the same (PyKEEN's "realistic" rank, Berrendorf et al. 2020). Candidates that are known to be true of the
question, in training, validation or test, are left out (Bordes et al. 2013, "filtered"). A score that is no
number is above every other, and below them where it is the true tail's: it wins nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kgkit.embedding.tucker.contraction import queries, tables
from kgkit.embedding.tucker.true_tails import TrueTails

if TYPE_CHECKING:
    from pykeen.models import Model

_BATCH = 512  # questions at a time, at most
_SCORES = 1 << 25  # scores at a time, at most: 134 MB


@dataclass(frozen=True, kw_only=True)
class RankingScores:
    """What a set of ranks comes to.

    Attributes:
        mrr: mean of 1 / rank.
        hits_at_1: share of ranks that are 1.
        hits_at_3: share of at most 3.
        hits_at_10: share of at most 10.
        questions: number of ranks.
    """

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    questions: int

    @classmethod
    def of(cls, ranks: np.ndarray) -> "RankingScores":
        """Return the scores of *ranks*."""
        shares = [float((ranks <= limit).mean()) for limit in (1, 3, 10)]
        mrr = float((1.0 / ranks).mean())
        return cls(
            mrr=mrr, hits_at_1=shares[0], hits_at_3=shares[1], hits_at_10=shares[2], questions=len(ranks)
        )


@torch.no_grad()
def ranks(
    model: "Model", questions: np.ndarray, true_tails: TrueTails, candidates: np.ndarray | None = None
) -> np.ndarray:
    """Return the filtered rank of each question's tail.

    Args:
        model: TuckER, put into evaluation mode here, and back afterwards.
        questions: (Q, 3), relations numbered as the model's representations are.
        true_tails: true tails, left out except the one asked for.
        candidates: (C,) entities to rank against; all if left out.

    Returns:
        (Q,) float64, at least 1.
    """
    training = model.training
    model.eval()
    try:
        table = tables(model)[0](None)  # (N, D)
        chosen = None if candidates is None else torch.as_tensor(candidates, device=table.device)
        tails = table if chosen is None else table[chosen]  # (C, D)
        column = np.full(len(table), -1)
        column[np.arange(len(table)) if candidates is None else candidates] = np.arange(len(tails))
        size = max(1, min(_BATCH, _SCORES // max(len(tails), 1)))
        parts = [
            _rank(model, questions[start : start + size], true_tails, table, tails, column)
            for start in range(0, len(questions), size)
        ]
    finally:
        model.train(training)
    return np.concatenate(parts) if parts else np.empty(0)


def _rank(
    model: "Model",
    questions: np.ndarray,
    true_tails: TrueTails,
    table: Tensor,
    tails: Tensor,
    column: np.ndarray,
) -> np.ndarray:
    heads, relations, answers = torch.as_tensor(questions.T.copy(), device=table.device)
    present, which = torch.unique(relations, return_inverse=True)
    vectors = tables(model)[1](present)
    query = queries(model.interaction, table[heads], vectors, which)  # (Q, D)
    scores = query @ tails.T  # (Q, C)
    # From the same product where it can be had: another would round otherwise and break ties.
    own = torch.as_tensor(column[questions[:, 2]], device=table.device)
    inside = own >= 0
    true = (query * table[answers]).sum(1)
    true[inside] = scores[inside, own[inside]]
    rows, columns = true_tails.of(questions[:, 0], questions[:, 1])
    columns = column[columns]
    inside_table = columns >= 0
    true_rows, true_columns = torch.as_tensor(
        np.stack([rows[inside_table], columns[inside_table]]), device=table.device
    )
    lower, same = scores < true[:, None], scores == true[:, None]  # (Q, C), NaN is neither
    for excluded in ((true_rows, true_columns), (inside.nonzero().squeeze(1), own[inside])):
        lower[excluded], same[excluded] = True, False
    ties = same.sum(1)
    higher = scores.shape[1] - lower.sum(1) - ties
    ranked: np.ndarray = (1 + higher + ties / 2).double().cpu().numpy()
    return ranked
