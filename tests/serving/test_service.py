"""The service itself, which all routers call: limits, threads, and answers of each query."""

import asyncio
import threading
import time

import pytest

from kgkit.building import Alias, Entity
from kgkit.errors import UnknownEntity, UnknownName
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking import Correction, Corrections, Linker
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.serving import kb_schema
from kgkit.serving.problems import Busy, Problem
from kgkit.serving.service import LONG, Service, check_limit, facts_of
from kgkit.serving.settings import Limits, ServiceSettings
from kgkit.store.layout import TRIGRAMS
from kgkit.types import Document
from tests.old_format import as_older_index, publish_as_format_2, stamp_index
from tests.small_kb import build, surfaces_kb

PEOPLE = {"mary": "Mary Ferrars", "ada": "Ada Vale"}


@pytest.fixture
def small(served_home):
    """A service of narrow limits, started."""
    limits = Limits(
        documents=2, characters=20, mentions=3, names=2, rows=10, queue=2, lookups=2, threads=1
    )  # fmt: skip
    service = Service(
        ServiceSettings(kbs={"mini": ("prior",), "facts": ("prior",)}, limits=limits), Home(served_home)
    )
    service.start()
    yield service
    service.close()


def link(service, *texts, **settings):
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    return asyncio.run(service.link(documents, **settings))


# -- knowledge bases ----------------------------------------------------------


def test_a_service_is_started_once_it_is_open(served_home):
    service = Service(ServiceSettings(kbs={"mini": ("prior",)}), Home(served_home))
    assert not service.started and service.kb_names() == []
    service.start()
    assert service.started and service.kb_names() == ["mini"]
    service.close()


@pytest.mark.parametrize("version", [None, 3, 4])
def test_a_search_that_reads_all_names_is_a_long_one(tmp_path, version):
    with surfaces_kb(tmp_path) as kb:
        folder = kb.store.folder
    if version is None:
        publish_as_format_2(folder, tmp_path, "surfaces")
    elif version < 4:
        as_older_index(folder / TRIGRAMS, version)
        stamp_index(folder)
    service = Service(ServiceSettings(kbs={"surfaces": ("prior",)}), Home(tmp_path))
    service.start()
    try:
        assert service.search_cost() == (1 if version == 4 else LONG)
        assert service.search_cost(by="text") == LONG
        hits = service.search("ork", "surfaces")
        assert "part" in {hit.match for hit in hits}
        assert service.search_cost("surfaces") == (1 if version else LONG)  # its labels have been read
    finally:
        service.close()


# -- links --------------------------------------------------------------------


def test_short_names_follow_the_corrections(tmp_path):
    mary, ada = (Entity(key, name, types=("person",)) for key, name in PEOPLE.items())
    build(tmp_path, [mary, ada, *(Alias(name, key) for key, name in PEOPLE.items())], name="people").close()
    service = Service(ServiceSettings(kbs={"people": ("prior",)}), Home(tmp_path))
    service.start()
    text = "Mary Ferrars met Ada Vale. Ferrars smiled, and Vale left."
    rows = [Correction(text="Mary Ferrars", entity="ada"), Correction(text="Ada Vale", entity=None)]
    for corrections in ([], rows):
        [linked] = link(service, text, kb="people", references=True, with_corrections=corrections)
        linker = Linker(service.kb("people"), corrections=Corrections(service.kb("people"), corrections))
        [expected] = MultiKBLinker([linker], references=True)([text])
        assert linked.links == expected.links and len(linked.links) == (2 if corrections else 4)
    service.close()


def test_texts_that_wait_together_get_the_links_that_they_get_alone(served_home):
    texts = ["The dog ran.", "a mouse", "", "well", "hot dogs", "Turkey and turkey", "nothing"] * 6
    service = Service(ServiceSettings(kbs={"mini": ("prior",)}), Home(served_home))
    service.start()

    async def together():
        tasks = (service.link([Document(str(number), text)]) for number, text in enumerate(texts))
        return await asyncio.gather(*tasks)

    try:
        answers = asyncio.run(together())
        linker = service.served().linker()
        for number, ((linked,), text) in enumerate(zip(answers, texts, strict=True)):
            (expected,) = linker([Document(str(number), text)])
            assert linked == expected
        assert service.queue.documents == len(texts)
    finally:
        service.close()


# -- look-ups -----------------------------------------------------------------


def test_a_look_up_takes_its_arguments_and_raises_its_error(small):
    async def run():
        assert await small.call(divmod, 7, 2) == (3, 1)
        assert await small.call(sorted, [2, 1], reverse=True) == [2, 1]
        with pytest.raises(ZeroDivisionError):
            await small.call(divmod, 1, 0)

    asyncio.run(run())


