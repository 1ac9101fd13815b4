"""Links to several knowledge bases at once."""

import pytest

from kgkit.building import Alias, Entity
from kgkit.errors import UsageError
from kgkit.linking.several import SeveralLinkers
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
        linkers = SeveralLinkers([first, second], model="prior", device="cpu")
        texts = ["Biden wins. He is glad.", "", "wins"]
        found = [*linkers(Document(f"{place}", text) for place, text in enumerate(texts))]
    assert [one.id for one in found] == ["0", "1", "2"]
    links = sorted((link.start, link.text, link.kb, link.entity) for link in found[0].links)
    assert links == [
        (0, "Biden", "people", "biden"), (0, "Biden", "words", "biden.n"), (6, "wins", "words", "win.v"),
        (12, "He", "people", "biden"),
    ]  # fmt: skip
    assert not found[1].links and [link.entity for link in found[2].links] == ["win.v"]


def test_without_a_knowledge_base_nothing_can_be_linked():
    with pytest.raises(UsageError, match="no knowledge base to link to"):
        SeveralLinkers([], model="prior")
