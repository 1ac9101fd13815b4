"""docs/api.md has every public name, as the docstrings describe it now."""

import inspect

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.api_page import PAGE, page, public_modules


def test_the_page_is_what_the_docstrings_say():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.api_page`"


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_every_public_name_has_a_docstring_on_the_page(module):
    text = PAGE.read_text(encoding="utf-8")
    for name in module.__all__:
        assert f"### `{module.__name__}.{name}`\n" in text
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
