"""The map from one space of vectors into another, as E-BERT has it (Poerner et al. 2020, 3.1).

`anchors` says which rows of the two spaces are one thing, `fitting` finds the map and checks it, and
`alignment` keeps it.
"""

from kgkit.embedding.align.alignment import Alignment, align_entities, align_words
from kgkit.embedding.align.fitting import AlignConfig, Check, Report

__all__ = ["AlignConfig", "Alignment", "Check", "Report", "align_entities", "align_words"]
