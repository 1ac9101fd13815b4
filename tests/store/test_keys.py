"""Keys and surfaces at the edges of what LMDB and UTF-8 take, and preference among spellings."""

import pytest

import kgkit
from kgkit.building import Alias, Entity, Redirect, Triple
from kgkit.errors import SourceError
from kgkit.store import codec, verify
from kgkit.store.layout import MAX_KEY
from tests.toys import build_toy

LINK = Triple("a", "mentions", "b")
BOTH = [Entity("a"), Entity("b"), LINK, Alias("name", "a")]
ODD = {
    "2,000 bytes": "k" * 2000,
    "2,000 bytes of other letters": "ключ" * 250,
    "as long as LMDB takes": "k" * MAX_KEY,
    "one byte longer": "k" * (MAX_KEY + 1),
    "empty": "",
    "a NUL": "a\0b",
    "NULs only": "\0\0",
    "white space": " \t\n",
    "the last code point": "\U0010ffff",
    "a byte order mark": "\ufeff",
    "combining marks": "e\u0301" * 100,
}


def opened(tmp_path, *records):
    built = build_toy(tmp_path, all=[*BOTH, *records])
    assert verify(built.path) == []
    return kgkit.open_kb("toy", home=tmp_path / "home")


@pytest.mark.parametrize("key", ODD.values(), ids=ODD)
def test_an_entity_is_found_by_a_key_however_odd(tmp_path, key):
    with opened(tmp_path, Entity(key, "odd"), Triple(key, "mentions", "a"), Redirect(key + "!", key)) as kb:
        assert kb[key].label == "odd"
        assert kb[key].key == key
        assert kb.key(kb.id(key)) == key
        assert key in kb
        assert kb[key + "!"].key == key
        assert [entity.key for entity in kb.neighbors(key)] == ["a"]
        assert key + "?" not in kb
        assert kb.get(key + "?") is None


@pytest.mark.parametrize("surface", ODD.values(), ids=ODD)
def test_an_alias_is_found_however_odd(tmp_path, surface):
    with opened(tmp_path, Alias(surface, "b", 1)) as kb:
        found = kb.candidates(surface).ids.tolist()
        assert found == ([1] if surface.strip("\ufeff \t\n") else [])  # nothing to be seen is no surface
        assert kb.candidates(surface + "?").ids.tolist() == []
        assert "name" in list(kb.surfaces())


def test_two_long_keys_that_begin_alike_are_told_apart(tmp_path):
    first, second = "k" * 2000 + "1", "k" * 2000 + "2"
    with opened(tmp_path, Entity(first), Entity(second), Alias(first, "a"), Alias(second, "b")) as kb:
        assert (kb.id(first), kb.id(second)) == (2, 3)
        assert kb.candidates(first).ids.tolist() == [0]
        assert kb.candidates(second).ids.tolist() == [1]


def test_a_key_that_looks_like_the_digest_of_another_is_told_apart():
    digest = codec.bounded_key("k" * 2000)
    assert digest[0] == 0xFF  # no UTF-8 begins so
    assert len(digest) == 33
    with pytest.raises(UnicodeDecodeError):
        digest.decode()


@pytest.mark.parametrize(
    "record", [Entity("\ud800"), Entity("c", label="\ud800"), Entity("c", attributes={"x": "\udfff"})]
)
def test_an_entity_with_a_lone_surrogate_is_refused_with_a_sentence(tmp_path, record):
    with pytest.raises(SourceError, match="not Unicode"):
        build_toy(tmp_path, all=[*BOTH, record])


def test_a_lone_surrogate_finds_nothing_and_breaks_nothing(tmp_path):
    with opened(tmp_path, Triple("\ud800", "mentions", "a"), Redirect("\ud800", "nobody")) as kb:
        assert "\ud800" not in kb
        assert kb.get("\ud800") is None
        assert len(kb.candidates("\ud800")) == 0
        assert len(kb.candidates("\ud800" * 600)) == 0
        assert kb.candidates("name\ud800").ids.tolist() == []


def test_an_alias_with_a_lone_surrogate_is_kept_or_refused_with_a_sentence(tmp_path):
    for surface in ("\ud800", "\ud800A", "two \ud800", "\ud800 two"):
        try:
            with opened(tmp_path, Alias(surface, "b", 1)) as kb:
                assert kb.candidates(surface).ids.tolist() == [1]
                assert list(kb.surfaces())
        except SourceError as error:
            assert "not Unicode" in str(error)


@pytest.mark.parametrize("count", [1, 2, 62, 63, 64, 65, 200])
def test_an_alias_of_many_words_is_found(tmp_path, count):
    surface = " ".join(f"w{number}" for number in range(count))
    with opened(tmp_path, Alias(surface, "b", 1)) as kb:
        assert kb.candidates(surface).ids.tolist() == [1]
        assert kb.candidates(surface.upper()).ids.tolist() == [1]


def test_an_alias_of_more_than_a_thousand_entities_lists_them_best_first(tmp_path):
    many = 1500
    records = [
        record
        for n in range(many)
        for record in (Entity(f"e{n}"), Alias("x", f"e{n}", float((n * 7919) % many)))
    ]
    with opened(tmp_path, *records) as kb:
        found = kb.candidates("x")
        assert len(found) == many
        counts = [((int(number) - 2) * 7919) % many for number in found.ids]
        assert counts == sorted(counts, reverse=True)
        assert found.priors.sum() == pytest.approx(1, abs=1e-4)
        assert len(kb.candidates("x", k=10)) == 10


def test_the_spelling_decides_half_of_the_prior(tmp_path):
    aliases = Alias("turkey", "a", 3), Alias("Turkey", "b", 1)
    with opened(tmp_path, *aliases) as kb:
        assert kb.candidates("turkey").ids.tolist() == [0, 1]
        assert kb.candidates("turkey").priors.tolist() == [0.875, 0.125]
        assert kb.candidates("Turkey").ids.tolist() == [1, 0]
        assert kb.candidates("TURKEY").priors.tolist() == [0.75, 0.25]
        assert kb.candidates("Turkey", prefer_case=False).ids.tolist() == [0, 1]


def test_a_spelling_that_nobody_counted_still_prefers_what_it_was_seen_with(tmp_path):
    with opened(tmp_path, Alias("apple", "a", 5), Alias("Apple", "b", 0)) as kb:
        found = kb.candidates("Apple")
        assert sorted(found.priors.tolist()) == [0.5, 0.5]
        assert kb.candidates("apple").priors.tolist() == [1, 0]


def test_a_spelling_that_nobody_counted_is_no_number_that_is_none(tmp_path):
    # Seen in this spelling with one entity, which has its count from another spelling.
    with opened(tmp_path, Alias("apple", "a", 5), Alias("apple", "b", 0), Alias("Apple", "a", 0)) as kb:
        assert kb.candidates("Apple").priors.tolist() == [1, 0]
