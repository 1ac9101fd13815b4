"""The three lines of E-BERT, in the README and on its page, run as they stand there."""

import re
import textwrap

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.building.build import build_kb
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.encoder.finding import find_in_package
from tests.doc_pages import ROOT
from tests.ebert_toys import save_map
from tests.mini_wordnet import mini_wordnet
from tests.tiny_encoder import MINILM

LINES = re.compile(r"^ +with kgkit\.EBertEncoder\.open\(.*\n(?: +.*\n)+", re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the mini WordNet, its vectors of texts, and a map of these into their own encoder."""
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    folder = tmp_path_factory.mktemp("ebert")
    home = folder / "home"
    build_kb(WordNetBuilder(), mini_wordnet(folder / "source"), name="wordnet", home=home)
    encoder = Encoder.load(MINILM, device="cpu", dtype="float32")
    with kgkit.open_kb("wordnet", home) as kb:
        vectors = embed_text(kb, TextConfig(encoder=MINILM, device="cpu", dtype="float32"), encoder=encoder)
        save_map(vectors, encoder)
    return home


@pytest.mark.parametrize("page", ["README.md", "docs/ebert.md"])
def test_the_three_lines_run_as_they_stand_there(home, page, monkeypatch, capsys):
    [lines] = LINES.findall((ROOT / page).read_text(encoding="utf-8"))
    code = textwrap.dedent(lines)
    assert len(code.splitlines()) == 3
    monkeypatch.setenv("KGKIT_HOME", str(home))
    exec(code, {"kgkit": kgkit})
    shown = capsys.readouterr().out.splitlines()
    assert "'dog.n.01', '/', 'dog'" in shown[0] and shown[0].endswith("384)")
