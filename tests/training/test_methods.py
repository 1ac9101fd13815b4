"""`kgkit.train`: what a program may give, and what is refused in one sentence before anything is trained."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.errors import BuildFailed, UsageError
from kgkit.methods.kbert_settings import KBertTraining
from kgkit.training.methods import _warn_of_control
from tests.cli_helpers import run
from tests.tiny_encoder import tiny_encoder
from tests.toys import build_toy


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    tiny_encoder(folder / "encoder")
    build_toy(folder, home=folder)
    (folder / "train.tsv").write_text("the dog\t1\na cat\t0\n" * 4)
    return folder


@pytest.fixture
def train(home):
    def train(**settings):
        usual = {
            "name": "small", "home": home, "task": "classification", "data": home / "train.tsv", "epochs": 1,
            "encoder": home / "encoder", "size": 16, "batch": 8, "control": True, "device": "cpu",
        }  # fmt: skip
        return kgkit.train("kbert", **(usual | settings))

    return train


def test_one_knowledge_base_is_named_by_a_string(train, home):
    trained = train(kbs="toy", control=False, encoder=Path(home / "encoder"))
    assert list(trained.manifest.needs.kbs) == ["toy"]
    assert trained.manifest.config["dev"] == [] and trained.manifest.encoder == str(home / "encoder")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": ()}, "there are no training data"),
        ({"data": 3}, "data is 3"),
        ({"epoch": 3}, "epoch"),
        ({"epochs": "3"}, "epochs is '3'; it is a whole number"),
        ({"epochs": 1.5}, "epochs is 1.5; it is a whole number"),
        ({"size": None}, "size is None; it is a whole number"),
        ({"decay": float("nan")}, "decay is nan; it is 0 or more"),
        ({"lr": "1e-3"}, "lr is '1e-3'; it is a number"),
        ({"bf16": "yes"}, "bf16 is 'yes'; it is True, False or 'auto'"),
        ({"seed": None}, "seed is None; it is a whole number"),
        ({"seed": 2**32}, "seed is 4294967296; it is from 0 to 4294967295"),
    ],
)
def test_what_is_no_such_setting_is_refused(settings, message, train):
    with pytest.raises(UsageError, match=message):
        train(**settings)


@pytest.mark.parametrize("held_out", [True, False])
def test_a_training_that_diverges_in_its_last_step_says_so(held_out, train, home):
    dev = home / "train.tsv" if held_out else ()
    with pytest.raises(
        BuildFailed, match=r"the length of the weights is inf after step 1 of 1, at .* a lower"
    ):
        train(lr=1e30, lr_new=1e30, steps=1, dev=dev, name="far")
    assert not (home / "models" / "far").exists()


def test_answers_that_are_no_numbers_end_a_training(train, home, monkeypatch):
    monkeypatch.setattr(
        "torch.nn.Linear.forward", lambda self, vectors: vectors @ self.weight.T * float("inf")
    )
    monkeypatch.setattr("kgkit.training.loop._Training._demand_finite", lambda *_, **__: None)
    with pytest.raises(
        BuildFailed, match=r"diverged, .* answers example 1 by .* of nan: .* than --lr 0.1 and"
    ):
        train(lr=0.1, steps=1, dev=home / "train.tsv", name="far")


@pytest.mark.slow
def test_a_control_names_what_it_leaves_out_in_one_warning(train, home, caplog):
    train(kbs="toy", query="link", linker="prior", max_facts=2)
    [warning] = [record.getMessage() for record in caplog.records if "control" in record.getMessage()]
    assert warning == "--kb, --query, --linker have no effect with --control"
    caplog.clear()
    train()
    train(kbs="toy", control=False, query="link", linker="prior")
    assert not [record for record in caplog.records if "no effect" in record.getMessage()]
    common = (
        "train", "kbert", "--task", "classification", "--data", home / "train.tsv", "--name", "small",
        "--home", home, "--encoder", home / "encoder", "--size", 16, "--batch", 8, "--epochs", 1, "--device",
        "cpu",
    )  # fmt: skip
    done = run(*common, "--control", "--attributes")
    assert done.code == 0 and done.err.count("no effect") == 1
    assert "warning: --attributes has no effect with --control\n" in done.err


def test_what_a_control_leaves_out_is_named_by_its_options(caplog, tmp_path):
    settings = {"task": "classification", "data": (tmp_path / "x",), "encoder": "none", "control": True}
    _warn_of_control(KBertTraining(**settings), ["toy"], [])
    _warn_of_control(KBertTraining(**settings, max_facts=3, attributes=True), [], [])
    _warn_of_control(KBertTraining(**settings), [], [])
    assert caplog.messages == [
        "--kb has no effect with --control",
        "--max-facts, --attributes have no effect with --control",
    ]
