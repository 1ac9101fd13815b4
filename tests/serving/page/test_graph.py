"""The neighbourhood of an entity: what is chosen, and where it is drawn."""

import math
from xml.etree import ElementTree

import pytest

from kgkit.building import Entity, Triple
from kgkit.errors import UnknownEntity, UnknownName
from kgkit.serving.page.addresses import address
from kgkit.serving.page.facts import facts_by_relation
from kgkit.serving.page.graph import draw_neighborhood, neighborhood, relation_name
from kgkit.serving.page.rendering import shorten, text_width
from tests.serving.page.html_reader import Page
from tests.small_kb import FACTS, INVERSES, build, facts_kb, said

HUB = 300


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with facts_kb(tmp_path_factory.mktemp("facts")) as kb:
        yield kb


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A KB of an entity with 300 neighbours by one relation, and one neighbour by another."""
    keys = [f"page {number}" for number in range(HUB)]
    records = [Entity(key, label=f"标签 {key}") for key in ("hub", *keys)]
    records += [Triple("hub", "links", key) for key in keys]
    records += [Triple(keys[7], "cites", "hub"), Triple(keys[0], "links", keys[1])]
    with build(tmp_path_factory.mktemp("hub"), records, name="hub") as kb:
        yield kb


def triples(around):
    keys = [around.centre.key, *(node.entity.key for node in around.nodes)]
    return {(keys[subject], relation, keys[other]) for subject, relation, other in around.facts}


# -- facts ------------------------------------------------------------------


@pytest.mark.parametrize("key", ["dog", "cat", "mouse", "alone"])
def test_facts_by_relation_are_all_that_can_be_said(kb, key):
    shown = {
        (key, group.relation, end.key) if group.direction == "out" else (end.key, group.relation, key)
        for group in facts_by_relation(kb, kb.id(key), 10)
        for end in group.entities
    }
    inverses = {*INVERSES, *INVERSES.values()}
    expected = {
        fact
        for fact in said(FACTS, INVERSES)
        if fact[0] == key or (fact[2] == key and fact[1] not in inverses)
    }
    assert shown == expected


def test_of_many_facts_some_become_entities_and_all_are_counted(hub):
    [links, cites] = facts_by_relation(hub, hub.id("hub"), 3)
    assert (links.relation, links.direction, links.total) == ("links", "out", HUB)
    assert [entity.key for entity in links.entities] == ["page 0", "page 1", "page 2"]
    assert (cites.relation, cites.direction, cites.total) == ("cites", "in", 1)


# -- neighbourhoods ---------------------------------------------------------


def test_around_an_entity_are_the_ends_of_its_facts(kb):
    around = neighborhood(kb, "dog")
    assert {node.entity.key for node in around.nodes} == {"animal", "puppy", "paw", "cat"}
    assert all(node.parent == 0 for node in around.nodes)
    assert around.hidden == 0
    assert {fact for fact in triples(around) if fact[0] == "dog"} == {
        fact for fact in said(FACTS, INVERSES) if fact[0] == "dog"
    }


def test_a_fact_and_its_inverse_are_one_line(kb):
    around = neighborhood(kb, "dog")
    assert ("dog", "is_a", "animal") in triples(around)
    assert ("animal", "has_kind", "dog") not in triples(around)
    assert len([fact for fact in triples(around) if fact[1] == "near" and fact[0] != fact[2]]) == 1


def test_two_facts_away_stands_what_is_behind_a_neighbour(kb):
    around = neighborhood(kb, "puppy", radius=2)
    names = [node.entity.key for node in around.nodes]
    assert names[:1] == ["dog"]
    assert {node.parent for node in around.nodes[1:]} == {1}
    assert set(names) == {"dog", "animal", "paw", "cat"}


def test_behind_several_neighbours_each_has_its_own(kb):
    around = neighborhood(kb, "thing", radius=2)
    parents = {node.entity.key: node.parent for node in around.nodes}
    assert parents["animal"] == 0
    assert all(parents[key] == 1 for key in ("dog", "cat"))
    around = neighborhood(kb, "mouse", radius=2)
    parents = {
        node.entity.key: around.nodes[node.parent - 1].entity.key for node in around.nodes if node.parent
    }
    assert parents["paw"] == "cat"


def test_every_relation_has_a_share_of_few_nodes(hub):
    around = neighborhood(hub, "hub", max_nodes=4)
    assert [(node.entity.key, relation_name(node)) for node in around.nodes] == [
        ("page 0", "links"), ("page 7", "← cites"), ("page 1", "links"), ("page 2", "links"),
    ]  # fmt: skip
    assert around.hidden == HUB - 4


def test_a_relation_is_chosen(hub):
    around = neighborhood(hub, "hub", relation="cites")
    assert [node.entity.key for node in around.nodes] == ["page 7"]
    assert triples(around) == {("page 7", "cites", "hub")}
    assert around.relations == ["cites", "links"]
    with pytest.raises(UnknownName, match="knows"):
        neighborhood(hub, "hub", relation="knows")


def test_a_neighbourhood_is_bounded_and_the_same_each_time(hub):
    around = neighborhood(hub, "hub", max_nodes=200, radius=2)
    assert len(around.nodes) <= 200
    assert around == neighborhood(hub, "hub", max_nodes=200, radius=2)
    with pytest.raises(UnknownEntity):
        neighborhood(hub, "nothing")


# -- drawings ---------------------------------------------------------------


def test_nodes_stand_on_rings_and_do_not_meet(hub):
    drawing = draw_neighborhood(neighborhood(hub, "hub", max_nodes=200))
    points = [(node["x"], node["y"]) for node in drawing["nodes"][:-1]]
    radii = {round(math.hypot(*point)) for point in points}
    assert len(radii) == 1
    ordered = sorted(points, key=lambda point: math.atan2(point[1], point[0]))
    gaps = [math.dist(*pair) for pair in zip(ordered, ordered[1:] + ordered[:1], strict=True)]
    assert min(gaps) > 18


def test_all_labels_are_in_the_frame(hub):
    drawing = draw_neighborhood(neighborhood(hub, "hub", max_nodes=30, radius=2))
    for node in drawing["nodes"][:-1]:
        reach = 15 * text_width(node["label"]) / 2
        assert math.hypot(node["x"], node["y"]) + reach < drawing["size"] / 2


def test_labels_on_the_left_are_turned_to_be_read(kb):
    drawing = draw_neighborhood(neighborhood(kb, "dog"))
    for node in drawing["nodes"][:-1]:
        turn = float(node["transform"].removeprefix("rotate(").split()[0])
        assert -90 <= turn <= 90
        assert node["anchor"] == ("end" if node["x"] < -1 else "start")


def test_relations_have_colors_which_what_is_behind_inherits(kb):
    around = neighborhood(kb, "thing", radius=2)
    drawing = draw_neighborhood(around)
    assert list(drawing["legend"]) == ["is_a", "has_kind"] or set(drawing["legend"]) <= {"is_a", "has_kind"}
    colors = {node["entity"].key: node["color"] for node in drawing["nodes"]}
    assert colors["dog"] == colors["animal"]
    assert colors["thing"] == "centre"


def test_an_entity_alone_is_drawn(kb):
    around = neighborhood(kb, "alone")
    drawing = draw_neighborhood(around)
    assert [node["entity"].key for node in drawing["nodes"]] == ["alone"]
    assert drawing["edges"] == []


def test_long_labels_are_shortened_by_their_width():
    assert shorten("short", 5) == "short"
    assert shorten("longer", 5) == "long…"
    assert shorten("苹果公司", 5) == "苹果…"
    assert shorten("", 5) == ""
    assert (text_width("ab"), text_width("苹果")) == (2, 4)


# -- views ------------------------------------------------------------------


def test_a_drawing_is_well_formed_and_each_node_is_a_link(browser):
    answer = browser.get(address("/graph", kb="facts", key="dog"))
    begin, end = (
        answer.text.index('<svg class="graph'),
        answer.text.index("</svg>", answer.text.index('graph"')),
    )
    drawing = ElementTree.fromstring(answer.text[begin:end] + "</svg>")
    nodes = drawing.findall("a")
    assert len(nodes) == 5
    titles = [node.find("title").text for node in nodes]
    assert len(set(titles)) == 5 and all(titles)
    for node in nodes:
        assert node.attrib["href"].startswith("/graph?kb=facts&key=")
        assert float(node.find("circle").attrib["r"]) > 0
    assert len(drawing.findall("g/path")) >= 4
    assert "style" not in answer.text[begin:end]


def test_the_list_beside_a_drawing_has_every_entity(read):
    page = read(address("/graph", kb="facts", key="puppy", radius=2))
    cards = [link for link in page.links if link.startswith("/entity")]
    assert len(set(cards)) == 5  # with the centre, in the heading


@pytest.mark.parametrize("fields", [{"nodes": 201}, {"radius": 3}, {"relation": "knows"}, {"nodes": "x"}])
def test_a_drawing_beyond_the_bounds_is_refused(read, fields):
    assert "422" in read(address("/graph", kb="facts", key="dog", **fields), 422).words


def test_more_facts_of_a_relation_are_a_page_further(browser, monkeypatch):
    monkeypatch.setattr("kgkit.serving.page.entity_views.FACTS", 1)
    target = address("/facts", kb="facts", key="dog", relation="likes", direction="out")
    first = Page(browser.get(target).text)
    assert "1 to 1 of 2" in first.words
    [further] = [link for link in first.links if "page=2" in link]
    second = Page(browser.get(further).text)
    assert "2 to 2 of 2" in second.words
    assert {"Paw", "Puppy"} == {row for row in ("Paw", "Puppy") if row in first.text + second.text}


@pytest.mark.parametrize("fields", [{"relation": "is_a", "direction": "up"}, {"relation": "drinks"}])
def test_facts_of_no_relation_or_direction_are_refused(read, fields):
    assert "there are" in read(address("/facts", kb="facts", key="dog", **fields), 422).words
