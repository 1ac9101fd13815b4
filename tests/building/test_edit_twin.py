"""Edits beside builds of the changed file: a property test."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgkit.candidates import AliasGenerator
from kgkit.kb import differences
from tests.edit_toys import build, edit, opened

KEYS = [f"e{number}" for number in range(8)]
SURFACES = ["dog", "Dog", "DOG", "big dog", "Big Dog", "x", "straße", "STRASSE", "苹果", "big dog house"]
RELATIONS = ("is_a", "near", "sells")
INVERSES = {"is_a": "has_instance", "near": "near"}


@st.composite
def kbs(draw):
    """Draw a KB as dictionaries: entities by key, aliases, facts, redirects."""
    texts = st.sampled_from(["", "a", "b"])
    entities = {
        key: {"label": key.upper(), "description": draw(texts), "kind": draw(texts),
              "pos": draw(st.sampled_from(["", "n", "v"])), "attributes": draw(st.dictionaries(texts, texts))}
        for key in KEYS
    }  # fmt: skip
    senses = {key: draw(st.one_of(st.none(), st.sampled_from(KEYS))) for key in KEYS}  # of all aliases of it
    counts = st.one_of(st.integers(0, 1000).map(float), st.just(0.5))
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(SURFACES), st.sampled_from(KEYS)), unique=True, max_size=25)
    )
    aliases = {pair: (draw(counts), senses[pair[1]]) for pair in pairs}
    ends = st.sampled_from(KEYS)
    facts = draw(st.lists(st.tuples(ends, st.sampled_from(RELATIONS), ends), unique=True, max_size=25))
    redirects = draw(st.dictionaries(st.sampled_from(["r1", "r2", "r3"]), ends))
    return {"entities": entities, "aliases": aliases, "facts": facts, "redirects": redirects}


@st.composite
def edited_kbs(draw):
    """Draw a KB, edits of it, and the KB that the file of it would be after these edits."""
    kb = draw(kbs())
    after = {"entities": dict(kb["entities"]), "aliases": dict(kb["aliases"]), "facts": list(kb["facts"]),
             "redirects": dict(kb["redirects"])}  # fmt: skip
    edits = [{"kgkit": {"label_aliases": False}}]
    is_mutual = near_is_mutual(kb["facts"])
    retired = draw(st.sets(st.sampled_from(KEYS), max_size=3))
    for key in draw(st.permutations(KEYS)):
        if key in retired:
            edits.append({"key": key, "retire": True})
            del after["entities"][key]
            continue
        entity, change = dict(kb["entities"][key]), {"key": key}
        for field, values in (
            ("label", ["L", ""]),
            ("description", ["c", ""]),
            ("kind", ["k"]),
            ("pos", ["n", "w"]),
        ):
            if draw(st.booleans()):
                change[field] = entity[field] = draw(st.sampled_from(values))
        if draw(st.booleans()):
            named = draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, "z"])))
            change["attributes"] = named
            merged = {**entity["attributes"], **named}
            entity["attributes"] = {name: value for name, value in merged.items() if value is not None}
        own = [surface for surface, other in kb["aliases"] if other == key]
        removed = draw(st.lists(st.sampled_from(own), unique=True)) if own else []
        if removed:
            change["remove_aliases"] = removed
            for surface in removed:
                del after["aliases"][surface, key]
        added = [
            s for s in draw(st.lists(st.sampled_from(SURFACES), unique=True, max_size=2)) if s not in own
        ]
        if added:
            change["aliases"] = [{"text": surface, "count": 2} for surface in added]
            sense = next((kb["aliases"][surface, key][1] for surface in own), None)
            change["aliases"] = [
                alias | ({"sense": sense} if sense is not None else {}) for alias in change["aliases"]
            ]
            after["aliases"] |= {(surface, key): (2.0, sense) for surface in added}
        facts = [fact for fact in kb["facts"] if fact[0] == key]
        gone = draw(st.lists(st.sampled_from(facts), unique=True)) if facts else []
        if gone:
            change["remove_facts"] = [{"relation": relation, "object": end} for _, relation, end in gone]
            mirrored = [(end, relation, key) for _, relation, end in gone if relation == "near" and is_mutual]
            after["facts"] = [fact for fact in after["facts"] if fact not in [*gone, *mirrored]]
        after["entities"][key] = entity
        if len(change) > 1:
            edits.append(change)
    after["aliases"] = {
        (surface, key): (count, None if sense in retired else sense)
        for (surface, key), (count, sense) in after["aliases"].items()
        if key not in retired
    }
    after["facts"] = [fact for fact in after["facts"] if not retired & {fact[0], fact[2]}]
    after["redirects"] = {key: end for key, end in after["redirects"].items() if end not in retired}
    return kb, edits, after, draw(st.sampled_from([0.0, 1.0]))


def near_is_mutual(facts):
    """Say whether all facts of `near` are there in both directions; else the build keeps them as written."""
    near = {(subject, end) for subject, relation, end in facts if relation == "near"}
    return near == {(end, subject) for subject, end in near}


def as_lines(kb, smoothing):
    yield {"kgkit": {"inverses": INVERSES, "smoothing": smoothing, "label_aliases": False}}
    yield from ({"key": key, **entity} for key, entity in kb["entities"].items())
    for (surface, key), (count, sense) in kb["aliases"].items():
        yield {"alias": surface, "key": key, "count": count} | ({} if sense is None else {"sense": sense})
    yield from ({"subject": s, "relation": r, "object": o} for s, r, o in kb["facts"])
    yield from ({"redirect": key, "to": end} for key, end in kb["redirects"].items())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edited_kbs())
def test_edits_applied_once_or_twice_come_to_the_same_as_a_build_of_the_changed_file(tmp_path_factory, drawn):
    kb, edits, after, smoothing = drawn
    home = tmp_path_factory.mktemp("twins")
    build(home, as_lines(kb, smoothing))
    once = edit(home, *edits)
    assert edit(home, *edits).build == once.build
    build(home, as_lines(after, smoothing), "changed")
    with opened(home) as edited, opened(home, "changed") as changed:
        assert [*differences(edited, changed)] == [*differences(changed, edited)] == []
        assert [*edited.keys()] == [key for key in KEYS if key in after["entities"]]
        assert all(edited.id(key) == KEYS.index(key) for key in [*edited.keys()])
        for count in ("entities", "aliases", "alias_rows"):
            assert getattr(edited.manifest, count) == getattr(changed.manifest, count)
        if near_is_mutual(kb["facts"]) == near_is_mutual(after["facts"]):  # else they are counted otherwise
            assert edited.manifest.triples == changed.manifest.triples
        assert edited.manifest.counts.entities == changed.manifest.counts.entities
        assert edited.manifest.counts.redirects == changed.manifest.counts.redirects
        for surface in SURFACES:
            alike(edited, changed, surface)
        for key in after["entities"]:
            ours, theirs = ({each.surface for each in kb.surfaces_of(key)} for kb in (edited, changed))
            assert ours == theirs
        text = " . ".join(SURFACES)
        mentions, expected = (AliasGenerator(kb).mentions(text) for kb in (edited, changed))
        assert [(each.start, each.end) for each in mentions] == [(each.start, each.end) for each in expected]


def alike(edited, changed, surface):
    ours, theirs = (
        {each.entity.key: (each.sense, each.prior) for each in kb.decode(kb.candidates(surface))}
        for kb in (edited, changed)
    )
    assert {key: sense for key, (sense, _) in ours.items()} == {
        key: sense for key, (sense, _) in theirs.items()
    }
    for key, (_, prior) in ours.items():
        assert prior == pytest.approx(theirs[key][1], rel=1e-4, abs=1e-5)
