"""Reliability diagrams of links: whether scores are the shares of links that are right, drawn as SVG.

    python -m benchmarks.reliability --own DIR [--out FILE] TITLE=SET:LINKS …

DIR is a copy of `own_kb` whose `score.py` says which links are right, SET a folder there with a `gold.jsonl`
(`letters`, `news/full`), LINKS a file that `score.py` takes, with scores: of all links, whatever their score
(`--threshold 0`), or what is left out is not seen. Arguments of one TITLE are drawn together.

Each point is a tenth of the scores: the share of its links that are right over their mean score, with its
95 % interval (Wilson); the larger a point, the more links it stands for. On the diagonal the share
equals the score. `ECE` is the expected calibration error, of tenths.
"""

import argparse
import json
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.evaluation.calibration import Reliability, binned
from kgkit.pages import drawing_file
from kgkit.text import escape_xml

OUT: Final = Path("docs/pictures/links-reliability.svg")
_TENTHS: Final = 10
_COLUMNS: Final = 4
_SIDE, _LEFT, _TOP, _BELOW, _MARGIN = 200, 34, 40, 40, 12  # pixels
_LEAST, _MOST = 1.5, 4.5  # pixels: radius of a point, and the addition for all links
_INK, _FAINT, _POINT = "#1a1a1a", "#666", "#4477aa"
_CAPTION: Final = (
    "Across: score. Up: share of links that are right, with its 95 % interval. Below: number of links."
)
_SURE: Final = 1.96  # standard deviations of a 95 % interval


class Judged(NamedTuple):
    """A link: its score, and whether it is right."""

    score: float
    right: bool


def judged_links(
    gold: Iterable[Mapping[str, Any]],
    links: Iterable[Mapping[str, Any]],
    doc_counts: Callable[..., tuple[dict[str, int], Any, Any]],
) -> Iterator[Judged]:
    """Yield the links that count, each judged by itself: optional ones do not.

    Args:
        gold: documents of a `gold.jsonl`.
        links: documents with their links.
        doc_counts: function of `score.py`.
    """
    documents = {str(document["id"]): document for document in gold}
    for document in links:
        for link in document["links"]:
            counts = doc_counts(documents[str(document["id"])], [link])[0]
            if counts["links"]:
                yield Judged(float(link["score"]), counts["right"] > 0)


def drawing(panels: Mapping[str, list[Judged]]) -> bytes:
    """Return an SVG with a panel for each title; equal links give equal files."""
    columns = max(1, min(_COLUMNS, len(panels)))
    rows = -(-len(panels) // columns)
    across, down = _LEFT + _SIDE + _MARGIN, _TOP + _SIDE + _BELOW
    wide, high = columns * across + _MARGIN, rows * down + 2 * _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" font-family="system-ui, sans-serif" font-size="10" fill="{_INK}">\n'
        f'<rect width="{wide}" height="{high}" fill="white"/>\n'
        f'<text x="{_LEFT}" y="{high - _MARGIN}" fill="{_FAINT}">{_CAPTION}</text>\n'
    )
    parts = [head]
    for number, (title, links) in enumerate(panels.items()):
        x, y = number % columns * across + _LEFT, number // columns * down + _TOP
        parts += [f'<g transform="translate({x} {y})">\n', *_panel(title, tenths(links)), "</g>\n"]
    return drawing_file("".join([*parts, "</svg>\n"]), ".svg", title="Reliability", what="a diagram")


def tenths(links: Iterable[Judged]) -> Reliability:
    """Return the reliability of links in tenths of the score."""
    links = list(links)
    return binned([link.score for link in links], [link.right for link in links], _TENTHS)


def _panel(title: str, found: Reliability) -> Iterator[str]:
    total = int(found.counts.sum())
    yield f'<text y="-20" font-size="13" font-weight="bold">{escape_xml(title)}</text>\n'
    yield f'<text y="-7" fill="{_FAINT}">{total} links, ECE {found.error:.3f}</text>\n'
    yield f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_FAINT}"/>\n'
    yield f'<path d="M0 {_SIDE}L{_SIDE} 0" stroke="{_FAINT}" stroke-dasharray="3 3"/>\n'
    for tenth in range(0, _TENTHS + 1, 2):
        at = _SIDE * tenth / _TENTHS
        yield f'<text x="{at:g}" y="{_SIDE + 13}" text-anchor="middle">{tenth / _TENTHS:g}</text>\n'
        yield f'<text x="-5" y="{_SIDE - at + 3.5:g}" text-anchor="end">{tenth / _TENTHS:g}</text>\n'
    for number, count in enumerate(found.counts.tolist()):
        if not count:
            continue
        share = float(found.accuracy[number])
        x, y = _SIDE * float(found.confidence[number]), _SIDE * (1 - share)
        low, high = (_SIDE * (1 - end) for end in interval(share, count))
        radius = _LEAST + _MOST * sqrt(count / total)
        yield (
            f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{_POINT}"/>\n'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{_POINT}"/>\n'
            f'<text x="{_SIDE * (number + 0.5) / _TENTHS:g}" y="{_SIDE + 26}" font-size="8" '
            f'text-anchor="middle" fill="{_FAINT}">{count}</text>\n'
        )


def interval(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of *count*."""
    weight = _SURE**2 / count
    middle, half = share + weight / 2, sqrt(weight * (share * (1 - share) + weight / 4))
    return (middle - half) / (1 + weight), (middle + half) / (1 + weight)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    """Draw what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description="Draw reliability.")
    parser.add_argument("panels", nargs="+", metavar="TITLE=SET:LINKS")
    parser.add_argument("--own", type=Path, required=True, help="copy of own_kb, news and places made")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    doc_counts = runpy.run_path(str(arguments.own / "score.py"))["doc_counts"]
    panels: dict[str, list[Judged]] = {}
    for panel in arguments.panels:
        title, _, rest = panel.partition("=")
        name, _, path = rest.partition(":")
        if not path:
            parser.error(f"{panel!r} is no TITLE=SET:LINKS")
        gold = read_lines(arguments.own / name / "gold.jsonl")
        panels.setdefault(title, []).extend(judged_links(gold, read_lines(Path(path)), doc_counts))
    arguments.out.write_bytes(drawing(panels))
    for title, links in panels.items():
        print(f"{title:20} {len(links):6} links  ECE {tenths(links).error:.3f}")


if __name__ == "__main__":
    main()
