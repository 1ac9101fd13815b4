"""Type vocabularies: which types a word may have, how often, and so P(type | word).

Liu, Du and Stoyanov (2019), "Knowledge-Augmented Language Model and Its Application to Unsupervised
Named-Entity Recognition" (KALM), take no more than that from a knowledge base. As a KB, entities are the
types (key `LOC` or `dairy`, kind `type`), and a word is an alias of its types, counted.

A vocabulary is made from

    a folder of files, one a type        `type_vocabulary_lists` reads them
    a knowledge base with named things   `type_vocabulary_names` tells their types

Both count alike. A name of several words is an alias as a whole, and so is each of its words, since KALM
looks words up: whoever has `New York` as a LOC has seen `New` as a part of one. A word counts once in
each name where it stands, with the name's own count; function words are left out.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from kb_builders import type_vocabulary_lists as lists
from kb_builders import type_vocabulary_names as names
from kgkit.building import Alias, Builder, Entity, Files, KBRecords, Record, SourceInfo
from kgkit.errors import NotThere, SourceError

log = logging.getLogger(__name__)

_KIND = "type"


class TypeVocabularyBuilder(Builder):
    """Words and the types they may have."""

    name: ClassVar[str] = "type_vocabulary"
    version: ClassVar[str] = "2"

    def look(self, source: Path) -> Files:
        """Return the files `TYPE.txt` of the folder *source*."""
        if not source.exists():
            raise NotThere(f"no folder {source}")
        if not source.is_dir():
            raise SourceError(
                "is a file; name the folder that holds a file TYPE.txt for each type", path=source
            )
        files = lists.files(source)
        if not files:
            raise SourceError("holds no file TYPE.txt: one is wanted for each type", path=source)
        return Files(SourceInfo(name=source.resolve().name), files)

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield an entity for each file, named by its type, and an alias for each of its words."""
        for path in lists.files(source):
            word_list = lists.read(path)
            log.info("%s: %s", path, word_list.attributes)
            yield Entity(path.stem, path.stem, kind=_KIND, attributes=word_list.attributes)
            for word, count in word_list.counts.items():
                yield Alias(word, path.stem, count)

    def derive(self, kb: KBRecords) -> Iterator[Record]:
        """Yield an entity for each type that entities of *kb* have, and their names as its aliases."""
        types = names.types_of(kb)
        by_kind, excluded = names.collect_names(kb, types)
        things = Counter(kind for kinds in types.values() for kind in kinds)
        for kind in names.TYPES:
            if not by_kind[kind].counts:
                continue
            attributes: dict[str, object] = {
                "source": f"{kb.name}@{kb.build}",
                "things": things[kind],
                "names": by_kind[kind].names,
                "words": sum(" " not in word for word in by_kind[kind].counts),
                "cleaned": {"surfaces that are no names": excluded[kind]},
            }
            log.info("%s: %s", kind, attributes)
            yield Entity(kind, kind, kind=_KIND, attributes=attributes)
            for word, count in by_kind[kind].counts.items():
                yield Alias(word, kind, count)
