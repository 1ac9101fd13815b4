"""The REST interface: records as the commands write them, and problems that name the field."""

import json

import pytest

import kgkit
from tests.cli_helpers import run

TEXT = "The dog chased the mice."


def problem(answer, status, field=None):
    """Return a problem after a look at its form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    members = answer.json()
    assert members["status"] == status
    if field is not None:
        assert members["field"] == field
    assert "Traceback" not in answer.text
    return members


def command(home, *args):
    """Return what a command writes as JSON."""
    done = run(*args, "--home", home)
    assert done.code == 0, done.err
    return json.loads(done.out)


# -- links --------------------------------------------------------------------


def test_a_text_is_linked_as_the_command_links_it(client, served_home, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    line = command(served_home, "link", path, "--kb", "mini", "--model", "prior")
    record = client.post("/v1/link", json={"text": TEXT}).json()
    assert {**line, "id": "0"} == record
    assert [link["text"] for link in record["links"]] == ["dog", "chased", "mice"]


def test_a_text_in_the_address_is_linked_alike(client):
    body = client.post("/v1/link", json={"text": TEXT, "top_k": 1, "nil": True}).json()
    assert client.get("/v1/link", params={"text": TEXT, "top_k": 1, "nil": True}).json() == body


def test_several_texts_are_several_records_in_order(client):
    records = client.post("/v1/link", json={"text": ["dog", {"text": "mouse", "id": "m"}, ""]}).json()
    assert [(record["id"], record["text"], len(record["links"])) for record in records] == [
        ("0", "dog", 1), ("m", "mouse", 1), ("2", "", 0),
    ]  # fmt: skip
    assert client.post("/v1/link", json={"text": []}).json() == []


def test_mentions_are_linked_as_they_come(client):
    mentions = [{"start": 4, "end": 7, "id": "m1"}, {"start": 4, "end": 14}]
    record = client.post("/v1/link", json={"text": TEXT, "mentions": mentions, "nil": True}).json()
    assert [(link["start"], link["end"], link.get("id"), link["nil"]) for link in record["links"]] == [
        (4, 7, "m1", False), (4, 14, None, True),
    ]  # fmt: skip


def test_each_of_several_texts_has_its_own_mentions(client):
    texts = [{"text": "a dog", "mentions": [{"start": 2, "end": 5}]}, {"text": "a dog", "mentions": []}]
    records = client.post("/v1/link", json={"text": texts}).json()
    assert [len(record["links"]) for record in records] == [1, 0]


def test_a_text_is_linked_to_several_knowledge_bases(client):
    record = client.post("/v1/link", json={"text": "The dog.", "kb": ["facts", "mini"]}).json()
    assert [(link["kb"], link["entity"]) for link in record["links"]] == [
        ("facts", "dog"), ("mini", "dog.n.01"),
    ]  # fmt: skip
    assert record["model"] == "facts=prior, mini=prior"
    assert client.get("/v1/link", params={"text": "The dog.", "kb": ["facts", "mini"]}).json() == record


def test_offsets_are_code_points_in_any_script(client):
    text = "👩‍🔬 人 العربية: the dog"
    (link,) = client.post("/v1/link", json={"text": text}).json()["links"]
    assert text[link["start"] : link["end"]] == "dog"


def test_corrections_hold_in_one_knowledge_base_or_several(client):
    def links(*corrections, **settings):
        body = {"text": [{"text": "The dog saw a Dog.", "id": "a"}], "corrections": corrections, **settings}
        [record] = client.post("/v1/link", json=body).json()
        return [(link["start"], link["kb"], link["entity"]) for link in record["links"]]

    nothing, place = {"text": "Dog", "entity": None}, {"text": "dog", "entity": "cat", "document": "a"}
    assert links(nothing, place, kb="facts") == [(4, "facts", "cat")]
    both = links(nothing, place | {"kb": "facts"}, kb=["facts", "mini"])
    assert (4, "facts", "cat") in both and not any(start == 14 for start, _, _ in both)


@pytest.mark.parametrize(("correction", "value"), [
    ({"text": "dog", "entity": "Q999"}, "Q999"), ({"text": "dog"}, "corrections.0.entity"),
    ({"text": "dog", "entity": None, "start": "x"}, "corrections.0.start"),
    ({"text": " ", "entity": None}, "text"), ({"text": "dog", "entity": None, "docment": "a"}, "docment"),
])  # fmt: skip
def test_a_bad_correction_is_refused_with_its_value(client, correction, value):
    answer = client.post("/v1/link", json={"text": TEXT, "corrections": [correction]})
    assert answer.status_code == 422 and value in answer.text


def test_a_threshold_is_kept_and_links_below_it_are_dropped_or_marked(client):
    def links(**settings):
        return client.post("/v1/link", json={"text": "He ran well.", **settings}).json()["links"]

    scores = {link["text"]: link["score"] for link in links()}
    assert min(scores.values()) < 1
    assert len(links(threshold=1.0)) < len(scores)
    marked = [link for link in links(threshold=1.0, nil=True) if link["nil"]]
    assert marked and all(link["entity"] is None for link in marked)
    assert len(links(threshold=0.0)) == len(scores)


@pytest.mark.parametrize("top_k", [0, 1, 3])
def test_a_link_shows_as_many_candidates_as_are_asked_for(client, top_k):
    links = client.post("/v1/link", json={"text": "well", "top_k": top_k}).json()["links"]
    assert [len(link["candidates"]) for link in links] == [top_k]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": 3}, "text"),
        ({"text": None}, "text"),
        ({"text": [3]}, "text.0"),
        ({"text": [{"id": "a"}]}, "text.0.text"),
        ({"text": "a", "threshold": 2}, "threshold"),
        ({"text": "a", "threshold": "NaN"}, "threshold"),
        ({"text": "a", "top_k": -1}, "top_k"),
        ({"text": "a", "top_k": 101}, "top_k"),
        ({"text": "a", "modle": "prior"}, "modle"),
        ({"text": "a", "kb": 3}, "kb"),
        ({"text": "a dog", "mentions": [{"start": 5, "end": 2}]}, "mentions"),
        ({"text": "a dog", "mentions": [{"start": 2, "end": 2}]}, "mentions"),
        ({"text": "a dog", "mentions": [{"start": 2, "end": 6}]}, "mentions"),
        ({"text": "a dog", "mentions": [{"start": -1, "end": 2}]}, "mentions.0.start"),
        ({"text": "a dog", "mentions": [{"start": 2}]}, "mentions.0.end"),
        ({"text": "a dog", "mentions": "all"}, "mentions"),
        ({"text": ["a dog"], "mentions": []}, "mentions"),
        ({"text": [{"text": "x", "mentions": [{"start": 0, "end": 9}]}]}, "text.0.mentions"),
        ([], ""),
        ("text", ""),
    ],
)
def test_a_bad_request_for_links_names_the_field(client, body, field):
    problem(client.post("/v1/link", json=body), 422, field or None)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"text": "a", "kb": "nothing"}, "'nothing'; there are: mini, facts"),
        ({"text": "a", "kb": ["mini", "../mini"]}, "'../mini'"),
        ({"text": "a", "kb": ["mini", "mini"]}, "named twice"),
        ({"text": "a", "kb": []}, "no knowledge base to link to"),
        ({"text": "a", "model": "gloss"}, "'gloss'; there are: prior"),
        ({"text": "a", "model": "/etc/passwd"}, "there are: prior"),
    ],
)
def test_what_is_not_served_is_named_with_what_is(client, body, name):
    assert name in problem(client.post("/v1/link", json=body), 422)["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b'{"text": "a"',
        b'{"text": "\\ud800"}',
        b'{"text": "dog \\udc00\\ud800"}',
        b'{"text": ["\\ud83d"]}',
        b'{"text": "\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"text": ' + b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text": 1e999999}',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_body_that_is_no_json_or_no_text_is_refused(client, content):
    problem(client.post("/v1/link", content=content), 422)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": "x" * 100_001}, "characters"),
        ({"text": ["x" * 60_000] * 2}, "characters"),
        ({"text": ["x"] * 201}, "documents"),
        ({"text": "dog", "mentions": [{"start": 0, "end": 3}] * 10_001}, "mentions"),
    ],
)
def test_more_than_a_request_may_have_is_too_large(client, body, field):
    members = problem(client.post("/v1/link", json=body), 413, field)
    assert "in several requests" in members["remedy"]


# -- names --------------------------------------------------------------------


@pytest.mark.parametrize("text", ["well", "mice", "hot dog", "Turkey"])
def test_candidates_are_those_of_the_command(client, served_home, text):
    expected = command(served_home, "candidates", text, "--kb", "mini", "--json")
    assert client.get("/v1/candidates", params={"text": text}).json() == expected


def test_candidates_of_one_part_of_speech_and_some_of_them(client):
    def entities(**query):
        answer = client.get("/v1/candidates", params={"text": "well", **query}).json()
        return [row["entity"] for row in answer]

    assert entities(pos="r") == [entity for entity in entities() if ".r." in entity]
    assert entities(k=1) == entities()[:1]
    assert client.get("/v1/candidates", params={"text": "puppyy"}).json() == []
    assert client.get("/v1/candidates", params={"text": "puppyy", "fuzzy": True}).json()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \t"}, "text"),
        ({"text": "a", "k": 0}, "k"),
        ({"text": "a", "k": 101}, "k"),
        ({"text": "a", "k": "x"}, "k"),
        ({"text": "a", "pos": "z"}, "pos"),
        ({"text": "a", "poss": "n"}, "poss"),
    ],
)
def test_a_bad_request_for_candidates_names_the_field(client, query, field):
    problem(client.get("/v1/candidates", params=query), 422, field)


def test_names_are_reconciled_as_kgkit_does(client, served_home):
    names = ["puppyy", None, "dog", "", "qqqq"]
    answer = client.post("/v1/reconcile", json={"names": names, "top": 2}).json()
    with kgkit.open_kb("mini", home=served_home) as kb:
        expected = [kgkit.reconcile([name], kb=kb, top=2)[0] for name in names]
    assert [(row["name"], row["key"], row["match"]) for row in answer] == [
        (each.name, each.key, each.match) for each in expected
    ]
    assert answer[0]["candidates"][0]["key"] == answer[0]["key"] == "puppy.n.01"
    assert answer[1] == {
        "name": None, "key": None, "label": None, "score": 0.0, "match": False, "candidates": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"names": ["a"], "top": 0}, 422, "top"),
        ({"names": ["a"], "threshold": -1}, 422, "threshold"),
        ({"names": "a"}, 422, "names"),
        ({"names": ["a"], "kind": "no such kind"}, 422, None),
        ({"names": ["a"] * 1_001}, 413, "names"),
        ({"names": ["x" * 60_000] * 2}, 413, "characters"),
    ],
)
def test_a_bad_request_to_reconcile_names_the_field(client, body, status, field):
    problem(client.post("/v1/reconcile", json=body), status, field)


def test_names_of_one_kind_are_reconciled_with_that_kind(client):
    (row,) = client.post("/v1/reconcile", json={"names": ["dog"], "kind": "synset"}).json()
    assert row["key"] == "dog.n.01"


def test_a_search_answers_records_of_entities(client):
    records = client.get("/v1/search", params={"q": "dog", "limit": 2}).json()
    assert records[0]["entity"] == "dog.n.01"
    assert set(records[0]) == {
        "entity", "label", "kind", "description", "field", "text", "match", "score", "ids", "url",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ({"q": ""}, 422, "query"),
        ({"q": "a", "by": "magic"}, 422, "by"),
        ({"q": "a", "limit": 0}, 422, "limit"),
        ({"q": "a", "limit": 1_000}, 422, "limit"),
        ({"q": "a", "kind": "nothing"}, 422, None),
        ({"q": "a", "by": "text"}, 404, None),  # it has no vectors
    ],
)
def test_a_bad_search_names_the_field(client, query, status, field):
    problem(client.get("/v1/search", params=query), status, field)


# -- the graph ----------------------------------------------------------------


@pytest.mark.parametrize("key", ["dog.n.01", "dog%1:05:00::", "well.r.01"])
def test_an_entity_is_shown_as_the_command_shows_it(client, served_home, key):
    expected = command(served_home, "show", key, "--kb", "mini", "--json")
    assert client.get("/v1/entity", params={"key": key}).json() == expected


def test_an_entity_has_no_more_surfaces_and_facts_than_are_asked_for(client):
    record = client.get("/v1/entity", params={"key": "dog.n.01", "limit": 1}).json()
    assert len(record["surfaces"]) == 1
    assert sum(map(len, record["out"].values())) == 1


def test_an_unknown_entity_is_not_there_and_a_similar_key_is_named(client):
    members = problem(client.get("/v1/entity", params={"key": "dgo.n.01"}), 404)
    assert members["title"] == "no such entity"
    assert "dog.n.01" in members["remedy"]


@pytest.mark.parametrize(
    "key", ["", "a/b", "../../etc/passwd", 'say "x"', "\0", "x" * 600, "ключ", "%00", "'"]
)
def test_any_text_may_be_asked_for_as_a_key(client, key):
    problem(client.get("/v1/entity", params={"key": key}), 404)


def test_neighbours_come_by_relation_with_their_labels(client, served_home):
    query = {"entity": "dog", "kb": "facts"}
    expected = command(served_home, "show", "dog", "--kb", "facts", "--json")
    record = client.get("/v1/neighbours", params=query).json()
    assert record == {"entity": "dog", "kb": "facts", "out": expected["out"], "in": expected["in"]}
    only = client.get("/v1/neighbours", params={**query, "relation": "likes", "limit": 1}).json()
    assert only["out"] == {"likes": expected["out"]["likes"][:1]} and only["in"] == {}


def test_an_unknown_relation_is_named_with_those_that_are_there(client):
    answer = client.get("/v1/neighbours", params={"entity": "dog", "kb": "facts", "relation": "hates"})
    assert "chases" in problem(answer, 422)["detail"]


def test_a_path_is_that_of_the_command(client, served_home):
    expected = command(served_home, "path", "claw", "animal", "--kb", "facts", "--json")
    query = {"source": "claw", "target": "animal", "kb": "facts"}
    assert client.get("/v1/path", params=query).json() == expected
    assert client.get("/v1/path", params={**query, "target": "claw"}).json() == []


def test_where_no_path_leads_there_is_a_problem(client):
    answer = client.get("/v1/path", params={"source": "dog", "target": "alone", "kb": "facts"})
    problem(answer, 404)
    answer = client.get(
        "/v1/path", params={"source": "claw", "target": "animal", "kb": "facts", "relation": ["likes"]}
    )
    problem(answer, 404)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 422),
        ({"entity": "dog.n.01", "text": "a"}, 422),
        ({"entity": "dog.n.01"}, 404),
        ({"text": " "}, 422),
    ],
)
def test_nearest_needs_an_entity_or_a_text_and_vectors(client, query, status):
    members = problem(client.get("/v1/nearest", params=query), status)
    assert status != 404 or "kgkit embed" in members["detail"]


# -- listings -----------------------------------------------------------------


def test_the_knowledge_bases_say_what_they_are_the_default_first(client, served_home):
    records = client.get("/v1/kbs").json()
    assert [(record["name"], record["default"]) for record in records] == [("mini", True), ("facts", False)]
    with kgkit.open_kb("mini", home=served_home) as kb:
        assert records[0]["build"] == kb.build
        assert records[0]["entities"] == len(kb)
        assert records[0]["relations"] == list(kb.relations)
    assert str(served_home) not in json.dumps(records)


def test_the_models_are_those_served_and_those_installed_without_paths(client, served_home):
    record = client.get("/v1/models").json()
    assert record["served"] == {"mini": ["prior"], "facts": ["prior"]}
    assert "wsd-minilm" in [model["name"] for model in record["installed"]]
    assert all("path" not in model for model in record["installed"])


def test_the_interface_describes_itself_without_references_that_lead_nowhere(client):
    text = client.get("/v1/openapi.json").text
    schema = json.loads(text)
    assert {"/v1/link", "/v1/search", "/v1/path", "/metrics"} <= set(schema["paths"])
    body = schema["paths"]["/v1/link"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {
        "text", "mentions", "kb", "corrections", "model", "threshold", "nil", "top_k",
    }  # fmt: skip
    assert '"#/$defs' not in text
    for reference in (part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]):
        assert reference in schema["components"]["schemas"]


def test_a_method_that_an_address_does_not_take_is_a_problem(client):
    assert "allow" in client.delete("/v1/link").headers
    problem(client.delete("/v1/link"), 405)
    problem(client.post("/v1/search"), 405)


# -- the whole of it ----------------------------------------------------------


def test_every_get_takes_a_knowledge_base_and_refuses_one_that_is_not_served(client):
    schema = client.get("/v1/openapi.json").json()
    for path, methods in schema["paths"].items():
        parameters = {each["name"]: each for each in methods.get("get", {}).get("parameters", [])}
        if "kb" not in parameters:
            continue
        required = {name: "dog" for name, each in parameters.items() if each.get("required")}
        answer = client.get(path, params={**required, "kb": "nothing"})
        members = problem(answer, 422)
        assert "there are: mini, facts" in members["detail"], path


def test_every_get_refuses_a_parameter_that_it_does_not_know(client):
    for path in ("link", "candidates", "search", "entity", "neighbours", "path", "nearest"):
        problem(client.get(f"/v1/{path}", params={"unknown": "1"}), 422)


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/link/", "/v1/../v1/kbs/", "/v1//kbs", "/v1/kbs%2f"])
def test_an_address_is_what_it_is(client, path):
    assert client.get(path).status_code == 404


def test_a_link_in_an_address_has_all_settings_of_one_in_a_body(client):
    query = {
        "text": "He ran well.",
        "threshold": 0.9,
        "nil": "true",
        "top_k": "2",
        "model": "prior",
        "kb": "mini",
    }
    body = {"text": "He ran well.", "threshold": 0.9, "nil": True, "top_k": 2, "model": "prior", "kb": "mini"}
    assert client.get("/v1/link", params=query).json() == client.post("/v1/link", json=body).json()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "text"),
        ({"text": "a", "threshold": "1.5"}, "threshold"),
        ({"text": "a", "threshold": "nan"}, "threshold"),
        ({"text": "a", "nil": "perhaps"}, "nil"),
        ({"text": "a", "top_k": "many"}, "top_k"),
    ],
)
def test_a_bad_link_in_an_address_names_the_field(client, query, field):
    answer = client.get("/v1/link", params=query)
    problem(answer, 422, field)


def test_the_media_type_of_a_body_is_not_asked_for(client):
    body = json.dumps({"text": "dog"})
    for media_type in ("application/json", "text/plain", "application/x-www-form-urlencoded", "nonsense"):
        answer = client.post("/v1/link", content=body, headers={"Content-Type": media_type})
        assert answer.json()["links"][0]["entity"] == "dog.n.01"
