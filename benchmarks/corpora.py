"""Corpora through `kgkit link`: speed and memory, kills, a full disk, bad lines.

    OMP_NUM_THREADS=1 python -m benchmarks.corpora --home HOME [--kb wordnet] [--model prior]

All recipes of the shared data, a sentence a document, are linked by one process and by two, and so is a tenth
of them. Of a smaller part one run is killed by SIGKILL at random moments and resumed each time; one may write
no more than half of its output (`RLIMIT_FSIZE`, as a full disk) and is resumed without that bound; and one in
a hundred lines is damaged in one of ten ways. Outputs are compared with those of an undisturbed run.
"""

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.report import Table
from kgkit.files import lines

DATA: Final = harness.REPOSITORY.parent / "shared" / "data" / "recipe" / "corpus"
KILLS: Final = 20
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")

BAD: Final[dict[str, Callable[[dict[str, Any]], bytes]]] = {
    "cut off": lambda record: json.dumps(record).encode()[:-9],
    "Latin-1": lambda record: json.dumps(record | {"text": "\xe9"}, ensure_ascii=False).encode("latin-1"),
    "a list": lambda record: json.dumps([record["text"]]).encode(),
    "no text": lambda record: json.dumps({"id": record["id"]}).encode(),
    "a number as text": lambda record: json.dumps(record | {"text": 7}).encode(),
    "null as text": lambda record: json.dumps(record | {"text": None}).encode(),
    "half of a pair": lambda record: json.dumps(record | {"text": "\ud800"}).encode(),
    "nested deeply": lambda record: b'{"text": "x", "more": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a span outside": lambda record: json.dumps(record | {"ents": [{"start": 0, "end": 99_999}]}).encode(),
    "an id that is a list": lambda record: json.dumps(record | {"id": [1]}).encode(),
}
"""Ways in which a line is damaged."""


def sentences() -> Iterator[dict[str, str]]:
    """Yield the sentences of the directions of all recipes, as records."""
    number = 0
    for part in ("train", "valid", "test"):
        for _, line in lines(DATA / f"recipes_{part}.jsonl.xz"):
            recipe = json.loads(line)
            for direction in recipe["directions"]:
                for text in filter(str.strip, _SENTENCE.split(direction)):
                    number += 1
                    yield {"id": str(number), "text": text, "recipe": recipe["id"]}


