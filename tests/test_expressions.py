"""The public surface, by what people guess who know spaCy, pandas, NLTK's wordnet and Hugging Face.

Each of 110 expressions works, or its error says what does. The knowledge base is `mini`, a small WordNet.
"""

import json

import pytest

import kgkit
from tests.cli_helpers import build_mini

TEXTS = ["The dog chased mice.", "A hot dog."]

WORKS = """
kgkit.__version__
help(kgkit.link) or kgkit.link.__doc__
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
kb.surfaces_of("dog.n.01")[0].surface
kb.get("dog.n.01").label
kb.get("no.n.01", kb["dog.n.01"])
kb["dog.n.01"] in kb
next(kb.entities())
[link.entity for link in linked]
kb[kb["dog.n.01"].id]
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
    'kb.nearest("a young dog")': "kgkit embed",
    'kb.candidates(["dog", "cat"])': "a surface is a str, not list",
    'kb.candidates(b"dog")': "a surface is a str, not bytes",
    'kb[["dog.n.01"]]': r"\[kb\[key\] for key in KEYS\]",
    'kb["dog.n.01", "puppy.n.01"]': r"\[kb\[key\] for key in KEYS\]",
    "kb.values()": r"kb\.entities\(\)",
    "kb.items()": r"kb\.keys\(\)",
    'kb.get_entity("dog.n.01")': r"kb\[KEY\]",
    'kb.describe("dog.n.01")': r"kb\[KEY\]\.description",
    "kb.graph": r"kb\.subgraph\(KEYS",
    "kb.nodes": r"kb\.entities\(\)",
    "kb.to_dataframe()": r"kb\.to_frame\(\)",
    'kb.to_json("mini.json")': r"kb\.export\('FILE\.jsonl'\)",
    'kb.save("mini")': r"kb\.export\(FILE\)",
    'kb.senses("dog")': r"kb\.candidates\(WORD\)",
    'kb.path_similarity("dog.n.01", "puppy.n.01")': r"kb\.path\(A, B\)",
    'kb.hypernyms("dog.n.01")': r"kb\.neighbors\(KEY, 'hypernym'\)",
    'kb["dog.n.01"].synonyms': r"kb\.surfaces_of\(entity\)",
    'kb["dog.n.01"].type': r"entity\.types",
    'kb["dog.n.01"].relations': r"kb\.match\(entity\.key\)",
    'kb["dog.n.01"].facts(kb)': r"kb\.match\(entity\.key\)",
    'kb["dog.n.01"].hypernym': r"kb\.neighbors\(entity, 'hypernym'\)",
    "linked.show()": r"linked\.to_html\(\)",
    'linked.save("page.html")': r"linked\.to_html\(\)",
    'linked.to_html("page.html")': r"Path\(FILE\)\.write_text\(linked\.to_html\(\)\)",
    "linked.tokens": r"linked\.text",
    "linked.links[0].confidence": r"link\.score",
    "linked.links[0].prior": r"link\.candidates",
    "linked.links[0].surface": r"link\.text",
    "linked.links[0].candidates[0].key": r"candidate\.entity",
    'kgkit.Linker.from_pretrained("wsd-minilm")': r"Linker\.open\(KB, model=NAME\)",
    'kgkit.Linker.open("mini", model="prior").to("cuda")': r"device='cuda'",
    'kgkit.KnowledgeBase("mini")': r"kgkit\.open_kb\(NAME\)",
    'kgkit.KnowledgeBase.open("mini")': r"kgkit\.open_kb\(NAME\)",
    'kgkit.annotate("The dog barked.")': r"kgkit\.link\(TEXT, kb\)",
    'kgkit.read_csv("names.csv")': r"build_kb\('table', FILE",
    'kgkit.build_kb([{"key": "acme", "label": "Acme"}])': r"build_kb\('jsonl', RECORDS, name=NAME\)",
    'kgkit.build_kb("names.csv")': r"build_kb\('table', 'names\.csv', name=NAME\)",
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
    assert len({*WORKS, *SAYS}) == 110


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
