"""`kgkit mcp`: an agent on the other end of the pipes."""

import json
import subprocess

import pytest

from tests.city_toys import TEXT, TEXT_SPANS, build_cities
from tests.cli_helpers import process, run, started
from tests.toys import run_python

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("agents")
    build_cities(home)
    return home


def talk(*calls, args):
    """Send calls to `kgkit mcp`, read an answer after each, end its input, and return the answers."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started("mcp", *args, **pipes) as child:
        answers = []
        for number, (method, params) in enumerate(calls):
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            child.stdin.write(json.dumps(call).encode() + b"\n")
            child.stdin.flush()
            answers.append(json.loads(child.stdout.readline()))
        child.stdin.close()
        remainder, errors = child.stdout.read(), child.stderr.read()
        assert child.wait(timeout=300) == 0, errors
    assert [answer["id"] for answer in answers] == list(range(len(calls)))
    assert remainder == b""
    assert b"Traceback" not in errors
    return [answer.get("result", answer.get("error")) for answer in answers]


def test_an_agent_links_a_text_over_pipes(home):
    start, tools, linked, failed = talk(
        ("initialize", INITIALIZE),
        ("tools/list", {}),
        ("tools/call", {"name": "link", "arguments": {"text": TEXT, "kb": "cities"}}),
        ("tools/call", {"name": "entity", "arguments": {"key": "nowhere", "kb": "cities"}}),
        args=("--kb", "cities=prior", "--kb", "wiki=prior", "--home", home),
    )
    assert start["serverInfo"]["name"] == "kgkit"
    assert len(tools["tools"]) == 6
    links = json.loads(linked["content"][0]["text"])["links"]
    assert [(link["start"], link["end"], link["text"]) for link in links] == list(TEXT_SPANS)
    assert failed["isError"]


def test_every_request_is_answered_before_the_end_of_the_input_ends_the_session(home):
    def call(number, name="link", **arguments):
        params = {"name": name, "arguments": arguments}
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    frames = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        *(call(number, text=TEXT) for number in range(1, 20)),
        call(20, text="\ud83d Berlin"),
        '{"jsonrpc": "2.0", "id": 21, "method": "tools/call", "params": []}',
        '{"jsonrpc": "2.0", "id": 22, "method":',
        "",
        call(23, "entity", key="nowhere"),
        call(24, text=TEXT),
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "99"}}',
        call(25, text=TEXT),
    ]
    given = "\ufeff" + "\r\n".join(frames)  # no line end behind the last one
    done = process("mcp", "--kb", "cities=prior", "--home", home, given=given.encode())
    answers = {answer["id"]: answer for answer in map(json.loads, done.out.splitlines())}
    assert done.code == 0 and set(answers) == {*range(26), None} - {22}
    links = json.loads(answers[20]["result"]["content"][0]["text"])["links"]
    assert [(link["start"], link["end"], link["text"]) for link in links] == [(2, 8, "Berlin")]
    assert answers[21]["error"]["code"] == -32602 and answers[None]["error"]["code"] == -32700
    assert "search" in (told := answers[23]["result"]["content"][0]["text"]) and "/v1/" not in told


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--kb", "nowhere"), 3, "nowhere"),
        (("--kb", "cities=nothing"), 3, "nothing"),
        (("--kb", ""), 2, ""),
    ],
)
def test_what_cannot_be_served_is_said_before_an_agent_waits(home, args, code, message):
    done = run("mcp", *args, "--home", home)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_the_package_that_is_missing_is_named():
    code = "import sys; sys.modules['mcp'] = None; sys.argv = ['kgkit', 'mcp']"
    done = run_python(f"{code}; from kgkit.commands import main; main()")
    assert (done.returncode, done.stdout) == (2, "")
    assert "kgkit[mcp]" in done.stderr
