"""Who may speak the protocols of foreign programs, and what errors show of the machine."""

import pytest
from starlette.testclient import TestClient

from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.serving.conftest import BASE_URL


@pytest.fixture(scope="module")
def guarded(cities_home):
    """A client without a token, of a service that wants one."""
    settings = ServiceSettings(kbs={"cities": ("prior",)}, token=TOKEN)
    with TestClient(make_app(Service(settings, Home(cities_home))), base_url=BASE_URL) as client:
        yield client


TOKEN = "0123456789abcdef0123456789"
REQUESTS = [
    ("POST", "/rest/annotate"),
    ("GET", "/rest/spot?text=Berlin"),
    ("POST", "/nif"),
    ("GET", "/reconcile"),
    ("GET", "/reconcile/cities/preview?id=Q64"),
    ("POST", "/mcp"),
]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_no_protocol_is_spoken_without_the_token(guarded, method, path):
    assert guarded.request(method, path).status_code == 401
    wrong = {"Authorization": "Bearer 0123456789abcdef012345678X"}
    assert guarded.request(method, path, headers=wrong).status_code == 401
    correct = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.request(method, path, headers=correct).status_code != 401


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_no_page_of_another_site_reads_an_answer(cities, method, path):
    answer = cities.request(method, path, headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert cities.request(method, path, headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_no_error_shows_a_path_of_the_machine(cities, cities_home, method, path):
    for name in ("nowhere", "..", "%2e%2e%2f", "cities%00", "a'b\"c"):
        separator = "&" if "?" in path else "?"
        named = path.replace("cities", name) if "cities" in path else f"{path}{separator}kb={name}"
        answer = cities.request(method, named)
        assert answer.status_code < 500
        assert str(cities_home) not in answer.text
        assert "Traceback" not in answer.text
