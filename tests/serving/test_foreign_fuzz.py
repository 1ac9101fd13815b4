"""Whatever a foreign program sends: an answer or a problem, never an error of the service.

`KGKIT_FUZZ=10000` in the environment sends so many requests of each kind.
"""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.city_toys import HTML_KEY, TEXT

EXAMPLES = int(os.environ.get("KGKIT_FUZZ", "10"))

fuzzed = settings(
    max_examples=EXAMPLES, deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large
    ],
)  # fmt: skip

NAMES = st.sampled_from(
    ["Berlin", "北京", "Q64", "city", "country", "population", "Q183", HTML_KEY, TEXT, ""]
)
TEXTS = NAMES | st.text(max_size=60) | st.text("BerlinParis <>&\"'\\\x00\u200d😀/.%{}[]", max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
MEDIA = st.sampled_from(["application/json", "text/xml", "text/html", "*/*", "", "text/turtle", "a/b;q=x,,"])


def encodable(text):
    return text.encode("utf-8", "replace").decode()


def check(answer):
    """Return an answer that is no error of the service, and is JSON if it is a problem."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert "Traceback" not in answer.text
        media = answer.headers["content-type"]
        if answer.request.headers.get("accept") != "text/html" or not media.startswith("text/html"):
            assert media in ("application/problem+json", "application/json")
            problem = answer.json()
            assert problem.get("detail") or problem.get("error")
    assert answer.status_code in (200, 202, 400, 404, 405, 406, 413, 415, 422)
    return answer


# -- forms ------------------------------------------------------------------

FIELDS = st.dictionaries(
    st.sampled_from(
        ["text", "confidence", "support", "types", "policy", "kb", "model", "spotter", "url", "x"]
    ),
    TEXTS | st.sampled_from(["0", "0.5", "1", "-1", "nan", "whitelist", "cities", "prior", "DBpedia:City"]),
    max_size=6,
)


@fuzzed
@given(
    path=st.sampled_from(["annotate", "candidates", "spot", "wiki/annotate", "cities/spot"]),
    fields=FIELDS, text=TEXTS, accept=MEDIA, method=st.sampled_from(["GET", "POST"]),
)  # fmt: skip
def test_any_form_is_annotated_or_refused(cities, path, fields, text, accept, method):
    fields = {"text": text} | fields
    fields = {name: encodable(value) for name, value in fields.items()}
    sent = {"params": fields} if method == "GET" else {"data": fields}
    answer = check(cities.request(method, f"/rest/{path}", headers={"Accept": accept}, **sent))
    if answer.status_code == 200 and answer.headers["content-type"] == "application/json":
        record = answer.json()
        shown = record.get("@text", record.get("annotation", {}).get("@text"))
        assert shown == fields["text"]
        for row in record.get("Resources", []):
            begin_at = int(row["@offset"])
            assert shown[begin_at : begin_at + len(row["@surfaceForm"])] == row["@surfaceForm"]


@fuzzed
@given(
    body=st.binary(max_size=300),
    path=st.sampled_from(["/rest/annotate", "/reconcile/cities", "/nif", "/mcp"]),
)
def test_any_bytes_are_answered_or_refused(cities, body, path):
    media = "application/json" if path == "/mcp" else "application/x-www-form-urlencoded"
    headers = {"Content-Type": media, "Accept": "application/json, text/event-stream"}
    check(cities.post(path, content=body, headers=headers))


# -- Turtle -----------------------------------------------------------------

NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
TERMS = st.sampled_from(
    [
        f"<{NIF}isString>", f"<{NIF}Phrase>", f"<{NIF}Context>", f"<{NIF}beginIndex>", f"<{NIF}endIndex>",
        f"<{NIF}referenceContext>", f"<{NIF}anchorOf>", "<http://www.w3.org/2005/11/its/rdf#taIdentRef>",
        "a", "<urn:a>", "<urn:b#char=0,6>", "_:b", "[]", '"Berlin"', '"0"', '"6"', "3", "true", '"x"@en',
        ".", ";", ",", "[", "]", "(", ")", "<<", ">>", "<<(", ")>>", "{|", "|}", "@prefix a: <urn:> .", "a:b",
        "@base <urn:> .", '"""a\nb"""', "'\\u0000'", "'\\uD800'", "# comment\n", "<rel>", "\\", '"', "<",
    ]
)  # fmt: skip
PHRASES = st.tuples(st.integers(-2, 90), st.integers(-2, 90))


@fuzzed
@given(terms=st.lists(TERMS, max_size=30), task=st.sampled_from(["", "a2kb", "d2kb"]))
def test_any_turtle_is_linked_or_refused(cities, terms, task):
    check(cities.post("/nif", params={"task": task}, content=" ".join(terms).encode()))


@fuzzed
@given(text=TEXTS, phrases=st.lists(PHRASES, max_size=8), nil=st.booleans())
def test_any_phrases_of_any_text_are_linked_or_refused(cities, text, phrases, nil):
    text = encodable(text)
    escaped = "".join(f"\\U{ord(letter):08X}" for letter in text)
    graph = f'<urn:a#char=0,{len(text)}> <{NIF}isString> "{escaped}" .\n'
    for number, (start, end) in enumerate(phrases):
        graph += (
            f"<urn:a#{number}> a <{NIF}Phrase> ; <{NIF}referenceContext> <urn:a#char=0,{len(text)}> ; "
            f'<{NIF}beginIndex> "{start}" ; <{NIF}endIndex> "{end}" .\n'
        )
    answer = check(cities.post("/nif", params={"nil": str(nil).lower()}, content=graph.encode()))
    if all(0 <= start < end <= len(text) for start, end in phrases):
        assert answer.status_code == 200, answer.text
        assert answer.text.count("a nif:Phrase") == len(phrases) or not phrases


# -- reconciliation ---------------------------------------------------------

QUERIES = st.dictionaries(
    TEXTS,
    st.fixed_dictionaries(
        {},
        optional={
            "query": TEXTS | JSON,
            "type": TEXTS | st.lists(TEXTS, max_size=3) | JSON,
            "type_strict": st.sampled_from(["any", "all", "should"]) | JSON,
            "limit": st.integers(-1, 200) | JSON,
            "properties": st.lists(st.fixed_dictionaries({"pid": TEXTS, "v": JSON}), max_size=3) | JSON,
        },
    ),
    max_size=4,
)
EXTENSIONS = st.fixed_dictionaries(
    {},
    optional={
        "ids": st.lists(TEXTS, max_size=4) | JSON,
        "properties": st.lists(
            st.fixed_dictionaries({"id": TEXTS}, optional={"settings": JSON}), max_size=4
        ) | JSON,
    },
)  # fmt: skip


@fuzzed
@given(queries=QUERIES | JSON, extend=EXTENSIONS | JSON, which=st.sampled_from(["queries", "extend"]))
def test_any_batch_is_reconciled_or_refused(cities, queries, extend, which):
    text = json.dumps(queries if which == "queries" else extend)
    answer = check(cities.post("/reconcile/cities", data={which: text}))
    if answer.status_code == 200 and which == "queries":
        assert list(answer.json()) == list(json.loads(text))


@fuzzed
@given(
    path=st.sampled_from(
        ["", "/suggest/entity", "/suggest/type", "/suggest/property", "/flyout/entity", "/flyout/type",
         "/flyout/property", "/preview", "/properties", "/nothing"]
    ),
    fields=st.dictionaries(st.sampled_from(["prefix", "id", "type", "limit", "cursor"]), TEXTS, max_size=4),
)  # fmt: skip
def test_any_question_of_a_client_is_answered_or_refused(cities, path, fields):
    fields = {name: encodable(value) for name, value in fields.items()}
    check(cities.get(f"/reconcile/cities{path}", params=fields))


# -- agents -----------------------------------------------------------------

ARGUMENTS = st.dictionaries(
    st.sampled_from(
        ["text", "kb", "model", "threshold", "names", "kind", "limit", "query", "key", "relation",
         "direction", "source", "target"]
    ),
    TEXTS | JSON | st.lists(TEXTS, max_size=3) | st.sampled_from(["cities", "both", "out", 1, 3]),
    max_size=5,
)  # fmt: skip


@fuzzed
@given(
    name=st.sampled_from(["link", "reconcile", "search", "entity", "neighbours", "path", "x"]),
    arguments=ARGUMENTS, method=st.sampled_from(["tools/call"] * 5 + ["resources/read", "x"]),
)  # fmt: skip
def test_any_call_of_an_agent_is_answered_or_refused(cities, name, arguments, method):
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = check(cities.post("/mcp", content=json.dumps(call), headers=headers))
    record = answer.json()
    assert "result" in record or "error" in record
    if "result" in record:
        (content,) = record["result"]["content"]
        assert "which the log of the service has" not in content["text"]


@pytest.mark.parametrize("path", ["/rest/annotate", "/nif", "/reconcile/cities", "/mcp"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(cities, cities_service, path):
    body = b"x" * (cities_service.limits.body_bytes + 1)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    assert cities.post(path, content=body, headers=headers).status_code == 413