def test_too_many_look_ups_are_busy_and_later_ones_are_taken(small):
    gate = threading.Event()

    async def run():
        tasks = [asyncio.create_task(small.call(gate.wait, 20)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await small.call(gate.wait, 20)
        gate.set()
        assert await asyncio.gather(*tasks) == [True, True]
        while small._short.cost:  # a thread counts down a moment after its result is there
            await asyncio.sleep(0.01)
        return await small.call(gate.is_set)

    assert asyncio.run(run()) is True


def test_the_loop_goes_on_while_a_look_up_runs(small):
    async def run():
        task = asyncio.create_task(small.call(time.sleep, 0.3))
        begin = time.monotonic()
        await asyncio.sleep(0.01)
        waited = time.monotonic() - begin
        await task
        return waited

    assert asyncio.run(run()) < 0.25


def test_the_hint_of_an_unknown_entity_is_made_in_the_thread(small):
    threads = []

    def hint():
        threads.append(threading.current_thread())
        return "did you mean x?"

    def fail():
        raise UnknownEntity("y", "mini", hint)

    async def run():
        with pytest.raises(UnknownEntity) as caught:
            await small.call(fail)
        return caught.value.hint

    assert asyncio.run(run()) == "did you mean x?"
    assert threads and threads[0] is not threading.main_thread()


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_nothing_is_looked_up_for_an_empty_text(small, text):
    with pytest.raises(Problem, match="text is empty"):
        small.candidates(text)
    with pytest.raises(Problem, match="query is empty"):
        small.search(text)
    with pytest.raises(Problem, match="text is empty"):
        small.nearest(None, text=text)


def test_a_long_text_is_looked_up_nowhere(small):
    for look_up in (small.candidates, small.search):
        with pytest.raises(Problem, match="characters: 21, of 20"):
            look_up("x" * 21)


@pytest.mark.parametrize("count", [0, -1, 11])
def test_rows_have_bounds(small, count):
    with pytest.raises(Problem) as caught:
        small.search("dog", limit=count)
    assert caught.value.field == "limit" and caught.value.status == 422
    with pytest.raises(Problem):
        small.candidates("dog", k=count)


def test_facts_are_those_from_the_entity_then_those_to_it(small):
    facts = small.neighbors("mouse", "facts")
    assert [(fact.subject, fact.relation, fact.object) for fact in facts][:2] == [
        ("mouse", "fears", "cat"), ("mouse", "fears", "mouse"),
    ]  # fmt: skip
    inward = small.neighbors("mouse", "facts", direction="in")
    assert {fact.object for fact in inward} == {"mouse"}
    outward = small.neighbors("mouse", "facts", direction="out", limit=1)
    assert len(outward) == 1


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_no_more_facts_come_than_are_asked_for(small, most):
    kb = small.kb("facts")
    every = facts_of(kb, kb["cat"], None, "both", 1_000)
    assert facts_of(kb, kb["cat"], None, "both", most) == every[:most]


@pytest.mark.parametrize(
    ("field", "status"), [("characters", 413), ("documents", 413), ("names", 413), ("k", 422), ("top_k", 422)]
)
def test_a_limit_is_too_much_content_or_too_large_a_number(field, status):
    check_limit(field, 5, 5)
    with pytest.raises(Problem) as caught:
        check_limit(field, 6, 5)
    assert (caught.value.status, caught.value.field) == (status, field)
    assert "5" in caught.value.remedy


def test_threads_that_look_things_up_at_once_get_what_one_alone_gets(client, served):
    texts = ["dog", "mice", "well", "hot dog", "Turkey", "ran"] * 10
    expected = [served.candidates(text) for text in texts]

    async def run():
        return await asyncio.gather(*(served.call(served.candidates, text) for text in texts))

    assert asyncio.run(run()) == expected


# -- kinds of a reconciliation ------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "nothing=1", "=", "=nothing"])
def test_a_kind_that_no_entity_has_is_refused_by_the_schema(served, client, kind):
    with pytest.raises(UnknownName, match="there are: lemma, synset"):
        served.reconcile(["dog"], "mini", kind=kind)


def test_entities_are_read_once_for_any_number_of_kinds(served, client, monkeypatch):
    assert "synset" in served.schemas(served.kb("mini")).types
    monkeypatch.setattr(kb_schema, "read_schema", lambda _: pytest.fail("the schema is read again"))
    monkeypatch.setattr(KnowledgeBase, "__iter__", lambda _: pytest.fail("all entities are read"))
    for number in range(5):
        with pytest.raises(UnknownName):
            served.reconcile(["dog"], "mini", kind=f"nothing{number}")


def test_kinds_of_the_manifest_need_no_schema(served, client, monkeypatch):
    monkeypatch.setattr(served, "schemas", lambda _: pytest.fail("the schema is read"))
    (match,) = served.reconcile(["dog"], "mini", kind="synset")
    assert match.key == "dog.n.01"


def test_an_attribute_that_entities_have_selects_those_with_the_value(cities_service, cities):
    for value, expected in (("9425", ["Q614184"]), ("9426", [])):
        (match,) = cities_service.reconcile(["Berlin"], "cities", kind=f"population={value}")
        assert [each.key for each in match.candidates] == expected
