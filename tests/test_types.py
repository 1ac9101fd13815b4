"""The records: values that cannot be changed and encode themselves."""

import pickle

import msgspec
import pytest

from kgkit.types import (
    NO_CANDIDATES,
    Alias,
    Candidates,
    Document,
    Entity,
    Form,
    Link,
    LinkCandidate,
    LinkedDocument,
    Mention,
    Redirect,
    Triple,
)

LINK = Link(
    2, 5, "dog", "wordnet", "dog.n.01", None, "dog", 0.5, False, [LinkCandidate("dog.n.01", 0.5, 0.5)], "d.0"
)
RECORDS = (
    Entity("dog.n.01", "dog", "an animal", "synset", "n", ("animal",), {"count": 3}, 7),
    Entity("bare"),
    Alias("dog", "dog.n.01", 3.0, "dog%1:05:00::"),
    Triple("dog.n.01", "hypernym", "animal.n.01"),
    Redirect("hound", "dog.n.01"),
    Form("mice", "mouse", "n"),
    Document("d", "A dog.", [(0, 6)], [(2, 5)], [Mention(2, 5, "dog", None, "dog", "n", "d.0")]),
    LinkedDocument("d", "A dog.", "prior", [LINK]),
)
each_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)


@each_record
def test_a_record_comes_back_equal_from_json_msgpack_and_pickle(record):
    kind = type(record)
    assert msgspec.json.decode(msgspec.json.encode(record), type=kind) == record
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=kind) == record
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize("record", [record for record in RECORDS if not isinstance(record, Document)])
def test_what_knowledge_and_links_are_made_of_cannot_be_changed(record):
    with pytest.raises(AttributeError):
        setattr(record, record.__struct_fields__[0], "other")


def test_an_entity_gives_its_fields_by_name():
    assert RECORDS[0].to_dict() == {
        "key": "dog.n.01", "label": "dog", "description": "an animal", "kind": "synset", "pos": "n",
        "types": ("animal",), "attributes": {"count": 3}, "id": 7,
    }  # fmt: skip


def test_entities_do_not_share_their_defaults():
    one, other = Entity("a"), Entity("b")
    one.attributes["seen"] = True
    assert other.attributes == {}


def test_no_candidates_are_empty_and_equal_to_themselves_only():
    assert len(NO_CANDIDATES) == 0
    assert list(NO_CANDIDATES) == []
    assert not NO_CANDIDATES
    assert pickle.loads(pickle.dumps(NO_CANDIDATES)) == NO_CANDIDATES
    assert Candidates(NO_CANDIDATES.rows, null=0.5) != NO_CANDIDATES


def test_a_printed_link_is_a_line_and_so_is_each_of_a_document():
    named = msgspec.structs.replace(LINK, entity="E007", label="Hans M\u00fcller")
    nothing = msgspec.structs.replace(LINK, entity=None, label="", nil=True)
    document = LinkedDocument("d", "a dog", "prior", [LINK, named, nothing])
    assert str(document).splitlines() == [
        "2:5 dog \u2192 dog.n.01 0.50",
        "2:5 dog \u2192 E007 (Hans M\u00fcller) 0.50",
        "2:5 dog \u2192 NIL 0.50",
    ]
    assert str(LinkedDocument("d", "", "prior", [])) == "no links"
    assert "candidates=[" in repr(document)
