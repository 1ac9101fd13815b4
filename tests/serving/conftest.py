"""A home with two small knowledge bases, and a client of a service over it."""

import pytest
from starlette.testclient import TestClient

from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.city_toys import build_cities
from tests.cli_helpers import build_mini
from tests.small_kb import facts_kb

BASE_URL = "http://127.0.0.1:8077"


@pytest.fixture(scope="session")
def served_home(tmp_path_factory):
    """A home with `mini`, a WordNet of thirty synsets, and `facts`, a graph: not to be changed."""
    home = build_mini(tmp_path_factory.mktemp("served"))
    facts_kb(home).close()
    return home


@pytest.fixture(scope="session")
def service_settings():
    return ServiceSettings(kbs={"mini": ("prior",), "facts": ("prior",)})


@pytest.fixture(scope="session")
def served(served_home, service_settings):
    """A service over that home, which the client's application starts."""
    return Service(service_settings, Home(served_home))


@pytest.fixture(scope="session")
def client(served):
    """A client of it, as a program on this machine is."""
    with TestClient(make_app(served), base_url=BASE_URL, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def cities_home(tmp_path_factory):
    """A home with `cities` and `wiki`: not to be changed."""
    home = tmp_path_factory.mktemp("cities")
    build_cities(home)
    return home


@pytest.fixture(scope="session")
def cities_service(cities_home):
    """A service over them, which the client's application starts; `cities` is the default."""
    settings = ServiceSettings(
        kbs={"cities": ("prior",), "wiki": ("prior",)}, allowed_origins=("http://127.0.0.1:3333",)
    )
    return Service(settings, Home(cities_home))


@pytest.fixture(scope="session")
def cities(cities_service):
    """A client of that service."""
    with TestClient(make_app(cities_service), base_url=BASE_URL, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def cities_kb(cities, cities_service):
    """The knowledge base `cities`, as the service has it open."""
    return cities_service.kb("cities")
