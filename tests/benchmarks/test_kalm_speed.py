"""The bench of KALM's speed: steps of training of three models, in turn."""

import json
import lzma
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit.training.kalm  # noqa: E402
from benchmarks import kalm_speed  # noqa: E402
from benchmarks.kalm import data_of  # noqa: E402
from kgkit.home import Home  # noqa: E402
from kgkit.methods.kalm_settings import KALMTraining  # noqa: E402
from tests.benchmarks.test_ne_lm import SIZES  # noqa: E402
from tests.small_kb import build, type_records  # noqa: E402


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(kalm_speed, "SIZES", {**kalm_speed.SIZES, **SIZES})
    monkeypatch.setattr(kalm_speed, "RATE", 3e-2)
    for module in (kalm_speed, kgkit.training.kalm):
        monkeypatch.setattr(module, "ROWS", 2)
        monkeypatch.setattr(module, "LENGTH", 6)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speed")
    build(folder, type_records(FOOD={"milk": 1.0, "salt": 1.0}), name="types").close()
    text = folder / "text.txt"
    text.write_text("heat the milk and add salt\n" * 12)
    training = KALMTraining(data=(text,), style="recipe")
    return data_of(Home(folder), training, "types"), training


def test_models_are_timed_in_turn_and_the_first_round_does_not_count(data, monkeypatch):
    calls = []

    def clock(_):
        def timed(step):
            step()
            calls.append(None)
            # Rounds of two models: the first is slow, then AWD-LSTM takes 2 s, the other 3 s.
            number = len(calls) - 1
            return 100.0 if number < 2 else (2.0, 3.0)[number % 2]

        return timed

    monkeypatch.setattr(kalm_speed, "timed", clock)
    table = kalm_speed.speed(*data, 2, torch.device("cpu"), [False])
    assert len(calls) == 6 and [row[0] for row in table.rows] == ["AWD-LSTM", "KALM"]
    assert [row[1:] for row in table.rows] == [["6", "2", "1.000"], ["4", "3", "1.500"]]


def test_both_directions_are_compared_with_an_awd_lstm_of_both(data):
    table = kalm_speed.speed(*data, 1, torch.device("cpu"), [True])
    assert [row[0] for row in table.rows] == ["AWD-LSTM, both directions", "KALM, both directions"]
    assert table.rows[0][3] == "1.000" and all(float(row[2]) > 0 for row in table.rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", kalm_speed.MODELS)
def test_a_step_trains(data, name, monkeypatch):
    losses, make = [], kalm_speed.loss_with_states

    def noting(kalm, carried):
        loss_of = make(kalm, carried)

        def loss(model, batch):
            value, weight = loss_of(model, batch)
            losses.append(float(value.detach()))
            return value, weight

        return loss

    monkeypatch.setattr(kalm_speed, "loss_with_states", noting)
    words, training = data
    control = replace(training, control=name == kalm_speed.AWD)
    step = kalm_speed.training_step(words, control, torch.device("cpu"))
    for _ in range(60):  # more than an epoch
        step()
    assert sum(losses[-10:]) < sum(losses[:10]) - 5


def test_the_recipes_are_read(tmp_path, capsys):
    for name in ("corpus", "superingredients"):
        (tmp_path / "recipe" / name).mkdir(parents=True)
    (tmp_path / "recipe" / "superingredients" / "dairy.txt").write_text("milk\ncream\n")
    recipe = {"ingredients": ["2 cups Milk"], "directions": ["Heat the milk."]}
    with lzma.open(tmp_path / "recipe" / "corpus" / "recipes_train.jsonl.xz", "wt") as file:
        file.write((json.dumps(recipe) + "\n") * 20)
    kalm_speed.main(["--home", str(tmp_path), "--data", str(tmp_path), "--rounds", "1", "--share", "1",
                     "--forward-only"])  # fmt: skip
    output = capsys.readouterr().out
    assert "| KALM | " in output and "both" not in output.split("|---")[1]
