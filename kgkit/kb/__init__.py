"""One handle over one build of a knowledge base: the query API."""

from kgkit.kb.differences import Difference, differences
from kgkit.kb.facts import Direction
from kgkit.kb.handle import KnowledgeBase, Node
from kgkit.kb.opening import open_kb
from kgkit.kb.parts_of_speech import POS
from kgkit.kb.search import SearchResult

__all__ = [
    "POS",
    "Difference",
    "Direction",
    "KnowledgeBase",
    "Node",
    "SearchResult",
    "differences",
    "open_kb",
]
