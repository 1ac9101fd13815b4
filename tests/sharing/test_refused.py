"""Packs that are damaged or hostile: refused with a sentence, and nothing is left behind."""

import gzip
import hashlib
import os
import pickle
import random
import re
import tarfile
import tracemalloc

import pytest

import kgkit
from kgkit.building import Entity
from kgkit.errors import DamagedPack, FormatMismatch, KgkitError, UsageError
from kgkit.sharing.layout import CARD, MANIFEST, SUFFIXES
from kgkit.sharing.reading import PackReader, open_pack
from tests.doc_pages import ROOT
from tests.pack_toys import Archive, contents_of, toy_pack, write_archive
from tests.toys import build_toy, crafted_data

FLIPS = 40
"""Flipped bytes of each of a plain and a compressed pack."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A pack of the toy and its vectors: not to be changed."""
    return toy_pack(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def compressed(plain, tmp_path_factory):
    """The same, compressed."""
    path = tmp_path_factory.mktemp("compressed") / "toy.tar.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    return path


@pytest.fixture(scope="module")
def published(plain, tmp_path_factory):
    """The files that it gives."""
    home = tmp_path_factory.mktemp("published")
    kgkit.unpack(plain, home=home)
    return content_of(home)


def content_of(home):
    """Return the files of the knowledge bases of a home."""
    files = [path for path in home.glob("kbs/**/*.*") if path.is_file()]
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


@pytest.fixture
def archive(plain):
    """The pack, taken apart."""
    return Archive(plain)


def refused(path, folder):
    """Return the message of the error that a pack is refused with; nothing may be left behind."""
    home = folder / "deep" / "home"
    with pytest.raises(KgkitError) as error:
        kgkit.unpack(path, home=home)
    assert not (folder / "deep").exists(), contents_of(home)
    return str(error.value)


@pytest.mark.parametrize("number", range(FLIPS))
@pytest.mark.parametrize("kind", ["plain", "compressed"])
def test_a_pack_with_a_flipped_byte_is_refused_or_gives_what_it_gave(request, tmp_path, kind, number):
    content = bytearray(request.getfixturevalue(kind).read_bytes())
    drawn = random.Random(f"{kind}{number}")
    # The first bytes and the last ones, where a format keeps what few readers look at; else anywhere.
    size = len(content)
    at = number if number < 12 else size - 1 - (number - 12) if number < 24 else drawn.randrange(size)
    content[at] ^= drawn.randrange(1, 256)
    path, home = tmp_path / "flipped.tar", tmp_path / "deep" / "home"
    path.write_bytes(content)
    try:
        kgkit.unpack(path, home=home)
    except DamagedPack:
        assert not (tmp_path / "deep").exists(), contents_of(home)
        return
    # A bit of an empty block, or of a field of the header that nothing is read from.
    assert content_of(home) == request.getfixturevalue("published")


PATHS = (
    "../manifest.json", "../../../../etc/cron.d/x.json", "/etc/x.json", "a/../../x.json", "./x.json",
    "a//x.json", "..", ".hidden.json", "a\\..\\x.json", "C:x.json", "con.json", "aux/x.json", "x.json.",
    "x\n.json", "é.json",
    "x" * 101 + ".json", "a/" * 9 + "x.json", "", " x.json", "a/ /x.json", "~/x.json", "x.json\0",
)  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_leads_elsewhere_is_refused_before_anything_is_written(archive, tmp_path, name):
    archive.item("kb:toy")["files"][name] = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    assert repr(name[:80]) in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


@pytest.mark.parametrize(
    "suffix", [".bin", ".pkl", ".pickle", ".pt", ".pth", ".py", ".so", ".sh", ".joblib", ""]
)
def test_files_that_could_execute_something_are_refused(archive, tmp_path, suffix):
    archive.set_file("vectors:toy/plane", f"rest{suffix}", pickle.dumps(os.getcwd))
    assert "ends in" in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


def test_the_manual_lists_how_the_files_of_a_pack_may_end():
    page = (ROOT / "docs/sharing.md").read_text(encoding="utf-8")
    [sentence] = re.findall(r"files end in ([^;]+?)\. No pickle", page)
    assert set(re.findall(r"`(\.\w+)`", sentence)) == SUFFIXES


@pytest.mark.parametrize("name", ["matrix.npy", "keys.npy"])
def test_an_array_of_objects_is_refused_and_nothing_of_it_is_unpickled(archive, tmp_path, name):
    import io

    import numpy as np

    content = io.BytesIO()
    np.save(content, np.array([print], dtype=object), allow_pickle=True)
    archive.set_file("vectors:toy/plane", name, content.getvalue())
    files = archive.item("vectors:toy/plane")["files"]
    remaining = {path: file for path, file in files.items() if path != "vectors.json"}
    sizes = {path: file["size"] for path, file in remaining.items()}
    digests = {path: file["sha256"] for path, file in remaining.items()}
    archive.edit_json("vectors:toy/plane", "vectors.json", files=sizes, sha256=digests)
    assert refused(archive.write(tmp_path / "pack.tar"), tmp_path)


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"L", b"K", b"x", b"g", b"S"])
@pytest.mark.parametrize("name", [MANIFEST, "kb/toy/data.mdb"])
def test_links_devices_folders_and_extensions_are_refused(plain, tmp_path, kind, name):
    content = bytearray(plain.read_bytes())
    at = content.index(name.encode() + b"\0")
    header = bytearray(content[at : at + tarfile.BLOCKSIZE])
    header[156:157] = kind
    header[157:168] = b"/etc/passwd"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    content[at : at + tarfile.BLOCKSIZE] = header
    path = tmp_path / "link.tar"
    path.write_bytes(content)
    refused(path, tmp_path)


