"""Fresh processes, one at a time, in turn: what every bench is run with.

    CPU seconds    user + system of the process and of all the children it waited for (`wait4`)
    peak memory    `ru_maxrss` of the same: the largest single process, not the sum

This process must stay small and load none of the measured libraries: a child's `ru_maxrss` starts at
the memory of the process that started it.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SINGLE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of one process."""

    cpu: float  # seconds
    wall: float  # seconds
    peak: int  # bytes
    result: Any = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to measure.

    Attributes:
        name: what its samples are filed under.
        command: the whole command line.
        environment: variables on top of this process's own.
        writes: files and folders that are removed before each run, outside the clock.
        limit: seconds after which it is killed, with the processes that it started; None: never.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[Path, ...] = ()
    limit: float | None = None


class JobFailed(RuntimeError):
    """A measured process ended with an error; the end of what it wrote is in the message."""


def call(
    name: str,
    function: str,
    arguments: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
    writes: tuple[Path, ...] = (),
    limit: float | None = None,
) -> Job:
    """Return the job that calls `module:function` with *arguments* in a fresh process."""
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in arguments.items()}
    command = (sys.executable, "-m", "benchmarks.child", function, json.dumps(texts))
    return Job(name=name, command=command, environment=environment or {}, writes=writes, limit=limit)


def run(job: Job) -> Sample:
    """Run *job* once and wait for it."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, **SINGLE_THREAD, "PYTHONPATH": path, **job.environment}
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            job.command, env=environment, stdout=subprocess.PIPE, stderr=errors, cwd=REPOSITORY,
            start_new_session=job.limit is not None,
        )  # fmt: skip
        late = threading.Timer(job.limit or 0.0, _kill_group, [process.pid])
        if job.limit is not None:
            late.start()
        try:
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            if job.limit is not None:
                _kill_group(process.pid)
            process.kill()
            raise
        finally:
            late.cancel()
        wall = time.perf_counter() - start
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == -signal.SIGKILL and job.limit is not None and wall >= job.limit:
            raise JobFailed(f"{job.name}: stopped at its limit of {job.limit:.0f} s")
        if process.returncode != 0:
            errors.seek(0)
            messages = errors.read()[-2000:].decode(errors="replace")
            raise JobFailed(f"{job.name}: exit status {process.returncode}\n{messages}")
    result = json.loads(output) if output.strip() else None
    return Sample(cpu=usage.ru_utime + usage.ru_stime, wall=wall, peak=usage.ru_maxrss * 1024, result=result)


def _kill_group(leader: int) -> None:
    """Kill a process that leads a session, and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def in_turn(jobs: Sequence[Job], repeat: int) -> dict[str, list[Sample]]:
    """Run the jobs in turn, *repeat* times: A B C, A B C, … so that a slow minute falls on all of them."""
    samples: dict[str, list[Sample]] = {job.name: [] for job in jobs}
    for turn in range(repeat):
        for job in jobs:
            for path in job.writes:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            sample = run(job)
            samples[job.name].append(sample)
            progress = f"{turn + 1}/{repeat} {job.name}: {sample.cpu:.2f} s CPU, {sample.peak / 1e6:.0f} MB"
            print(f"  {progress}", file=sys.stderr)
    return samples


def median(samples: Sequence[Sample], what: Callable[[Sample], float]) -> float:
    """Return the median of one figure over the runs."""
    return statistics.median(what(sample) for sample in samples)
