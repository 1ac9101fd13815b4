"""Tools for language-model agents."""

import asyncio
import json

import jsonschema
import msgspec
import pytest

from kgkit.errors import KgkitError, MissingExtra
from kgkit.serving import mcp
from kgkit.serving.mcp import KBS_URI, MAX_CHARACTERS, TOOLS, bounded_json, call_agent_tool, kb_records
from kgkit.serving.problems import Problem
from tests.city_toys import HTML_KEY, TEXT, TEXT_SPANS, rpc

SMALLEST = {
    "link": {"text": "Berlin"},
    "reconcile": {"names": ["Berlin"]},
    "search": {"query": "Berlin"},
    "entity": {"key": "Q64"},
    "neighbours": {"key": "Q64"},
    "path": {"source": "Q64", "target": "Q183"},
}


@pytest.fixture
def call(cities, cities_service):
    """Calls a tool, and returns its record."""

    def of_tool(name, **arguments):
        text = asyncio.run(call_agent_tool(cities_service, name, arguments))
        assert len(text) <= MAX_CHARACTERS
        return json.loads(text)

    return of_tool


def test_there_is_a_smallest_call_of_every_tool():
    assert set(SMALLEST) == set(TOOLS)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_tool_answers_its_smallest_call_with_rows(call, name):
    record = call(name, **SMALLEST[name])
    assert record["kb"] == "cities"
    assert record[TOOLS[name].rows]
    assert "omitted" not in record


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_the_schema_of_a_tool_says_what_it_takes(name):
    schema = TOOLS[name].input_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert schema["type"] == "object"
    assert validator.is_valid(SMALLEST[name])
    assert not validator.is_valid({})
    assert not validator.is_valid(SMALLEST[name] | {"unknown": 1})
    assert all("description" in field for field in schema["properties"].values())
    assert set(schema["required"]) == set(SMALLEST[name])


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_tool_takes_the_name_of_a_knowledge_base(call, name):
    with pytest.raises(KgkitError, match="there are: cities, wiki"):
        call(name, **SMALLEST[name], kb="nowhere")


# -- single tools -----------------------------------------------------------


def test_link_gives_spans_in_code_points(call):
    links = call("link", text=TEXT)["links"]
    assert [(link["start"], link["end"], link["text"]) for link in links] == list(TEXT_SPANS)
    assert links[0] == {
        "start": 2,
        "end": 8,
        "text": "Berlin",
        "key": "Q64",
        "label": "Berlin",
        "score": 0.8,
        "description": "capital of Germany",
    }


def test_link_leaves_out_what_scores_less_than_the_threshold(call):
    assert call("link", text="Berlin", threshold=0.9)["links"] == []
    assert call("link", text="Berlin", model="prior")["model"] == "prior"


def test_reconcile_gives_candidates_of_each_name(call):
    names = call("reconcile", names=["Pekin", "Berlin", ""], limit=2)["names"]
    assert [row["name"] for row in names] == ["Pekin", "Berlin", ""]
    assert names[1] == {
        "name": "Berlin",
        "match": True,
        "candidates": [
            {"key": "Q64", "label": "Berlin", "score": 0.784},
            {"key": "Q614184", "label": "Berlin", "score": 0.196},
        ],
    }
    assert names[0]["candidates"][0]["key"] == "Q956"
    assert names[2]["candidates"] == []


def test_reconcile_may_ask_for_a_kind(call):
    (row,) = call("reconcile", names=["Berlin"], kind="capital")["names"]
    assert [each["key"] for each in row["candidates"]] == ["Q64"]
    with pytest.raises(KgkitError, match="river"):
        call("reconcile", names=["Berlin"], kind="river")


def test_search_finds_by_the_beginning_of_a_name(call):
    entities = call("search", query="Berl", limit=2)["entities"]
    assert [(row["key"], row["match"]) for row in entities] == [("Q64", "prefix"), ("Q614184", "prefix")]
    assert entities[0]["types"] == ["city", "capital", "place"]


