"""Names with typing errors to surfaces and entities: the index of surfaces beside RapidFuzz over all of them.

    OMP_NUM_THREADS=1 python -m benchmarks.reconcile --home HOME [--kb wordnet --kb aida]
    python -m benchmarks.reconcile --home HOME --only command --names 100000
    python -m benchmarks.reconcile --home HOME --only fit

    surfaces   2,000 random surfaces with one and with two random edits (a letter replaced, inserted or left
               out, two neighbours exchanged): how often the surface itself comes first, and is among the
               first five, and CPU time, by `kb.similar_surfaces` and by `rapidfuzz.process.extract` with
               `fuzz.ratio`
    million    the same for a million surfaces, made of two words of the knowledge bases each
    scores     how well scores are calibrated: the gap between score and share that is correct
    command    `kgkit reconcile` for a CSV of names, and of a tenth of them: CPU time and peak memory
    fit        the numbers of `kgkit.reconciling.reconciler`

The surfaces of `scores` and `fit` have none, one and two edits in equal parts; a quarter of them are not
among the surfaces that are searched. Different seeds draw those that are fitted, and those that are measured.
"""

import argparse
import csv
import os
import random
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

import kgkit
from benchmarks.harness import Job, call, run
from kgkit.evaluation.calibration import binned
from kgkit.kb import KnowledgeBase
from kgkit.kb.similar import SimilarSurface, similar_surfaces
from kgkit.reconciling.reconciler import EXACT, surface_probabilities
from kgkit.store.trigrams import TrigramIndex, TrigramWriter
from kgkit.text import fold

NAMES: Final = 2_000
MILLION: Final = 1_000_000
SURFACES: Final = 20
ABSENT: Final = 0.25


def edit(text: str, random_of: random.Random) -> str:
    """Return a text with a letter replaced, inserted or left out, or two neighbours exchanged."""
    position, letter = random_of.randrange(len(text)), random_of.choice(string.ascii_lowercase)
    head, tail = text[:position], text[position + 1 :]
    match random_of.choice(("replace", "insert", "leave out", "exchange")):
        case "replace":
            return head + letter + tail
        case "insert":
            return head + letter + text[position:]
        case "leave out":
            return head + tail if len(text) > 1 else text + letter
    return head + tail[:1] + text[position] + tail[1:]


def with_edits(surface: str, edits: int, random_of: random.Random) -> str:
    """Return a folded surface with so many random edits, folded."""
    for _ in range(edits):
        surface = edit(surface, random_of)
    return fold(surface)


Search = Callable[[str], list[str]]
"""Returns the surfaces that are most similar to a name, five of them."""


class Ranks(NamedTuple):
    """How often the surface is first and among the first five, in percent, and CPU milliseconds a name."""

    first: float
    five: float
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.first:.1f} | {self.five:.1f} | {self.milliseconds:.2f}"


def ranks(names: Sequence[str], surfaces: Sequence[str], search: Search) -> Ranks:
    """Return how well *search* ranks the surfaces that names stand for."""
    first = five = 0
    start = time.process_time()
    answers = [search(name) for name in names]
    seconds = time.process_time() - start
    for answer, surface in zip(answers, surfaces, strict=True):
        first += answer[:1] == [surface]
        five += surface in answer
    return Ranks(100 * first / len(names), 100 * five / len(names), 1000 * seconds / len(names))


def compare(title: str, index: TrigramIndex, count: int) -> None:
    """Print the ranks by the index and by RapidFuzz."""
    surfaces = [str(surface, "utf-8") for surface in index.surfaces()]
    for edits in (1, 2):
        random_of = random.Random(edits)
        originals = random_of.sample(surfaces, count)
        names = [with_edits(surface, edits, random_of) for surface in originals]
        similar_surfaces(index, names[0], 5)
        by_index = ranks(names, originals, lambda name: [s for s, _ in similar_surfaces(index, name, 5)])
        by_scan = ranks(
            names,
            originals,
            lambda name: [s for s, _, _ in process.extract(name, surfaces, scorer=fuzz.ratio)],
        )
        print(f"| {title} | {len(surfaces):,} | {edits} | {by_index} | {by_scan} |", flush=True)


