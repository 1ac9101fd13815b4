"""Edits of a published KB: what they come to, that ids stay, and that nothing is lost when they fail."""

import numpy as np
import pytest

import kgkit
from kgkit.building.edit import edit_kb
from kgkit.errors import DamagedKB, FormatMismatch, SourceError, UnknownEntity
from kgkit.home import Home
from kgkit.kb import differences
from kgkit.store import layout, verify
from kgkit.store.manifest import read_manifest
from kgkit.store.publish import publish_build
from tests.edit_toys import edit, opened
from tests.old_format import publish_in_older_format
from tests.small_kb import surfaces_kb
from tests.toys import listing
from tests.tries import with_tries

# -- what they come to ----------------------------------------------------------------


def test_fields_that_are_given_replace_those_that_were_there(home):
    edit(
        home,
        {"key": "bath", "label": "Bath Spa", "description": "a city", "kind": "city", "types": ["a", "b"]},
    )
    with opened(home) as kb:
        assert kb["bath"] == kgkit.Entity("bath", "Bath Spa", "a city", "city", "", ("a", "b"), {}, 2)
        assert kb["avon"].description == "joins the Severn"
        assert kb.manifest.counts.entities == {"river": 2, "deed": 1, "city": 1}


def test_attributes_are_replaced_by_their_names_and_null_withdraws_one(home):
    edit(home, {"key": "avon", "attributes": {"km": 120, "states": None, "mouth": {"lat": 51.5}}})
    with opened(home) as kb:
        assert kb["avon"].attributes == {"km": 120, "mouth": {"lat": 51.5}}


def test_an_empty_description_takes_the_description_away(home):
    edit(home, {"key": "avon", "description": ""})
    with opened(home) as kb:
        assert kb["avon"].description == ""


def test_a_new_label_is_an_alias_too_and_the_old_alias_stays_until_it_is_withdrawn(home):
    edit(home, {"key": "bath", "label": "Bath Spa"})
    with opened(home) as kb:
        assert {each.surface for each in kb.surfaces_of("bath")} == {"Avon", "Bath", "Bath Spa"}
    edit(home, {"key": "bath", "remove_aliases": ["Bath"]})
    with opened(home) as kb:
        assert kb.candidates("Bath Spa").ids.tolist() == [2]
        assert kb.candidates("Bath").ids.tolist() == [3]


def test_labels_are_no_aliases_where_the_first_line_says_so(home):
    edit(
        home,
        {"kgkit": {"label_aliases": False, "name": "Shown"}},
        {"key": "bath", "label": "Bath (Somerset)"},
    )
    with opened(home) as kb:
        assert kb["bath"].label == "Bath (Somerset)"
        assert len(kb.candidates("Bath (Somerset)")) == 0
        assert [info.name for info in kb.manifest.edited] == ["Shown"]


def test_a_changed_part_of_speech_is_that_of_the_candidates_too(home):
    edit(home, {"key": "bath", "pos": "n"}, {"key": "wash", "pos": "x"})
    with opened(home) as kb:
        assert kb.store.classes == ["n", "v", "x"]
        assert kb.has_pos(np.array([2, 3]), "n").tolist() == [True, False]
        row = kb.store.alias_row("bath")
        assert layout.U32.itemsize and kgkit.store.codec.classes(row) == 0b101


def test_an_alias_gets_the_count_and_sense_that_are_given_and_keeps_what_is_not(home):
    edit(home, {"key": "bath", "aliases": [{"text": "Avon", "count": 6}]})
    with opened(home) as kb:
        assert [(each.surface, each.count, each.sense) for each in kb.surfaces_of("bath")] == [
            ("Avon", 6.0, "severn"), ("Bath", 0.0, None),
        ]  # fmt: skip
    edit(home, {"key": "bath", "aliases": [{"text": "Avon", "sense": "wash"}]})
    with opened(home) as kb:
        assert kb.surfaces_of("bath")[0].count == 6.0
        assert kb.candidates("avon").senses.tolist().count(3) == 1


def test_aliases_that_are_given_are_linked_at_once(home):
    edit(home, {"key": "bath", "aliases": ["Old Roman Spa", {"text": "BATH", "count": 9}]})
    linked = kgkit.link("The Old Roman Spa on the Avon.", kb="rivers", home=home)
    assert [(each.text, each.entity) for each in linked.links] == [
        ("Old Roman Spa", "bath"),
        ("Avon", "avon"),
    ]
    with opened(home) as kb:
        assert {each.surface for each in kb.surfaces_of("bath")} == {"Avon", "BATH", "Bath", "Old Roman Spa"}


def test_the_last_spelling_of_an_alias_takes_its_row_and_its_occurrences_with_it(home):
    built = edit(home, {"key": "severn", "remove_aliases": ["Severn"]})
    with opened(home) as kb:
        assert kb.store.alias_row("severn") is None
        assert kb.store.occurrences("severn") is None and kb.store.occurrences("avon") == (20.0, 8.0)
        assert kb.surfaces_of("severn") == []
        assert "severn" in kb
    assert built.manifest.aliases == 5


