"""How a build grows with its source: Wikipedias of 1, 2, 4 and 8 times the articles, by each engine.

python -m benchmarks.scale --work DIR --sizes 1,2,4,8 --engines local,spark
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks import wikipedia_dump
from benchmarks.report import Table, figures
from benchmarks.tree import Watched, members, watched

ARTICLES: Final = 40_000
MEMORY: Final = "1GB"
WORKERS: Final = (2, 1)
MASTER: Final = "local-cluster[2,1,1024]"
STEPS: Final = ("start", "reading", "grouping", "writing", "rest")

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_EVERY: Final = 1.0  # seconds between two looks at the disk

NOTES: Final = """
Dumps made by `benchmarks.wikipedia_dump`, plain XML and `page_props`: {articles:,} articles, and 2, 4 and 8
times as many. `local` with `--memory {memory}`; `spark` with `--master {master}`: two executors of one core
and 1,024 MB of heap, and a driver with Spark's default of 1 GB. Whole processes, once each. `reading`,
`grouping`, `writing`: seconds of the steps of that name, of which a build has several; `rest`: checksums and
what follows; `start`: Python and its imports, and Spark. CPU seconds of all processes.

`peak`: the greatest sum of PSS of all processes; `anonymous`: that of it which is no page of a file.
"""
DISK_NOTES: Final = """
MB on the disk. `parts`: the Parquet files of what was read; `grouping`: the most that the grouping had at a
time beside them; both are gone when the build has ended. `KB`: what is published. `in all`: the most at any
time, without the dump.
"""
STEP_NOTES: Final = """
Seconds of each step, of the largest source that was built. `peak`: of the memory of all processes, MB.
"""


# -- in the measured processes ----------------------------------------------


def built(source: str, home: str, engine: str, workers: int, memory: str) -> dict[str, Any]:
    """Build the dump; return the figures of the build, and the moments at which each step began."""
    from kgkit.building.build import build_kb

    steps: list[tuple[str, float]] = []
    pages = 0

    def progress(what: str, *_: int) -> None:
        nonlocal pages
        name, _, detail = what.partition(": ")
        if not steps or steps[-1][0] != name:
            steps.append((name, time.monotonic()))
        if detail:
            pages = int(detail.split(", ")[1].split()[0].replace(",", ""))

    result = build_kb(
        "wikipedia", source, home=home, engine=engine, workers=workers, memory=memory, progress=progress,
        master=MASTER if engine == "spark" else None,
    )  # fmt: skip
    manifest = result.manifest
    return {
        "build": result.build,
        "tables": manifest.tables,
        "steps": [*steps, ("end", time.monotonic())],
        "pages": pages,
        "entities": manifest.entities,
        "redirects": manifest.counts.redirects,
        "links": manifest.triples,
        "aliases": manifest.aliases,
        "pairs": manifest.alias_rows,
        "kb": sum(manifest.files.values()),
    }


# -- looking on ---------------------------------------------------------------


class Looks:
    """What is seen of a build from outside.

    Attributes:
        memory: moments, and the bytes of all processes then.
        disk: moments, and the bytes of parts, of what is grouped, and of the KB then.
    """

    def __init__(self, home: Path) -> None:
        self.memory: list[tuple[float, int]] = []
        self.disk: list[tuple[float, int, int, int]] = []
        self._home, self._ticks = home, 0
        self._busy = _busy()

    def __call__(self, session: int, peak: int, _: int) -> None:
        now = time.monotonic()
        self.memory.append((now, peak))
        self._ticks = max(self._ticks, sum(map(_ticks_of, members(session))))
        if not self.disk or now - self.disk[-1][0] >= _EVERY:
            self.disk.append((now, *self._sizes()))

    @property
    def cpu(self) -> float:
        """Seconds that all processes have used, but for what they did behind the last look at them."""
        return self._ticks / _TICKS

    @property
    def other_cores(self) -> float:
        """Cores that other processes of the machine, this one among them, have used on the average."""
        seconds = time.monotonic() - self.memory[0][0]
        return (_busy() - self._busy - self.cpu) / seconds

    def _sizes(self) -> tuple[int, int, int]:
        parts = grouping = kb = 0
        for file, size in _files(self._home):
            if "cache" not in file.relative_to(self._home).parts:
                kb += size
            elif file.name.startswith("part-") and file.parent.parent.parent.name == "parts":
                parts += size
            else:
                grouping += size
        return parts, grouping, kb


def _ticks_of(process: int) -> int:
    """Return what a process has used, and those of its children that have ended."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    return 0


