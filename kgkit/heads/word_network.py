"""The tagger over a frozen encoder as it is asked, `kgkit.heads.frozen_tagger`, in NumPy; and its labels.

W  words of a window    N · H  numbers of the encoder for one    L  labels, as in `kgkit.heads.tagger`
B  stretches of words that are decoded together                  K  types of names
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import DamagedModel
from kgkit.heads.arrays import Shapes, gelu, linear, linear_shapes, norm, norm_shapes, read_arrays
from kgkit.heads.settings import FrozenTaggerConfig, read_settings
from kgkit.types import Matrix, Numbers

KIND: Final = "frozen-tagger"

Labels = NDArray[np.float64]


class WordNetwork:
    """Says of each word whether a name begins, goes on, or neither.

    Args:
        config: settings of the head.
        weights: parameters of the head, by name.
    """

    def __init__(self, config: FrozenTaggerConfig, weights: dict[str, Matrix]) -> None:
        self.config, self._weights = config, weights

    @classmethod
    def load(cls, folder: Path, width: int, depth: int) -> "WordNetwork":
        """Return the head in *folder*, over an encoder of so many numbers and layers.

        Raises:
            NotThere: if there is none.
            DamagedModel: if its files cannot be read, or do not fit each other, or the encoder.
            UsageError: if it is another kind of head.
        """
        config = read_settings(folder, KIND, FrozenTaggerConfig)
        if max(config.layers) > depth:
            raise DamagedModel(
                f"the head in {folder} cannot be loaded: it reads layers {config.layers}, its encoder has "
                f"{depth}"
            )
        return cls(config, read_arrays(folder, _shapes(config, width)))

    def __call__(self, features: Matrix, shapes: Numbers) -> Matrix:
        """Return the logits of the labels of words (W, L).

        Args:
            features: (W, N · H) what the encoder gives for each.
            shapes: (W,) shapes of the words.
        """
        weights = self._weights
        hidden = linear(weights, "project", norm(weights, "norm", features)) + weights["shape.weight"][shapes]
        hidden = norm(weights, "norms.0", gelu(hidden))
        nothing = np.zeros((1, hidden.shape[1]), np.float32)
        for block in range(self.config.blocks):
            beside = [np.concatenate([nothing, hidden[:-1]]), hidden, np.concatenate([hidden[1:], nothing])]
            mixed = linear(weights, f"blocks.{block}", np.concatenate(beside, axis=1))  # (W, D)
            hidden = norm(weights, f"norms.{block + 1}", hidden + gelu(mixed))
        return linear(weights, "label", hidden)


def _shapes(config: FrozenTaggerConfig, width: int) -> Shapes:
    inside, width = width * len(config.layers), config.width
    shapes = {
        **norm_shapes("norm", inside), **linear_shapes("project", width, inside),
        **linear_shapes("label", config.labels, width), **norm_shapes("norms.0", width),
        "shape.weight": (config.shapes, width),
    }  # fmt: skip
    for block in range(config.blocks):
        shapes |= {
            **linear_shapes(f"blocks.{block}", width, 3 * width),
            **norm_shapes(f"norms.{block + 1}", width),
        }
    return shapes


# -- labels -----------------------------------------------------------------


class TaggedSpan(NamedTuple):
    """A name: its first word, one past the last, its type's index in the settings, its score in [0, 1]."""

    first: int
    end: int
    type: int
    score: float


