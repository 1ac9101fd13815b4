"""Stopping and going on: Ctrl-C that waits, weights that are put back, chance that goes on where it was."""

import random
import signal
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from kgkit.errors import Terminated, UsageError  # noqa: E402
from kgkit.signals import terminations  # noqa: E402
from kgkit.training.resuming import (  # noqa: E402
    Interrupts,
    put_weights,
    random_states,
    set_random_states,
    weights_of,
)

CPU = torch.device("cpu")


# -- Ctrl-C -----------------------------------------------------------------


def test_ctrl_c_is_obeyed_at_once_while_nothing_is_under_way():
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt), interrupts.waiting():
        signal.raise_signal(signal.SIGINT)
    assert not interrupts.waits


def test_ctrl_c_waits_while_something_must_not_be_cut_in_two(caplog):
    interrupts = Interrupts()
    with interrupts.waiting():
        interrupts.busy = True
        signal.raise_signal(signal.SIGINT)
        assert interrupts.waits
    assert "stopping after this step" in caplog.text


def test_a_second_ctrl_c_does_not_wait():
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt), interrupts.waiting():
        interrupts.busy = True
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert interrupts.waits


def test_sigterm_waits_as_ctrl_c_does_and_ends_by_its_own_error(caplog):
    interrupts = Interrupts()
    with interrupts.waiting():
        interrupts.busy = True
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.waits
    assert "a second SIGTERM stops at once" in caplog.text
    assert isinstance(interrupts.error(), Terminated) and interrupts.error().exit_code == 143
    with pytest.raises(Terminated), Interrupts().waiting():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_sigterm_ends_what_a_command_does_beside_its_steps():
    with pytest.raises(Terminated), terminations():
        with Interrupts().waiting():
            pass
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_whoever_handles_sigterm_already_keeps_it():
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(1))
    try:
        with terminations(), Interrupts().waiting():
            signal.raise_signal(signal.SIGTERM)
        assert came == [1]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_python_has_ctrl_c_back_whatever_happened():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts().waiting():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    with pytest.raises(ZeroDivisionError), Interrupts().waiting():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) == before


def test_whoever_handles_ctrl_c_already_keeps_it():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        interrupts = Interrupts()
        with interrupts.waiting():
            signal.raise_signal(signal.SIGINT)
        assert came == [1] and not interrupts.waits
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_leaves_ctrl_c_to_the_main_one():
    seen = []

    def work():
        with Interrupts().waiting():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


# -- weights ----------------------------------------------------------------


class Model(nn.Module):
    """Two layers with one weight, a frozen one, a buffer that is saved and one that is not."""

    def __init__(self, seed: int = 0, width: int = 2) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(width, width)
        self.tied = self.first
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.register_buffer("count", torch.tensor([float(seed)]))
        self.register_buffer("cache", torch.tensor([9.0]), persistent=False)


def test_the_weights_are_what_a_training_may_change_each_once():
    assert sorted(weights_of(Model())) == ["count", "first.bias", "first.weight"]


def test_weights_that_are_put_back_are_those_that_were_taken_and_the_rest_stays():
    source, target = Model(1), Model(2)
    frozen = target.frozen.weight.clone()
    put_weights(target, weights_of(source))
    assert torch.equal(target.first.weight, source.first.weight) and target.count.item() == 1
    assert torch.equal(target.frozen.weight, frozen) and not torch.equal(frozen, source.frozen.weight)
    assert target.tied is target.first and target.first.weight.requires_grad


def test_weights_that_were_taken_are_those_of_the_model_and_no_copies():
    model = Model()
    weights = weights_of(model)
    with torch.no_grad():
        model.first.weight.fill_(3)
    assert weights["first.weight"].unique().tolist() == [3]


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights.pop("count"),
        lambda weights: weights.update(other=torch.zeros(1)),
        lambda weights: weights.update(count=torch.zeros(2)),
    ],
    ids=["fewer", "more", "another shape"],
)
def test_weights_of_another_model_are_refused_and_change_nothing(change):
    model = Model(1)
    weights = {name: torch.zeros_like(tensor) for name, tensor in weights_of(model).items()}
    change(weights)
    with pytest.raises(UsageError, match="the weights on disk are those of another model: begin anew"):
        put_weights(model, weights)
    assert model.count.item() == 1 and model.first.weight.any()


# -- chance -----------------------------------------------------------------


def drawn():
    """Return a number of each generator."""
    return random.random(), float(np.random.rand()), float(torch.rand(1)), float(np.random.randn())


def test_chance_goes_on_where_it_was():
    drawn()
    states = random_states(CPU)
    expected = [drawn() for _ in range(3)]
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    assert drawn() != expected[0]
    set_random_states(states, CPU)
    assert [drawn() for _ in range(3)] == expected


def test_the_states_survive_a_file_that_runs_nothing(tmp_path):
    states = random_states(CPU)
    expected = drawn()
    torch.save(states, tmp_path / "states")
    drawn()
    set_random_states(torch.load(tmp_path / "states", weights_only=True), CPU)
    assert drawn() == expected
    assert "cuda" not in states
