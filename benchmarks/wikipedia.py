"""Dump to pairs: the builder `wikipedia` beside mwparserfromhell's link filter and wikipedia2vec's parser.

python -m benchmarks.wikipedia --work DIR

`KGKIT_BENCH_WIKIPEDIA2VEC` may name a Python that has wikipedia2vec, which comes as source only; else the
one that runs this is asked, and without it, it is left out.
"""

import argparse
import bz2
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.harness import Job, call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target, figures

SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
SIZE = 500_000_000
PART = 8 << 20
TIMES = {"XML": 8.0, "bz2": 5.0}
TWO_PROCESSES = 1.7

NOTES = """
gensim's sample of an English dump: {pages} pages, nearly half of them redirects, the others {average:.0f} kB
each, which is long. `kgkit`: from the file to the records, all of them: pages with first paragraph and
categories, redirects, links, counted anchors; the sample is repeated to {size:.0f} MB of XML, plain and as a
multistream file of bz2, and read once as it is, so that nothing is remembered from a copy before. The peers
are given the text of the pages of the sample: neither XML nor bz2 is on their clock. CPU seconds of one
process, without its start.
"""
NOTES_TWO = """
The bz2 file in {parts} parts, read by a pool of processes: wall time, the start of the processes included.
"""


# -- in the measured processes ----------------------------------------------


def read(source: str) -> dict[str, Any]:
    """Read a dump in this process."""
    from kb_builders.wikipedia import WikipediaBuilder

    builder, path = WikipediaBuilder(), Path(source)
    start = time.process_time()
    units = sum(_pages(builder.observe(path, part)) for part in builder.parts(path))
    return {"pages": units, "seconds": time.process_time() - start}


def read_in_parts(source: str, workers: int) -> dict[str, Any]:
    """Read a dump in so many processes."""
    from kb_builders.wikipedia.streams import ranges

    path = Path(source)
    start = time.perf_counter()
    parts = [f"{path.name}:{begin}-{stop}" for begin, stop in ranges(path, PART)]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        units = sum(pool.map(_read_part, [source] * len(parts), parts))
    return {"pages": units, "seconds": time.perf_counter() - start, "parts": len(parts)}


def _read_part(source: str, part: str) -> int:
    from kb_builders.wikipedia import WikipediaBuilder

    return _pages(WikipediaBuilder().observe(Path(source), part))


def _pages(records: Any) -> int:
    from kgkit.building import Step

    return sum(record.units for record in records if type(record) is Step)


def unpack(source: str, pages: int) -> dict[str, Any]:
    """Unpack a dump and do nothing else."""
    start = time.process_time()
    with bz2.open(source) as file:
        while file.read(1 << 20):
            pass
    return {"pages": pages, "seconds": time.process_time() - start}


# -- the table --------------------------------------------------------------


def bench(inputs: Inputs, size: int = SIZE) -> list[Table]:
    """Read the sample with all of them, in turn; then in one process and in two."""
    sample = inputs.data / "wikipedia" / SAMPLE
    xml, packed, pages = repeated(sample, inputs.work, size)
    length = len(bz2.decompress(sample.read_bytes()))
    peer = "benchmarks.peers.wikipedia_parsers:"
    jobs = [
        call("XML", "benchmarks.wikipedia:read", {"source": xml}),
        call("bz2", "benchmarks.wikipedia:read", {"source": packed}),
        call("once", "benchmarks.wikipedia:read", {"source": sample}),
        call("unpack", "benchmarks.wikipedia:unpack", {"source": packed, "pages": pages}),
        call("mwparserfromhell", f"{peer}mwparserfromhell_links", {"source": sample}),
    ]
    if (python := _has_wikipedia2vec()) is not None:
        job = call("wikipedia2vec", f"{peer}wikipedia2vec_pages", {"source": sample})
        jobs.append(replace(job, command=(python, *job.command[1:])))
    samples = in_turn(jobs, inputs.repeat)
    speeds = {
        name: median(runs, lambda run: run.result["pages"] / run.result["seconds"])
        for name, runs in samples.items()
    }
    fastest = max(speeds[name] for name in ("mwparserfromhell", "wikipedia2vec") if name in speeds)
    labels = {
        "XML": "kgkit, XML",
        "bz2": "kgkit, bz2",
        "once": "kgkit, bz2, the sample once",
        "unpack": "bz2 alone",
        "mwparserfromhell": "mwparserfromhell, `parse(…).ifilter_wikilinks()`",
        "wikipedia2vec": "wikipedia2vec, the parser of its dump database",
    }
    rows = [
        [
            labels[name],
            figures(speed),
            f"{speed / fastest:.1f}",
            f"{median(samples[name], lambda run: run.peak / 1e6):.0f}",
        ]
        for name, speed in speeds.items()
    ]
    targets = [
        Target(
            what=f"Wikipedia from {name}, times the faster peer",
            value=speeds[name] / fastest,
            aim=aim,
            unit="times",
        )
        for name, aim in TIMES.items()
    ]
    average = length / 1e3 / samples["once"][0].result["pages"] * 2
    return [
        Table(
            title="(h) Wikipedia, from a dump to pairs",
            notes=NOTES.format(
                pages=samples["once"][0].result["pages"], average=average, size=xml.stat().st_size / 1e6
            ),
            columns=("", "pages a second", "times", "peak MB"),
            rows=rows,
            targets=targets,
        ),
        two_processes(inputs, packed),
    ]


