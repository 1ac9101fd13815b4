"""Wikipedia2Vec (Yamada et al. 2016): words and entities in one space, read from files or trained on a dump.

`reading` brings a file's rows to the entities of a KB, `files` knows the formats, and `training` runs the
package.
"""

from kgkit.embedding.wikipedia2vec.reading import (
    Wikipedia2VecConfig,
    all_candidates,
    read_wikipedia2vec,
    read_words,
    train_wikipedia2vec,
)
from kgkit.embedding.wikipedia2vec.training import SkipGramConfig

__all__ = [
    "SkipGramConfig",
    "Wikipedia2VecConfig",
    "all_candidates",
    "read_wikipedia2vec",
    "read_words",
    "train_wikipedia2vec",
]
