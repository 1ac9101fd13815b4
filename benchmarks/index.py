"""The index: every kind beside plain faiss with the same settings, in the same process, in turn.

    python -m benchmarks.index                          over the gloss vectors of WordNet: wordnet/text
    python -m benchmarks.index --matrix FILE.npy        over any matrix

Without --matrix the vectors of the home that KGKIT_HOME names are taken, and made if they are not there.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import call, run
from benchmarks.report import Table, figures

KINDS = ("exact", "hnsw", "ivfpq")
NOTES = """
Built and searched with one thread, a fresh process each. `recall@10` is measured on a thousand queries that
the settings were not chosen with. Queries a second are of CPU time: in batches of 200, and one at a time.

`faiss` is faiss alone: it reads the same file into memory, has the same setting, and scores as many proposals
again (`IndexRefineFlat` over a copy of the vectors at length 1; for `exact`, `IndexFlatIP`). It takes turns
with kgkit in one process, block by block; `overhead` is how much longer kgkit takes, the median of the turns.

`memory` is what a process holds after a thousand queries beyond what it held before it opened the index: its
own, and pages of files, which processes share and the system may take back.
"""


# -- in the measured processes ----------------------------------------------


def built(matrix: str, folder: str, kind: str) -> dict[str, Any]:
    """Build the index and return what it says of itself."""
    import msgspec
    import numpy as np

    from kgkit.vectors.indexing import build_index

    start = time.process_time()
    index = build_index(np.load(matrix, mmap_mode="r"), Path(folder), kind=kind)
    manifest = msgspec.to_builtins(index.manifest)
    return {**manifest, "cpu": time.process_time() - start, "bytes": sum(index.manifest.sizes.values())}


def searched(matrix: str, folder: str, seed: int, rounds: int) -> dict[str, Any]:
    """Search with kgkit and with faiss in turn; return seconds a query, and how many rows differ."""
    import numpy as np

    from kgkit.vectors.index import open_index
    from kgkit.vectors.indexing import recall_of, sampled_queries
    from kgkit.vectors.scan import lengths_of, scan, unit

    mapped = np.load(matrix, mmap_mode="r")
    index = open_index(Path(folder), mapped)
    queries = sampled_queries(mapped, np.flatnonzero(lengths_of(mapped) > 0), 1000, seed)
    plain = _plain(index, mapped, Path(folder))
    truth = scan(mapped, queries, 10).rows
    ours, theirs = index.search(queries, 10).rows, plain(unit(queries))
    parts = [queries[at : at + 200] for at in range(0, 1000, 200)]
    singles = [queries[at : at + 1] for at in range(100)]
    results: dict[str, Any] = {"recall": recall_of(ours, truth), "recall_faiss": recall_of(theirs, truth)}
    for name, blocks in (("batch", parts), ("single", singles)):
        pairs = [_turn(index, plain, unit, blocks) for _ in range(rounds)]
        count = sum(map(len, blocks))
        results[name] = float(np.median([mine for mine, _ in pairs])) / count
        results[f"{name}_faiss"] = float(np.median([other for _, other in pairs])) / count
        results[f"{name}_over"] = float(np.median([mine / other for mine, other in pairs])) - 1
    return results


def _turn(index: Any, plain: Any, unit: Any, blocks: Any) -> tuple[float, float]:
    """Return the CPU seconds of kgkit and of faiss over the same blocks, which alternate."""
    mine = other = 0.0
    for block in blocks:
        start = time.process_time()
        index.search(block, 10)
        between = time.process_time()
        plain(unit(block))  # faiss wants queries of length 1
        mine, other = mine + between - start, other + time.process_time() - between
    return mine, other


def _plain(index: Any, mapped: Any, folder: Path) -> Callable[[Any], Any]:
    """Return a search by faiss alone that finds what *index* finds."""
    import faiss
    import numpy as np

    from kgkit.vectors.kinds import turn
    from kgkit.vectors.scan import unit

    faiss.omp_set_num_threads(1)
    vectors, manifest = unit(np.asarray(mapped)), index.manifest
    if not manifest.file:
        flat = faiss.IndexFlatIP(manifest.width)
        flat.add(vectors)
        return lambda queries: flat.search(queries, 10)[1]
    inner = faiss.read_index(str(folder / manifest.file))
    turn(faiss, inner, manifest.knob, manifest.setting)
    refined = faiss.IndexRefineFlat(inner, faiss.swig_ptr(vectors))
    refined.k_factor = manifest.proposals

    def search(queries: Any) -> Any:
        assert vectors is not None and inner is not None  # both are in use as long as this function is
        return refined.search(queries, 10)[1]

    return search


def held(matrix: str, folder: str, seed: int) -> dict[str, int]:
    """Open the index, search, and return what memory that took: bytes of its own, and of files."""
    import numpy as np

    from kgkit.vectors.index import open_index
    from kgkit.vectors.kinds import faiss_module

    faiss_module().omp_set_num_threads(1)
    mapped = np.load(matrix, mmap_mode="r")
    queries = np.random.default_rng(seed).standard_normal((1000, mapped.shape[1]), np.float32)
    queries[:] += 20 * mapped[np.random.default_rng(seed).integers(0, len(mapped), 1000)]
    own, rss = _memory()
    index = open_index(Path(folder), mapped)
    for at in range(0, 1000, 20):
        index.search(queries[at : at + 20], 10)
    own_after, rss_after = _memory()
    return {"own": own_after - own, "files": rss_after - own_after - (rss - own)}


def _memory() -> tuple[int, int]:
    """Return the bytes that are this process's alone, and all that it has in memory."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return sizes["Anonymous:"], sizes["Rss:"]


