"""`kgkit kb add` onto a knowledge base whose surfaces are in tries."""

import json
import sys
from pathlib import Path

import pytest

import kgkit
from kgkit.candidates import AliasConfig, AliasGenerator
from kgkit.errors import DamagedKB
from kgkit.store import verify
from kgkit.store.layout import SURFACES
from kgkit.store.manifest import read_manifest
from tests.candidates.test_alias import spans
from tests.small_kb import surfaces_kb
from tests.tries import with_tries

ADDED = [
    {
        "key": "Apple_Music",
        "label": "Apple Music",
        "aliases": ["苹果公司音乐", "New York Times Square Garden"],
    },
    {"alias": "New York", "key": "York", "count": 7},  # the tries have it
    {"alias": "dog", "key": "Hot_dog", "count": 1},
]
TEXTS = [
    "Apple Music in New York Times Square Garden",
    "New York Times Square",
    "苹果公司音乐, 苹果公司",
    "hot dog, Apple, Music",
]


@pytest.fixture
def tries(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        return with_tries(kb.store.folder, tmp_path, "tries", 4)


def add(folder: Path, name: str, records=ADDED, source: str = "more.jsonl"):
    (folder / source).write_text("\n".join(map(json.dumps, records)))
    return kgkit.add_to_kb(name, folder / source, home=folder)


def test_what_is_added_is_found_beside_what_was_there(tries, tmp_path):
    add(tmp_path, "tries")
    add(tmp_path, "surfaces")
    with kgkit.open_kb("tries", home=tmp_path) as kb, kgkit.open_kb("surfaces", home=tmp_path) as plain:
        for settings in (AliasConfig(), AliasConfig(matches="all")):
            for text in TEXTS:
                expected = AliasGenerator(plain, settings).mentions(text)
                assert AliasGenerator(kb, settings).mentions(text) == expected != []
        every = AliasGenerator(kb, AliasConfig(matches="all"))
        assert spans(every.mentions("New York Times Square Garden")) == [
            "New York", "New York Times", "New York Times Square Garden",
            "York", "Times", "Times Square",
        ]  # fmt: skip


def test_the_new_build_has_the_tries_of_its_base_under_a_second_name(tries, tmp_path):
    built = add(tmp_path, "tries")
    old = read_manifest(tries.folder)
    assert built.manifest.base == tries.build != built.build
    for said in ("files", "sha256"):
        assert getattr(built.manifest, said)[SURFACES] == getattr(old, said)[SURFACES]
    assert (built.path / SURFACES).samefile(tries.folder / SURFACES)
    assert verify(built.path) == []


def test_starts_tells_of_what_the_tries_do_not_have_and_of_nothing_else(tries, tmp_path):
    add(tmp_path, "tries")
    with kgkit.open_kb("tries", home=tmp_path) as kb:
        firsts = ["apple", "苹", "new", "dog", "c"]
        assert [first for first in firsts if kb.store.starts(first)] == ["apple", "苹", "new"]
        assert sorted(kb.store.starts("new")) == ["york", "york times"]
        assert kb.store.starts("new")["york times"] == 1 << 5


def test_a_second_addition_keeps_the_first_and_the_tries(tries, tmp_path):
    add(tmp_path, "tries")
    more = [{"alias": "Apple Music Hall", "key": "Apple_Music"}]
    built = add(tmp_path, "tries", more, "again.jsonl")
    assert verify(built.path) == []
    with kgkit.open_kb("tries", home=tmp_path) as kb:
        found = spans(AliasGenerator(kb).mentions("Apple Music Hall, Apple Music, 苹果公司"))
        assert found == ["Apple Music Hall", "Apple Music", "苹果公司"]


def test_a_damage_of_the_base_is_not_signed_for_anew(tries, tmp_path):
    content = bytearray((tries.folder / SURFACES).read_bytes())
    content[3000] ^= 1
    (tries.folder / SURFACES).write_bytes(content)
    with pytest.raises(DamagedKB, match=f"{SURFACES} is damaged"):
        add(tmp_path, "tries")


def test_additions_need_no_marisa(tries, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "marisa_trie", None)
    assert add(tmp_path, "tries").manifest.entities > read_manifest(tries.folder).entities
