"""Views of other knowledge bases and catalogs: edited and older builds, a WordNet, runs that ended badly."""

import pytest
from starlette.testclient import TestClient

from kgkit.building import Alias, Entity
from kgkit.catalog import Catalog, Model, Run
from kgkit.catalog.runs import recorded
from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.page.addresses import address
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests import edit_toys
from tests.cli_helpers import build_mini
from tests.old_format import publish_as_format_2
from tests.serving.conftest import BASE_URL
from tests.serving.page.conftest import BROWSER
from tests.serving.page.html_reader import Page
from tests.small_kb import NODES, build, facts_kb
from tests.vector_toys import made


@pytest.fixture
def site(tmp_path):
    """A function that serves one knowledge base of the test's home, and returns what reads its views."""
    clients = []

    def serve(kb):
        settings = ServiceSettings(kbs={kb: ("prior",)})
        client = TestClient(make_app(Service(settings, Home(tmp_path))), base_url=BASE_URL, headers=BROWSER)
        clients.append(client.__enter__())

        def page(path, status=200, **fields):
            """Return a view."""
            answer = client.get(address(path, **fields))
            assert answer.status_code == status, answer.text[:300]
            return Page(answer.text)

        return page

    yield serve
    for client in clients:
        client.__exit__(None, None, None)


# -- rivers -----------------------------------------------------------------


def test_another_key_of_an_entity_leads_to_its_card(tmp_path, site):
    edit_toys.build(tmp_path)
    page = site("rivers")
    card = page("/entity", key="hafren")
    assert "severn" in card.words
    assert address("/graph", kb="rivers", key="severn") in card.links


def test_a_card_says_how_often_its_name_is_a_link(tmp_path, site):
    edit_toys.build(tmp_path)
    card = site("rivers")("/entity", key="avon")
    assert "“Avon” is a link in 40.00 % of its occurrences" in card.words
    assert ["Surface", "Prior", "Count"] in card.rows
    assert [row[0] for row in card.rows[1:]] == ["Avon", "River Avon"]
    assert "km134" in card.words.replace(" ", "")


def test_parts_of_speech_are_words(tmp_path, site):
    edit_toys.build(tmp_path)
    page = site("rivers")
    assert "deed · verb" in page("/entity", key="wash").words
    assert "river · noun" in page("/entity", key="avon").words


def test_an_entity_that_was_retired_is_shown_nowhere(tmp_path, site):
    edit_toys.build(tmp_path)
    edit_toys.edit(tmp_path, {"key": "avon", "retire": True})
    page = site("rivers")
    assert "retired" in page("/entity", 404, key="avon").words
    assert "Avon" not in page("/kb", name="rivers").words.replace("River Avon", "")
    assert address("/entity", kb="rivers", key="avon") not in page("/graph", key="bath").links
    assert address("/entity", kb="rivers", key="avon") not in page("/search", q="avon").links


# -- other builds -----------------------------------------------------------


def test_a_build_of_an_older_format_says_that_it_does_not_know_names(tmp_path, site):
    facts_kb(tmp_path).close()
    home = Home(tmp_path)
    publish_as_format_2(home.kb("facts").builds / str(home.kb("facts").published()), tmp_path, "former")
    page = site("former")
    card = page("/entity", key="dog")
    assert "of an older format" in card.words
    assert "is_a" in card.words
    assert address("/entity", kb="former", key="dog") in page("/search", q="dog").links
    assert "index" in page("/column", 404, names="dgo").words


def test_vectors_of_another_build_are_told_as_such(tmp_path, site):
    facts_kb(tmp_path).close()
    made(tmp_path, [[number, 1] for number in range(len(NODES))], kb="facts")
    build(tmp_path, wolf_records(), name="facts").close()
    page = site("facts")
    assert "plane: facts/plane was made for build" in page("/kb", name="facts").words
    assert "was made for build" in page("/nearest", 503, key="wolf").words


