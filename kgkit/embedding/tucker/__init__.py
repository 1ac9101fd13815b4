"""TuckER (Balažević et al. 2019): PyKEEN's model, trained on the facts of a KB.

    config      settings
    triples     the facts of a KB as an array, which of them are held out, and the tails of a question
    batches     triples that share their candidates, and the chance of each
    scoring     queries, the loss of a batch, ranks of held-out triples
    training    the loop, its optimizers and checkpoints
    method      from a KB to published vectors

Importing this package loads no torch; what needs it is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.embedding.tucker.method import embed_tucker

__all__ = ["TuckERConfig", "embed_tucker"]

__getattr__ = lazy_attributes(__name__, {"embed_tucker": ".method"})
