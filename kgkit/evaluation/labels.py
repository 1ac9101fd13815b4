"""Labels of examples: those that one has, their numbers, and how messages show them."""

import logging
from collections.abc import Sequence
from functools import cache
from typing import Final

from kgkit.evaluation.examples import Example

_log = logging.getLogger(__name__)

_LONG: Final = 30  # characters of a label that an error shows
_SHOWN: Final = 20  # labels that one lists


def gold_labels(example: Example) -> tuple[str, ...]:
    """Return the labels, or tags, of an example; () if its gold is none."""
    gold = example.gold
    if isinstance(gold, str):
        return (gold,)
    return tuple(gold) if isinstance(gold, frozenset | tuple) else ()


@cache
def label_indices(labels: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each label."""
    return {label: index for index, label in enumerate(labels)}


def warn_of_labels(labels: Sequence[str], examples: int) -> None:
    """Log a warning where hardly two examples share a label: texts may stand in its column."""
    if 2 * len(labels) > examples:
        _log.warning(
            "%d labels in %d examples, as %r: is that the column of labels?",
            len(labels), examples, short_label(labels[0]),
        )  # fmt: skip


def short_label(label: str) -> str:
    """Return a label as an error shows it: its beginning."""
    return label if len(label) <= _LONG else f"{label[:_LONG]}…"


def list_labels(labels: Sequence[str]) -> str:
    """Return labels as a message lists them: the first ones, each shortened."""
    return ", ".join([*map(short_label, labels[:_SHOWN]), *(["…"] if len(labels) > _SHOWN else [])])
