"""Wikipedia2Vec (Yamada et al. 2016): words and entities in one space, read from files.

`reading` brings a file's rows to the entities of a KB, `files` knows the formats.
"""

from kgkit.embedding.wikipedia2vec.reading import Wikipedia2VecConfig, read_wikipedia2vec, read_words

__all__ = ["Wikipedia2VecConfig", "read_wikipedia2vec", "read_words"]
