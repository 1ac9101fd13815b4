"""Workers of a corpus: results in the order of the requests, and an error where one is killed."""

import logging
import os
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path

import pytest

from kgkit.commands.corpora.workers import map_in_workers
from kgkit.errors import KgkitError, SourceError, Terminated, UnknownName, UsageError
from kgkit.signals import terminations


@dataclass(frozen=True)
class Square:
    """Squares numbers, slowly where they are even; notes in a folder who was opened."""

    folder: Path

    def open(self, stack: ExitStack):
        (self.folder / str(os.getpid())).touch()
        return self.answer

    def answer(self, number):
        time.sleep(0.02 if number % 2 == 0 else 0)
        return number * number


@dataclass(frozen=True)
class Misbehave:
    """Does what a request says, in the worker."""

    def open(self, stack: ExitStack):
        return self.answer

    def answer(self, request):
        if request == "error":
            raise SourceError("wrong", path=Path("file"), line=3)
        if request == "unknown":
            raise UnknownName("model", "x", ["y"])
        if isinstance(request, int):
            os.kill(os.getpid(), request)
        if request == "large":
            return b"x" * (8 << 20)
        return request


class NeverOpens:
    """Fails when it is opened."""

    def open(self, stack: ExitStack):
        raise SourceError("cannot be read")


class Warns:
    """Logs a warning when it is opened, and one for each request."""

    def open(self, stack: ExitStack):
        logging.getLogger("library").warning("opened %s", "slowly")
        return self.answer

    def answer(self, request):
        logging.getLogger("library").warning("%s is odd", request)
        return request


def test_warnings_of_workers_are_logged_by_the_parent_each_once(caplog, capfd):
    assert [*map_in_workers(Warns(), ["a", "b", "a", "b"], workers=2)] == ["a", "b", "a", "b"]
    assert sorted(caplog.messages) == ["a is odd", "b is odd", "opened slowly"]
    assert capfd.readouterr().err == ""


def test_results_have_the_order_of_requests_and_each_worker_is_opened_once(tmp_path):
    assert [*map_in_workers(Square(tmp_path), range(20), workers=2)] == [n * n for n in range(20)]
    assert len(list(tmp_path.iterdir())) == 2


def test_requests_are_read_a_few_ahead_only(tmp_path):
    sent = []
    results = map_in_workers(Square(tmp_path), (sent.append(n) or n for n in range(100)), workers=1)
    assert next(results) == 0 and len(sent) <= 3
    assert next(results) == 1 and len(sent) <= 4
    results.close()


def test_an_error_of_a_task_comes_after_the_results_before_it():
    results = map_in_workers(Misbehave(), ["a", "b", "error", "c"], workers=2)
    assert [next(results), next(results)] == ["a", "b"]
    with pytest.raises(SourceError, match="wrong") as caught:
        next(results)
    assert caught.value.line == 3


def test_an_error_that_cannot_travel_has_its_text_and_its_exit_code():
    with pytest.raises(UsageError, match="there are: y"):
        next(map_in_workers(Misbehave(), ["unknown"], workers=1))


def test_an_error_of_opening_a_task_is_that_of_its_first_request():
    with pytest.raises(SourceError, match="cannot be read"):
        next(map_in_workers(NeverOpens(), ["a"], workers=1))


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGKILL, "was killed, most often because memory ran out"), (signal.SIGTERM, "ended by SIGTERM")],
)
def test_a_worker_that_a_signal_ends_is_one_error(number, message):
    results = map_in_workers(Misbehave(), ["a", int(number), "large", "b"], workers=2)
    assert next(results) == "a"
    with pytest.raises(KgkitError, match=f"a worker process {message}.*--resume"):
        list(results)


def test_a_worker_that_is_killed_while_it_writes_is_one_error(monkeypatch):
    """It has written a part of its result, for the rest of which a shared pipe would be read for ever."""
    results = map_in_workers(Misbehave(), ["a", "large", "large", "large"], workers=1)
    assert next(results) == "a"
    time.sleep(0.5)  # the pipe is full by then
    [worker] = {int(path.name) for path in Path("/proc").glob("[0-9]*") if is_worker(path)}
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(KgkitError, match="a worker process was killed"):
        list(results)


def is_worker(path):
    """Say whether a process is a worker that this one has spawned."""
    try:
        parent = int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        return parent == os.getpid() and b"spawn_main" in path.joinpath("cmdline").read_bytes()
    except OSError:
        return False


def test_workers_that_are_starting_leave_ctrl_c_to_their_parent(capfd):
    def requests():
        for child in active_children():
            os.kill(child.pid, signal.SIGINT)
        yield from ("a", "b")

    assert [*map_in_workers(Misbehave(), requests(), workers=2)] == ["a", "b"]
    assert capfd.readouterr().err == ""


def test_workers_end_with_the_iteration_whatever_ends_it():
    results = map_in_workers(Misbehave(), ["a", "b", "c", "d"], workers=2)
    next(results)
    results.close()
    assert not any(is_worker(path) for path in Path("/proc").glob("[0-9]*"))
    with pytest.raises(Terminated), terminations():
        for _ in map_in_workers(Misbehave(), iter(lambda: "a", None), workers=1):
            os.kill(os.getpid(), signal.SIGTERM)
    assert not any(is_worker(path) for path in Path("/proc").glob("[0-9]*"))
