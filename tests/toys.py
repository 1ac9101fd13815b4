"""A knowledge base small enough to read, in the shape of an encyclopedia, and what tests do with it.

Two parts: `links` comes first and speaks of pages that only `pages` tells of,
as a dump's links may come before its pages. What it has of everything:

    redirects     a chain (Apples -> Apple_(fruit) -> Apple), a loop, one to nowhere, one that hides
                  behind a page of the same name
    aliases       counted, in several spellings, through redirects, of no page, empty, of several words
    relations     in_category/has_member   written both ways, and both ways agree: stored once
                  part_of/has_part         only one way written: the other is answered
                  before/after             written both ways, and they differ: kept as written
                  near                     symmetric, and written so: stored once
                  meets                    said to be symmetric, but written one way: kept as written
                  mentions                 nothing is said of its other direction
"""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from kgkit.building import Alias, Builder, Entity, Files, Form, Record, Redirect, SourceInfo, Triple
from kgkit.building.build import Built, build_kb

REPOSITORY: Final = Path(__file__).resolve().parent.parent

LINKS: Final[Sequence[Record]] = (
    Alias("apple", "Apple", 60),
    Alias("Apple", "Apple_Inc.", 30),
    Alias("Apple", "Apple", 10),
    Alias("apples", "Apples", 4),  # a redirect
    Alias("APPLE", "Apple_Inc.", 5),
    Alias("Big Apple", "New_York_City", 3),
    Alias("the Big Apple", "New_York_City", 2),
    Alias("New York", "New_York_City", 8),
    Alias("York", "York", 6),
    Alias("苹果", "Apple", 2),
    Alias("Straße", "Road", 1),
    Alias("ghost", "Nowhere", 9),  # no such page
    Alias("", "Apple", 1),
    Alias("loop", "Ring", 1),  # a redirect that goes round and round
    Triple("Apple", "in_category", "Fruit"),
    Triple("Apple_Inc.", "in_category", "Company"),
    Triple("Fruit", "has_member", "Apple"),
    Triple("Company", "has_member", "Apple_Inc."),
    Triple("Apple_Inc.", "mentions", "Apples"),
    Triple("Apple_Inc.", "mentions", "Nowhere"),
    Triple("Apple_Inc.", "mentions", "Apple"),  # twice: above through a redirect
)
PAGES: Final[Sequence[Record]] = (
    Entity("Apple", "apple", "A fruit.", kind="page", types=("food",), attributes={"sections": ["Taste"]}),
    Entity("Apple_Inc.", "Apple Inc.", "A company.", kind="page"),
    Entity("New_York_City", "New York City", kind="page"),
    Entity("York", "York", kind="page"),
    Entity("Road", "Straße", kind="page"),
    Entity("Fruit", "Fruit", kind="category"),
    Entity("Company", "Company", kind="category"),
    Redirect("Apples", "Apple_(fruit)"),
    Redirect("Apple_(fruit)", "Apple"),
    Redirect("Ring", "Rong"),
    Redirect("Rong", "Ring"),
    Redirect("Void", "Nowhere"),
    Redirect("York", "New_York_City"),  # hidden by the page
    Triple("York", "part_of", "New_York_City"),
    Triple("York", "before", "New_York_City"),
    Triple("New_York_City", "after", "York"),
    Triple("New_York_City", "before", "Road"),
    Triple("York", "near", "Road"),
    Triple("Road", "near", "York"),
    Triple("Road", "near", "Road"),
    Triple("York", "meets", "Road"),
    Form("geese", "goose", "n"),
)
ENTITIES: Final = [record.key for record in PAGES if isinstance(record, Entity)]


class ToyBuilder(Builder):
    """Yields the records it is given, part by part."""

    version: ClassVar[str] = "1"
    inverses: ClassVar[Mapping[str, str]] = {
        "in_category": "has_member",
        "part_of": "has_part",
        "before": "after",
        "near": "near",
        "meets": "meets",
    }

    def __init__(self, **parts: Sequence[Record]) -> None:
        self.records = parts or {"links": LINKS, "pages": PAGES}

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Toy", version="1", licence="CC0-1.0"), [source])

    def parts(self, source: Path) -> Sequence[str]:
        return list(self.records)

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        yield from self.records[part]


def entities(count: int, size: int = 0) -> list[Record]:
    """Return *count* entities in a ring, with an alias each, their descriptions *size* characters long."""
    return [
        record
        for number in range(count)
        for record in (
            Entity(f"e{number}", description="x" * size),
            Alias(f"name {number}", f"e{number}", 1),
            Triple(f"e{number}", "mentions", f"e{(number + 1) % count}"),
        )
    ]


def source_file(folder: Path, content: str = "a source") -> Path:
    """Return a file for a toy to say it has read."""
    path = folder / "source.txt"
    if not path.exists() or path.read_text() != content:
        path.write_text(content)
    return path


def build_toy(
    folder: Path, *, name: str = "toy", home: Path | None = None, **parts: Sequence[Record]
) -> Built:
    """Build a toy KB; *folder* is where its source lies, and its home unless one is given."""
    builder = ToyBuilder(**parts)
    return build_kb(builder, source_file(folder), name=name, home=home or folder / "home")


def run_python(
    code: str, *args: object, timeout: float = 300, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run *code* in a fresh interpreter that finds kgkit and the toys."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env=child_env(**env), capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def child_env(**env: str) -> dict[str, str]:
    """Return the environment of a child that finds kgkit and the toys."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1", **env}


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of everything under *folder*."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def crafted_data(data: bytes) -> bytes:
    """Return a `data.mdb` like *data*, of which the first table's root lies behind the end of the file.

    Reading that table ends the process by SIGBUS.
    """
    crafted = bytearray(data)
    meta = max((0, 4096), key=lambda page: struct.unpack_from("<Q", data, page + 16 + 128))  # by transaction
    main = 4096 * struct.unpack_from("<Q", data, meta + 16 + 24 + 48 + 40)[0]
    node = main + struct.unpack_from("<H", data, main + 16)[0]
    (key_length,) = struct.unpack_from("<H", data, node + 6)
    struct.pack_into("<Q", crafted, node + 8 + key_length + 40, 1 << 10)  # its root, and the last page:
    struct.pack_into("<Q", crafted, meta + 16 + 120, 1 << 11)
    return bytes(crafted)
