"""A training loop for PyKEEN in which the triples of a batch share their negatives.

    B  triples of a batch    C  candidates    U  relations of a batch    D  entity width

PyKEEN's loops score every (head, relation, tail) from its parts: for TuckER the core is contracted once for
each of them, and scores against many tails are a tensor of batch x tails x width. Here the core is contracted
once for each relation of a batch, and all scores are one product of queries (B, D) and candidates (C, D).
"""

import logging
from typing import Any, Literal

import torch
from pykeen.losses import BCEWithLogitsLoss, CrossEntropyLoss, Loss
from pykeen.models import Model
from pykeen.nn import Embedding
from pykeen.nn.modules import TuckERInteraction
from pykeen.training import TrainingLoop
from pykeen.training.training_loop import SubBatchingNotSupportedError
from pykeen.triples import CoreTriplesFactory
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader

from kgkit.embedding.tucker.contraction import queries, tables
from kgkit.embedding.tucker.negatives import SharedBatch, SharedBatches
from kgkit.embedding.tucker.rows import RowOptimizer
from kgkit.embedding.tucker.shared_softmax import plain_softmax, shared_softmax

logger = logging.getLogger(__name__)

_SPARSE = (RowOptimizer, torch.optim.SGD, torch.optim.Adagrad)  # optimizers that take sparse gradients


