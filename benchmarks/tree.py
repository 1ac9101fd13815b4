"""A process with all it starts: what they weigh together, and what is left when one of them is killed.

    PSS         memory of a process, with its share of what several have mapped (`smaps_rollup`)
    anonymous   that of it which is no page of a file: pages of files may be taken back at any time

Both are summed over the processes that are there, a few times a second; the greatest sum is the peak.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import REPOSITORY, JobFailed

EVERY = 0.2  # seconds between two looks
PATIENCE = 20.0  # seconds in which the processes of one that was killed have to be gone


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One run.

    Attributes:
        seconds: from start to end.
        peak, anonymous: bytes; peaks of the sums.
        survivors: number of processes that still ran some seconds after the first had been killed.
        result: what the function returned; None if it was killed.
    """

    seconds: float
    peak: int
    anonymous: int
    survivors: int = 0
    result: Any = None


def watched(
    function: str,
    arguments: Mapping[str, object],
    kill_when: Callable[[], bool] | None = None,
    look: Callable[[int, int, int], None] = lambda session, peak, anonymous: None,
) -> Watched:
    """Call `module:function` in a fresh process, and kill it as soon as *kill_when* says so.

    *look* is called again and again with the session, the bytes of all its processes, and those that are
    anonymous.

    Raises:
        JobFailed: if it ends with an error, or before it was killed.
    """
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in arguments.items()}
    command = (sys.executable, "-m", "benchmarks.child", function, json.dumps(texts))
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    with tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            stdout=answers,
            stderr=errors,
            cwd=REPOSITORY,
            start_new_session=True,  # by which its processes are known
        )
        peak = anonymous = 0
        while process.poll() is None:
            if kill_when is not None and kill_when():
                process.send_signal(signal.SIGKILL)
                process.wait()
                break
            all_of_it, of_it = weight(process.pid)
            peak, anonymous = max(peak, all_of_it), max(anonymous, of_it)
            look(process.pid, all_of_it, of_it)
            time.sleep(EVERY)
        seconds = time.monotonic() - start
        if kill_when is not None:
            if process.returncode != -signal.SIGKILL:
                raise JobFailed(f"{function}: ended before it was killed")
            return Watched(
                seconds=seconds, peak=peak, anonymous=anonymous, survivors=_end_survivors(process.pid)
            )
        if process.returncode:
            errors.seek(0)
            message = errors.read()[-2000:].decode(errors="replace")
            raise JobFailed(f"{function}: exit status {process.returncode}\n{message}")
        answers.seek(0)
        result = json.loads(answers.read())
    return Watched(seconds=seconds, peak=peak, anonymous=anonymous, result=result)


def members(session: int) -> list[int]:
    """Return the processes of a session."""
    processes = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # Behind the name, which may hold anything: state, parent, group, session.
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    processes.append(int(entry.name))
    return processes


def weight(session: int) -> tuple[int, int]:
    """Return the bytes that the processes of a session have in memory: all, and anonymous."""
    sums = {"Pss:": 0, "Pss_Anon:": 0}
    for process in members(session):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                name, _, value = line.partition(" ")
                if name in sums:
                    sums[name] += int(value.split()[0]) * 1024
    return sums["Pss:"], sums["Pss_Anon:"]


def _end_survivors(session: int) -> int:
    """End the processes that do not end by themselves, and return their number."""
    end = time.monotonic() + PATIENCE
    while (survivors := members(session)) and time.monotonic() < end:
        time.sleep(EVERY)
    for process in survivors:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return len(survivors)
