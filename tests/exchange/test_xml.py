"""GraphML in networkx and of strangers; WN-LMF in `wn` and of strangers."""

import networkx
import pytest

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.building.build import build_kb
from kgkit.building.records import StoredRecords
from kgkit.exchange import FORMATS
from tests.exchange_helpers import imported, odd_records, told, written
from tests.mini_wordnet import mini_wordnet
from tests.small_kb import build


def by_name(kb, text):
    return [found.entity.key for found in kb.decode(kb.candidates(text))]


def facts(kb):
    return sorted((triple.subject, triple.relation, triple.object) for triple in kb.match())


# -- GraphML ----------------------------------------------------------------


def test_networkx_opens_a_graph_of_the_entities_and_their_facts(toy, tmp_path):
    graph = networkx.read_graphml(written(toy, FORMATS["graphml"], tmp_path))
    assert list(graph) == [entity.key for entity in toy]
    assert graph.nodes["Apple"]["label"] == "apple"
    edges = sorted((start, data["relation"], end) for start, end, data in graph.edges(data=True))
    assert edges == told(toy)["triples"]


def test_networkx_opens_odd_names_too(tmp_path):
    with build(tmp_path / "kb", odd_records()) as kb:
        graph = networkx.read_graphml(written(kb, FORMATS["graphml"], tmp_path))
        assert len(graph) == len(kb)
        assert "tab\there" in graph and "]]>" in graph


def test_what_networkx_writes_is_read(tmp_path):
    graph = networkx.DiGraph()
    graph.add_node("a", label="Anna", age=30, height=1.7, member=True)
    graph.add_node("b", name="Ben")
    graph.add_node(3)
    graph.add_edge("a", "b", relation="knows", since=1999)
    graph.add_edge("b", 3)
    networkx.write_graphml(graph, tmp_path / "people.graphml")
    build_kb("graphml", tmp_path / "people.graphml", name="people", home=tmp_path)
    with kgkit.open_kb("people", home=tmp_path) as kb:
        assert [entity.label for entity in kb] == ["Anna", "Ben", "3"]
        assert kb["a"].attributes == {"age": 30, "height": 1.7, "member": True}
        assert by_name(kb, "ben") == ["b"]
        assert facts(kb) == [("a", "knows", "b"), ("b", "linked_to", "3")]


# -- WN-LMF -----------------------------------------------------------------


LMF = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">
<LexicalResource xmlns:dc="https://globalwordnet.github.io/schemas/dc/">
  <Lexicon id="tiny" label="Tiny" language="en" email="a@b.example" license="CC0" version="2"
           url="https://tiny.example">
    <LexicalEntry id="tiny-goose-n">
      <Lemma writtenForm="goose" partOfSpeech="n"><Pronunciation>gus</Pronunciation></Lemma>
      <Form writtenForm="geese"/>
      <Sense id="tiny-goose-1" synset="tiny-1-n" dc:identifier="goose%1:05:00::">
        <SenseRelation relType="derivation" target="tiny-goosey-1"/>
        <Example>wild geese</Example>
        <Count>2</Count><Count>3</Count>
      </Sense>
    </LexicalEntry>
    <LexicalEntry id="tiny-goosey-s">
      <Lemma writtenForm="goosey" partOfSpeech="s"/>
      <Sense id="tiny-goosey-1" synset="tiny-2-s" adjposition="a" subcat="be"/>
    </LexicalEntry>
    <LexicalEntry id="tiny-bird-n">
      <Lemma writtenForm="bird" partOfSpeech="n"/>
      <Sense id="tiny-bird-1" synset="tiny-3-n"/>
    </LexicalEntry>
    <Synset id="tiny-1-n" ili="i46360" partOfSpeech="n" lexfile="noun.animal" members="tiny-goose-1">
      <Definition>a web-footed bird</Definition><Definition>a  long-necked   one</Definition>
      <SynsetRelation relType="hypernym" target="tiny-3-n"/>
      <SynsetRelation relType="holo_member" target="tiny-3-n"/>
      <SynsetRelation relType="other" dc:type="lays" target="tiny-3-n"/>
      <Example>the goose hissed</Example>
    </Synset>
    <Synset id="tiny-2-s" ili="in" partOfSpeech="s"><Definition>like a goose</Definition></Synset>
    <Synset id="tiny-3-n" ili="" partOfSpeech="n"/>
    <SyntacticBehaviour id="be" subcategorizationFrame="Somebody is ----"/>
  </Lexicon>
