"""`/rest` as clients of DBpedia Spotlight ask it."""

import pytest

from kgkit.serving import spotlight
from kgkit.serving.problems import Problem
from kgkit.serving.spotlight import read_settings, requested_types
from tests.city_toys import HTML_KEY, TEXT, TEXT_SPANS

JSON = {"Accept": "application/json"}


def annotate(client, path="annotate", method="POST", headers=JSON, **fields):
    if method == "GET":
        return client.get(f"/rest/{path}", params=fields, headers=headers)
    return client.post(f"/rest/{path}", data=fields, headers=headers)


def resources(client, **fields):
    answer = annotate(client, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json().get("Resources", [])


# -- settings ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("confidence", "high"), ("confidence", "1.5"), ("support", "-1"), ("policy", "greylist"),
        ("url", "http://example.org"), ("sparql", "select * {}"),
    ],
)  # fmt: skip
def test_a_setting_that_means_nothing_here_is_refused_by_its_name(field, value):
    with pytest.raises(Problem) as caught:
        read_settings({"text": "a", field: value})
    assert (caught.value.status, caught.value.field) == (422, field)


@pytest.mark.parametrize(
    "text",
    [
        "City", "DBpedia:City", "Schema:city", "http://dbpedia.org/ontology/City", " City , DBpedia:City,",
        "http://www.w3.org/x#City",
    ],
)  # fmt: skip
def test_a_type_goes_by_its_local_name(text):
    assert requested_types(text) == {"city"}


# -- processes --------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_text_of_any_script_is_annotated_with_code_points(cities, method):
    rows = annotate(cities, method=method, text=TEXT, confidence=0.5).json()["Resources"]
    spans = [(int(row["@offset"]), row["@surfaceForm"]) for row in rows]
    assert spans == [(start, name) for start, _, name in TEXT_SPANS]
    assert all(TEXT[offset : offset + len(name)] == name for offset, name in spans)


def test_a_resource_is_what_the_linker_says(cities):
    assert resources(cities, text="Berlin") == [
        {
            "@URI": "http://www.wikidata.org/entity/Q64",
            "@support": "1",
            "@types": "city,capital",
            "@surfaceForm": "Berlin",
            "@offset": "0",
            "@similarityScore": "0.8",
            "@percentageOfSecondRank": "0.25",
        }
    ]


def test_a_page_of_wikipedia_is_a_resource_of_dbpedia(cities):
    rows = resources(cities, path="wiki/annotate", text="AC/DC in New York City")
    assert [row["@URI"] for row in rows] == [
        "http://dbpedia.org/resource/AC/DC",
        "http://dbpedia.org/resource/New_York_City",
    ]


def test_support_is_the_number_of_facts_that_point_to_an_entity(cities):
    assert resources(cities, text="Germany")[0]["@support"] == "2"
    assert resources(cities, text="Germany", support=3) == []


@pytest.mark.parametrize(("confidence", "count"), [(0.8, 1), (0.81, 0), (0, 1), (1, 0)])
def test_links_below_the_confidence_are_left_out(cities, confidence, count):
    assert len(resources(cities, text="Berlin", confidence=confidence)) == count


@pytest.mark.parametrize(
    ("types", "policy", "names"),
    [
        ("", "whitelist", ["Berlin", "Germany"]),
        ("DBpedia:Country", "whitelist", ["Germany"]),
        ("DBpedia:Country,Schema:Capital", "whitelist", ["Berlin", "Germany"]),
        ("DBpedia:Country", "blacklist", ["Berlin"]),
        ("Person", "whitelist", []),
        ("Person", "blacklist", ["Berlin", "Germany"]),
    ],
)
def test_types_select_entities(cities, types, policy, names):
    rows = resources(cities, text="Berlin, Germany", types=types, policy=policy)
    assert [row["@surfaceForm"] for row in rows] == names


def test_what_chooses_parts_of_spotlight_is_read_past(cities):
    fields = {"spotter": "Default", "disambiguator": "Document", "coreferenceResolution": "false"}
    assert len(resources(cities, text="Berlin", **fields)) == 1


