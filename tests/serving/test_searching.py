"""Search in bounded time: exact, then by the beginning, then similar; each entity once."""

import pytest

from kgkit.building import Alias, Entity
from kgkit.errors import UnknownName
from kgkit.serving import searching
from kgkit.serving.searching import search_entities
from tests.small_kb import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A knowledge base of places, whose names begin alike."""
    records = [
        Entity("Paris", "Paris", "A city.", kind="city"),
        Entity("Paris_(Texas)", "Paris (in Texas)", kind="town"),
        Entity("Paris_Hilton", "Paris Hilton", kind="person"),
        Entity("Parish", "parish", kind="thing"),
        Entity("Lutetia", "Lutetia", kind="city"),
        Alias("Paris", "Paris", 90),
        Alias("Paris", "Paris_(Texas)", 10),
        Alias("Paris Hilton", "Paris_Hilton", 7),
        Alias("Parish", "Parish", 5),
        Alias("Lutetia", "Lutetia", 4),
        Alias("Parisii", "Lutetia", 2),
        Alias("Parisii", "Parish", 8),
        Alias("Lutetia Parisiorum", "Lutetia", 3),
    ]
    with build(tmp_path_factory.mktemp("names"), records) as kb:
        yield kb


def keys(kb, text, k=10, **settings):
    return [hit.entity.key for hit in search_entities(kb, text, k, **settings)]


def test_the_key_and_the_meanings_of_the_surface_come_first_best_prior_first(names):
    assert keys(names, "Paris")[:2] == ["Paris", "Paris_(Texas)"]
    hits = search_entities(names, "paris", 10)
    assert [(hit.entity.key, hit.match) for hit in hits][:2] == [
        ("Paris", "exact"), ("Paris_(Texas)", "exact"),
    ]  # fmt: skip
    assert hits[0].score == pytest.approx(0.9)


def test_what_begins_so_comes_next_best_prior_first(names):
    hits = search_entities(names, "Paris", 10)
    scores = [hit.score for hit in hits if hit.match == "prefix"]
    assert scores == sorted(scores, reverse=True) and len(scores) >= 2


def test_a_typing_error_is_found_by_the_index(names):
    assert keys(names, "Lutecia")[0] == "Lutetia"
    assert search_entities(names, "Lutecia", 1)[0].match == "similar"


def test_only_those_of_a_kind_come(names):
    assert keys(names, "Paris", kind="town") == ["Paris_(Texas)"]
    with pytest.raises(UnknownName, match="city"):
        keys(names, "Paris", kind="village")


def test_a_part_of_a_label_is_found_in_a_small_knowledge_base(names, monkeypatch):
    (hit,) = search_entities(names, "exas)", 5)
    assert (hit.entity.key, hit.match, hit.score) == ("Paris_(Texas)", "part", 0.0)
    monkeypatch.setattr(searching, "_MAX_SCANNED", 0)
    assert keys(names, "exas)") == []


def test_a_space_stands_for_the_underscore_of_a_key(names):
    (hit, *_) = search_entities(names, "Paris Hilton", 3)
    assert (hit.entity.key, hit.field) == ("Paris_Hilton", "key")


def test_no_more_rows_are_read_than_a_number_of_them(names, monkeypatch):
    monkeypatch.setattr(searching, "_MAX_ROWS", 1)
    monkeypatch.setattr(searching, "_MAX_SCANNED", 0)
    hits = search_entities(names, "par", 10)
    assert 0 < len([hit for hit in hits if hit.match == "prefix"]) <= 3


def test_without_an_index_of_surfaces_there_is_nothing_similar(names, monkeypatch):
    monkeypatch.setattr(names.store, "trigrams", None)
    assert keys(names, "Lutecia") == []
    assert keys(names, "Lutetia")
