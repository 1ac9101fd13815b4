"""The settings of an E-BERT: which fit each other, and which task they are of."""

from pathlib import Path

import pytest

from kgkit.errors import UsageError
from kgkit.methods.ebert_settings import EBertTraining
from kgkit.models.kinds import MOST_ROUNDS

FILE = (Path("data.tsv"),)


def settings(task="classification", **fields):
    gold = {"gold": FILE} if task == "wsd" and "gold" not in fields else {}
    return EBertTraining(**{"task": task, "data": FILE, **gold, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 0}, "only wsd and el publish a model that is not trained: classification needs epochs"),
        ({"max_candidates": 5}, "max_candidates is a setting of wsd and el, not of classification"),
        ({"all_surfaces": True}, "all_surfaces is a setting of wsd and el"),
        ({"packed": True}, "packed is a setting of wsd and el"),
        ({"no_prime": True}, "no_prime is a setting of wsd and el"),
        ({"fresh_head": True}, "fresh_head is a setting of wsd and el"),
        ({"rounds": 2}, "rounds is a setting of wsd and el"),
        ({"linker": ""}, "asks a linker which entities a text mentions: name one, or none"),
        ({"linker": "none", "coherence": "graph"}, "there is no linker to make some"),
        ({"no_align": True, "random_vectors": True}, "leave out no_align, or random_vectors"),
        ({"task": "tagging", "inject": "replace"}, "inject by concat"),
        ({"rounds": 0}, "rounds is 0; it is 1 or more"),
        (
            {"task": "el", "rounds": MOST_ROUNDS + 1},
            f"it is up to {MOST_ROUNDS}",
        ),
        ({"task": "el", "max_candidates": -1}, "max_candidates is -1; it is 0 or more"),
        ({"task": "el", "gold": FILE}, "el"),
        ({"task": "wsd", "gold": ()}, "gold"),
        ({"task": "wsd", "dev": FILE}, "gold"),
        ({"task": "wsd", "all_surfaces": True}, "data of wsd say what is a mention: leave out all_surfaces"),
        ({"task": "el", "lr_new": 0.1}, "all that el trains has the rate lr: leave out lr_new"),
        ({"task": "el", "inject": "replace"}, "inject says how links of others are read, and el makes links"),
        ({"task": "wsd", "linker": "gloss"}, "linker says how links of others are read, and wsd makes links"),
        ({"task": "el", "coherence": "graph"}, "coherence says how links of others are read"),
        ({"task": "el", "epochs": 0, "steps": 9}, "0 epochs train nothing, and 9 steps are asked for"),
        ({"task": "wsd", "control": True}, "random_vectors is the control that has entities"),
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
        {"coherence": "graph", "linker": "gloss"},
        {"inject": "replace"},
        {"task": "tagging"},
        {"task": "el", "all_surfaces": True, "max_candidates": 0, "rounds": MOST_ROUNDS},
        {"task": "wsd", "packed": True, "no_prime": True, "fresh_head": True},
        {"task": "wsd", "dev": FILE, "dev_gold": FILE},
        {"task": "el", "epochs": 0},
        {"task": "el", "epochs": 0, "no_align": True},
        {"no_align": True},
        {"random_vectors": True},
        {"control": True},
    ],
)
def test_settings_that_fit_are_accepted(fields):
    accepted = settings(**fields)
    assert all(getattr(accepted, name) == value for name, value in fields.items())


@pytest.mark.parametrize(
    ("fields", "primes"),
    [({}, True), ({"no_prime": True}, False), ({"no_align": True}, False), ({"random_vectors": True}, True)],
)
def test_masked_entities_are_primed_by_mapped_vectors_alone(fields, primes):
    assert settings("el", **fields).primes is primes


@pytest.mark.parametrize(("linker", "name"), [("prior", "prior"), ("none", ""), ("mine", "mine")])
def test_no_linker_has_no_name(linker, name):
    assert settings(linker=linker).linker_name == name
