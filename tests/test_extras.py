"""Packages of extras: loaded by the call that needs them, named where they are missing."""

import json

import pytest

from kgkit.errors import MissingExtra
from kgkit.lazy import import_extra


def test_a_package_that_is_installed_is_returned():
    assert import_extra("json", "formats") is json


def test_a_package_that_is_missing_is_named_with_its_extra():
    with pytest.raises(MissingExtra, match=r"'no_such_package'.*kgkit\[formats\]") as (caught):
        import_extra("no_such_package", "formats")
    assert caught.value.extra == "formats"


def test_a_package_that_is_hidden_counts_as_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pandas"):
        import_extra("pandas", "pandas")
