"""A source whose parts are read on a cluster: records of every kind, and what can happen to a worker.

The workers import this module, so the builder lies here and not in a test. What shall happen in
the middle of the part `2` is written into the source, a folder: a file of the name

    bad        the source has an error there
    fault      the builder has one
    kill       the machine's process of Spark that has the part is killed, once
"""

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from kgkit.building import (
    Alias,
    Aliases,
    Attribute,
    Builder,
    Entity,
    Files,
    Form,
    Record,
    Redirect,
    SourceInfo,
    Step,
    Triple,
    Triples,
)
from kgkit.errors import SourceError

PARTS: Final = 5
PAGES: Final = 60  # of each part
CHAIN: Final = 37  # redirects, one leading to the next, each in another part than that

LETTERS: Final = ("a", "A", "ß", "ss", "é", "e\u0301", " ", "苹", "\uffee", "😀", "\x7f", "_", "'")
"""UTF-8 orders the last of the two-byte world before what Java writes in four: ffee, then 😀."""


class ClusterBuilder(Builder):
    """Entities in pieces, attributes, bulk records, chains and loops of redirects, text of all kinds."""

    version: ClassVar[str] = "1"
    engine: ClassVar[str] = "local"
    pieces: ClassVar[bool] = True
    unit: ClassVar[str] = "pages"
    smoothing: ClassVar[float] = 0.5
    inverses: ClassVar[Mapping[str, str]] = {"above": "below", "near": "near"}

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Cluster"), [])

    def parts(self, source: Path) -> Sequence[str]:
        return [str(part) for part in range(PARTS)]

    def observe(self, source: Path, part: str) -> Iterator[Record | Step]:
        with (source / "observed").open("a") as log:
            log.write(f"{part}\n")
        chance = random.Random(f"part {part}")
        for page in range(PAGES):
            yield from page_records(chance, int(part) * PAGES + page)
            yield Step()
            if part == "2" and page == PAGES // 2:
                happens(source)


def page_records(chance: random.Random, page: int) -> Iterator[Record]:
    """Yield what one page tells."""
    key = word(chance)
    yield Entity(key, label=chance.choice(["", word(chance)]), kind=chance.choice(["page", "list"]))
    yield Entity(key, description=f"Page {page}.", types=(chance.choice("xyz"),), attributes={"n": page})
    yield Aliases({(word(chance), word(chance)): chance.randrange(9) for _ in range(6)})
    yield Alias(word(chance), key, 3, sense=chance.choice([None, word(chance)]))
    yield Triples(key, chance.choice(["links", "near"]), [word(chance) for _ in range(5)])
    yield Triple(word(chance), "above", key)
    yield Triple(key, "below", word(chance))
    yield Attribute(key, "born", str(chance.randrange(1900, 1910)))
    yield Attribute(key, "spouse", word(chance), edge=True)
    yield Redirect(word(chance), word(chance))
    yield Form(word(chance), word(chance), chance.choice("nv"))
    if page < CHAIN:
        # In steps that lead from part to part: 5 pages on, the next part begins 60 further.
        yield Redirect(f"chain {page * 7 % CHAIN}", f"chain {(page * 7 + 1) % CHAIN}" if page else key)
    yield Redirect(f"loop {page}", f"loop {page ^ 1}")


def word(chance: random.Random) -> str:
    """Return one of some hundred texts: short ones, and longer than a key of the store can be."""
    text = "".join(chance.choices(LETTERS, k=chance.randrange(1, 3)))
    return text * 300 if chance.random() < 0.05 else text


def happens(source: Path) -> None:
    """Do what the source says shall happen now."""
    if (source / "bad").exists():
        raise SourceError("this is bad", path=source / "bad", line=3, text="bad")
    if (source / "fault").exists():
        raise ZeroDivisionError("a fault of the builder")
    if (source / "kill").exists():
        (source / "kill").rename(source / "killed")
        os.kill(executor(), signal.SIGKILL)
        time.sleep(60)  # the kill takes this process along


def executor() -> int:
    """Return the process of Spark that this one works for.

    Raises:
        RuntimeError: if it works for none, or for the one that builds.
    """
    process = os.getpid()
    while process > 1:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
        if b"CoarseGrainedExecutorBackend" in words:
            return process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    raise RuntimeError("no executor of Spark is above this process")


def observed(source: Path) -> list[str]:
    """Return the parts that have been observed since this was asked last."""
    log = source / "observed"
    found = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found
