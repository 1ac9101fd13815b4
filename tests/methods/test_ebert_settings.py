"""The settings of an E-BERT: which fit each other, and which task they are of."""

from pathlib import Path

import pytest

from kgkit.errors import UsageError
from kgkit.methods.ebert_settings import EBertTraining

FILE = (Path("data.tsv"),)


def settings(task="classification", **fields):
    return EBertTraining(**{"task": task, "data": FILE, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"packed": True}, "packed is a setting of wsd and el"),
        ({"linker": ""}, "asks a linker which entities a text mentions: name one, or none"),
        ({"task": "wsd", "control": True}, "control"),
    ],
)
def test_settings_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        settings(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"epochs": 1},
        {"linker": "none"},
        {"linker": "gloss"},
        {"task": "tagging"},
        {"task": "wsd", "packed": True},
        {"task": "wsd", "dev": FILE},
        {"control": True},
    ],
)
def test_settings_that_fit_are_accepted(fields):
    accepted = settings(**fields)
    assert all(getattr(accepted, name) == value for name, value in fields.items())


@pytest.mark.parametrize(("linker", "name"), [("prior", "prior"), ("none", ""), ("mine", "mine")])
def test_no_linker_has_no_name(linker, name):
    assert settings(linker=linker).linker_name == name
