"""What the page on stability promises is what the code has: formats, names, variables, platforms."""

import re
import tomllib

import pytest

import kgkit
from kgkit import versions
from kgkit.errors import UnsupportedPlatform
from kgkit.home import CATALOG_URL, DEFAULT_KB, Home
from kgkit.models.manifest import FORMAT as MODEL_FORMAT
from kgkit.models.publishing import stage_model
from kgkit.network import OFFLINE
from kgkit.sharing.layout import FORMAT as PACK_FORMAT
from kgkit.store.layout import FORMAT as BUILD_FORMAT
from kgkit.store.layout import readable_formats
from kgkit.vectors.layout import FORMAT as VECTORS_FORMAT
from kgkit.vectors.work import making
from tests.cli_helpers import run
from tests.doc_pages import ROOT
from tests.toys import build_toy

PAGE = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def cells(name):
    """Return the cells of the row of the page's table that begins with *name*."""
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("builds", BUILD_FORMAT, sorted(readable_formats())), ("vectors", VECTORS_FORMAT, [VECTORS_FORMAT]),
        ("trained models", MODEL_FORMAT, [MODEL_FORMAT]), ("packs", PACK_FORMAT, [PACK_FORMAT]),
    ],
)  # fmt: skip
def test_the_formats_are_those_that_are_written_and_read(name, written, read):
    assert cells(name)[1] == f"format {written}"
    assert [int(number) for number in re.findall(r"\d+", cells(name)[2])] == read


def test_the_migrations_of_the_catalog_are_named():
    names = sorted(path.name[:4] for path in (ROOT / "alembic" / "versions").glob("*.py"))
    assert cells("the catalog")[1] == f"migrations {', '.join(names)}"


@pytest.mark.parametrize("variable", ["KGKIT_HOME", DEFAULT_KB, "KGKIT_MODEL", OFFLINE, CATALOG_URL])
def test_every_variable_is_named(variable):
    assert f"`{variable}`" in PAGE


def test_the_pythons_are_those_of_the_package():
    pythons = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert cells("Python")[1].startswith(", ".join(pythons)) and PROJECT["requires-python"] == ">=3.11"
    assert set(re.findall(r"`(\w+)`", cells("Python")[1])) <= set(PROJECT["optional-dependencies"])


def test_public_entry_points_are_those_of_the_package():
    for group in PROJECT["entry-points"]:
        assert f"`{group}`" in PAGE


def test_on_windows_publishing_is_refused_with_one_error_before_anything_is_written(tmp_path, monkeypatch):
    home = build_toy(tmp_path).path.parents[3]
    pack = kgkit.pack("toy", tmp_path / "toy.tar", home=home).path
    monkeypatch.setattr(versions, "_PLATFORM", "win32")
    with pytest.raises(UnsupportedPlatform, match="WSL 2"):
        build_toy(tmp_path, home=tmp_path / "other")
    with pytest.raises(UnsupportedPlatform), stage_model(tmp_path / "other" / "models" / "m"):
        pass
    with pytest.raises(UnsupportedPlatform), making(Home(home).kb("toy"), "text"):
        pass
    with pytest.raises(UnsupportedPlatform):
        kgkit.unpack(pack, home=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    done = run("kb", "prune", "toy", "--home", home)
    assert done.code == 1 and "WSL 2" in done.err
    with kgkit.open_kb("toy", home=home) as kb:  # reading goes on
        assert kb["Apple"].label == "apple"
