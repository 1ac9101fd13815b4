"""Whatever is sent: no answer of 5xx, and each is JSON."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.text(max_size=60) | st.sampled_from(
    ["The dog chased the mice.", "hot dogs ran well", "İstanbul", "ﬁnance", "e\u0301" * 9, "\0dog\0"]
)
SPANS = st.fixed_dictionaries({"start": st.integers(-2, 30), "end": st.integers(-2, 30)})
LINKS = st.fixed_dictionaries(
    {"text": TEXTS},
    optional={
        "mentions": st.lists(SPANS, max_size=5),
        "kb": st.sampled_from(["mini", "facts", "", "nothing"])
        | st.lists(st.sampled_from(["mini", "facts"])),
        "threshold": st.floats(0, 1),
        "nil": st.booleans(),
        "top_k": st.integers(0, 120),
        "model": st.sampled_from(["prior", "gloss", "", "\0"]),
    },
)
GETS = st.sampled_from(
    [
        ("/v1/link", "text"), ("/v1/candidates", "text"), ("/v1/search", "q"), ("/v1/entity", "key"),
        ("/v1/neighbours", "entity"), ("/v1/nearest", "entity"), ("/v1/nearest", "text"),
    ]
)  # fmt: skip


def check(answer):
    """Make sure that an answer is one of the client's making, and JSON; return it."""
    assert answer.status_code < 500, answer.text
    content = answer.json()
    if answer.status_code >= 400:
        assert content["status"] == answer.status_code and content["detail"]
        assert answer.headers["content-type"] == "application/problem+json"
    return content


@SETTINGS
@given(body=LINKS)
def test_a_request_for_links_is_answered_and_its_links_are_spans_of_the_text(client, body):
    content = check(client.post("/v1/link", content=json.dumps(body)))
    for link in content.get("links", []):
        assert body["text"][link["start"] : link["end"]] == link["text"]
        assert 0 <= link["score"] <= 1
        assert link["nil"] == (link["entity"] is None)


@SETTINGS
@given(body=LINKS)
def test_the_same_request_gets_the_same_answer(client, body):
    content = json.dumps(body)
    assert (
        client.post("/v1/link", content=content).content == client.post("/v1/link", content=content).content
    )


@SETTINGS
@given(value=ANY)
def test_any_json_is_answered(client, value):
    for path in ("/v1/link", "/v1/reconcile"):
        check(client.post(path, content=json.dumps(value)))
        check(client.post(path, content=json.dumps({"text": value, "names": value})))
        check(client.post(path, content=json.dumps({"text": "dog", "mentions": value})))
        check(client.post(path, content=json.dumps({"names": value})))


@SETTINGS
@given(content=st.binary(max_size=200))
def test_any_bytes_are_answered(client, content):
    for path in ("/v1/link", "/v1/reconcile"):
        check(client.post(path, content=content))


@SETTINGS
@given(address=GETS, text=TEXTS, kb=st.sampled_from(["mini", "facts"]))
def test_any_text_may_be_looked_up(client, address, text, kb):
    path, field = address
    check(client.get(path, params={field: text, "kb": kb}))


@SETTINGS
@given(ends=st.tuples(TEXTS, TEXTS | st.sampled_from(["dog", "cat", "alone"])))
def test_any_two_texts_may_be_the_ends_of_a_path(client, ends):
    check(client.get("/v1/path", params={"source": ends[0], "target": ends[1], "kb": "facts"}))


@SETTINGS
@given(names=st.lists(st.none() | TEXTS, max_size=5), top=st.integers(1, 5))
def test_any_names_are_reconciled_each_by_itself(client, names, top):
    rows = check(client.post("/v1/reconcile", content=json.dumps({"names": names, "top": top})))
    assert [row["name"] for row in rows] == names
    for row in rows:
        assert len(row["candidates"]) <= top
        scores = [candidate["score"] for candidate in row["candidates"]]
        assert scores == sorted(scores, reverse=True)


@SETTINGS
@given(
    query=st.dictionaries(
        st.text(max_size=6) | st.sampled_from(["k", "limit"]), st.text(max_size=6), max_size=4
    )
)
def test_any_query_is_answered(client, query):
    for path in ("/v1/search", "/v1/nearest", "/v1/entity", "/v1/kbs"):
        check(client.get(path, params=query))


@SETTINGS
@given(path=st.text(max_size=20))
def test_any_address_is_answered(client, path):
    answer = client.get("/v1/" + "".join(f"%{byte:02x}" for byte in path.encode()))
    assert answer.status_code in (200, 404, 405, 422)