def write_records(path: Path, records: Iterator[dict[str, str]]) -> int:
    """Write records as JSON lines, and return their number."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
    return count


class Bench:
    """Runs the command over one corpus and another.

    Args:
        options: the command line.
        folder: folder for what is written.
    """

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder

    def command(self, source: Path, output: Path, *more: str) -> tuple[str, ...]:
        """Return the command that links *source*."""
        linker = ("--kb", f"{self.options.kb}={self.options.model}", "--home", str(self.options.home))
        return (
            sys.executable,
            "-m",
            "kgkit.commands",
            "link",
            str(source),
            *linker,
            "-o",
            str(output),
            "-q",
            *more,
        )

    def speed(self, source: Path, documents: int, workers: int) -> list[str]:
        """Return a row: seconds, documents a second and memory of one run."""
        output = self.folder / f"speed-{workers}.jsonl"
        sample = harness.run(
            harness.Job(name=f"{workers}", command=self.command(source, output, "--workers", str(workers)))
        )
        rate = f"{documents / sample.wall:,.0f}"
        return [
            f"{documents:,}", f"{workers}", f"{sample.wall:.0f}", rate, f"{sample.cpu:.0f}",
            f"{sample.peak / 1e6:.0f}",
        ]  # fmt: skip

    def kills(self, source: Path, seconds: float) -> tuple[Path, int]:
        """Kill a run at random moments, resume it each time; return its output, and the number of kills."""
        output, killed = self.folder / "killed.jsonl", 0
        for _ in range(KILLS):
            with subprocess.Popen(self.command(source, output, "--workers", "2", "--resume")) as process:
                time.sleep(random.uniform(0, seconds))
                process.kill()
            killed += process.returncode != 0
            if output.exists():
                break
        subprocess.run(self.command(source, output, "--resume"), check=True)
        return output, killed

    def full_disk(self, source: Path, size: int) -> tuple[Path, int]:
        """Resume a run that could write *size* bytes only; return its output, and its exit code then."""
        output = self.folder / "full.jsonl"
        bound = subprocess.run(
            self.command(source, output), check=False, capture_output=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )  # fmt: skip
        subprocess.run(self.command(source, output, "--resume"), check=True)
        return output, bound.returncode

    def bad_lines(self, source: Path) -> tuple[int, int, bool]:
        """Return the number of damaged lines, of those that are named, and whether the rest is answered."""
        damaged, kinds, expected = self.folder / "damaged.jsonl", list(BAD.values()), []
        with source.open("rb") as lines_of_source, damaged.open("wb") as file:
            for number, line in enumerate(lines_of_source, start=1):
                if number % 100:
                    file.write(line)
                else:
                    file.write(kinds[len(expected) % len(kinds)](json.loads(line)) + b"\n")
                    expected.append(number)
        output = self.folder / "skipped.jsonl"
        subprocess.run(self.command(damaged, output, "--bad", "skip", "--workers", "2"), check=True)
        with output.with_name("skipped.jsonl.skipped").open(encoding="utf-8") as listed:
            records = [json.loads(line) for line in listed]
        named = [record["line"] for record in records if record["file"] == str(damaged) and record["error"]]
        with source.open("rb") as file, output.open("rb") as answers:
            documents = [json.loads(line)["id"] for number, line in enumerate(file, start=1) if number % 100]
            equal = documents == [json.loads(line)["id"] for line in answers]
        return len(expected), len(named) if named == expected else -1, equal


def run(options: argparse.Namespace, folder: Path) -> list[Table]:
    """Measure, and return the tables."""
    bench = Bench(options, folder)
    corpus, tenth, part = (folder / f"{name}.jsonl" for name in ("corpus", "tenth", "part"))
    documents = write_records(corpus, islice(sentences(), options.documents))
    tenth_count = write_records(tenth, islice(sentences(), documents // 10))
    write_records(part, islice(sentences(), options.part))
    rows = [
        bench.speed(path, count, n)
        for path, count in ((tenth, tenth_count), (corpus, documents))
        for n in (1, 2)
    ]
    same = (folder / "speed-1.jsonl").read_bytes() == (folder / "speed-2.jsonl").read_bytes()
    columns = ("documents", "workers", "clock s", "documents / s", "CPU s", "largest process, MB")
    speed = Table(
        title="(aa) Corpora: speed and memory", columns=columns, rows=rows,
        notes=f"The outputs of one and of two workers are {'equal' if same else 'NOT equal'}.",
    )  # fmt: skip
    start, plain = time.perf_counter(), folder / "plain.jsonl"
    subprocess.run(bench.command(part, plain), check=True)
    expected = plain.read_bytes()
    killed, times = bench.kills(part, (time.perf_counter() - start) / 4)
    full, code = bench.full_disk(part, len(expected) // 2)
    total, named, answered = bench.bad_lines(part)
    checks = [
        ["killed and resumed", f"{times} kills", f"equal: {killed.read_bytes() == expected}"],
        [
            "no room for half of it, then resumed",
            f"exit code {code}",
            f"equal: {full.read_bytes() == expected}",
        ],
        ["damaged lines, ten kinds", f"{named:,} of {total:,} named", f"the others answered: {answered}"],
    ]
    disturbed = Table(
        title="(aa) Corpora: disturbed",
        notes=f"{options.part:,} documents.",
        columns=("", "", ""),
        rows=checks,
    )
    return [speed, disturbed]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpora")
    parser.add_argument("--home", required=True, help="home with the knowledge base")
    parser.add_argument("--kb", default="wordnet")
    parser.add_argument("--model", default="prior")
    parser.add_argument("--documents", type=int, help="documents, at most; all unless given")
    parser.add_argument("--part", type=int, default=20_000, help="documents of the runs that are disturbed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for table in run(options, Path(temporary)):
            print(table.markdown(), flush=True)


if __name__ == "__main__":
    main()
