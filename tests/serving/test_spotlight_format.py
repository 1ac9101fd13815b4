"""Annotations as Spotlight writes them."""

import json
from xml.etree import ElementTree

import pytest

from kgkit.serving.spotlight import (
    HTML,
    JSON,
    XML,
    SpotlightAnswer,
    SpotlightResource,
    SpotlightSettings,
    SpotlightSurface,
    media_type,
    write_answer,
)
from kgkit.text import drawn_text
from tests.city_toys import PageParser

TEXT = 'Paris & <b>Rome</b>\n"Paris"'
PARIS = SpotlightResource(
    "http://dbpedia.org/resource/Paris", "Paris", ("city", "capital"), 12, 0.75, 0.5, 0.25
)
PARIS_FC = SpotlightResource("http://dbpedia.org/resource/Paris_FC", "Paris FC", (), 1, 0.25, 0.125, 0.25)
SURFACES = (SpotlightSurface("Paris", 0, (PARIS,)), SpotlightSurface("Paris", 21, (PARIS, PARIS_FC)))


def answer(process, surfaces=SURFACES, text=TEXT):
    return SpotlightAnswer(process, text, SpotlightSettings(0.25, 2, "city", "blacklist"), surfaces)


def as_json(process, surfaces=SURFACES):
    return json.loads(write_answer(answer(process, surfaces), JSON))


# -- JSON -------------------------------------------------------------------


def test_annotate_repeats_the_settings_and_lists_resources():
    assert as_json("annotate", SURFACES[:1]) == {
        "@text": TEXT,
        "@confidence": "0.25",
        "@support": "2",
        "@types": "city",
        "@sparql": "",
        "@policy": "blacklist",
        "Resources": [
            {
                "@URI": "http://dbpedia.org/resource/Paris",
                "@support": "12",
                "@types": "city,capital",
                "@surfaceForm": "Paris",
                "@offset": "0",
                "@similarityScore": "0.5",
                "@percentageOfSecondRank": "0.25",
            }
        ],
    }


def test_candidates_has_an_object_for_one_resource_and_a_list_for_several():
    single, several = as_json("candidates")["annotation"]["surfaceForm"]
    assert single["resource"] == {
        "@label": "Paris",
        "@uri": "Paris",
        "@contextualScore": "0.5",
        "@percentageOfSecondRank": "0.25",
        "@support": "12",
        "@priorScore": "0.75",
        "@finalScore": "0.5",
        "@types": "city, capital",
    }
    assert [each["@uri"] for each in several["resource"]] == ["Paris", "Paris_FC"]


@pytest.mark.parametrize("process", ["candidates", "spot"])
@pytest.mark.parametrize("count", [1, 2])
def test_surface_forms_are_a_list_however_many_there_are(process, count):
    annotation = as_json(process, SURFACES[:count])["annotation"]
    assert annotation["@text"] == TEXT
    assert [form["@name"] for form in annotation["surfaceForm"]] == ["Paris"] * count


def test_spot_has_names_and_offsets_alone():
    assert as_json("spot")["annotation"]["surfaceForm"] == [
        {"@name": "Paris", "@offset": "0"},
        {"@name": "Paris", "@offset": "21"},
    ]


@pytest.mark.parametrize("process", ["candidates", "spot"])
def test_a_text_without_surfaces_has_no_surface_forms(process):
    assert as_json(process, ()) == {"annotation": {"@text": TEXT}}


# -- XML --------------------------------------------------------------------


def parse(process, surfaces=SURFACES, text=TEXT):
    return ElementTree.fromstring(write_answer(answer(process, surfaces, text), XML))


def test_xml_of_annotate_says_what_its_json_says():
    root, record = parse("annotate", SURFACES[:1]), as_json("annotate", SURFACES[:1])
    assert root.tag == "Annotation"
    assert {f"@{name}": value for name, value in root.attrib.items()} | {
        "Resources": [
            {f"@{name}": value for name, value in node.attrib.items()} for node in root.find("Resources")
        ]
    } == record


