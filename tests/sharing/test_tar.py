"""Headers of archives: Python's tarfile reads what we write, and we read nothing else."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import DamagedPack, UsageError
from kgkit.sharing.tar import BLOCK, END, padding, parse_header, tar_header

SIZES = [0, 1, 511, 512, 513, 8**11 - 1, 8**11, 1 << 45]


@pytest.mark.parametrize("size", SIZES)
def test_a_header_is_that_of_a_regular_file_for_tarfile_too(size):
    member = tarfile.TarInfo.frombuf(tar_header("model/a/head/model.safetensors", size), "ascii", "strict")
    assert (member.name, member.size, member.isreg()) == ("model/a/head/model.safetensors", size, True)
    assert (member.mode, member.uid, member.gid, member.mtime) == (0o644, 0, 0, 0)


@pytest.mark.parametrize("size", SIZES)
def test_name_and_size_are_read_again(size):
    assert parse_header(tar_header("kb/toy/data.mdb", size)) == ("kb/toy/data.mdb", size)


def test_a_long_path_is_cut_at_a_slash_as_tarfile_cuts_it():
    name = f"model/{'n' * 64}/{'folder-' * 9}/special_tokens_map.json"
    block = tar_header(name, 7)
    assert len(block) == BLOCK and parse_header(block) == (name, 7)
    assert tarfile.TarInfo.frombuf(block, "ascii", "strict").name == name


@pytest.mark.parametrize("name", ["x" * 101, f"{'a' * 200}/b", f"{'a/' * 90}{'b' * 101}"])
def test_a_path_that_no_header_has_room_for_is_refused(name):
    with pytest.raises(UsageError, match="too long for a pack"):
        tar_header(name, 1)


def test_an_archive_of_such_headers_is_one_for_tarfile():
    texts = {"one.txt": b"1", "folder/two.txt": b"2" * 700, "empty": b""}
    blocks = [tar_header(name, len(text)) + text + bytes(padding(len(text))) for name, text in texts.items()]
    with tarfile.open(fileobj=io.BytesIO(b"".join([*blocks, END])), mode="r:") as archive:
        assert {member.name: archive.extractfile(member).read() for member in archive} == texts


@given(st.integers(0, BLOCK - 1), st.integers(1, 255))
def test_a_header_with_any_other_byte_is_refused_or_another_file(at, change):
    block = bytearray(tar_header("kb/toy/data.mdb", 4096))
    block[at] ^= change
    with pytest.raises(DamagedPack, match="not of a regular file"):
        parse_header(bytes(block))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
        tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE,
    ],
)  # fmt: skip
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_links_folders_devices_and_extensions_are_refused(kind, format):
    member = tarfile.TarInfo("kb/toy/data.mdb")
    member.type, member.linkname, member.mode = kind, "/etc/passwd", 0o644
    with pytest.raises(DamagedPack, match="not of a regular file"):
        parse_header(member.tobuf(format)[:BLOCK])


def test_what_is_no_header_at_all_is_refused():
    for block in (bytes(BLOCK), b"\xff" * BLOCK, b"PK\x03\x04" * 128, b"\x80" * BLOCK):
        with pytest.raises(DamagedPack):
            parse_header(block)
