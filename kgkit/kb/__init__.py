"""One handle over one build of a knowledge base: the query API."""

from kgkit.kb.facts import Direction
from kgkit.kb.handle import POS, KnowledgeBase, Node, only_kb, open_kb

__all__ = ["POS", "Direction", "KnowledgeBase", "Node", "only_kb", "open_kb"]