def test_facts_are_withdrawn_from_both_their_ends(home):
    built = edit(
        home,
        {"key": "severn", "remove_facts": [{"relation": "receives", "object": "avon"},
                                           {"relation": "lies_on", "object": "severn"}]},
        {"key": "bath", "remove_facts": [{"relation": "near", "object": "bath"},
                                         {"relation": "lies_on", "object": "avon"}]},
    )  # fmt: skip
    with opened(home) as kb:
        assert [str(triple.relation) for triple in kb.match()] == ["near", "lies_on"]
        assert kb.neighbors("avon", "flows_into") == []
        assert [each.key for each in kb.neighbors("avon", "lies_on", "in")] == ["severn"]
    assert built.manifest.counts.relations == {"flows_into": 0, "near": 1, "lies_on": 1}


def test_an_object_may_be_named_by_another_key_of_it(home):
    edit(home, {"key": "avon", "remove_facts": [{"relation": "flows_into", "object": "hafren"}]})
    with opened(home) as kb:
        assert kb.neighbors("avon", "flows_into") == []


def test_a_list_of_edits_that_says_nothing_new_changes_nothing(home):
    first = read_manifest(Home.find(home).kb("rivers").current.resolve()).build
    before = listing(home / "kbs/rivers/builds" / first)
    edits = [{"key": "avon", "label": "Avon", "attributes": {"km": 134, "depth": None}},
             {"key": "bath", "aliases": ["Bath", {"text": "Avon", "count": 2}]}]  # fmt: skip
    assert edit_kb("rivers", edits, home=home).build == first
    assert listing(home / "kbs/rivers/builds" / first) == before


@pytest.mark.parametrize(
    ("withdrawn", "named"),
    [
        ({"remove_aliases": ["avon"]}, "'avon'"),
        ({"remove_aliases": ["Nile"]}, "'Nile'"),
        ({"remove_facts": [{"relation": "near", "object": "severn"}]}, "'severn'"),
        ({"remove_facts": [{"relation": "receives", "object": "bath"}]}, "'bath'"),
    ],
)
def test_what_is_not_there_is_withdrawn_already_and_named_in_a_warning(home, caplog, withdrawn, named):
    first = Home.find(home).kb("rivers").published()
    assert edit(home, {"key": "avon", **withdrawn}).build == first
    assert named in caplog.text
    edited = edit(home, {"key": "avon", "description": "a river", **withdrawn})
    assert edited.build != first


# -- retired entities -----------------------------------------------------------------


def test_a_retired_entity_is_nowhere_in_the_kb(retired):
    with opened(retired) as kb:
        assert len(kb) == 3 and kb.id_count == 4
        assert [entity.key for entity in kb] == [*kb.keys()] == ["avon", "bath", "wash"]
        assert [entity.id for entity in kb.entities("river")] == [0]
        assert "severn" not in kb and 1 not in kb and np.int64(1) not in kb
        assert kb.get("severn") is None and kb.get(1) is None and kb.get("hafren") is None
        assert kb.search("severn") == []
        assert len(kb.candidates("Severn")) == len(kb.candidates("severn", fuzzy=True)) == 0
        assert kb.candidates("Avon").senses.tolist() == [kgkit.types.NO_SENSE] * 2
        assert kb.neighbors("avon") == [kb["bath"]]
        assert [(t.subject, t.relation, t.object) for t in kb.match()] == [
            ("avon", "near", "bath"), ("bath", "near", "bath"), ("bath", "lies_on", "avon"),
        ]  # fmt: skip
        assert {*kb.subgraph(["avon"], radius=3)} == {"avon", "bath"}
        assert kb.to_frame().index.tolist() == [0, 2, 3]
        assert kb.has_pos(np.array([0, 1]), "n").tolist() == [True, False]


@pytest.mark.parametrize("name", ["severn", 1])
def test_who_asks_for_a_retired_entity_is_told_that_it_was_retired(retired, name):
    with opened(retired) as kb:
        for ask in (kb.__getitem__, kb.id, kb.surfaces_of, kb.neighbors, kb.url):
            with pytest.raises(KeyError, match="kgkit kb edit"):
                ask(name)
    with opened(retired) as kb, pytest.raises(UnknownEntity, match="retired"):
        kb.key(1)


def test_the_keys_that_an_entity_had_besides_go_with_it(retired):
    with opened(retired) as kb:
        assert "hafren" not in kb and kb["aquae_sulis"].key == "bath"
        assert kb.manifest.counts.redirects == 1


def test_ids_of_retired_entities_are_not_dealt_out_again(retired):
    kgkit.add_to_kb("rivers", [{"key": "severn", "label": "Severn"}, {"key": "wye"}], home=retired)
    with opened(retired) as kb:
        assert [entity.id for entity in kb] == [0, 2, 3, 4, 5]
        assert kb["severn"].id == 4 and kb.candidates("Severn").ids.tolist() == [4]
        assert (len(kb), kb.id_count, kb.manifest.retired) == (5, 6, 1)
        assert verify(kb.store.folder) == []
    built = edit(retired, {"key": "severn", "retire": True}, {"key": "bath", "retire": True})
    assert (built.manifest.entities, built.manifest.retired) == (3, 3)
    with opened(retired) as kb:
        assert kb.store.retired == {1, 2, 4}


