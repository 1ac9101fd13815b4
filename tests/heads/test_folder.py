"""Heads on disk: settings that are no settings, and files that are none."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from kgkit.errors import DamagedModel  # noqa: E402
from kgkit.heads import Classifier, ClassifierConfig, EntityLinker, EntityLinkerConfig  # noqa: E402
from kgkit.heads.settings import CONFIG  # noqa: E402

LINKER = EntityLinkerConfig(hidden=4, width=4, stored=3, heads=2, inner=4, scorer=2)


@pytest.fixture
def folder(tmp_path):
    EntityLinker(LINKER).save_pretrained(tmp_path)
    return tmp_path


def load(folder):
    return EntityLinker.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize("name", ["margin", "threshold", "dropout"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_settings_that_are_no_numbers_are_damage(folder, name, number):
    settings = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**settings, name: number}))
    with pytest.raises(DamagedModel, match=CONFIG):
        load(folder)


def test_a_classifier_is_read_in_the_precision_of_its_files(tmp_path):
    config = ClassifierConfig(hidden=3, labels=("a", "b"))
    Classifier(config).half().save_pretrained(tmp_path)
    again = Classifier.from_pretrained(tmp_path, device="cpu")
    assert again.label.weight.dtype == torch.float16 and not again.training
