"""The public surface, by what people guess who know spaCy, pandas, NLTK's wordnet and Hugging Face.

Each of 64 expressions works, or its error says what does. The knowledge base is `mini`, a small WordNet.
"""

import json

import pytest

import kgkit
from tests.cli_helpers import build_mini

TEXTS = ["The dog chased mice.", "A hot dog."]

WORKS = """
kgkit.__version__
kgkit.kbs()[0].name
kgkit.kbs()[0].entities
kgkit.models()[0].roles
kgkit.open_kb("mini")
kgkit.open_kb()
kgkit.link("The dog barked.", "mini")
kgkit.link("The dog barked.", kb="mini").links[0].entity
kgkit.link(TEXTS, kb)[1].links
[link.text for link in kgkit.link("The dog barked.", kb)]
list(kgkit.Linker.open("mini").pipe(TEXTS))
next(kgkit.Linker.open(kb)(["The dog barked."]))
linked.to_dict()["links"][0]["entity"]
json.dumps(linked.to_dict())
linked.to_html()
linked.to_frame()["entity"].tolist()
linked.links[0].to_dict()
linked.links[0].candidates[0].label
linked.links[0].score
kb["dog.n.01"]
kb["dog.n.01"].label
kb["dog.n.01"].description
kb["dog.n.01"].attributes["lemmas"]
kb["dog.n.01"].to_dict()
kb["dog.n.01"].neighbors(kb)
kb["dog.n.01"].neighbors(kb, "hypernym")
"dog.n.01" in kb
len(kb)
next(iter(kb)).key
list(kb.keys())
kb.search("dog")[0].key
kb.search("do", kind="synset")
kb.candidates("dog")[0].prior
[(row.id, row.prior) for row in kb.candidates("dog")]
kb.decode(kb.candidates("dog", k=2))[0].label
kb.neighbors("dog.n.01", "hypernym")
list(kb.walk("puppy.n.01", "hypernym"))
kb.path("puppy.n.01", "animal.n.01")
list(kb.match("dog.n.01", "hypernym"))
kb.relations
kb.manifest.counts.entities
kb.to_frame().head()
kb.subgraph(["dog.n.01"]).nodes
kb.export(folder / "mini.ttl")
kgkit.import_kb(mine)
kgkit.diff("mini", "mini")
kgkit.build_kb("jsonl", [{"key": "acme", "label": "Acme"}], name="acme").manifest.entities
""".strip().splitlines()

SAYS = {
    'kgkit.load("mini")': r"kgkit\.open_kb\(NAME\)",
    'kgkit.KB("mini")': r"kgkit\.open_kb\(NAME\)",
    'kgkit.Linker("mini")("The dog barked.")': r"kgkit\.Linker\.open\('mini'\)",
    'kgkit.Linker.open("mini")("The dog barked.")': r"linker\(\[text\]\)",
    'kgkit.open_kb("mimi")': "mimi",
    'kb["dog"]': r"did you mean dog\.n\.01",
    'kb.synsets("dog")': r"kb\.candidates\(WORD\)",
    'kb.candidates("dog")[0].label': r"kb\.decode\(candidates\)",
    'kb.lookup("dog")': r"kb\.search\(TEXT\)",
    'kb.neighbors("dog.n.01", "hypernyms")': "there are: .*hypernym",
    'kb["dog.n.01"].hypernyms()': r"kb\.neighbors\(entity, 'hypernym'\)",
    'kb["dog.n.01"].definition()': r"entity\.description",
    "linked.ents": r"linked\.links",
    "linked.links[0].kb_id_": r"link\.entity",
    'kb.nearest("dog.n.01")': "kgkit embed",
    'kgkit.build_kb("wordnt")': "installed: .*wordnet|there are: .*wordnet",
    'kgkit.link("The dog barked.", "mini", model="glos")': "gloss",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("expressions"))


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "mine.nt"
    path.write_text("<http://e.org/a> <http://e.org/knows> <http://e.org/b> .\n")
    return path


@pytest.fixture
def names(home, mine, tmp_path, monkeypatch):
    """The names that expressions use; what they build lies apart."""
    monkeypatch.setenv("KGKIT_HOME", str(home))
    with kgkit.open_kb("mini") as kb:
        linked = kgkit.link("The dog chased a puppy.", kb)
        yield {
            "TEXTS": TEXTS, "folder": tmp_path, "json": json, "kb": kb, "kgkit": kgkit, "linked": linked,
            "mine": mine,
        }  # fmt: skip


def test_there_are_as_many_as_the_title_says():
    assert len({*WORKS, *SAYS}) == 64


@pytest.mark.parametrize("expression", WORKS)
def test_an_expression_works(expression, names, tmp_path, monkeypatch):
    if any(word in expression for word in ("build_kb", "import_kb")):
        monkeypatch.setenv("KGKIT_HOME", str(tmp_path))
    result = eval(expression, names)
    assert result is not None and result is not False


@pytest.mark.parametrize("expression", SAYS)
def test_the_error_of_an_expression_says_what_works(expression, names):
    with pytest.raises((kgkit.KgkitError, AttributeError, TypeError), match=SAYS[expression]):
        eval(expression, names)
