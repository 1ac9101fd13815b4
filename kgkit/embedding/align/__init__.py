"""The map from one space of vectors into another, as E-BERT has it (Poerner et al. 2020, 3.1).

`anchors` says which rows of the two spaces are one thing, `texts` takes or encodes the words of a target,
`fitting` finds the map and checks it, and `alignment` keeps it.
"""

from kgkit.embedding.align.alignment import Alignment
from kgkit.embedding.align.fitting import Check, Norms, Report
from kgkit.embedding.align.texts import align_encoder

__all__ = ["Alignment", "Check", "Norms", "Report", "align_encoder"]
