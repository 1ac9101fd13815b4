"""Triples from `.spo` files: what they become, what is linked by them, and the two real ones."""

import bz2
import unicodedata
from pathlib import Path

import pytest

import kgkit
from kb_builders.spo import SpoBuilder
from kgkit.building import Alias, Triple
from tests.cli_helpers import install_builder, run

FRUIT = """\
苹果	义原	水果
苹果	义原	食品
苹果电脑	义原	机器
水果	是	食品
梨树	结	梨
"""


@pytest.fixture
def fruit(tmp_path) -> Path:
    path = tmp_path / "Fruit.spo"
    path.write_text(FRUIT, encoding="utf-8")
    return path


@pytest.fixture
def kb(fruit, tmp_path):
    kgkit.build_kb(SpoBuilder(), fruit, name="fruit", home=tmp_path / "home")
    with kgkit.open_kb("fruit", home=tmp_path / "home") as kb:
        yield kb


def records(path):
    return list(SpoBuilder().observe(path, "all"))


def test_subjects_come_first_then_objects_each_as_the_file_first_names_them(kb):
    told = [(entity.key, entity.kind) for entity in kb.entities()]
    assert told == [
        ("苹果", "subject"),
        ("苹果电脑", "subject"),
        ("水果", "subject"),  # an object before it is a subject
        ("梨树", "subject"),
        ("食品", "object"),
        ("机器", "object"),
        ("梨", "object"),
    ]


def test_triples_keep_the_order_of_the_file(fruit, kb):
    written = [tuple(line.split("\t")) for line in FRUIT.splitlines()]
    yielded = [record for record in records(fruit) if isinstance(record, Triple)]
    assert [(one.subject, one.relation, one.object) for one in yielded] == written
    assert [(one.relation, one.object) for one in kb.match("苹果")] == [("义原", "水果"), ("义原", "食品")]
    assert list(kb.relations) == ["义原", "是", "结"]


def test_a_subject_is_its_own_alias_and_an_object_has_none(fruit, kb):
    aliases = [record for record in records(fruit) if isinstance(record, Alias)]
    assert aliases == [Alias(key, key) for key in ("苹果", "苹果电脑", "水果", "梨树")]
    assert len(kb.candidates("食品")) == 0
    assert kb["食品"].kind == "object"


def test_subjects_are_found_in_chinese_text_the_longest_wherever_they_begin(kb):
    text = "我用苹果电脑买了苹果和别的食品。"
    [document] = kgkit.AliasGenerator(kb)([kgkit.Document("1", text)])
    assert [(one.start, one.text) for one in document.mentions] == [(2, "苹果电脑"), (8, "苹果")]


def test_white_space_around_a_field_and_empty_lines_mean_nothing(tmp_path):
    path = tmp_path / "loose.spo"
    path.write_bytes("\ufeff 苹果\t义原 \t水果\r\n\r\n苹果 \t义原\t食品".encode())
    triples = [record for record in records(path) if isinstance(record, Triple)]
    assert triples == [Triple("苹果", "义原", "水果"), Triple("苹果", "义原", "食品")]


def test_the_source_is_named_after_its_file_compressed_or_not(fruit, tmp_path):
    packed = tmp_path / "Packed.spo.bz2"
    packed.write_bytes(bz2.compress(fruit.read_bytes()))
    assert SpoBuilder().look(fruit).info.name == "Fruit"
    assert SpoBuilder().look(packed).info.name == "Packed"
    assert SpoBuilder().look(fruit).info.licence == ""
    assert records(packed) == records(fruit)


def test_a_file_becomes_a_kb_that_links_a_sentence_from_the_command_line(fruit, tmp_path, monkeypatch):
    install_builder(tmp_path / "site", "spo", "kb_builders.spo:SpoBuilder")
    monkeypatch.syspath_prepend(tmp_path / "site")
    home = ("--home", tmp_path / "home")
    built = run("build-kb", "spo", fruit, "--name", "fruit", *home)
    assert (built.code, built.out.split(": ")[1]) == (0, "7 entities, 5 triples, 4 aliases\n")
    linked = run("link", "--kb", "fruit", "--json", *home, given="他种梨树。\n".encode())
    assert linked.code == 0
    assert '"text":"梨树","kb":"fruit","entity":"梨树"' in linked.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "triples", "subjects", "objects", "twice"),
    [
        (
            "hownet/HowNet.spo", 52_576, 45_124, 1_457,
            {"ｃｐｕ", "ｆａｘ", "ｗｔｏ", "ｘ光线照相", *(f"维生素{letter}" for letter in "ａｂｃｄｅｋ")},
        ),
        ("medical/Medical.spo", 13_864, 13_553, 5, set()),
    ],
)  # fmt: skip
def test_the_real_files_have_what_they_are_known_to_have(
    shared_data, tmp_path, file, triples, subjects, objects, twice
):
    """Subjects that are written in letters of two widths, *twice*, share a surface."""
    built = kgkit.build_kb(SpoBuilder(), shared_data / file, home=tmp_path)
    manifest = built.manifest
    assert (manifest.triples, manifest.aliases) == (triples, subjects - len(twice))
    with kgkit.open_kb(built.name, home=tmp_path) as kb:
        for wide in twice:
            narrow = unicodedata.normalize("NFKC", wide)
            assert {kb.key(number) for number in kb.candidates(wide).ids.tolist()} == {wide, narrow}
    assert manifest.counts.entities == {"subject": subjects, "object": objects}
    assert manifest.counts.dropped == {}


def test_hownet_links_a_sentence_by_its_longest_words(shared_data, tmp_path):
    kgkit.build_kb(SpoBuilder(), shared_data / "hownet/HowNet.spo", name="hownet", home=tmp_path)
    with kgkit.open_kb("hownet", home=tmp_path) as kb:
        text = "老师傅在北京航空航天大学的图书馆里吃苹果蛋糕。"
        [linked] = kgkit.Linker(kb)([kgkit.Document("1", text)])
    found = [link.text for link in linked.links]
    assert found == ["老师傅", "北京航空航天大学", "图书馆", "苹果蛋糕"]
