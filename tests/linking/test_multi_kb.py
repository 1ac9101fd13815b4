"""Links to several knowledge bases at once."""

import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.errors import UsageError
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.types import Document
from tests.small_kb import build


def test_a_document_has_the_links_to_all_and_those_that_refer_back(tmp_path):
    people = [Entity("biden", "Joe Biden", types=("person",)), Alias("Biden", "biden")]
    words = [
        Entity("win.v"),
        Alias("wins", "win.v"),
        Entity("biden.n"),
        Alias("Biden", "biden.n"),
    ]
    with build(tmp_path, people, name="people") as first, build(tmp_path, words, name="words") as second:
        linkers = MultiKBLinker.open([first, second], model="prior", device="cpu")
        texts = ["Biden wins. He is glad.", "", "wins"]
        found = [*linkers(Document(f"{place}", text) for place, text in enumerate(texts))]
    assert [one.id for one in found] == ["0", "1", "2"]
    links = sorted((link.start, link.text, link.kb, link.entity) for link in found[0].links)
    assert links == [
        (0, "Biden", "people", "biden"), (0, "Biden", "words", "biden.n"), (6, "wins", "words", "win.v"),
        (12, "He", "people", "biden"),
    ]  # fmt: skip
    assert not found[1].links and [link.entity for link in found[2].links] == ["win.v"]


def test_the_links_of_a_document_may_agree(tmp_path):
    records = [
        Entity("bank.1"), Entity("bank.2"), Entity("tree"), Alias("bank", "bank.1", 5),
        Alias("bank", "bank.2", 4), Alias("tree", "tree"), Triple("bank.2", "has", "tree"),
    ]  # fmt: skip
    with build(tmp_path, records, name="banks") as kb:
        for coherence, meant in ((None, "bank.1"), ("graph", "bank.2")):
            linkers = MultiKBLinker.open([kb], model="prior", coherence=coherence, device="cpu")
            [linked] = linkers([Document("", "a tree at the bank")])
            assert [link.entity for link in linked.links] == ["tree", meant]


def test_without_a_knowledge_base_nothing_can_be_linked():
    with pytest.raises(UsageError, match="no knowledge base to link to"):
        MultiKBLinker.open([], model="prior")
