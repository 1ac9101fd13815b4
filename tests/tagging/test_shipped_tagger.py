"""The tagger that comes with kgkit: small, in the package, at work for any knowledge base."""

import shutil

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.encoder.finding import find_in_package
from kgkit.errors import StaleModel
from kgkit.home import Home
from kgkit.models.folder import SHIPPED, find_model_folder, model_names
from kgkit.models.kinds import TAGGER
from kgkit.versions import file_sha256
from tests.cli_helpers import run
from tests.small_kb import build
from tests.tiny_encoder import MINILM

NAME = "names-minilm"
TEXT = "Angela Merkel met officials of the United Nations in Berlin on Tuesday. They talked about water."


def needs_encoder():
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")


def test_it_is_found_by_name_and_is_small(tmp_path):
    folder = find_model_folder(NAME, Home(tmp_path), "tagger")
    assert folder == SHIPPED / NAME and NAME in model_names(Home(tmp_path))
    manifest = TAGGER.read(folder)
    assert (manifest.types, manifest.frozen, manifest.encoder) == (("NAME",), True, MINILM)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 2**20
    assert {name: file_sha256(folder / name) for name in manifest.sizes} == manifest.sha256


def test_its_card_says_what_it_was_made_of_and_how_well_it_does():
    card = (SHIPPED / NAME / "README.md").read_text()
    for word in ("Wikipedia", "CC BY-SA", "WikiText-2", "CoNLL-2003 testb", "AIDA", "F1", "all-MiniLM-L6-v2"):
        assert word in card, word


def test_it_finds_names_in_news_and_none_in_lower_case(tmp_path):
    needs_encoder()
    from kgkit.tagging.tagger import Tagger

    tagger = Tagger.open(NAME, home=tmp_path, device="cpu")
    first, second, empty = tagger([TEXT, "the water was cold, and nobody swam.", ""])
    assert [mention.text for mention in first.mentions] == ["Angela Merkel", "United Nations", "Berlin"]
    assert {mention.type for mention in first.mentions} == {"NAME"}
    assert all(0.5 < mention.score <= 1 for mention in first.mentions)
    assert second.mentions == [] and empty.mentions == []


def test_a_linker_links_the_names_that_it_finds(tmp_path):
    needs_encoder()
    records = [
        Entity("berlin", "Berlin"), Entity("water", "Water"), Alias("water", "water", 3),
        Entity("merkel", "Angela Merkel"), Alias("Angela Merkel", "merkel"), Alias("Berlin", "berlin"),
    ]  # fmt: skip
    build(tmp_path, records, name="some").close()
    (tmp_path / "letter.txt").write_text(TEXT, encoding="utf-8")
    plain = kgkit.link(TEXT, "some", home=tmp_path, mentions="kb")
    named = kgkit.link(TEXT, "some", home=tmp_path, mentions=NAME)
    assert [link.entity for link in plain.links] == ["merkel", "berlin", "water"]
    assert [link.entity for link in named.links] == ["merkel", "berlin"]
    done = run("tag", tmp_path / "letter.txt", "--model", NAME, "--home", tmp_path)
    assert done.code == 0 and "United Nations" in done.out, done.err


def test_another_encoder_of_the_name_is_refused(tmp_path):
    needs_encoder()
    from kgkit.tagging.tagger import Tagger

    folder = shutil.copytree(SHIPPED / NAME, tmp_path / "other")
    text = (folder / "model.json").read_text()
    fingerprint = TAGGER.read(folder).fingerprint
    (folder / "model.json").write_text(text.replace(fingerprint, "0" * 16))
    with pytest.raises(StaleModel, match=f"fingerprint {'0' * 16}; the one that is here has {fingerprint}"):
        Tagger.open(str(folder), device="cpu")


def test_it_says_what_it_is_among_the_models(tmp_path):
    shown = run("models", "info", NAME, "--home", tmp_path)
    assert shown.code == 0 and f"{NAME} is a tagger." in shown.out and f"Its encoder is {MINILM}" in shown.out
    assert run("models", "verify", NAME, "--home", tmp_path).out == f"{NAME}: sound\n"
    assert "comes with kgkit" in run("models", "rm", NAME, "--home", tmp_path).err
