"""What becomes of mentions that overlap, where the linker looks for mentions itself.

longest   the leftmost-longest mentions are scored, and no others
keep      all mentions are scored, and all their links stay
score     all mentions are scored, and of links that overlap the one with the highest score stays
"""

from bisect import bisect_left
from collections.abc import Sequence

from kgkit.types import Link


def best_links(links: Sequence[Link]) -> list[Link]:
    """Return the links of which none overlaps another: of those that do, the best stays.

    A link is better than another if its score is higher, then if it is longer, then if it begins earlier.
    NIL links stay where they overlap no other link; among them the longest, then the earliest.

    Args:
        links: of one text.

    Returns:
        Those that stay, in the order in which they came.
    """
    spans: list[tuple[int, int]] = []  # (start, end), ascending; none overlaps another
    chosen = set[int]()
    for index in sorted(range(len(links)), key=lambda index: _rank(links[index])):
        start, end = links[index].start, links[index].end
        at = bisect_left(spans, (start, end))
        if (at and spans[at - 1][1] > start) or (at < len(spans) and spans[at][0] < end):
            continue
        spans.insert(at, (start, end))
        chosen.add(index)
    return [link for index, link in enumerate(links) if index in chosen]


def _rank(link: Link) -> tuple[bool, float, int, int]:
    """Return what links are sorted by, the best first."""
    return link.nil, 0.0 if link.nil else -link.score, link.start - link.end, link.start
