"""Publish models and vectors two at a time, and kill -9 at each event on the disk; see what is left.

    python -m tests.stress_publishing --pairs 300     two publishings of one name that end together, 300 times
    python -m tests.stress_publishing --kills         a kill before and after each event of a publishing

While pairs publish, a reader opens all the time: it has to read one of the versions, whole. After a kill the
name stands for the older version or for the new one, whole, and the next publishing works, and sweeps. Prints
a table, and ends with 1 if a promise was broken.
"""

import argparse
import builtins
import io
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kgkit
from kgkit.errors import KBBusy, NotThere
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.kinds import TAGGER, TaggerManifest
from kgkit.models.manifest import FORMAT
from kgkit.models.publishing import stage_model, write_manifest
from kgkit.vectors import open_vectors
from kgkit.versions import CURRENT, LOCK, read_current
from tests.vector_toys import built, made

# What a publishing does to the disk.
EVENTS = ("fsync", "link", "mkdir", "rename", "replace", "rmdir", "symlink", "unlink")
OLD, NEW, NEXT = 1, 2, 3


class Kind(NamedTuple):
    """What is published: how, how it is read, and where it lies in a home.

    Attributes:
        publish: takes the home and a number, that all files of the version are made of.
        read: returns that number; raises if the version is not whole.
        folder: in the home.
        beside: names that lie in the folder beside the version.
    """

    publish: Callable[[Path, int], object]
    read: Callable[[Path], int]
    folder: Path
    beside: tuple[str, ...]


def write_model(folder: Path, number: int) -> None:
    """Write what passes for a model; files of different numbers differ in length, too."""
    (folder / "head").mkdir()
    (folder / "head" / "weights").write_bytes(bytes([number % 251]) * (4096 + number))
    manifest = TaggerManifest(
        format=FORMAT, kind="tagger", name="m", types=("PER",), encoder=str(number), fingerprint="", reader={}
    )
    write_manifest(folder, manifest)


def publish_model(home: Path, number: int) -> None:
    """Publish a model."""
    with stage_model(Home(home).models / "m") as (staged, _):
        write_model(staged, number)


def read_model(home: Path) -> int:
    """Read the model as those that open one do, and check that it is whole."""

    def read(folder: Path) -> int:
        number = int(TAGGER.read(folder).encoder)
        content = (folder / "head" / "weights").read_bytes()
        assert content == bytes([number % 251]) * (4096 + number), "a model of parts"
        return number

    return read_current(lambda: find_trained(Home(home), "m"), read)


def publish_vectors(home: Path, number: int) -> None:
    """Publish vectors; those who make the same wait for each other here."""
    while True:
        try:
            made(home, np.full((6, 2), number), seed=number)
        except KBBusy:
            time.sleep(0.001)
        else:
            return


def read_vectors(home: Path) -> int:
    """Open the vectors, and check that they are whole."""
    kb = Home(home).kb("toy")
    vectors = open_vectors(kb, "plane", [str(kb.published())])
    number = int(vectors.manifest.config["seed"])
    assert (vectors.matrix == number).all(), "vectors of parts"
    return number


KINDS = {
    "model": Kind(publish_model, read_model, Path("models", "m"), (CURRENT, LOCK)),
    "vectors": Kind(publish_vectors, read_vectors, Path("kbs", "toy", "vectors", "plane"), (CURRENT,)),
}


# -- two at a time ----------------------------------------------------------


def pairs(kind: Kind, home: Path, count: int) -> Iterator[str]:
    """Let *count* pairs publish while a reader opens; yield the promises that were broken."""
    fork = multiprocessing.get_context("fork")
    kind.publish(home, 1)
    stop, told = fork.Event(), fork.SimpleQueue()
    reader = fork.Process(target=_opens, args=(kind, home, stop, told))
    reader.start()
    begun = time.monotonic()
    for pair in range(1, count + 1):
        numbers, barrier, ends = (2 * pair, 2 * pair + 1), fork.Barrier(2), fork.SimpleQueue()
        children = [fork.Process(target=_publishes, args=(kind, home, one, barrier, ends)) for one in numbers]
        for child in children:
            child.start()
        for child in children:
            child.join()
        for failed in filter(None, (ends.get() for _ in children)):
            yield f"pair {pair}: {failed}"
        if (there := kind.read(home)) not in numbers:
            yield f"pair {pair}: {there} is there, published were {numbers}"
        if extra := left_over(kind, home):
            yield f"pair {pair}: left behind {extra}"
    stop.set()
    opened, failures = told.get()
    reader.join()
    print(f"  {count} pairs in {time.monotonic() - begun:.1f} s; opened {opened:,} times meanwhile", end="; ")
    print(f"failures: {sum(failures.values())}")
    yield from (f"a reader: {failure} ({times} times)" for failure, times in failures.items())


