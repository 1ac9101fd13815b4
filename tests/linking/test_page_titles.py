"""Titles of one page compare as one, however they are spelled and wherever redirects lead."""

import pytest

import kgkit.linking.page_titles as module
from kgkit.building import Alias, Entity, Redirect
from kgkit.evaluation.el_files import GoldDocument, Redirects
from kgkit.linking.page_titles import PageTitles
from kgkit.types import Document, Mention
from tests.small_kb import build

RECORDS = [
    Entity("New_York_City", "New York City"), Entity("Paris", "Paris"), Entity("Old name", "Old name"),
    Redirect("Big_Apple", "New_York_City"), Alias("Paris", "Paris"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS) as opened:
        yield opened


def document(*entities):
    """Return a document whose gold mentions mean these entities."""
    mentions = [Mention(2 * index, 2 * index + 1, "x") for index in range(len(entities))]
    return GoldDocument(Document("d", "x " * len(entities), mentions=mentions), [*entities])


@pytest.mark.parametrize(
    ("title", "page"),
    [
        ("New_York_City", "New_York_City"),
        ("New York City", "New_York_City"),
        ("Big_Apple", "New_York_City"),  # a redirect of the KB
        ("Big Apple", "New_York_City"),
        ("Gotham", "New_York_City"),  # a redirect of the data
        ("Old_name", "Old name"),
        ("Lutetia", "Paris"),
        ("Paris Commune", "Paris Commune"),  # nowhere: as it is
        ("Paris_Commune", "Paris Commune"),
    ],
)
def test_each_title_of_a_page_gives_the_key_of_its_entity(kb, title, page):
    redirects = Redirects({"Gotham": "Big Apple", "Lutetia": "Paris"})
    assert PageTitles(kb, redirects)(title) == page


def test_without_redirects_the_titles_of_the_kb_are_joined_all_the_same(kb):
    titles = PageTitles(kb)
    assert titles("Big_Apple") == titles("New York City") and titles("Gotham") == "Gotham"


def test_gold_entities_that_the_kb_lacks_are_counted_by_page(kb):
    titles = PageTitles(kb, Redirects({"Atlantis (myth)": "Atlantis", "Lutetia": "Paris"}))
    titles.look_for(document("Paris", None, "Atlantis (myth)", "Lutetia"))
    titles.look_for(document("Atlantis", "El_Dorado", "Big_Apple"))
    assert titles.missing == {"Atlantis", "El Dorado"} and titles.mentions == 3


def test_a_page_is_in_the_kb_if_any_of_its_titles_is(kb):
    redirects = Redirects({"Old name": "New name"})  # the page has been renamed since the KB was built
    titles = PageTitles(kb, redirects)
    titles.look_for(document("New name", "Old name"))
    assert titles.missing == set() and titles.mentions == 0


def test_titles_are_the_same_after_the_memory_was_emptied(kb, monkeypatch):
    monkeypatch.setattr(module, "_MAX_PAGES", 2)
    titles = PageTitles(kb)
    spellings = ["Paris", "Big_Apple", "Atlantis", "Old_name"] * 2
    assert [titles(title) for title in spellings] == [PageTitles(kb)(title) for title in spellings]
    assert len(titles._pages) <= 2
