"""What sets two knowledge bases apart: every kind of difference, and nothing that does not count."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity, Form, Record, Redirect, Triple
from kgkit.building.records import StoredRecords
from kgkit.errors import NotThere
from kgkit.kb import Difference, differences
from tests.cli_helpers import run
from tests.small_kb import Given, build

LONG = "llanfair" * 100  # 800 bytes: stored under a digest
BASE: Sequence[Record] = (
    Entity("apple", "apple", "A fruit.", "thing", "n"),
    Entity("acme", "Acme", kind="company"),
    Entity("fruit", "fruit", kind="thing", pos="n"),
    Alias("apple", "apple", 6),
    Alias("Apple", "acme", 2),
    Triple("apple", "is_a", "fruit"),
    Triple("acme", "sells", "apple"),
    Redirect("apples", "apple"),
    Form("geese", "goose", "n"),
)


def without(*left_out: Record) -> list[Record]:
    return [record for record in BASE if record not in left_out]


def bare(entity: Entity) -> Entity:
    """Return *entity* as a difference tells it: without its id."""
    return Entity(*(getattr(entity, name) for name in Entity.__struct_fields__[:-1]))


@contextmanager
def both(
    folder: Path,
    old: Sequence[Record],
    new: Sequence[Record],
    inverses: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    smoothing: tuple[float, float] = (0.0, 0.0),
):
    """Give two KBs of these records."""
    with (
        build(folder, old, name="old", inverses=inverses[0], smoothing=smoothing[0]) as before,
        build(folder, new, name="new", inverses=inverses[1], smoothing=smoothing[1]) as after,
    ):
        yield before, after


def told(folder: Path, old: Sequence[Record], new: Sequence[Record], **settings) -> list[Difference]:
    with both(folder, old, new, **settings) as (before, after):
        found = list(differences(before, after))
        mirrored = sorted(
            map(repr, (Difference(found.new, found.old) for found in differences(after, before)))
        )
        assert mirrored == sorted(map(repr, found))
        return found


# -- each kind of difference ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("record", "what"),
    [
        (Entity("plum", "plum", "Blue."), "entity"),
        (Alias("Apple", "apple", 3), "alias"),
        (Alias("Malus", "apple"), "alias"),
        (Triple("acme", "near", "fruit"), "triple"),
        (Triple("fruit", "sells", "acme"), "triple"),
        (Redirect("acme_inc", "acme"), "redirect"),
        (Form("mice", "mouse", "n"), "form"),
        (Form("geese", "goose", "v"), "form"),
    ],
    ids=repr,
)
def test_a_record_that_one_of_them_has_is_added_or_removed(tmp_path, record, what):
    [added] = told(tmp_path, BASE, [*BASE, record])
    assert added == (None, bare(record) if isinstance(record, Entity) else record)
    assert (added.change, added.what) == ("added", what)
    [removed] = told(tmp_path, [*BASE, record], BASE)
    assert (removed.old, removed.new) == (added.new, None)
    assert (removed.change, removed.what) == ("removed", what)


@pytest.mark.parametrize(
    ("place", "record", "what"),
    [
        (0, Entity("apple", "Apfel", "A fruit.", "thing", "n"), "entity"),
        (0, Entity("apple", "apple", "", "thing", "n"), "entity"),
        (0, Entity("apple", "apple", "A fruit.", "plant", "n"), "entity"),
        (0, Entity("apple", "apple", "A fruit.", "thing", "v"), "entity"),
        (0, Entity("apple", "apple", "A fruit.", "thing", "n", ("food",)), "entity"),
        (0, Entity("apple", "apple", "A fruit.", "thing", "n", (), {"colour": "red"}), "entity"),
        (3, Alias("apple", "apple", 7), "alias"),
        (3, Alias("apple", "apple", 6, "fruit"), "alias"),
        (7, Redirect("apples", "fruit"), "redirect"),
    ],
)
def test_a_record_that_they_have_differently_is_changed(tmp_path, place, record, what):
    [found] = told(tmp_path, BASE, [*BASE[:place], record, *BASE[place + 1 :]])
    assert (found.change, found.what) == ("changed", what)
    assert (found.old, found.new) == (BASE[place], record)


def test_aliases_are_the_same_by_their_surfaces_as_written_however_they_are_folded(tmp_path):
    entities = [Entity("igdir", "Iğdır"), Entity("other", "other")]
    common = [Alias("Iğdır", "igdir", 4), Alias("INDIA", "other"), Alias("izmir", "other"), *entities]
    with build(tmp_path, [*common, Alias("IT", "igdir", 2), Alias("I", "igdir")], name="old") as old:
        records = [*common, Alias("IT", "igdir", 3), Alias("İ", "igdir")]
        kgkit.build_kb(Given(records, {}, 0.0, "alias"), tmp_path, name="new", language="tr", home=tmp_path)
        with kgkit.open_kb("new", home=tmp_path) as new:
            expected = {
                (Alias("IT", "igdir", 2), Alias("IT", "igdir", 3)),
                (Alias("I", "igdir"), None),
                (None, Alias("İ", "igdir")),
            }
            assert {(each.old, each.new) for each in differences(old, new)} == expected
            assert {(each.new, each.old) for each in differences(new, old)} == expected


def test_names_too_long_for_a_key_are_told_as_well(tmp_path):
    old = [*BASE, Entity(LONG, "long"), Alias(LONG, LONG, 2), Alias(f"{LONG} too", "apple", 1)]
    new = [*BASE, Entity(LONG, "Long"), Alias(LONG, LONG, 3), Alias(f"{LONG} also", "apple", 1)]
    assert sorted(told(tmp_path, old, new), key=repr) == sorted(
        [
            Difference(Entity(LONG, "long"), Entity(LONG, "Long")),
            Difference(Alias(LONG, LONG, 2.0), Alias(LONG, LONG, 3.0)),
            Difference(Alias(f"{LONG} too", "apple", 1.0), None),
            Difference(None, Alias(f"{LONG} also", "apple", 1.0)),
        ],
        key=repr,
    )


def test_a_redirect_too_long_for_a_key_is_told_by_its_digest(tmp_path):
    [found] = told(tmp_path, BASE, [*BASE, Redirect(LONG, "apple")])
    assert isinstance(found.new, Redirect)
    assert found.new.target == "apple"
    assert found.new.source.startswith("ff")
    assert len(found.new.source) == 66


# -- what does not count --------------------------------------------------------------


@pytest.mark.parametrize("count", [1_000_000, 123_456])
def test_large_counts_are_equal_though_they_are_kept_as_parts_of_priors(tmp_path, count):
    records = [*BASE, Alias("much", "apple", count), Alias("much", "acme", 1), Alias("Much", "acme", 7)]
    assert told(tmp_path, records, records, smoothing=(0.0, 1.0)) == []


# -- any KBs --------------------------------------------------------------------------

KEYS = [f"e{number}" for number in range(6)]


@st.composite
def kbs(draw):
    """Records of some KB: entities in any order, and what may be said of them."""
    texts = st.sampled_from(["", "a", "B", "straße"])
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    entities = [Entity(key, draw(texts), kind=draw(texts), pos=draw(st.sampled_from("nv"))) for key in keys]
    ends = st.sampled_from(keys)
    surfaces = st.sampled_from(["dog", "Dog", "big dog", "苹果", "x", LONG])
    others = st.one_of(
        st.builds(Alias, surfaces, ends, st.integers(0, 50).map(float), st.none() | ends),
        st.builds(Triple, ends, st.sampled_from(["is_a", "has", "near", "meets"]), ends),
        st.builds(Redirect, st.sampled_from(["r1", "r2", "e1"]), ends),
        st.builds(Form, st.sampled_from(["geese", "mice"]), st.sampled_from(["x", "y"]), st.just("n")),
    )
    inverses = draw(st.sampled_from([{}, {"is_a": "has"}, {"is_a": "has", "near": "near"}]))
    return [*entities, *draw(st.lists(others, max_size=15))], inverses, draw(st.sampled_from([0.0, 1.0]))


def as_asked(kb) -> set[tuple[str, str, str]]:
    """Return every fact that *kb* tells, in every way it tells it."""
    return {
        (entity.key, relation, other.key)
        for entity in kb
        for relation in {"is_a", "has", "near", "meets"} & set(kb.relations)
        for other in kb.neighbors(entity.key, relation)
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kbs(), kbs())
def test_differences_are_those_of_the_slow_twin_and_mirror_each_other(tmp_path_factory, one, other):
    folder = tmp_path_factory.mktemp("twins")
    with both(folder, one[0], other[0], inverses=(one[1], other[1]), smoothing=(one[2], other[2])) as (
        old,
        new,
    ):
        found = list(differences(old, new))
        mirrored = [Difference(back.new, back.old) for back in differences(new, old)]
        assert sorted(map(repr, mirrored)) == sorted(map(repr, found))

        records = StoredRecords(old), StoredRecords(new)
        for what, identity in (
            ("entity", lambda entity: entity.key),
            ("alias", lambda alias: (alias.surface, alias.key)),
            ("redirect", lambda redirect: redirect.source),
            ("form", repr),
        ):
            sides = [{identity(record): record for record in all_of(kb, what)} for kb in records]
            assert {repr(f[:2]) for f in found if f.what == what} == changes(*sides)
        facts = as_asked(old), as_asked(new)
        for f in found:
            if f.what == "triple":
                triple = f.old or f.new
                asked = triple.subject, triple.relation, triple.object
                assert asked in facts[f.old is None]
                assert asked not in facts[f.old is not None]
        triples = [f for f in found if f.what == "triple"]
        assert facts[0] != facts[1] or not triples
        if one[1] == other[1]:  # the name of an inverse is a way to ask, and no triple
            assert facts[0] == facts[1] or triples


def all_of(kb: StoredRecords, what: str) -> list[Record]:
    """Return the records of one sort, entities without their ids."""
    match what:
        case "entity":
            return [bare(entity) for entity in kb.entities()]
        case "alias":
            return [*kb.aliases()]
        case "redirect":
            return [*kb.redirects()]
    return [*kb.forms()]


def changes(old: Mapping[Any, Record], new: Mapping[Any, Record]) -> set[str]:
    """Return what is in one of two mappings only, or differs."""
    return {repr((old.get(key), new.get(key))) for key in {**old, **new} if old.get(key) != new.get(key)}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kbs(), st.randoms())
def test_a_kb_built_again_from_its_own_records_in_any_order_has_no_differences(tmp_path_factory, one, chance):
    folder = tmp_path_factory.mktemp("again")
    records, inverses, smoothing = one
    with build(folder, records, name="old", inverses=inverses, smoothing=smoothing) as old:
        again = list(StoredRecords(old).everything())
        chance.shuffle(again)
        properties = StoredRecords(old).properties
        with build(
            folder, again, name="new", inverses=properties.inverses, smoothing=properties.smoothing
        ) as new:
            assert list(differences(old, new)) == []
            assert list(differences(new, old)) == []


def test_differences_are_had_by_name_and_by_handle(tmp_path):
    one = [Entity("a", "a"), Alias("a", "a")]
    with build(tmp_path, one, name="old") as old:
        build(tmp_path, [*one, Entity("b", "b")], name="new").close()
        assert [each.new.key for each in kgkit.diff("old", "new", home=tmp_path)] == ["b"]
        assert kgkit.diff(old, "old", home=tmp_path) == []
        assert old["a"].label == "a"  # a handle that was given stays open


def test_one_name_compares_the_published_build_with_the_one_before(tmp_path):
    one = [Entity("a", "a"), Alias("a", "a")]
    build(tmp_path, one, name="mine").close()
    with pytest.raises(NotThere, match="mine@"):
        kgkit.diff("mine", home=tmp_path)
    (tmp_path / "more.jsonl").write_text('{"key": "b", "label": "b"}\n')
    kgkit.add_to_kb("mine", tmp_path / "more.jsonl", home=tmp_path)
    found = {(each.change, each.what) for each in kgkit.diff("mine", home=tmp_path)}
    assert found == {("added", "entity"), ("added", "alias")}
    assert "+ entity b: b" in run("kb", "diff", "mine", "--home", tmp_path).out
