"""Every frame is answered: what the SDK cannot read, too."""

import json

import pytest

from kgkit.serving.mcp_frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    FrameError,
    parse_frame,
    without_half_pairs,
)

pytest.importorskip("mcp")

PING = {"jsonrpc": "2.0", "method": "ping"}


@pytest.mark.parametrize(
    ("frame", "code", "id"),
    [
        ('{"jsonrpc": "2.0", "id": 3,', PARSE_ERROR, None),
        ("ping", PARSE_ERROR, None),
        ("NaN", PARSE_ERROR, None),
        ("\0", PARSE_ERROR, None),
        ("[" * 100_000, PARSE_ERROR, None),
        ("[]", INVALID_REQUEST, None),
        (f"[{json.dumps(PING | {'id': 1})}]", INVALID_REQUEST, None),
        ("null", INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": 3}', INVALID_REQUEST, 3),
        ('{"id": "a", "method": "ping"}', INVALID_REQUEST, "a"),
        (json.dumps(PING | {"id": 3, "method": 5}), INVALID_REQUEST, 3),
        *(
            (f'{{"jsonrpc": "2.0", "method": "ping", "id": {given}}}', INVALID_REQUEST, None)
            for given in ("null", "true", "1.5", "[1]", "{}")
        ),
        *(
            (json.dumps(PING | {"id": 3, "params": params}), INVALID_PARAMS, 3)
            for params in ([], [1], "x", 5, True)
        ),
    ],
)
def test_what_is_no_request_has_an_answer(frame, code, id):
    with pytest.raises(FrameError) as caught:
        parse_frame(frame)
    answer = json.loads(caught.value.answer().model_dump_json(exclude_unset=True))
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", id, code)


@pytest.mark.parametrize("id", [0, -1, "", "a", 10**30])
def test_a_request_is_one_whatever_its_id_and_what_else_it_has(id):
    message = parse_frame(json.dumps(PING | {"id": id, "params": {"a": 1}, "result": {}}))
    assert (message.id, message.method, message.params) == (id, "ping", {"a": 1})


def test_what_asks_nothing_is_not_answered():
    assert parse_frame(json.dumps(PING)).method == "ping"
    assert parse_frame('{"jsonrpc": "2.0", "id": 1, "result": {}}').id == 1
    for frame in (PING | {"params": []}, {"jsonrpc": "2.0", "id": 1, "error": 5}):
        assert parse_frame(json.dumps(frame)) is None


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\ud83d Ann", "\ufffd Ann"),
        (r"Ann \uDE00", "Ann \ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\u00e9\ud7ff\ue000", "é\ud7ff\ue000"),
    ],
)
def test_half_of_a_surrogate_pair_is_one_code_point(escaped, text):
    assert json.loads(without_half_pairs(f'"{escaped}"'.encode())) == text