</LexicalResource>
"""


@pytest.fixture
def tiny(tmp_path):
    with imported(LMF, "wn-lmf", tmp_path, "tiny.xml") as kb:
        yield kb


def test_a_synset_keeps_its_ili_definitions_examples_and_members(tiny):
    goose = tiny["tiny-1-n"]
    assert (goose.label, goose.kind, goose.pos) == ("goose", "synset", "n")
    assert goose.description == "a web-footed bird; a long-necked one"
    assert goose.attributes == {
        "ili": "i46360", "lexfile": "noun.animal", "lemmas": ["goose"], "examples": ["the goose hissed"],
    }  # fmt: skip
    assert "ili" not in tiny["tiny-2-s"].attributes  # proposed, not given


def test_a_sense_goes_by_its_sense_key_and_keeps_its_counts_examples_frames_and_position(tiny):
    sense = tiny["goose%1:05:00::"]
    assert (sense.label, sense.kind, sense.pos) == ("goose", "lemma", "n")
    assert sense.attributes == {"count": 5, "rank": 1, "examples": ["wild geese"]}
    goosey = tiny["tiny-goosey-1"]
    assert goosey.attributes == {"rank": 1, "frames": ["Somebody is ----"], "marker": "a"}


@pytest.mark.parametrize("frame", ["9" * 5000, "\u0661"])
def test_a_verb_frame_that_is_no_number_of_princetons_stays_a_text(frame, tmp_path):
    with imported(LMF.replace("Somebody is ----", frame), "wn-lmf", tmp_path, "tiny.xml") as kb:
        assert kb["tiny-goosey-1"].attributes["frames"] == [frame]


def test_relations_go_by_the_names_of_our_wordnet(tiny):
    assert set(facts(tiny)) == {
        ("goose%1:05:00::", "lemma_in_synset", "tiny-1-n"),
        ("tiny-goosey-1", "lemma_in_synset", "tiny-2-s"),
        ("tiny-bird-1", "lemma_in_synset", "tiny-3-n"),
        ("goose%1:05:00::", "derivation", "tiny-goosey-1"),
        ("tiny-1-n", "hypernym", "tiny-3-n"),
        ("tiny-1-n", "member_holonym", "tiny-3-n"),
        ("tiny-1-n", "lays", "tiny-3-n"),
    }
    assert [triple.object for triple in tiny.match("tiny-3-n", "hyponym")] == ["tiny-1-n"]


def test_an_inflected_word_has_the_candidates_of_its_lemma(tiny):
    links = kgkit.link("Two geese.", tiny).links
    assert [(link.text, link.entity, link.sense) for link in links] == [
        ("geese", "tiny-1-n", "goose%1:05:00::")
    ]


def test_the_lexicon_says_what_it_is(tiny):
    source = tiny.manifest.source
    assert (source.name, source.version, source.licence, source.url) == (
        "Tiny",
        "2",
        "CC0",
        "https://tiny.example",
    )
    assert (tiny.manifest.language, tiny.manifest.generator) == ("en", "lemma")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of wn's own connection
def test_wn_takes_our_wordnet_and_finds_words_and_relations(tmp_path, monkeypatch):
    wn = pytest.importorskip("wn")
    build_kb(WordNetBuilder(), mini_wordnet(tmp_path / "source"), name="mini", home=tmp_path)
    with kgkit.open_kb("mini", home=tmp_path) as kb:
        path = written(kb, FORMATS["wn-lmf"], tmp_path)
        alias = next(one for one in StoredRecords(kb).aliases() if kb.match(one.key, "hypernym"))
        monkeypatch.setattr(wn.config, "data_directory", tmp_path / "wn")
        wn.add(path, progress_handler=None)
        words = wn.Wordnet("mini").words(alias.surface)
        assert words and len(wn.Wordnet("mini").synsets()) == kb.manifest.counts.entities["synset"]
        hypernyms = {
            synset.metadata()["identifier"]: {up.metadata()["identifier"] for up in synset.hypernyms()}
            for synset in wn.Wordnet("mini").synsets()
        }
    with kgkit.open_kb("mini", home=tmp_path) as kb:
        for key, found in hypernyms.items():
            assert found == {
                triple.object
                for relation in ("hypernym", "instance_hypernym")
                for triple in kb.match(key, relation)
            }
