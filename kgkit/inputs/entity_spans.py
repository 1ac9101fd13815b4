"""Texts with the entities that they mention: from links, or from the candidates of mentions."""

from typing import NamedTuple

from kgkit.kb import KnowledgeBase
from kgkit.types import Document, LinkedDocument


class EntitySpan(NamedTuple):
    """A mention of an entity: its code points, end exclusive, and the entity's id in the knowledge base."""

    start: int
    end: int
    entity: int


class LinkedText(NamedTuple):
    """A text, and the entities that it mentions."""

    text: str
    spans: tuple[EntitySpan, ...] = ()


def linked_text(document: Document | LinkedDocument, kb: KnowledgeBase) -> LinkedText:
    """Return a text with its links, or with the likeliest candidates of its mentions.

    Args:
        document: document with links to *kb*, those to others are left out; or with mentions, each of which
            is read as its first candidate.
        kb: knowledge base of the entities; links to entities that it does not have are left out.
    """
    if isinstance(document, LinkedDocument):
        links = [link for link in document.links if link.entity is not None and link.kb == kb.name]
        entities = [kb.store.id_of(link.entity or "") for link in links]
        spans = [
            EntitySpan(link.start, link.end, entity)
            for link, entity in zip(links, entities, strict=True)
            if entity is not None
        ]
    else:
        spans = [
            EntitySpan(mention.start, mention.end, int(mention.candidates.ids[0]))
            for mention in document.mentions or ()
            if mention.candidates
        ]
    return LinkedText(document.text, tuple(spans))
