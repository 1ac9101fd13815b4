"""IRIs of entities for Spotlight's and GERBIL's clients."""

import pytest

from kgkit.evaluation.entity_iris import entity_of_iri
from kgkit.serving.resource_iris import DBPEDIA, is_by_label, resource_iri, resource_name


@pytest.mark.parametrize(
    ("key", "url", "iri"),
    [
        ("New York City", "", "http://dbpedia.org/resource/New_York_City"),
        ("dog.n.01", "", "http://dbpedia.org/resource/dog.n.01"),
        ("Q64", "", "http://www.wikidata.org/entity/Q64"),
        ("http://example.org/x", "", "http://example.org/x"),
        ("a", "https://example.org/things/a", "https://example.org/things/a"),
        ("Berlin", "https://en.wikipedia.org/wiki/Berlin", "http://dbpedia.org/resource/Berlin"),
        ("AC/DC", "https://en.wikipedia.org/wiki/AC%2FDC", "http://dbpedia.org/resource/AC/DC"),
        ("Köln", "https://de.wikipedia.org/wiki/K%C3%B6ln", "http://de.dbpedia.org/resource/K%C3%B6ln"),
        ("X", "https://en.m.wikipedia.org/wiki/X", "http://dbpedia.org/resource/X"),
    ],
)
def test_an_entity_has_the_iri_that_its_readers_expect(key, url, iri):
    assert resource_iri(key, url) == iri


def test_an_address_by_label_has_the_key_behind_it():
    url = "https://en-word.net/lemma/bank"
    assert resource_iri("bank.n.01", url, by_label=True) == f"{url}#bank.n.01"
    assert resource_iri("a #b", url, by_label=True) == f"{url}#a%20%23b"
    assert resource_iri("bank.n.01", by_label=True) == "http://dbpedia.org/resource/bank.n.01"
    page = "https://en.wikipedia.org/wiki/Bank"
    assert resource_iri("Bank", page, by_label=True) == "http://dbpedia.org/resource/Bank"


@pytest.mark.parametrize(
    ("pattern", "by_label"),
    [
        ("", False),
        ("https://x.org/{key}", False),
        ("https://x.org/{label:_}", True),
        ("https://x.org/{nr}", False),
    ],
)
def test_a_pattern_with_the_label_gives_addresses_by_label(pattern, by_label):
    assert is_by_label(pattern) is by_label


@pytest.mark.parametrize("key", ["Berlin", "AC/DC", "Café 100%", 'a <b> "c" {d}', "北京", "A#B?c"])
def test_the_title_can_be_read_from_the_iri_again(key):
    assert entity_of_iri(resource_iri(key)) == key


def test_a_key_never_breaks_out_of_the_iri():
    iri = resource_iri('> <http://evil.example/> \n "x')
    assert not set(iri) & set('<>" \n{}|^`\\')


def test_a_name_is_what_stands_behind_the_beginning_of_dbpedia():
    assert resource_name(f"{DBPEDIA}New_York_City") == "New_York_City"
    assert resource_name("http://www.wikidata.org/entity/Q64") == "http://www.wikidata.org/entity/Q64"
