"""`python -m benchmarks`: run the benches and write `benchmarks/RESULTS.md`.

`KGKIT_BENCH_KNOWBERT` may name a checkout of allenai/kb: KnowBert's own files are then run. Without it, its
extraction is done by our words for it, and its candidate generator is left out. `KGKIT_BENCH_WIKIPEDIA2VEC`
may name a Python that has wikipedia2vec.
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
    exchange,
    harness,
    lemma_candidates,
    lookups,
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
    "h": wikipedia,
}
RESULTS = Path(__file__).with_name("RESULTS.md")


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
        default=",".join(BENCHES),
        help="which: a build, b look-ups, c start, d text, e AIDA, f adding, g exchange, h Wikipedia",
    )
    parser.add_argument("--repeat", type=int, default=5, help="how many times each thing is measured")
    parser.add_argument(
        "--work", type=Path, help="keep what is made on the way here (default: a temporary folder)"
    )
    parser.add_argument("--out", type=Path, help="where to write (default: RESULTS.md if all benches run)")
    chosen = parser.parse_args()
    if unknown := set(chosen.only.split(",")) - set(BENCHES):
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
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
        names = chosen.only.split(",")
        tables = []
        for name in names:
            print(f"bench ({name})", file=sys.stderr)
            tables += BENCHES[name].bench(inputs)
    page = report.page(tables, chosen.repeat)
    out = chosen.out or (RESULTS if names == list(BENCHES) else None)
    if out is not None:
        out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