def test_long_names_upon_long_names_are_refused(tmp_path):
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 8
    block = member.tobuf(tarfile.GNU_FORMAT) + b"name\0".ljust(tarfile.BLOCKSIZE, b"\0")
    path = tmp_path / "names.tar"
    path.write_bytes(block * 3000)
    refused(path, tmp_path)


def bomb(archive, path, size):
    """Write a compressed pack whose data.mdb is that many zeros, which its manifest declares."""
    archive.item("kb:toy")["files"]["data.mdb"] = {"size": size, "sha256": "0" * 64}
    start = archive.write(path).read_bytes()
    member = tarfile.TarInfo("kb/toy/data.mdb")
    member.size = size
    start = start[: start.index(b"kb/toy/data.mdb\0")] + member.tobuf(tarfile.GNU_FORMAT)
    with gzip.open(path, "wb") as file:
        file.write(start)
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return path


def test_a_bomb_takes_no_memory_and_leaves_nothing(archive, tmp_path):
    path = bomb(archive, tmp_path / "bomb.tar.gz", 200 << 20)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        refused(path, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_beyond_the_limit_is_refused_at_its_manifest(archive, tmp_path):
    path = bomb(archive, tmp_path / "bomb.tar.gz", 3 << 20)
    with pytest.raises(UsageError, match="1,048,576"):
        kgkit.unpack(path, home=tmp_path / "home", max_bytes=1 << 20)
    archive.item("kb:toy")["files"]["data.mdb"]["size"] = 1 << 61
    assert f"{1 << 61:,}"[:9] in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


def test_a_bomb_in_the_place_of_the_manifest_is_not_inflated(tmp_path):
    member = tarfile.TarInfo(MANIFEST)
    member.size = 8 << 30
    path = tmp_path / "bomb.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        assert MANIFEST in refused(path, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_further_files_are_refused(archive, tmp_path):
    names = archive.names()
    archive.names = lambda: [*names, "kb/toy/more.json"]
    assert "more.json" in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.3, 0.6, 0.8])
def test_a_pack_that_ends_too_early_is_refused(plain, compressed, tmp_path, share):
    for source in (plain, compressed):
        content = source.read_bytes()
        path = tmp_path / "short.tar"
        path.write_bytes(content[: int(share * len(content))])
        assert "was not unpacked" in refused(path, tmp_path)


