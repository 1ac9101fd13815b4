"""Adding to a published KB: what it comes to, that ids stay, and that nothing is lost when it fails."""

import json

import lmdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity, Form, Redirect, Triple
from kgkit.building.add import add_to_kb
from kgkit.errors import DamagedKB, KBBusy, NotThere, SourceError, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, differences
from kgkit.kb.lineage import ancestry
from kgkit.store import Staging, StoreEditor, StoreReader, verify
from tests.small_kb import Given, build, fold
from tests.toys import listing

BASE = (
    Entity("apple", "apple", "A fruit.", "thing", "n"),
    Entity("acme", "Acme", kind="company"),
    Entity("fruit", "fruit", kind="thing", pos="n"),
    Alias("apple", "apple", 6),
    Alias("Apple", "acme", 2),
    Alias("Acme", "acme", 3),
    Alias("fruit", "fruit"),
    Alias("big red fruit", "apple", 1),
    Triple("apple", "is_a", "fruit"),
    Triple("apple", "near", "acme"),
    Triple("acme", "near", "apple"),
    Triple("acme", "sells", "apple"),
    Redirect("apples", "apple"),
    Form("geese", "goose", "n"),
)
INVERSES = {"is_a": "has_instance", "near": "near"}
MORE = (
    Entity("pear", "pear", "Another fruit.", "thing", "n"),
    Entity("run", "run", kind="deed", pos="v"),
    Alias("pear", "pear", 4),
    Alias("apple", "pear", 1),
    Alias("APPLE", "acme", 5),
    Alias("big green pear tree", "pear"),
    Triple("pear", "is_a", "fruit"),
    Triple("fruit", "has_instance", "pear"),  # the same, from the other end
    Triple("acme", "near", "pear"),
    Triple("acme", "sells", "pears"),
    Triple("pear", "grows_on", "apple"),
    Redirect("pears", "pear"),
    Form("pearen", "pear", "n"),
)


def source(tmp_path, name="more.txt"):
    path = tmp_path / name
    path.write_text(name)
    return path


class Read(Given):
    """Yields the records it is given, and says it has read its source."""

    def look(self, source):
        return super().look(source)._replace(read=[source])


def base(tmp_path, records=BASE, *, inverses=INVERSES, smoothing=0.0):
    build(tmp_path, records, name="base", inverses=inverses, smoothing=smoothing).close()


def add(tmp_path, records, *, name="more.txt", inverses=None):
    return add_to_kb(
        "base", source(tmp_path, name), builder=Read(records, inverses or {}, 0.0, "alias"), home=tmp_path
    )


def opened(tmp_path, name="base"):
    return kgkit.open_kb(name, home=tmp_path)


# -- what it comes to -----------------------------------------------------------------


def test_what_was_added_is_there_and_what_was_there_is_as_it_was(tmp_path):
    base(tmp_path)
    add(tmp_path, MORE)
    with opened(tmp_path) as kb:
        assert [entity.key for entity in kb] == ["apple", "acme", "fruit", "pear", "run"]
        assert kb["pears"].id == kb["pear"].id == 3
        candidates = [(kb.key(entity), round(prior * 14)) for entity, _, prior in kb.candidates("aPPle")]
        assert candidates == [("acme", 7), ("apple", 6), ("pear", 1)]
        assert {entity.key for entity in kb.neighbors("fruit", "has_instance")} == {"apple", "pear"}
        assert {entity.key for entity in kb.neighbors("pear", "near")} == {"acme"}
        assert [triple.subject for triple in kb.match(relation="grows_on")] == ["pear"]
        assert [entity.key for entity in kb.neighbors("apple", "grows_on", "in")] == ["pear"]
        assert {entity.key for entity in kb.neighbors("acme", "sells")} == {"apple", "pear"}
        assert kb.store.lemmas("pearen") == [("pear", "n")]
        assert kb.store.classes == ["n", "v"]
        assert kb.has_pos(np.array([0, 1, 3, 4]), "n").tolist() == [True, False, True, False]


