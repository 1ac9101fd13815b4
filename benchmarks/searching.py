"""`kb.search` beside a scan of all surfaces and labels, as knowledge bases grow.

    OMP_NUM_THREADS=1 python -m benchmarks.searching --home HOME --sizes 10000,100000,1000000 --kb wordnet

A knowledge base of each size that HOME lacks is built there, by `jsonl --engine local`: an entity has a
label, two aliases, a description and a fact. The texts are one to eight letters in a row of random surfaces,
whole words and surfaces, and those of `FIXED`. The scan reads all surfaces and entities for the parts, behind
what `kb.search` finds otherwise, which is not timed.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

import kgkit
from benchmarks.report import Table
from kgkit.kb import KnowledgeBase
from kgkit.store import codec

FIXED: Final = (
    "quantum mech", "xq", "e", "q", "qz", "(", "'", "-", ".", "é", "É", "北京", "北", "😀", "n.", "o'",
    "zzzz", "of the", "ness ", "1", "19", "The ", "C++", "u.s.", "1,000", "½", "ß", "y" * 300,
)  # fmt: skip
SAMPLED: Final = 72
MOST: Final = 10
SYLLABLES: Final = "ka lo mer tin ro sha qu ei vo ran del mi ny str and ber zo ix ul pa".split()
NOTES: Final = """
CPU milliseconds of a search for ten entities. `first`: the first one after opening, for `quantum mech`, in
the first row with imports; `search`, `scan`: the same again, and a scan for the parts that the search needs
beside its other hits, which reads surfaces and labels. `equal`: texts for whose parts both find the same, in
the same order, of those that need parts: parts of random surfaces of one to eight letters, whole words, and
fixed ones of one letter, signs and other scripts. `median`, `largest`: of a search for each text, of a scan
for those that need parts.
"""


def lines(entities: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of a knowledge base of that many entities."""
    choose = random.Random(entities)

    def word() -> str:
        return "".join(choose.choices(SYLLABLES, k=choose.randint(2, 4)))

    words = [word() for _ in range(max(2_000, entities // 20))]
    for number in range(entities):
        label, other = (" ".join(choose.choices(words, k=2)).title() for _ in range(2))
        described, aliases = f"a thing of {choose.choice(words)}", [f"{label} {number % 1_000}", other]
        yield {"key": f"e{number}", "label": label, "description": described, "aliases": aliases}
    for number in range(entities):
        yield {"subject": f"e{number}", "relation": "near", "object": f"e{(number * 7 + 1) % entities}"}


def build(home: Path, entities: int) -> str:
    """Build the knowledge base of a size, unless it is there, and return its name."""
    name = f"made{entities}"
    if name not in kgkit.kbs(home):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=home) as file:
            file.writelines(json.dumps(line) + "\n" for line in lines(entities))
            file.flush()
            kgkit.build_kb("jsonl", file.name, name=name, home=home, engine="local", workers=1)
    return name


def texts_of(kb: KnowledgeBase) -> list[str]:
    """Return the texts that are searched for."""
    choose = random.Random(1)
    texts, surfaces = [*FIXED], list(islice(kb.surfaces(), 1_000_000))
    for surface in choose.sample(surfaces, min(len(surfaces), SAMPLED)):
        begin = choose.randrange(len(surface))
        end = begin + choose.choice((1, 2, 3, 4, 6, 8, len(surface)))
        texts.append(choose.choice((surface[begin:end], surface[begin:end].upper(), surface.split()[-1])))
    return [text for text in dict.fromkeys(texts) if text.strip()]


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Rows = dict[str, tuple[str, str]]


def scanned(kb: KnowledgeBase, text: str, others: Rows) -> Rows:
    """Return field and text of ten entities by key: *others*, then those that a scan finds by a part."""
    fold, folded, rows = kb.store.folding.fold, kb.store.folding.fold(text), dict(others)
    part = folded.encode("utf-8", "surrogatepass")
    for raw, _ in kb.store.items("aliases") if part else ():
        if part in raw and not raw.startswith(codec.DIGEST):
            for each in kb.decode(kb.candidates(raw.decode())):
                rows.setdefault(each.entity.key, ("surface", raw.decode()))
            if len(rows) >= MOST:
                break
    for _, packed in kb.store.items("entities") if len(rows) < MOST and part else ():
        key, label, *_ = msgspec.msgpack.decode(packed)
        lower, is_plain = " ".join(label.lower().split()), label.isascii() and "." not in label
        if folded in lower or (not is_plain and folded in fold(label)):
            rows.setdefault(key, ("label", label))
    return dict(islice(rows.items(), MOST))


def timed(
    function: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> tuple[Answer, float]:
    """Return an answer, and CPU milliseconds of it."""
    start = time.process_time()
    answer = function(*args, **kwargs)
    return answer, 1_000 * (time.process_time() - start)


def compared(kb: KnowledgeBase, text: str) -> tuple[float, float | None, bool]:
    """Return milliseconds of a search and of a scan, None if it needs no parts, and whether they agree."""
    hits, search_time = timed(kb.search, text)
    others = {hit.key: (hit.field, hit.text) for hit in hits if hit.match != "part"}
    if len(others) == MOST:
        return search_time, None, True
    found, scan_time = timed(scanned, kb, text, others)
    return search_time, scan_time, list(found.items()) == [(hit.key, (hit.field, hit.text)) for hit in hits]


def row(kb: KnowledgeBase) -> list[str]:
    """Return the figures of a knowledge base."""
    _, first = timed(kb.search, FIXED[0])
    results = [compared(kb, text) for text in texts_of(kb)]
    times = sorted(search_time for search_time, _, _ in results)
    scans = [(scan_time, equal) for _, scan_time, equal in results if scan_time is not None]
    scan_times, equal = sorted(scan_time for scan_time, _ in scans), sum(equal for _, equal in scans)
    mechanics, scanned_mechanics, _ = compared(kb, FIXED[0])
    return [
        kb.name, f"{len(kb):,}", f"{kb.manifest.aliases:,}", f"{equal} of {len(scans)}", f"{first:.0f}",
        f"{mechanics:.1f}", "" if scanned_mechanics is None else f"{scanned_mechanics:,.0f}",
        f"{statistics.median(times):.1f}", f"{times[-1]:.1f}", f"{statistics.median(scan_times):,.1f}",
        f"{scan_times[-1]:,.0f}",
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searching", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--kb", action="append", default=[])
    parsed = parser.parse_args()
    names = [build(parsed.home, int(size)) for size in filter(None, parsed.sizes.split(","))]
    rows = []
    for name in [*names, *parsed.kb]:
        with kgkit.open_kb(name, home=parsed.home) as kb:
            rows.append(row(kb))
    columns = [
        "KB", "entities", "surfaces", "equal", "first", "search", "scan", "median", "largest", "scan, median",
        "largest",
    ]  # fmt: skip
    print(Table(title="Search", notes=NOTES, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
