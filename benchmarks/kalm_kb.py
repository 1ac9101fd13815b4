"""Knowledge bases of types for the benches of KALM: more words, words added from labels, and words left out.

`wider` adds the words of names in T-REx, Google-RE and FewRel, whose types are those that their relations
join: who was born is a person, and where is a place. No label of named entities is read.
`filled` is an oracle: it adds the words of names in labelled training text until their tokens are known to a
share. What it gives tells how much of a gap is the knowledge base's.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

import kgkit
from benchmarks import lama_kb
from kb_builders.type_vocabulary_names import name_words
from kgkit.building import Alias, Builder, Entity, Files, Record, SourceInfo
from kgkit.building.records import StoredRecords
from kgkit.evaluation.facts import fact_of
from kgkit.evaluation.ner import read_names
from kgkit.files import opened
from kgkit.home import Home

SUBJECTS: Final = {
    "person": "PER", "organization": "ORG", "creative work": "MISC", "product": "MISC", "musical act": "ORG",
}  # fmt: skip
"""Types of the subjects that `lama_kb.TYPES` tells of; others may be of any type."""
OBJECTS: Final = {
    "LOC": "P19 P20 P27 P159 P495 P740 P937 place_of_birth place_of_death",
    "ORG": "P69 P108 P127 P176 P178 P264 P449 P463",
    "MISC": "P103 P140 P364 P407 P1412",
}
"""Relations by the type of their objects."""
FEWREL: Final = {
    "P25": ("PER", "PER"), "P26": ("PER", "PER"), "P40": ("PER", "PER"), "P155": ("MISC", "MISC"),
    "P177": ("LOC", "LOC"), "P206": ("LOC", "LOC"), "P364": ("MISC", "MISC"), "P410": ("PER", ""),
    "P412": ("PER", ""), "P413": ("PER", ""), "P463": ("PER", "ORG"), "P2094": ("PER", ""),
}  # fmt: skip
"""Types of the heads and tails of FewRel's relations; "": of any type."""

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
    with kgkit.open_kb(kb, home=home.path) as types:
        source = str(next(iter(types)).attributes.get("source", ""))
        for alias in StoredRecords(types).aliases():
            if " " not in alias.surface:
                words[alias.key][alias.surface] = alias.count + types.manifest.smoothing
    return dict(words), source


def lama_names(lama: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of T-REx and Google-RE with their types."""
    objects = {relation: kind for kind, relations in OBJECTS.items() for relation in relations.split()}
    for record in lama_kb.records(lama):
        fact = fact_of(record)
        if kind := SUBJECTS.get(lama_kb.TYPES.get(fact.relation, "")):
            yield fact.subject, kind
        if kind := objects.get(fact.relation):
            yield from ((name, kind) for name in lama_kb.objects_of(record))


def fewrel_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of FewRel with their types, as its sentences spell them."""
    with opened(path) as file:
        sentences = json.loads(file.read())
    for relation, kinds in FEWREL.items():
        for sentence in sentences.get(relation, ()):
            for part, kind in zip("ht", kinds, strict=True):
                for positions in sentence[part][2]:
                    if kind:
                        yield " ".join(sentence["tokens"][position] for position in positions), kind


def wider(words: TypeWords, names: Iterable[tuple[str, str]]) -> TypeWords:
    """Return words with those of typed names, each name counted once for each of its types."""
    result = {kind: dict(counts) for kind, counts in words.items()}
    for name, kind in sorted({*names}):
        for word in name_words(name) or ():
            counts = result.setdefault(kind, {})
            counts[word] = counts.get(word, 0.0) + 1.0
    return result


def label_words(data: Path) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Return how often words with their types occur in names of labelled text, and words outside of names."""
    inside, total = Counter[tuple[str, str]](), Counter[str]()
    for document in read_names(data):
        text = document.document.text
        total.update(text.split())
        for name in document.names:
            inside.update((word, name.type) for word in text[name.start : name.end].split())
    return inside, total - Counter(word for word, _ in inside.elements())


def filled(
    words: TypeWords, labels: Counter[tuple[str, str]], outside: Counter[str], share: float
) -> TypeWords:
    """Return words with those of labels, the most frequent first, until a share of these tokens is known.

    Or until no such word is left.

    Words that occur more often outside of names are not added: *of* is no word of a type.
    """
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
        if word not in vocabulary and outside[word] <= count:
            added.add(word)
            remaining -= count
    for (word, kind), count in labels.items():
        if word in added:
            result.setdefault(kind, {})[word] = float(count)
    return result


def without(words: TypeWords, share: float, seed: int = 0) -> TypeWords:
    """Return the words without a share of them, drawn at random; each type keeps a word at least."""
    every = sorted({word for counts in words.values() for word in counts})
    drawn = np.random.default_rng(seed).permutation(len(every))[: round(share * len(every))]
    dropped = {every[number] for number in drawn.tolist()}
    return {
        kind: {word: count for word, count in counts.items() if word not in dropped}
        or dict([*counts.items()][:1])
        for kind, counts in words.items()
    }


def build_types(home: Home, name: str, words: TypeWords, source: str) -> None:
    """Build a knowledge base of types, unless there is one of that name."""
    if not (home.path / "kbs" / name / "current").exists():
        kgkit.build_kb(TypeWordsBuilder(words, source), home.path, name=name, home=home.path)
