"""`kb.search`: keys, surfaces and labels; exactly, by the beginning, by a part."""

import pytest

from kgkit.building import Alias, Entity, Redirect
from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.kb.search import suggest_keys
from tests.small_kb import ENDLESS, build, surfaces_kb

RECORDS = [
    Entity("dog", "Dog", kind="page"),
    Entity("hot_dog", "Hot dog", kind="page"),
    Entity("Dogger_Bank", "a bank", kind="place"),
    Entity("cat", "the enemy of dogs", kind="page"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot_dog", 1),
    Alias("dogs of war", "Dogger_Bank", 1),
    Alias("prairie dog", "cat"),
    Redirect("hound", "dog"),
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("search"), RECORDS) as opened:
        yield opened


def found(kb, text, **settings):
    return [(result.entity.key, result.field, result.match) for result in kb.search(text, **settings)]


def test_exact_matches_come_first_then_beginnings_then_parts(kb):
    assert found(kb, "dog") == [
        ("dog", "key", "exact"),
        ("hot_dog", "surface", "exact"),
        ("Dogger_Bank", "surface", "prefix"),
        ("cat", "surface", "part"),
    ]
    assert found(kb, "dog", scan=False)[-1] == ("Dogger_Bank", "surface", "prefix")


def test_case_and_spaces_are_folded_and_redirects_followed(kb):
    assert found(kb, "DOGS  OF", k=1) == [("Dogger_Bank", "surface", "prefix")]
    assert found(kb, "Dogger B") == [("Dogger_Bank", "key", "prefix")]
    assert found(kb, "hot dog", k=1) == [("hot_dog", "key", "exact")]
    assert found(kb, "hound", k=1) == [("dog", "key", "exact")]


def test_a_label_that_is_no_surface_is_found_by_a_part(kb):
    [result] = kb.search("enemy of")
    assert (result.entity.key, result.field, result.text) == ("cat", "label", "the enemy of dogs")


def test_results_are_limited_by_number_and_kind(kb):
    assert found(kb, "dog", kind="place") == [("Dogger_Bank", "surface", "prefix")]
    assert len(kb.search("dog", k=2)) == 2
    assert kb.search("zebra") == []
    with pytest.raises(UnknownName, match="kind of entity"):
        kb.search("dog", kind="nonsense")
    for wrong in ({"text": " "}, {"text": "dog", "k": 0}):
        with pytest.raises(UsageError):
            kb.search(**wrong)


def test_texts_of_every_script_and_length_are_searched_for(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        assert found(kb, "北京", k=2) == [
            ("Beijing", "surface", "exact"),
            ("Peking_University", "surface", "prefix"),
        ]
        assert found(kb, ENDLESS, k=1) == [("Endless", "surface", "exact")]
        assert kb.search("\udc80") == [] and kb.search("llanfair" * 40, k=1) == []


def test_a_search_ends_with_the_results_not_with_the_knowledge_base(kb, monkeypatch):
    read = []
    items = kb.store.items
    monkeypatch.setattr(kb.store, "items", lambda *of: read.append(of) or items(*of))
    assert kb.search("dog", k=3) and ("entities",) not in read and ("aliases",) not in read
    assert kb.search("dog", k=9) and ("entities",) in read


def test_what_is_no_text_is_refused(kb):
    for value in (None, 5, b"dog"):
        with pytest.raises(TypeError, match=r"NoneType|int|bytes"):
            kb.search(value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kestrle.n.01", "kestrel.n.01"),  # two letters in the wrong order
        ("kestrell.n.01", "kestrel.n.01"),
        ("kestral.n.01", "kestrel.n.01"),
        ("kestrl.n.01", "kestrel.n.01"),
        ("estrel.n.01", "kestrel.n.01"),
        ("kestrel.n.02", "kestrel.n.01"),
    ],
)
def test_a_key_with_one_typing_error_suggests_the_key_that_it_was(tmp_path, typed, meant):
    records = [Entity("kestrel.n.01", "hawk"), Entity("wop.n.01", "wop"), Entity("falcon", "falcon")]
    with build(tmp_path, records) as kb:
        assert suggest_keys(kb, typed)[0] == meant
        with pytest.raises(UnknownEntity, match=rf"did you mean {meant}\?"):
            str(kb[typed])


def test_typing_errors_suggest_swapped_letters_first_and_surfaces_before_all(tmp_path):
    records = [Entity("dog.n.01", "hound"), Entity("go.n.01", "game"), Entity("a"), Alias("dgo", "a")]
    with build(tmp_path, records) as kb:
        assert suggest_keys(kb, "dgo.n.01") == ["a"]
    with build(tmp_path / "other", records[:2]) as kb:
        assert suggest_keys(kb, "dgo.n.01") == ["dog.n.01", "go.n.01"]


def test_a_very_long_key_is_not_edited(kb, monkeypatch):
    asked = []
    known = kb.store.id_of
    monkeypatch.setattr(kb.store, "id_of", lambda key: asked.append(key) or known(key))
    suggest_keys(kb, "x" * 65)
    assert asked == []
    suggest_keys(kb, "x" * 10)
    assert 0 < len(asked) < 1_000
