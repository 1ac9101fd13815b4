"""From candidates to links with scores.

Importing this package loads none of it; a name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.linking.coherence import CoherenceConfig, GraphCoherence
    from kgkit.linking.corrections import Correction, Corrections
    from kgkit.linking.linker import Linker
    from kgkit.linking.multi_kb import link
    from kgkit.linking.scoring import PriorScorer, ScoreParts, Scorer
    from kgkit.linking.settings import LinkSettings

_WHERE = {
    "CoherenceConfig": ".coherence",
    "Correction": ".corrections",
    "Corrections": ".corrections",
    "GraphCoherence": ".coherence",
    "LinkSettings": ".settings",
    "Linker": ".linker",
    "PriorScorer": ".scoring",
    "ScoreParts": ".scoring",
    "Scorer": ".scoring",
    "link": ".multi_kb",
}

__all__ = [
    "CoherenceConfig",
    "Correction",
    "Corrections",
    "GraphCoherence",
    "LinkSettings",
    "Linker",
    "PriorScorer",
    "ScoreParts",
    "Scorer",
    "link",
]

__getattr__ = lazy_attributes(__name__, _WHERE)