def _publishes(kind: Kind, home: Path, number: int, barrier: Any, ends: Any) -> None:
    barrier.wait()
    try:
        kind.publish(home, number)
    except BaseException as error:  # noqa: BLE001 - told
        ends.put(f"{type(error).__name__}: {error}")
    else:
        ends.put("")


def _opens(kind: Kind, home: Path, stop: Any, told: Any) -> None:
    opened, failures = 0, Counter[str]()
    while not stop.is_set():
        opened += 1
        try:
            kind.read(home)
        except BaseException as error:  # noqa: BLE001 - told
            failures[type(error).__name__] += 1
    told.put((opened, failures))


def left_over(kind: Kind, home: Path) -> list[str]:
    """Return what lies in the folder that should not: anything but the link, the lock and one version."""
    folder = home / kind.folder
    version = (folder / CURRENT).readlink().name
    return sorted({path.name for path in folder.iterdir()} - {version, *kind.beside})


# -- killed -----------------------------------------------------------------


def older_states(name: str, kind: Kind, where: Path) -> Iterator[tuple[str, Path]]:
    """Yield homes in the states that a publishing may meet, and what to call them."""
    base = where / "base"
    if name == "vectors":
        base.mkdir()
        built(base)
        base = base / "home"
    base.mkdir(exist_ok=True)
    yield "nothing", shutil.copytree(base, where / "nothing", symlinks=True)
    kind.publish(base, OLD)
    yield "a version", shutil.copytree(base, where / "version", symlinks=True)
    copied = shutil.copytree(base, where / "copied", symlinks=True)
    shutil.rmtree(copied / kind.folder)
    shutil.copytree(base / kind.folder, copied / kind.folder)  # follows the link
    yield "a copy that followed the link", copied
    if name == "model":
        plain = where / "plain" / kind.folder
        plain.mkdir(parents=True)
        write_model(plain, OLD)
        yield "a model of an older kgkit", where / "plain"
    else:
        same = shutil.copytree(base, where / "same", symlinks=True)
        kind.publish(same, NEW)
        yield "the same vectors", same


def kills(name: str, kind: Kind, where: Path, every: int) -> Iterator[str]:
    """Kill a publishing at every so manyth event, from each state; yield the promises that were broken."""
    for state, home in older_states(name, kind, where):
        before = number_of(kind, home)
        moment, ended, seen = 1 - every, False, []
        while not ended:
            moment += every
            dead = where / "dead"
            shutil.copytree(home, dead, symlinks=True)
            ended = killed(kind, dead, moment)
            at = f"{state}, killed at {moment}"
            seen.append(number_of(kind, dead))
            if seen[-1] not in (before, NEW):
                yield f"{at}: {seen[-1]} is there"
            kind.publish(dead, NEXT)
            if kind.read(dead) != NEXT:
                yield f"{at}: the next publishing is not what is there"
            if extra := left_over(kind, dead):
                yield f"{at}: left behind {extra}"
            shutil.rmtree(dead)
        new = [one == NEW for one in seen]
        if new != sorted(new) or not new[-1]:
            yield f"{state}: once published it does not stay"
        print(
            f"  {state}: {len(seen) - 1} kills, after {new.count(False)} the older one was there", flush=True
        )


def number_of(kind: Kind, home: Path) -> int | str | None:
    """Return which version is there; None if there is none, and what is wrong if it is not whole."""
    try:
        return kind.read(home)
    except NotThere:
        return None
    except BaseException as error:  # noqa: BLE001 - told
        return f"{type(error).__name__}: {error}"


def killed(kind: Kind, home: Path, moment: int) -> bool:
    """Publish in a child that dies at that moment; return whether it lived to the end."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _kill_at(moment)
        kind.publish(home, NEW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def _kill_at(moment: int) -> None:
    """Let this process die before or after the event of that number."""
    passed = 0

    def tick() -> None:
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def dies(step: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not writes(*args, **kwargs):
                return step(*args, **kwargs)
            tick()
            done = step(*args, **kwargs)
            tick()
            return done

        return wrapped

    for event in EVENTS:
        setattr(os, event, dies(getattr(os, event), lambda *_, **__: True))
    for module, name in ((builtins, "open"), (io, "open")):
        opens = dies(io.open, lambda _, mode="r", *rest, **more: "w" in mode)
        setattr(module, name, opens)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="kill at every so manyth event")
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    kgkit.open_kb  # noqa: B018 - what is imported when it is first used is imported now
    broken = []
    for name, kind in KINDS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                print(f"{name}:", flush=True)
                if options.pairs:
                    Path(folder, "pairs").mkdir()
                    home = built(Path(folder, "pairs"))[0] if name == "vectors" else Path(folder, "pairs")
                    broken += [f"{name}: {one}" for one in pairs(kind, home, options.pairs)]
                if options.kills:
                    Path(folder, "kills").mkdir()
                    broken += [
                        f"{name}: {one}" for one in kills(name, kind, Path(folder, "kills"), options.every)
                    ]
    print(f"promises broken: {len(broken)}")
    print("\n".join(broken[:50]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
