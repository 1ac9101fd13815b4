"""`python -m benchmarks.exchange`: out and in again, in every format.

For each knowledge base and format: the size of what is written, seconds out and in, the peak memory of each,
and whether what came back is equal; where it is not, how many records of each kind differ. Each step is a
process of its own, writing and reading on a warm disk.

    python -m benchmarks.exchange --kb wordnet --kb hownet --only turtle,wn-lmf

The knowledge bases are those of `KGKIT_HOME`; `--hownet FILE` builds HowNet from its `.spo` file first.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import harness

FORMATS = ("jsonl", "csv", "graphml", "kgtk", "ntriples", "turtle", "tsv", "wn-lmf")
HEADINGS = ("KB", "format", "MB", "out, s", "in, s", "out, peak MB", "in, peak MB", "what came back")


# -- in the measured processes ----------------------------------------------


def built_hownet(file: str, home: str) -> str:
    from kgkit.building.build import build_kb

    return build_kb("spo", file, name="hownet", home=home).name


def exported(kb: str, home: str, format: str, target: str) -> None:
    from kgkit.commands.kb_export import export

    export(kb, Path(target), format=format, home=Path(home) if home else None, quiet=True)


def imported(format: str, source: str, home: str) -> None:
    from kgkit.building.build import build_kb
    from kgkit.building.exchange import find_format

    build_kb(find_format(format).builder, source, name="again", home=home)


def compared(kb: str, home: str, again: str) -> dict[str, int]:
    import kgkit
    from kgkit.kb import differences

    with kgkit.open_kb(kb, home=home or None) as one, kgkit.open_kb("again", home=again) as other:
        found = Counter(f"{change.what} {change.change}" for change in differences(one, other))
        if [entity.key for entity in one] != [entity.key for entity in other]:
            found["order of entities"] = 1
        return dict(sorted(found.items()))


# -- the table --------------------------------------------------------------


def rows(kb: str, home: str, formats: list[str], work: Path) -> Iterator[tuple[str, ...]]:
    for format in formats:
        print(f"{kb} {format}", file=sys.stderr)
        place = work / f"{kb}-{format}"
        place.mkdir()
        target, again = place / "kb.out", place / "home"
        where = {"kb": kb, "home": home}
        out = harness.run(
            harness.call("out", "benchmarks.exchange:exported", {**where, "format": format, "target": target})
        )
        back = harness.run(
            harness.call(
                "in", "benchmarks.exchange:imported", {"format": format, "source": target, "home": again}
            )
        )
        found = harness.run(
            harness.call("compare", "benchmarks.exchange:compared", {**where, "again": again})
        ).result
        files = [target] if target.is_file() else list(target.iterdir())
        told = ", ".join(f"{what}: {count:,}" for what, count in found.items()) or "equal"
        size = sum(file.stat().st_size for file in files)
        yield (
            kb, format, f"{size / 1e6:.1f}", f"{out.wall:.1f}", f"{back.wall:.1f}",
            f"{out.peak / 1e6:.0f}", f"{back.peak / 1e6:.0f}", told,
        )  # fmt: skip
        shutil.rmtree(place)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exchange", description="Round trips.")
    parser.add_argument(
        "--kb", action="append", help="a knowledge base; repeat it for more (default: wordnet)"
    )
    parser.add_argument("--home", default="", help="where they lie (default: KGKIT_HOME)")
    parser.add_argument("--hownet", type=Path, help="HowNet.spo: build the knowledge base hownet of it first")
    parser.add_argument("--only", default=",".join(FORMATS), help="which formats")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        places = [(kb, chosen.home) for kb in chosen.kb or ["wordnet"]]
        if chosen.hownet:
            home = work / "home"
            harness.run(
                harness.call(
                    "hownet",
                    "benchmarks.exchange:built_hownet",
                    {"file": chosen.hownet.resolve(), "home": home},
                )
            )
            places.append(("hownet", str(home)))
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
        for kb, home in places:
            for row in rows(kb, home, chosen.only.split(","), work):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
