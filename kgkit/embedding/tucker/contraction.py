"""TuckER's queries, with the core contracted once for each relation instead of once for each triple.

    B  triples    U  relations among them    D  entity width    R  relation width

Balažević et al. (2019), equation 5: the score is W x_1 h x_2 r x_3 t. What is left when the tail is left out,
the query, is the same for every tail: one vector of width D, and scores are its dot products with tails.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pykeen.models import Model


def contract(core: Tensor, relations: Tensor) -> Tensor:
    """Return W x_2 r for each relation.

    Args:
        core: (D, R, D).
        relations: (U, R).

    Returns:
        (D, U, D): a matrix from heads to queries for each relation.
    """
    return torch.matmul(relations, core)


def queries(interaction: Any, heads: Tensor, relations: Tensor, which: Tensor) -> Tensor:
    """Return the query of each head with its relation: the interaction before the tail comes in.

    Args:
        interaction: PyKEEN's TuckERInteraction; its normalizations and dropouts are applied, in its mode.
        heads: (B, D).
        relations: (U, R), the relations of the batch, each once.
        which: (B,) the row of `relations` of each head.

    Returns:
        (B, D).

    Departures:
        In training PyKEEN drops entries of W x_2 r for each triple anew; here triples of one relation
        share what is dropped in a step, since they share the matrix.
    """
    heads = interaction.head_dropout(_normalize(heads, interaction.head_batch_norm))  # (B, D)
    core = interaction.relation_dropout(contract(interaction.core_tensor, relations))  # (D, U, D)
    order = torch.argsort(which, stable=True)  # (B,)
    counts = torch.bincount(which, minlength=len(relations)).tolist()
    groups = torch.split(heads[order], counts)
    # unbind, not core[:, u]: the gradients of slices would each be as large as the whole.
    grouped = torch.cat([group @ matrix for group, matrix in zip(groups, core.unbind(1), strict=True)])
    restored = torch.empty_like(grouped).index_copy(0, order, grouped)  # (B, D)
    dropped: Tensor = interaction.head_relation_dropout(
        _normalize(restored, interaction.head_relation_batch_norm)
    )
    return dropped


def tables(model: "Model") -> tuple[Any, Any]:
    """Return what gives a model's entities, and its relations, their vectors."""
    entities: Any = model.entity_representations
    relations: Any = model.relation_representations
    return entities[0], relations[0]


def _normalize(x: Tensor, norm: torch.nn.BatchNorm1d | None) -> Tensor:
    return x if norm is None else norm(x)
