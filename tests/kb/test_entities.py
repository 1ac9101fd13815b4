"""Entities by key, by id and one after the other; the handle itself."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import kgkit
from kgkit.building import Entity, Redirect
from kgkit.errors import (
    KgkitError,
    MissingExtra,
    NotThere,
    UnknownEntity,
    UnknownName,
    UsageError,
)
from kgkit.kb import handle
from kgkit.kb.search import key_hint
from tests.small_kb import NODES, build, facts_kb, surfaces_kb
from tests.toys import run_python


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    facts_kb(folder).close()
    return folder


@pytest.fixture
def kb(home):
    with kgkit.open_kb("facts", home=home) as opened:
        yield opened


def test_an_entity_is_had_by_its_key_and_by_its_id(kb):
    dog = kb["dog"]
    assert (dog.key, dog.label, dog.kind, dog.id) == ("dog", "Dog", "node", NODES.index("dog"))
    assert kb[dog.id] == dog
    assert kb.id("dog") == kb.id(dog.id) == kb.id(dog) == dog.id
    assert kb.key(dog.id) == "dog"


@pytest.mark.parametrize("number", [np.uint32(2), np.int64(2), np.uint8(2), np.array(2)])
def test_an_integer_of_numpy_is_an_id(kb, number):
    assert kb[number] == kb[2] == kb.get(number)
    assert kb.key(number) == kb.key(2)
    assert kb.id(number) == 2
    assert type(kb.id(number)) is int
    assert kb.neighbors(number).tolist() == kb.neighbors(2).tolist()
    assert kb.neighbors(number, "is_a", "both").tolist() == kb.neighbors(2, "is_a", "both").tolist()
    assert kb.path(number, np.int32(3)) == kb.path(2, 3)


def test_a_string_of_numpy_is_a_key(kb):
    key = np.array(["dog"])[0]
    assert kb[key] == kb["dog"] == kb.get(key)
    assert key in kb
    assert kb.neighbors(key) == kb.neighbors("dog")


def test_an_entity_of_another_build_is_known_by_its_key(kb):
    elsewhere = Entity("dog", "hound", id=0)
    assert kb[elsewhere] == kb["dog"]
    assert elsewhere in kb
    assert kb.id(elsewhere) == kb.id("dog")
    assert kb.neighbors(elsewhere) == kb.neighbors("dog")
    assert Entity("unicorn", id=0) not in kb


@pytest.mark.parametrize(
    "unknown", ["unicorn", "", "Dog", "x" * 2000, "\ud800", -1, 9, 2**32, 2**70, np.int64(-1)]
)
def test_what_is_not_there_is_an_unknown_entity(kb, unknown):
    for ask in (kb.__getitem__, kb.id, kb.neighbors, lambda name: kb.neighbors(name, "is_a", "both")):
        with pytest.raises(UnknownEntity, match="no entity"):
            ask(unknown)
    assert unknown not in kb
    assert kb.get(unknown) is None
    assert kb.get(unknown, kb["dog"]).key == "dog"


def test_an_unknown_entity_is_a_key_error_and_says_what_was_sought(kb):
    with pytest.raises(KeyError) as caught:
        kb["unicorn"]
    said = "no entity 'unicorn' in knowledge base 'facts'; kb.search(TEXT) searches keys and surfaces"
    assert str(caught.value) == said
    assert str(pickle.loads(pickle.dumps(caught.value))) == said
    assert (caught.value.entity, caught.value.kb) == ("unicorn", "facts")
    with pytest.raises(UnknownEntity):
        kb.key(99)


@pytest.mark.parametrize("nonsense", [1.5, None, b"dog", ["dog"]])
def test_what_can_be_no_name_is_a_type_error(kb, nonsense):
    for ask in (kb.__getitem__, kb.get, kb.id, kb.key, kb.neighbors):
        with pytest.raises(TypeError):
            ask(nonsense)
    assert nonsense not in kb


def test_entities_come_in_the_order_of_their_ids(kb):
    assert [entity.key for entity in kb] == list(NODES)
    assert [entity.id for entity in kb] == list(range(len(kb)))
    assert list(kb.entities()) == list(kb)


def test_entities_of_one_kind(kb):
    assert [entity.key for entity in kb.entities("thing")] == ["thing"]
    assert len(list(kb.entities("node"))) == len(kb) - 1
    with pytest.raises(UnknownName, match="'synset'; there are: node, thing"):
        kb.entities("synset")


def test_a_redirect_is_followed(tmp_path):
    records = [Entity("USA"), Redirect("America", "USA"), Redirect("US", "America")]
    with build(tmp_path, records) as kb:
        assert kb["US"] == kb["America"] == kb["USA"]
        assert "US" in kb
        assert kb.id("US") == 0
        assert len(kb) == 1


def test_all_entities_make_a_frame(kb):
    frame = kb.to_frame()
    assert frame.index.tolist() == list(range(len(kb)))
    assert frame["key"].tolist() == list(NODES)
    assert frame.loc[kb.id("dog")]["label"] == "Dog"
    assert set(frame.columns) == {"key", "label", "description", "kind", "pos", "types", "attributes"}


def test_without_pandas_a_frame_names_the_extra(home):
    code = """
