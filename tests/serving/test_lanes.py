"""Work that nobody waits for ends, and long requests leave the threads of look-ups alone."""

import asyncio
import threading
from contextlib import suppress

import pytest

from kgkit.candidates import AliasGenerator
from kgkit.candidates.long_texts import mention_windows
from kgkit.home import Home
from kgkit.kb.facts import Facts
from kgkit.kb.walks import closure, shortest_path
from kgkit.linking import Linker, LinkSettings
from kgkit.pauses import pause, pausing
from kgkit.reconciling.reconciler import Reconciler
from kgkit.serving.kb_schema import read_schema
from kgkit.serving.lanes import Abandoned, Lane
from kgkit.serving.problems import Busy
from kgkit.serving.reconciliation import answer_queries, extension, read_extension, read_queries
from kgkit.serving.service import LONG, Service
from kgkit.serving.settings import Limits, ServiceSettings

SECONDS = 20  # that no test needs


def make_service(home, **limits):
    service = Service(ServiceSettings(kbs={"facts": ("prior",)}, limits=Limits(**limits)), Home(home))
    service.start()
    return service


async def until(condition):
    """Wait until a condition holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


def test_work_ends_at_its_next_pause_once_its_caller_is_cancelled():
    lane = Lane("work", 1, 10)
    begun, ended = threading.Event(), threading.Event()

    def work():
        try:
            while True:
                begun.set()
                pause()
        finally:
            ended.set()

    async def run():
        task = asyncio.create_task(lane.call(3, work))
        await until(begun.is_set)
        assert lane.cost == 3
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(ended.is_set)
        await until(lambda: lane.cost == 0)

    asyncio.run(run())
    lane.close()


def test_work_that_waits_and_that_nobody_waits_for_is_never_begun():
    lane = Lane("work", 1, 10)
    gate, begun = threading.Event(), threading.Event()

    async def run():
        first = asyncio.create_task(lane.call(1, lambda: gate.wait(SECONDS)))
        second = asyncio.create_task(lane.call(1, begun.set))
        await asyncio.sleep(0)
        second.cancel()
        with suppress(asyncio.CancelledError):
            await second
        gate.set()
        assert await first
        await until(lambda: lane.cost == 0)
        assert await lane.call(1, begun.is_set) is False

    asyncio.run(run())
    lane.close()


def test_a_lane_counts_costs_and_not_requests():
    lane = Lane("work", 1, 10)
    gate = threading.Event()

    async def run():
        tasks = [asyncio.create_task(lane.call(cost, lambda: gate.wait(SECONDS))) for cost in (4, 5)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await lane.call(2, gate.is_set)
        tasks.append(asyncio.create_task(lane.call(1, gate.is_set)))
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*tasks) == [True, True, True]
        await until(lambda: lane.cost == 0)
        assert await lane.call(11, gate.is_set)  # alone

    asyncio.run(run())
    lane.close()


def test_look_ups_are_answered_while_all_threads_of_long_requests_are_busy(served_home):
    service = make_service(served_home, threads=2)
    gate = threading.Event()

    async def run():
        tasks = [
            asyncio.create_task(service.call_weighed(LONG, gate.wait, SECONDS)) for _ in range(20)
        ]  # fmt: skip
        await asyncio.sleep(0)
        for _ in range(5):
            assert (await service.call(service.entity, "dog", "facts")).key == "dog"
        few = await service.call_weighed(10, service.reconcile, ["dog"] * 10, "facts")
        assert [match.key for match in few] == ["dog"] * 10
        assert not any(task.done() for task in tasks)
        gate.set()
        await asyncio.gather(*tasks)

    try:
        asyncio.run(run())
    finally:
        service.close()


def test_of_a_request_that_was_given_up_no_further_names_are_reconciled(served_home, monkeypatch):
    service = make_service(served_home)
    gate, names = threading.Event(), []

    def candidates(self, name):
        names.append(name)
        gate.wait(SECONDS)
        return ()

    monkeypatch.setattr(Reconciler, "_candidates", candidates)

    async def run():
        many = [f"name {number}" for number in range(500)]
        task = asyncio.create_task(service.call_weighed(500, service.reconcile, many, "facts"))
        await until(lambda: names)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        gate.set()
        await until(lambda: service._long.cost == 0)

    try:
        asyncio.run(run())
    finally:
        service.close()
    assert names == ["name 0"]


def walk(kb):
    return Facts(kb.store, kb.name)


LOOPS = {
    "reconciler": lambda service, kb: list(Reconciler(kb).pipe(["dog", "cat"])),
    "path": lambda service, kb: shortest_path(walk(kb), kb.id("puppy"), kb.id("mouse"), None),
    "closure": lambda service, kb: list(closure(walk(kb), kb.id("puppy"), walk(kb).code("is_a"), None)),
    "search": lambda service, kb: kb.search("c"),
    "windows": lambda service, kb: list(mention_windows(AliasGenerator(kb), "dog " * 50_000)),
    "documents": lambda service, kb: list(Linker(kb)(["dog", "cat"])),
    "coherence": lambda service, kb: list(Linker(kb, LinkSettings(coherence="graph"))(["dog", "cat"])),
    "queries": lambda service, kb: answer_queries(
        service, "facts", read_schema(kb), read_queries('{"0": {"query": "dog"}}', service.limits)
    ),
    "extension": lambda service, kb: extension(
        kb, read_extension('{"ids": ["dog", "cat"], "properties": [{"id": "label"}]}', service.limits), 5
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_that_may_be_long_can_be_ended(client, served, loop):
    def end():
        raise Abandoned

    kb = served.kb("facts")
    LOOPS[loop](served, kb)
    with pytest.raises(Abandoned), pausing(end):
        LOOPS[loop](served, kb)