def test_the_build_is_sound_and_says_what_it_extends(tmp_path):
    base(tmp_path)
    with opened(tmp_path) as kb:
        first = kb.build
    built = add(tmp_path, MORE)
    assert verify(built.path) == []
    assert built.manifest.base == first
    assert [info.name for info in built.manifest.added] == ["Small"]
    assert built.manifest.added[0].sha256
    assert built.manifest.source.name == "Small"
    assert (built.manifest.entities, built.manifest.triples) == (5, 7)
    assert built.manifest.counts.entities == {"thing": 3, "company": 1, "deed": 1}
    assert built.manifest.counts.relations == {"is_a": 2, "near": 2, "sells": 2, "grows_on": 1}
    assert built.manifest.counts.redirects == 2
    assert built.manifest.counts.forms == 2


def test_a_build_names_all_that_it_extends_though_they_are_gone(tmp_path):
    base(tmp_path)
    with opened(tmp_path) as kb:
        builds = [kb.build]
    for number in range(4):
        built = add(tmp_path, [Entity(f"new{number}", "new")], name=f"{number}.txt")
        builds.insert(0, built.build)
        assert built.manifest.bases == tuple(builds[1:])
    assert not (built.path.parent / builds[-1]).exists(), "two builds stay"
    with opened(tmp_path) as kb:
        assert ancestry(kb) == builds


def test_of_builds_of_older_versions_those_on_disk_are_known(tmp_path):
    base(tmp_path)
    for number in range(3):
        built = add(tmp_path, [Entity(f"new{number}", "new")], name=f"{number}.txt")
    with opened(tmp_path) as kb:
        builds = ancestry(kb)
    for folder in (built.path, built.path.parent / builds[1]):
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["bases"]
        (folder / "manifest.json").write_text(json.dumps(manifest))
    with opened(tmp_path) as kb:
        assert ancestry(kb) == builds[:3]
    newer = add(tmp_path, [Entity("last", "last")], name="last.txt")
    assert newer.manifest.bases == tuple(builds[:3])
    with opened(tmp_path) as kb:
        assert ancestry(kb) == [newer.build, *builds[:3]]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"base": "a\0b", "bases": []}, r"'a\\x00b' among its bases is no name of a build"),
        ({"bases": ["../../elsewhere"]}, "'../../elsewhere' among its bases is no name of a build"),
        ({"bases": [""]}, "'' among its bases is no name of a build"),
        ({"bases": ["b"] * 10_001}, "bases has 10,001 builds, and 10,000 at most are expected"),
    ],
)
def test_bases_that_are_no_builds_are_damage(tmp_path, change, wrong):
    base(tmp_path)
    path = add(tmp_path, MORE).path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DamagedKB, match=wrong):
        opened(tmp_path)


def test_texts_are_linked_to_what_was_added_at_once(tmp_path):
    base(tmp_path)
    add(tmp_path, MORE)
    found = kgkit.link("A Big Green Pear Tree by the Acme.", kb="base", home=tmp_path)
    assert [(link.text, link.entity) for link in found.links] == [
        ("Big Green Pear Tree", "pear"), ("Acme", "acme"),
    ]  # fmt: skip


def test_adding_twice_the_same_source_changes_nothing(tmp_path):
    base(tmp_path)
    first = add(tmp_path, MORE)
    before = listing(first.path)
    assert add(tmp_path, MORE).build == first.build
    assert listing(first.path) == before


def test_a_source_that_says_nothing_new_changes_nothing(tmp_path):
    base(tmp_path)
    with opened(tmp_path) as kb:
        first = kb.build
    known = [Entity("apple"), Triple("apple", "is_a", "fruit"), Triple("fruit", "has_instance", "apple"),
             Alias("fruit", "fruit"), Redirect("apples", "apple"), Form("geese", "goose", "n")]  # fmt: skip
    assert add(tmp_path, known).build == first


