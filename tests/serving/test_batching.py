"""The queue of requests for links: bounded, in batches, and no request suffers from another."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from kgkit.pauses import pause
from kgkit.serving import batching
from kgkit.serving.batching import LinkQueue, link_documents
from kgkit.serving.problems import Busy
from kgkit.types import Document, LinkedDocument


class CountingLinker:
    """Stands for a linker: keeps the sizes of its batches, and waits until it may go on."""

    scorer = SimpleNamespace(batch_size=1)

    def __init__(self, *, open_gate=True):
        self.batches, self.gate = [], threading.Event()
        self.entered = threading.Event()
        if open_gate:
            self.gate.set()

    def __call__(self, documents):
        self.entered.set()
        assert self.gate.wait(20)
        self.batches.append([document.id for document in documents])
        for document in documents:
            if document.text == "wrong":
                raise ValueError(document.id)
        return [LinkedDocument(document.id, document.text, "counting", []) for document in documents]


def documents(*names, text="text"):
    return [Document(name, text) for name in names]


def run_queue(work, size=10, batch=8):
    async def run():
        queue = LinkQueue(size, batch)
        try:
            return await asyncio.wait_for(work(queue), 30)
        finally:
            await asyncio.to_thread(queue.close)

    return asyncio.run(run())


async def occupy(queue, linker):
    """Let the thread of the queue wait in *linker*, and return the task that waits for it."""
    task = asyncio.create_task(queue.link((linker,), documents("first")))
    await asyncio.to_thread(linker.entered.wait, 20)
    return task


def test_with_an_encoder_as_many_requests_are_awaited_for_a_moment_as_there_were_before(monkeypatch):
    monkeypatch.setattr(batching, "_GATHERING_SECONDS", 5.0)
    linker = CountingLinker(open_gate=False)
    linker.scorer = SimpleNamespace(batch_size=8)

    async def work(queue):
        first = await occupy(queue, linker)
        tasks = [asyncio.create_task(queue.link((linker,), documents(name))) for name in "ab"]
        await asyncio.sleep(0)
        linker.gate.set()
        await asyncio.gather(first, *tasks)
        early = asyncio.create_task(queue.link((linker,), documents("c")))
        await asyncio.sleep(0.1)
        await asyncio.gather(early, queue.link((linker,), documents("d")))

    run_queue(work)
    assert linker.batches == [["first"], ["a", "b"], ["c", "d"]]


def test_a_client_alone_waits_for_nobody(monkeypatch):
    monkeypatch.setattr(batching, "_GATHERING_SECONDS", 3600.0)
    linker = CountingLinker()
    linker.scorer = SimpleNamespace(batch_size=8)

    async def work(queue):
        for name in "abc":
            await queue.link((linker,), documents(name))

    run_queue(work)
    assert linker.batches == [["a"], ["b"], ["c"]]


def test_requests_that_wait_are_linked_together_and_each_gets_its_own():
    linker = CountingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        tasks = [asyncio.create_task(queue.link((linker,), documents(f"{n}a", f"{n}b"))) for n in range(3)]
        await asyncio.sleep(0)
        linker.gate.set()
        await first
        answers = [[linked.id for linked in await task] for task in tasks]
        assert (queue.batches, queue.documents) == (2, 7)
        return answers

    assert run_queue(work) == [["0a", "0b"], ["1a", "1b"], ["2a", "2b"]]
    assert linker.batches == [["first"], ["0a", "0b", "1a", "1b", "2a", "2b"]]


def test_a_batch_has_no_more_documents_than_it_may():
    linker = CountingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        tasks = [asyncio.create_task(queue.link((linker,), documents(f"{n}a", f"{n}b"))) for n in range(3)]
        await asyncio.sleep(0)
        linker.gate.set()
        await asyncio.gather(first, *tasks)

    run_queue(work, batch=4)
    assert [len(batch) for batch in linker.batches] == [1, 4, 2]


def test_a_request_larger_than_a_batch_is_linked_by_itself():
    linker = CountingLinker()

    async def work(queue):
        return await queue.link((linker,), documents(*"abcdef"))

    assert len(run_queue(work, batch=2)) == 6
    assert linker.batches == [list("abcdef")]


def test_requests_for_different_linkers_are_not_mixed():
    linker, another = CountingLinker(open_gate=False), CountingLinker()

    async def work(queue):
        first = await occupy(queue, linker)
        tasks = [
            asyncio.create_task(queue.link((each,), documents(name)))
            for each, name in ((linker, "a"), (another, "b"), (linker, "c"), (another, "d"))
        ]
        await asyncio.sleep(0)
        linker.gate.set()
        await asyncio.gather(first, *tasks)

    run_queue(work)
    assert (linker.batches, another.batches) == ([["first"], ["a", "c"]], [["b", "d"]])


def test_an_error_is_of_the_request_that_has_it():
    linker = CountingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        tasks = [
            asyncio.create_task(queue.link((linker,), documents("good"))),
            asyncio.create_task(queue.link((linker,), documents("bad", text="wrong"))),
            asyncio.create_task(queue.link((linker,), documents("better"))),
        ]
        await asyncio.sleep(0)
        linker.gate.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    good, bad, better = run_queue(work)
    assert (good[0].id, better[0].id) == ("good", "better")
    assert isinstance(bad, ValueError) and bad.args == ("bad",)


def test_a_full_queue_is_busy_and_takes_requests_again_later():
    linker = CountingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        waiting = [asyncio.create_task(queue.link((linker,), documents(str(n)))) for n in range(2)]
        await asyncio.sleep(0)
        assert len(queue) == 2
        with pytest.raises(Busy) as caught:
            await queue.link((linker,), documents("too many"))
        assert caught.value.headers["Retry-After"] == "1"
        linker.gate.set()
        await asyncio.gather(first, *waiting)
        return await queue.link((linker,), documents("later"))

    assert [linked.id for linked in run_queue(work, size=2)] == ["later"]


def test_a_request_that_nobody_waits_for_is_not_linked():
    linker = CountingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        abandoned = asyncio.create_task(queue.link((linker,), documents("left")))
        await asyncio.sleep(0)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)
        linker.gate.set()
        await first
        await queue.link((linker,), documents("stayed"))

    run_queue(work)
    assert linker.batches == [["first"], ["stayed"]]


def test_closing_waits_for_what_is_under_way_and_takes_nothing_more():
    linker = CountingLinker(open_gate=False)

    async def run():
        queue = LinkQueue(10, 8)
        task = await occupy(queue, linker)
        closing = asyncio.create_task(asyncio.to_thread(queue.close))
        await asyncio.sleep(0.05)
        assert not closing.done()
        with pytest.raises(Busy):
            await queue.link((linker,), documents("late"))
        linker.gate.set()
        await closing
        return await task

    assert [linked.id for linked in asyncio.run(run())] == ["first"]


# -- long requests --------------------------------------------------------------


class PausingLinker(CountingLinker):
    """Stands for a linker with an encoder: it pauses as often as a document has thousands of characters."""

    def __init__(self, *, open_gate=True):
        super().__init__(open_gate=open_gate)
        self.pauses = 0

    def __call__(self, documents):
        self.entered.set()
        assert self.gate.wait(20)
        for document in documents:
            for _ in range(len(document.text) // 1_000):
                self.pauses += 1
                pause()
        return super().__call__(documents)


LONG = "x" * 10_000


def test_short_requests_are_linked_in_the_pauses_of_a_long_one_a_batch_at_a_time():
    linker = PausingLinker(open_gate=False)

    async def work(queue):
        long = asyncio.create_task(queue.link((linker,), documents("long", text=LONG)))
        await asyncio.to_thread(linker.entered.wait, 20)
        short = [asyncio.create_task(queue.link((linker,), documents(name))) for name in "abcde"]
        await asyncio.sleep(0)
        linker.gate.set()
        results = await asyncio.gather(*short, long)
        assert [result[0].id for result in results] == [*"abcde", "long"]
        assert (queue.batches, queue.documents) == (4, 6)

    run_queue(work, batch=2)
    assert linker.batches == [["a", "b"], ["c", "d"], ["e"], ["long"]]
    assert linker.pauses == 10


def test_a_long_request_shares_no_batch_and_waits_for_another_long_one():
    linker = PausingLinker(open_gate=False)

    async def work(queue):
        first = await occupy(queue, linker)
        names = [("b", "text"), ("long", LONG), ("c", "text"), ("longer", LONG)]
        tasks = [
            asyncio.create_task(queue.link((linker,), documents(name, text=text))) for name, text in names
        ]
        await asyncio.sleep(0)
        linker.gate.set()
        await asyncio.gather(first, *tasks)

    run_queue(work)
    assert linker.batches == [["first"], ["b", "c"], ["long"], ["longer"]]


def test_a_long_request_that_nobody_waits_for_any_more_is_given_up():
    linker = PausingLinker(open_gate=False)

    async def work(queue):
        long = asyncio.create_task(queue.link((linker,), documents("long", text=LONG)))
        await asyncio.to_thread(linker.entered.wait, 20)
        long.cancel()
        await asyncio.gather(long, return_exceptions=True)
        linker.gate.set()
        [after] = await queue.link((linker,), documents("after"))
        assert after.id == "after"

    run_queue(work)
    assert linker.batches == [["after"]] and linker.pauses == 1


def test_links_of_several_linkers_are_one_document(client, served):
    linkers = tuple(served.resources.served(name).linker() for name in ("mini", "facts"))
    (linked,) = link_documents(linkers, [Document("0", "The dog and the mouse.")])
    assert [(link.text, link.kb) for link in linked.links] == [
        ("dog", "mini"), ("dog", "facts"), ("mouse", "mini"), ("mouse", "facts"),
    ]  # fmt: skip
    assert linked.model == "mini=prior, facts=prior"
