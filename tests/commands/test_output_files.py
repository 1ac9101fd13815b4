"""Files that are replaced as a whole: who may read them stays as it was."""

import os
import stat

import pytest

from kgkit.files import written
from tests.cli_helpers import build_mini, run


def put(path, content, look=lambda: None):
    with written(path) as stream:
        stream.write(content)
        look()


@pytest.fixture(autouse=True)
def _umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o444, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode(kept, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(kept)
    link = tmp_path / "link"
    link.symlink_to(path)
    put(link, b"new")
    assert path.read_bytes() == b"new" and mode(path) == kept and link.is_symlink()


def test_what_is_written_beside_a_private_file_is_private_from_the_beginning(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = []
    put(path, b"new", lambda: seen.extend(mode(one) for one in tmp_path.iterdir()))
    assert seen == [0o600, 0o600]


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    put(tmp_path / "out", b"new")
    assert mode(tmp_path / "out") == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file away")
def test_a_file_that_is_replaced_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    put(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_group_that_cannot_be_kept_leaves_no_rights_to_another(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o664)
    real = os.stat_result

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refused)
    ours = type(path).stat

    def of_another_group(self, **settings):
        found = list(ours(self, **settings))
        found[stat.ST_GID] += self == path
        return real(found)

    monkeypatch.setattr(type(path), "stat", of_another_group)
    put(path, b"new")
    monkeypatch.undo()
    assert mode(path) == 0o604


def test_a_command_over_a_private_file_leaves_it_private(tmp_path):
    home, text, out = build_mini(tmp_path), tmp_path / "text.txt", tmp_path / "out.jsonl"
    text.write_text("The dog barks.")
    out.touch(0o600)
    assert run("link", text, "--home", home, "-o", out).code == 0
    assert out.stat().st_size and mode(out) == 0o600
