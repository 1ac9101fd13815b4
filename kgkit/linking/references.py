"""Words that refer to what was linked before: pronouns, and names cut short.

    "Biden wins election 2020. He is joining with Kamala Harris."    He: Biden
    "Kamala Harris won. Harris thanked her team."                    Harris, her: Kamala Harris

Rules, and no resolver of coreference. What a pronoun can mean is linked a few sentences before it at most,
and is a person for *he*, *she*, 他 and 她, and none for *it* and 它; who has been *he* is not *she*. Of those
of the nearest sentence the first one is taken, as what a sentence is about mostly comes first in it (Grosz,
Joshi & Weinstein 1995, centering). A word that is part of an earlier name of several words, with a capital
as there, means what that name means. Words that are linked already keep their links.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kgkit.bounded_cache import BoundedCache
from kgkit.kb import KnowledgeBase
from kgkit.ranges import check_range
from kgkit.text import token_spans
from kgkit.types import Entity, Link, LinkedDocument

_CACHE_BYTES: Final = 4_000_000
_PERSON: Final = frozenset(["person", "per", "people", "human", "person.n.01", "人", "人物"])
"""What the types of a person may be called, or an entity that one is a kind of."""

_GENDERS: Final = {
    **dict.fromkeys(("male", "man", "m", "男", "男性"), "he"),
    **dict.fromkeys(("female", "woman", "f", "女", "女性"), "she"),
}
_PRONOUNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("he", "him", "his", "himself", "他"), "he"),
    **dict.fromkeys(("she", "her", "hers", "herself", "她"), "she"),
    **dict.fromkeys(("it", "its", "itself", "它"), "it"),
}
_WORDS: Final = frozenset(
    "他们 她们 它们 其他 其它 其她 吉他 他人 他国 他乡 他日 他杀 他方 他山 排他 利他 维他 无他".split()
)
"""Words that a Chinese pronoun is a part of, and none there."""
_ENDS: Final = re.compile(r"(?<![.!?])[.!?]++(?=\s)|[。！？]+|\n+")
_INSTANCE: Final = "instance_hypernym"
_KIND: Final = "hypernym"
_DEPTH: Final = 12  # of a hierarchy that is climbed


@dataclass(frozen=True, kw_only=True)
class ReferenceConfig:
    """How far back a word may refer.

    Attributes:
        sentences: between a pronoun and what it means, its own not counted.

    Raises:
        UsageError: for a negative number.
    """

    sentences: int = 2

    def __post_init__(self) -> None:
        check_range(self, "sentences", least=0)


class References:
    """Gives linked documents the links of words that refer back.

    Args:
        kbs: those that documents are linked to.
        config: settings.

    Examples:
        >>> [linked] = Linker.open(kb)(["Biden won. He left."])
        >>> [link.text for link in References([kb])(linked).links]
        ['Biden', 'He']
    """

    def __init__(self, kbs: "list[KnowledgeBase]", config: ReferenceConfig | None = None) -> None:
        self._kbs = {kb.name: kb for kb in kbs}
        self._config = config or ReferenceConfig()
        self._kinds = BoundedCache[tuple[str, str], str](_CACHE_BYTES)

    def __call__(self, document: LinkedDocument) -> LinkedDocument:
        """Return the document with more links, in order of their start.

        A new link has the entity, the score and the label of what it refers to, and no candidates.
        """
        text = document.text
        ends = [match.end() for match in _ENDS.finditer(text)]
        linked = [link for link in document.links if link.entity is not None]
        added: list[Link] = []
        pronouns: dict[tuple[str, str | None], str] = {}  # what an entity has been called so far
        for start, end in token_spans(text):
            if any(link.start < end and start < link.end for link in document.links):
                continue
            earlier = sorted((*linked, *added), key=lambda link: link.start)
            before = [link for link in earlier if link.end <= start]
            word = text[start:end]
            inside = text[start : end + 1] in _WORDS or text[max(0, start - 1) : end] in _WORDS
            pronoun = "" if inside else _PRONOUNS.get(word.lower(), "")
            if pronoun:
                compatible = [
                    link for link in before if pronouns.get((link.kb, link.entity), pronoun) == pronoun
                ]
                antecedent = self._of_pronoun(pronoun, start, compatible, ends)
            else:
                antecedent = _of_name(word, before)
            if antecedent is not None and pronoun:
                pronouns[antecedent.kb, antecedent.entity] = pronoun
            if antecedent is not None:
                added.append(
                    msgspec.structs.replace(antecedent, start=start, end=end, text=word, candidates=[], id="")
                )
        links = sorted((*document.links, *added), key=lambda link: link.start)
        return msgspec.structs.replace(document, links=links)

    def _of_pronoun(self, pronoun: str, start: int, before: list[Link], ends: list[int]) -> Link | None:
        here = bisect_right(ends, start)
        near: dict[int, list[Link]] = {}  # by how many sentences ago
        for link in before:
            ago = here - bisect_right(ends, link.start)
            if ago <= self._config.sentences and self._can_be(link, pronoun):
                near.setdefault(ago, []).append(link)
        return near[min(near)][0] if near else None

    def _can_be(self, link: Link, pronoun: str) -> bool:
        kind = self._kind(link)
        if pronoun == "it":
            return kind == "it"
        return kind in ("person", pronoun)

    def _kind(self, link: Link) -> str:
        """Return `he` or `she` for a person of known gender, `person` for another one, else `it`."""
        assert link.entity is not None
        key = link.kb, link.entity
        kind = self._kinds.get(key)
        if kind is None:
            kb = self._kbs.get(link.kb)
            entity = None if kb is None else kb.get(link.entity)
            is_person = (
                kb is not None
                and entity is not None
                and any(name.lower() in _PERSON for name in _kinds_of(kb, entity))
            )
            gender = "" if entity is None else str(entity.attributes.get("gender", "")).lower()
            kind = self._kinds.keep(key, (_GENDERS.get(gender) or "person") if is_person else "it")
        return kind


def _kinds_of(kb: KnowledgeBase, entity: Entity) -> Iterator[str]:
    """Yield what an entity is called a kind of: its types, what stands beside it, and what is above it."""
    yield from entity.types
    for other in kb.neighbors(entity):
        yield from (other.label, other.key)
    above = [entity, *(kb.neighbors(entity, _INSTANCE) if _INSTANCE in kb.relations else ())]
    for node in above if _KIND in kb.relations else ():
        yield from (higher.key for higher in kb.walk(node, _KIND, max_depth=_DEPTH))


def _of_name(word: str, before: list[Link]) -> Link | None:
    """Return the last link of a longer name that *word*, which begins with a capital, is part of."""
    if not word[:1].isupper() or len(word) < 2:
        return None
    for link in reversed(before):
        parts = [link.text[start:end] for start, end in token_spans(link.text)]
        if len(parts) > 1 and word in parts:
            return link
    return None
