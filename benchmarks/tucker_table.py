"""What the runs of `python -m benchmarks.tucker` wrote, as Markdown."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Table

PUBLISHED = ("TuckER on WN18RR, as published", "", "", "", ".470", ".443", ".482", ".526")


def page(work: Path) -> str:
    """Return all tables for which there are figures in *work*."""
    tables = [_subset(work), _groups(work), *_wordnet(work)]
    return "\n".join(table.markdown() for table in tables if table.rows)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return what *path* holds, a line of JSON each."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _scores(entry: dict[str, Any]) -> list[str]:
    return [f"{entry[name]:.4f}" for name in ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")]


def _subset(work: Path) -> Table:
    rows: list[Sequence[str]] = []
    for path in sorted([*work.glob("ours*.jsonl"), *work.glob("stock*.jsonl")]):
        for entry in lines(path):
            clock = f"{entry['seconds'] / 60:.1f}"
            step = f"{entry['seconds_a_step']:.3f}"
            rows.append([path.stem, clock, step, entry["part"], *_scores(entry)])
    rows.append(PUBLISHED) if rows else None
    return Table(
        title="TuckER on a subset of WordNet of WN18RR's size",
        notes="Filtered, among all entities, heads and tails. CPU minutes of one thread, without ranking.",
        columns=("", "minutes", "seconds a step", "part", "MRR", "Hits@1", "Hits@3", "Hits@10"),
        rows=rows,
    )


def _groups(work: Path) -> Table:
    rows = []
    for path in sorted(work.glob("ours*-groups.json")):
        for name, entry in json.loads(path.read_text()).items():
            label = f"{path.stem.removesuffix('-groups')}: {name}"
            rows.append([label, f"{entry['questions']:,}", *_scores(entry)])
    return Table(
        title="The same by relation",
        notes="The reverse of a held-out triple of a symmetric relation is mostly in training, as in WN18RR.",
        columns=("", "questions", "MRR", "Hits@1", "Hits@3", "Hits@10"),
        rows=rows,
    )


def _wordnet(work: Path) -> list[Table]:
    tables = []
    for path in sorted(work.glob("*.json")):
        entry = json.loads(path.read_text())
        if "neighbours" not in entry:
            continue
        rows = [
            ["triples", f"{entry['triples']:,}"],
            ["epochs", str(entry["epochs"])],
            ["CPU minutes", f"{entry['cpu'] / 60:.1f}"],
            ["minutes", f"{entry['wall'] / 60:.1f}"],
            ["peak memory, MB", f"{entry['peak'] / 1e6:,.0f}"],
            ["MRR among 1,000 sampled", f"{entry['mrr']:.4f}"],
            ["the same by chance", f"{entry['random_mrr']:.4f}"],
            ["Hits@1, 3, 10", ", ".join(_scores(entry)[1:])],
        ]
        title = f"All of WordNet: {path.stem}"
        tables.append(Table(title=title, notes="", columns=("", ""), rows=rows))
        near = [
            [key, ", ".join(f"{name} {score:.2f}" for name, score in neighbours)]
            for key, neighbours in entry["neighbours"].items()
        ]
        tables.append(
            Table(title=f"{title}, neighbours", notes="By cosine.", columns=("", "nearest"), rows=near)
        )
    return tables
