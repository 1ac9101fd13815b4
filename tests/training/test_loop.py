"""The training loop: stopped and gone on with, in pieces and at once, to the best."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402
from torch import nn  # noqa: E402

from kgkit.encoder.device import computes_bf16  # noqa: E402
from kgkit.errors import BuildFailed, UsageError, WriteFailed  # noqa: E402
from kgkit.training import Shuffled, TrainingConfig, train  # noqa: E402
from kgkit.training.loop import CHECKPOINT  # noqa: E402
from tests.toys import child_env  # noqa: E402

PLAIN = TrainingConfig(epochs=3, bf16=False, device="cpu", checkpoint_seconds=0.0, curve_every=4)
"""Three epochs of five batches; a checkpoint after each step."""


class Stopped(Exception):
    """The run is over, for whatever reason."""


class Toy(nn.Module):
    """A sparse table, dropout, a normalization with buffers: all that has a state; and a frozen part."""

    def __init__(self, seed: int = 0, *, sparse: bool = True, dropout: float = 0.3) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.table = nn.Embedding(30, 8, sparse=sparse)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(8, 2)

    def forward(self, ids):
        return self.out(self.dropout(self.norm(self.frozen(self.table(ids)))))


def dense(model: Toy) -> list:
    return [*model.norm.parameters(), *model.out.parameters()]


def adams(model: Toy) -> list:
    return [
        torch.optim.AdamW(
            [{"params": dense(model)[:2], "lr": 0.03}, {"params": dense(model)[2:], "lr": 0.01}]
        ),
        torch.optim.SparseAdam(model.table.parameters(), lr=0.02),
    ]


ITEMS = [(number, number % 3 == 0) for number in range(30)]


def collate(items):
    return {"ids": torch.tensor([i for i, _ in items]), "gold": torch.tensor([int(g) for _, g in items])}


def batches(size: int = 6) -> Shuffled:
    return Shuffled(ITEMS, size, collate, seed=7)


def loss_of(model, batch):
    # Others draw numbers too.
    noise = random.random() + np.random.random()
    return nn.functional.cross_entropy(model(batch["ids"]), batch["gold"]) * (1 + noise / 10)


def accuracy(model):
    torch.rand(3), random.random()
    batch = collate(ITEMS)
    return {"accuracy": float((model(batch["ids"]).argmax(-1) == batch["gold"]).float().mean()), "n": 30}


def state(model) -> dict:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def curve(folder: Path) -> list[dict]:
    lines = map(json.loads, (folder / "curve.jsonl").read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Line(nn.Module):
    """y = w x: gradients can be worked out by hand."""

    def __init__(self, width: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (self.weight * x).sum(-1)


class Given:
    """Batches that are given; notes which were asked for."""

    def __init__(self, *given) -> None:
        self.given = given
        self.asked: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.given)

    def epoch(self, number, places):
        for place in places:
            self.asked.append((number, place))
            yield self.given[place]


def line_loss(model, batch):
    return model(batch).mean()


def sgd(model, lr=1.0):
    return [torch.optim.SGD(model.parameters(), lr=lr)]


def constant(**says) -> TrainingConfig:
    known = {"schedule": "constant", "warmup": 0.0, "clip": None, "bf16": False, "device": "cpu"}
    return TrainingConfig(**{**known, **says})


# -- stopped, and gone on with --------------------------------------------------------


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights and the curve of a training that nobody stopped."""
    torch.set_num_threads(1)
    folder, model = tmp_path_factory.mktemp("undisturbed"), Toy()
    trained = train(model, batches(), loss_of, adams(model), PLAIN, folder, evaluate=accuracy)
    return state(model), curve(folder), trained


