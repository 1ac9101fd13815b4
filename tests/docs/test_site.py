"""The site of the manual: built strictly, whole, searchable, and without a request to another host."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kgkit
from tests.api_page import public_modules
from tests.doc_pages import ROOT

yaml = pytest.importorskip("yaml")

DOCS = ROOT / "docs"
CONFIG = ROOT / "mkdocs.yml"


class Page(HTMLParser):
    """What a page of the site links to and loads, and the ids that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") != "canonical":
            self.sources.append(attributes["href"])
        elif attributes.get("src"):
            self.sources.append(attributes["src"])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site's folder, and what was said while it was made."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    process = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    return folder, process.stdout + process.stderr


@pytest.fixture(scope="module")
def site(built):
    """The site's pages by their paths."""
    folder, _ = built
    return {path.resolve(): Page(path) for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(built):
    assert re.findall(r"(?m)^.*\b(?:WARNING|ERROR)\b.*$", built[1]) == []


@pytest.mark.slow
def test_every_page_of_the_manual_is_on_the_site(built):
    folder, _ = built
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).with_suffix("")
        if str(name) != "api":  # its docstrings are in the pages of reference/
            page = name.with_suffix(".html") if name.name == "index" else name / "index.html"
            assert (folder / page).exists(), name


@pytest.mark.slow
def test_nothing_of_the_site_comes_from_another_host(built, site):
    outside = re.compile(r"(?:https?:)?//")
    for path, page in site.items():
        assert [source for source in page.sources if outside.match(source)] == [], path
    for path in built[0].rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"(?:@import\s+|url\()[\"']?(?:https?:)?//[^)\"']+", text) == [], path


def test_the_configuration_has_what_both_generators_read():
    config = yaml.load(CONFIG.read_text(encoding="utf-8"), yaml.BaseLoader)
    plugins = [next(iter(each)) if isinstance(each, dict) else each for each in config["plugins"]]
    assert plugins == ["search", "mkdocstrings"]
    assert config["theme"]["font"] == "false"
    assert not {"hooks", "custom_dir", "extra_javascript", "extra_css"} & {*config, *config["theme"]}


def test_the_reference_has_every_public_name_once():
    described = {}
    for path in (DOCS / "reference").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        for module, block in re.findall(r"^::: (\S+)\n((?:    .*\n)*)", text, re.MULTILINE):
            described[module] = re.findall(r"^        - (\w+)$", block, re.MULTILINE)
    for module in public_modules():
        names = {*module.__all__}
        if module is not kgkit:
            names -= {name for name in kgkit.__all__ if getattr(module, name, None) is getattr(kgkit, name)}
        assert sorted(described.pop(module.__name__)) == sorted(names), module.__name__
    assert described == {}


def test_examples_of_docstrings_have_the_heading_that_the_site_reads():
    """Under `Example:` their text would be prose, and lists in it links."""
    for path in (ROOT / "kgkit").rglob("*.py"):
        assert not re.search(r"^ +Example:$", path.read_text(encoding="utf-8"), re.MULTILINE), path
