"""Phrases of texts from a file of trees, as parsers write them: for the map of phrases above chunks.

A file has trees in brackets (`kgkit.inputs.parses`), on one line each or on several, and may be compressed.
The tree of a sentence is found by the characters of its words, without white space, so that a parser may
cut words in its own way (`ca n't`). Brackets and quotes are compared as the Penn Treebank writes them:
`-LRB-` is `(`, and two grave accents are a quotation mark.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.plain_text import sentence_begins
from kgkit.files import lines
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


_log = logging.getLogger(__name__)

_CHARACTER: Final = re.compile(r"``|''|\S")
_BRACKET: Final = re.compile(r"[()]")
_SPELLINGS: Final = {"``": '"', "''": '"', "“": '"', "”": '"', "‘": "'", "’": "'", "`": "'"}
_ESCAPES: Final = {
    "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]",
    r"\/": "/", r"\*": "*",
}  # fmt: skip
_ESCAPE: Final = re.compile("|".join(map(re.escape, _ESCAPES)))

_MAX_TREE: Final = 1_000_000  # characters
_MAX_PARTS: Final = 8  # that a sentence seems to have


class SpelledText(NamedTuple):
    """The characters of a text as trees have them.

    Attributes:
        characters: characters without white space, quotes in one spelling.
        spans: span in the text of each, end exclusive.
    """

    characters: str
    spans: list[tuple[int, int]]

    @classmethod
    def of(cls, text: str) -> "SpelledText":
        """Return the characters of a text.

        Examples:
            >>> SpelledText.of("“a b”").characters
            '"ab"'
        """
        matches = [*_CHARACTER.finditer(text)]
        spelled = (_SPELLINGS.get(match[0], match[0]) for match in matches)
        return cls("".join(spelled), [match.span() for match in matches])


class ParsedSentences:
    """Phrases of the sentences that a parser has read.

    Args:
        trees: trees in brackets, one of each sentence; of equal sentences the last one holds.
        name: name of their file, for messages.

    Raises:
        UsageError: if the brackets of a tree do not match.

    Examples:
        >>> parsed = ParsedSentences(["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"])
        >>> [tuple(phrase) for phrase in parsed.phrases("the dog barks")]
        [(0, 7, 1), (8, 13, 1), (0, 13, 2)]
    """

    def __init__(self, trees: Iterable[str], name: str = "the file of trees") -> None:
        self.name = name
        self._phrases: dict[str, tuple[PhraseSpan, ...]] = {}  # of characters
        self._warned = False
        for tree in trees:
            words, phrases = read_brackets(tree)
            spelled = [SpelledText.of(_unescape(word)).characters for word in words]
            ends = [0, *accumulate(map(len, spelled))]
            self._phrases["".join(spelled)] = tuple(
                PhraseSpan(ends[first], ends[end], level) for first, end, level in phrases
            )

    def __len__(self) -> int:
        return len(self._phrases)

    @classmethod
    def read(cls, path: Path) -> "ParsedSentences":
        """Return the sentences of a file.

        Raises:
            NotThere: if there is no such file.
            SourceError: if it cannot be read, or its brackets do not match.
        """
        try:
            return cls(read_trees(path), str(path))
        except UsageError as error:
            raise SourceError(str(error), path=path) from error

    def phrases(self, text: str) -> list[PhraseSpan]:
        """Return the phrases of a text, in code points, with their levels.

        A text may have several sentences, each with its tree. Where a text seems to have a sentence end and
        none is, as behind *James A.*, the tree says so. A sentence without a tree has no phrases, which is
        warned of once.
        """
        bounds = [0, *sentence_begins(text), len(text)]
        results, index = list[PhraseSpan](), 0
        while index + 1 < len(bounds):
            begin, last = bounds[index], min(len(bounds) - 1, index + _MAX_PARTS)
            for end_index in range(last, index, -1):
                characters, spans = SpelledText.of(text[begin : bounds[end_index]])
                if characters in self._phrases:
                    break
            else:
                self._warn(text[begin : bounds[end_index]].strip())
            for first, end, level in self._phrases.get(characters, ()):
                results.append(PhraseSpan(begin + spans[first][0], begin + spans[end - 1][1], level))
            index = end_index
        return results

    def _warn(self, sentence: str) -> None:
        if sentence and not self._warned:
            self._warned = True
            _log.warning(
                "%s has no tree of the sentence %r: it is read without phrases, as others that lack one",
                self.name,
                sentence[:80],
            )


def read_trees(path: Path) -> Iterator[str]:
    """Yield the trees of a file; one of them is in memory at a time.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, has a bracket or a word outside of a tree, or a tree without an
            end.
    """
    parts, depth, size, number, line = list[str](), 0, 0, 0, ""
    for number, line in lines(path):
        begin = 0
        for bracket in _BRACKET.finditer(line):
            depth += 1 if bracket[0] == "(" else -1
            before = line[begin : bracket.start()].strip()
            if depth < 0 or (depth == 1 and bracket[0] == "(" and before):
                raise _outside(path, number, line)
            if not depth:
                yield " ".join([*parts, line[begin : bracket.end()].strip()])
                parts, size, begin = [], 0, bracket.end()
        remaining = line[begin:].strip()
        if not depth and remaining:
            raise _outside(path, number, line)
        parts += filter(None, [remaining])
        size += len(remaining)
        if size > _MAX_TREE:
            raise SourceError(f"a tree is longer than {_MAX_TREE:,} characters", path=path, line=number)
    if depth:
        raise SourceError("the last tree has no end", path=path, line=number)
    if not number:
        raise SourceError("no tree in it", path=path)


def _outside(path: Path, number: int, line: str) -> SourceError:
    """Return the error of a line with something that is in no tree."""
    return SourceError("expected trees in brackets, and nothing between", path=path, line=number, text=line)


def _unescape(word: str) -> str:
    """Return a word of a tree as a text has it."""
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], word)
