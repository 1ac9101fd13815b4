"""TuckER (Balažević et al. 2019): PyKEEN's model, trained by a loop of our own on the facts of a KB.

    config              every setting, and two sets of them
    triples             the facts of a KB as an array, and which of them are held out
    true_tails          which tails are true of a head and a relation
    negatives           batches that share their candidates, and the chance of each
    contraction         queries, with the core contracted once for each relation
    shared_softmax      the sampled softmax and its gradient
    shared_negatives    PyKEEN's training loop with all this
    rows                the optimizer of a large table
    ranking, watch      ranks of held-out triples; stopping, checkpoints, the curve
    method              from a KB to published vectors

Importing this package loads no torch; what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.embedding.tucker.method import embed_tucker
    from kgkit.embedding.tucker.rows import RowOptimizer
    from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop

__all__ = ["RowOptimizer", "SharedNegativesTrainingLoop", "TuckERConfig", "embed_tucker"]

__getattr__ = lazy_attributes(
    __name__,
    {
        "RowOptimizer": ".rows",
        "SharedNegativesTrainingLoop": ".shared_negatives",
        "embed_tucker": ".method",
    },
)
