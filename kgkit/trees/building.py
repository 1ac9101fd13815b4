"""From documents to sentence trees: which words are asked for, and what is injected.

Departures from the released code:
    Facts come in the order of the data; there in that of a set, which chance decides.
    Surfaces are found whatever their case.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Final, NamedTuple

from kgkit.bounded_cache import BoundedCache
from kgkit.candidates import (
    Generator,
    SegmentGenerator,
    check_mentions,
    generator_for,
    jieba_segments,
    longest,
)
from kgkit.errors import UnknownName, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import Document, LinkedDocument

QUERIES: Final = ("longest", "jieba", "link")

_CACHE_BYTES: Final = 64_000_000


class Branch(NamedTuple):
    """A fact that hangs from a mention.

    Attributes:
        words: what is injected: the relation and the object, or the object alone; of an attribute its name
            and its value.
        kb: that knows it.
        entity: key of the entity that it is said of.
    """

    words: tuple[str, ...]
    kb: str
    entity: str


class Hook(NamedTuple):
    """A mention, and what hangs from it.

    Attributes:
        text: which of the texts it is in, 0 or 1.
        start: its first code point.
        end: one past its last.
        branches: in the order of the data.
    """

    text: int
    start: int
    end: int
    branches: tuple[Branch, ...]


class Tree(NamedTuple):
    """A text, or a pair, and its mentions with facts, in order; they do not overlap."""

    texts: tuple[str, ...]
    hooks: tuple[Hook, ...]


_Facts = tuple[int, int, tuple[Branch, ...]]
"""Start and end of a mention, and what one knowledge base says of it."""


@dataclass(frozen=True, kw_only=True)
class TreeConfig:
    """What is injected.

    Attributes:
        max_facts: of a mention, of all knowledge bases together; the released code has 2.
        relations: whether the name of the relation stands before the object: as in the released code in
            classification, and not in tagging.
        attributes: whether what a knowledge base says in words and numbers is injected too, behind its facts:
            (Tidewick, population, 4812). Each value of a list counts as a fact.

    Raises:
        UsageError: if there is not to be one fact.
    """

    max_facts: int = 2
    relations: bool = True
    attributes: bool = False

    def __post_init__(self) -> None:
        if self.max_facts < 1:
            raise UsageError(f"max_facts is {self.max_facts}; it is at least 1")


class TreeBuilder:
    """K-Query and K-Inject, equations (1) and (2): makes trees of texts.

    Mentions are those that a document was given, however it was cut into words; the links of a linked
    document, but for those that mean nothing; or else the longest surfaces in the text that the knowledge
    bases know. A mention means its first candidate, a link what it says. What is injected is what a knowledge
    base says of the entity as subject, in the order of the source, with the label of the object.

    Args:
        generators: one of each knowledge base; the facts of the first come first. Without any, trees have no
            facts, as those of a control.
        config: what is injected.

    Raises:
        UsageError: if two are of one knowledge base.
    """

    def __init__(self, generators: Sequence[Generator], config: TreeConfig | None = None) -> None:
        self._generators, self._config = tuple(generators), config or TreeConfig()
        self._by_name = {generator.kb.name: generator.kb for generator in generators}
        if len(self._by_name) < len(self._generators):
            raise UsageError("a knowledge base is named twice: once will do")
        self._facts = BoundedCache[tuple[str, int], tuple[Branch, ...]](_CACHE_BYTES)

    def __call__(self, texts: Iterable[Sequence[Document | LinkedDocument]]) -> Iterator[Tree]:
        """Yield a tree for each text, or pair of texts.

        Raises:
            UsageError: for a link to a knowledge base that is not here.
            UnknownEntity: for a link to an entity that the knowledge base does not have.
        """
        for documents in texts:
            hooks = [
                hook for number, document in enumerate(documents) for hook in self._hooks(number, document)
            ]
            yield Tree(tuple(document.text for document in documents), tuple(hooks))

    def _hooks(self, number: int, document: Document | LinkedDocument) -> Iterator[Hook]:
        if not self._generators:
            return
        mentions = self._linked(document) if isinstance(document, LinkedDocument) else self._queried(document)
        with_facts = (mention for mention in mentions if mention[2])  # who has no facts covers nobody who has
        for (start, end), some in groupby(_without_overlaps(with_facts), key=lambda mention: mention[:2]):
            branches = islice(chain.from_iterable(mention[2] for mention in some), self._config.max_facts)
            yield Hook(number, start, end, tuple(branches))

    def _queried(self, document: Document) -> Iterator[_Facts]:
        alone = len(self._generators) == 1  # else whose candidates they are is not said
        for generator in self._generators:
            mentions = document.mentions
            if mentions is None:
                [queried] = generator([document])
                mentions = longest(queried.mentions or [])
            else:
                check_mentions(document)
            for mention in mentions:
                candidates = mention.candidates
                if candidates is None or (document.mentions is not None and not alone):
                    candidates = generator.candidates_of(mention)
                if len(candidates):
                    yield mention.start, mention.end, self._injected(generator.kb, int(candidates.ids[0]))

    def _linked(self, document: LinkedDocument) -> Iterator[_Facts]:
        for link in document.links:
            if link.entity is None:
                continue
            kb = self._by_name.get(link.kb)
            if kb is None:
                here = ", ".join(self._by_name)
                raise UsageError(f"{link.text!r} is linked to {link.kb!r}; the knowledge bases here: {here}")
            yield link.start, link.end, self._injected(kb, kb.id(link.entity))

    def _injected(self, kb: KnowledgeBase, entity: int) -> tuple[Branch, ...]:
        """Return the first facts of an entity."""
        branches = self._facts.get((kb.name, entity))
        if branches is None:
            statements = [*islice(self._statements(kb, entity), self._config.max_facts)]
            key = kb.key(entity) if statements else ""
            branches = tuple(
                Branch(words if self._config.relations else words[1:], kb.name, key) for words in statements
            )
            self._facts.keep((kb.name, entity), branches)
        return branches

    def _statements(self, kb: KnowledgeBase, entity: int) -> Iterator[tuple[str, str]]:
        """Yield the statements of an entity: a relation or attribute, and the label or value it has."""
        for fact in kb.match(entity):
            other = kb[fact.object]
            yield fact.relation, other.label or other.key
        if self._config.attributes:
            for name, value in kb[entity].attributes.items():
                for item in value if isinstance(value, list) else [value]:
                    is_value = isinstance(item, str | int | float) and not isinstance(item, bool)
                    if is_value and f"{item}".strip():
                        yield name, f"{item}"


def generators_of(kbs: Sequence[KnowledgeBase], query: str) -> list[Generator]:
    """Return what finds the mentions of knowledge bases, for `TreeBuilder`.

    Args:
        kbs: any.
        query: `jieba`, its words that are surfaces; `longest`, the longest surfaces, as the generator that
            suits a knowledge base finds them, and `link` too, where documents come with their links.

    Raises:
        UnknownName: if there is no such query, or this kgkit has no generator that suits a knowledge base.
        MissingExtra: if jieba is wanted, and not installed.
    """
    if query not in QUERIES:
        raise UnknownName("query", query, QUERIES)
    if query == "jieba":
        return [SegmentGenerator(kb, jieba_segments(kb.surfaces())) for kb in kbs]
    return [generator_for(kb) for kb in kbs]


def _without_overlaps(mentions: Iterable[_Facts]) -> Iterator[_Facts]:
    """Yield mentions by start: of those that overlap the first, of these the longest, and all of its span."""
    span = (0, 0)
    for mention in sorted(mentions, key=lambda mention: (mention[0], -mention[1])):
        if mention[0] >= span[1] or mention[:2] == span:
            span = mention[:2]
            yield mention