def test_files_in_another_order_or_under_another_name_are_refused(archive, tmp_path):
    names = archive.names()
    archive.names = lambda: [*names[:-2], names[-1], names[-2]]
    refused(archive.write(tmp_path / "pack.tar"), tmp_path)


NOTHING = {"size": 0, "sha256": "0" * 64}
MANY = {f"f{number}.json": NOTHING for number in range(20_001)}
CHANGES = {  # of the manifest of the pack, of its first item, or of a file of that; what the error says
    "format": ({"format": 99}, "has format 99"), "empty": ({"items": []}, "nothing in it"),
    "field": ({"execute": "rm"}, "unknown field"), "kind": ({"kind": "script"}, "Invalid enum value"),
    "name": ({"name": "../toy"}, "is no name of a kb"), "version": ({"version": "../x"}, "is no version"),
    "digest": ({"data.mdb": NOTHING | {"sha256": "zz"}}, "matching regex"),
    "size": ({"data.mdb": NOTHING | {"size": -1}}, ">= 0"), "number": (MANY, "more than 20,000 files"),
    "capitals": ({"DATA.mdb": NOTHING}, "have one path"),
    "folder": ({"data.mdb/x.json": NOTHING}, "have one path"),
    "long": ({"manifest.json": NOTHING | {"size": 64_000_001}}, "is longer than"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_makes_no_sense_is_refused(archive, tmp_path, change, message):
    item = archive.manifest["items"][0]
    places = (archive.manifest, ("format", "items", "execute")), (item, ("kind", "name", "version"))
    place = next((place for place, names in places if {*change} <= {*names}), item["files"])
    place.update(change)
    assert message in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


def test_items_that_make_no_sense_are_refused(archive, tmp_path):
    items = archive.manifest["items"]
    files = items[0]["files"]
    for changed, message in (
        ([*items, items[0]], "declares something twice"),
        ([item | {"requested": False} for item in items], "nothing in it is what somebody asked for"),
        ([archive.item("vectors:toy/plane") | {"name": "toy/a/b"}], "is no name of a vectors"),
        ([items[0] | {"files": dict(reversed(files.items()))}, *items[1:]], "first file of kb:toy"),
    ):
        archive.manifest["items"] = changed
        assert message in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}']
)
def test_a_manifest_that_is_none_is_refused(tmp_path, content):
    assert MANIFEST in refused(write_archive(tmp_path / "pack.tar", [(MANIFEST, content)]), tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04" + bytes(600), bytes(2000), b"\x1f\x8b\x08\x00"]
)
def test_what_is_no_pack_is_refused(tmp_path, content):
    path = tmp_path / "none.tar"
    path.write_bytes(content)
    assert "was not unpacked" in refused(path, tmp_path)


@pytest.mark.parametrize(
    ("title", "path", "fields", "message"),
    [
        ("kb:toy", "manifest.json", {"format": 9}, "which this kgkit does not read"),
        ("kb:toy", "manifest.json", {"entities": 999}, "and is not"),
        ("kb:toy", "manifest.json", {"build": "../../x"}, "and is not"),
        ("kb:toy", "manifest.json", {"files": {"data.mdb": 5}}, "not those that its manifest names"),
        ("kb:toy", "manifest.json", {"sha256": {"data.mdb": "0" * 64}}, "other digests"),
        ("kb:toy", "manifest.json", {"url_pattern": "javascript:{key}"}, "is build"),
        ("vectors:toy/plane", "vectors.json", {"rows": 10**12}, "and is not"),
        ("vectors:toy/plane", "vectors.json", {"name": "other"}, "says that it is toy/other"),
        ("vectors:toy/plane", "vectors.json", {"kb": "../.."}, "says that it is ../../plane"),
        ("vectors:toy/plane", "vectors.json", {"files": {}}, "not those that its manifest names"),
    ],
)
def test_what_says_something_else_of_itself_than_the_pack_does_is_refused(
    archive, tmp_path, title, path, fields, message
):
    archive.edit_json(title, path, **fields)
    assert message in refused(archive.write(tmp_path / "pack.tar"), tmp_path)


