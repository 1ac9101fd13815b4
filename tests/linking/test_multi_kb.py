"""Links to several knowledge bases at once."""

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.candidates import KeyedDocument
from kgkit.drawing.links import render
from kgkit.errors import NotThere, UsageError
from kgkit.linking import Linker
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.types import Document, Mention
from tests.small_kb import build


def test_a_document_has_the_links_to_all_and_those_that_refer_back(tmp_path):
    people = [Entity("biden", "Joe Biden", types=("person",)), Alias("Joe Biden", "biden")]
    words = [Entity("win.v"), Alias("wins", "win.v"), Entity("glad.a"), Alias("glad", "glad.a")]
    with build(tmp_path, people, name="people") as first, build(tmp_path, words, name="words") as second:
        linkers = MultiKBLinker.open([first, second], model="prior", references=True)
        texts = ["Joe Biden wins. Biden is glad.", "", "wins"]
        found = [*linkers(Document(f"{place}", text) for place, text in enumerate(texts))]
    assert [one.id for one in found] == ["0", "1", "2"]
    links = sorted((link.start, link.text, link.kb, link.entity) for link in found[0].links)
    assert links == [
        (0, "Joe Biden", "people", "biden"), (10, "wins", "words", "win.v"), (16, "Biden", "people", "biden"),
        (25, "glad", "words", "glad.a"),
    ]  # fmt: skip
    assert not found[1].links and [link.entity for link in found[2].links] == ["win.v"]


def test_without_a_knowledge_base_nothing_can_be_linked():
    with pytest.raises(UsageError, match="no knowledge base to link to"):
        MultiKBLinker.open([], model="prior")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with two knowledge bases, which both have an entity with the key `rex`."""
    folder = tmp_path_factory.mktemp("home")
    pets = [Entity("rex", "Rex the dog", types=("dog",), description="a pet"), Alias("Rex", "rex")]
    kings = [
        Entity("rex", "Rex I", types=("person",), description="a king"), Alias("Rex", "rex"),
        Alias("King Rex", "rex"), Entity("otto", "Otto", types=("person",)),
        Alias("Otto von Stein", "otto"),
    ]  # fmt: skip
    for name, records in (("pets", pets), ("kings", kings)):
        build(folder, records, name=name).close()
    return folder


def test_one_call_links_to_several_knowledge_bases_with_a_model_each(home):
    linked = kgkit.link("Rex ran.", kb={"pets": "prior", "kings": "prior"}, home=home)
    assert [(link.text, link.kb, link.label) for link in linked.links] == [
        ("Rex", "pets", "Rex the dog"), ("Rex", "kings", "Rex I"),
    ]  # fmt: skip
    assert linked.model == "pets=prior, kings=prior"
    several = kgkit.link(["Rex ran.", "", "King Rex sat."], kb={"kings": "prior"}, home=home)
    assert [len(document.links) for document in several] == [1, 0, 1] and several[0].model == "prior"


def test_references_are_linked_where_they_are_asked_for(home):
    text = "Otto von Stein saw Rex. Otto slept."
    links = kgkit.link(text, "kings", home=home, model="prior", references=True).links
    assert [link.text for link in links] == ["Otto von Stein", "Rex", "Otto"]
    assert len(kgkit.link(text, "kings", home=home, model="prior").links) == 2
    both = kgkit.link(text, {"pets": "prior", "kings": "prior"}, home=home, references=True).links
    assert [(link.text, link.kb) for link in both] == [
        ("Otto von Stein", "kings"), ("Rex", "pets"), ("Rex", "kings"), ("Otto", "kings"),
    ]  # fmt: skip


def test_a_handle_that_a_call_was_given_stays_open(home):
    with kgkit.open_kb("kings", home=home) as kb:
        kgkit.link("Rex", kb, model="prior", references=True)
        assert kb["rex"].label == "Rex I"


def test_documents_are_read_as_they_are_linked(home):
    with kgkit.open_kb("kings", home=home) as kings, kgkit.open_kb("pets", home=home) as pets:
        linker = MultiKBLinker.open([kings, pets], model="prior")
        read = []

        def texts():
            for number in range(1_000):
                read.append(number)
                yield f"Rex {number}"

        linked = linker(texts())
        assert next(linked).text == "Rex 0" and len(read) < 70
        assert next(linked).text == "Rex 1" and len(read) < 70
        assert sum(1 for _ in linked) == 998


def test_a_knowledge_base_is_linked_to_once(home):
    with kgkit.open_kb("kings", home=home) as kb:
        linkers = [Linker.open(kb, model="prior"), Linker.open(kb, model="prior")]
        with pytest.raises(UsageError, match="the knowledge base kings is named twice"):
            MultiKBLinker(linkers)
    with pytest.raises(NotThere, match="nope"):
        kgkit.link("Rex", {"kings": "prior", "nope": "prior"}, home=home)
    with pytest.raises(UsageError, match="no knowledge base to link to"):
        kgkit.link("Rex", {}, home=home)


def test_keys_of_candidates_are_looked_up_in_each_knowledge_base(home):
    mention = Mention(0, 3, "Tom")
    document = KeyedDocument("1", "Tom ran.", mentions=[mention], keys=(("rex",),))
    linked = kgkit.link(document, {"pets": "prior", "kings": "prior"}, home=home)
    assert [link.label for link in linked.links] == ["Rex the dog", "Rex I"]
    assert mention.candidates is None  # one linker's are not the other's


def test_a_page_says_of_an_entity_what_its_own_knowledge_base_does(home):
    with kgkit.open_kb("kings", home=home) as kings, kgkit.open_kb("pets", home=home) as pets:
        linker = MultiKBLinker.open([kings, pets], model="prior")
        documents = [*linker(["Rex and King Rex"])]
        page = render(documents, describe=linker.describe, type_of=linker.type_of)
    assert "a king" in page and ">dog</span>" in page and ">person</span>" in page
