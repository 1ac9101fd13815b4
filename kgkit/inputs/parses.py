"""Phrases of texts from a file of trees, as parsers write them: for the map of phrases above chunks.

A file has trees in brackets, on one line each or on several, and may be compressed. A bracket with a word in
it alone is the tag of that word. Every other one is a phrase: of level 1 if no other phrase is in it, else
one above the highest of these.

    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))

The tree of a sentence is found by the characters of its words, without white space, so that a parser may
cut words in its own way (`ca n't`). Brackets and quotes are compared as the Penn Treebank writes them:
`-LRB-` is `(`, and two grave accents are a quotation mark.
"""

import logging
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

from kgkit.errors import SourceError
from kgkit.evaluation.plain_text import sentence_begins
from kgkit.files import lines
from kgkit.inputs.maps import PhraseSpan

_log = logging.getLogger(__name__)

_PART: Final = re.compile(r"\(|\)|[^\s()]+")
_EMPTY: Final = "-NONE-"
"""The tag of what the Penn Treebank has in a tree, and not in the text."""

_CHARACTER: Final = re.compile(r"``|''|\S")
_SPELLINGS: Final = {"``": '"', "''": '"', "“": '"', "”": '"', "‘": "'", "’": "'", "`": "'"}
_ESCAPES: Final = {
    "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]",
    r"\/": "/", r"\*": "*",
}  # fmt: skip
_ESCAPE: Final = re.compile("|".join(map(re.escape, _ESCAPES)))

_MAX_DEPTH: Final = 1_000  # brackets in each other
_MAX_PARTS: Final = 8  # that a sentence seems to have


def read_trees(path: Path) -> Iterator[tuple[list[str], list[PhraseSpan]]]:
    """Yield the words of each tree of a file, and its phrases; what the text lacks (`-NONE-`) is left out.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, has something outside of trees or brackets that do not match, or
            no tree.
    """
    words, phrases, stack = list[str](), list[PhraseSpan](), list[tuple[int, int]]()
    label = previous = ""
    for number, line in lines(path):
        for part in _PART.findall(line):
            if part == "(":
                stack.append((len(words), len(phrases)))
                if len(stack) > _MAX_DEPTH:
                    raise SourceError(f"a tree has over {_MAX_DEPTH:,} open brackets", path=path, line=number)
            elif not stack:
                raise SourceError(
                    "expected trees in brackets, and nothing between", path=path, line=number, text=line
                )
            elif part == ")":
                first, inside = stack.pop()
                if previous == ")" and first < len(words):
                    level = 1 + max((phrase.level for phrase in phrases[inside:]), default=0)
                    phrases.append(PhraseSpan(first, len(words), level))
                if not stack:
                    yield words, phrases
                    words, phrases = [], []
            elif previous == "(":
                label = part
            elif label != _EMPTY:
                words.append(part)
            previous = part
    if stack or not previous:
        raise SourceError("the last tree has no end" if stack else "no tree in it", path=path)


class ParsedSentences:
    """Phrases of the sentences that a parser has read.

    Args:
        path: file of trees, one of each sentence; of equal sentences the last one holds.

    Raises:
        NotThere, SourceError: as `read_trees` does.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._warned = path, False
        self._phrases: dict[str, list[PhraseSpan]] = {}  # of characters
        for words, phrases in read_trees(path):
            spelled = [_spell(_ESCAPE.sub(lambda match: _ESCAPES[match[0]], word))[0] for word in words]
            ends = [0, *accumulate(map(len, spelled))]
            self._phrases["".join(spelled)] = [
                PhraseSpan(ends[first], ends[end], level) for first, end, level in phrases
            ]

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
                characters, spans = _spell(text[begin : bounds[end_index]])
                if characters in self._phrases:
                    break
            index = end_index
            if characters and characters not in self._phrases and not self._warned:
                self._warned = True
                sentence = text[begin : bounds[index]].strip()[:80]
                _log.warning("%s has no tree of the sentence %r: it has no phrases", self.path, sentence)
            for first, end, level in self._phrases.get(characters, ()):
                results.append(PhraseSpan(begin + spans[first][0], begin + spans[end - 1][1], level))
        return results


def _spell(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the characters of a text as trees have them, without white space, and the span of each."""
    matches = [*_CHARACTER.finditer(text)]
    spelled = (_SPELLINGS.get(match[0], match[0]) for match in matches)
    return "".join(spelled), [match.span() for match in matches]