class SharedNegativesTrainingLoop(TrainingLoop[SharedBatch]):
    """Train a TuckER model against negatives that a batch shares.

    .. note ::
        Heads are learnt to be predicted through inverse triples: create the
        factory with ``create_inverse_triples=True``.

    Two losses can be had, and both are corrected for the chances with which candidates are drawn:
    :class:`~pykeen.losses.CrossEntropyLoss` is a sampled softmax with log-q correction, whose partition
    function has that over all entities as its expectation; :class:`~pykeen.losses.BCEWithLogitsLoss` weighs
    negatives, and has the mean over all entities as its expectation: :mod:`kgkit.embedding.tucker.negatives`.

    With ``grouped=True`` there is one row for each head and relation, all of its tails are positives, and all
    entities are candidates: what :class:`~pykeen.training.LCWATrainingLoop` computes, by one matrix product.
    """

    hpo_default = {  # noqa: RUF012 - declared so by PyKEEN
        **TrainingLoop.hpo_default,
        "num_negatives": {"type": int, "low": 9, "high": 14, "scale": "power_two"},
    }

    def __init__(
        self,
        *,
        num_negatives: int = 4096,
        filtered: bool = True,
        corrected: bool = True,
        grouped: bool = False,
        half: bool = False,
        sparse: bool | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Initialize the training loop.

        :param num_negatives: The number of entities drawn uniformly for a batch, besides its tails.
        :param filtered: Whether candidates that are known to be true of a triple's head and relation are left
            out of its loss.
        :param corrected: Whether the loss is corrected for the chances with which candidates are drawn.
        :param grouped: Whether batches are of heads with a relation, with all entities as candidates.
        :param half: Whether cross entropy multiplies queries and candidates in bfloat16.
        :param sparse: Whether gradients of entity representations are sparse. By default, if the optimizer
            takes them.
        :param seed: Of the order of triples and the negatives; by default drawn from torch's generator.
        :param kwargs: Additional keyword-based parameters passed to :class:`~pykeen.training.TrainingLoop`.

        :raises TypeError: If the model is not TuckER with embeddings of entities, or the loss is another.
        """
        super().__init__(**kwargs)
        _check(self.model)
        if sparse is None:
            sparse = isinstance(self.optimizer, _SPARSE)
        tables(self.model)[0]._embeddings.sparse = sparse
        self.num_negatives, self.filtered = num_negatives, filtered
        self.corrected, self.grouped, self.half = corrected, grouped, half
        self.seed = int(torch.randint(2**31, ())) if seed is None else seed
        self.first_step = 0  # of the first epoch that is trained: a run that goes on sets it

    def _create_training_data_loader(
        self,
        triples_factory: CoreTriplesFactory,
        *,
        sampler: Literal["schlichtkrull"] | None,
        batch_size: int,
        drop_last: bool,
        **kwargs: Any,
    ) -> DataLoader[SharedBatch]:
        if sampler is not None:
            raise ValueError(f"Invalid {sampler=}")
        if not triples_factory.create_inverse_triples:
            logger.warning("Without inverse triples the model does not learn to predict heads.")
        triples = triples_factory._add_inverse_triples_if_necessary(triples_factory.mapped_triples)
        entities = triples_factory.num_entities
        batches = SharedBatches(
            triples,
            num_entities=entities,
            batch_size=batch_size,
            num_negatives=entities if self.grouped else self.num_negatives,
            filtered=self.filtered,
            grouped=self.grouped,
            drop_last=drop_last,
            seed=self.seed,
        )
        batches.epoch, batches.first = self._epoch, self.first_step
        pin_memory = bool(kwargs.get("pin_memory")) and self.device.type == "cuda"
        return DataLoader(batches, batch_size=None, pin_memory=pin_memory)

    @staticmethod
    def _get_batch_size(batch: SharedBatch) -> int:
        return len(batch.positives)

    def _process_batch(
        self,
        batch: SharedBatch,
        start: int,
        stop: int,
        label_smoothing: float = 0.0,
        slice_size: int | None = None,
    ) -> Tensor:
        if slice_size is not None:
            raise AttributeError("Slicing is not possible with shared negatives.")
        if (start, stop) != (0, len(batch.positives)):
            raise SubBatchingNotSupportedError(self.model)
        loss = self._loss(batch, label_smoothing)
        total: Tensor = loss + self.model.collect_regularization_term()
        return total

    def _loss(self, batch: SharedBatch, smoothing: float) -> Tensor:
        query, tails = parts(self.model, batch)
        own, true_pairs = batch.own.to(query.device), batch.true_pairs.to(query.device)
        if self.grouped:
            return all_entities_loss(self.loss, query @ tails.T, own, true_pairs, smoothing)
        chance = batch.log_chance.to(query.device)
        if not self.corrected:
            chance = torch.zeros_like(chance)
        if isinstance(self.loss, BCEWithLogitsLoss):
            return shared_bce(query @ tails.T, own, true_pairs, chance, smoothing, self.model.num_entities)
        if smoothing:
            return plain_softmax(query @ tails.T, own, true_pairs, chance, smoothing)
        return shared_softmax(query, tails, own, true_pairs, chance, half=self.half)

    def _slice_size_search(self, **kwargs: Any) -> int:
        raise MemoryError("A batch does not fit: choose a smaller batch_size or fewer num_negatives.")


def parts(model: Model, batch: SharedBatch) -> tuple[Tensor, Tensor]:
    """Return the queries (B, D) of a batch and its candidates (C, D): their products are the scores."""
    device = model.device
    heads, relations, _ = batch.positives.to(device).unbind(1)
    present, which = torch.unique(relations, return_inverse=True)
    entities, names = tables(model)
    query = queries(model.interaction, entities(heads), names(present), which)
    return query, entities(batch.candidates.to(device))


def shared_bce(
    scores: Tensor, own: Tensor, true_pairs: Tensor, log_chance: Tensor, smoothing: float, num_entities: int
) -> Tensor:
    """Return binary cross entropy, averaged over rows and all entities, estimated from the candidates.

    Args:
        scores: (B, C).
        own: (B,) the column of the true tail.
        true_pairs: (2, F) rows and columns that count for nothing.
        log_chance: (C,) of each candidate.
        smoothing: smoothing of the labels, as PyKEEN does it.
        num_entities: number of entities.
    """
    false = smoothing / max(num_entities - 1, 1)
    labels = torch.full_like(scores, false).scatter_(1, own[:, None], 1.0 - smoothing)  # (B, C)
    weights = torch.exp(-log_chance).repeat(len(scores), 1)  # (B, C)
    weights[true_pairs[0], true_pairs[1]] = 0.0
    weights.scatter_(1, own[:, None], 1.0)
    total = binary_cross_entropy_with_logits(scores, labels, weights, reduction="sum")
    return total / (len(scores) * num_entities)


def all_entities_loss(
    loss: Loss, scores: Tensor, own: Tensor, true_pairs: Tensor, smoothing: float
) -> Tensor:
    """Return PyKEEN's loss of rows whose tails `own` and `true_pairs` are all true; scores are (B, N)."""
    labels = torch.zeros_like(scores).scatter_(1, own[:, None], 1.0)  # (B, N)
    labels[true_pairs[0], true_pairs[1]] = 1.0
    value: Tensor = loss.process_lcwa_scores(
        predictions=scores, labels=labels, label_smoothing=smoothing or None, num_entities=scores.shape[1]
    )
    return value


def _check(model: Model) -> None:
    if not isinstance(getattr(model, "interaction", None), TuckERInteraction):
        raise TypeError(f"SharedNegativesTrainingLoop trains TuckER, not {type(model).__name__}")
    if not isinstance(tables(model)[0], Embedding):
        raise TypeError("SharedNegativesTrainingLoop needs an embedding for each entity")
    if not isinstance(model.loss, CrossEntropyLoss | BCEWithLogitsLoss):
        raise TypeError(
            f"{type(model.loss).__name__} is not estimated from shared negatives; choose the loss "
            "'crossentropy' or 'bcewithlogits'"
        )
