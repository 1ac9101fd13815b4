"""What models need: builds, vectors and linkers that are there, are gone, or have been added to."""

import msgspec
import pytest

import kgkit
from kgkit.home import Home
from kgkit.kb.lineage import serving_builds
from kgkit.models.kinds import TaggerManifest
from kgkit.models.manifest import FORMAT, MANIFEST, Needs
from kgkit.models.needs import Need, check_needs, models_needing, needed_builds
from kgkit.types import Alias, Entity
from tests.small_kb import build
from tests.vector_toys import made

RECORDS = [Entity("dog", "dog"), Entity("cat", "cat"), Alias("dog", "dog")]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the knowledge base `pets`, which has vectors called `plane`."""
    folder = tmp_path_factory.mktemp("home")
    build(folder, RECORDS, name="pets").close()
    made(folder, [[1, 0], [0, 1]], kb="pets")
    return Home(folder)


def current(home, name="pets"):
    """Return the BUILD of a knowledge base."""
    with kgkit.open_kb(name, home=home.path) as kb:
        return kb.build


def write_tagger(home, name, **fields):
    """Write a model that is a manifest alone."""
    folder = home.models / name
    folder.mkdir(parents=True, exist_ok=True)
    manifest = TaggerManifest(
        format=FORMAT, kind="tagger", name=name, types=("PER",), fingerprint="", reader={}, **fields
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def test_a_model_that_needs_nothing_needs_nothing(home):
    assert [*check_needs(Needs(), home)] == []


def test_what_is_needed_is_told_in_order_with_whether_it_is_there(home):
    needs = Needs(
        kbs={"pets": current(home), "gone": "0" * 12}, vectors=("pets/plane", "pets/text", "gone/text"),
        linker="prior",
    )  # fmt: skip
    assert [*check_needs(needs, home)] == [
        Need("build", f"pets@{current(home)}", True),
        Need("build", f"gone@{'0' * 12}", False),
        Need("vectors", "pets/plane", True),
        Need("vectors", "pets/text", False),
        Need("vectors", "gone/text", False),
        Need("linker", "prior", True),
    ]


@pytest.mark.parametrize("exact", [True, False])
def test_a_build_that_is_there_serves_whether_it_is_asked_for_to_the_letter_or_not(home, exact):
    [need] = check_needs(Needs(kbs={"pets": current(home)}, exact=exact), home)
    assert need.available


@pytest.mark.parametrize("linker", ["prior", "gloss"])
def test_a_linker_that_needs_no_training_is_always_there(tmp_path, linker):
    [need] = check_needs(Needs(linker=linker), Home(tmp_path))
    assert need == Need("linker", linker, True)


def test_a_trained_linker_is_there_while_its_folder_is(tmp_path):
    home = Home(tmp_path)
    [need] = check_needs(Needs(linker="mine"), home)
    assert not need.available
    write_tagger(home, "mine")
    [need] = check_needs(Needs(linker="mine"), home)
    assert need.available


def test_models_beside_a_linker_are_needed_too(tmp_path):
    home = Home(tmp_path)
    write_tagger(home, "names")
    write_tagger(home, "reader", needs=Needs(linker="prior", models=("names", "table")))
    needs = Needs(models=("names", "table"))
    assert [*check_needs(needs, home)] == [Need("model", "names", True), Need("model", "table", False)]
    assert models_needing(home, "names") == ["reader"] and models_needing(home, "table") == ["reader"]


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_names_that_can_be_no_knowledge_base_are_not_there(tmp_path, name):
    needs = Needs(kbs={name: "0" * 12})
    [need] = check_needs(needs, Home(tmp_path))
    assert need == Need("build", f"{name}@{'0' * 12}", False)


@pytest.fixture
def extended(tmp_path):
    """A home whose knowledge base was added to, its first BUILD, and the second one."""
    home = Home(tmp_path)
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"key": "cow", "label": "cow"}\n')
    build(home.path, RECORDS, name="pets").close()
    before = current(home)
    from kb_builders.jsonl import JSONLBuilder
    from kgkit.building.add import add_to_kb

    after = add_to_kb("pets", str(lines), builder=JSONLBuilder(), home=home.path).build
    return home, before, after


def test_a_build_that_was_only_added_to_serves_in_the_place_of_the_older(extended):
    home, before, after = extended
    assert before != after
    needs = Needs(kbs={"pets": before})
    assert [need.available for need in check_needs(needs, home)] == [True]
    kgkit.open_kb("pets", home=home.path).close()
    removed = home.kb("pets").builds / before
    if removed.exists():
        removed.rename(home.path / "elsewhere")
    assert [need.available for need in check_needs(needs, home)] == [True]
    assert serving_builds(home.kb("pets"), before) == [current(home)]
    assert serving_builds(home.kb("pets"), "other") == []


def test_facts_that_are_read_to_the_letter_need_the_very_build(extended):
    home, before, _ = extended
    needs = Needs(kbs={"pets": before}, exact=True)
    removed = home.kb("pets").builds / before
    if removed.exists():
        assert [need.available for need in check_needs(needs, home)] == [True]
        removed.rename(home.path / "elsewhere")
    assert [need.available for need in check_needs(needs, home)] == [False]
    assert [need.name for need in check_needs(needs, home)] == [f"pets@{before}"]


def test_models_that_read_the_links_of_another_are_named_and_what_cannot_be_read_is_left_out(tmp_path):
    home = Home(tmp_path)
    write_tagger(home, "one", needs=Needs(linker="linker"))
    write_tagger(home, "two", needs=Needs(linker="other"))
    write_tagger(home, "three", needs=Needs(linker="linker"))
    (home.models / "torn").mkdir()
    (home.models / "torn" / MANIFEST).write_text("{")
    assert models_needing(home, "linker") == ["one", "three"]
    assert models_needing(home, "none") == [] == models_needing(Home(tmp_path / "empty"), "linker")


def test_a_model_above_a_linker_needs_the_builds_of_that(tmp_path):
    home = Home(tmp_path)
    write_tagger(home, "first", needs=Needs(kbs={"pets": "0" * 12}))
    write_tagger(home, "second", needs=Needs(linker="first"))
    write_tagger(home, "loop", needs=Needs(linker="loop"))
    for linker, builds in (
        ("first", {"pets": "0" * 12}), ("second", {"pets": "0" * 12}), ("loop", {}), ("gloss", {}), ("", {}),
    ):  # fmt: skip
        assert needed_builds(Needs(linker=linker), home) == builds
    assert needed_builds(Needs(kbs={"cars": "1" * 12}, linker="first"), home) == {"cars": "1" * 12}