@pytest.mark.parametrize("which", ["the KB", "its build", "its base"])
def test_a_kb_has_all_of_itself_and_of_its_base_already(tmp_path, which):
    base(tmp_path)
    with opened(tmp_path) as kb:
        first = kb.build
    built = add(tmp_path, MORE)
    itself = {"the KB": "kb:base", "its build": f"kb:base@{built.build}", "its base": f"kb:base@{first}"}[
        which
    ]
    assert add_to_kb("base", itself, home=tmp_path).build == built.build


def test_sources_of_which_no_file_is_read_are_told_apart_by_their_paths(tmp_path):
    first, other = (source(tmp_path, name) for name in ("first.txt", "other.txt"))
    pears, plums = (Given((Entity(key), Alias(key, key)), {}, 0.0, "alias") for key in ("pear", "plum"))
    kgkit.build_kb(pears, first, name="base", home=tmp_path)
    assert add_to_kb("base", other, builder=plums, home=tmp_path).manifest.entities == 2
    assert len(add_to_kb("base", other, builder=plums, home=tmp_path).manifest.added) == 1


def test_a_kb_brings_its_facts_in_both_directions_to_one_that_has_one_of_them_alone(tmp_path):
    base(tmp_path, [*BASE, Triple("acme", "made_by", "fruit")])
    other = [Entity("smith"), Entity("anvil"), Triple("smith", "makes", "anvil")]
    build(tmp_path, other, name="other", inverses={"makes": "made_by"}).close()
    built = add_to_kb("base", "kb:other", home=tmp_path)
    assert verify(built.path) == []
    with opened(tmp_path) as kb:
        assert [triple.subject for triple in kb.match(relation="made_by")] == ["acme", "anvil"]
        assert [triple.subject for triple in kb.match(relation="makes")] == ["smith"]


def test_a_fact_that_is_told_from_both_ends_is_not_one_that_is_written_twice(tmp_path):
    base(tmp_path)
    both = [Triple("acme", "is_a", "fruit"), Triple("fruit", "has_instance", "acme"),
            Triple("fruit", "near", "acme"), Triple("acme", "near", "fruit")]  # fmt: skip
    built = add(tmp_path, both)
    assert (dict(built.dropped), built.manifest.counts.relations) == ({}, {"is_a": 2, "near": 2, "sells": 1})
    assert add(tmp_path, both[:1], name="again.txt").dropped == {"triple written twice": 1}


def test_two_additions_follow_each_other_and_the_order_of_ids_is_that_of_arrival(tmp_path):
    base(tmp_path)
    add(tmp_path, MORE)
    built = add(
        tmp_path,
        [Entity("plum"), Alias("plum", "plum"), Triple("plum", "grows_on", "pear")],
        name="third.txt",
    )
    assert verify(built.path) == []
    assert len(built.manifest.added) == 2
    with opened(tmp_path) as kb:
        assert kb["plum"].id == 5
        assert [triple.subject for triple in kb.match(relation="grows_on")] == ["pear", "plum"]


def test_an_entity_that_is_there_may_be_named_again_to_give_it_aliases(tmp_path):
    base(tmp_path)
    add(tmp_path, [Entity("acme"), Entity("apple", "apple", "A fruit."), Alias("The Acme Company", "acme")])
    with opened(tmp_path) as kb:
        assert len(kb) == 3
        assert kb.candidates("the acme company").ids.tolist() == [1]
        assert kb["apple"].pos == "n"


def test_a_new_name_has_none_of_the_occurrences_of_one_that_is_also_written_so(tmp_path):
    records = [{"key": "dvořák", "label": "Dvořák"}, {"occurrences": 80, "linked": 40, "surface": "Dvořák"}]
    kgkit.build_kb("jsonl", records, name="base", home=tmp_path)
    more = [
        {"key": "town", "label": "Dvorak"},
        {"occurrences": 4, "linked": 2, "surface": "Dvorak"},
    ]
    kgkit.add_to_kb("base", more, home=tmp_path)
    with kgkit.open_kb("base", home=tmp_path) as kb:
        assert kb.store.occurrences("dvorak") == (4, 2)
        assert kb.store.occurrences("dvořák") == (80, 40)
    kgkit.add_to_kb("base", [{"occurrences": 6, "linked": 1, "surface": "Dvorak"}], home=tmp_path)
    with kgkit.open_kb("base", home=tmp_path) as kb:
        assert kb.store.occurrences("dvorak") == (10, 3)


