"""One handle over one build of a knowledge base: the query API."""

from kgkit.kb.differences import Difference, differences
from kgkit.kb.facts import Direction
from kgkit.kb.handle import POS, KnowledgeBase, Node, open_kb

__all__ = ["POS", "Difference", "Direction", "KnowledgeBase", "Node", "differences", "open_kb"]
