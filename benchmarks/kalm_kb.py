"""Knowledge bases of types for the benches of KALM: words added from labels, and words left out.

`filled` is an oracle: it adds the words of names in labelled training text until their tokens are known to a
share. What it gives tells how much of a gap is the knowledge base's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

import kgkit
from kgkit.building import Alias, Builder, Entity, Files, Record, SourceInfo
from kgkit.building.records import StoredRecords
from kgkit.evaluation.ner import read_names
from kgkit.home import Home

TypeWords = Mapping[str, Mapping[str, float]]
"""Counts of words by type."""


class TypeWordsBuilder(Builder):
    """Types with the words that are given, as the builder `type_vocabulary` makes them.

    Args:
        words: counts of words by type.
        source: knowledge base that they were made of, which has other senses of them.
    """

    name: ClassVar[str] = "type_words"
    version: ClassVar[str] = "1"

    def __init__(self, words: TypeWords, source: str) -> None:
        self.words, self.source = words, source

    def look(self, source: Path) -> Files:
        """Return that no file is read."""
        return Files(SourceInfo(name="types of words"), [])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield an entity for each type, and an alias for each of its words."""
        for kind, counts in self.words.items():
            yield Entity(kind, kind, kind="type", attributes={"source": self.source})
            for word, count in counts.items():
                yield Alias(word, kind, count)


def words_of(home: Home, kb: str) -> tuple[dict[str, dict[str, float]], str]:
    """Return the words of a knowledge base of types with their counts, and what it was made of."""
    words: dict[str, dict[str, float]] = defaultdict(dict)
    with kgkit.open_kb(kb, home=home.path) as opened:
        source = str(next(iter(opened)).attributes.get("source", ""))
        for alias in StoredRecords(opened).aliases():
            if " " not in alias.surface:
                words[alias.key][alias.surface] = alias.count + opened.manifest.smoothing
    return dict(words), source


def label_words(data: Path) -> Counter[tuple[str, str]]:
    """Return the words of names in labelled text, with their types, and how often they occur."""
    counts: Counter[tuple[str, str]] = Counter()
    for document in read_names(data):
        for name in document.names:
            counts.update((word, name.type) for word in document.document.text[name.start : name.end].split())
    return counts


def filled(words: TypeWords, labels: Counter[tuple[str, str]], share: float) -> TypeWords:
    """Return words with those of labels, the most frequent first, until a share of these tokens is known."""
    result = {kind: dict(counts) for kind, counts in words.items()}
    vocabulary = {word for counts in words.values() for word in counts}
    tokens: Counter[str] = Counter()
    for (word, _), count in labels.items():
        tokens[word] += count
    remaining = share * sum(tokens.values()) - sum(
        count for word, count in tokens.items() if word in vocabulary
    )
    added: set[str] = set()
    for word, count in sorted(tokens.items(), key=lambda item: (-item[1], item[0])):
        if remaining <= 0:
            break
        if word not in vocabulary:
            added.add(word)
            remaining -= count
    for (word, kind), count in labels.items():
        if word in added:
            result.setdefault(kind, {})[word] = float(count)
    return result


def without(words: TypeWords, share: float, seed: int = 0) -> TypeWords:
    """Return words of which a share, drawn at random, is left out; each type keeps one at least."""
    every = sorted({word for counts in words.values() for word in counts})
    drawn = np.random.default_rng(seed).permutation(len(every))[: round(share * len(every))]
    gone = {every[number] for number in drawn.tolist()}
    return {
        kind: {word: count for word, count in counts.items() if word not in gone}
        or dict([*counts.items()][:1])
        for kind, counts in words.items()
    }


def build_types(home: Home, name: str, words: TypeWords, source: str) -> None:
    """Build a knowledge base of types, unless there is one of that name."""
    if not (home.path / "kbs" / name / "current").exists():
        kgkit.build_kb(TypeWordsBuilder(words, source), home.path, name=name, home=home.path)
