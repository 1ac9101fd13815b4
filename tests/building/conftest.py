"""A home with the knowledge base that is edited."""

import pytest

from tests.edit_toys import build, edit


@pytest.fixture
def home(tmp_path):
    build(tmp_path)
    return tmp_path


@pytest.fixture
def retired(home):
    edit(home, {"key": "severn", "retire": True})
    return home
