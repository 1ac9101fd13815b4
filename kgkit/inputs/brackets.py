"""Phrases of a sentence from the brackets that parsers write, as those of the Penn Treebank."""

import re
from typing import Final, NamedTuple

from kgkit.errors import UsageError
from kgkit.inputs.maps import PhraseSpan

_BRACKETS: Final = re.compile(r"\(|\)|[^\s()]+")
_EMPTY: Final = "-NONE-"
"""The tag of what the Penn Treebank has in a tree, and not in the text."""

_MAX_DEPTH: Final = 1_000


class BracketedSentence(NamedTuple):
    """A sentence with its phrases: the words of a tree, and what is in brackets."""

    words: list[str]
    phrases: list[PhraseSpan]


def read_brackets(tree: str) -> BracketedSentence:
    """Read the tree of a sentence, in the brackets that parsers write: `(S (NP (DT the) (NN dog)) (VP …))`.

    A bracket with a word in it alone is the tag of that word. Every other one is a phrase: of level 1 if no
    other phrase is in it, else one above the highest of these.

    Args:
        tree: one tree, as the Penn Treebank or any parser has it; traces (`-NONE-`) are left out.

    Raises:
        UsageError: if brackets do not match, or more than 1,000 of them are in each other.
    """
    words, phrases = list[str](), list[PhraseSpan]()
    stack: list[_OpenBracket] = []
    previous = ""
    for part in _BRACKETS.findall(tree):
        if part == "(":
            stack.append(_OpenBracket(len(words)))
            if len(stack) > _MAX_DEPTH:
                raise UsageError(
                    f"a tree has more than {_MAX_DEPTH:,} brackets in each other, which no sentence's has"
                )
        elif not stack:
            raise UsageError(f"a tree has {part!r} outside of its brackets: {tree.strip()[:60]!r}")
        elif part == ")":
            bracket = stack.pop()
            level = bracket.level
            if not bracket.is_tag and len(words) > bracket.first:
                level += 1
                phrases.append(PhraseSpan(bracket.first, len(words), level))
            if stack:
                stack[-1].level = max(stack[-1].level, level)
        elif previous == "(":
            stack[-1].label = part
        else:
            stack[-1].is_tag = True
            if stack[-1].label != _EMPTY:
                words.append(part)
        previous = part
    if stack:
        raise UsageError(f"a tree lacks {len(stack)} closing brackets: {tree.strip()[:60]!r}")
    return BracketedSentence(words, phrases)


class _OpenBracket:
    """A bracket that is not closed yet: its first word, its label, the level of what is in it."""

    def __init__(self, first: int) -> None:
        self.first, self.label, self.level, self.is_tag = first, "", 0, False
