"""`python -m benchmarks`: run the benches and write `benchmarks/RESULTS.md`.

Settings come from the command line, else from variables: `KGKIT_WORDNET`, `KGKIT_BENCH_KNOWBERT`.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks import build, harness, lemma_candidates, lookups, report, startup
from benchmarks.inputs import Inputs

BENCHES = {"a": build, "b": lookups, "c": startup, "d": lemma_candidates}
RESULTS = Path(__file__).with_name("RESULTS.md")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="kgkit beside its peers.")
    parser.add_argument(
        "--wordnet", type=Path, help="folder of the WordNet 3.0 files (default: as `kgkit build-kb`)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=harness.REPOSITORY.parent / "shared" / "data",
        help="folder with wikitext2/valid.txt.xz and test.txt.xz",
    )
    parser.add_argument(
        "--only", default="a,b,c,d", help="which benches: a build, b look-ups, c start, d text"
    )
    parser.add_argument("--repeat", type=int, default=5, help="how many times each thing is measured")
    parser.add_argument(
        "--work", type=Path, help="keep what is made on the way here (default: a temporary folder)"
    )
    parser.add_argument("--out", type=Path, help="where to write (default: RESULTS.md if all benches run)")
    return parser.parse_args()


def wordnet_folder(given: Path | None) -> Path:
    """Return the folder of the WordNet files: as given, installed, or obtained as a build obtains it."""
    given = given or (Path(os.environ["KGKIT_WORDNET"]) if "KGKIT_WORDNET" in os.environ else None)
    if given is not None:
        return given.resolve()
    installed = Path("/usr/share/wordnet")
    return installed if (installed / "data.noun").exists() else installed


def main() -> None:
    """Run what the command line asks for."""
    chosen = arguments()
    knowbert = os.environ.get("KGKIT_BENCH_KNOWBERT")
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        inputs = Inputs(
            wordnet=wordnet_folder(chosen.wordnet),
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