def test_an_entity_takes_over_a_key_that_was_a_redirect(tmp_path):
    base(tmp_path)
    built = add(tmp_path, [Entity("apples", "apples"), Redirect("apfel", "apples")])
    assert verify(built.path) == []
    with opened(tmp_path) as kb:
        assert kb["apples"].id == 3
        assert kb["apfel"].id == 3
    assert built.manifest.counts.redirects == 1


def test_what_cannot_be_kept_is_counted(tmp_path):
    base(tmp_path)
    built = add(
        tmp_path,
        [
            Alias("ghost", "nobody"),
            Alias("", "apple"),
            Alias("odd", "apple", 1, sense="nobody"),
            Triple("apple", "is_a", "nobody"),
            Redirect("acme", "apple"),
            Redirect("apples", "fruit"),
            Redirect("lost", "nobody"),
            Redirect("ring", "rong"),
            Redirect("rong", "ring"),
        ],
    )
    assert built.manifest.counts.dropped == {
        "alias of no entity": 1,
        "alias without a character": 1,
        "redirect in a loop": 2,
        "redirect of an entity's own key": 1,
        "redirect to no entity": 1,
        "second redirect of a key": 1,
        "sense of an alias that is no entity": 1,
        "triple with an unknown end": 1,
    }


def test_names_that_are_too_long_for_a_key_are_added_to_as_well(tmp_path):
    long = "llanfair" * 100
    base(tmp_path, [*BASE, Entity(long, "long"), Alias(long, long, 2)])
    built = add(
        tmp_path,
        [
            Alias(long, "apple", 1),
            Triple(long, "is_a", "fruit"),
            Entity(f"{long}2"),
            Redirect(f"{long}3", long),
        ],
    )
    assert verify(built.path) == []
    with opened(tmp_path) as kb:
        assert [round(float(prior), 3) for _, _, prior in kb.candidates(long)] == [0.667, 0.333]
        assert kb[f"{long}3"].key == long


# -- ids and readers ------------------------------------------------------------------


# -- the slow twin --------------------------------------------------------------------

KEYS = [f"e{number}" for number in range(12)]
SURFACES = ["dog", "Dog", "DOG", "big dog", "Big Dog", "x", "straße", "STRASSE", "苹果", "big dog house"]


def records(keys, known=()):
    """Strategies of records that may speak of *keys*, and of *known* besides."""
    ends = st.sampled_from([*keys, *known, "nobody"])
    senses = st.one_of(st.none(), ends)
    counts = st.one_of(st.integers(0, 1000).map(float), st.just(0.5))
    return st.lists(
        st.one_of(
            st.builds(Alias, st.sampled_from(SURFACES), ends, counts, senses),
            st.builds(Triple, ends, st.sampled_from(["is_a", "near", "sells", "meets"]), ends),
            st.builds(
                Form,
                st.sampled_from(["geese", "mice", "big mice"]),
                st.sampled_from(["x", "y"]),
                st.just("n"),
            ),
        ),
        max_size=25,
    )


@st.composite
def kbs(draw):
    there = draw(st.integers(1, len(KEYS) - 1))
    kinds = st.sampled_from(["", "page", "word"])
    entities = [
        Entity(key, key.upper(), kind=draw(kinds), pos=draw(st.sampled_from(["", "n", "v"]))) for key in KEYS
    ]
    redirect = st.builds(Redirect, st.sampled_from(["r1", "r2", "r3"]), st.sampled_from([*KEYS[:there]]))
    old = [*entities[:there], *draw(records(KEYS[:there])), *draw(st.lists(redirect, max_size=3))]
    new = [*entities[there:], *draw(records(KEYS, ["r1", "r2"]))]
    return old, new, draw(st.sampled_from([0.0, 1.0]))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kbs())
