"""CN-DBpedia of any length: time and memory of a build; one that is killed and goes on.

python -m benchmarks.cn_dbpedia --lines 20000000 --memory 1GB --work DIR
"""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import alone, cn_dbpedia_dump
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target
from benchmarks.tree import Watched, watched

LINES = 20_000_000
MEMORY = "1GB"
WORKERS = 2
PEAK_MB = 2000.0

NOTES = """
A dump in the format of CN-DBpedia, made by `benchmarks.cn_dbpedia_dump`, of {lines:,} lines, built with
`--workers {workers} --memory {memory}`. Whole processes, one run. `peak`: the greatest sum of PSS of all
processes of the build; `anonymous`: that of it which is no page of a file. Killed: the first process, by
signal 9; its workers have to go by themselves, and the same command then goes on.
"""


# -- in the measured processes ----------------------------------------------


def built(source: str, home: str, workers: int, memory: str) -> dict[str, Any]:
    """Build the dump; return the figures of the build, and the seconds at which each step began."""
    from kgkit.building import find_builder
    from kgkit.building.build import build_kb

    begin = time.monotonic()
    steps: dict[str, float] = {}
    first = ""

    def progress(what: str, *_: int) -> None:
        nonlocal first
        first = first or what
        steps.setdefault(what.partition(":")[0], time.monotonic() - begin)

    result = build_kb(
        "cn_dbpedia", source, name="cn", home=home, workers=workers, memory=memory, progress=progress
    )
    manifest = result.manifest
    return {
        "build": result.build,
        "tables": manifest.tables,
        "counts": [manifest.entities, manifest.triples, manifest.aliases],
        "dropped": manifest.counts.dropped,
        "size": sum(manifest.files.values()),
        "steps": steps,
        "first": first,
        "parts": len(find_builder("cn_dbpedia").parts(Path(source))),
    }


# -- the table --------------------------------------------------------------


def bench(inputs: Inputs, lines: int = LINES, memory: str = MEMORY, workers: int = WORKERS) -> list[Table]:
    """Build undisturbed, killed while it reads, and killed while it groups."""
    dump = inputs.work / f"cn-dbpedia-{lines}"
    if not (dump / "m2e.txt").exists():
        cn_dbpedia_dump.write(dump, lines)
    arguments: dict[str, object] = {"source": dump, "workers": workers, "memory": memory}

    def run(home: Path, kill_when: Callable[[], bool] | None = None) -> Watched:
        process = watched("benchmarks.cn_dbpedia:built", {**arguments, "home": home}, kill_when)
        print(f"  {home.name}: {process.seconds:.0f} s, {process.peak / 1e6:.0f} MB", file=sys.stderr)
        print(f"    {process.result}", file=sys.stderr)
        return process

    undisturbed, reading, grouping = (inputs.work / f"cn-{name}" for name in ("whole", "reading", "grouping"))
    for home in (undisturbed, reading, grouping):
        shutil.rmtree(home, ignore_errors=True)
    baseline = run(undisturbed)
    grouping_seconds = baseline.seconds - baseline.result["steps"]["grouping keys"]
    rows = [_row("undisturbed", baseline, f"{baseline.seconds:.0f}", "")]
    targets = [Target(what="peak memory", value=baseline.peak / 1e6, aim=PEAK_MB, unit="MB", at_most=True)]
    for home, moment in (
        (reading, _half_read(reading, baseline)),
        (grouping, _grouping_for(grouping, grouping_seconds / 3)),
    ):
        killed, again = run(home, moment), run(home)
        name = f"killed while {home.name.removeprefix('cn-')}"
        rows.append(_row(name, again, f"{killed.seconds:.0f} + {again.seconds:.0f}", str(killed.survivors)))
        same = all(again.result[what] == baseline.result[what] for what in ("build", "tables"))
        targets.append(Target(what=f"{name}: the same build", value=float(same), aim=1.0, unit=""))
        shutil.rmtree(home)
    counts = "{:,} entities, {:,} triples, {:,} aliases; {:.1f} GB on the disk.".format(
        *baseline.result["counts"], baseline.result["size"] / 1e9
    )
    return [
        Table(
            title="(j) CN-DBpedia, from a dump to a knowledge base",
            notes=NOTES.format(lines=lines, workers=workers, memory=memory) + f"\n{counts}\n",
            columns=(
                "",
                "seconds",
                "reading",
                "parts there",
                "peak MB",
                "anonymous MB",
                "workers left",
                "build",
            ),
            rows=rows,
            targets=targets,
        )
    ]


def _half_read(home: Path, baseline: Watched) -> Callable[[], bool]:
    """Return a function that says whether half of the parts are read."""
    return lambda: 2 * len([*home.glob("cache/parts/**/part-*.json")]) >= baseline.result["parts"]


def _grouping_for(home: Path, seconds: float) -> Callable[[], bool]:
    """Return what says whether grouping began so many seconds ago."""
    begin: list[float] = []

    def so_long() -> bool:
        if not begin and any(home.glob("cache/parts/**/grouping.duckdb")):
            begin.append(time.monotonic())
        return bool(begin) and time.monotonic() - begin[0] > seconds

    return so_long


def _row(name: str, run: Watched, seconds: str, survivors: str) -> list[str]:
    reading = f"{run.result['steps']['grouping keys']:.0f}"
    parts_read = run.result["first"].removeprefix("reading: ").partition(" parts")[0]
    megabytes = [f"{size / 1e6:.0f}" for size in (run.peak, run.anonymous)]
    return [name, seconds, reading, parts_read, *megabytes, survivors, run.result["build"]]


if __name__ == "__main__":
    alone.main("cn_dbpedia", bench, "lines", (LINES, MEMORY, WORKERS))
