"""docs/your-own-kb.md and the town it speaks of, without WordNet; test_docs runs the whole page with it."""

import json
import re

import pytest

import kgkit
from kb_builders.jsonl import JSONLBuilder
from kgkit.store import verify
from tests.cli_helpers import install_builder
from tests.doc_pages import ROOT, Session, blocks, differences

PAGE = ROOT / "docs/your-own-kb.md"
TEXT = PAGE.read_text(encoding="utf-8")
TOWN = ROOT / "examples/tidewick.jsonl"
LINES = [json.loads(line) for line in TOWN.read_text(encoding="utf-8").splitlines()]
ENTITIES = {line["key"]: line for line in LINES if "key" in line}
FILES = {block.file: block.content for block in blocks(PAGE) if block.file}


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A folder beside the checkout's examples, where the builder of the page is installed."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    install_builder(tmp_path, "jsonl", "kb_builders.jsonl:JSONLBuilder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(tmp_path)
    session = Session(tmp_path)
    yield session
    session.end()


@pytest.mark.slow
def test_who_has_no_wordnet_can_follow_the_page_all_the_same(session):
    own = re.sub(r"^## 6\. .*?(?=^## 7\. )", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert "--kb wordnet" in TEXT and "--kb wordnet" not in own
    (session.folder / "page.md").write_text(own, encoding="utf-8")
    assert "\n".join(differences(str(session.folder / "page.md"), session, compare=True)) == ""
    for folder in (session.folder / "home/kbs").glob("*/builds/*"):
        assert verify(folder) == []


def test_the_page_shows_every_kind_of_line_and_every_field():
    first = [json.loads(line) for line in FILES["ferry.jsonl"].splitlines()]
    starts = [next(iter(line)) for line in first]
    assert set(starts) == {"kgkit", "key", "alias", "subject", "redirect", "form"}
    for line in LINES + first:
        for name in {**line, **line.get("kgkit", {})}:
            assert f"`{name}`" in TEXT, name
    for name in "sense", "smoothing", "generator", "label_aliases", "pos", "attributes", "date", "url":
        assert f"`{name}`" in TEXT, name


def test_the_page_shows_what_is_asked_of_it():
    commands = "\n".join(block.content for block in blocks(PAGE) if block.kind == "console")
    for command in (
        "build-kb jsonl", "show", "candidates", "link", "kb add tidewick", "kb add wordnet",
        "kb add wordnet kb:", "build-kb type_vocabulary kb:", "kb diff", "kb verify", "kb prune",
        "--coherence graph",
    ):  # fmt: skip
        assert f"kgkit {command}" in commands or (command.startswith("--") and command in commands), command
    python = "\n".join(block.content for block in blocks(PAGE) if block.kind == "python")
    for name in "build_kb", "add_to_kb", "open_kb", "differences", "link(", "SourceError":
        assert name in python, name


# -- the town ---------------------------------------------------------------


def test_the_town_has_two_hundred_entities_and_nothing_it_says_is_lost(tmp_path):
    assert len(ENTITIES) == 200
    built = kgkit.build_kb(JSONLBuilder(), TOWN, name="town", home=tmp_path)
    assert verify(built.path) == []
    manifest = built.manifest
    assert manifest.entities == 200
    assert manifest.counts.dropped == {}
    facts = [line for line in LINES if "subject" in line]
    married = [line for line in facts if line["relation"] == "married_to"]  # written both ways, stored once
    assert manifest.triples == len(facts) - len(married) / 2
    assert manifest.counts.redirects == sum("redirect" in line for line in LINES)
    assert manifest.source.licence == "CC0-1.0"
    assert f"tidewick@{built.build}: 200 entities" in TEXT


@pytest.mark.parametrize(
    ("text", "mention", "prior", "coherent"),
    [
        ("Captain Harrow took the Mercury out.", "the Mercury", "tidewick-mercury", "mercury-ship"),
        ("John Mercer wrote it in the Mercury.", "the Mercury", "tidewick-mercury", "tidewick-mercury"),
        ("Dr Sokolova left St Bride's late.", "St Bride's", "st-bride-church", "st-bride-hospital"),
        ("Clara Lamb teaches at St Bride's.", "St Bride's", "st-bride-church", "st-bride-school"),
    ],
)
def test_what_a_shared_name_means_depends_on_the_text(tmp_path, text, mention, prior, coherent):
    kgkit.build_kb(JSONLBuilder(), TOWN, name="town", home=tmp_path)
    for coherence, meant in ((None, prior), ("graph", coherent)):
        links = kgkit.link(text, kb="town", home=tmp_path, coherence=coherence).links
        assert {link.text: link.entity for link in links}[mention] == meant
        assert all(text[link.start : link.end] == link.text for link in links)