def test_adding_comes_to_the_same_as_building_all_at_once(tmp_path_factory, found):
    old, new, smoothing = found
    folder = tmp_path_factory.mktemp("twins")
    inverses = {"is_a": "has_instance"}
    base(folder, old, inverses=inverses, smoothing=smoothing)
    built = add(folder, new)
    assert verify(built.path) == []
    whole = build(folder, [*old, *new], name="whole", inverses=inverses, smoothing=smoothing)
    with whole, opened(folder) as kb:
        assert [entity.key for entity in kb] == [entity.key for entity in whole]
        assert list(differences(kb, whole)) == []
        assert kb.manifest.aliases == whole.manifest.aliases
        assert kb.manifest.alias_rows == whole.manifest.alias_rows
        for surface in SURFACES:
            first = fold(surface.split()[0])
            assert_alike(kb, whole, surface)
            assert kb.store.starts(first) == whole.store.starts(first)


def assert_alike(kb, whole, surface):
    one, other = kb.candidates(surface), whole.candidates(surface)
    assert dict(zip(one.ids.tolist(), one.senses.tolist(), strict=True)) == dict(
        zip(other.ids.tolist(), other.senses.tolist(), strict=True)
    )
    np.testing.assert_allclose(sorted(one.priors), sorted(other.priors), rtol=1e-4, atol=1e-5)


# -- failures -------------------------------------------------------------------------


def refused(tmp_path, records, error, match):
    base(tmp_path)
    with opened(tmp_path) as kb:
        first = kb.build
    with pytest.raises(error, match=match):
        add(tmp_path, records)
    kb_home = Home.find(tmp_path).kb("base")
    assert kb_home.published() == first
    assert kb_home.build_names() == [first]
    assert [path.name for path in kb_home.builds.iterdir()] == [first]


def test_an_entity_that_contradicts_the_kb_is_refused(tmp_path):
    refused(
        tmp_path, [Entity("apple", "Apfel", "A fruit.")], SourceError, "'apple' already, with another label"
    )


def test_an_entity_that_comes_twice_is_refused(tmp_path):
    refused(tmp_path, [Entity("new"), Entity("new")], SourceError, "two entities have the key 'new'")


def test_a_negative_count_is_refused(tmp_path):
    refused(tmp_path, [Alias("apple", "apple", -1)], SourceError, "count -1.0")


def test_text_that_is_not_unicode_is_refused(tmp_path):
    refused(tmp_path, [Entity("new", "\ud800")], SourceError, "not Unicode")
    refused(tmp_path, [Entity("new", attributes={"a": 2**64})], SourceError, "an integer beyond 64 bits")


def test_a_kb_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(NotThere, match="no knowledge base 'base'"):
        add(tmp_path, MORE)
    assert not (tmp_path / "kbs").exists()


def test_one_build_cannot_be_added_to(tmp_path):
    base(tmp_path)
    with pytest.raises(UsageError, match="names one build"):
        add_to_kb("base@abc", source(tmp_path), builder=Read(MORE, {}, 0.0, "alias"), home=tmp_path)


def test_a_kb_that_is_being_built_is_busy(tmp_path):
    base(tmp_path)
    with Staging(Home.find(tmp_path).kb("base")), pytest.raises(KBBusy):
        add(tmp_path, MORE)


@pytest.mark.parametrize(
    ("place", "name"), [(StoreReader, "id_of"), (KnowledgeBase, "get"), (StoreEditor, "finish")]
)
def test_a_base_whose_rows_cannot_be_read_is_said_to_be_damaged(tmp_path, monkeypatch, place, name):
    def corrupted(*args, **options):
        raise lmdb.CorruptedError("Located page was wrong type")

    base(tmp_path)
    monkeypatch.setattr(place, name, corrupted)
    kb = Home.find(tmp_path).kb("base")
    before = kb.published()
    with pytest.raises(DamagedKB, match=f"base@{before}"):
        add(tmp_path, MORE)
    assert kb.published() == before
