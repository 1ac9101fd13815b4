"""Tables of results, and the page that holds them."""

import datetime
import math
import os
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "kgkit", "lmdb", "msgspec", "numpy", "nltk", "wn", "spacy", "ahocorasick_rs", "duckdb", "pyarrow",
    "marisa-trie", "mwparserfromhell", "torch", "transformers", "sentence-transformers", "pykeen",
    "faiss-cpu",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Target:
    """A figure that was aimed at, and what came out."""

    what: str
    value: float
    aim: float
    unit: str
    at_most: bool = False

    def row(self) -> list[str]:
        """Return the row of the table of targets."""
        reached = self.value <= self.aim if self.at_most else self.value >= self.aim
        aim = f"{'at most' if self.at_most else 'at least'} {self.aim:,g} {self.unit}"
        ratio = f"{self.value / self.aim:.2f}"
        return [self.what, f"{figures(self.value)} {self.unit}", aim, ratio, "yes" if reached else "no"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """What one bench found; the notes, in paragraphs, stand above the table."""

    title: str
    notes: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    targets: Sequence[Target] = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"## {self.title}", ""]
        for note in filter(None, self.notes.strip().split("\n\n")):
            lines += [*textwrap.wrap(note, 110), ""]
        lines.append(f"| {' | '.join(self.columns)} |")
        lines.append(f"|{'|'.join(['---'] + ['--:'] * (len(self.columns) - 1))}|")
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines) + "\n"


def figures(value: float) -> str:
    """Write a number with three figures: `312,000`, `7.05`."""
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{round(value, digits):,.{max(0, digits)}f}"


def page(tables: Sequence[Table], repeat: int, title: str = "Benchmarks", command: str = "make bench") -> str:
    """Return the page of one run.

    Args:
        tables: what it found.
        repeat: how many times each thing was measured.
        title: of the page.
        command: that runs it again.
    """
    targets = Table(
        title="Targets",
        notes="",
        columns=("", "measured", "target", "measured / target", "reached"),
        rows=[target.row() for table in tables for target in table.targets],
    )
    today = datetime.date.today().isoformat()
    head = f"""# {title}

Written by `python -m benchmarks` (`{command}`) on {today}; do not edit.

- Machine: {os.cpu_count()} cores, {processor()}, {platform.system()}.
- Python {platform.python_version()}; {versions()}.
- Medians of {repeat} runs unless said otherwise. Every figure comes from a fresh process of its own; kgkit
  and the peers take turns, run by run. Seconds are CPU seconds, user and system, of the process and its
  children, with one thread allowed to numerical libraries. Peak memory is `ru_maxrss` of the
  largest process. MB are 10⁶ bytes.
"""
    return "\n".join([head, *(table.markdown() for table in [targets, *tables])])


def versions() -> str:
    """Return the packages that figures depend on, with their versions, as far as they are installed."""
    return ", ".join(filter(None, map(_version, PACKAGES)))


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
