"""`python -m benchmarks`: run the benches and write `benchmarks/RESULTS.md`.

`KGKIT_BENCH_KNOWBERT` may name a checkout of allenai/kb: KnowBert's own files are then run. Without it, its
extraction is done by our words for it, and its candidate generator is left out. `KGKIT_BENCH_WIKIPEDIA2VEC`
may name a Python that has wikipedia2vec.

The benches of vectors are programs of their own, as they take hours or weights: `python -m benchmarks.NAME
--help` with `text_vectors`, `index`, `tucker`, `alignment`, `dense_candidates`. They print their tables; the
last part of `RESULTS.md` is put together from them by hand.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    addition,
    aida,
    build,
    cn_dbpedia,
    exchange,
    harness,
    lemma_candidates,
    lookups,
    pairs,
    report,
    startup,
    wikipedia,
)
from benchmarks.inputs import Inputs

BENCHES = {
    "a": build,
    "b": lookups,
    "c": startup,
    "d": lemma_candidates,
    "e": aida,
    "f": addition,
    "g": exchange,
}
AT_SCALE = {"h": wikipedia, "i": pairs, "j": cn_dbpedia}
RESULTS = Path(__file__).with_name("RESULTS.md")
BETWEEN = (
    "\n<!-- what `make bench` writes ends here; what `make bench-scale` writes begins -->\n\n",
    "\n<!-- what `make bench-scale` writes ends here; what the benches of vectors print begins -->\n\n",
)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="kgkit beside its peers.")
    parser.add_argument(
        "--wordnet", type=Path, help="folder of the WordNet 3.0 files (default: what a build reads)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=harness.REPOSITORY.parent / "shared" / "data",
        help="folder with aida/ and wikitext2/",
    )
    parser.add_argument(
        "--only",
        help="which: a build, b look-ups, c start, d text, e AIDA, f adding, g exchange; at scale: "
        "h Wikipedia, i pairs, j CN-DBpedia",
    )
    parser.add_argument("--scale", action="store_true", help="those at scale, instead of the others")
    parser.add_argument("--repeat", type=int, help="how many times each is measured (default: 5; at scale 3)")
    parser.add_argument(
        "--work", type=Path, help="keep what is made on the way here (default: a temporary folder)"
    )
    parser.add_argument("--out", type=Path, help="where to write (default: RESULTS.md if all benches run)")
    chosen = parser.parse_args()
    chosen.names = chosen.only.split(",") if chosen.only else [*(AT_SCALE if chosen.scale else BENCHES)]
    chosen.repeat = chosen.repeat or (3 if chosen.scale else 5)
    if unknown := set(chosen.names) - {*BENCHES, *AT_SCALE}:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join([*BENCHES, *AT_SCALE])}")
    return chosen


def obtained() -> Path:
    """Return the WordNet files that a build would read."""
    folder: str = harness.run(harness.call("WordNet", "benchmarks.own:wordnet_folder", {})).result
    return Path(folder)


def main() -> None:
    """Run what the command line asks for."""
    chosen = arguments()
    knowbert = os.environ.get("KGKIT_BENCH_KNOWBERT")
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(work / "home", ignore_errors=True)  # kgkit's own, perhaps of another version
        inputs = Inputs(
            wordnet=(chosen.wordnet or obtained()).resolve(),
            data=chosen.data,
            work=work,
            knowbert=Path(knowbert).resolve() if knowbert else None,
            repeat=chosen.repeat,
        )
        tables = []
        for name in chosen.names:
            print(f"bench ({name})", file=sys.stderr)
            tables += {**BENCHES, **AT_SCALE}[name].bench(inputs)
    at_scale = chosen.names == [*AT_SCALE]
    if at_scale:
        page = report.page(tables, chosen.repeat, "Benchmarks at scale", "make bench-scale")
    else:
        page = report.page(tables, chosen.repeat)
    if chosen.out is not None:
        chosen.out.write_text(page, encoding="utf-8")
    elif at_scale or chosen.names == [*BENCHES]:
        write_results(page, at_scale=at_scale)
    print(page)


def write_results(page: str, *, at_scale: bool) -> None:
    """Write *page* into `RESULTS.md`, instead of the last run's; the other parts stay."""
    written = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    usual, _, remainder = written.partition(BETWEEN[0])
    scale, _, vectors = remainder.partition(BETWEEN[1])
    parts = (usual, page, vectors) if at_scale else (page, scale, vectors)
    RESULTS.write_text("".join(sum(zip(parts, (*BETWEEN, ""), strict=True), ())), encoding="utf-8")


if __name__ == "__main__":
    main()