@pytest.mark.slow
@pytest.mark.parametrize("where", ["loss", "progress", "evaluate", "saving"])
@pytest.mark.parametrize("step", [1, 5, 8])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(
    step, where, undisturbed, tmp_path, monkeypatch
):
    calls = {"loss": 0, "evaluate": 0, "saving": 0}

    def counted(name, after):
        calls[name] += 1
        if where == name and calls[name] > after:
            raise Stopped

    def loss(model, batch):
        counted("loss", step)
        return loss_of(model, batch)

    def evaluate(model):
        counted("evaluate", step // 5)
        return accuracy(model)

    def progress(stage, done, of):
        if where == "progress" and done == step:
            raise Stopped

    def save(saved, path):
        path.write_bytes(b"half of it")
        counted("saving", step)
        usual(saved, path)

    usual = torch.save
    monkeypatch.setattr(torch, "save", save)
    first = Toy()
    with pytest.raises(Stopped):
        train(first, batches(), loss, adams(first), PLAIN, tmp_path, evaluate=evaluate, progress=progress)
    monkeypatch.undo()
    random.seed(99)
    second = Toy()
    trained = train(
        second, batches(), loss_of, adams(second), PLAIN, tmp_path, evaluate=accuracy, resume=True
    )
    weights, lines, plain = undisturbed
    assert same(state(second), weights)
    assert curve(tmp_path) == lines
    assert (trained.evaluations, trained.best) == (plain.evaluations, plain.best)


def test_a_training_that_is_done_is_not_done_again(tmp_path, undisturbed):
    model = Toy()
    train(model, batches(), loss_of, adams(model), PLAIN, tmp_path, evaluate=accuracy)
    again = Toy()
    trained = train(again, batches(), None, adams(again), PLAIN, tmp_path, evaluate=accuracy, resume=True)
    assert trained.steps == 15
    assert same(state(again), undisturbed[0])


def test_without_resume_a_training_begins_anew(tmp_path, undisturbed):
    model = Toy(seed=5)
    train(model, batches(), loss_of, adams(model), replace(PLAIN, epochs=1), tmp_path, evaluate=accuracy)
    again = Toy()
    train(again, batches(), loss_of, adams(again), PLAIN, tmp_path, evaluate=accuracy)
    assert same(state(again), undisturbed[0])
    assert curve(tmp_path) == undisturbed[1]


def test_another_seed_gives_other_weights(tmp_path, undisturbed):
    model = Toy()
    train(model, batches(), loss_of, adams(model), replace(PLAIN, seed=1), tmp_path, evaluate=accuracy)
    assert not same(state(model), undisturbed[0])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"epochs": 4}, "had epochs 3, this one has 4"),
        ({"schedule": "cosine"}, "had schedule linear, this one has cosine"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(tmp_path, other, said):
    model = Line()
    config = TrainingConfig(epochs=3, device="cpu", bf16=False)
    train(model, Given(torch.ones(1, 1)), line_loss, sgd(model), config, tmp_path)
    with pytest.raises(UsageError, match=said):
        train(
            model,
            Given(torch.ones(1, 1)),
            line_loss,
            sgd(model),
            replace(config, **other),
            tmp_path,
            resume=True,
        )
    with pytest.raises(UsageError, match=r"learning rates \[1.0\], this one has \[0.5\]"):
        train(Line(), Given(torch.ones(1, 1)), line_loss, sgd(Line(), 0.5), config, tmp_path, resume=True)
    wide = Line(2)
    with pytest.raises(UsageError, match="another model"):
        train(wide, Given(torch.ones(1, 2)), line_loss, sgd(wide), config, tmp_path, resume=True)


def test_a_frozen_part_is_not_saved(tmp_path):
    model = Toy()
    train(model, batches(), loss_of, adams(model), PLAIN, tmp_path, evaluate=accuracy)
    kept = torch.load(tmp_path / CHECKPOINT, weights_only=True)["weights"]
    assert "frozen.weight" not in kept
    assert {"table.weight", "out.bias", "norm.running_mean"} <= kept.keys()


# -- Ctrl-C ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["loss", "evaluate", "progress"])
def test_ctrl_c_leaves_a_checkpoint_and_goes_on_as_itself(where, undisturbed, tmp_path, caplog):
    def press(here, calls=[]):  # noqa: B006
        calls.append(here)
        if here == where and calls.count(here) == 2:
            signal.raise_signal(signal.SIGINT)

    def loss(model, batch):
        press("loss")
        return loss_of(model, batch)

    def evaluate(model):
        press("evaluate")
        return accuracy(model)

    config = replace(PLAIN, checkpoint_seconds=3600)
    model = Toy()
    with pytest.raises(KeyboardInterrupt):
        train(
            model, batches(), loss, adams(model), config, tmp_path, evaluate=evaluate,
            progress=lambda *_: press("progress"),
        )  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    steps = torch.load(tmp_path / CHECKPOINT, weights_only=True)["state"]["steps"]
    assert steps == {"loss": 2, "evaluate": 10, "progress": 2}[where]
    assert caplog.messages[-1].startswith(f"stopped after {steps} of ")
    again = Toy()
    train(again, batches(), loss_of, adams(again), config, tmp_path, evaluate=accuracy, resume=True)
    assert caplog.messages[-1].startswith(f"goes on after {steps} of ")
    assert same(state(again), undisturbed[0])
    assert curve(tmp_path) == undisturbed[1]


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    def loss(model, batch):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    model = Line()
    with pytest.raises(KeyboardInterrupt):
        train(model, Given(torch.ones(1, 1)), loss, sgd(model), constant(), tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()


FULL_DISK = {
    "safetensors": RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    "torch": RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 801216 vs 801168"),
    "system": OSError(errno.ENOSPC, "No space left on device"),
}
"""What libraries say of a disk that is full."""


@pytest.mark.parametrize("library", FULL_DISK)
@pytest.mark.parametrize("writer", ["kgkit.training.loop.save_file", "torch.save"])
def test_a_full_disk_is_a_write_that_failed_and_the_checkpoint_before_stays(
    tmp_path, monkeypatch, writer, library
):
    gain = count()  # each evaluation is better than the one before

    def trained(**options):
        model = Toy()
        train(
            model, batches(), loss_of, adams(model), PLAIN, tmp_path,
            evaluate=lambda _: float(next(gain)), **options,
        )  # fmt: skip

    def stop(_stage, done, _total):
        if done == 8:
            raise Stopped

    def fail(*_):
        raise FULL_DISK[library]

    with pytest.raises(Stopped):
        trained(progress=stop)
    with monkeypatch.context() as patched:
        patched.setattr(writer, fail)
        with pytest.raises(WriteFailed, match=r"cannot write to .*make room") as failed:
            trained(resume=True)
    assert failed.value.where == tmp_path and "\n" not in str(failed.value)
    assert not list(tmp_path.glob(".*"))
    trained(resume=True)


def test_an_error_that_is_none_of_the_disk_is_left_as_it_is(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("a tensor of no type")

    monkeypatch.setattr("torch.save", fail)
    model = Toy()
    with pytest.raises(RuntimeError, match="a tensor of no type"):
        train(model, batches(), loss_of, adams(model), PLAIN, tmp_path)


# -- what a step does -----------------------------------------------------------------


def test_a_step_without_items_moves_nothing(tmp_path):
    model = Line()
    train(model, Given(torch.ones(1, 1)), lambda m, b: (line_loss(m, b), 0), sgd(model), constant(), tmp_path)
    assert model.weight.item() == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_of_all_optimizers_together_are_clipped(sparse, tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding.from_pretrained(torch.zeros(5, 1), freeze=False, sparse=sparse)
            self.line = Line()

        def forward(self, ids):
            # Row 2 comes twice: its gradient is 2 × 2.
            return 2 * self.table(ids).sum() + 3 * self.line(torch.ones(1, 1)).sum()

    for clip, expected in [(None, (4, 3)), (10.0, (4, 3)), (1.0, (0.8, 0.6))]:
        model = Two()
        optimizers = [*sgd(model.table), *sgd(model.line)]
        config = constant(clip=clip, curve_every=1)
        train(model, Given(torch.tensor([2, 2])), lambda m, b: m(b), optimizers, config, tmp_path)
        moved = (-model.table.weight[2].item(), 1 - model.line.weight.item())
        assert moved == pytest.approx(expected)
        assert model.table.weight[3].item() == 0
        assert curve(tmp_path)[0]["norm"] == pytest.approx(5)


def test_a_sparse_optimizer_touches_only_the_rows_that_were_used(tmp_path):
    model = Toy()
    before = model.table.weight.clone()
    few = Shuffled(ITEMS[:12], 6, collate)
    train(model, few, loss_of, adams(model), PLAIN, tmp_path)
    assert torch.equal(model.table.weight[12:], before[12:])
    assert not torch.isclose(model.table.weight[:12], before[:12]).all(-1).any()


def test_batches_of_like_lengths_have_each_item_once_and_little_padding():
    lengths = np.random.default_rng(0).integers(1, 100, size=1_003)
    alike = Shuffled([*range(1_003)], 10, lambda items: items, seed=3, lengths=lengths)
    first, second = ([*alike.epoch(number, range(len(alike)))] for number in (0, 1))
    assert sorted(item for batch in first for item in batch) == [*range(1_003)]
    assert [len(batch) for batch in first] == [10] * 100 + [3]
    assert sum(max(lengths[batch]) * len(batch) for batch in first) < 1.15 * lengths.sum()
    means = [lengths[batch].mean() for batch in first[:12]]
    assert means != sorted(means)  # of a pool too, long ones come at any time
    assert {*map(frozenset, first)}.isdisjoint(map(frozenset, second[:-1]))
    assert [*alike.epoch(0, [7, 100])] == [first[7], first[100]]  # as a training that goes on asks


def test_few_items_are_not_in_the_same_batches_in_every_epoch():
    alike = Shuffled([*range(200)], 10, frozenset, lengths=[*range(200)])
    first, second = ({*alike.epoch(number, range(20))} for number in (0, 1))
    assert len(first & second) < 2


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (9, [9]), (10, [10]), (11, [10, 1])])
def test_few_items_of_like_lengths_make_the_batches_that_there_are(count, sizes):
    alike = Shuffled([*range(count)], 10, lambda items: items, lengths=[*range(count)])
    made = [*alike.epoch(0, range(len(alike)))]
    assert [len(batch) for batch in made] == sizes
    assert sorted(item for batch in made for item in batch) == [*range(count)]


@pytest.mark.parametrize(
    ("schedule", "warmup", "expected"),
    [
        ("constant", 0.0, [1, 1, 1, 1, 1]),
        ("constant", 0.4, [1 / 3, 2 / 3, 1, 1, 1]),
        ("linear", 0.0, [1, 0.8, 0.6, 0.4, 0.2]),
        ("linear", 0.4, [1 / 3, 2 / 3, 1, 2 / 3, 1 / 3]),
        ("cosine", 0.2, [1 / 2, 1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2]),
        ("one-cycle", 0.4, [0.04, 0.52, 1, 0.750001, 0.250003]),
    ],
)
def test_the_rate_follows_its_schedule_in_every_group(schedule, warmup, expected, tmp_path):
    model = Toy()
    optimizer = torch.optim.SGD(
        [{"params": dense(model)[:1], "lr": 0.5}, {"params": dense(model)[1:], "lr": 0.1}]
    )
    config = constant(schedule=schedule, warmup=warmup, curve_every=1)
    for _ in range(2):  # the same optimizer again: its rates are what they were
        train(model, batches(), loss_of, [optimizer], config, tmp_path)
        rates = [line["lr"] for line in curve(tmp_path)]
        assert rates == [pytest.approx([0.5 * part, 0.1 * part], rel=1e-5) for part in expected]


def test_steps_may_end_within_an_epoch(tmp_path):
    model, given = Line(), Given(*[torch.ones(1, 1)] * 5)
    seen = []

    def tell(stage, done, of):
        seen.append((done, of))

    trained = train(
        model,
        given,
        line_loss,
        sgd(model),
        constant(steps=7),
        tmp_path,
        evaluate=lambda m: 0.0,
        progress=tell,
    )
    assert seen == [(done, 7) for done in range(1, 8)]
    assert [evaluation["step"] for evaluation in trained.evaluations] == [5, 7]
    assert given.asked == [*((0, place) for place in range(5)), (1, 0), (1, 1)]


def test_losses_of_a_curve_are_means_since_the_line_before(tmp_path):
    model, given = Line(), Given(*[torch.full((1, 1), float(x)) for x in range(5)])
    train(model, given, line_loss, sgd(model, 0.0), constant(curve_every=2), tmp_path)
    assert [(line["step"], line["loss"]) for line in curve(tmp_path)] == [(2, 0.5), (4, 2.5), (5, 4.0)]


def test_bf16_is_off_where_the_processor_does_not_have_it(monkeypatch, tmp_path):
    seen = []

    def loss(model, batch):
        seen.append(torch.is_autocast_enabled("cpu"))
        return model(batch).mean()

    for has in (False, True):
        monkeypatch.setattr("kgkit.encoder.device.has_bf16", lambda device, has=has: has)
        for bf16 in ("auto", False, True):
            model = Line()
            train(model, Given(torch.ones(1, 1)), loss, sgd(model), constant(bf16=bf16), tmp_path)
    assert seen == [False, False, True, True, False, True]


def test_bf16_on_a_gpu_that_has_none_is_refused(monkeypatch):
    monkeypatch.setattr("kgkit.encoder.device.has_bf16", lambda device: False)
    assert not computes_bf16("auto", torch.device("cuda"))
    with pytest.raises(UsageError, match="does not compute in bfloat16"):
        computes_bf16(True, torch.device("cuda"))


def test_with_bf16_products_are_rounded_and_weights_are_not(tmp_path):
    dtypes = []

    def loss(model, batch):
        outputs = model(batch)
        dtypes.append(outputs.dtype)
        return outputs.mean()

    model = nn.Linear(3, 1)
    train(model, Given(torch.ones(1, 3)), loss, sgd(model), constant(bf16=True), tmp_path)
    assert (dtypes, model.weight.dtype) == ([torch.bfloat16], torch.float32)


# -- what goes wrong ------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_says_where(bad, tmp_path):
    model, given = Line(), Given(torch.ones(1, 1), torch.ones(1, 1), torch.full((1, 1), bad))
    with pytest.raises(BuildFailed, match=rf"the loss is {bad} in step 3 of 3, at learning rate 0.25: "):
        train(model, given, line_loss, sgd(model, 0.25), constant(), tmp_path)
    assert model.weight.item() == 0.5  # as it was after two steps


def test_a_gradient_that_is_not_finite_says_where(tmp_path):
    model = Line()
    nn.init.zeros_(model.weight)
    with pytest.raises(BuildFailed, match="the length of the gradient is inf in step 1 of 1"):
        train(
            model, Given(torch.ones(1, 1)), lambda m, b: m(b).sqrt().mean(), sgd(model), constant(), tmp_path
        )
    assert model.weight.item() == 0


@pytest.mark.parametrize("evaluate", [None, lambda model: model.weight.sum().item()])
def test_weights_that_the_last_step_leaves_are_finite(evaluate, tmp_path):
    model, given = Line(4), Given(torch.ones(1, 4), torch.ones(1, 4))
    message = "the length of the weights is inf after step 2 of 2, at learning rate 1e[+]30: a lower one"
    with pytest.raises(BuildFailed, match=message):
        train(
            model, given, lambda m, b: m(b).mean(), sgd(model, 1e30), constant(), tmp_path, evaluate=evaluate
        )


def test_batches_that_are_none_or_too_few_are_refused(tmp_path):
    model = Line()
    with pytest.raises(UsageError, match="nothing to train on"):
        train(model, Given(), line_loss, sgd(model), constant(), tmp_path)
    few = Given(torch.ones(1, 1), torch.ones(1, 1))
    few.epoch = lambda number, places: [torch.ones(1, 1)]
    with pytest.raises(UsageError, match="ended early: there were to be 2"):
        train(model, few, line_loss, sgd(model), constant(), tmp_path)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ({"epochs": 0}, "epochs is 0; it is 1 or more"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"schedule": "cosin"}, "schedule is 'cosin'; it is one of linear, cosine, one-cycle, constant"),
    ],
)
def test_settings_out_of_range_are_refused(says, said):
    with pytest.raises(UsageError, match=said):
        TrainingConfig(**says)