def test_an_entity_comes_with_its_attributes(call):
    record = call("entity", key="Q64")
    assert (record["label"], record["facts"], record["url"]) == ("Berlin", 2, "")
    assert record["attributes"][0] == {"name": "area", "value": 891.3}
    assert call("entity", key="AC/DC", kb="wiki")["url"] == "https://en.wikipedia.org/wiki/AC%2FDC"


def test_what_is_long_is_abbreviated(call):
    description = call("entity", key="Q30")["description"]
    assert (len(description), description[-1]) == (300, "…")


def test_an_entity_of_any_key_is_shown(call):
    assert call("entity", key=HTML_KEY)["key"] == HTML_KEY


def test_neighbours_are_facts_with_labels(call):
    facts = call("neighbours", key="Q64", relation="country", direction="out")["facts"]
    assert facts == [
        {
            "subject": "Q64",
            "subject_label": "Berlin",
            "relation": "country",
            "object": "Q183",
            "object_label": "Germany",
        }
    ]
    assert call("neighbours", key="Q183", relation="country", direction="out")["facts"] == []
    assert len(call("neighbours", key="Q64", limit=1)["facts"]) == 1


def test_a_path_is_its_facts(call):
    facts = call("path", source="Q64", target="Q183")["facts"]
    assert [(fact["subject"], fact["object"]) for fact in facts] == [("Q64", "Q183")]
    with pytest.raises(KgkitError, match="no path"):
        call("path", source="Q64", target="Q956")


# -- what is refused --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("link", {}, "missing required field `text`"),
        ("link", {"text": ""}, "length >= 1"),
        ("link", {"text": 3}, "Expected `str`"),
        ("link", {"text": "a", "threshold": 2}, "threshold is 2"),
        ("link", {"text": "a", "colour": "red"}, "unknown field `colour`"),
        ("reconcile", {"names": []}, "length >= 1"),
        ("reconcile", {"names": ["a"] * 51}, "length <= 50"),
        ("reconcile", {"names": ["a"], "limit": 11}, "<= 10"),
        ("search", {"query": "a", "limit": 0}, ">= 1"),
        ("neighbours", {"key": "Q64", "direction": "up"}, "Invalid enum value"),
        ("delete", {}, "no tool 'delete'; there are link, reconcile"),
    ],
)
def test_arguments_that_are_none_are_refused_with_what_is_wrong(call, name, arguments, message):
    with pytest.raises((Problem, KgkitError)) as caught:
        call(name, **arguments)
    assert message in str(caught.value)


def test_nested_arguments_are_refused(call):
    nested = []
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(Problem):
        call("link", text=nested)


# -- bounds -----------------------------------------------------------------


def test_a_record_that_is_short_enough_stays_as_it_is():
    record = {"kb": "x", "rows": [1, 2, 3]}
    assert json.loads(bounded_json(record, "rows")) == record


@pytest.mark.parametrize("most", [40, 60, 100, 200])
def test_rows_that_are_too_many_are_left_out_and_counted(most):
    record = {"kb": "x", "rows": ["y" * 10] * 50}
    text = bounded_json(record, "rows", most)
    shown = json.loads(text)
    assert len(text) <= most
    assert len(shown["rows"]) + shown["omitted"] == 50
    larger = msgspec.json.encode({**shown, "rows": [*shown["rows"], "y" * 10]})
    assert len(larger) > most - 2  # no row more would fit


def test_a_long_answer_is_cut_and_says_so(call):
    record = call("link", text="Berlin " * 2_000)
    assert record["omitted"] == 2_000 - len(record["links"])
    assert record["links"]


def test_values_are_abbreviated_at_every_depth():
    value = {"a": ["x" * 500] * 30, "b": {str(number): number for number in range(30)}}
    short = mcp._abbreviate(value)
    assert (len(short["a"]), len(short["a"][0]), len(short["b"])) == (20, 300, 20)


# -- over HTTP --------------------------------------------------------------


