"""Kill -9 a build at random moments, again and again, and see what is left each time.

    python -m tests.stress_kill --source DIR             WordNet's database files
    python -m tests.stress_kill --toy 100000             a made-up KB of so many entities

After every kill the published KB has to answer, and the handle that has been
open since the beginning too. Then a build is let run to its end: it has to
succeed, and to leave nothing but published builds. Prints a table, and ends
with 1 if a promise was broken.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kgkit
from kgkit.building import Builder, find_builder
from kgkit.building.build import build_kb
from kgkit.home import Home
from kgkit.store import verify
from tests.toys import ToyBuilder, child_env, entities, source_file


def builder_of(kind: str, version: str) -> Builder:
    """Return a builder whose builds have a name of their own for every *version*."""
    if kind == "wordnet":
        from kb_builders.wordnet import WordNetBuilder

        base: type[Builder] = WordNetBuilder
    elif kind.isdigit():
        made = type("ToyBuilder", (ToyBuilder,), {"version": version})
        return made(all=entities(int(kind), size=100))
    else:
        base = type(find_builder(kind))
    return type(base.__name__, (base,), {"version": version})()


def build(kind: str, source: Path, home: Path, version: str) -> float:
    """Build in this process; return the seconds it took."""
    begin = time.monotonic()
    build_kb(builder_of(kind, version), source, name="kb", home=home)
    return time.monotonic() - begin


def killed(kind: str, source: Path, home: Path, version: str, after: float) -> str:
    """Build in a child and kill it after so many seconds; return how it ended."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.stress_kill", "--child", kind, str(source), str(home), version],
        env=child_env(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()  # imports are over: the build begins
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    child.stdout.close()
    return {0: "ended", -signal.SIGKILL: "killed"}.get(child.wait(), f"exit {child.returncode}")


def answers(kb: kgkit.KnowledgeBase) -> tuple[object, ...]:
    """Return what a KB says to some questions; the same in every build of one source."""
    sample = range(0, len(kb), max(1, len(kb) // 50))
    keys = tuple(kb.key(number) for number in sample)
    beside = tuple(tuple(kb.neighbors(number).tolist()) for number in sample)
    means = tuple(tuple(kb.candidates(kb[number].label or "name 1").ids.tolist()) for number in sample)
    return len(kb), keys, beside, means


def stress(kind: str, source: Path, home: Path, moments: int, seed: int) -> list[str]:
    """Kill *moments* builds; print what happened; return the promises that were broken."""
    draw, broken = random.Random(seed), []
    took = min(build(kind, source, home, version) for version in ("a", "b"))
    kb = Home(home).kb("kb")
    published = [kb.published()]
    with kgkit.open_kb("kb", home=home) as since_the_beginning:
        expected = answers(since_the_beginning)
        print(f"{'':>4} {'killed at':>9} {'ended':>7} {'written':>9} {'answer':>9} {'next build':>10}  left")
        for moment in range(1, moments + 1):
            after, ended = 0.0, "ended"
            while ended == "ended":  # a build that was faster than this moment was not killed: draw again
                published.append(kb.published())
                after = draw.uniform(0, took)
                ended = killed(kind, source, home, f"killed {moment}", after)
            staged = [path for path in kb.builds.iterdir() if path.name.startswith(".")]
            written = sum(
                file.stat().st_size for path in staged for file in path.rglob("*") if file.is_file()
            )
            begin = time.monotonic()
            with kgkit.open_kb("kb", home=home) as now:
                if answers(now) != expected:
                    broken.append(f"{moment}: the published KB answers otherwise")
                answered = time.monotonic() - begin
                if now.build not in published and ended == "killed" and verify(now.store.folder):
                    broken.append(f"{moment}: a build that is not whole was published")
                published.append(now.build)
            if answers(since_the_beginning) != expected:
                broken.append(f"{moment}: the open handle answers otherwise")
            again = build(kind, source, home, f"next {moment}")
            published.append(kb.published())
            left = sorted(path.name for path in kb.builds.iterdir())
            if not set(left) <= set(published) or len(left) > 2 or published[-1] not in left:
                broken.append(f"{moment}: left behind {left}")
            print(
                f"{moment:4} {after:8.2f}s {ended:>7} {written / 1e6:6.1f} MB {answered * 1e3:6.1f} ms "
                f"{again:9.2f}s  {len(left)} published",
                flush=True,
            )
    if problems := verify(kb.builds / str(kb.published())):
        broken.extend(problems)
    return broken


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="what the builder reads")
    parser.add_argument("--builder", default="wordnet")
    parser.add_argument("--toy", type=int, help="entities of a made-up KB, instead of a builder's")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, source, home, version = options.child
        print("begin", flush=True)
        build(kind, Path(source), Path(home), version)
        os._exit(0)
    with tempfile.TemporaryDirectory() as folder:
        kind = str(options.toy) if options.toy else options.builder
        source = options.source or source_file(Path(folder))
        begin = time.monotonic()
        broken = stress(kind, source, Path(folder) / "home", options.moments, options.seed)
    print(f"{options.moments} kills in {time.monotonic() - begin:.0f} s; promises broken: {len(broken)}")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
