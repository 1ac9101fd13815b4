"""A table of PMI in memory, for tests of what reads one."""

import numpy as np


class Table:
    """Values of pairs of words, in memory."""

    def __init__(self, pairs):
        self.pairs = {frozenset(pair): value for pair, value in pairs.items()}

    def values(self, words, others=None):
        columns = words if others is None else others
        rows = [[self.pairs.get(frozenset([word, other]), 0) for other in columns] for word in words]
        return np.array(rows, np.float32).reshape(len(words), len(columns))

    def strongest(self, words, k=10):
        words = [*dict.fromkeys(words)]
        others = sorted({word for pair in self.pairs for word in pair} - {*words})
        means = [(other, float(self.values(words, [other]).mean())) for other in others]
        return sorted((pair for pair in means if pair[1]), key=lambda pair: (-pair[1], pair[0]))[:k]


PMI = Table(
    {
        ("cat", "dog"): 0.5, ("dog", "barks"): 0.9, ("dog", "dog"): 1.0, ("dog", "bone"): 0.4,
        ("cat", "milk"): 0.6, ("barks", "bone"): 0.3, ("milk", "bone"): 0.1, ("eats", "fruit"): 0.7,
        ("the", "tree"): 0.2,
    }
)  # fmt: skip