def _busy() -> float:
    """Return the seconds that the processors have worked."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield Path(directory, name), Path(directory, name).stat().st_size


def measured(source: Path, home: Path, engine: str, workers: int, memory: str) -> dict[str, Any]:
    """Build once; return the figures of the build, the seconds of each step, and its memory and disk."""
    shutil.rmtree(home, ignore_errors=True)
    looks = Looks(home)
    begin = time.monotonic()
    run = watched(
        "benchmarks.scale:built",
        {"source": source, "home": home, "engine": engine, "workers": workers, "memory": memory},
        look=looks,
    )
    shutil.rmtree(home)
    results: dict[str, Any] = run.result
    results |= {"engine": engine, "workers": workers, "memory": memory}
    results |= _took(begin, run, results["steps"], looks)
    results["xml"] = sum(file.stat().st_size for file in source.glob("*pages-articles*"))
    return results


def _took(begin: float, run: Watched, steps: list[tuple[str, float]], looks: Looks) -> dict[str, Any]:
    named = [("start", begin), *((name, moment) for name, moment in steps if name != "starting Spark")]
    seconds = dict.fromkeys(STEPS, 0.0)
    rows = []
    for (name, start), (_, stop) in zip(named, [*named[1:], ("", begin + run.seconds)], strict=True):
        kind = name.split()[0] if name.split()[0] in STEPS else "rest"
        seconds[kind] += stop - start
        if name != "end":
            peak = max((size for moment, size in looks.memory if start <= moment < stop), default=0)
            rows.append([name, stop - start, peak])
    return {
        "seconds": run.seconds,
        "by_step": seconds,
        "rows": rows,
        "cpu": looks.cpu,
        "others": looks.other_cores,
        "peak": run.peak,
        "anonymous": run.anonymous,
        "parts": max(parts for _, parts, _, _ in looks.disk),
        "grouping": max(grouping for _, _, grouping, _ in looks.disk),
        "disk": max(sum(sizes) for _, *sizes in looks.disk),
    }


# -- the tables -------------------------------------------------------------


def tables(runs: Sequence[dict[str, Any]], articles: int) -> list[Table]:
    """Return what the page shows of *runs*."""
    largest = max(runs, key=lambda run: (run["xml"], run["engine"] == "local", run["workers"]))
    return [
        Table(
            title="Time and memory",
            notes=NOTES.format(articles=articles, memory=runs[0]["memory"], master=MASTER),
            columns=(
                "", "XML MB", "pages", "links", "pairs", "seconds", *STEPS, "CPU s", "pages/s", "links/s",
                "peak MB", "anonymous MB",
            ),
            rows=[_row(run) for run in runs],
        ),
        Table(
            title="Disk",
            notes=DISK_NOTES,
            columns=("", "XML", "parts", "grouping", "KB", "in all"),
            rows=[
                [_name(run), *(_mb(run[what]) for what in ("xml", "parts", "grouping", "kb", "disk"))]
                for run in runs
            ],
        ),
        Table(
            title=f"Steps of {_name(largest)}",
            notes=STEP_NOTES,
            columns=("", "seconds", "peak"),
            rows=[[name, f"{seconds:.1f}", _mb(peak)] for name, seconds, peak in largest["rows"]],
        ),
    ]  # fmt: skip


def _name(run: dict[str, Any]) -> str:
    workers = "" if run["engine"] == "spark" else f", {run['workers']} worker{'s' * (run['workers'] > 1)}"
    return f"{run['size']}×, {run['engine']}{workers}"


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f}"


def _row(run: dict[str, Any]) -> list[str]:
    counts = [f"{run[what]:,}" for what in ("pages", "links", "pairs")]
    steps = [f"{run['by_step'][step]:.1f}" for step in STEPS]
    speeds = [figures(run[what] / run["seconds"]) for what in ("pages", "links")]
    memory = [_mb(run[what]) for what in ("peak", "anonymous")]
    return [
        _name(run), _mb(run["xml"]), *counts, f"{run['seconds']:.1f}", *steps, f"{run['cpu']:.0f}", *speeds,
        *memory,
    ]  # fmt: skip


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--sizes", default="1,2,4,8", help="so many times the articles")
    parser.add_argument("--articles", type=int, default=ARTICLES)
    parser.add_argument("--engines", default="local,spark")
    parser.add_argument("--workers", default=",".join(map(str, WORKERS)), help="of the engine local")
    parser.add_argument("--memory", default=MEMORY)
    parser.add_argument("--bz2", type=int, default=0, metavar="FILES", help="so many files of bz2, not XML")
    parser.add_argument("--work", type=Path, help="keep the dumps and the figures here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        runs = [*_runs(chosen, work)]
    print("\n".join(table.markdown() for table in tables(runs, chosen.articles)))


def _runs(chosen: argparse.Namespace, work: Path) -> Iterator[dict[str, Any]]:
    for size in map(int, chosen.sizes.split(",")):
        source = work / f"dump-{size * chosen.articles}{'-bz2' if chosen.bz2 else ''}"
        if not any(source.glob("*page_props.sql")):
            unfinished = source.with_suffix(".new")
            wikipedia_dump.write(unfinished, size * chosen.articles, files=chosen.bz2)
            unfinished.rename(source)
        for engine in chosen.engines.split(","):
            for workers in map(int, chosen.workers.split(",")) if engine == "local" else (2,):
                run = {"size": size, **measured(source, work / "home", engine, workers, chosen.memory)}
                with (work / "runs.jsonl").open("a", encoding="utf-8") as log:
                    log.write(json.dumps(run) + "\n")
                summary = f"{run['seconds']:.1f} s, {_mb(run['peak'])} MB, others {run['others']:.2f} cores"
                print(f"  {_name(run)}: {summary}", file=sys.stderr)
                yield run


if __name__ == "__main__":
    main()
