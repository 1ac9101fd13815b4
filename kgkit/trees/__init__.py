"""Sentence trees: a text with the facts that hang from its words (Liu et al. 2020, K-BERT).

    documents ──K-Query───▶ mentions, each with an entity
              ──K-Inject──▶ `Tree`: the texts, their mentions, and a `Branch` for each fact
              ──flatten───▶ `FlatTree`: N tokens, and three integers for each

    [CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now
      0    1   2    3    4   3     4        5       6      7    6    7    6     position
      0    0   0    1    1   0     0        0       2      2    3    3    0     branch
      0    1   1    1    1   0     0        2       2      2    2    2    0     hook

A branch begins where its mention ends, and the text goes on from there too: that is the *soft position*. The
tokens of the text are branch 0. A mention and all that hangs from it have one *hook*; other tokens have
none, 0. What may attend to what follows from the two, see `visible`: the text sees the text, a branch sees
itself, and a mention and each of its branches see each other. So a tree takes N numbers of each, and N × N
only where an attention wants them.

    building   K-Query and K-Inject: documents to trees
    flat       a tree as a sequence of tokens, and what sees what
    picture    a tree to look at
"""

from kgkit.trees.building import Branch, Hook, Tree, TreeBuilder, TreeConfig, generators_of
from kgkit.trees.flat import Cut, Flattener, FlatTree, Frame, Pieces, Strings, cutter, visible

__all__ = [
    "Branch",
    "Cut",
    "FlatTree",
    "Flattener",
    "Frame",
    "Hook",
    "Pieces",
    "Strings",
    "Tree",
    "TreeBuilder",
    "TreeConfig",
    "cutter",
    "generators_of",
    "visible",
]
