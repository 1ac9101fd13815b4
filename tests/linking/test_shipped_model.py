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
WEIGHTS = "4c84095e7a2f445e136c37812ab36ab58f82b60edc4580bfa43f37db8cdbd3cc"
SCALE = "ac532b52a749f98a7baa8ea42b5e1b8a5bdcb102fc107a5593db90df9a169ee1"
CONFIG = "9e0fbc8643d2f4e63f513f51749157cf0287ad7805b869af94c6797784979774"


def test_it_is_found_by_name_and_is_small(tmp_path):
    folder = find_model_folder(NAME, Home(tmp_path))
    assert folder == SHIPPED / NAME and NAME in model_names(Home(tmp_path))
    manifest = LINKER.read(folder)
    assert (manifest.kind, manifest.type, manifest.kb, manifest.build) == ("linker", "head", "", "")
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 4 * 2**20
    assert not any("/" in path for path in manifest.data)


def test_it_is_the_model_that_it_was_before_its_format_changed():
    """What decides its links, to the last bit: weights, scale, temperature, how documents are read."""
    manifest = LINKER.read(SHIPPED / NAME)
    digests = {name: file_sha256(SHIPPED / NAME / name) for name in manifest.sizes}
    assert digests == manifest.sha256
    assert digests["head/model.safetensors"] == WEIGHTS
    assert digests["scale.npy"] == SCALE
    assert digests["head/config.json"] == CONFIG
    assert manifest.temperature == 1.0380151775972228
    assert manifest.reader == {"layers": [-1, -2, -3, -5], "size": 126, "context": 24, "scope": "document"}
    assert manifest.config["head"]["ridge"] == 5.0 and "heads" not in manifest.config["head"]
    assert (manifest.vectors, manifest.fingerprint) == ("text", "d690fa636a9f4a11")


def test_its_card_says_what_it_was_made_of():
    card = (SHIPPED / NAME / "README.md").read_text()
    for told in ("SemCor", "Brown Corpus", "non-commercial", "WordNet licence", "all-MiniLM-L6-v2", "F1"):
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
