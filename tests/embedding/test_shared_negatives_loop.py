"""The training loop that shares negatives, as PyKEEN sees it, and its optimizer."""

import gc
import logging

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pykeen")

from pykeen.pipeline import pipeline  # noqa: E402
from pykeen.training.callbacks import TrainingCallback  # noqa: E402

from kgkit.embedding.tucker.rows import RowOptimizer  # noqa: E402
from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop  # noqa: E402
from tests.graph_toys import FAMILY, factory, loop, model, ring  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    """PyKEEN collects garbage after each epoch: let it look at what a test made, not at all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# -- the optimizer -----------------------------------------------------------------------------------------


def tables(optimizer, sparse, steps=5, **settings):
    """Return a table after some steps on some of its rows."""
    table = torch.nn.Embedding(6, 3, sparse=sparse)
    with torch.no_grad():
        table.weight.copy_(torch.arange(18.0).reshape(6, 3) / 10)
    moves = optimizer(table.parameters(), **settings)
    for step in range(steps):
        moves.zero_grad()
        rows = torch.tensor([step % 3, 4, 4])
        (table(rows).sin() * (step + 1)).sum().backward()
        moves.step()
    return table.weight.detach()


def test_rows_move_as_adagrad_over_the_whole_table_moves_them():
    ours = tables(RowOptimizer, True, lr=0.01, row_factor=10)
    assert torch.allclose(ours, tables(torch.optim.Adagrad, False, lr=0.1), atol=1e-6)


def test_everything_else_moves_as_by_adam():
    ours = tables(RowOptimizer, False, lr=0.01)
    assert torch.allclose(ours, tables(torch.optim.Adam, False, lr=0.01), atol=1e-6)


def test_rows_that_no_step_touches_stay_and_decay_takes_from_those_that_are():
    before = torch.arange(18.0).reshape(6, 3) / 10
    plain, decayed = (tables(RowOptimizer, True, lr=0.01, row_decay=decay) for decay in (0.0, 0.1))
    assert torch.equal(plain[[3, 5]], before[[3, 5]])
    assert torch.equal(decayed[[3, 5]], before[[3, 5]])
    assert not torch.allclose(plain[4], decayed[4])


def test_a_closure_is_called_and_its_loss_is_given_back():
    weight = torch.nn.Parameter(torch.ones(2))
    moves = RowOptimizer([weight], lr=0.1)

    def closure():
        moves.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert moves.step(closure).item() == 2
    assert torch.allclose(weight, torch.full((2,), 0.9), atol=1e-5)


# -- the loop ----------------------------------------------------------------------------------------------


def test_sparse_gradients_are_taken_if_the_optimizer_takes_them():
    for optimizer, sparse in (("Adam", False), (RowOptimizer, True), ("Adagrad", True)):
        made = model()
        loop(made, optimizer=optimizer)
        assert made.entity_representations[0]._embeddings.sparse is sparse


def test_a_step_with_row_updates_leaves_other_rows_alone():
    made = model(ring(40))
    ours = loop(made, ring(40), optimizer=RowOptimizer)
    (batch, *_) = ours._create_training_data_loader(
        factory(ring(40)), sampler=None, batch_size=4, drop_last=True
    )
    before = made.entity_representations[0](None).detach().clone()
    ours._process_batch(batch, 0, 4).backward()
    ours.optimizer.step()
    changed = (made.entity_representations[0](None) != before).any(1).nonzero().squeeze(1)
    touched = {*batch.candidates.tolist(), *batch.positives[:, 0].tolist()}
    assert set(changed.tolist()) == touched


@pytest.mark.parametrize("loss", ["crossentropy", "bcewithlogits"])
@pytest.mark.parametrize("grouped", [True, False])
def test_the_loss_falls(loss, grouped):
    made = model(ring(20), loss=loss)
    losses = loop(made, ring(20), grouped=grouped, optimizer_kwargs={"lr": 0.01}).train(
        factory(ring(20)), num_epochs=8, batch_size=16, label_smoothing=0.1, use_tqdm=False
    )
    assert losses[-1] < losses[0]


def test_two_runs_of_one_seed_are_equal_and_another_seed_differs():
    def weights(seed):
        made = model(ring(20), dropout_0=0.3)
        torch.manual_seed(seed)
        loop(made, ring(20), optimizer=RowOptimizer, seed=None).train(
            factory(ring(20)), num_epochs=2, batch_size=8, use_tqdm=False
        )
        return made.entity_representations[0](None).detach()

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_models_and_losses_that_it_cannot_train_are_refused():
    from pykeen.models import DistMult

    with pytest.raises(TypeError, match="trains TuckER, not DistMult"):
        loop(DistMult(triples_factory=factory(FAMILY), embedding_dim=4, random_seed=0))
    with pytest.raises(TypeError, match="MarginRankingLoss is not estimated"):
        loop(model(loss="marginranking"))


def test_what_pykeens_other_loops_offer_and_this_one_does_not_is_refused():
    ours = loop(model())
    graph = factory(FAMILY)
    (batch,) = ours._create_training_data_loader(graph, sampler=None, batch_size=12, drop_last=True)
    with pytest.raises(ValueError, match="sampler"):
        ours._create_training_data_loader(graph, sampler="schlichtkrull", batch_size=2, drop_last=True)
    with pytest.raises(AttributeError, match="Slicing"):
        ours._process_batch(batch, 0, 12, slice_size=2)
    with pytest.raises(NotImplementedError, match="sub-batching"):
        ours._process_batch(batch, 0, 6)
    with pytest.raises(MemoryError, match="smaller batch_size"):
        ours._slice_size_search(triples_factory=graph, batch_size=1, sub_batch_size=1)


def test_a_graph_without_inverse_triples_is_trained_with_a_warning(caplog):
    graph = factory(FAMILY, inverse=False)
    with caplog.at_level(logging.WARNING):
        loop(model())._create_training_data_loader(graph, sampler=None, batch_size=2, drop_last=True)
    assert "does not learn to predict heads" in caplog.text


# -- in the company of the rest of PyKEEN ------------------------------------------------------------------


class Counter(TrainingCallback):
    """Counts what it is told."""

    def __init__(self):
        super().__init__()
        self.batches, self.epochs, self.ends = 0, 0, 0

    def post_batch(self, epoch, batch, **kwargs):
        self.batches += 1

    def post_epoch(self, epoch, epoch_loss, **kwargs):
        self.epochs += 1

    def post_train(self, losses, **kwargs):
        self.ends += 1


@pytest.mark.parametrize("optimizer", [RowOptimizer, "Adam"])
@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step")  # PyKEEN's way with torch's
def test_pykeens_pipeline_takes_it_with_callbacks_stopper_scheduler_and_evaluator(optimizer, tmp_path):
    counter = Counter()
    result = pipeline(
        training=factory(ring(20)),
        testing=factory(ring(20)[:6], entities=20),
        validation=factory(ring(20)[6:12], entities=20),
        model="TuckER",
        model_kwargs={"embedding_dim": 8, "relation_dim": 4},
        loss="crossentropy",
        optimizer=optimizer,
        optimizer_kwargs={"lr": 0.01},
        lr_scheduler="ExponentialLR",
        lr_scheduler_kwargs={"gamma": 0.9},
        training_loop=SharedNegativesTrainingLoop,
        training_loop_kwargs={"num_negatives": 8, "automatic_memory_optimization": False},
        training_kwargs={
            "num_epochs": 4, "batch_size": 16, "use_tqdm": False, "callbacks": counter, "pin_memory": False,
            "checkpoint_directory": tmp_path,
        },
        stopper="early",
        stopper_kwargs={"frequency": 2, "patience": 5},
        evaluator_kwargs={"filtered": True},
        evaluation_kwargs={"use_tqdm": False, "batch_size": 8},
        random_seed=0,
        device="cpu",
        use_testing_data=True,
    )  # fmt: skip
    assert (counter.batches, counter.epochs) == (20, 4)  # 80 rows in batches of 16
    assert len(result.losses) == 4
    assert 0 < result.get_metric("both.realistic.inverse_harmonic_mean_rank") <= 1


@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step")
def test_pykeens_own_checkpoints_go_on_with_the_pass_that_comes_next(tmp_path):
    def weights(*epochs, folder):
        for count in epochs:
            made = model(ring(20), dropout_0=0.3)
            torch.manual_seed(0)
            loop(made, ring(20), optimizer=RowOptimizer).train(
                factory(ring(20)), num_epochs=count, batch_size=16, use_tqdm=False, pin_memory=False,
                checkpoint_directory=tmp_path / folder, checkpoint_name="state.pt", checkpoint_frequency=0,
            )  # fmt: skip
        return made.entity_representations[0](None).detach()

    assert torch.equal(weights(2, 4, folder="cut"), weights(4, folder="whole"))
