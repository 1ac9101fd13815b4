"""One handle over one build of a knowledge base: the query API."""

from kgkit.kb.facts import Direction
from kgkit.kb.handle import POS, KnowledgeBase, Node, open_kb

__all__ = ["POS", "Direction", "KnowledgeBase", "Node", "open_kb"]
