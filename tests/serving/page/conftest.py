"""A home for the page: a graph with vectors, entities with hostile names, a catalog with runs."""

import pytest
from starlette.testclient import TestClient

from kgkit.building import Alias, Entity, Triple
from kgkit.catalog.runs import recorded
from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.service import Service
from kgkit.serving.settings import Limits, ServiceSettings
from tests.serving.conftest import BASE_URL
from tests.serving.page.html_reader import Page
from tests.small_kb import NODES, build, facts_kb
from tests.vector_toys import made

HTML = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> & co"

STRANGE_KEYS = (
    "a/b", "..", "../../etc/passwd", "it's \"quoted\"", "with space", "100%", "#x?y=1&z=2+3", HTML, "苹果",
    "مرحبا", "\u202eright to left",
)  # fmt: skip
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def strange_records():
    yield from (
        Entity(
            key, label=f"{key} {HTML}", description=f"what {HTML} is", kind="page", types=(HTML,),
            attributes={"note": [HTML, key], HTML: {"inner": HTML}},
        )
        for key in STRANGE_KEYS
    )  # fmt: skip
    yield from (Alias(key, key, 3) for key in STRANGE_KEYS)
    yield from (Alias("mark", key, count) for count, key in enumerate(STRANGE_KEYS, start=1))
    yield from (Triple(key, f"links {HTML}", STRANGE_KEYS[0]) for key in STRANGE_KEYS[1:])


@pytest.fixture(scope="session")
def page_home(tmp_path_factory):
    """A home with `facts`, `strange` and a run with scores: not to be changed."""
    folder = tmp_path_factory.mktemp("page")
    facts_kb(folder).close()
    made(folder, [[number, 1] for number in range(len(NODES))], kb="facts")
    build(folder, [*strange_records()], name="strange").close()
    command = f"kgkit evaluate el --data {folder}/data.jsonl"
    data = folder / "data.jsonl"
    data.write_text("{}\n")
    with recorded(
        Home(folder), command=command, config={"kb": "facts", "path": str(data)}, data=[data]
    ) as run:
        run.score("el", f"set {HTML}", "f1", 0.75, n=12)
    return folder


@pytest.fixture(scope="session")
def page_service(page_home):
    settings = ServiceSettings(
        kbs={"facts": ("prior",), "strange": ("prior",)}, limits=Limits(names=20, characters=20_000)
    )
    return Service(settings, Home(page_home))


@pytest.fixture(scope="session")
def browser(page_service):
    """A client that asks as a browser does."""
    app = make_app(page_service)
    with TestClient(app, base_url=BASE_URL, headers=BROWSER, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def read(browser):
    """A function that returns the page of an address."""

    def page(path: str, status: int = 200) -> Page:
        """Return the page of *path*, which has that status."""
        answer = browser.get(path)
        assert answer.status_code == status, answer.text[:400]
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return Page(answer.text)

    return page
