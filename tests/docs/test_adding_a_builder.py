"""docs/adding-a-builder.md is done as it is written: from an empty folder to `kgkit build-kb`."""

import tomllib

import pytest

from kgkit.building import Builder, find_builder
from tests.doc_pages import ROOT, Session, blocks, differences

PAGE = "docs/adding-a-builder.md"
FILES = {block.file: block.content for block in blocks(ROOT / PAGE) if block.file}


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A folder in which the package of the page is installed, as `pip install -e .` does it."""
    for group, entries in tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"].items():
        metadata = tmp_path / "kgkit_rivers-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kgkit-rivers\nVersion: 1\n")
        lines = [f"{name} = {target}\n" for name, target in entries.items()]
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    session = Session(tmp_path)
    yield session
    session.end()


@pytest.mark.slow
def test_the_page_can_be_followed_from_its_first_line_to_its_last(session):
    assert "\n".join(differences(PAGE, session, compare=True)) == ""


def test_the_builder_of_the_page_is_found_once_its_package_is_installed(session):
    for name, content in FILES.items():
        path = session.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    assert isinstance(find_builder("rivers"), Builder)


def test_the_page_speaks_of_every_part_of_the_contract():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    parts = [name for name in vars(Builder) if not name.startswith("_")]
    assert [name for name in parts if f"`{name}" not in text and f"{name}:" not in text] == []
