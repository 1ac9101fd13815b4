"""HowNet's own dump, through the package OpenHowNet: a fake of the package, and itself where it is installed.

The fake has what the builder uses of OpenHowNet 2.0, in its shape: `HowNetDict()` reads what lies below
`Download.OPENHOWNET_RESOURCE_PATH`, prints, and has senses (`No`, `en_word`, `Def`, `sememes` …) and
sememes (`en_zh`, `freq`, `related_sememes` …).
"""

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import kgkit
from kb_builders.openhownet import FILES, OpenHowNetBuilder
from kgkit.errors import MissingExtra, NotThere, SourceError
from tests.cli_helpers import install_builder, run

SEMEMES = {"fruit|水果": 30, "tree|树": 9, "reproduce|生殖": 4, "part|部件": 50}
TAXONOMY = [
    ("fruit|水果", "hypernym", "part|部件"),
    ("part|部件", "hyponym", "fruit|水果"),
    ("tree|树", "near", "fruit|水果"),
]
# number, English, its grammar, Chinese, its grammar, definition
SENSES = [
    ("000000000007", "apple", "noun", "苹果", "noun", "{fruit|水果}"),
    (
        *("000000000008", "apple tree", "noun", "苹果", "noun"),
        "{tree|树:{reproduce|生殖:PatientProduct={fruit|水果},agent={~}},whole={tree|树}}",
    ),
    ("000000000009", " bear fruit ", "verb", "", "", "{reproduce|生殖}"),
    ("000000000010", "", "", "个", "classifier", "{part|部件}"),
]


class Sememe(SimpleNamespace):
    """As `OpenHowNet.Sememe`."""


def fake_package(told: Path) -> dict[str, ModuleType]:
    """Return the modules of a fake of the package, which finds its dump below *told*."""
    storage: Any = ModuleType("OpenHowNet.Download")
    storage.OPENHOWNET_RESOURCE_PATH = str(told)

    class HowNetDict:
        def __init__(self) -> None:
            if (Path(storage.OPENHOWNET_RESOURCE_PATH) / "resources/sememe_all").read_bytes() == b"torn":
                raise pickle.UnpicklingError("pickle data was truncated")
            sememes = {}
            for name, freq in SEMEMES.items():
                en, zh = name.split("|")
                sememes[name] = Sememe(en=en, zh=zh, en_zh=name, freq=freq, related_sememes={})
            for subject, relation, other in TAXONOMY:
                sememes[subject].related_sememes.setdefault(relation, []).append(sememes[other])
            self.sememe_dic = sememes
            self.sense_dic = {
                number: SimpleNamespace(
                    No=number, en_word=en, en_grammar=en_grammar, Def=definition,
                    zh_word=zh, zh_grammar=zh_grammar,
                    sememes=[sememes[part.strip("{}:,=~")] for part in named(definition)],
                )
                for number, en, en_grammar, zh, zh_grammar, definition in SENSES
            }  # fmt: skip
            print("Initializing OpenHowNet succeeded!")

        def get_all_senses(self):
            return list(self.sense_dic.values())

        def get_all_sememes(self):
            return list(self.sememe_dic.values())

    package: Any = ModuleType("OpenHowNet")
    package.HowNetDict, package.Download = HowNetDict, storage
    return {"OpenHowNet": package, "OpenHowNet.Download": storage}


def named(definition: str) -> list[str]:
    """Return the sememes that a definition names, in order, as often as it does."""
    return [part.split("{")[-1] for part in definition.replace(":", "}").split("}") if "|" in part]


