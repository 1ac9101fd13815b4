"""Packs of knowledge bases and vectors: what is in them, and what becomes of it in another home."""

import gzip
import tarfile

import msgspec
import pytest

import kgkit
from kgkit.building.registering import agrees
from kgkit.errors import (
    DamagedPack,
    DamagedVectors,
    NameConflict,
    NotThere,
    StaleVectors,
    UsageError,
    WriteFailed,
)
from kgkit.home import Home
from kgkit.models.storage import leftovers
from kgkit.sharing.layout import MANIFEST
from tests.pack_toys import Archive, contents_of, toy_home
from tests.toys import LINKS, PAGES, build_toy
from tests.vector_toys import made


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the toy and its vectors: not to be changed."""
    return toy_home(tmp_path_factory.mktemp("origin"))


@pytest.fixture
def pack(home, tmp_path):
    """A pack of the toy and its vectors."""
    return kgkit.pack("toy/plane", tmp_path / "toy.tar", home=home).path


def second_toy(folder):
    """Return a home with another toy."""
    folder.mkdir()
    return build_toy(folder, pages=PAGES[:3], links=()).path.parents[3]


def actions(unpacked):
    """Return what was done with each item, by its title."""
    return {item.title: action for item, action in unpacked.items}


@pytest.mark.parametrize("name", ["toy.tar", "toy.tar.gz", "toy.tgz", "toy.pack"])
def test_a_knowledge_base_and_its_vectors_are_the_same_in_an_empty_home(home, tmp_path, name):
    packed = kgkit.pack(["kb:toy", "vectors:toy/plane"], tmp_path / name, home=home)
    assert [item.title for item in packed.items] == ["kb:toy", "vectors:toy/plane"]
    assert packed.size == packed.path.stat().st_size
    unpacked = kgkit.unpack(packed.path, home=tmp_path / "other")
    assert actions(unpacked) == {"kb:toy": "add", "vectors:toy/plane": "add"}
    with kgkit.open_kb("toy", home=home) as ours, kgkit.open_kb("toy", home=tmp_path / "other") as theirs:
        assert ours.build == theirs.build and [*ours] == [*theirs]
        assert (ours.vectors("plane").matrix == theirs.vectors("plane").matrix).all()
        assert [*ours.candidates("apple")] == [*theirs.candidates("apple")]
    texts = ["The Big Apple is no apple.", "York and New York"]
    for ours, theirs in zip(
        kgkit.link(texts, kb="toy", home=home),
        kgkit.link(texts, kb="toy", home=tmp_path / "other"),
        strict=True,
    ):
        assert msgspec.json.encode(ours) == msgspec.json.encode(theirs)


def test_only_names_ending_in_gz_or_tgz_are_compressed_and_the_content_is_one(home, tmp_path):
    plain = kgkit.pack("kb:toy", tmp_path / "a.tar", home=home).path
    small = kgkit.pack("kb:toy", tmp_path / "a.tar.gz", home=home).path
    card = b"kgkit unpack a.tar"
    content = gzip.decompress(small.read_bytes())
    assert small.stat().st_size < plain.stat().st_size
    assert card in plain.read_bytes() and card + b".gz" in content
    with tarfile.open(small) as archive:
        assert archive.getnames()[:3] == [MANIFEST, "README.md", "kb/toy/manifest.json"]


def test_the_same_content_gives_the_same_file(home, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
        kgkit.pack("toy/plane", folder / "toy.tar.gz", home=home)
    assert (first / "toy.tar.gz").read_bytes() == (second / "toy.tar.gz").read_bytes()


@pytest.fixture
def without_kb(pack):
    """A pack of vectors without their knowledge base, as an earlier kgkit wrote it."""
    archive = Archive(pack)
    archive.manifest["items"] = [archive.item("vectors:toy/plane")]
    return archive.write(pack.with_name("alone.tar"))


def test_vectors_bring_their_knowledge_base(home, pack, without_kb, tmp_path):
    packed = kgkit.pack("vectors:toy/plane", tmp_path / "a.tar", home=home)
    assert [(item.title, item.requested) for item in packed.items] == [
        ("kb:toy", False), ("vectors:toy/plane", True),
    ]  # fmt: skip
    with pytest.raises(NotThere, match="toy"):
        kgkit.unpack(without_kb, home=tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    kgkit.unpack(kgkit.pack("kb:toy", tmp_path / "c.tar", home=home).path, home=tmp_path / "other")
    assert actions(kgkit.unpack(without_kb, home=tmp_path / "other")) == {"vectors:toy/plane": "add"}


def test_what_is_there_already_is_left_as_it_is(pack, tmp_path):
    kgkit.unpack(pack, home=tmp_path / "other")
    before = contents_of(tmp_path / "other")
    again = kgkit.unpack(pack, home=tmp_path / "other")
    assert set(actions(again).values()) == {"keep"} and contents_of(tmp_path / "other") == before


@pytest.mark.parametrize("file", ["kbs/toy/current/data.mdb", "kbs/toy/vectors/plane/current/matrix.npy"])
def test_what_is_damaged_here_is_replaced_by_what_is_in_the_pack(pack, tmp_path, file):
    target = tmp_path / "other"
    kgkit.unpack(pack, home=target)
    path = target / file
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(NameConflict, match="here already"):
        kgkit.unpack(pack, home=target)
    assert "replace" in actions(kgkit.unpack(pack, home=target, replace=True)).values()
    assert (target / file).read_bytes() == content


def test_a_name_that_is_taken_is_refused_or_replaced(pack, tmp_path):
    target = second_toy(tmp_path / "x")
    with kgkit.open_kb("toy", home=target) as kb:
        before = kb.build
    with pytest.raises(NameConflict, match=r"kb:toy.*--replace"):
        kgkit.unpack(pack, home=target)
    with kgkit.open_kb("toy", home=target) as kb:
        assert kb.build == before
    assert actions(kgkit.unpack(pack, home=target, replace=True))["kb:toy"] == "replace"
    with kgkit.open_kb("toy", home=target) as kb:
        assert kb.build != before and before in Home(target).kb("toy").build_names()


@pytest.fixture
def extended(tmp_path):
    """A home whose toy was added to after vectors had been made; the first build, and the second."""
    home = toy_home(tmp_path / "origin")
    first = Home(home).kb("toy").published()
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"key": "Pear", "label": "pear"}\n')
    second = kgkit.add_to_kb("toy", str(lines), builder="jsonl", home=home).build
    return home, first, second


def test_the_current_build_is_packed_where_it_only_adds_to_that_of_the_vectors(extended, tmp_path):
    home, first, second = extended
    packed = kgkit.pack("toy/plane", tmp_path / "a.tar", home=home)
    assert packed.items[0].version == second != first
    kgkit.unpack(packed.path, home=tmp_path / "other")
    with kgkit.open_kb("toy", home=tmp_path / "other") as kb:
        assert kb["Pear"] and kb.vectors("plane").manifest.build == first


def test_a_home_that_has_only_added_to_a_build_keeps_its_own(extended, tmp_path):
    home, first, second = extended
    older = kgkit.pack([f"kb:toy@{first}"], tmp_path / "a.tar", home=home)
    assert older.items[0].version == first
    fresh = tmp_path / "fresh"
    kgkit.unpack(kgkit.pack(f"kb:toy@{second}", tmp_path / "b.tar", home=home).path, home=fresh)
    assert actions(kgkit.unpack(older.path, home=fresh)) == {"kb:toy": "keep"}
    assert Home(fresh).kb("toy").published() == second


def test_two_builds_of_a_knowledge_base_do_not_go_into_one_pack(extended, tmp_path):
    home, first, second = extended
    with pytest.raises(UsageError, match="one build"):
        kgkit.pack([f"kb:toy@{first}", f"kb:toy@{second}"], tmp_path / "a.tar", home=home)


def test_vectors_of_a_build_that_is_gone_are_not_packed(tmp_path):
    home = toy_home(tmp_path / "origin")
    build_toy(tmp_path / "origin", home=home, pages=PAGES[:4], links=LINKS[:2])
    with pytest.raises(UsageError, match="does not serve it"):
        kgkit.pack(["toy/plane", "kb:toy"], tmp_path / "a.tar", home=home)
    from kgkit.store import prune

    prune(Home(home).kb("toy"))
    with pytest.raises(StaleVectors, match="which is gone"):
        kgkit.pack("toy/plane", tmp_path / "a.tar", home=home)
    assert not (tmp_path / "a.tar").exists()


def test_vectors_of_another_build_than_the_one_here_are_refused_before_anything_is_published(
    without_kb, tmp_path
):
    target = second_toy(tmp_path / "x")
    before = contents_of(target)
    with pytest.raises(StaleVectors, match="was made for build"):
        kgkit.unpack(without_kb, home=target)
    assert contents_of(target) == before


def test_a_name_alone_is_enough_where_one_thing_has_it(home, tmp_path):
    assert kgkit.pack("toy", tmp_path / "a.tar", home=home).items[0].title == "kb:toy"
    assert kgkit.pack("plane", tmp_path / "b.tar", home=home).items[1].title == "vectors:toy/plane"
    assert kgkit.pack("wsd-minilm", tmp_path / "c.tar", home=home).items[0].title == "model:wsd-minilm"


def test_a_name_of_several_things_is_told_with_the_choices(tmp_path):
    home = toy_home(tmp_path / "origin")
    made(home, name="toy")
    with pytest.raises(UsageError, match="kb:toy or vectors:toy/toy"):
        kgkit.pack("toy", tmp_path / "a.tar", home=home)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("toi", NotThere, "no knowledge base and no model 'toi'.*toy"),
        ("kb:none", NotThere, "no knowledge base 'none'"),
        ("vectors:toy/none", NotThere, "has no vectors 'none'"),
        ("vectors:plane", UsageError, "named as KB/NAME"),
        ("model:none", UsageError, "no model named 'none'"),
        ("model:prior", UsageError, "needs no files"),
        ([], UsageError, "nothing is named"),
    ],
)
def test_what_cannot_be_packed_is_told_in_a_sentence(home, tmp_path, name, error, message):
    with pytest.raises(error, match=message):
        kgkit.pack(name, tmp_path / "a.tar", home=home)
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_is_damaged_is_not_packed_and_no_file_is_left_behind(tmp_path):
    home = toy_home(tmp_path / "origin")
    matrix = home / "kbs/toy/vectors/plane/current/matrix.npy"
    content = matrix.read_bytes()
    matrix.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (tmp_path / "a.tar").write_text("what was there")
    with pytest.raises(DamagedPack, match=r"matrix\.npy of vectors:toy/plane"):
        kgkit.pack("toy/plane", tmp_path / "a.tar", home=home)
    assert (tmp_path / "a.tar").read_text() == "what was there"
    matrix.write_bytes(content[:-1])
    with pytest.raises(DamagedVectors, match="its manifest says"):
        kgkit.pack("toy/plane", tmp_path / "a.tar", home=home)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "origin"]


def test_a_pack_is_a_file_and_not_a_folder(home, tmp_path):
    with pytest.raises(UsageError, match="is a folder: name a file"):
        kgkit.pack("toy", tmp_path, home=home)
    with pytest.raises(UsageError, match="a pack is a file"):
        kgkit.unpack(tmp_path, home=home)
    with pytest.raises(NotThere, match="no file"):
        kgkit.unpack(tmp_path / "none.tar", home=home)


def test_the_card_says_what_is_in_it_and_how_it_is_used(pack, tmp_path):
    card = kgkit.unpack(pack, home=tmp_path / "other").card
    assert card.startswith("# `vectors:toy/plane`\n") and "kgkit unpack toy.tar" in card
    assert "licence: CC0-1.0" in card and "7 entities" in card and "kgkit link text.txt --kb toy" in card


def test_progress_is_told_from_both_sides(home, tmp_path):
    steps = []
    kgkit.pack("toy", tmp_path / "a.tar", home=home, progress=lambda *step: steps.append(step))
    assert steps[-1][0] == "packing" and steps[-1][1] == steps[-1][2] > 0
    kgkit.unpack(tmp_path / "a.tar", home=tmp_path / "other", progress=lambda *step: steps.append(step))
    assert steps[-1][0] == "unpacking" and steps[-1][1] == steps[-1][2] > 0


def test_a_pack_larger_than_allowed_or_than_the_disk_is_refused(pack, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="1,000 are allowed"):
        kgkit.unpack(pack, home=tmp_path / "other", max_bytes=1000)
    monkeypatch.setattr("kgkit.sharing.unpacking.free_space", lambda path: 10_000)
    with pytest.raises(WriteFailed, match="MB to be written"):
        kgkit.unpack(pack, home=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_disk_that_is_full_leaves_nothing_behind(pack, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kgkit.sharing.unpacking.sync_tree", refuse)
    with pytest.raises(WriteFailed, match="No space left"):
        kgkit.unpack(pack, home=tmp_path / "a" / "other")
    assert not (tmp_path / "a").exists()


def test_what_a_killed_process_leaves_is_found_by_clean_and_what_works_is_not(home, tmp_path):
    from kgkit.versions import lock_folder

    folder = tmp_path / ".unpack-0123"
    folder.mkdir()
    (folder / "data").write_text("x")
    with lock_folder(folder, 0):
        assert leftovers(Home(tmp_path)) == []
    assert [leftover.path for leftover in leftovers(Home(tmp_path))] == [folder]


def test_the_next_pack_removes_what_a_killed_process_left_and_not_what_another_unpacks(pack, tmp_path):
    from kgkit.versions import lock_folder

    left, working = tmp_path / "other" / ".unpack-0123", tmp_path / "other" / ".unpack-4567"
    for folder in (left, working):
        (folder / "0").mkdir(parents=True)
        (folder / "0" / "data.mdb").write_text("x")
    with lock_folder(working, 0):
        kgkit.unpack(pack, home=tmp_path / "other")
        assert not left.exists()
        assert (working / "0" / "data.mdb").exists()


def test_the_catalog_lists_what_was_unpacked(pack, tmp_path):
    kgkit.unpack(pack, home=tmp_path / "other")
    assert agrees(Home(tmp_path / "other"))
    assert [kb.name for kb in kgkit.kbs(home=tmp_path / "other")] == ["toy"]