# -- evaluation -----------------------------------------------------------------------


def judge(values):
    """Return an evaluation that answers with these numbers, one after the other."""
    answers = iter(values)

    def evaluate(model):
        assert not model.training
        assert not torch.is_grad_enabled()
        return next(answers)

    return evaluate


def test_training_stops_when_nothing_is_gained_and_ends_with_the_best(tmp_path):
    model = Line()
    config = constant(epochs=9, patience=2)
    evaluate = judge([0.1, 0.3, 0.2, 0.3, 0.9])
    trained = train(
        model, Given(torch.ones(1, 1)), line_loss, sgd(model), config, tmp_path, evaluate=evaluate
    )
    assert (trained.stopped, trained.steps, trained.best) == (True, 4, {"step": 2, "epoch": 2, "metric": 0.3})
    assert model.weight.item() == -1  # after two steps of one
    assert not model.training
    [kept] = tmp_path.glob("best-*")
    assert (kept.name, load_file(kept)["weight"].item()) == ("best-2.safetensors", -1)
    again = Line()
    trained = train(again, Given(torch.ones(1, 1)), None, sgd(again), config, tmp_path, resume=True)
    assert (trained.stopped, again.weight.item()) == (True, -1)


def test_what_is_not_a_number_is_never_the_best(tmp_path):
    model = Line()
    evaluate = judge([float("nan"), 0.2, float("nan")])
    config = constant(epochs=3)
    trained = train(
        model, Given(torch.ones(1, 1)), line_loss, sgd(model), config, tmp_path, evaluate=evaluate
    )
    assert trained.best["step"] == 2