def random_matrix(out: str, rows: int, width: int) -> None:
    """Write a matrix of independent normal numbers: no neighbourhoods, the hardest there is."""
    import numpy as np

    np.save(out, np.random.default_rng(0).standard_normal((rows, width), np.float32))


def gloss_matrix() -> str:
    """Return the file of the vectors wordnet/text, made if they are not there."""
    import kgkit
    from kgkit.errors import NotThere

    try:
        with kgkit.open_kb("wordnet") as kb:
            return str(kb.vectors("text").folder / "matrix.npy")
    except NotThere:
        pass
    command = [sys.executable, "-m", "kgkit.commands", "embed", "wordnet", "--method", "text"]
    subprocess.run(command, check=True)
    with kgkit.open_kb("wordnet") as kb:
        return str(kb.vectors("text").folder / "matrix.npy")


# -- the tables -------------------------------------------------------------


def table(title: str, matrix: Path, work: Path, kinds: tuple[str, ...], rounds: int) -> Table:
    """Measure every kind over *matrix*."""
    rows = []
    for kind in kinds:
        folder = work / kind
        folder.mkdir(parents=True, exist_ok=True)
        where = {"matrix": matrix, "folder": folder}
        build = run(call(kind, "benchmarks.index:built", {**where, "kind": kind}))
        turns = {"seed": 12345, "rounds": rounds}
        search = run(call(kind, "benchmarks.index:searched", {**where, **turns})).result
        memory = run(call(kind, "benchmarks.index:held", {**where, "seed": 5})).result
        print(f"  {kind}: {build} {search} {memory}", file=sys.stderr)
        rows.append(row(build.result, build.peak, search, memory))
    return Table(
        title=title,
        notes=NOTES,
        columns=(
            "kind", "build, CPU s", "build, peak MB", "files, MB", "recall@10",
            "batch: queries/s", "faiss", "overhead", "single: queries/s", "faiss", "overhead",
            "memory, MB: own + files",
        ),
        rows=rows,
    )  # fmt: skip


def row(build: dict[str, Any], peak: int, search: dict[str, Any], memory: dict[str, int]) -> list[str]:
    """Return the row of one kind."""
    settings = [f"{build['knob']} {build['setting']}"] if build["knob"] else []
    settings += [f"proposals {build['proposals']}"] if build["factory"] else []
    cells = [
        f"{build['kind']} ({', '.join(settings)})" if settings else build["kind"],
        f"{build['cpu']:.1f}",
        f"{peak / 1e6:.0f}",
        f"{build['bytes'] / 1e6:.1f}",
        f"{search['recall']:.3f}",
    ]
    for way in ("batch", "single"):
        cells += [
            figures(1 / search[way]),
            figures(1 / search[f"{way}_faiss"]),
            f"{search[f'{way}_over']:+.1%}",
        ]
    return [*cells, f"{memory['own'] / 1e6:.0f} + {memory['files'] / 1e6:.0f}"]


def main() -> None:
    """Write the tables to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    parser.add_argument("--matrix", type=Path, help="a .npy file of float32 rows (default: wordnet/text)")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--random", default="117659x200", help="the hard one, ROWSxWIDTH; '' leaves it out")
    chosen = parser.parse_args()
    kinds = tuple(chosen.kinds.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        matrix = chosen.matrix or Path(run(call("vectors", "benchmarks.index:gloss_matrix", {})).result)
        print(
            table(
                f"The index over {matrix.stem}", matrix.resolve(), work / "one", kinds, chosen.rounds
            ).markdown()
        )
        if chosen.random:
            rows, width = map(int, chosen.random.split("x"))
            hard = work / "random.npy"
            run(call("random", "benchmarks.index:random_matrix", {"out": hard, "rows": rows, "width": width}))
            title = f"The index over random numbers, {rows:,} × {width}"
            print(table(title, hard, work / "two", kinds, chosen.rounds).markdown())


if __name__ == "__main__":
    main()
