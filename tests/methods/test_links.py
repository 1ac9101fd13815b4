"""Links that a method reads are made once for each text, in the order of the documents, by one linker."""

import shutil
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import torch

import kgkit.methods.links as module
from kgkit.errors import StaleModel
from kgkit.home import Home
from kgkit.methods.links import check_linker, link_once, linker_sha256_of
from kgkit.models.folder import lasting_name
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import FORMAT, MANIFEST
from kgkit.types import Document

LINKER = LinkerManifest(
    format=FORMAT, kind="linker", name="mine", vectors="text", version="", fingerprint="", reader={},
    temperature=1.0,
)  # fmt: skip


class CountingLinker:
    """A linker that notes the texts that it is called with, and whether autocast was on."""

    def __init__(self):
        self.batches = []
        self.autocast = []

    def __call__(self, documents):
        self.batches.append([document.text for document in documents])
        self.autocast.append(torch.is_autocast_enabled("cpu"))
        return [msgspec.structs.replace(document, id=document.text.upper()) for document in documents]


def documents(*texts):
    return [Document(f"d{number}", text) for number, text in enumerate(texts)]


def linked(find_links, *texts):
    return [document.id for document in find_links(documents(*texts))]


def test_texts_keep_their_order_and_are_linked_once():
    linker = CountingLinker()
    find_links = link_once(linker, "cpu")
    assert linked(find_links, "b", "a", "b") == ["B", "A", "B"]
    assert linked(find_links, "c", "a") == ["C", "A"]
    assert linked(find_links, "a", "b", "c") == ["A", "B", "C"]
    assert linker.batches[1:] == [["c"], []]
    assert set(linker.batches[0]) == {"a", "b"}


def test_an_iterator_of_documents_is_read_once():
    assert [document.id for document in link_once(CountingLinker(), "cpu")(iter(documents("x")))] == ["X"]


def test_a_full_memory_is_emptied_and_all_of_the_batch_linked_again(monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINKED", 2)
    linker = CountingLinker()
    find_links = link_once(linker, "cpu")
    assert linked(find_links, "a", "b") == ["A", "B"]
    assert linked(find_links, "a", "c") == ["A", "C"]  # b is forgotten, a is linked again
    assert linker.batches == [["a", "b"], ["a", "c"]]
    assert linked(find_links, "c", "a") == ["C", "A"] and linker.batches[2] == []


def test_links_do_not_depend_on_the_precision_of_the_training():
    linker = CountingLinker()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        linked(link_once(linker, "cpu"), "a")
        assert torch.is_autocast_enabled("cpu")
    assert linker.autocast == [False]


@pytest.fixture
def home(tmp_path):
    """A home with the manifest of a linker called `mine`."""
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(LINKER))
    return Home(tmp_path)


@pytest.mark.parametrize("linker", ["", "prior", "gloss", "absent"])
def test_linkers_without_a_manifest_have_no_digest(home, linker):
    assert linker_sha256_of(home, linker) == ""


@pytest.mark.parametrize("linker", ["", "prior", "gloss", "mine", "absent", "wsd-minilm", "x" * 5000, "a\0b"])
def test_a_name_of_a_linker_lasts_as_it_is(home, linker):
    assert lasting_name(home, linker) == linker


def test_a_folder_of_a_linker_lasts_as_its_name_or_as_an_absolute_path(home, tmp_path, monkeypatch):
    shutil.copytree(home.models / "mine", tmp_path / "beside" / "other")
    monkeypatch.chdir(tmp_path)
    assert lasting_name(home, "models/mine") == lasting_name(home, str(home.models / "mine")) == "mine"
    assert lasting_name(home, "beside/other") == str(tmp_path / "beside" / "other")
    monkeypatch.chdir(tmp_path / "beside")
    assert lasting_name(home, "./other") == str(tmp_path / "beside" / "other")
    assert lasting_name(home, Path("other")) == str(tmp_path / "beside" / "other")
    shutil.copytree(tmp_path / "beside" / "other", tmp_path / "beside" / "mine")
    assert lasting_name(home, "mine") == "mine"  # a name is one in the home
    assert lasting_name(home, "./mine") == str(tmp_path / "beside" / "mine")


def test_a_linker_is_the_same_until_it_is_trained_again(home):
    digest = linker_sha256_of(home, "mine")
    assert len(digest) == 64
    check_linker(home, "reader", "mine", digest)
    trained_again = msgspec.structs.replace(LINKER, temperature=2.0)
    (home.models / "mine" / MANIFEST).write_bytes(msgspec.json.encode(trained_again))
    with pytest.raises(
        StaleModel, match="model reader reads links of the model mine, which has been trained"
    ):
        check_linker(home, "reader", "mine", digest)


def test_a_linker_that_is_gone_is_stale_and_an_untrained_linker_never_is(home):
    with pytest.raises(StaleModel, match="or is gone: train it again too"):
        check_linker(home, "reader", "absent", "0" * 64)
    check_linker(home, "reader", "prior", "")
    check_linker(home, "reader", "absent", "")
