"""What every test may ask for. No test sees a knowledge base of the person who runs it."""

import json
import os
import secrets
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kb_builders.wordnet_source import obtain
from kgkit.errors import NotThere
from kgkit.home import Home
from tests import postgres, small_kb
from tests.tiny_encoder import tiny_encoder
from tests.toys import build_toy

ROOT = Path(__file__).parent.parent


def pytest_configure(config):
    """Let Ctrl-C interrupt, and no example of Hypothesis have a deadline: a busy machine fails no test.

    Whoever starts the tests in the background of a script has had Ctrl-C ignored. `make test-slow` asks for
    the profile `thorough`, with four times as many examples.
    """
    settings.register_profile("quick", deadline=None, max_examples=25)
    settings.register_profile("thorough", deadline=None)
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("quick")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path_factory.getbasetemp() / "no-home"))
    monkeypatch.delenv("KGKIT_KB", raising=False)
    monkeypatch.setenv("KGKIT_MODEL", "prior")  # what `auto` stands for, whatever encoder is installed
    monkeypatch.delenv("KGKIT_CATALOG_URL", raising=False)


@pytest.fixture(scope="session")
def toy_built(tmp_path_factory):
    """The toy, built once: not to be changed."""
    return build_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def toy_home(toy_built):
    """A home with the toy in it: not to be changed."""
    return toy_built.path.parents[3]


@pytest.fixture
def toy(toy_home):
    """The toy, open."""
    with kgkit.open_kb("toy", home=toy_home) as kb:
        yield kb


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory):
    """The folder of the tiny encoder: not to be changed."""
    pytest.importorskip("transformers")
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture(scope="session")
def encoder(encoder_folder):
    """The tiny encoder, loaded: not to be changed."""
    from kgkit.encoder import Encoder

    return Encoder.load(str(encoder_folder), device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def words_home(tmp_path_factory, encoder):
    """A home with the knowledge base `words` and its vectors `text`: not to be changed."""
    from kgkit.embedding.text import TextConfig, embed_text

    home = tmp_path_factory.mktemp("words")
    with small_kb.build(home, small_kb.WORDS, name="words") as kb:
        settings = TextConfig(
            encoder=encoder.name, device="cpu", dtype="float32", template="{label}: {description}"
        )
        embed_text(kb, settings, encoder=encoder)
    return home


@pytest.fixture
def words(words_home):
    """The knowledge base `words`, open."""
    with kgkit.open_kb("words", home=words_home) as kb:
        yield kb


@pytest.fixture(scope="session")
def trained_home(tmp_path_factory, words_home):
    """A home with the KB `words`, its vectors and the trained linker `means`: not to be changed."""
    from kgkit.inputs import SpanConfig
    from kgkit.training.linkers.settings import LinkerTraining
    from kgkit.training.linkers.train import train_linker

    folder = tmp_path_factory.mktemp("trained")
    home, data = folder / "home", folder / "train.jsonl"
    shutil.copytree(words_home, home, symlinks=True)
    data.write_text("".join(json.dumps(document) + "\n" for document in small_kb.words_documents()))
    reader = SpanConfig(layers=(-1, 1), size=16, context=2)
    with kgkit.open_kb("words", home=home) as kb:
        train_linker(kb, "means", LinkerTraining(data=(data,), reader=reader), device="cpu")
    return home


@pytest.fixture(scope="session")
def wordnet_files():
    """The folder of WordNet 3.0's database files: `WORDNET`, else what a build without a source reads."""
    if named := os.environ.get("WORDNET"):
        return Path(named)
    try:
        return obtain(ROOT / ".kgkit-home" / "cache")
    except NotThere as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def wordnet_build(wordnet_files, tmp_path_factory):
    """The folder of a build of all of WordNet: not to be changed."""
    return kgkit.build_kb(WordNetBuilder(), wordnet_files, home=tmp_path_factory.mktemp("wordnet")).path


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data beside the checkout; `KGKIT_SHARED` names another."""
    folder = Path(os.environ.get("KGKIT_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: KGKIT_SHARED names the folder that holds data/")
    return folder


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server that ends with the tests."""
    try:
        with postgres.server() as server:
            yield server
    except postgres.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", "postgresql"])
def catalogued(request, tmp_path, monkeypatch):
    """A home whose catalog is empty, in either database; `KGKIT_HOME` names it."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        monkeypatch.setenv("KGKIT_CATALOG_URL", server.create(f"catalog_{secrets.token_hex(4)}"))
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")
