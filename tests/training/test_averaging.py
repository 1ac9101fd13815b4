"""Averaged SGD that validation triggers, and states that are carried: as an undisturbed training has them."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from kgkit.errors import UsageError  # noqa: E402
from kgkit.training import train  # noqa: E402
from kgkit.training.averaging import is_stalled  # noqa: E402
from tests.training.test_loop import Given, Line, Stopped, constant, curve, same, sgd, state  # noqa: E402

VALUES = [1.0, 5.0, 4.0, 3.0, 2.0, 9.0, 0.0, 0.0]
"""Validations, of which the fourth is the first that is worse than the best of those before the last two."""
CONFIG = constant(epochs=8, average_after=1, checkpoint_seconds=0.0)
DATA = [torch.full((1, 1), float(x)) for x in (1, -3, 2)]


class Sum:
    """A number that is carried from batch to batch."""

    def __init__(self) -> None:
        self.value = torch.zeros(())

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def run(folder, config=CONFIG, *, stop=None, resume=False, weights=None, seen=None):
    model, carried = Line(), Sum()
    values = iter(VALUES[len([row for row in curve(folder) if "metric" in row]) if resume else 0 :])

    def loss(model, batch):
        carried.value = carried.value + batch.sum()
        if weights is not None:
            weights.append(model.weight.item())
        return model(batch).mean() * (1 + carried.value / 10)

    def evaluate(model):
        if seen is not None:
            seen.append(model.weight.item())
        return next(values)

    def progress(stage, done, of):
        if done == stop:
            raise Stopped

    given = Given(*DATA)
    trained = train(
        model, given, loss, sgd(model, 0.01), config, folder, evaluate=evaluate, carried=carried,
        progress=progress, resume=resume,
    )  # fmt: skip
    return model, trained


def test_a_validation_that_is_worse_than_the_best_before_the_last_ones_is_a_stall():
    assert [is_stalled(VALUES[:count], 1) for count in range(1, 6)] == [False, False, False, True, True]
    assert not is_stalled([5.0, 1.0], 1) and is_stalled([5.0, 1.0], 0)
    assert not is_stalled([5.0, 1.0, 5.0], 1)


@pytest.mark.parametrize("last", range(7))
def test_no_validation_is_compared_with_the_last_ones_however_few_there_are(last):
    """AWD-LSTM: `len(before) > n and loss > min(before[:-n])`, where *before* lacks the last one."""
    for count in range(1, 7):
        falling = [float(-number) for number in range(count)]
        assert is_stalled(falling, last) == (count - 1 > last)


def test_weights_are_averaged_from_the_stall_on_and_evaluated_and_saved_so(tmp_path):
    weights, seen = [], []
    model, trained = run(tmp_path, weights=weights, seen=seen)
    assert trained.averaged_from == 12  # four epochs of three batches
    behind = [*weights[1:], None]  # each step's weights are seen by the loss of the next one
    assert seen[:4] == weights[3:13:3], "as they are, before"
    for epoch in (5, 6, 7):
        part = behind[12 : 3 * epoch]
        assert seen[epoch - 1] == pytest.approx(sum(part) / len(part)), "the mean, after"
    assert trained.best["step"] == 18
    assert model.weight.item() == pytest.approx(seen[5])
    assert float(load_file(tmp_path / "best-18.safetensors")["weight"]) == pytest.approx(seen[5])


@pytest.mark.parametrize("stop", [2, 11, 12, 14, 20])
def test_averages_and_what_is_carried_go_on_after_a_stop(stop, tmp_path):
    whole, trained = run(tmp_path / "whole", CONFIG)
    with pytest.raises(Stopped):
        run(tmp_path / "it", CONFIG, stop=stop)
    again, resumed = run(tmp_path / "it", CONFIG, resume=True)
    assert same(state(again), state(whole))
    assert curve(tmp_path / "it") == curve(tmp_path / "whole")
    assert (resumed.evaluations, resumed.averaged_from) == (trained.evaluations, trained.averaged_from)


def test_other_settings_of_averaging_are_refused(tmp_path):
    with pytest.raises(Stopped):
        run(tmp_path, stop=5)
    with pytest.raises(UsageError, match="average_after"):
        run(tmp_path, replace(CONFIG, average_after=3), resume=True)


def test_a_checkpoint_of_a_kgkit_without_averages_goes_on(tmp_path):
    from kgkit.training.loop import CHECKPOINT

    plain = constant(epochs=2, checkpoint_seconds=0.0)
    with pytest.raises(Stopped):
        run(tmp_path, plain, stop=5)
    saved = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    del saved["settings"]["average_after"], saved["averages"]
    torch.save(saved, tmp_path / CHECKPOINT)
    assert run(tmp_path, plain, resume=True)[1].steps == 6
