"""The service under load: `python -m benchmarks.serving --home DIR [--seconds N] [--only NAME]`.

    cpu        CPU time of a request, beside that of `Linker` in process and an app that answers a constant
    load       4 clients, 2 workers: requests, latency, errors, memory after 1/10, 1/2 and all of it
    batches    16 clients of a model with an encoder, batches shared and not
    workers    4 clients of that model, 1 worker and 2
    kills      kill -9 of a worker, again and again, under load: failed requests, seconds until it is replaced
    publishing under load, a build whose vectors do not fit, then the first again; then `kgkit kb prune`
    stop       SIGTERM under load

Texts have 55 words of descriptions in WordNet, drawn from all of it: ever new words. The home is only read;
`publishing` copies its WordNet into a folder of its own.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import kgkit
from kgkit.home import Home
from kgkit.linking import Linker
from kgkit.serving.running import run_service
from kgkit.serving.settings import Limits, ServiceSettings
from kgkit.store import publish_build
from kgkit.store.publish import prune
from kgkit.vectors.work import Work

WORDS = 55
SHORT_WORDS = 12
TICKS = os.sysconf("SC_CLK_TCK")
ENCODER = "wsd-minilm"


@dataclass
class Load:
    """Results of the clients' requests.

    Attributes:
        seconds: latencies of answered requests.
        failures: errors, or statuses, of the others.
        refused: number of refused connections.
    """

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refused: int = 0

    def described(self, duration: float) -> str:
        """Return the figures as a line."""
        if not self.seconds:
            return f"no request answered, {len(self.failures)} failed: {self.failures[:3]}"
        cuts = statistics.quantiles(self.seconds, n=100, method="inclusive")
        p50, p95, p99 = (f"{1000 * cuts[cut - 1]:.1f}" for cut in (50, 95, 99))
        failed = f"{len(self.failures)} failed" + (
            f" {sorted(set(self.failures))[:3]}" if self.failures else ""
        )
        rate = len(self.seconds) / duration
        return f"{len(self.seconds):,} requests, {rate:.1f}/s, p50 {p50} p95 {p95} p99 {p99} ms, {failed}"


def drawn_texts(home: Path, count: int, seed: int = 7) -> list[str]:
    """Return texts of 55 words of descriptions, drawn from all of WordNet."""
    generator = random.Random(seed)
    with kgkit.open_kb("wordnet", home=home) as kb:
        texts = []
        for _ in range(count):
            words: list[str] = []
            while len(words) < WORDS:
                words += kb[generator.randrange(kb.manifest.counts.entities["synset"])].description.split()
            texts.append(" ".join(words[:WORDS]))
    return texts


class Client(threading.Thread):
    """A client that asks for links, one request after another over one connection, until it is to stop."""

    def __init__(self, port: int, texts: list[str], model: str, load: Load, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.port, self.texts, self.model, self.load, self.stop = port, texts, model, load, stop

    def run(self) -> None:
        connection = None
        for number in range(10**9):
            if self.stop.is_set():
                break
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                try:
                    connection.connect()
                except OSError:
                    self.load.refused += 1
                    connection = None
                    time.sleep(0.05)
                    continue
            body = json.dumps({"text": self.texts[number % len(self.texts)], "model": self.model})
            begin = time.perf_counter()
            try:
                connection.request("POST", "/v1/link", body)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.load.failures.append(type(error).__name__)
                connection.close()
                connection = None
                continue
            if answer.status == 200:
                self.load.seconds.append(time.perf_counter() - begin)
            else:
                self.load.failures.append(str(answer.status))
            if answer.will_close:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


@contextlib.contextmanager
def clients(port: int, count: int, texts: list[str], model: str) -> Iterator[Load]:
    """Let a number of clients ask while the block lasts."""
    load, stop = Load(), threading.Event()
    share = len(texts) // count
    threads = [
        Client(port, texts[index * share : (index + 1) * share], model, load, stop) for index in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


@contextlib.contextmanager
def forked(run: Callable[[Callable[[str], None]], None]) -> Iterator[tuple[int, int]]:
    """Run a server in a process of its own; give its port and process id."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            run(lambda url: os.write(writing, url.encode()) and None)
        finally:
            os._exit(0)
    os.close(writing)
    url = os.read(reading, 200).decode()
    if not url:
        raise SystemExit("the service did not start")
    try:
        yield int(url.rstrip("/").rpartition(":")[2]), pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def service(home: Path, *models: str, workers: int = 1, batch: int = 32) -> Iterator[tuple[int, int]]:
    """Run the service over WordNet; give its port and process id."""
    settings = ServiceSettings(
        kbs={"wordnet": models}, port=0, workers=workers, limits=Limits(batch=batch), device="cpu"
    )

    def run(announce: Callable[[str], None]) -> None:
        run_service(settings, Home(home), announce, quiet=True)

    with forked(run) as running:
        yield running


