"""One handle over one build of a knowledge base: the query API."""

from kgkit.kb.differences import Difference, differences
from kgkit.kb.facts import Direction
from kgkit.kb.handle import KnowledgeBase, open_kb
from kgkit.kb.search import SearchResult
from kgkit.kb.surfaces import POS, EntitySurface, Node

__all__ = [
    "POS",
    "Difference",
    "Direction",
    "EntitySurface",
    "KnowledgeBase",
    "Node",
    "SearchResult",
    "differences",
    "open_kb",
]