def two_processes(inputs: Inputs, packed: Path) -> Table:
    """Read a dump in one process of a pool, and in two."""
    names = {1: "one process", 2: "two processes"}
    jobs: list[Job] = [
        call(names[workers], "benchmarks.wikipedia:read_in_parts", {"source": packed, "workers": workers})
        for workers in names
    ]
    samples = in_turn(jobs, inputs.repeat)
    seconds = {name: median(runs, lambda run: run.result["seconds"]) for name, runs in samples.items()}
    gain = seconds["one process"] / seconds["two processes"]
    return Table(
        title="(h) Wikipedia, two processes",
        notes=NOTES_TWO.format(parts=samples["one process"][0].result["parts"]),
        columns=("", "wall s", "times"),
        rows=[
            [name, f"{seconds[name]:.1f}", f"{seconds['one process'] / seconds[name]:.2f}"]
            for name in names.values()
        ],
        targets=[
            Target(what="Wikipedia, two processes beside one", value=gain, aim=TWO_PROCESSES, unit="times")
        ],
    )


def repeated(sample: Path, work: Path, size: int) -> tuple[Path, Path, int]:
    """Write the pages of *sample* again and again, plain and packed; return both files and the pages."""
    text = bz2.decompress(sample.read_bytes())
    begin, end = text.index(b"  <page>"), text.rindex(b"</mediawiki>")
    times = -(-size // (end - begin))
    pieces = [text[:begin], *[text[begin:end]] * times, text[end:]]
    xml, packed = work / f"wikipedia-{times}.xml", work / f"wikipedia-{times}-multistream.xml.bz2"
    for path, write in ((xml, lambda piece: piece), (packed, _packer())):
        if not path.exists():
            with path.open("wb") as file:
                for piece in pieces:
                    file.write(write(piece))
    return xml, packed, text.count(b"<page>") * times


def _packer() -> Any:
    """Return a function that compresses a piece, each only once."""
    compressed: dict[bytes, bytes] = {}

    def packed(piece: bytes) -> bytes:
        if piece not in compressed:
            compressed[piece] = bz2.compress(piece)
        return compressed[piece]

    return packed


def _has_wikipedia2vec() -> str | None:
    """Return the Python that has wikipedia2vec, if one has."""
    python = os.environ.get("KGKIT_BENCH_WIKIPEDIA2VEC", sys.executable)
    completed = subprocess.run([python, "-c", "import wikipedia2vec"], capture_output=True, check=False)
    return python if completed.returncode == 0 else None


def main() -> None:
    """Run this bench alone."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wikipedia", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of XML")
    parser.add_argument("--repeat", type=int, default=3, help="how many times each thing is measured")
    parser.add_argument("--work", type=Path, help="keep what is made on the way here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        inputs = Inputs(wordnet=work, data=chosen.data, work=work, knowbert=None, repeat=chosen.repeat)
        for table in bench(inputs, chosen.size):
            print(table.markdown())
            for target in table.targets:
                print(" | ".join(target.row()))


if __name__ == "__main__":
    main()
