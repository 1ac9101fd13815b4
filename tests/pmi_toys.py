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


def pmi_folder(folder, pairs):
    """Write a PMI table of words into *folder*, and return it."""
    import msgspec

    from kgkit.models.manifest import FORMAT, MANIFEST
    from kgkit.models.pmi import PMIManifest

    words = sorted({word for pair in pairs for word in pair})
    number = {word: index for index, word in enumerate(words)}
    both = {**pairs, **{(second, first): value for (first, second), value in pairs.items()}}
    cells = sorted((number[first], number[second], value) for (first, second), value in both.items())
    starts = np.searchsorted([row for row, _, _ in cells], range(len(words) + 1))
    arrays = {
        "words": np.frombuffer("".join(words).encode(), np.uint8),
        "ends": np.cumsum([len(word.encode()) for word in words]),
        "counts": np.ones(len(words), np.int64),
        "starts": starts.astype(np.int64),
        "columns": np.array([column for _, column, _ in cells], np.int32),
        "values": np.array([value for _, _, value in cells], np.float32),
    }
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    manifest = PMIManifest(
        format=FORMAT, kind="pmi", name=folder.name, window=5, largest=1.0,
        words=len(words), pairs=len(pairs),
    )  # fmt: skip
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder
