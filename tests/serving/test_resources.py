"""What is open: builds that are published while requests run, those that do not fit, and what is shared."""

import os
import shutil
from contextlib import suppress

import numpy as np
import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedKB, NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.linking import auto
from kgkit.serving.resources import ServiceResources, check_resources
from kgkit.serving.settings import ServiceSettings
from kgkit.store.layout import DATA
from kgkit.types import Document
from tests.linking.test_auto import by_name, compared, write_linker  # noqa: F401
from tests.small_kb import build
from tests.vector_toys import made


def records(*names):
    return [
        record for name in names for record in (Entity(name, name, kind="page"), Alias(name, name, 1))
    ]  # fmt: skip


def publish(home, *names, kb="small"):
    """Publish a build with an entity for each name, and return the name of the build."""
    with build(home, records(*names), name=kb) as handle:
        return handle.build


def publish_pages(home):
    """Publish a build whose entities are on several pages of data.mdb, and return its file."""
    entities = [
        Entity(f"key-{number}", f"label {number}", kind="page", description="text " * 30 + f"nr {number}.")
        for number in range(100)
    ]
    with build(home, entities, name="small") as handle:
        return handle.store.folder / DATA


def damage(file, text):
    """Change, in place, the page of data.mdb that has a text, so that LMDB cannot read it."""
    content = bytearray(file.read_bytes())
    content[content.index(text) // 4096 * 4096 + 10] = 0  # the kind of the page
    write_in_place(file, content)


def write_in_place(file, content):
    with file.open("r+b") as stream:
        stream.write(content)


def keys_answered(kb):
    """Return the keys that are answered, each asked for by itself."""
    answered = []
    for number in range(100):
        with suppress(DamagedKB):
            answered.append(kb[f"key-{number}"].key)
    return answered


def open_resources(home, **settings):
    resources = ServiceResources(ServiceSettings(**settings), Home(home))
    resources.start()
    return resources


def link(served, text, **settings):
    (linked,) = served.linker(**settings)([Document("0", text)])
    return [link.entity for link in linked.links]


def test_all_of_a_home_is_served_and_the_only_one_is_the_default(tmp_path):
    publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    assert resources.names() == ["small"]
    assert resources.default_name() == "small"
    assert resources.served().kb is resources.served("small").kb


def test_of_several_one_has_to_be_named_unless_one_is_the_default(tmp_path, monkeypatch):
    for name in ("a", "b"):
        publish(tmp_path, "apple", kb=name)
    resources = open_resources(tmp_path)
    with pytest.raises(UsageError, match=r"which knowledge base\? Served are a, b: name one .* --default KB"):
        resources.served()
    with pytest.raises(UnknownName, match="there are: a, b"):
        resources.served("c")
    monkeypatch.setenv("KGKIT_KB", "b")
    assert resources.names() == ["b", "a"]
    monkeypatch.delenv("KGKIT_KB")
    assert open_resources(tmp_path, default_kb="b").served().kb.name == "b"
    assert open_resources(tmp_path, kbs={"b": (), "a": ()}).served().kb.name == "b"


def test_an_empty_home_says_how_to_build_something(tmp_path):
    with pytest.raises(NotThere, match="kgkit build-kb wordnet"):
        open_resources(tmp_path)


def test_a_build_that_is_named_stays_whatever_is_published(tmp_path):
    first, second = publish(tmp_path, "apple"), publish(tmp_path, "apple", "pear")
    pinned = open_resources(tmp_path, kbs={"small": ("prior",)}, builds={"small": first})
    assert (pinned.served().kb.name, pinned.served().kb.build) == ("small", first)
    publish(tmp_path, "plum")
    before = pinned.served()
    pinned.refresh()
    assert pinned.served() is before and pinned.problems == {}
    assert link(pinned.served(), "apple pear plum") == ["apple"]
    assert open_resources(tmp_path, kbs={"small": ()}, builds={"small": second}).served().kb.build == second


def test_a_build_that_is_named_and_removed_from_the_disk_stays_in_service(tmp_path):
    first = publish(tmp_path, "apple")
    publish(tmp_path, "pear")
    pinned = open_resources(tmp_path, kbs={"small": ("prior",)}, builds={"small": first})
    shutil.rmtree(Home(tmp_path).kb("small").builds / first)
    pinned.refresh()
    assert link(pinned.served(), "apple pear") == ["apple"]
    assert pinned.problems == {}


def test_a_build_that_is_not_there_is_an_error_before_anything_starts(tmp_path):
    publish(tmp_path, "apple")
    settings = ServiceSettings(kbs={"small": ("prior",)}, builds={"small": "0123"})
    for attempt in (check_resources, lambda settings, home: ServiceResources(settings, home).start()):
        with pytest.raises(NotThere, match="0123"):
            attempt(settings, Home(tmp_path))


def test_what_is_named_has_to_be_there(tmp_path):
    publish(tmp_path, "apple")
    with pytest.raises(NotThere, match="'big'"):
        open_resources(tmp_path, kbs={"big": ("prior",)})
    with pytest.raises(UnknownName, match="nothing"):
        open_resources(tmp_path, kbs={"small": ("nothing",)})


def test_of_all_those_that_can_be_opened_are_served(tmp_path):
    publish(tmp_path, "apple", kb="good")
    publish(tmp_path, "pear", kb="bad")
    (tmp_path / "kbs" / "bad" / "current" / "manifest.json").write_text("{")
    resources = open_resources(tmp_path)
    assert resources.names() == ["good"]
    assert list(resources.problems) == ["bad"]


def test_linkers_of_one_model_share_its_scorer_and_generator(tmp_path):
    publish(tmp_path, "apple")
    served = open_resources(tmp_path).served()
    plain, strict = served.linker(), served.linker(threshold=0.5)
    assert served.linker(model="prior") is plain
    assert strict is not plain
    assert (strict.scorer, strict.generator) == (plain.scorer, plain.generator)
    assert served.linker(threshold=0.5) is strict
    assert served.linker(threshold=0.5, nil=True) is not strict


def test_a_build_that_is_published_is_taken_and_the_former_one_reads_on(tmp_path):
    publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    former = resources.served()
    build_name = publish(tmp_path, "apple", "pear")
    assert link(resources.served(), "a pear") == []
    resources.refresh()
    assert resources.served().kb.build == build_name
    assert link(resources.served(), "a pear") == ["pear"]
    assert link(former, "an apple") == ["apple"]
    assert resources.problems == {}


def test_a_knowledge_base_that_is_built_later_is_served(tmp_path):
    publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    publish(tmp_path, "pear", kb="later")
    resources.refresh()
    assert resources.names() == ["later", "small"]


def test_a_build_that_is_damaged_is_not_taken_and_the_reason_is_known(tmp_path):
    first = publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    publish(tmp_path, "apple", "pear")
    path = tmp_path / "kbs" / "small" / "current" / "manifest.json"
    content = path.read_text()
    path.write_text("{")
    resources.refresh()
    assert resources.served().kb.build == first
    assert "small" in resources.problems
    path.write_text(content)
    publish(tmp_path, "plum")
    resources.refresh()
    assert resources.problems == {}
    assert link(resources.served(), "a plum") == ["plum"]


def rebuild(home, file, content):
    """Build a damaged build again, under the same name."""
    publish_pages(home)


def remove_and_rebuild(home, file, content):
    """Remove the knowledge base, and build it again."""
    shutil.rmtree(home / "kbs" / "small")
    publish_pages(home)


def write_again(home, file, content):
    """Write the sound content into the damaged file."""
    write_in_place(file, content)


def restore_copy(home, file, content):
    """Replace the damaged file by a copy with the time that the file had when it was opened."""
    write_in_place(file, content)
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize("repair", [rebuild, remove_and_rebuild, write_again, restore_copy])
def test_damage_to_a_served_build_is_known_and_logged_once_until_it_is_repaired(tmp_path, caplog, repair):
    file = publish_pages(tmp_path)
    os.utime(file, ns=(1, 1))
    sound = file.read_bytes()
    resources = open_resources(tmp_path)
    build_name = resources.served().kb.build
    damage(file, b"nr 50.")
    resources.refresh()
    kb = resources.served().kb
    answered = keys_answered(kb)
    assert 0 < len(answered) < 100 and "key-50" not in answered
    assert keys_answered(kb) == answered
    assert list(resources.damages) == list(resources.problems) == ["small"]
    for _ in range(3):
        resources.refresh()
        keys_answered(resources.served().kb)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1 and "small" in errors[0].getMessage()
    repair(tmp_path, file, sound)
    resources.refresh()
    assert resources.problems == {}
    assert resources.served().kb.build == build_name
    assert len(keys_answered(resources.served().kb)) == 100
    assert resources.problems == {}


def test_edits_that_change_nothing_and_additions_elsewhere_open_nothing_again(tmp_path):
    publish(tmp_path, "apple", "pear")
    resources = open_resources(tmp_path)
    served = resources.served()
    kgkit.edit_kb("small", [{"key": "apple", "label": "apple"}], home=tmp_path)
    resources.refresh()
    assert resources.served() is served


def test_a_knowledge_base_that_is_removed_is_served_on(tmp_path):
    publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    shutil.rmtree(tmp_path / "kbs")
    resources.refresh()
    assert link(resources.served(), "an apple") == ["apple"]


def test_a_build_whose_vectors_do_not_fit_is_not_taken_until_there_are_others(tmp_path):
    first = publish(tmp_path, "apple", "pear")
    made(tmp_path, np.eye(2, 4, dtype=np.float32), kb="small")
    resources = open_resources(tmp_path)
    second = publish(tmp_path, "apple", "pear", "plum")
    resources.refresh()
    assert resources.served().kb.build == first
    assert "was made for build" in resources.problems["small"]
    assert [each.key for each in resources.served().kb.nearest("apple", 1)] == ["pear"]
    made(tmp_path, np.eye(3, 4, dtype=np.float32), kb="small")
    resources.refresh()
    assert resources.served().kb.build == second
    assert resources.problems == {}


def test_a_build_that_does_not_fit_is_tried_once(tmp_path, monkeypatch):
    publish(tmp_path, "apple", "pear")
    made(tmp_path, np.eye(2, 4, dtype=np.float32), kb="small")
    resources = open_resources(tmp_path)
    publish(tmp_path, "apple", "plum")
    resources.refresh()
    calls = []
    monkeypatch.setattr(resources, "_open", lambda *args: calls.append(args))
    resources.refresh()
    assert calls == []


def test_a_model_that_is_removed_keeps_serving_and_the_reason_is_known(tmp_path, monkeypatch):
    first = publish(tmp_path, "apple")
    resources = open_resources(tmp_path, kbs={"small": ("prior",)})
    monkeypatch.setattr(resources, "_state", lambda name, models: ("another version",))

    def fail(name, models):
        raise NotThere("no model in the home")

    monkeypatch.setattr(resources, "_open", fail)
    resources.refresh()
    assert resources.problems == {"small": "no model in the home"}
    assert resources.served().kb.build == first
    assert link(resources.served(), "an apple") == ["apple"]


def test_the_model_auto_is_chosen_once(tmp_path, monkeypatch):
    publish(tmp_path, "apple")
    resources = open_resources(tmp_path)
    assert resources.served().models == ("prior",)
    monkeypatch.setenv("KGKIT_MODEL", "no-such-model")
    publish(tmp_path, "apple", "pear")
    resources.refresh()
    assert resources.problems == {} and resources.served().models == ("prior",)


@pytest.mark.parametrize(
    ("kbs", "error"), [({"nothing": ()}, NotThere), ({"small": ("nothing",)}, UnknownName), ({}, None)]
)
def test_settings_are_checked_before_anything_is_opened(tmp_path, kbs, error):
    publish(tmp_path, "apple")
    settings = ServiceSettings(kbs=kbs)
    if error is None:
        check_resources(settings, Home(tmp_path))
    else:
        with pytest.raises(error):
            check_resources(settings, Home(tmp_path))


def test_a_home_without_knowledge_bases_is_refused(tmp_path):
    with pytest.raises(NotThere, match="kgkit build-kb"):
        check_resources(ServiceSettings(), Home(tmp_path))


def test_beside_a_linker_that_auto_took_the_one_for_names_is_served(tmp_path, monkeypatch, by_name):  # noqa: F811
    monkeypatch.delenv("KGKIT_MODEL")
    with build(tmp_path, records("Apple", "Pear"), name="small") as kb:
        when = "2024-03-02T00:00:00+00:00"
        write_linker(tmp_path, "mine", "small", kb.build, when, results=compared(0.75))
    resources = open_resources(tmp_path)
    assert resources.served().models == ("mine", "links-minilm", "prior")
    assert resources.served().linker().model == "mine"
    assert resources.served().linker(model="links-minilm").model == "links-minilm"
    named = open_resources(tmp_path, kbs={"small": ("mine",)})
    assert named.served().models == ("mine", "prior")
    monkeypatch.setenv("KGKIT_MODEL", "mine")
    assert open_resources(tmp_path).served().models == ("mine", "prior")


def test_that_texts_cannot_be_cut_into_words_is_said_once(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("KGKIT_MODEL")
    find = auto.find_spec
    monkeypatch.setattr(auto, "find_spec", lambda name: None if name == "jieba" else find(name))
    publish(tmp_path, "狗", "南京市")
    assert open_resources(tmp_path).served().models == ("prior",)
    assert sum("jieba" in record.getMessage() for record in caplog.records) == 1