def test_candidates_with_the_confidence_of_spotlight_are_one_object(cities):
    forms = annotate(cities, "candidates", text="Berlin, Paris").json()["annotation"]["surfaceForm"]
    assert [form["resource"]["@finalScore"] for form in forms] == ["0.8", "1.0"]


def test_candidates_with_a_lower_confidence_are_all_that_reach_it(cities):
    forms = annotate(cities, "candidates", text="Berlin", confidence=0.1).json()["annotation"]["surfaceForm"]
    assert [(row["@label"], row["@finalScore"]) for row in forms[0]["resource"]] == [
        ("Berlin", "0.8"),
        ("Berlin", "0.2"),
    ]


def test_spot_lists_what_may_be_a_name_whatever_it_means(cities):
    forms = annotate(cities, "spot", text=TEXT, confidence=1).json()["annotation"]["surfaceForm"]
    assert [(int(form["@offset"]), form["@name"]) for form in forms] == [
        (start, name) for start, _, name in TEXT_SPANS
    ]


@pytest.mark.parametrize("process", ["annotate", "candidates", "spot"])
def test_all_three_formats_are_written(cities, process):
    for accept in ("application/json", "text/xml", "text/html"):
        answer = annotate(cities, process, text=TEXT, headers={"Accept": accept})
        assert answer.headers["content-type"].partition(";")[0] == accept
        assert "Berlin" in answer.text
        assert "Accept" in answer.headers["vary"]


def test_html_of_labels_and_keys_stays_text(cities):
    text = "<i>alert</i>"
    page = annotate(cities, text=text, headers={"Accept": "text/html"}).text
    assert "<i>" not in page and "&lt;i&gt;" in page
    assert "<e>" not in page and "<script>" not in page
    row = resources(cities, text=text)[0]
    assert row["@types"] == "<b>"
    assert HTML_KEY not in row["@URI"]


# -- which knowledge base ---------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fields"), [("wiki/annotate", {}), ("annotate", {"kb": "wiki"}), ("annotate?kb=wiki", {})]
)
def test_the_knowledge_base_is_named_by_the_path_or_a_field(cities, path, fields):
    rows = resources(cities, path=path, text="Berlin", **fields)
    assert [row["@URI"] for row in rows] == ["http://dbpedia.org/resource/Berlin"]


def test_a_knowledge_base_that_is_not_served_is_said_with_those_that_are(cities):
    answer = annotate(cities, "nowhere/annotate", text="Berlin")
    assert answer.status_code == 422
    assert "cities, wiki" in answer.json()["detail"]


def test_a_model_that_is_not_served_is_said(cities):
    assert annotate(cities, text="Berlin", model="nowhere").status_code == 422
    assert len(resources(cities, text="Berlin", model="prior")) == 1


# -- what is refused --------------------------------------------------------


def test_no_acceptable_format_is_a_problem_that_names_those_there_are(cities):
    answer = annotate(cities, text="a", headers={"Accept": "text/turtle"})
    assert answer.status_code == 406
    assert "application/json" in answer.json()["remedy"]


def test_a_body_that_is_no_form_is_refused(cities):
    answer = cities.post("/rest/annotate", json={"text": "Berlin"}, headers=JSON)
    assert (answer.status_code, answer.json()["field"]) == (415, "Content-Type")


def test_a_request_without_a_text_is_a_problem_that_names_the_field(cities):
    answer = annotate(cities, confidence=0.5)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == "text"


def test_a_text_that_is_too_long_is_refused(cities, cities_service):
    answer = annotate(cities, text="a " * (cities_service.limits.characters // 2 + 1))
    assert (answer.status_code, answer.json()["field"]) == (413, "characters")


def test_an_answer_that_would_be_too_long_is_refused(cities, monkeypatch):
    monkeypatch.setattr(spotlight, "MAX_RESOURCES", 3)
    assert len(resources(cities, text="Paris " * 3)) == 3
    answer = annotate(cities, "candidates", text="Berlin Berlin", confidence=0)
    assert (answer.status_code, answer.json()["field"]) == (413, "text")
    assert "3 resources" in answer.json()["detail"]
