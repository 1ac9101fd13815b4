"""What every test may ask for. No test sees a knowledge base of the person who runs it."""

import pytest

import kgkit
from tests.toys import build_toy


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path_factory.getbasetemp() / "no-home"))


@pytest.fixture(scope="session")
def toy_built(tmp_path_factory):
    """The toy, built once: not to be changed."""
    return build_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def toy_home(toy_built):
    """A home with the toy in it: not to be changed."""
    return toy_built.path.parents[3]


@pytest.fixture
def toy(toy_home):
    """The toy, open."""
    with kgkit.open_kb("toy", home=toy_home) as kb:
        yield kb