import sys; sys.modules["pandas"] = None
import kgkit
try: kgkit.open_kb("facts", home=sys.argv[1]).to_frame()
except kgkit.KgkitError as error: print(type(error).__name__, error)
"""
    done = run_python(code, home)
    assert (
        done.stdout
        == f"{MissingExtra.__name__} this needs the package 'pandas': pip install 'kgkit[pandas]'\n"
    )


def test_the_handle_says_what_it_is(kb):
    assert repr(kb) == f"<KnowledgeBase facts@{kb.build}: 9 entities>"
    assert kb.manifest.entities == len(kb) == 9
    assert kb.build == kb.manifest.build
    assert kb.relations == ("is_a", "has_kind", "part_of", "has_part", "near", "chases", "fears", "likes")


def test_a_handle_can_be_pickled_and_copied(kb):
    kb.candidates("dog", pos="n")  # fills what is loaded on demand
    for again in (pickle.loads(pickle.dumps(kb)), deepcopy(kb), copy(kb)):
        assert (again.name, again.build) == (kb.name, kb.build)
        assert list(again) == list(kb)
        assert again.neighbors("dog") == kb.neighbors("dog")


def test_a_build_may_be_named_and_the_only_one_need_not_be(home, tmp_path):
    with kgkit.open_kb(home=home) as kb, kgkit.open_kb(f"facts@{kb.build}", home=str(home)) as same:
        assert same.build == kb.build
        assert same.name == "facts"
    with pytest.raises(KgkitError, match="no"):
        kgkit.open_kb(home=tmp_path)
    surfaces_kb(tmp_path).close()
    facts_kb(tmp_path).close()
    with pytest.raises(UsageError, match="facts, surfaces"):
        kgkit.open_kb(home=tmp_path)
    with pytest.raises(KgkitError, match="0123456789ab"):
        kgkit.open_kb("facts@0123456789ab", home=tmp_path)
    with pytest.raises(NotThere, match="'unicorns'"):
        kgkit.open_kb("unicorns", home=tmp_path)


def test_a_key_that_is_slightly_wrong_names_the_right_one_when_the_error_is_read(kb, monkeypatch):
    searches = []
    monkeypatch.setattr(
        handle, "key_hint", lambda kb, entity: searches.append(entity) or key_hint(kb, entity)
    )
    with pytest.raises(UnknownEntity) as caught:
        kb["Dog"]
    assert searches == []  # who catches it does not wait for a search
    assert "did you mean dog" in str(caught.value) and str(caught.value) and searches == ["Dog"]
    with pytest.raises(UnknownEntity, match="ids run from 0 to 8"):
        kb[99]


def test_the_error_of_a_handle_that_has_been_closed_has_no_hint(tmp_path):
    with facts_kb(tmp_path) as closing, pytest.raises(UnknownEntity) as caught:
        closing["unicorn"]
    assert str(caught.value) == "no entity 'unicorn' in knowledge base 'facts'"


def test_an_entity_gives_its_neighbours_if_it_is_told_the_knowledge_base(kb):
    assert kb["dog"].neighbors(kb) == kb.neighbors(kb["dog"])
    assert kb["dog"].neighbors(kb, "is_a", "out") == kb.neighbors("dog", "is_a")