def wolf_records():
    return [Entity("wolf", "Wolf"), Alias("wolf", "wolf", 1)]


def test_senses_of_a_wordnet_have_candidates_and_lemmas(tmp_path, site):
    home = build_mini(tmp_path)
    home.rename(tmp_path / "moved")
    for path in (tmp_path / "moved").iterdir():
        path.rename(tmp_path / path.name)
    page = site("mini")
    view = page("/", text="The dogs chased a puppy and a better person.")
    assert "noun" in view.words
    assert address("/entity", kb="mini", key="dog.n.01") in view.links
    assert "a member of the genus Canis" in view.words
    card = page("/entity", key="dog.n.01")
    assert {"dog", "domestic dog"} <= {row[0] for row in card.rows}
    assert address("/facts", kb="mini", key="dog.n.01", relation="hypernym", direction="out") in card.links
    assert (
        "Animal" in page("/graph", key="dog.n.01").words or "animal" in page("/graph", key="dog.n.01").words
    )


# -- catalogs ---------------------------------------------------------------


def record(home, command, **scores):
    with recorded(
        home, command=command, config={"lr": 0.1, "out": str(home.path / "x")}, seeds=[1, 2]
    ) as run:
        for name, value in scores.items():
            run.score("el", "test", name, value, n=7)


def test_runs_that_failed_or_were_interrupted_say_so(tmp_path, site):
    facts_kb(tmp_path).close()
    home = Home(tmp_path)
    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)), recorded(home, command=f"kgkit train {error!r}", config={}):
            raise error
    page = site("facts")
    assert [row[2] for row in page("/runs").rows[1:]] == ["interrupted", "failed"]
    assert "failed, exit code 1" in page("/run", id=1).words


def test_a_run_under_way_has_no_seconds(tmp_path, site):
    facts_kb(tmp_path).close()
    home = Home(tmp_path)
    with recorded(home, command="kgkit train linker", config={}):
        page = site("facts")
        assert page("/runs").rows[1][-1] == "–"
        assert "running" in page("/run", id=1).words


def test_many_runs_and_scores_come_in_pages(tmp_path, site, monkeypatch):
    facts_kb(tmp_path).close()
    for number in range(5):
        record(Home(tmp_path), f"kgkit evaluate {number}", f1=number / 10, accuracy=0.5)
    monkeypatch.setattr("kgkit.serving.page.catalog_views.ROWS", 2)
    page = site("facts")
    first = page("/runs")
    assert "1 to 2 of 5" in first.words
    assert [row[0].split()[0] for row in first.rows[1:]] == ["5", "4"]
    assert "5 to 5 of 5" in page("/runs", page=3).words
    assert "None yet" in page("/runs", page=4).words
    assert "1 to 2 of 10" in page("/scores", task="el").words
    assert "page=2" in "".join(page("/scores", task="el").links)


def test_runs_of_a_model_are_listed(tmp_path, site):
    facts_kb(tmp_path).close()
    home = Home(tmp_path)
    record(home, "kgkit evaluate el", f1=0.5)
    with Catalog.open(home) as catalog, catalog.writing() as session:
        run = session.get(Run, 1)
        run.model = Model(
            home=catalog.home, name="a & b", kind="linker", encoder=None, config={}, created=run.started
        )
    page = site("facts")
    assert len(page("/runs", model="a & b").rows) == 2
    assert "Runs of a & b" in page("/runs", model="a & b").words
    assert address("/runs", model="a & b") in page("/run", id=1).links


def test_a_catalog_that_cannot_be_read_is_a_page_and_the_rest_goes_on(tmp_path, site):
    facts_kb(tmp_path).close()
    page = site("facts")
    (tmp_path / "catalog.db").write_bytes(b"this is no database" * 100)
    assert "500" in page("/runs", 500).words
    assert "dog" in page("/entity", key="dog").words