def forged(archive, path):
    """Write the pack with another text in its knowledge base, all checksums right, the build's name kept."""
    data = archive.files["kb/toy/data.mdb"]
    assert data.count(b"A fruit.") == 1
    archive.set_data("kb:toy", data.replace(b"A fruit.", b"A vegan."))
    return archive.write(path)


def test_other_content_under_the_name_of_a_build_is_refused(archive, tmp_path):
    assert "'entities'" in refused(forged(archive, tmp_path / "forged.tar"), tmp_path)


def test_other_content_does_not_replace_what_is_here(archive, tmp_path):
    home = tmp_path / "home"
    build_toy(tmp_path, all=[Entity("alone")])
    before = contents_of(home)
    with pytest.raises(DamagedPack):
        kgkit.unpack(forged(archive, tmp_path / "forged.tar"), home=home, replace=True)
    assert contents_of(home) == before


def test_other_content_is_refused_where_the_build_here_is_damaged(archive, plain, tmp_path):
    home = tmp_path / "home"
    kgkit.unpack(plain, home=home)
    data = (home / "kbs/toy/current").resolve() / "data.mdb"
    data.write_bytes(bytes(data.stat().st_size))
    with pytest.raises(DamagedPack):
        kgkit.unpack(forged(archive, tmp_path / "forged.tar"), home=home, replace=True)


def test_pages_that_end_the_process_that_reads_them_are_refused(archive, tmp_path):
    archive.set_data("kb:toy", crafted_data(archive.files["kb/toy/data.mdb"]))
    refused(archive.write(tmp_path / "crafted.tar"), tmp_path)


def test_a_format_that_is_not_read_says_which_are(archive, tmp_path):
    archive.edit_json("kb:toy", "manifest.json", format=9)
    with pytest.raises(FormatMismatch, match="2, 3, 4"):
        kgkit.unpack(archive.write(tmp_path / "pack.tar"), home=tmp_path / "home")


def test_a_home_that_was_there_is_as_it_was(plain, tmp_path):
    home = build_toy(tmp_path, name="other").path.parents[3]
    before = contents_of(home)
    content = bytearray(plain.read_bytes())
    content[content.index(b"A fruit.")] ^= 1
    (tmp_path / "flipped.tar").write_bytes(content)
    with pytest.raises(DamagedPack):
        kgkit.unpack(tmp_path / "flipped.tar", home=home)
    assert contents_of(home) == before


def test_a_card_that_is_no_text_is_read_as_far_as_it_is(archive, tmp_path):
    archive.files[CARD] = b"\xff\xfe# toy"
    archive.manifest["card"] = {"size": 7, "sha256": hashlib.sha256(b"\xff\xfe# toy").hexdigest()}
    assert kgkit.unpack(archive.write(tmp_path / "pack.tar"), home=tmp_path / "home").card.endswith("# toy")


def test_a_pack_is_read_in_chunks_that_do_not_grow_with_it(tmp_path):
    records = {"links": (), "pages": build_records(4000)}
    (tmp_path / "x").mkdir()
    home = build_toy(tmp_path / "x", **records).path.parents[3]
    path = kgkit.pack("toy", tmp_path / "toy.tar.gz", home=home).path
    with open_pack(str(path), 1 << 40) as reader:
        assert isinstance(reader, PackReader) and reader.manifest.size > 8_000_000
        tracemalloc.start()
        try:
            sizes: list[int] = []
            for item in reader.manifest.items:
                for name, file in item.files.items():
                    content = reader.file(f"{item.kind}/{item.name}/{name}", file)
                    while chunk := content.read():
                        sizes.append(len(chunk))
            assert tracemalloc.get_traced_memory()[1] < 8_000_000
        finally:
            tracemalloc.stop()
    assert sum(sizes) == reader.manifest.size


def build_records(count):
    """Return entities with long descriptions."""
    from tests.toys import entities

    return entities(count, 3000)
