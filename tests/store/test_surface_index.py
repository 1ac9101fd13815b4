"""The index of surfaces of a build: made with it, kept by additions, and verified."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedKB, NotThere
from kgkit.store import verify
from kgkit.store.layout import DATA, MANIFEST, TRIGRAMS
from kgkit.store.manifest import read_manifest
from kgkit.store.surface_index import missing_surfaces, uncontained_labels, write_index
from kgkit.store.trigrams import NO_LABELS, TrigramIndex, TrigramWriter
from kgkit.text import folding
from tests.old_format import as_older_index, publish_as_format_2, stamp_index
from tests.small_kb import ENDLESS, build, surfaces_kb

MORE = [{"key": "Mercury", "aliases": ["Mercury", "an element"]}]


def indexed_surfaces(folder) -> list[str]:
    return [surface.decode() for surface in TrigramIndex(folder / TRIGRAMS).surfaces()]


@pytest.fixture
def old(tmp_path):
    """A home with the KB `old`, whose build has no index, and the folder of that build."""
    with surfaces_kb(tmp_path) as kb:
        return publish_as_format_2(kb.store.folder, tmp_path, "old").folder


# -- with the build ------------------------------------------------------------------------


def test_a_build_has_the_index_of_its_surfaces_but_for_those_that_are_too_long(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder, surfaces = kb.store.folder, list(kb.surfaces())
        assert indexed_surfaces(folder) == surfaces
        assert ENDLESS not in surfaces
        assert kb.manifest.files[TRIGRAMS] == (folder / TRIGRAMS).stat().st_size
        assert verify(folder) == []


def test_two_builds_of_the_same_records_have_the_same_index(tmp_path):
    contents = []
    for name in ("a", "b"):
        with surfaces_kb(tmp_path / name) as kb:
            contents.append((kb.store.folder / TRIGRAMS).read_bytes())
    assert contents[0] == contents[1]


def test_a_kb_without_surfaces_is_built_and_has_an_empty_index(tmp_path):
    with build(tmp_path, [Entity("a")]) as kb:
        assert len(kb.surface_index()) == 0
        assert kb.similar_surfaces("a") == []
        assert verify(kb.store.folder) == []


# -- additions -----------------------------------------------------------------------------


def test_an_addition_puts_its_surfaces_behind_those_of_the_base(tmp_path):
    surfaces_kb(tmp_path).close()
    with kgkit.open_kb("surfaces", tmp_path) as base:
        before = indexed_surfaces(base.store.folder)
        built = kgkit.add_to_kb("surfaces", MORE, home=tmp_path)
        assert indexed_surfaces(built.path) == [*before, "an element", "mercury"]
        assert indexed_surfaces(base.store.folder) == before
    assert verify(built.path) == []
    built = kgkit.add_to_kb("surfaces", [{"key": "Abba", "aliases": ["abba"]}], home=tmp_path)
    assert indexed_surfaces(built.path)[-3:] == ["an element", "mercury", "abba"]
    assert verify(built.path) == []


def test_an_addition_without_a_new_surface_keeps_the_file(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        built = kgkit.add_to_kb("surfaces", [{"alias": "york", "key": "York", "count": 5}], home=tmp_path)
        assert (built.path / TRIGRAMS).samefile(kb.store.folder / TRIGRAMS)
        assert built.path != kb.store.folder


def test_an_addition_to_a_build_without_an_index_has_one_of_all_surfaces(tmp_path, old):
    built = kgkit.add_to_kb("old", MORE, home=tmp_path)
    with kgkit.open_kb("old", tmp_path) as kb:
        assert sorted(indexed_surfaces(built.path)) == list(kb.surfaces())
        assert [each.surface for each in kb.similar_surfaces("mercry", k=1)] == ["mercury"]
    assert not (old / TRIGRAMS).exists()


def test_an_index_with_surfaces_that_are_gone_is_made_anew(tmp_path):
    with surfaces_kb(tmp_path / "home") as kb:
        data, surfaces = kb.store.folder, [surface.encode() for surface in kb.surfaces()]
    with TrigramWriter(tmp_path / TRIGRAMS) as index:
        index.add(sorted([*surfaces, b"withdrawn"]))
        index.finish()
    write_index(data, tmp_path, folding())
    assert (tmp_path / TRIGRAMS).read_bytes() == (data / TRIGRAMS).read_bytes()


@pytest.mark.parametrize(
    "stored, keys, expected",
    [
        ("a b c", "a b c", []),
        ("a c", "a b c d", ["b", "d"]),
        ("b d a", "a b c d", ["c"]),
        ("b d a", "b d", None),
        ("b d a c", "a b d", None),
        ("a b", "b", None),
        ("a b", "a", None),
        ("", "a", ["a"]),
        ("a", "", None),
        ("b c a d", "a b c d e", ["e"]),
    ],
)
def test_what_an_index_lacks_is_known_unless_it_has_more_than_the_table(tmp_path, stored, keys, expected):
    with TrigramWriter(tmp_path / "index") as index:
        index.add(stored.encode().split())
        index.finish()
    missing = missing_surfaces(iter(keys.encode().split()), TrigramIndex(tmp_path / "index"))
    assert missing == (None if expected is None else [text.encode() for text in expected])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_index_of_an_earlier_version_is_used_and_an_addition_writes_it_anew(tmp_path, version):
    with surfaces_kb(tmp_path) as kb:
        folder, surfaces = kb.store.folder, list(kb.surfaces())
    as_older_index(folder / TRIGRAMS, version)
    stamp_index(folder)
    assert verify(folder) == []
    with kgkit.open_kb("surfaces", tmp_path) as kb:
        assert kb.similar_surfaces("new yrok", k=1)[0].surface == "new york"
    built = kgkit.add_to_kb("surfaces", MORE, home=tmp_path)
    assert TrigramIndex(built.path / TRIGRAMS).labels is not None
    assert indexed_surfaces(built.path) == sorted([*surfaces, "an element", "mercury"])
    assert verify(built.path) == []


def test_labels_that_are_no_part_of_a_surface_are_kept_as_they_change(tmp_path):
    head = {"kgkit": {"label_aliases": False}}
    records = [
        head,
        {"key": "a", "label": "The Stack", "aliases": ["the stack (sea)"]},
        {"key": "b", "label": "U.S. Steel", "aliases": ["us steel"]},
        {"key": "c", "label": "Fulmar", "aliases": ["x"]},
    ]
    kgkit.build_kb("jsonl", records, name="own", home=tmp_path)

    def labels():
        with kgkit.open_kb("own", tmp_path) as kb:
            kept, read = kb.store.uncontained_labels(), kb.store.read_uncontained_labels()
            assert kept.same_as(read) and verify(kb.store.folder) == []
            keys = [kb[number].key for number in kept.ids.tolist()]
            return kept.text.tobytes().decode().split("\n")[:-1], keys

    assert labels() == (["us steel", "u.s. steel", "fulmar"], ["b", "c"])
    kgkit.add_to_kb("own", [head, {"key": "d", "label": "Skua", "aliases": ["x"]}], home=tmp_path)
    assert labels() == (["us steel", "u.s. steel", "fulmar", "skua"], ["b", "c", "d"])
    kgkit.edit_kb("own", [head, {"key": "c", "label": "Petrel"}], home=tmp_path)
    assert labels()[0] == ["us steel", "u.s. steel", "petrel", "skua"]
    edits = [{"key": "a", "remove_aliases": ["the stack (sea)"]}, {"key": "d", "aliases": ["skua"]}]
    kgkit.edit_kb("own", edits, home=tmp_path)
    assert labels() == (["the stack", "us steel", "u.s. steel", "petrel"], ["a", "b", "c"])


def test_a_row_of_surfaces_of_no_entity_changes_the_labels_of_no_other_one(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        expected, names = kb.store.read_uncontained_labels(), list(kb.store.items("names"))
        entities = [item for item in kb.store.items("entities") if item[0] != names[0][0]]
        gone = int.from_bytes(names[0][0], "little")
        found = uncontained_labels(entities, names, kb.store.folding)
        assert found.ids.tolist() == [number for number in expected.ids.tolist() if number != gone]


def test_labels_that_an_index_lacks_are_read_once(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder = kb.store.folder
    as_older_index(folder / TRIGRAMS, 3)
    stamp_index(folder)
    with kgkit.open_kb("surfaces", tmp_path) as kb, ThreadPoolExecutor(4) as pool:
        assert not kb.store.indexes_parts
        first, *others = pool.map(lambda _: kb.store.uncontained_labels(), range(8))
        assert all(each is first for each in others) and kb.store.indexes_parts


# -- verify --------------------------------------------------------------------------------


def replace_index(folder, surfaces, labels=NO_LABELS):
    (folder / TRIGRAMS).unlink()
    with TrigramWriter(folder / TRIGRAMS) as index:
        index.add(surfaces)
        index.finish(labels)
    stamp_index(folder)


def test_verify_finds_an_index_of_other_surfaces(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder, labels = kb.store.folder, kb.store.uncontained_labels()
    replace_index(folder, [b"apple", b"pear"], labels)
    assert [problem.split(":")[0] for problem in verify(folder)] == ["index"]


def test_verify_finds_other_labels(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder, surfaces, labels = (
            kb.store.folder,
            list(kb.surface_index().surfaces()),
            kb.store.uncontained_labels(),
        )
        assert len(labels.ids)
    replace_index(folder, surfaces, labels)
    assert verify(folder) == []
    replace_index(folder, surfaces)
    assert [problem.split(":")[0] for problem in verify(folder)] == ["index"]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_verify_finds_grams_that_are_not_those_of_the_surfaces(tmp_path, version):
    with surfaces_kb(tmp_path) as kb:
        folder, index = kb.store.folder, kb.surface_index()
        if version < 4:
            as_older_index(index.path, version)
        content = bytearray(index.path.read_bytes())
        at, last = content.rfind(index.postings.tobytes()), int(index.postings[0])
    content[at : at + 4] = (last + 1).to_bytes(4, "little")
    (folder / TRIGRAMS).write_bytes(content)
    stamp_index(folder)
    problems = [problem.split(":")[0] for problem in verify(folder)]
    assert problems == (["index"] if version >= 3 else [])  # grams of the first two were other ones


def test_verify_finds_postings_that_do_not_fit_their_grams(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder, index = kb.store.folder, kb.surface_index()
        content = bytearray(index.path.read_bytes())
        begin = content.rfind(index.postings.tobytes()) - 8
    content[begin : begin + 8] = bytes(8)
    (folder / TRIGRAMS).write_bytes(content)
    stamp_index(folder)
    assert [problem.split(":")[0] for problem in verify(folder)] == ["index"]


def test_a_flipped_byte_of_the_index_is_found_by_its_checksum(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder = kb.store.folder
    content = bytearray((folder / TRIGRAMS).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / TRIGRAMS).write_bytes(content)
    assert "surfaces.trigrams is damaged" in verify(folder, quick=True)[0]
    with pytest.raises(DamagedKB, match=r"surfaces\.trigrams is damaged"):
        kgkit.add_to_kb("surfaces", MORE, home=tmp_path)


def test_a_build_whose_index_is_missing_is_refused(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder = kb.store.folder
    (folder / TRIGRAMS).unlink()
    with pytest.raises(DamagedKB, match=r"surfaces\.trigrams is missing"):
        kgkit.open_kb("surfaces", tmp_path)


# -- builds of an older kgkit ------------------------------------------------------------------


def test_a_build_without_an_index_opens_and_finds_no_similar_surfaces(tmp_path, old):
    with kgkit.open_kb("old", tmp_path) as kb:
        assert kb.candidates("New York")
        with pytest.raises(NotThere, match=f"old@{old.name}"):
            kb.similar_surfaces("York")


def test_a_build_that_is_made_again_gets_the_index(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        folder = kb.store.folder
    manifest = read_manifest(folder)
    without = msgspec.structs.replace(manifest, files={DATA: manifest.files[DATA]})
    (folder / MANIFEST).write_bytes(msgspec.json.encode(without))
    (folder / TRIGRAMS).unlink()
    with surfaces_kb(tmp_path) as kb:
        assert kb.store.folder == folder
        assert indexed_surfaces(folder) == list(kb.surfaces())


def test_an_alias_that_comes_again_is_indexed_once(tmp_path):
    with build(tmp_path, [Entity("a"), Alias("Dog", "a"), Alias("dog", "a"), Alias("DOG  ", "a")]) as kb:
        assert indexed_surfaces(kb.store.folder) == ["dog"]