def decode(logits: Matrix, words: NDArray[np.bool_]) -> list[list[TaggedSpan]]:
    """Return the names of the likeliest well-formed sequence of each row, in order, none overlapping another.

    Args:
        logits: (B, W, L).
        words: (B, W) bool, whether there is a word: the first ones of each row.
    """
    if not logits.size:
        return [[] for _ in logits]
    scores = logits.astype(np.float64)
    scores -= _log_sum(scores)[..., None]  # (B, W, L) log probabilities
    # A word that is not there is outside for certain: it changes no sum.
    outside = np.full(scores.shape[-1], -np.inf)
    outside[0] = 0.0
    scores = np.where(words[..., None], scores, outside)
    labels = _likeliest(scores).tolist()
    before, after, total = _sums(scores)
    names_of_rows = []
    for row, sequence in enumerate(labels):
        names = []
        for first, end, kind in _names(sequence):
            begin, inside = 1 + 2 * kind, 2 + 2 * kind
            own = scores[row, first, begin] + scores[row, first + 1 : end, inside].sum()
            share = before[row, first] + own + after[row, end] - total[row]
            names.append(TaggedSpan(first, end, kind, min(1.0, float(np.exp(share)))))
        names_of_rows.append(names)
    return names_of_rows


def _names(labels: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return first word, one past the last, and type of each name of well-formed labels."""
    begins = [index for index, label in enumerate(labels) if label % 2]
    names = []
    for begin in begins:
        end = begin + 1
        while end < len(labels) and labels[end] == labels[begin] + 1:
            end += 1
        names.append((begin, end, labels[begin] // 2))
    return names


def _pairs(scores: Labels) -> Labels:
    """Return (B, K, 2): for each type what begins a name and what goes on in one, of scores (B, L)."""
    return scores[:, 1:].reshape(len(scores), -1, 2)


def _log_sum(scores: Labels) -> Labels:
    """Return the logarithm of the sum of exponentials over the last dimension."""
    return np.asarray(np.logaddexp.reduce(scores, axis=-1))


def _likeliest(scores: Labels) -> NDArray[np.int64]:
    """Return the labels (B, W) of the likeliest well-formed sequences, for log probabilities (B, W, L)."""
    rows, count, labels = scores.shape
    best = scores[:, 0].copy()  # (B, L), of the sequences up to a word that end in a label
    best[:, 2::2] = -np.inf
    came_by = np.zeros((count, rows, labels), np.int64)
    for index in range(1, count):
        arrived = np.repeat(best.max(-1, keepdims=True), labels, axis=1)  # before what goes on in nothing
        came = np.repeat(best.argmax(-1)[:, None], labels, axis=1)
        pairs = _pairs(best)  # (B, K, 2), before what goes on in a name
        arrived[:, 2::2] = pairs.max(-1)
        came[:, 2::2] = pairs.argmax(-1) + np.arange(1, labels, 2)
        best, came_by[index] = arrived + scores[:, index], came
    path = [best.argmax(-1)]  # (B,)
    for index in range(count - 1, 0, -1):
        path.append(came_by[index][np.arange(rows), path[-1]])
    return np.stack(path[::-1], axis=1)


def _sums(scores: Labels) -> tuple[Labels, Labels, Labels]:
    """Return the log of sums over well-formed sequences, for log probabilities (B, W, L).

    Returns:
        (B, W) of what stands before a word; (B, W + 1) of what stands from a word on, if no name goes on in
        it; (B,) of the whole.
    """
    rows, count, labels = scores.shape
    before = np.zeros((rows, count + 1))
    reached = np.full((rows, labels), -np.inf)  # (B, L) up to a word, that end in a label
    for index in range(count):
        arrived = np.repeat(before[:, index, None], labels, axis=1)
        arrived[:, 2::2] = _log_sum(_pairs(reached))
        reached = arrived + scores[:, index]
        before[:, index + 1] = _log_sum(reached)
    after = np.zeros((rows, count + 1))
    follows = np.zeros((rows, labels))  # (B, L) from a word on, if the one before has the label
    for index in range(count - 1, -1, -1):
        coming = follows + scores[:, index]  # (B, L)
        free = _log_sum(np.concatenate([coming[:, :1], coming[:, 1::2]], axis=-1))[:, None]  # (B, 1)
        after[:, index] = free[:, 0]
        follows = np.repeat(free, labels, axis=1)
        within = np.logaddexp(free, coming[:, 2::2])  # (B, K)
        follows[:, 1::2], follows[:, 2::2] = within, within
    return before[:, :-1], after, before[:, -1]
