"""Out and in again: WordNet and HowNet in every format of exchange."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import call, run
from benchmarks.inputs import Inputs
from benchmarks.report import Table

FORMATS = ("jsonl", "neo4j", "graphml", "kgtk", "ntriples", "turtle", "tsv", "wn-lmf")
NOTES = """
`kb export`, then `kb import` of what was written: one run each, whole processes, CPU seconds. `came back`:
what `differences` finds between the two knowledge bases, and whether the entities are in another order;
`docs/exchange.md` lists what graphml, tsv and wn-lmf do not carry.
"""


# -- in the measured processes ----------------------------------------------


def built_hownet(file: str, out: str) -> None:
    """Build HowNet into the home *out*."""
    from kgkit.building.build import build_kb

    build_kb("spo", file, name="hownet", home=out)


def exported(kb: str, home: str, format: str, target: str) -> None:
    from kgkit.commands.kb.export import export

    os.environ["KGKIT_HOME"] = home  # of this process
    export(kb, Path(target), format=format)


def imported(format: str, source: str, home: str) -> None:
    from kgkit.building.build import build_kb
    from kgkit.exchange import find_format

    build_kb(find_format(format).builder, source, name="again", home=home)


def compared(kb: str, home: str, again: str) -> dict[str, int]:
    import kgkit
    from kgkit.kb import differences

    with kgkit.open_kb(kb, home=home) as original, kgkit.open_kb("again", home=again) as copy:
        counts = Counter(f"{change.what} {change.change}" for change in differences(original, copy))
        if [entity.key for entity in original] != [entity.key for entity in copy]:
            counts["order of entities"] = 1
        return dict(sorted(counts.items()))


# -- the table --------------------------------------------------------------


def bench(inputs: Inputs) -> list[Table]:
    """Export and import both knowledge bases in every format."""
    hownet = inputs.work / "hownet"
    if not hownet.exists():
        file = inputs.data / "hownet" / "HowNet.spo"
        run(call("HowNet", "benchmarks.exchange:built_hownet", {"file": file, "out": hownet}))
    homes = (("wordnet", inputs.home()), ("hownet", hownet))
    return [
        Table(
            title="(g) Exchange: round trips",
            notes=NOTES,
            columns=("", "MB", "out, s", "in, s", "out, peak MB", "in, peak MB", "came back"),
            rows=[row for kb, home in homes for row in rows(kb, home, inputs.work / "exchange")],
        )
    ]


def rows(kb: str, home: Path, work: Path) -> Iterator[list[str]]:
    """Yield the row of each format."""
    for format in FORMATS:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        target, again = work / "kb.out", work / "home"
        where = {"kb": kb, "home": home}
        out = run(call("out", "benchmarks.exchange:exported", {**where, "format": format, "target": target}))
        back = run(
            call("in", "benchmarks.exchange:imported", {"format": format, "source": target, "home": again})
        )
        differences = run(call("compare", "benchmarks.exchange:compared", {**where, "again": again})).result
        files = [target] if target.is_file() else list(target.iterdir())
        summary = ", ".join(f"{what}: {count:,}" for what, count in differences.items()) or "equal"
        size = sum(file.stat().st_size for file in files)
        print(f"  {kb} {format}: {summary}", file=sys.stderr)
        yield [
            f"{kb}, {format}", f"{size / 1e6:.1f}", f"{out.cpu:.1f}", f"{back.cpu:.1f}",
            f"{out.peak / 1e6:.0f}", f"{back.peak / 1e6:.0f}", summary,
        ]  # fmt: skip
    shutil.rmtree(work)
