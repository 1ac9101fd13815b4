"""What models say of themselves, one by one and all together, damaged ones among them."""

import json

import pytest

import kgkit
from kgkit.errors import DamagedModel, UnknownName
from kgkit.home import Home
from kgkit.models.kinds import TaggerManifest
from kgkit.models.listing import ModelSummary, describe_model, models
from kgkit.models.manifest import FORMAT, MANIFEST, Needs
from kgkit.models.needs import Need
from kgkit.models.publishing import stage_model, write_manifest

SHIPPED = ["links-minilm", "names-minilm", "wsd-minilm"]


def publish(home, name, size=10, **fields):
    """Publish a tagger with a file of *size* bytes."""
    manifest = TaggerManifest(
        format=FORMAT, kind="tagger", name=name, types=("PER",), fingerprint="", reader={}, **fields
    )
    with stage_model(home.models / name) as (staged, _):
        (staged / "numbers.bin").write_bytes(bytes(size))
        write_manifest(staged, manifest)


@pytest.fixture
def home(tmp_path):
    """A home with one tagger, which needs a linker that is not there."""
    home = Home(tmp_path)
    publish(home, "mine", encoder="tiny", needs=Needs(linker="absent"))
    return home


def summary(home, name):
    return {model.name: model for model in models(home.path)}[name]


def test_models_are_listed_by_name_with_those_that_come_with_kgkit(home):
    assert [model.name for model in models(home.path)] == sorted(["mine", *SHIPPED])
    assert [model.name for model in models(home.path / "empty")] == SHIPPED


def test_a_summary_has_the_fields_of_the_manifest(home):
    model = summary(home, "mine")
    assert (model.kind, model.type, model.task, model.encoder) == ("tagger", "", "", "tiny")
    assert model.roles == ("tagger",) and model.error is None
    assert model.needs == (Need("linker", "absent", False),)
    assert model.created[:2] == "20" and model.path.startswith(str(home.models / "mine"))


def test_the_size_is_that_of_all_files_and_the_manifest(home):
    model = summary(home, "mine")
    folder = home.models / "mine" / "current"
    assert model.size == sum(path.stat().st_size for path in folder.iterdir())
    publish(home, "mine", size=1_010, encoder="tiny", needs=Needs(linker="absent"))
    assert 1_000 <= summary(home, "mine").size - model.size < 1_010  # digits of the sizes in the manifest


def test_a_damaged_model_is_listed_by_name_with_its_error_alone(home):
    (home.models / "torn").mkdir()
    (home.models / "torn" / MANIFEST).write_text("{")
    model = summary(home, "torn")
    assert model == ModelSummary("torn", model.error)
    assert model.error is not None and "cannot be read" in model.error
    assert model.to_dict() == {"name": "torn", "error": model.error}
    assert summary(home, "mine").error is None


def test_a_file_of_another_size_is_an_error_of_its_model(home):
    (home.models / "mine" / "current" / "numbers.bin").write_bytes(b"x")
    assert "numbers.bin is not the file of 10 bytes" in str(summary(home, "mine").error)
    with pytest.raises(DamagedModel, match=r"numbers\.bin"):
        describe_model("mine", home)


def test_a_summary_is_ready_for_json_and_omits_empty_fields(home):
    fields = summary(home, "mine").to_dict()
    assert json.loads(json.dumps(fields))["needs"] == [
        {"kind": "linker", "name": "absent", "available": False}
    ]
    assert not {"error", "task", "type"} & fields.keys()
    publish(home, "alone")
    assert "needs" not in summary(home, "alone").to_dict()


def test_a_description_has_the_manifest_and_its_sentence(home):
    description = describe_model("mine", home)
    assert description["what"] == "a tagger" and description["types"] == ("PER",)
    assert description["bytes"] == summary(home, "mine").size
    assert description["sizes"]["numbers.bin"] == 10
    json.dumps(description)


def test_an_unknown_name_is_an_error_that_lists_the_names(home):
    with pytest.raises(UnknownName, match=r"absent.*mine"):
        describe_model("absent", home)


def test_models_of_the_usual_home_are_listed_without_an_argument(home, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(home.path))
    assert [model.name for model in kgkit.models()] == sorted(["mine", *SHIPPED])
