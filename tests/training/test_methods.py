"""`kgkit.train`: what a program may give, and what is refused in one sentence before anything is trained."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import kgkit
from kgkit.errors import UsageError
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


def test_one_knowledge_base_is_named_by_a_string_and_no_files_by_none(train, home):
    trained = train(kbs="toy", control=False, dev=None, encoder=Path(home / "encoder"))
    assert list(trained.manifest.needs.kbs) == ["toy"]
    assert trained.manifest.config["dev"] == [] and trained.manifest.encoder == str(home / "encoder")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": None}, "there are no training data"),
        ({"data": 3}, "data is 3: expected strings or paths"),
        ({"kbs": [1]}, r"kbs is \[1\]: expected strings or paths"),
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