def test_an_agent_is_told_the_tools_and_that_they_only_read(cities):
    assert rpc(cities, "initialize", INITIALIZE)["result"]["serverInfo"]["name"] == "kgkit"
    tools = rpc(cities, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == list(TOOLS)
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert [tool["inputSchema"] for tool in tools] == [tool.input_schema() for tool in TOOLS.values()]


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_tool_answers_over_http_what_it_answers_in_process(cities, call, name):
    result = rpc(cities, "tools/call", {"name": name, "arguments": SMALLEST[name]})["result"]
    assert not result["isError"]
    assert json.loads(result["content"][0]["text"]) == call(name, **SMALLEST[name])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("entity", {"key": "nowhere"}, "no entity 'nowhere'"),
        ("link", {"text": 3}, "Expected `str`"),
        ("delete", {}, "no tool 'delete'"),
        ("link", {"text": "a" * 200_000}, "characters"),
        ("path", {"source": "Q64", "target": "Q956"}, "no path"),
    ],
)
def test_an_error_is_one_that_the_agent_reads(cities, name, arguments, message):
    result = rpc(cities, "tools/call", {"name": name, "arguments": arguments})["result"]
    assert result["isError"]
    assert message in result["content"][0]["text"]


def test_an_error_that_nobody_expected_has_no_details(cities, monkeypatch, caplog):
    async def fail(service, arguments):
        raise RuntimeError("/a/path/of/this/machine")

    tool = TOOLS["search"]
    broken = mcp.AgentTool(
        name="search", description="", arguments=tool.arguments, answer=fail, rows="entities"
    )
    monkeypatch.setitem(TOOLS, "search", broken)
    result = rpc(cities, "tools/call", {"name": "search", "arguments": {"query": "a"}})["result"]
    assert result["isError"]
    assert "RuntimeError" in result["content"][0]["text"]
    assert "/a/path" not in result["content"][0]["text"]
    assert "a tool failed: RuntimeError" in caplog.text


def test_the_knowledge_bases_are_a_resource(cities, cities_service):
    (resource,) = rpc(cities, "resources/list")["result"]["resources"]
    assert resource["uri"] == KBS_URI
    (contents,) = rpc(cities, "resources/read", {"uri": KBS_URI})["result"]["contents"]
    records = json.loads(contents["text"])["kbs"]
    assert records == kb_records(cities_service)
    assert [(row["name"], row["entities"], row["facts"]) for row in records] == [
        ("cities", 10, 5),
        ("wiki", 4, 1),
    ]
    assert records[0]["relations"] == ["country", "capital_of", "has_capital"]


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "kgkit://kbs/../x", "kgkit://other"])
def test_there_is_no_other_resource(cities, uri):
    assert "no such resource" in rpc(cities, "resources/read", {"uri": uri})["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"jsonrpc":"2.0"}', b"\xff", b'{"a":"\\ud800"}'],
)
def test_what_is_no_call_is_refused(cities, body):
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = cities.post("/mcp", content=body, headers=headers)
    assert answer.status_code == 400
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}', -32602, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method":', -32700, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    ],
)
def test_what_is_no_request_is_answered_as_json_rpc_has_it(cities, body, code, id):
    answer = cities.post("/mcp", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert (answer.json()["id"], answer.json()["error"]["code"]) == (id, code)


def test_half_of_a_surrogate_pair_before_a_name_keeps_its_offsets(cities):
    result = rpc(cities, "tools/call", {"name": "link", "arguments": {"text": "\ud83d Berlin"}})["result"]
    links = json.loads(result["content"][0]["text"])["links"]
    assert [(link["start"], link["end"]) for link in links] == [(2, 8)]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_are_no_sessions_to_open_or_end(cities, method):
    assert cities.request(method, "/mcp").status_code == 405


def test_without_the_package_the_address_says_how_to_install_it(monkeypatch):
    def fail(_):
        raise MissingExtra("mcp", "mcp")

    monkeypatch.setattr(mcp, "make_mcp_server", fail)
    endpoint = mcp.MCPEndpoint(None)
    with pytest.raises(MissingExtra, match=r"kgkit\[mcp\]"):
        asyncio.run(endpoint({"type": "http"}, None, None))
