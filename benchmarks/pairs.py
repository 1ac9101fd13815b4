"""Pairs of a surface and an entity by the ten million: grouping them, looking them up, finding them in text.

python -m benchmarks.pairs --pairs 60000000 --memory 1GB --work DIR
"""

import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import alone
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target
from benchmarks.tree import Watched, watched

PAIRS = 60_000_000
MEMORY = "1GB"
WORKERS = 2
LOOKUPS = 600_000
WORDS = 400_000

NOTES = """
{pairs:,} pairs drawn from power laws (`benchmarks.pairs_source`), built with `--workers {workers} --memory
{memory}`; they come to {rows:,} different ones, {aliases:,} aliases of {entities:,} entities, {size:.2f} GB.
DuckDB alone: the same Parquet files, grouped by surface and entity with the same limit, into one Parquet
file. Whole processes, one run; `peak` is the greatest sum of PSS of all processes, `anonymous` that of it
which is no page of a file.
"""
USE_NOTES = """
One process, CPU seconds, after a first round: surfaces as frequent as their pairs; a text of such surfaces
among words that are none. Opening is the median of nine, without the interpreter and imports. `private` is
anonymous memory of the process beyond that of the interpreter with NumPy and kgkit imported; pages of the
file come and go with the page cache.
"""


# -- in the measured processes ----------------------------------------------


def built(source: str, home: str, workers: int, memory: str) -> dict[str, Any]:
    """Build; return the figures of the build, and the seconds at which each step began."""
    from benchmarks.pairs_source import PairsBuilder
    from kgkit.building.build import build_kb

    begin = time.monotonic()
    steps: dict[str, float] = {}
    result = build_kb(
        PairsBuilder(), source, name="pairs", home=home, workers=workers, memory=memory,
        progress=lambda what, *_: steps.__setitem__(
            what.partition(":")[0], steps.get(what.partition(":")[0], time.monotonic() - begin)
        ),
    )  # fmt: skip
    manifest = result.manifest
    counts = [manifest.alias_rows, manifest.aliases, manifest.entities]
    return {"build": result.build, "counts": counts, "size": sum(manifest.files.values()), "steps": steps}


def read(source: str, folder: str) -> None:
    """Write the Parquet files that both group."""
    from benchmarks.pairs_source import PairsBuilder
    from kgkit.building.engines.parts import PartsFolder, observe_parts
    from kgkit.building.sources import open_source
    from kgkit.home import Home
    from kgkit.text import folding

    with open_source(PairsBuilder(), source, Home(Path(folder))) as material:
        observe_parts(
            PartsFolder(Path(folder), "read", folding()), material.parts(), (), lambda parts, units: None,
            workers=2, steps=True, limit=None,
        )  # fmt: skip


def grouped_by_duckdb(files: str, out: str, memory: str, threads: int) -> None:
    """Group the same rows with DuckDB alone."""
    import duckdb

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    config = {"memory_limit": memory, "threads": threads, "temp_directory": str(folder / "spill")}
    with duckdb.connect(
        folder / "d.duckdb", config={**config, "preserve_insertion_order": False}
    ) as connection:
        connection.execute(
            f"COPY (SELECT a, b, sum(count) FROM read_parquet('{files}') WHERE what = 1 GROUP BY a, b) "
            f"TO '{folder}/out.parquet'"
        )


def used(home: str, pairs: int, lookups: int, words: int) -> dict[str, float]:
    """Open, look up, and find mentions."""
    import random

    import numpy as np

    import kgkit
    from benchmarks.pairs_source import SURFACES_A_PAIR, ranks, surface
    from kgkit.candidates import AliasGenerator

    drawn = ranks(np.random.default_rng(2026), lookups, int(pairs * SURFACES_A_PAIR), 3).tolist()
    names = [surface(number) for number in drawn]
    kgkit.open_kb("pairs", home=home).close()
    opening = []
    before = _anonymous()
    for _ in range(9):
        begin = time.perf_counter()
        kb = kgkit.open_kb("pairs", home=home)
        opening.append(time.perf_counter() - begin)
        kb.close()
    kb = kgkit.open_kb("pairs", home=home)
    find = kb.candidates
    speeds = []
    for _ in range(4):
        begin = time.process_time()
        for name in names:
            find(name)
        speeds.append(len(names) / (time.process_time() - begin))
    looked_up = _anonymous() - before
    rng = random.Random(2026)
    text = " ".join(name if rng.random() < 0.4 else f"x{rng.randrange(3000)}" for name in names[:words])
    generator = AliasGenerator(kb)
    tokens = len(text.split())
    lines = [text[begin : begin + 2_000] for begin in range(0, len(text), 2_000)]
    mention_count = 0
    begin = time.process_time()
    for line in lines:
        mention_count += len(generator.mentions(line))
    return {
        "opening": sorted(opening)[4] * 1000,
        "lookups": max(speeds[1:]),
        "first": speeds[0],
        "private": looked_up / 1e6,
        "tokens": tokens / (time.process_time() - begin),
        "mentions": mention_count,
        "matching": (_anonymous() - before) / 1e6,
    }


