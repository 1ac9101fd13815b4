"""The linker that comes with kgkit: small, in the package, and at work on whatever WordNet a user built."""

import pytest

import kgkit
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder.finding import find_in_package
from kgkit.home import Home
from kgkit.models.folder import SHIPPED, find_model_folder, model_names
from kgkit.models.kinds import LINKER
from kgkit.versions import file_sha256
from tests.cli_helpers import build_mini
from tests.tiny_encoder import MINILM

NAME = "wsd-minilm"
WEIGHTS = "329b3677a9d259a4e6e5fc1581bb1a1b4f671a68c79e575996ebcc8fef4c27c0"
SCALE = "4828c52d30917e1a00445ca4ff6d7b40f5163e6e0dc1bb2e1e6718be4365fe71"
PARTS_OF_SPEECH = "e2bbcb7af2b79772599fb06e641fc86cdf472afa9456ba4e4da0ea8a7a7ddd77"
CONFIG = "4c17f3512650a6b6bbeb9ccdfc8c48c38056e48131fa035ff77c76106ecf9427"


def test_it_is_found_by_name_and_is_small(tmp_path):
    folder = find_model_folder(NAME, Home(tmp_path))
    assert folder == SHIPPED / NAME and NAME in model_names(Home(tmp_path))
    manifest = LINKER.read(folder)
    assert (manifest.kind, manifest.type, manifest.kb, manifest.build) == ("linker", "head", "", "")
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 4 * 2**20
    assert not any("/" in path for path in manifest.data)


def test_it_is_the_model_that_was_measured():
    """What decides its links, to the last bit: weights, scale, temperature, how documents are read."""
    manifest = LINKER.read(SHIPPED / NAME)
    digests = {name: file_sha256(SHIPPED / NAME / name) for name in manifest.sizes}
    assert digests == manifest.sha256
    assert digests["head/model.safetensors"] == WEIGHTS
    assert digests["scale.npy"] == SCALE
    assert digests["parts_of_speech.npy"] == PARTS_OF_SPEECH
    assert digests["head/config.json"] == CONFIG
    assert manifest.temperature == 1.1006941712522085
    assert manifest.reader == {"layers": [-1, -2, -3, -5], "size": 126, "context": 24, "scope": "document"}
    assert manifest.config["head"]["text_weight"] == 0.6 and manifest.config["head"]["ranks"] == "shared"
    assert manifest.config["head"]["heads"] == 1
    assert (manifest.vectors, manifest.fingerprint) == ("text", "d690fa636a9f4a11")


def test_its_card_says_what_it_was_made_of():
    card = (SHIPPED / NAME / "README.md").read_text()
    for told in (
        "SemCor",
        "Brown Corpus",
        "non-commercial",
        "WordNet licence",
        "all-MiniLM-L6-v2",
        "F1",
        "CC BY-SA",
        "all-mpnet-base-v2",
    ):
        assert told in card


def test_one_in_the_home_goes_before_it(tmp_path):
    own = tmp_path / "models" / NAME
    own.mkdir(parents=True)
    (own / "model.json").write_text("{}")
    assert find_model_folder(NAME, Home(tmp_path)) == own


def test_it_links_any_wordnet_alike_whether_its_glosses_were_read_before_or_not(tmp_path):
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    with kgkit.open_kb("mini", home=build_mini(tmp_path)) as kb:
        text = "The dog chased a mouse well. A turkey ran to the well."
        at_once = kgkit.link(text, kb, model=NAME, device="cpu")
        embed_text(kb, TextConfig(device="cpu"))
        linked = kgkit.link(text, kb, model=NAME, device="cpu")
        assert linked == at_once
        prior = kgkit.link(text, kb, model="prior")
        assert linked.model == NAME
        assert [link.text for link in linked.links] == [link.text for link in prior.links]
        for link in linked.links:
            assert 0 < link.score <= 1
            assert sum(one.score for one in link.candidates) <= 1 + 1e-5