def test_an_exported_kb_has_no_retired_entity_and_is_the_same_after_import(retired):
    with opened(retired) as kb:
        kgkit.export_kb(kb, retired / "out.jsonl")
        kgkit.import_kb(retired / "out.jsonl", "copy", home=retired)
        with opened(retired, "copy") as copy:
            assert [*differences(kb, copy)] == []
            assert copy.id_count == 3


def test_a_kb_is_not_emptied(home):
    everything = [{"key": key, "retire": True} for key in ("avon", "severn", "bath", "wash")]
    with pytest.raises(SourceError, match="kgkit kb rm rivers"):
        edit_kb("rivers", everything, home=home)


# -- builds ---------------------------------------------------------------------------


def test_the_build_says_what_it_extends_and_what_was_edited(home):
    first = read_manifest(Home.find(home).kb("rivers").current.resolve()).build
    path = home / "fix.jsonl"
    path.write_text('{"kgkit": {"version": "2", "licence": "CC0-1.0"}}\n\n{"key": "bath", "label": "Spa"}\n')
    built = edit_kb("rivers", path, home=home)
    assert built.manifest.base == first
    (info,) = built.manifest.edited
    assert (info.name, info.version, info.licence, info.path) == ("fix", "2", "CC0-1.0", str(path))
    assert len(info.sha256) == 64
    assert edit(home, {"key": "bath", "label": "Bath"}).manifest.edited[1].path == ""


def test_diff_shows_an_edit_and_publish_takes_it_back(home):
    with opened(home) as before:
        first = before.build
    edit(home, {"key": "avon", "attributes": {"km": 120}}, {"key": "wash", "retire": True})
    changes = {(each.change, each.what) for each in kgkit.diff("rivers", home=home)}
    assert changes == {("changed", "entity"), ("removed", "entity"), ("removed", "alias")}
    publish_build(Home.find(home).kb("rivers"), first)
    with opened(home) as kb:
        assert kb["avon"].attributes["km"] == 134 and kb["wash"].pos == "v"


def test_builds_with_equal_retired_entities_differ_in_what_differs_only(retired):
    edit(retired, {"key": "avon", "description": "a river"})
    (change,) = kgkit.diff("rivers", home=retired)
    assert (change.change, change.old.description, change.new.description) == (
        "changed", "joins the Severn", "a river",
    )  # fmt: skip


def test_a_build_of_an_older_format_stays_one_when_it_is_edited(home):
    """So a kgkit that does not know edits refuses it, and its surfaces are folded as they were."""
    publish_in_older_format(Home.find(home).kb("rivers").current.resolve(), home, "old", number=3)
    edit_kb("old", [{"key": "bath", "label": "Spa", "aliases": ["S.P.A.", "Bad–Bath"]}], home=home)
    with opened(home, "old") as kb:
        assert kb.manifest.format == layout.EDITED_FORMAT
        assert kb.store.folding.version == 1
        found = {
            name: kb.candidates(name).ids.tolist() != [] for name in ("S.P.A.", "SPA", "Bad–Bath", "Bad-Bath")
        }
        assert found == {"S.P.A.": True, "SPA": True, "Bad–Bath": True, "Bad-Bath": False}
        assert verify(kb.store.folder) == []
    formats = {number: digest for number, digest in layout.readable_formats().items() if number < 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgkit.store.manifest.readable_formats", lambda: formats)
        with pytest.raises(FormatMismatch, match="4"):
            opened(home, "old")


def test_a_build_of_format_2_has_to_be_built_again_before_it_is_edited(home):
    publish_in_older_format(Home.find(home).kb("rivers").current.resolve(), home, "rivers", number=2)
    with pytest.raises(FormatMismatch, match="kgkit build-kb jsonl --name rivers"):
        edit_kb("rivers", [{"key": "bath", "label": "Spa"}], home=home)


def test_a_manifest_that_counts_other_retired_entities_is_damage(retired):
    folder = Home.find(retired).kb("rivers").current.resolve()
    path = folder / layout.MANIFEST
    path.write_text(path.read_text().replace('"retired": 1', '"retired": 2'))
    with pytest.raises(DamagedKB, match=r"1 retired .* 2"):
        opened(retired)


# -- tries ----------------------------------------------------------------------------


def test_surfaces_in_tries_are_withdrawn_and_come_again(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        with_tries(kb.store.folder, tmp_path, "tries", 4)

    def spans(name="tries"):
        return [each.text for each in kgkit.link("New York Times Square", kb=name, home=tmp_path).links]

    assert spans() == ["New York Times"]
    assert verify(edit_kb("tries", [{"key": "The_New_York_Times", "retire": True}], home=tmp_path).path) == []
    assert spans() == ["New York", "Times Square"]
    again = kgkit.add_to_kb("tries", [{"key": "NYT", "label": "New York Times"}], home=tmp_path)
    assert verify(again.path) == []
    assert spans() == ["New York Times"]
