"""Metrics of the service for Prometheus, of one process or of all workers together.

Workers write into files of the folder that `PROMETHEUS_MULTIPROC_DIR` names, which has to be set before
prometheus_client is imported; a scrape of any worker reads all.
"""

import os
from pathlib import Path
from typing import Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from kgkit.serving.settings import METRICS_FOLDER_VARIABLE

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "OPTIONS"))


class ServiceMetrics:
    """The metrics of a process.

    Args:
        registry: registry that has them; None: a new one.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._folder = os.environ.get(METRICS_FOLDER_VARIABLE)
        self.registry = registry or CollectorRegistry()
        self._requests = Counter(
            "kgkit_requests_total",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kgkit_request_seconds", "Time from a request's head to the end of its answer.", ("route",),
            registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._batches = Counter(
            "kgkit_link_batches_total", "Batches of documents that were linked.", registry=self.registry
        )
        self._documents = Counter(
            "kgkit_linked_documents_total", "Documents that were linked.", registry=self.registry
        )
        self._waiting = self._gauge("kgkit_waiting_requests", "Requests for links that wait.", "livesum")
        self._workers = self._gauge("kgkit_workers", "Processes that answer.", "livesum")
        self._memory = self._gauge("kgkit_resident_bytes", "Memory of the processes that answer.", "livesum")
        self._refused = self._gauge(
            "kgkit_refused_builds", "Published builds that are not served.", "livemax"
        )
        self._counted = 0, 0

    def _gauge(self, name: str, help: str, mode: Any) -> Gauge:
        return Gauge(name, help, registry=self.registry, multiprocess_mode=mode)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: method of the request.
            route: pattern of its address, so that there are few of them.
            status: status of its answer; 0: the client left before there was one.
            seconds: time that it took.
        """
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def observe_process(self, waiting: int, batches: int, documents: int, refused: int) -> None:
        """Bring the gauges of this process up to date.

        Args:
            waiting: number of requests for links that wait.
            batches: number of batches that have been linked.
            documents: number of documents in them.
            refused: number of published builds that are not served.
        """
        self._waiting.set(waiting)
        self._workers.set(1)
        self._memory.set(_resident_bytes())
        self._refused.set(refused)
        self._batches.inc(batches - self._counted[0])
        self._documents.inc(documents - self._counted[1])
        self._counted = batches, documents

    def exposition(self) -> bytes:
        """Return the metrics of this process, or of all workers, in Prometheus's text format."""
        if not self._folder:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        for path in Path(self._folder).glob("gauge_live*.db"):
            pid = int(path.stem.rpartition("_")[2])
            if not _is_running(pid):
                mark_process_dead(pid)  # type: ignore[no-untyped-call]
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _resident_bytes() -> int:
    """Return the memory of this process that is in RAM; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
