"""What happens to the page while other things happen: new builds, old builds, queues that are full."""

import pytest
from starlette.testclient import TestClient

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.page.addresses import address
from kgkit.serving.page.catalog_views import kb_facts
from kgkit.serving.problems import Busy
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.serving.conftest import BASE_URL
from tests.serving.page.conftest import BROWSER
from tests.serving.page.html_reader import Page
from tests.small_kb import build, facts_kb

HEAD = {
    "kgkit": {
        "name": "Planets",
        "url_pattern": "https://planets.example/{key:_}",
        "identifiers": ["wikidata"],
    }
}
PLANETS = [
    HEAD,
    {"key": "Mars", "label": "Mars", "attributes": {"wikidata": "Q111", "radius": 3389}},
    {"key": "javascript:alert(1)", "label": "Pluto"},
]


@pytest.fixture
def home(tmp_path):
    facts_kb(tmp_path).close()
    return tmp_path


def client_of(home, **settings):
    service = Service(ServiceSettings(**settings), Home(home))
    client = TestClient(make_app(service), base_url=BASE_URL, headers=BROWSER, raise_server_exceptions=False)
    return service, client


def test_a_new_build_is_shown_when_it_has_been_taken(home):
    service, client = client_of(home, kbs={"facts": ("prior",)})
    with client:
        assert client.get("/entity?key=wolf").status_code == 404
        records = [
            Entity("wolf", "Wolf"),
            Entity("dog", "Dog"),
            Alias("wolf", "wolf", 1),
            Triple("dog", "is_a", "wolf"),
        ]
        build(home, records, name="facts").close()
        service.resources.refresh()
        assert "Wolf" in client.get("/entity?key=wolf").text
        assert "is_a" in client.get("/graph?key=wolf").text
        assert "1 link by prior" in Page(client.get("/?text=a+wolf").text).words


def test_a_knowledge_base_that_is_published_later_is_offered(home):
    service, client = client_of(home)
    with client:
        assert Page(client.get("/").text).words.count("planets") == 0
        kgkit.build_kb("jsonl", PLANETS, name="planets", home=home)
        service.resources.refresh()
        assert "planets" in Page(client.get("/kbs").text).words
        assert "planets" in Page(client.get("/").text).words


def test_identifiers_and_addresses_of_entities_are_shown(home):
    kgkit.build_kb("jsonl", PLANETS, name="planets", home=home)
    _, client = client_of(home, kbs={"planets": ("prior",)})
    with client:
        page = Page(client.get("/entity?key=Mars").text)
        assert "https://planets.example/Mars" in page.links
        assert "wikidata identifier" in page.words
        assert "Q111" in page.text
        page = Page(client.get(address("/entity", key="javascript:alert(1)")).text)
        assert not [link for link in page.links if link.startswith("javascript")]


def test_a_busy_service_says_so_as_a_page(home, monkeypatch):
    service, client = client_of(home, kbs={"facts": ("prior",)})
    with client:

        async def refuse(*_):
            raise Busy("too many requests for links are waiting", 2)

        monkeypatch.setattr(service.queue, "link", refuse)
        answer = client.get("/?text=a+dog")
        assert answer.status_code == 503
        assert "too many requests" in answer.text
        assert "a dog" in Page(answer.text).text


def test_forms_of_the_page_send_their_origin(home):
    # The header says no-referrer, with which a browser posts forms with the origin `null`.
    _, client = client_of(home, kbs={"facts": ("prior",)})
    with client:
        metas = Page(client.get("/").text).named("meta")
    assert {"name": "referrer", "content": "same-origin"} in metas


def test_what_a_model_or_vectors_lack_is_told_without_folders(home):
    folder = home / "models" / "broken"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    service, client = client_of(home, kbs={"facts": ("prior",)})
    with client:
        rows = {row.name: row.error for row in service.installed_models()}
        assert rows["broken"]
        assert str(home) not in rows["broken"]
        assert client.get("/models").status_code == 200
        assert kb_facts(service, "facts")["vectors"] == []
