"""The example: what every task is read as, whatever file it comes from and whichever model it is given to."""

from typing import NamedTuple

Gold = str | frozenset[str] | tuple[str, ...] | float | int
"""What is right: a label; the labels that hold; a tag for each token; a number; the index of a choice."""


class Example(NamedTuple):
    """A text, a pair or several texts, and what is right.

    Attributes:
        id: unique in its file.
        texts: one text, a pair, or the choices of a `choice`.
        marks: spans of names in the first text: code points, end exclusive.
        tokens: spans of the tokens of the first text that have tags: code points, end exclusive.
        tail: names of special word pieces that follow the last text, such as the types of names.
        group: key of examples that belong together, such as the answers to one question.
        gold: see `Gold`; None in a file without gold.
    """

    id: str
    texts: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    tail: tuple[str, ...] = ()
    group: str = ""
    gold: Gold | None = None
