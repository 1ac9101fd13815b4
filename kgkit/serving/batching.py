"""The queue of requests for links: one in a process, bounded, read by one thread.

An encoder serves one thread at a time. While it computes, requests wait; when it is free, those of the same
linker are linked together, up to a number of documents. A request that finds the queue full gets 503.

A long request is linked by itself. Between the batches of its encoder, short requests that wait are linked,
so that they do not wait until it is done; and one that nobody waits for any more is given up.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kgkit.linking.linker import Linker
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.pauses import pausing
from kgkit.serving.lanes import Abandoned
from kgkit.serving.problems import Busy
from kgkit.types import Document, LinkedDocument

_GATHERING_SECONDS: Final = 0.005
_SHORT: Final = 4_000
"""Characters of the longest request that shares batches: a second of an encoder on a core."""


@dataclass(eq=False)
class _LinkJob:
    """Documents of one request.

    Attributes:
        linkers: linkers, one for each knowledge base; jobs of the same are linked together.
        documents: documents of the request.
        future: future of the links; it is done too when nobody waits for them any more.
    """

    linkers: tuple[Linker, ...]
    documents: Sequence[Document]
    future: Future[list[LinkedDocument]] = field(default_factory=Future)

    @property
    def is_long(self) -> bool:
        """Whether the request is linked by itself, with pauses for others."""
        return sum(len(document.text) for document in self.documents) > _SHORT

    def run(self) -> None:
        """Link the documents by themselves, and give the future the links, or the error."""
        try:
            self.finish(link_documents(self.linkers, self.documents))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            with suppress(InvalidStateError):
                self.future.set_exception(error)

    def finish(self, links: list[LinkedDocument]) -> None:
        """Give the future its result."""
        with suppress(InvalidStateError):
            self.future.set_result(links)


class LinkQueue:
    """Links the documents of requests, those that wait together.

    Args:
        size: number of requests that may wait.
        batch: number of documents that are linked together; 1: each request by itself.

    Attributes:
        batches: number of batches that were linked.
        documents: number of documents in them.
    """

    def __init__(self, size: int, batch: int) -> None:
        self._size, self._batch = size, batch
        self._jobs: deque[_LinkJob] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self.batches = self.documents = 0
        self._former = 1

    def __len__(self) -> int:
        """Number of requests that wait."""
        return len(self._jobs)

    async def link(self, linkers: tuple[Linker, ...], documents: Sequence[Document]) -> list[LinkedDocument]:
        """Return the documents with their links, when it is their turn.

        Raises:
            Busy: if too many requests wait.
        """
        job = _LinkJob(linkers, documents)
        with self._ready:
            if len(self._jobs) >= self._size or self._closed:
                raise Busy("too many requests for links are waiting")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="links", daemon=True)
                self._thread.start()
            self._jobs.append(job)
            self._ready.notify()
        return await asyncio.wrap_future(job.future)

    def close(self) -> None:
        """End the thread when the jobs that wait are done."""
        with self._ready:
            self._closed = True
            self._ready.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while jobs := self._next_jobs():
            self._former = len(jobs)
            with pausing(partial(self._pause if jobs[0].is_long else _check_waiting, jobs)):
                self._run(jobs)

    def _run(self, jobs: Sequence[_LinkJob]) -> None:
        """Link the documents of jobs; if that fails, those of each job by themselves."""
        self.batches += 1
        self.documents += sum(len(job.documents) for job in jobs)
        if len(jobs) == 1:
            jobs[0].run()
            return
        try:
            self._link_together(jobs)
        except BaseException:  # noqa: BLE001 - of which job it is, each by itself tells
            for job in jobs:
                if not job.future.done():
                    job.run()

    def _pause(self, long_jobs: Sequence[_LinkJob]) -> None:
        """Link a batch of short jobs that wait, between two batches of a long job.

        Raises:
            Abandoned: if nobody waits for the long job any more, which ends it.
        """
        _check_waiting(long_jobs)
        with self._ready:
            jobs = self._take(short_only=True)
        if jobs:
            with pausing(partial(_check_waiting, jobs)):
                self._run(jobs)

    def _link_together(self, jobs: Sequence[_LinkJob]) -> None:
        documents = [document for job in jobs for document in job.documents]
        links = link_documents(jobs[0].linkers, documents)
        begin = 0
        for job in jobs:
            end = begin + len(job.documents)
            job.finish(links[begin:end])
            begin = end

    def _gather(self) -> None:
        """Wait a moment for as many jobs as the former batch had: its clients ask again just now."""
        deadline = time.monotonic() + _GATHERING_SECONDS
        while len(self._jobs) < self._former and not self._closed:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            self._ready.wait(remaining)

    def _next_jobs(self) -> list[_LinkJob]:
        """Return the next job, with those behind it that can be linked together with it; none at the end."""
        with self._ready:
            while True:
                while self._jobs and self._jobs[0].future.done():  # nobody waits for it any more
                    self._jobs.popleft()
                if self._jobs:
                    if _has_encoder(self._jobs[0].linkers) and not self._jobs[0].is_long:
                        self._gather()
                    if jobs := self._take():
                        return jobs
                elif self._closed:
                    return []
                else:
                    self._ready.wait()

    def _take(self, *, short_only: bool = False) -> list[_LinkJob]:
        """Take the first job from the queue, and those behind it that share its batch.

        Args:
            short_only: whether the first short job is taken, and none if there is no short one.
        """
        jobs, remaining, count = list[_LinkJob](), deque[_LinkJob](), 0
        while self._jobs and count < self._batch:
            job = self._jobs.popleft()
            if job.future.done():  # nobody waits for it any more
                continue
            if not jobs:
                fits = not (short_only and job.is_long)
            else:
                fits = (
                    job.linkers == jobs[0].linkers
                    and count + len(job.documents) <= self._batch
                    and not (job.is_long or jobs[0].is_long)
                )
            if fits:
                jobs.append(job)
                count += len(job.documents)
            else:
                remaining.append(job)
        remaining.extend(self._jobs)
        self._jobs = remaining
        return jobs


def _check_waiting(jobs: Sequence[_LinkJob]) -> None:
    """End the work for jobs for none of which anybody waits any more.

    Raises:
        Abandoned: if there is no other job.
    """
    if all(job.future.done() for job in jobs):
        raise Abandoned


def _has_encoder(linkers: Sequence[Linker]) -> bool:
    """Say whether one of the linkers has a model that takes several documents at once."""
    return any(linker.scorer.batch_size > 1 for linker in linkers)


def link_documents(linkers: Sequence[Linker], documents: Sequence[Document]) -> list[LinkedDocument]:
    """Return documents with the links of one linker, or of several together.

    Args:
        linkers: linkers, one for each knowledge base.
        documents: documents.
    """
    linker = linkers[0] if len(linkers) == 1 else MultiKBLinker(linkers, references=False)
    return list(linker(documents))
