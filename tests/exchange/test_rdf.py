"""RDF of strangers, what our own says to strangers, and our own after others have worked on it."""

import random

import pytest

import kgkit
from kgkit.exchange import FORMATS
from kgkit.kb import differences
from tests.exchange_helpers import imported, told, written
from tests.small_kb import build
from tests.toys import entities

FRUIT = """
@prefix ex: <http://example.org/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .

ex:Apple a ex:Fruit, ex:Food ;
    rdfs:label "Apfel"@de, "apple"@en ;
    skos:altLabel "pome"@en ;
    rdfs:comment "Eine Frucht."@de, "A fruit."@en ;
    ex:grows_on ex:Apple_Tree ;
    ex:weight 150 ;
    ex:edible true ;
    ex:price "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> ;
    ex:code "A-1", "A-2" .
ex:Pear rdfs:label "pear" ; ex:similar ex:Apple .
ex:Apple skos:altLabel "Malus fruit" .
[] rdfs:label "nameless" ; ex:near ex:Pear .
"""
APPLE, PEAR, TREE = (f"http://example.org/{name}" for name in ("Apple", "Pear", "Apple_Tree"))


@pytest.fixture
def fruit(tmp_path):
    with imported(FRUIT, "turtle", tmp_path, "fruit.ttl") as kb:
        yield kb


def test_a_strangers_subjects_are_entities_by_their_whole_iris(fruit):
    apple = fruit[APPLE]
    assert apple.label == "apple"  # English before German
    assert apple.description == "A fruit."
    assert apple.types == ("http://example.org/Fruit", "http://example.org/Food")
    assert apple.attributes == {
        "http://example.org/weight": 150,
        "http://example.org/edible": True,
        "http://example.org/price": 1.5,
        "http://example.org/code": ["A-1", "A-2"],
    }


def test_a_strangers_labels_are_aliases(fruit):
    for text in ("apple", "Apfel", "pome", "Malus fruit"):
        assert [found.entity.key for found in fruit.decode(fruit.candidates(text))] == [APPLE]


def test_a_byte_order_mark_before_a_graph_is_read_past(tmp_path):
    triple = '<http://a.example/1> <http://www.w3.org/2000/01/rdf-schema#label> "Łódź"@pl .\n'
    for builder, name in (("ntriples", "a.nt"), ("turtle", "a.ttl"), ("turtle", "b.ttl")):
        head = "" if name != "b.ttl" else "@prefix a: <http://a.example/> .\n"
        with imported(f"\ufeff{head}{triple}", builder, tmp_path, name) as kb:
            assert [entity.label for entity in kb.entities()] == ["Łódź"]


def test_what_only_stands_at_the_end_of_a_triple_is_an_entity_named_by_its_last_part(fruit):
    assert fruit[TREE].label == "Apple Tree"
    assert [found.entity.key for found in fruit.decode(fruit.candidates("apple tree"))] == [TREE]
    assert {(triple.subject, triple.relation, triple.object) for triple in fruit.match(APPLE)} == {
        (APPLE, "http://example.org/grows_on", TREE),
    }


def test_blank_nodes_are_numbered_in_their_order(fruit):
    assert fruit["_:1"].label == "nameless"
    assert [triple.object for triple in fruit.match("_:1")] == [PEAR]


def test_a_strangers_graph_survives_as_rdf_with_its_own_iris(fruit, tmp_path):
    path = written(fruit, FORMATS["ntriples"], tmp_path)
    lines = path.read_text().splitlines()
    assert f"<{APPLE}> <http://example.org/grows_on> <{TREE}> ." in lines
    assert (
        f"<{APPLE}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Fruit> ." in lines
    )
    with imported(path.read_bytes(), "ntriples", tmp_path, "again.nt") as again:
        assert list(differences(fruit, again)) == []


def test_others_find_labels_definitions_aliases_and_types_of_ours(toy, tmp_path):
    lines = written(toy, FORMATS["ntriples"], tmp_path).read_text().splitlines()
    skos = "http://www.w3.org/2004/02/skos/core#"
    assert '<urn:kgkit:entity:Apple> <http://www.w3.org/2000/01/rdf-schema#label> "apple" .' in lines
    assert f'<urn:kgkit:entity:Apple> <{skos}definition> "A fruit." .' in lines
    assert f'<urn:kgkit:entity:Apple_Inc%2E> <{skos}altLabel> "APPLE" .' in lines
    assert (
        "<urn:kgkit:entity:Apple> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:kgkit:type:food> ."
        in lines
    )
    assert "<urn:kgkit:entity:York> <urn:kgkit:relation:part_of> <urn:kgkit:entity:New_York_City> ." in lines


def test_turtle_says_its_prefixes_once_and_in_order(tmp_path):
    with build(tmp_path / "kb", entities(9000)) as kb:  # several batches of triples
        lines = written(kb, FORMATS["turtle"], tmp_path).read_text().splitlines()
    prefixes = [line for line in lines if line.startswith("@prefix")]
    assert prefixes == sorted(set(prefixes)) == lines[: len(prefixes)]


def test_what_somebody_added_to_our_file_is_read(toy, tmp_path):
    path = written(toy, FORMATS["turtle"], tmp_path)
    added = '\ne:Pear k:kind "page" ; rdfs:label "pear" ; skos:altLabel "Pears" ; r:near e:Apple .\n'
    with imported(path.read_text() + added, "turtle", tmp_path, "more.ttl") as more:
        assert more["Pear"].label == "pear"
        assert [found.entity.key for found in more.decode(more.candidates("Pears"))] == ["Pear"]
        assert [(triple.relation, triple.object) for triple in more.match("Pear")] == [("near", "Apple")]


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_our_own_file_in_any_order_has_the_same_entities_facts_and_counts(order, toy, tmp_path):
    lines = written(toy, FORMATS["ntriples"], tmp_path).read_text().splitlines(keepends=True)
    lines = sorted(lines) if order == "sorted" else random.Random(7).sample(lines, len(lines))
    lines.sort(key=lambda line: "knowledgeBase" in line)  # not first: it could be anybody's
    with imported("".join(lines), "ntriples", tmp_path, "mixed.nt") as again:
        found, whole = told(again), told(toy)
        plain = ("key", "label", "description", "kind", "attributes")
        assert {tuple(map(str, (getattr(one, name) for name in plain))) for one in found["entities"]} >= {
            tuple(map(str, (getattr(one, name) for name in plain))) for one in whole["entities"]
        }
        assert set(found["triples"]) == set(whole["triples"])
        assert sorted(found["redirects"], key=str) == sorted(whole["redirects"], key=str)
        counts = {(one.surface, one.key): one.count for one in found["aliases"]}
        assert {pair: counts[pair] for pair in ((one.surface, one.key) for one in whole["aliases"])} == {
            (one.surface, one.key): one.count for one in whole["aliases"]
        }


def test_an_rdf_kb_links_a_text(fruit, tmp_path):
    found = kgkit.link("An apple and a pear.", "imported", home=tmp_path).links
    assert [link.entity for link in found] == [APPLE, PEAR]
