"""The service itself, which all routers call: limits, threads, and answers of each query."""

import asyncio
import threading
import time

import pytest

from kgkit.errors import NoPath, NotThere, UnknownEntity, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.serving import kb_schema
from kgkit.serving.problems import Busy, Problem
from kgkit.serving.service import Service, check_limit, facts_of
from kgkit.serving.settings import Limits, ServiceSettings
from kgkit.types import Document, Mention


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


def test_the_knowledge_bases_are_named_the_default_first(small):
    assert small.kb_names() == ["mini", "facts"]
    assert small.kb().name == "mini"
    assert small.kb("facts").name == "facts"
    assert small.served("facts").kb is small.kb("facts")
    with pytest.raises(UnknownName, match="knowledge base served here"):
        small.kb("nothing")


def test_a_service_is_started_once_it_is_open(served_home):
    service = Service(ServiceSettings(kbs={"mini": ("prior",)}), Home(served_home))
    assert not service.started and service.kb_names() == []
    service.start()
    assert service.started and service.kb_names() == ["mini"]
    service.close()


# -- links --------------------------------------------------------------------


def test_documents_are_linked_in_order(small):
    linked = link(small, "a dog", "a mouse")
    assert [document.links[0].entity for document in linked] == ["dog.n.01", "mouse.n.01"]


def test_no_documents_are_no_links(small):
    assert link(small) == []


def test_links_to_several_knowledge_bases_are_in_one_document(small):
    (linked,) = link(small, "a dog", kb=["facts", "mini"])
    assert [each.kb for each in linked.links] == ["facts", "mini"]


@pytest.mark.parametrize(
    ("texts", "field"), [(["a"] * 3, "documents"), (["a" * 21], "characters"), (["a" * 11] * 2, "characters")]
)
def test_more_than_a_request_may_have_is_refused(small, texts, field):
    with pytest.raises(Problem) as caught:
        link(small, *texts)
    assert (caught.value.status, caught.value.field) == (413, field)


def test_mentions_are_counted_and_checked(small):
    def documents(*spans):
        return [Document("0", "a dog", mentions=[Mention(*span, "dog") for span in spans])]

    small.check_documents(documents((2, 5)))
    with pytest.raises(Problem, match="mentions: 4, of 3"):
        small.check_documents(documents(*[(2, 5)] * 4))
    with pytest.raises(UsageError, match="mention 1 spans 5 to 2"):
        small.check_documents(documents((5, 2)))
    with pytest.raises(UsageError, match="not 'dog'"):
        small.check_documents(documents((0, 3)))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"kb": "nothing"}, UnknownName),
        ({"kb": ["mini", "nothing"]}, UnknownName),
        ({"kb": ["mini", "mini"]}, UsageError),
        ({"kb": []}, UsageError),
        ({"model": "nothing"}, UnknownName),
        ({"threshold": 2.0}, UsageError),
        ({"top_k": 11}, Problem),
        ({"top_k": -1}, UsageError),
    ],
)
def test_settings_of_links_that_cannot_be_are_refused(small, settings, error):
    with pytest.raises(error):
        link(small, "a dog", **{"top_k": 1, **settings})


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


def test_a_look_up_is_done_in_another_thread(small):
    async def run():
        return await small.call(threading.current_thread)

    assert asyncio.run(run()) is not threading.main_thread()


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


def test_candidates_are_those_of_lemmas_too(small):
    keys = [each.key for each in small.candidates("mice", k=2)]
    assert keys[0] == "mouse.n.01"
    assert [each.key for each in small.candidates("dog", "facts")] == ["dog"]


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


def test_rows_are_as_many_as_are_asked_for_or_by_default(small):
    assert small.rows("k", None) == 10
    assert small.rows("k", 3, 2) == 3
    assert small.rows("k", None, 2) == 2


def test_a_search_has_two_kinds(small):
    assert small.search("dog", limit=1)[0].entity.key == "dog.n.01"
    with pytest.raises(Problem, match="by is 'x'"):
        small.search("dog", by="x", limit=1)
    with pytest.raises(NotThere, match="kgkit embed"):
        small.search("dog", by="text", limit=1)


def test_an_entity_is_found_by_any_of_its_keys(small):
    assert small.entity("dog.n.01").label == "dog"
    assert small.entity("cat", "facts").label == "Cat"
    with pytest.raises(UnknownEntity):
        small.entity("cat")


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


def test_a_path_leads_from_one_entity_to_the_other(small):
    assert [step.relation for step in small.path("claw", "paw", "facts")] == ["part_of"]
    with pytest.raises(NoPath):
        small.path("dog", "alone", "facts")
    with pytest.raises(UnknownEntity):
        small.path("dog", "nothing", "facts")


def test_names_are_reconciled_within_the_limits(small):
    matches = small.reconcile(["puppyy", None], k=2)
    assert (matches[0].key, matches[1].key) == ("puppy.n.01", None)
    with pytest.raises(Problem, match="names: 3, of 2"):
        small.reconcile(["a"] * 3)
    with pytest.raises(Problem, match="characters"):
        small.reconcile(["x" * 21])
    with pytest.raises(UsageError, match="threshold"):
        small.reconcile(["a"], k=1, threshold=3)


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
