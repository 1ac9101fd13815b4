"""The page about foreign programs: its requests are sent, and its answers compared."""

import json
import re
import shlex
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

import kgkit
from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.mcp import MAX_CHARACTERS, TOOLS
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.doc_pages import ROOT, blocks, fits

PAGE = (ROOT / "docs/foreign-clients.md").read_text(encoding="utf-8")
REQUESTS = re.findall(r"^```sh\n(curl .*?)\n```\n\n```json\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a service over the places of the page about reconciliation."""
    home = tmp_path_factory.mktemp("foreign")
    (table,) = [block.content for block in blocks(ROOT / "docs/reconcile.md") if block.file == "places.csv"]
    (home / "places.csv").write_text(table, encoding="utf-8")
    kgkit.build_kb("table", home / "places.csv", name="places", home=home)
    service = Service(ServiceSettings(kbs={"places": ("prior",)}), Home(home))
    with TestClient(make_app(service), base_url="http://127.0.0.1:8077") as client:
        yield client


def send(client, line):
    """Send what a line of curl sends, and return the answer."""
    _, address, *words = shlex.split(line)
    headers, fields = {}, []
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "-H":
            name, _, content = value.partition(": ")
            headers[name] = content
        else:
            assert option in ("-d", "--data-urlencode")
            name, _, content = value.partition("=")
            fields.append((name, content if option != "-d" else dict(parse_qsl(value))[name]))
    headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    headers.setdefault("Accept", "*/*")
    return client.post(urlsplit(address).path, content=urlencode(fields), headers=headers)


@pytest.mark.parametrize(("line", "shown"), REQUESTS, ids=[line.split()[1] for line, _ in REQUESTS])
def test_a_request_of_the_page_has_the_answer_that_the_page_shows(client, line, shown):
    answer = send(client, line)
    assert answer.status_code == 200, answer.text
    assert fits(answer.text, shown)


def test_the_page_has_requests():
    assert len(REQUESTS) == 2


def test_every_address_of_the_table_is_one_of_the_service(client):
    table = PAGE.split("| program |")[1].split("\n\n")[0]
    addresses = re.findall(r"`(/[\w/]+)`", table)
    assert addresses == ["/rest/annotate", "/rest/candidates", "/rest/spot", "/nif", "/reconcile/KB", "/mcp"]
    for address in addresses:
        assert client.post(address.replace("KB", "places")).status_code in (200, 400, 406, 422)


def test_what_other_specifications_describe_is_not_described_again(client):
    paths = client.get("/v1/openapi.json").json()["paths"]
    assert not [path for path in paths if path.startswith(("/rest", "/reconcile", "/mcp"))]


def test_the_page_lists_the_tools_of_agents_in_their_order():
    section = PAGE.split("\n## Agents\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(TOOLS)
    assert f"{MAX_CHARACTERS:,} characters" in section


def test_the_lines_of_clients_are_python():
    for block in re.findall(r"(?:^    .*\n|^\n)+", PAGE, re.MULTILINE):
        code = "\n".join(line[4:] for line in block.splitlines())
        if "import " in code:
            body = "async def page():\n" + "\n".join(f"    {line}" for line in code.splitlines())
            compile(body, "foreign-clients.md", "exec")


def test_the_configuration_of_an_agent_is_json():
    (line,) = re.findall(r'^    (\{"mcpServers".*\})$', PAGE, re.MULTILINE)
    server = json.loads(line)["mcpServers"]["kgkit"]
    assert [server["command"], *server["args"]] == ["kgkit", "mcp", "--kb", "places"]