def test_the_first_of_several_metrics_decides_and_all_are_in_the_curve(tmp_path):
    model = Line()
    evaluate = judge([{"f1": 0.5, "nil": 0.9}, {"f1": 0.4, "nil": 1.0}])
    config = constant(epochs=2)
    trained = train(
        model, Given(torch.ones(1, 1)), line_loss, sgd(model), config, tmp_path, evaluate=evaluate
    )
    assert trained.best == {"step": 1, "epoch": 1, "f1": 0.5, "nil": 0.9}
    lines = [line for line in curve(tmp_path) if "f1" in line]
    assert lines == [
        {"step": 1, "epoch": 1, "f1": 0.5, "nil": 0.9},
        {"step": 2, "epoch": 2, "f1": 0.4, "nil": 1.0},
    ]


# -- killed ---------------------------------------------------------------------------

ALONE = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.training.test_loop import PLAIN, Toy, accuracy, adams, batches, loss_of, state, train
model = Toy()
def progress(stage, done, of):
    print(done, flush=True)
train(model, batches(), loss_of, adams(model), PLAIN, Path(sys.argv[1]), evaluate=accuracy, progress=progress)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kill_after", [2, 7])
def test_a_training_that_was_killed_goes_on_to_the_same_weights(kill_after, undisturbed, tmp_path):
    done = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(tmp_path)], env=child_env(), stdout=subprocess.PIPE, text=True
    )
    assert done.stdout is not None
    for line in done.stdout:
        if int(line) == kill_after:
            done.send_signal(signal.SIGKILL)
            break
    done.stdout.close()
    assert done.wait(60) == -signal.SIGKILL
    model = Toy()
    train(model, batches(), loss_of, adams(model), PLAIN, tmp_path, evaluate=accuracy, resume=True)
    assert same(state(model), undisturbed[0])
    assert curve(tmp_path) == undisturbed[1]


def test_checkpoints_are_made_by_the_clock(tmp_path, monkeypatch):
    now = [0.0]
    saved = []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def progress(stage, done, of):
        now[0] += 10
        if (tmp_path / CHECKPOINT).exists():
            saved.append(torch.load(tmp_path / CHECKPOINT, weights_only=True)["state"]["steps"])

    model = Line()
    given = Given(*[torch.ones(1, 1)] * 10)
    trained = train(
        model, given, line_loss, sgd(model), constant(checkpoint_seconds=25), tmp_path, progress=progress
    )
    assert sorted(set(saved)) == [4, 8]
    assert trained.seconds == 100
    assert os.listdir(tmp_path) and not list(tmp_path.glob(".*"))  # noqa: PTH208
