"""Scores of TuckER, the loss of a batch, and the filtered ranks of triples that were held out.

    B  triples    U  relations among them    C  candidates    N  entities    D  width of an entity

Balažević et al. (2019), equation 5: the score is W x_1 h x_2 r x_3 t. What is left when the tail is left out,
the query, is the same for every tail: one vector of width D, and scores are its dot products with tails. The
core is contracted once for each relation, not once for each triple.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from kgkit.embedding.tucker.batches import SharedBatch
from kgkit.embedding.tucker.triples import TrueTails

if TYPE_CHECKING:
    from pykeen.models import Model

_BATCH = 512  # questions at a time, at most
_SCORES = 1 << 25  # scores at a time, at most: 134 MB


def queries(model: "Model", heads: Tensor, relations: Tensor) -> Tensor:
    """Return the query of each head with its relation: the interaction before the tail comes in.

    Args:
        model: PyKEEN's TuckER; its normalizations and dropouts are applied, in its mode.
        heads: (B,) entities.
        relations: (B,) relations.

    Returns:
        (B, D).

    Departures:
        In training PyKEEN drops entries of W x_2 r for each triple anew; here triples of one relation
        share what is dropped in a step, since they share the matrix.
    """
    interaction: Any = model.interaction
    entities, names = tables(model)
    vectors = interaction.head_dropout(interaction.head_batch_norm(entities(heads)))  # (B, D)
    present, which = torch.unique(relations, return_inverse=True)
    core = interaction.relation_dropout(torch.matmul(names(present), interaction.core_tensor))  # (D, U, D)
    order = torch.argsort(which, stable=True)
    counts = torch.bincount(which, minlength=len(present)).tolist()
    groups = torch.split(vectors[order], counts)
    # unbind, not core[:, u]: the gradients of slices would each be as large as the whole.
    grouped = torch.cat([group @ matrix for group, matrix in zip(groups, core.unbind(1), strict=True)])
    restored = torch.empty_like(grouped).index_copy(0, order, grouped)  # (B, D)
    dropped: Tensor = interaction.head_relation_dropout(interaction.head_relation_batch_norm(restored))
    return dropped


def tables(model: "Model") -> tuple[Any, Any]:
    """Return the embeddings of a model's entities, and of its relations."""
    entities: Any = model.entity_representations
    relations: Any = model.relation_representations
    return entities[0], relations[0]


def add_gradients(model: "Model", batch: SharedBatch, *, half: bool = True) -> float:
    """Add the gradients of a batch's loss, a sampled softmax (Jean et al. 2015), and return the mean loss.

    The expectation of its partition function is that over all entities, see `kgkit.embedding.tucker.batches`.
    One matrix (B, C) holds the scores, then probabilities, then what flows back; autograd would keep several.

    Args:
        model: PyKEEN's TuckER.
        batch: triples and candidates, on the model's device.
        half: whether to multiply matrices in bfloat16.
    """
    heads, relations, _ = batch.positives.unbind(1)
    query, tails = queries(model, heads, relations), tables(model)[0](batch.candidates)
    with torch.no_grad():
        left, right = (query.bfloat16(), tails.bfloat16()) if half else (query, tails)
        scores = (left @ right.T).float()  # (B, C)
        own = torch.arange(len(scores), device=scores.device), batch.own
        true = scores[own]
        scores -= batch.log_chance
        scores[batch.true_pairs[0], batch.true_pairs[1]] = -torch.inf
        scores[own] = true  # it is there for certain
        highest = scores.amax(1, keepdim=True)
        total = scores.sub_(highest).exp_().sum(1, keepdim=True)
        loss = (total.log() + highest).squeeze(1).sub_(true).mean()
        scores /= total * len(scores)
        scores[own] -= 1 / len(scores)
        flow = scores.to(left.dtype)
        gradients = (flow @ right).float(), (flow.T @ left).float()
    torch.autograd.backward((query, tails), gradients)
    return float(loss)


@dataclass(frozen=True, kw_only=True)
class RankingScores:
    """Measures of a set of ranks.

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
        first, third, tenth = (float((ranks <= limit).mean()) for limit in (1, 3, 10))
        mrr = float((1.0 / ranks).mean())
        return cls(mrr=mrr, hits_at_1=first, hits_at_3=third, hits_at_10=tenth, questions=len(ranks))


@torch.no_grad()
def ranks(
    model: "Model", questions: np.ndarray, true_tails: TrueTails, candidates: np.ndarray | None = None
) -> np.ndarray:
    """Return the filtered rank of each question's tail.

    The rank is 1 + the candidates that score higher + half of those that score the same (PyKEEN's "realistic"
    rank, Berrendorf et al. 2020). Candidates that are known to be true are left out (Bordes et al. 2013).

    Args:
        model: TuckER, in evaluation mode.
        questions: (Q, 3), relations numbered as the model's representations are.
        true_tails: true tails, left out except the one asked for.
        candidates: (C,) entities to rank against; all if left out.

    Returns:
        (Q,) float64, at least 1.
    """
    table = tables(model)[0](None)  # (N, D)
    chosen = np.arange(len(table)) if candidates is None else candidates
    tails = table if candidates is None else table[torch.as_tensor(candidates, device=table.device)]
    column = np.full(len(table), -1)
    column[chosen] = np.arange(len(chosen))
    size = max(1, min(_BATCH, _SCORES // len(chosen)))
    parts = [
        _rank(model, questions[start : start + size], true_tails, table, tails, column)
        for start in range(0, len(questions), size)
    ]
    return np.concatenate(parts)


def _rank(
    model: "Model",
    questions: np.ndarray,
    true_tails: TrueTails,
    table: Tensor,
    tails: Tensor,
    column: np.ndarray,
) -> np.ndarray:
    heads, relations, answers = torch.as_tensor(questions.T.copy(), device=table.device)
    query = queries(model, heads, relations)  # (Q, D)
    scores = query @ tails.T  # (Q, C)
    own = torch.as_tensor(column[questions[:, 2]], device=table.device)
    inside = torch.nonzero(own >= 0).squeeze(1)
    true = (query * table[answers]).sum(1)
    true[inside] = scores[inside, own[inside]]  # another product would round otherwise and break ties
    rows, known = true_tails.of(questions[:, 0], questions[:, 1])
    columns = column[known]
    excluded = torch.as_tensor(np.stack([rows, columns])[:, columns >= 0], device=table.device)
    scores[excluded[0], excluded[1]] = scores[inside, own[inside]] = -torch.inf
    higher, same = scores > true[:, None], scores == true[:, None]
    ranked: np.ndarray = (1 + higher.sum(1) + same.sum(1) / 2).double().cpu().numpy()
    return ranked
