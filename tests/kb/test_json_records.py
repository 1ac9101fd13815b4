"""Records of entities as JSON has them: complete, or cut where they would be long."""

import json

import pytest

from kgkit.kb.json_records import (
    candidate_record,
    entity_record,
    link_probability,
    neighbor_keys,
    neighbor_records,
    scored_record,
)
from tests.small_kb import facts_kb, lexicon_kb


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with facts_kb(tmp_path_factory.mktemp("facts")) as kb:
        yield kb


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    with lexicon_kb(tmp_path_factory.mktemp("lexicon")) as kb:
        yield kb


def test_a_candidate_has_its_sense_and_a_prior_of_seven_digits(lexicon):
    (record, *_) = [candidate_record(each) for each in lexicon.decode(lexicon.candidates("dog"))]
    assert record == {
        "entity": "dog.n", "sense": "dog%dog.n", "prior": 0.9347826, "label": "dog", "pos": "n",
        "description": "",
    }  # fmt: skip


def test_a_neighbour_has_its_cosine(graph):
    record = scored_record(graph["dog"], 0.123456789)
    assert (record["entity"], record["score"], record["kind"]) == ("dog", 0.1234568, "node")


def test_facts_with_an_inverse_are_listed_from_the_entitys_side_alone(graph):
    outward, inward = neighbor_keys(graph, graph["dog"])
    assert outward["is_a"] == ["animal"] and "has_kind" in outward
    assert inward == {}
    assert neighbor_keys(graph, graph["cat"])[1] == {"chases": ["dog"], "fears": ["mouse"]}


def test_of_one_relation_only_its_facts_are_listed(graph):
    assert neighbor_keys(graph, graph["dog"], "likes")[0] == {"likes": ["paw", "puppy"]}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_facts_are_listed_than_are_asked_for(graph, most):
    outward, inward = neighbor_keys(graph, graph["cat"], most=most)
    assert sum(map(len, outward.values())) == most
    assert sum(map(len, inward.values())) <= most


def test_neighbours_have_their_labels(graph):
    assert neighbor_records(graph, {"likes": ["paw"]}) == {"likes": [{"key": "paw", "label": "Paw"}]}


def test_an_entity_has_all_that_is_known_of_it_and_is_json(graph):
    record = entity_record(graph, graph["dog"])
    assert record["key"] == "dog" and record["kb"] == "facts"
    assert [surface["surface"] for surface in record["surfaces"]] == ["dog"]
    assert "ids" not in record and "url" not in record
    assert json.loads(json.dumps(record))["out"]["likes"][0] == {"key": "paw", "label": "Paw"}


def test_an_entity_is_cut_where_that_is_asked_for(lexicon):
    record = entity_record(lexicon, lexicon["dog.n"], 1)
    assert len(record["surfaces"]) == 1
    assert len(entity_record(lexicon, lexicon["dog.n"])["surfaces"]) == 2


def test_a_link_probability_is_there_where_it_is_known(graph):
    assert link_probability(graph, "dog") == {}