def write_million(kbs: Sequence[KnowledgeBase], path: Path) -> TrigramIndex:
    """Write the index of a million surfaces, of two words of *kbs* each."""
    words = sorted({word for kb in kbs for surface in kb.surfaces() for word in surface.split()})
    random_of, surfaces = random.Random(0), set[str]()
    while len(surfaces) < MILLION:
        surfaces.add(f"{random_of.choice(words)} {random_of.choice(words)}")
    start = time.process_time()
    with TrigramWriter(path) as index:
        index.add(surface.encode() for surface in sorted(surfaces))
        index.finish()
    seconds = time.process_time() - start
    print(f"a million surfaces: {seconds:.1f} CPU s to index, {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return TrigramIndex(path)


class Sample(NamedTuple):
    """A name with the surfaces that are similar to it, and which of them it stands for, None for none."""

    name: str
    surfaces: list[SimilarSurface]
    answer: int | None


def samples(kb: KnowledgeBase, count: int, seed: int) -> Iterator[Sample]:
    """Yield names, of which a quarter stand for no surface that is searched."""
    index = kb.surface_index()
    surfaces, random_of = list(kb.surfaces()), random.Random(seed)
    every_surface = frozenset(surfaces)
    for number in range(count):
        surface, is_absent = random_of.choice(surfaces), random_of.random() < ABSENT
        name = with_edits(surface, number % 3, random_of)
        if name in every_surface and not (is_absent and name == surface):
            similar = [SimilarSurface(name, 1.0)]
        else:
            similar = similar_surfaces(index, name, SURFACES + 1)
            similar = [each for each in similar if not (is_absent and each.surface == surface)][:SURFACES]
        answers = [rank for rank, each in enumerate(similar) if each.surface == surface and not is_absent]
        yield Sample(name, similar, answers[0] if answers else None)


def calibrate(kb: KnowledgeBase, count: int, seed: int) -> None:
    """Print score and share of the correct ones, of names in bins of equal width."""
    scores, correct = [], []
    for sample in samples(kb, count, seed):
        if sample.surfaces:
            is_exact = sample.surfaces[0].similarity == 1
            scores.append(EXACT if is_exact else surface_probabilities(sample.name, sample.surfaces)[0])
            correct.append(sample.answer == 0)
    result = binned(scores, correct, 10)
    print(f"{kb.name}: calibration error {result.error:.3f} of {len(scores):,} names")
    for score, share, number in zip(*result, strict=True):
        print(f"    {number:6,} names of score {score:.2f}: {share:.2f} correct")


def fit(kbs: Sequence[KnowledgeBase], count: int) -> None:
    """Print the seven numbers that make the answers of names likeliest."""
    from scipy.optimize import minimize

    names = [each for seed, kb in enumerate(kbs, start=1) for each in samples(kb, count, seed)]
    names = [each for each in names if each.surfaces]
    edits = np.full((len(names), SURFACES), 1e3)
    for row, sample in enumerate(names):
        for column, (surface, similarity) in enumerate(sample.surfaces):
            edits[row, column] = (1 - similarity) * max(len(sample.name), len(surface))
    nearest, length = np.minimum(edits.min(1), 6), np.log([min(max(len(s.name), 2), 60) for s in names])
    answers = np.array([SURFACES if s.answer is None else s.answer for s in names])
    features = np.stack(
        [np.ones(len(names)), length, length**2, nearest, nearest**2, nearest * length], axis=1
    )

    def surprise(weights: NDArray[np.float64]) -> float:
        logits = np.maximum(weights[0] * (edits.min(1, keepdims=True) - edits), -50)
        logits = np.concatenate([logits, (features @ weights[1:])[:, None]], axis=1)
        logits -= logits.max(1, keepdims=True)
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(len(logits)), answers]).mean())

    result = minimize(surprise, [2.0, -3.0, -1.0, 0.0, 1.0, 0.0, 0.0], method="BFGS")
    print("edit, none (constant, length, length²), nearest (edits, edits², edits · length):")
    print(np.round(result.x, 2), f"surprise {result.fun:.3f}, of {len(names):,} names")


def write_names(kb: str, home: str, count: str, path: str) -> None:
    """Write a CSV of names with none, one and two edits."""
    with kgkit.open_kb(kb, home) as base:
        surfaces, random_of = list(base.surfaces()), random.Random(0)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("row", "name"))
        for row in range(int(count)):
            rows.writerow((row, with_edits(random_of.choice(surfaces), row % 3, random_of)))


def command(kb: str, home: Path, count: int) -> None:
    """Print what `kgkit reconcile` takes for a CSV of names with none, one and two edits."""
    with tempfile.TemporaryDirectory() as folder:
        table, output = Path(folder, "names.csv"), Path(folder, "matches.csv")
        for size in (count // 10, count):
            names = {"kb": kb, "home": home, "count": str(size), "path": table}
            run(call("names", "benchmarks.reconcile:write_names", names))
            line = (
                sys.executable, "-m", "kgkit.commands", "reconcile", str(table), "--column", "name",
                "--kb", kb, "--home", str(home), "--output", str(output), "--quiet",
            )  # fmt: skip
            sample = run(Job(name="reconcile", command=line))
            with output.open(encoding="utf-8") as file:
                matched = sum(row["match"] == "true" for row in csv.DictReader(file))
            print(
                f"{kb}: {size:,} names: {sample.cpu:.1f} CPU s, {sample.wall:.0f} s, peak "
                f"{sample.peak / 1e6:.0f} MB, {matched:,} matched",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, default=os.environ.get("KGKIT_HOME"))
    parser.add_argument("--kb", action="append", help="wordnet and aida unless given")
    parser.add_argument("--names", type=int, default=NAMES)
    parser.add_argument("--only", choices=("surfaces", "million", "scores", "command", "fit"))
    arguments = parser.parse_args()
    kbs = [kgkit.open_kb(name, arguments.home) for name in arguments.kb or ("wordnet", "aida")]
    if arguments.only in (None, "surfaces", "million"):
        print("| | surfaces | edits | first | first five | CPU ms | RapidFuzz: first | first five | CPU ms |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    if arguments.only in (None, "surfaces"):
        for kb in kbs:
            compare(kb.name, kb.surface_index(), arguments.names)
    if arguments.only in (None, "million"):
        with tempfile.TemporaryDirectory() as folder:
            index = write_million(kbs, Path(folder, "million"))
            compare("two words each", index, min(arguments.names, 500))
    if arguments.only in (None, "scores"):
        for kb in kbs:
            calibrate(kb, arguments.names, seed=101)
    if arguments.only in (None, "command"):
        command(kbs[-1].name, arguments.home, arguments.names if arguments.only else 100_000)
    if arguments.only == "fit":
        fit(kbs, arguments.names)


if __name__ == "__main__":
    main()
