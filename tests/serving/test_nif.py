"""`/nif` as GERBIL asks it."""

import pytest

from kgkit.evaluation.nif import read_contexts
from tests.city_toys import TEXT, TEXT_SPANS

HEAD = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
ENTITY = "http://www.wikidata.org/entity/"


def context(iri, text):
    return f'<{iri}> a nif:Context ; nif:isString "{text}" .\n'


def phrase(iri, of, start, end):
    number = "^^xsd:nonNegativeInteger"
    return (
        f'<{iri}> a nif:Phrase ; nif:referenceContext <{of}> ; nif:beginIndex "{start}"{number} ; '
        f'nif:endIndex "{end}"{number} .\n'
    )


def post(client, *parts, path="/nif", **headers):
    return client.post(path, content=(HEAD + "".join(parts)).encode(), headers=headers)


def spans(answer):
    """Return the contexts of an answer, each with its phrases: start, end and IRI of the entity."""
    assert answer.status_code == 200, answer.text

    class Body:
        content = answer.content

        def read(self, size=-1):
            content, self.content = self.content, b""
            return content

    return {
        each.iri: [(*resource.span(iri), resource.values["entity"]) for iri, resource in each.phrases]
        for each in read_contexts(Body())
    }


def test_scores_can_be_left_out(cities):
    graph = context("http://x.example/d#char=0,54", TEXT)
    scored = post(cities, graph, path="/nif?confidence=true")
    assert scored.content == post(cities, graph).content and b"taConfidence" in scored.content
    for path in ("/nif?confidence=false", "/nif/cities?confidence=false&nil=true"):
        plain = post(cities, graph, path=path)
        assert b"taConfidence" not in plain.content
        lines = [line for line in scored.text.splitlines() if "taConfidence" not in line]
        assert plain.text.splitlines() == lines or "nil" in path
    assert spans(post(cities, graph, path="/nif?confidence=false")) == spans(scored)
    assert post(cities, graph, path="/nif?confidence=none").status_code == 422


def test_the_interface_describes_every_parameter(cities):
    paths = cities.get("/v1/openapi.json").json()["paths"]
    for path in ("/nif", "/nif/{kb}"):
        names = [each["name"] for each in paths[path]["post"]["parameters"]]
        assert sorted(names) == ["confidence", "kb", "model", "nil", "task", "threshold"]


def test_a_byte_order_mark_before_a_graph_is_read_past(cities):
    parts = HEAD, context("http://x.example/d#char=0,54", TEXT)
    found = spans(post(cities, *parts[1:]))
    assert spans(cities.post("/nif", content="".join(("\ufeff", *parts)).encode())) == found
    assert cities.post("/nif", content="".join(parts).encode("utf-16")).status_code == 422


def test_a_text_comes_with_what_it_mentions_in_code_points(cities):
    answer = post(cities, context("http://x.example/d#char=0,54", TEXT))
    keys = ("Q64", "Q956", "Q85", "Q1", "Q183")
    assert spans(answer) == {
        "http://x.example/d#char=0,54": [
            (start, end, ENTITY + key) for (start, end, _), key in zip(TEXT_SPANS, keys, strict=True)
        ]
    }


def test_phrases_that_came_along_are_linked_and_no_others(cities):
    start, end, _ = TEXT_SPANS[0]
    answer = post(
        cities,
        context("urn:d", TEXT),
        phrase("urn:d#a", "urn:d", start, end),
        phrase("urn:d#b", "urn:d", 0, 1),
    )
    assert spans(answer) == {
        "urn:d": [(0, 1, "http://aksw.org/notInWiki/%F0%9F%98%80"), (start, end, f"{ENTITY}Q64")]
    }
    assert "<urn:d#a> a nif:Phrase" in answer.text


def test_documents_with_and_without_phrases_are_answered_in_their_order(cities):
    answer = post(
        cities,
        context("urn:a", "Berlin, Paris"),
        context("urn:b", "Berlin, Paris"),
        context("urn:c", ""),
        phrase("urn:b#1", "urn:b", 8, 13),
    )
    assert list(spans(answer).items()) == [
        ("urn:a", [(0, 6, f"{ENTITY}Q64"), (8, 13, f"{ENTITY}Q90")]),
        ("urn:b", [(8, 13, f"{ENTITY}Q90")]),
        ("urn:c", []),
    ]


def test_the_task_may_be_named(cities):
    parts = context("urn:a", "Berlin, Paris"), phrase("urn:a#1", "urn:a", 8, 13), context("urn:b", "Berlin")
    assert [len(rows) for rows in spans(post(cities, *parts, path="/nif?task=a2kb")).values()] == [2, 1]
    assert [len(rows) for rows in spans(post(cities, *parts, path="/nif?task=d2kb")).values()] == [1, 0]
    assert post(cities, *parts, path="/nif?task=entailment").json()["field"] == "task"


def test_links_below_the_threshold_are_left_out_unless_nil_is_asked_for(cities):
    text = context("urn:a", "Berlin")
    assert spans(post(cities, text, path="/nif?threshold=0.8")) == {"urn:a": [(0, 6, f"{ENTITY}Q64")]}
    assert spans(post(cities, text, path="/nif?threshold=0.9")) == {"urn:a": []}
    nil = [(0, 6, "http://aksw.org/notInWiki/Berlin")]
    assert spans(post(cities, text, path="/nif?threshold=0.9&nil=true")) == {"urn:a": nil}


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("text/turtle", "text/turtle"),
        ("application/x-turtle", "application/x-turtle"),
        ("*/*", "text/turtle"),
    ],
)
def test_the_media_type_is_that_which_the_client_calls_turtle(cities, accept, media):
    answer = post(cities, context("urn:a", "Berlin"), Accept=accept)
    assert answer.headers["content-type"].partition(";")[0] == media


@pytest.mark.parametrize(
    "media", ["text/turtle", "application/x-turtle; charset=utf-8", "text/plain", "application/n-triples"]
)
def test_turtle_goes_by_several_names(cities, media):
    assert post(cities, context("urn:a", "Berlin"), **{"Content-Type": media}).status_code == 200


def test_another_media_type_is_refused(cities):
    answer = post(cities, context("urn:a", "Berlin"), **{"Content-Type": "application/rdf+xml"})
    assert (answer.status_code, answer.json()["field"]) == (415, "Content-Type")


def test_a_graph_that_is_no_nif_is_a_problem_that_says_why(cities):
    answer = cities.post("/nif", content=b"<urn:a> <urn:b> .")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].startswith("line 1: no Turtle")


def test_more_characters_than_the_limit_are_refused(cities, cities_service):
    half = "a " * (cities_service.limits.characters // 4 + 1)
    answer = post(cities, context("urn:a", half), context("urn:b", half))
    assert (answer.status_code, answer.json()["field"]) == (413, "characters")


def test_more_documents_than_the_limit_are_refused(cities, cities_service):
    count = cities_service.limits.documents + 1
    answer = post(cities, *[context(f"urn:{number}", "a") for number in range(count)])
    assert (answer.status_code, answer.json()["field"]) == (413, "documents")
