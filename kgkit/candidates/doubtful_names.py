"""Names of a knowledge base that are easily linked where they are no mentions, or to the wrong entity.

    number    no letter: 25, 1996
    sign      neither a letter nor a digit: $, -
    short     one or two letters: Ed, IN
    word      a word of the language too, as Nice and May, or one that texts mostly write in lower case
    shared    of several entities, none of which is likelier than all others together

A name is of the first sort that it fits. In a list of terms, which writes most of its names in lower case,
words are what is to be found; of those in the language's lexicon the ones of several parts of speech (box,
rush, size) are doubtful. In a lexicon no word is.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from kgkit.candidates.spelling import ambiguous_words, in_capitals_only, ordinary_words
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.store.layout import MAX_ROWS

Sort = Literal["number", "sign", "short", "word", "shared"]

_SHORT: Final = 2  # letters; of scripts without case one
_EVEN: Final = 0.5  # prior of the likeliest entity of a shared name, at most
_SAMPLE: Final = 256  # entities whose names tell how the KB writes names
_DOZENS: Final = 24  # names of an entity
_LEAST: Final = 2  # occurrences that tell how texts write a name
_MOSTLY: Final = 0.5  # of them, in lower case


class DoubtfulName(NamedTuple):
    """A name, and why it is doubtful.

    Attributes:
        name: the name as the KB writes it, in one of its spellings.
        folded: its key in the KB.
        sort: why it is doubtful.
        ids: ids of the entities that it can mean, the likeliest first.
    """

    name: str
    folded: str
    sort: Sort
    ids: list[int]

    @property
    def rank(self) -> tuple[int, bool, int, str]:
        """The order of the names of a sort: those that do most harm first, as far as the KB tells.

        Names of many entities, then those that the KB writes in lower case, then short ones.
        """
        return -len(self.ids), not self.name.islower(), len(self.name), self.name


class NameInTexts(msgspec.Struct):
    """A name in texts.

    Attributes:
        occurrences: number of times that it stands there, within longer names too.
        lower: how many of them are in lower case.
        linked: how many of them are links.
        entity: key of the entity of the least certain link; empty where there is none.
        score: score of that link.
        example: text before the name, the name, and text after it, of that link or of the first occurrence.
    """

    occurrences: int = 0
    lower: int = 0
    linked: int = 0
    entity: str = ""
    score: float = 0.0
    example: tuple[str, str, str] = ("", "", "")

    @property
    def is_mostly_lower(self) -> bool:
        """Whether the texts write the name in lower case as often as not."""
        return self.occurrences >= _LEAST and self.lower >= _MOSTLY * self.occurrences


def doubtful_names(
    kb: KnowledgeBase, texts: Mapping[str, NameInTexts] | None = None, *, entities: int | None = None
) -> Iterator[DoubtfulName]:
    """Yield the doubtful names of a KB, in the order of their keys.

    Args:
        kb: knowledge base.
        texts: names in texts by their keys, for those that texts mostly write in lower case.
        entities: number of entities, spread evenly, whose names are looked at; None: all names.
    """
    words, lower = frozenset[str](), set[str]()
    if not is_lexicon(kb):
        words = (ambiguous_words if _is_in_lower_case(kb) else ordinary_words)(kb.manifest.language)
        lower = {name for name, there in (texts or {}).items() if there.is_mostly_lower}
    head, decode = codec.alias_head.unpack_from, codec.decode_alias
    with kb.store.reading():
        for key, row in kb.store.items("aliases") if entities is None else _some_aliases(kb, entities):
            if key.startswith(codec.DIGEST):
                continue
            name = key.decode()
            sort = _sort_by_letters(name) if len(name) <= _SHORT or not name[0].isalpha() else None
            if sort is None:
                if name in words or (name in lower and in_capitals_only(row)):
                    sort = "word"
                elif head(row)[0] & MAX_ROWS > 1 and decode(row).priors[0] <= _EVEN:
                    sort = "shared"
                elif name.startswith("the ") and name[4:] in words and in_capitals_only(row):
                    sort = "word"
                else:
                    continue
            spelled = next((each.surface for each in codec.spellings(row)), name)
            yield DoubtfulName(spelled, name, sort, decode(row).ids.tolist())


def _sort_by_letters(name: str) -> Sort | None:
    if not any(map(str.isalpha, name)):
        return "number" if any(map(str.isnumeric, name)) else "sign"
    return "short" if len(name) == 1 or (len(name) <= _SHORT and name != name.upper()) else None


def _some_aliases(kb: KnowledgeBase, entities: int) -> Iterator[tuple[bytes, bytes]]:
    keys = {key for number in spread_ids(kb, entities) for key in kb.store.alias_keys(number)}
    for key in sorted(keys):
        if (row := kb.store.row("aliases", key)) is not None:
            yield key, row


def spread_ids(kb: KnowledgeBase, entities: int) -> range:
    """Return so many ids at most, spread evenly over a KB; all if there are fewer."""
    count = kb.store.id_count
    return range(0, count, max(1, -(-count // entities)))


def is_lexicon(kb: KnowledgeBase) -> bool:
    """Say whether a KB is a lexical database, or a vocabulary, where an entity has words by the dozen."""
    manifest = kb.manifest
    if manifest.generator == "lemma" or manifest.builder == "type_vocabulary":
        return True
    return manifest.aliases > _DOZENS * manifest.entities


def _is_in_lower_case(kb: KnowledgeBase) -> bool:
    """Say whether most names of some entities, spread evenly, are in lower case, of those with a letter."""
    rows = [row for key, row in _some_aliases(kb, _SAMPLE) if key.upper() != key]
    return sum(not codec.has_spellings(row) for row in rows) > len(rows) / 2
