"""From candidates to links with scores."""

from kgkit.linking.coherence import CoherenceConfig, GraphCoherence
from kgkit.linking.link_texts import link
from kgkit.linking.linker import Linker, LinkerConfig
from kgkit.linking.models import MODELS
from kgkit.linking.scoring import PriorScorer, ScoreParts, Scorer

__all__ = [
    "MODELS",
    "CoherenceConfig",
    "GraphCoherence",
    "Linker",
    "LinkerConfig",
    "PriorScorer",
    "ScoreParts",
    "Scorer",
    "link",
]