def _anonymous() -> int:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) * 1024
    return 0


# -- the tables -------------------------------------------------------------


def bench(inputs: Inputs, pairs: int = PAIRS, memory: str = MEMORY, workers: int = WORKERS) -> list[Table]:
    """Group beside DuckDB, then use the knowledge base."""
    source, home, alone = (
        inputs.work / f"pairs-{pairs}",
        inputs.work / "pairs-home",
        inputs.work / "pairs-duckdb",
    )
    parquet = inputs.work / "pairs-read"
    for path in (home, alone, parquet):
        shutil.rmtree(path, ignore_errors=True)
    watched("benchmarks.pairs:read", {"source": source, "folder": parquet})
    files = next(parquet.iterdir())
    duckdb = watched(
        "benchmarks.pairs:grouped_by_duckdb",
        {"files": files / "*.parquet", "out": alone, "memory": memory, "threads": workers},
    )
    shutil.rmtree(alone)
    shutil.rmtree(parquet)
    arguments = {"source": source, "home": home, "workers": workers, "memory": memory}
    build = watched("benchmarks.pairs:built", arguments)
    print(f"  {build.seconds:.0f} s, {build.peak / 1e6:.0f} MB, {build.result}", file=sys.stderr)
    rows, aliases, entities = build.result["counts"]
    use = watched(
        "benchmarks.pairs:used", {"home": home, "pairs": pairs, "lookups": LOOKUPS, "words": WORDS}
    ).result
    shutil.rmtree(home)
    notes = NOTES.format(
        pairs=pairs, workers=workers, memory=memory, rows=rows, aliases=aliases, entities=entities,
        size=build.result["size"] / 1e9,
    )  # fmt: skip
    return [
        Table(
            title=f"(i) {pairs:,} pairs, grouped",
            notes=notes,
            columns=(
                "",
                "seconds",
                "reading",
                "grouping aliases",
                "writing aliases",
                "peak MB",
                "anonymous MB",
            ),
            rows=[_row("kgkit, dump to knowledge base", build), _row("DuckDB alone, grouping", duckdb)],
            targets=[],
        ),
        Table(
            title=f"(i) {pairs:,} pairs, used",
            notes=USE_NOTES,
            columns=(
                "opening ms",
                "look-ups a second",
                "first round",
                "private MB",
                "tokens a second",
                "private MB then",
            ),
            rows=[
                [
                    f"{use['opening']:.1f}",
                    f"{use['lookups']:,.0f}",
                    f"{use['first']:,.0f}",
                    f"{use['private']:.0f}",
                    f"{use['tokens']:,.0f}",
                    f"{use['matching']:.0f}",
                ]
            ],
            targets=[
                Target(what="look-ups a second", value=use["lookups"], aim=300_000, unit=""),
                Target(what="opening", value=use["opening"], aim=10, unit="ms", at_most=True),
                Target(what="private memory", value=use["private"], aim=100, unit="MB", at_most=True),
            ],
        ),
    ]


def _row(name: str, run: Watched) -> list[str]:
    steps = (run.result or {}).get("steps", {})
    begins = [*steps.values(), run.seconds]
    took = {step: after - begin for step, begin, after in zip(steps, begins, begins[1:], strict=False)}
    lengths = [
        f"{took[step]:.0f}" if step in took else ""
        for step in ("reading", "grouping aliases", "writing aliases")
    ]
    return [name, f"{run.seconds:.0f}", *lengths, f"{run.peak / 1e6:.0f}", f"{run.anonymous / 1e6:.0f}"]


if __name__ == "__main__":
    alone.main("pairs", bench, "pairs", (PAIRS, MEMORY, WORKERS))