@contextlib.contextmanager
def constant_app(size: int) -> Iterator[tuple[int, int]]:
    """Run an app of FastAPI that answers a constant of *size* bytes, by the same server."""
    import socket

    import uvicorn
    from fastapi import FastAPI, Request
    from starlette.responses import Response

    app, content = FastAPI(), b"x" * size

    @app.post("/v1/link")
    async def answer(request: Request) -> Response:
        await request.body()
        return Response(content, media_type="application/json")

    def run(announce: Callable[[str], None]) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        announce(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([listening])

    with forked(run) as running:
        yield running


def children(pid: int) -> list[int]:
    """Return the process ids of the workers of a service."""
    numbers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in numbers if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time that processes have taken."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def resident(pids: list[int]) -> float:
    """Return the memory of processes that is in RAM, in megabytes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_of_requests(port: int, pids: list[int], texts: list[str], model: str, seconds: float) -> float:
    """Return the milliseconds of CPU time of a request of one client, after some to warm up."""
    with clients(port, 1, texts, model) as load:
        time.sleep(min(5.0, seconds / 3))
        begin, count = cpu_seconds(pids), len(load.seconds)
        time.sleep(seconds)
        return 1000 * (cpu_seconds(pids) - begin) / (len(load.seconds) - count)


def measure_cpu(home: Path, texts: list[str], seconds: float) -> None:
    """Compare the CPU time of a request with that of its parts."""
    for model in ("prior", ENCODER):
        with Linker.open("wordnet", home=home, model=model, device="cpu") as linker:
            for text in texts[:100]:
                list(linker([text]))
            begin, deadline, count = time.process_time(), time.monotonic() + seconds, 0
            while time.monotonic() < deadline:
                (linked,) = linker([texts[count % len(texts)]])
                count += 1
            linking = 1000 * (time.process_time() - begin) / count
            size = len(json.dumps(linked.to_dict()))
        with constant_app(size) as (port, pid):
            constant = cpu_of_requests(port, [pid], texts, model, seconds)
        with service(home, model) as (port, pid):
            served = cpu_of_requests(port, children(pid), texts, model, seconds)
        print(
            f"cpu, {model}: {served:.3f} ms a request; Linker {linking:.3f} + constant {constant:.3f} ms: "
            f"{served / (linking + constant):.2f} x"
        )


def measure_load(home: Path, texts: list[str], seconds: float) -> None:
    """Ask with 4 clients of 2 workers."""
    for model in ("prior", ENCODER):
        with service(home, model, workers=2) as (port, pid):
            memory, begin = [], time.monotonic()
            with clients(port, 4, texts, model) as load:
                for share in (0.1, 0.4, 0.5):
                    time.sleep(share * seconds)
                    memory.append(resident(children(pid)))
            duration = time.monotonic() - begin
        print(f"load, {model}: {load.described(duration)}; MB {', '.join(f'{each:.0f}' for each in memory)}")


def throughput(
    home: Path, texts: list[str], seconds: float, count: int, *, workers: int = 1, batch: int = 32
) -> tuple[float, float]:
    """Return the requests a second that a service with an encoder answers, and a request's CPU time in ms."""
    with (
        service(home, ENCODER, workers=workers, batch=batch) as (port, pid),
        clients(port, count, texts, ENCODER) as load,
    ):
        time.sleep(min(5.0, seconds / 3))
        before, begin = len(load.seconds), cpu_seconds(children(pid))
        time.sleep(seconds)
        answered = len(load.seconds) - before
        return answered / seconds, 1000 * (cpu_seconds(children(pid)) - begin) / answered


def measure_batches(home: Path, texts: list[str], seconds: float) -> None:
    """Compare shared batches with none, for short texts too: of these a model's fixed costs are most."""
    for words in (SHORT_WORDS, WORDS):
        shortened = [" ".join(text.split()[:words]) for text in texts]
        shared, shared_cpu = throughput(home, shortened, seconds, 16)
        alone, alone_cpu = throughput(home, shortened, seconds, 16, batch=1)
        print(
            f"batches, 16 clients, {words} words: {shared:.1f}/s shared, {alone:.1f}/s not: "
            f"{shared / alone:.2f} x; CPU {shared_cpu:.1f} and {alone_cpu:.1f} ms a request: "
            f"{alone_cpu / shared_cpu:.2f} x"
        )


def measure_workers(home: Path, texts: list[str], seconds: float) -> None:
    """Compare two workers with one."""
    single, _ = throughput(home, texts, seconds, 4)
    both, _ = throughput(home, texts, seconds, 4, workers=2)
    print(f"workers, 4 clients: {both:.1f}/s of 2, {single:.1f}/s of 1: {both / single:.2f} x")


def measure_kills(home: Path, texts: list[str], seconds: float) -> None:
    """Kill a worker again and again."""
    for model in ("prior", ENCODER):
        waits = []
        with service(home, model, workers=2) as (port, pid):
            begin = time.monotonic()
            with clients(port, 4, texts, model) as load:
                while time.monotonic() < begin + seconds:
                    time.sleep(2)
                    os.kill(children(pid)[0], signal.SIGKILL)
                    waits.append(seconds_until_both_answer(port, pid))
            duration = time.monotonic() - begin
        print(
            f"kills, {model}: {len(waits)} killed, replaced in {max(waits):.1f} s at most; "
            f"{load.described(duration)}"
        )


def seconds_until_both_answer(port: int, pid: int) -> float:
    """Return the seconds until the gauge of workers is 2 again."""
    begin = time.monotonic()
    while True:
        time.sleep(0.1)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
            if "kgkit_workers 2.0" in text and len(children(pid)) == 2:
                return time.monotonic() - begin


def measure_publishing(home: Path, texts: list[str], seconds: float) -> None:
    """Publish builds under load, one whose vectors do not fit and the first again, and remove the others.

    Served builds whose folders are removed stay open.
    """
    folder = Path(tempfile.mkdtemp(prefix="serving-"))
    try:
        shutil.copytree(home / "kbs" / "wordnet", folder / "kbs" / "wordnet", symlinks=True)
        with kgkit.open_kb("wordnet", home=folder) as kb:
            first = kb.build
            with Work(kb, "random", {"method": "random"}) as work:  # they fit this build alone
                work.matrix(kb.id_count, 8)[:] = np.random.default_rng(0).normal(size=(kb.id_count, 8))
                work.publish("random")
        with service(folder, "prior", workers=2) as (port, _):
            begin, builds = time.monotonic(), []
            with clients(port, 4, texts, "prior") as load:
                time.sleep(seconds / 4)
                record = [{"key": "zzz.n.01", "label": "zzz", "kind": "synset"}]
                kgkit.build_kb("jsonl", record, name="wordnet", home=folder)
                builds.append(wait_and_read(port, seconds / 4))
                publish_build(Home(folder).kb("wordnet"), first)
                builds.append(wait_and_read(port, seconds / 4))
                pruned = prune(Home(folder).kb("wordnet"))
                builds.append(wait_and_read(port, seconds / 4))
            duration = time.monotonic() - begin
        print(f"publishing: {load.described(duration)}; {len(pruned)} builds removed; {builds}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_and_read(port: int, seconds: float) -> dict[str, object]:
    """Return what the service says of its readiness, after a while."""
    time.sleep(seconds)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/health/ready")
    record: dict[str, object] = json.loads(connection.getresponse().read())
    connection.close()
    return record


def measure_stop(home: Path, texts: list[str], seconds: float) -> None:
    """End the service under load."""
    for model in ("prior", ENCODER):
        with service(home, model, workers=2) as (port, pid):
            begin = time.monotonic()
            with clients(port, 4, texts, model) as load:
                time.sleep(min(seconds, 10))
                os.kill(pid, signal.SIGTERM)
                stopped = time.monotonic()
                while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    time.sleep(0.05)
                wait = time.monotonic() - stopped
            duration = time.monotonic() - begin
        print(
            f"stop, {model}: {load.described(duration)}; ended in {wait:.1f} s; {load.refused} connections "
            "refused after it"
        )


MEASURES = {
    "cpu": measure_cpu,
    "load": measure_load,
    "batches": measure_batches,
    "workers": measure_workers,
    "kills": measure_kills,
    "publishing": measure_publishing,
    "stop": measure_stop,
}


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True, help="home with the KB wordnet")
    parser.add_argument("--seconds", type=float, default=600.0, help="seconds of each measurement")
    parser.add_argument("--texts", type=int, default=4_000, help="number of texts")
    parser.add_argument("--only", choices=MEASURES, action="append", help="measure this; may be repeated")
    arguments = parser.parse_args()
    texts = drawn_texts(arguments.home, arguments.texts)
    for name in arguments.only or MEASURES:
        MEASURES[name](arguments.home, texts, arguments.seconds)


if __name__ == "__main__":
    main()