def dump(folder: Path) -> Path:
    """Write the files that the package reads, and return the folder that it is told."""
    resources = folder / "resources"
    resources.mkdir(parents=True)
    (resources / "sememe_all").write_bytes(pickle.dumps(SEMEMES))
    lines = [" ".join(triple) for triple in TAXONOMY]
    (resources / "sememe_triples_taxonomy.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    fields = ("No", "en_word", "en_grammar", "ch_word", "ch_grammar", "Def")
    senses = {sense[0]: dict(zip(fields, sense, strict=True)) for sense in SENSES}
    (resources / "HowNet_dict_complete").write_bytes(pickle.dumps(senses))
    return folder


@pytest.fixture
def source(tmp_path):
    return dump(tmp_path / "hownet")


@pytest.fixture
def package(source, monkeypatch):
    """A fake of the package, whose own place is *source*."""
    modules = fake_package(source)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["OpenHowNet.Download"]


@pytest.fixture
def kb(package, source, tmp_path):
    kgkit.build_kb(OpenHowNetBuilder(), source, name="hownet", home=tmp_path / "home")
    with kgkit.open_kb("hownet", home=tmp_path / "home") as kb:
        yield kb


def test_senses_come_first_then_sememes(kb):
    assert [entity.key for entity in kb.entities()] == [*(sense[0] for sense in SENSES), *SEMEMES]
    assert kb.manifest.counts.entities == {"sense": 4, "sememe": 4}


def test_a_sense_has_its_words_its_definition_and_its_part_of_speech(kb):
    tree = kb["000000000008"]
    assert (tree.label, tree.description, tree.pos) == ("apple tree", SENSES[1][5], "n")
    words = {"en_word": "apple tree", "zh_word": "苹果", "en_grammar": "noun", "zh_grammar": "noun"}
    assert tree.attributes == words
    assert (kb["000000000009"].label, kb["000000000009"].pos) == ("bear fruit", "v")
    assert (kb["000000000010"].label, kb["000000000010"].pos) == ("个", "classifier")


def test_a_sememe_has_both_names_and_how_often_it_is_used(kb):
    fruit = kb["fruit|水果"]
    assert (fruit.label, fruit.kind) == ("fruit", "sememe")
    assert fruit.attributes == {"en": "fruit", "zh": "水果", "freq": 30}


def test_words_of_both_languages_are_linkable_and_sememes_are_not(kb):
    def meanings(word, **options):
        return [one.entity.key for one in kb.decode(kb.candidates(word, **options))]

    assert meanings("苹果") == ["000000000007", "000000000008"]
    assert meanings("apple") == ["000000000007"]
    assert meanings("bear fruit", pos="v") == ["000000000009"]
    assert meanings("个") == ["000000000010"]
    assert meanings("fruit") == meanings("水果") == []


def test_a_sense_has_its_sememes_in_the_order_of_its_definition_each_once(kb):
    found = [one.key for one in kb.neighbors("000000000008", "has_sememe")]
    assert found == ["tree|树", "reproduce|生殖", "fruit|水果"]


def test_the_taxonomy_is_answered_both_ways_and_stored_once(kb):
    assert [one.key for one in kb.neighbors("part|部件", "hyponym")] == ["fruit|水果"]
    assert [one.key for one in kb.neighbors("fruit|水果", "hypernym")] == ["part|部件"]
    assert kb.manifest.counts.relations == {"has_sememe": 6, "hypernym": 1, "near": 1}


def test_without_a_source_the_dump_that_the_package_has_is_read(package, tmp_path, source):
    built = kgkit.build_kb(OpenHowNetBuilder(), home=tmp_path / "home")
    assert (built.name, built.manifest.source.path) == ("openhownet", str(source))


def test_another_folder_is_read_for_one_build_only_and_its_resources_may_be_named(package, tmp_path, source):
    other = dump(tmp_path / "other")
    kgkit.build_kb(OpenHowNetBuilder(), other / "resources", home=tmp_path / "home")
    assert str(source) == package.OPENHOWNET_RESOURCE_PATH


def test_a_build_says_nothing_on_standard_output_for_the_package(package, source, tmp_path, monkeypatch):
    install_builder(tmp_path / "site", "openhownet", "kb_builders.openhownet:OpenHowNetBuilder")
    monkeypatch.syspath_prepend(tmp_path / "site")
    done = run("build-kb", "openhownet", source, "--home", tmp_path / "home")
    assert done.code == 0
    assert "Initializing" not in done.out + done.err


@pytest.mark.parametrize("file", FILES)
def test_a_dump_that_lacks_a_file_is_not_there_and_the_message_fetches_it(package, source, tmp_path, file):
    (source / "resources" / file).unlink()
    with pytest.raises(NotThere, match=rf"no {file} in .*OpenHowNet\.download\(\)"):
        kgkit.build_kb(OpenHowNetBuilder(), source, home=tmp_path / "home")


def test_a_torn_file_is_an_error_that_says_where(package, source, tmp_path):
    (source / "resources/sememe_all").write_bytes(b"torn")
    with pytest.raises(SourceError, match="UnpicklingError: pickle data was truncated") as caught:
        kgkit.build_kb(OpenHowNetBuilder(), source, home=tmp_path / "home")
    assert caught.value.path == source / "resources"
    assert str(source) == package.OPENHOWNET_RESOURCE_PATH


def test_a_package_that_has_read_nothing_is_an_error(package, source, tmp_path, monkeypatch):
    class Nothing:
        """What `HowNetDict` is when it has told what it misses."""

    monkeypatch.setattr(sys.modules["OpenHowNet"], "HowNetDict", Nothing)
    with pytest.raises(SourceError, match="has read nothing"):
        kgkit.build_kb(OpenHowNetBuilder(), source, home=tmp_path / "home")


@pytest.mark.parametrize("given", [True, False])
def test_without_the_package_the_message_says_how_to_install_it(source, tmp_path, monkeypatch, given):
    monkeypatch.setitem(sys.modules, "OpenHowNet", None)  # importing it fails
    monkeypatch.delitem(sys.modules, "OpenHowNet.Download", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'kgkit\[openhownet\]'"):
        kgkit.build_kb(OpenHowNetBuilder(), source if given else None, home=tmp_path / "home")


@pytest.mark.skipif(importlib.util.find_spec("OpenHowNet") is None, reason="OpenHowNet is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_package_itself_gives_the_same_kb_as_the_fake(source, tmp_path):
    real = kgkit.build_kb(OpenHowNetBuilder(), source, name="real", home=tmp_path / "home")
    with pytest.MonkeyPatch.context() as patch:
        for name, module in fake_package(source).items():
            patch.setitem(sys.modules, name, module)
        fake = kgkit.build_kb(OpenHowNetBuilder(), source, name="fake", home=tmp_path / "home")
    assert real.build == fake.build
