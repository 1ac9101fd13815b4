"""Where WordNet comes from: tried on made-up packages and archives, never over the network."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from kb_builders import wordnet_source
from kb_builders.wordnet_source import FILES, obtain
from kgkit.errors import NotThere


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """A machine without WordNet, apt or network: each test adds what it needs."""
    monkeypatch.setattr(wordnet_source, "INSTALLED", tmp_path / "usr/share/wordnet")
    monkeypatch.setattr(wordnet_source, "URL", (tmp_path / "no-such-archive").as_uri())
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))


def put_files(folder: Path, *, without: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        if file != without:
            (folder / file).write_text(f"this is {file}")


def put_program(tmp_path: Path, name: str, script: str) -> None:
    program = tmp_path / "bin" / name
    program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    program.chmod(0o755)


def put_archive(tmp_path, monkeypatch, members, *, checksum=None) -> None:
    """Publish an archive with these (TarInfo, content) *members* under the address that is asked."""
    archive = tmp_path / "WordNet-3.0.tar.bz2"
    with tarfile.open(archive, "w:bz2") as out:
        for info, content in members:
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    real = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(wordnet_source, "URL", archive.as_uri())
    monkeypatch.setattr(wordnet_source, "SHA256", checksum or real)


def whole_archive() -> list[tuple[tarfile.TarInfo, bytes]]:
    return [(tarfile.TarInfo(f"WordNet-3.0/dict/{file}"), f"this is {file}".encode()) for file in FILES]


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


WHOLE = {file: f"this is {file}" for file in FILES}


def test_an_installed_wordnet_is_used_as_it_is(tmp_path):
    put_files(tmp_path / "usr/share/wordnet")
    assert obtain(tmp_path / "cache") == tmp_path / "usr/share/wordnet"
    assert not (tmp_path / "cache").exists()


def test_an_installed_wordnet_that_lacks_a_file_is_passed_over(tmp_path, monkeypatch):
    put_files(tmp_path / "usr/share/wordnet", without="cntlist.rev")
    put_archive(tmp_path, monkeypatch, whole_archive())
    assert obtain(tmp_path / "cache") == tmp_path / "cache/wordnet-3.0"


def test_the_archive_gives_exactly_the_wanted_files(tmp_path, monkeypatch):
    extra = [
        (tarfile.TarInfo("WordNet-3.0/dict/index.sense"), b"x"),
        (tarfile.TarInfo("data.noun"), b"wrong"),
    ]
    put_archive(tmp_path, monkeypatch, whole_archive() + extra)
    assert contents(obtain(tmp_path / "cache")) == WHOLE


def test_what_was_fetched_once_is_not_fetched_again(tmp_path, monkeypatch):
    put_archive(tmp_path, monkeypatch, whole_archive())
    first = obtain(tmp_path / "cache")
    (tmp_path / "WordNet-3.0.tar.bz2").unlink()
    assert obtain(tmp_path / "cache") == first


def test_a_fetched_folder_that_lost_a_file_is_fetched_anew(tmp_path, monkeypatch):
    put_archive(tmp_path, monkeypatch, whole_archive())
    put_files(tmp_path / "cache/wordnet-3.0", without="data.verb")
    assert contents(obtain(tmp_path / "cache")) == WHOLE


def test_when_two_processes_fetch_at_once_the_first_one_stays(tmp_path):
    put_files(tmp_path / "cache/wordnet-3.0")
    put_files(tmp_path / "mine")
    inode = (tmp_path / "cache/wordnet-3.0").stat().st_ino
    wordnet_source._publish(tmp_path / "mine", tmp_path / "cache/wordnet-3.0")
    assert (tmp_path / "cache/wordnet-3.0").stat().st_ino == inode


def test_a_download_with_another_checksum_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    put_archive(tmp_path, monkeypatch, whole_archive(), checksum="0" * 64)
    with pytest.raises(NotThere, match="0" * 64):
        obtain(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_archive_that_lacks_a_file_is_refused_by_name(tmp_path, monkeypatch):
    members = [entry for entry in whole_archive() if not entry[0].name.endswith("noun.exc")]
    put_archive(tmp_path, monkeypatch, members)
    with pytest.raises(NotThere, match=r"it lacks noun\.exc"):
        obtain(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_damaged_archive_is_refused(tmp_path, monkeypatch):
    archive = tmp_path / "damaged"
    archive.write_bytes(b"this is not an archive")
    monkeypatch.setattr(wordnet_source, "URL", archive.as_uri())
    monkeypatch.setattr(wordnet_source, "SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    with pytest.raises(NotThere, match="the archive cannot be read"):
        obtain(tmp_path / "cache")


def test_no_member_of_the_archive_is_written_outside_the_folder(tmp_path, monkeypatch):
    link = tarfile.TarInfo("WordNet-3.0/dict/data.noun")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret")
    climbing = (tarfile.TarInfo("../../../dict/data.verb"), b"this is data.verb")
    rest = [entry for entry in whole_archive() if entry[0].name.endswith((".adj", ".adv", ".exc", ".rev"))]
    others = [entry for entry in whole_archive() if entry[0].name.endswith(("index.noun", "index.verb"))]
    put_archive(tmp_path, monkeypatch, [(link, b""), climbing, *rest, *others])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NotThere, match=r"data\.noun"):
        obtain(tmp_path / "cache")
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "cache"])


def test_the_debian_package_is_unpacked_without_root(tmp_path):
    put_files(tmp_path / "package/usr/share/wordnet")
    put_program(tmp_path, "apt-get", "echo made by apt-get > wordnet-base_3.0_all.deb")
    put_program(tmp_path, "dpkg-deb", f'cp -r "{tmp_path}/package" "$3"')
    assert contents(obtain(tmp_path / "cache")) == WHOLE


def test_where_apt_fails_the_archive_is_downloaded(tmp_path, monkeypatch):
    put_program(tmp_path, "apt-get", "exit 100")
    put_program(tmp_path, "dpkg-deb", "exit 2")
    put_archive(tmp_path, monkeypatch, whole_archive())
    assert contents(obtain(tmp_path / "cache")) == WHOLE


def test_an_apt_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(wordnet_source, "TIMEOUT", 0.2)
    put_program(tmp_path, "apt-get", "exec sleep 20")
    put_program(tmp_path, "dpkg-deb", "exit 2")
    with pytest.raises(NotThere, match="apt-get"):
        obtain(tmp_path / "cache")


def test_when_all_fails_one_message_says_what_was_tried_and_what_to_do(tmp_path):
    put_program(
        tmp_path, "apt-get", 'echo "W: no lists" >&2; echo "E: Unable to locate package" >&2; exit 100'
    )
    put_program(tmp_path, "dpkg-deb", "exit 2")
    with pytest.raises(NotThere) as caught:
        obtain(tmp_path / "cache")
    message = str(caught.value)
    assert "usr/share/wordnet: no WordNet there" in message
    assert "the Debian package wordnet-base: apt-get failed: E: Unable to locate package" in message
    assert "no-such-archive" in message


def test_on_a_machine_without_apt_the_message_says_so(tmp_path):
    with pytest.raises(NotThere, match="apt-get"):
        obtain(tmp_path / "cache")
