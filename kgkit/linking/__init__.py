"""From candidates to links with scores."""

from kgkit.linking.coherence import CoherenceConfig, GraphCoherence
from kgkit.linking.linker import MODELS, Linker, LinkerConfig, link

__all__ = ["MODELS", "CoherenceConfig", "GraphCoherence", "Linker", "LinkerConfig", "link"]