def test_xml_of_candidates_has_a_node_for_each_resource():
    root = parse("candidates")
    assert (root.tag, root.get("text")) == ("annotation", TEXT)
    assert [[node.get("uri") for node in form] for form in root] == [["Paris"], ["Paris", "Paris_FC"]]
    assert {node.tag for form in root for node in form} == {"resource"}


def test_xml_of_spot_has_surface_forms_without_resources():
    assert [(form.attrib, len(form)) for form in parse("spot")] == [
        ({"name": "Paris", "offset": "0"}, 0),
        ({"name": "Paris", "offset": "21"}, 0),
    ]


def test_what_xml_cannot_hold_is_escaped():
    root = parse("spot", (SpotlightSurface("\x01", 0),), "\x00 a \ufffe \x1f")
    assert root.get("text") == r"\u0000 a \ufffe \u001f"
    assert root[0].get("name") == r"\u0001"


# -- HTML -------------------------------------------------------------------


def page(process, surfaces=SURFACES, text=TEXT):
    return PageParser(write_answer(answer(process, surfaces, text), HTML).decode())


def test_html_shows_the_text_with_links_and_nothing_else_of_it_is_markup():
    parser = page("annotate")
    assert TEXT in parser.text
    links = [attributes for tag, attributes in parser.tags if tag == "a"]
    assert links == [dict.fromkeys(("href", "title"), "http://dbpedia.org/resource/Paris")] * 2
    assert "b" not in set(parser.names())


def test_html_has_no_characters_that_xml_cannot_hold():
    text = "a\x0bb\x00\x1f\ud800\uffff Paris"
    surfaces = (SpotlightSurface("Paris", 8, (PARIS,)), SpotlightSurface("\x0b", 1))
    body = write_answer(answer("annotate", surfaces, text), HTML).decode()
    assert drawn_text(body) == body and "a\ufffdb" in body


def test_html_marks_spots_without_an_entity():
    assert [tag for tag in page("spot", (SpotlightSurface("Rome", 11),)).names() if tag in "a mark"] == [
        "mark"
    ]


def test_html_leaves_out_what_overlaps():
    surfaces = (SpotlightSurface("Paris &", 0, (PARIS,)), SpotlightSurface("aris", 1, (PARIS,)))
    parser = page("annotate", surfaces, "Paris & Rome")
    assert list(parser.names()).count("a") == 1
    assert "Paris & Rome" in parser.text


def test_an_iri_cannot_end_its_attribute():
    evil = PARIS._replace(iri='http://x.example/"onclick="alert(1)')
    parser = page("annotate", (SpotlightSurface("Paris", 0, (evil,)),), "Paris")
    assert [set(attributes) for tag, attributes in parser.tags if tag == "a"] == [{"href", "title"}]


# -- media types ------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "process", "media"),
    [
        ("application/json", "annotate", JSON),
        ("text/xml", "annotate", XML),
        ("application/xml", "spot", XML),
        ("text/html", "candidates", HTML),
        ("application/xhtml+xml", "annotate", HTML),
        ("", "annotate", HTML),
        ("*/*", "annotate", HTML),
        ("*/*", "candidates", XML),
        ("*/*", "spot", XML),
        ("text/*", "annotate", HTML),
        ("text/html;q=0.1, application/json", "annotate", JSON),
        ("*/*;q=0.1, APPLICATION/JSON ; q=0.5", "annotate", JSON),
        ("text/html;q=0, */*", "annotate", XML),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "annotate", HTML),
        ("text/turtle, application/json;q=0.2", "annotate", JSON),
    ],
)
def test_the_most_acceptable_media_type_is_written(accept, process, media):
    assert media_type(accept, process) == media


@pytest.mark.parametrize("accept", ["text/turtle", "image/*", "*/*;q=0", "nonsense", "*/*;q=x", ",,,"])
def test_where_none_is_acceptable_there_is_none(accept):
    assert media_type(accept, "annotate") is None


def test_a_header_of_any_length_is_read_in_time():
    assert media_type(",".join(["a/b"] * 100_000), "annotate") is None
