"""Batches of words for KALM, in two ways.

    B  rows    T  words that a row reads    S  words that it predicts    N  words of the whole sequence

Stretches: a model from left to right reads the sequence divided into B rows side by side, a stretch of each
at a time, and carries its states from one to the next. Each word but the first is predicted once; S = T.

    row 0   w0 w1 w2 │ w3 w4 w5 │ …          reads w0 w1 w2, predicts w1 w2 w3
    row 1   w9 …     │          │

Windows: a model of both directions reads windows that overlap, and carries nothing. It predicts the inner
words of each, so each word but the first and the last is predicted once; S = T − 2.

Departures:
    AWD-LSTM's code draws the length of each stretch, and scales the learning rate by it. Here the ends of
    stretches are moved by up to a tenth of one, so that an epoch has as many batches as any other.
    AWD-LSTM's code leaves out words that do not fill the rows; here they are read.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kgkit.inputs.windows import Window, windows
from kgkit.types import Numbers

_MOVED = 10  # a part in so many of a stretch is what its end is moved by


class WordBatch(NamedTuple):
    """Words that are read, and those that are predicted.

    Attributes:
        words: (B, T) int64.
        lengths: (B,) int64, words of each row.
        targets: (B, S) int64.
        real: (B, S) bool, which of them are to be predicted.
        first: whether the states begin anew here.
    """

    words: Tensor
    lengths: Tensor
    targets: Tensor
    real: Tensor
    first: bool = True

    def to(self, device: torch.device, **_: object) -> "WordBatch":
        """Return it on a device."""
        words, lengths, targets, real = (part.to(device) for part in self[:4])
        return WordBatch(words, lengths, targets, real, self.first)


class Stretches:
    """The batches of a sequence in rows, for a model that carries its states: see `Batches`.

    Args:
        sequence: (N,) words.
        rows: B, at most.
        length: words of a stretch.
        seed: seed of what the ends of stretches are moved by in an epoch; None: they stay.
    """

    def __init__(self, sequence: Numbers, rows: int, length: int, seed: int | None = None) -> None:
        count = max(len(sequence) - 1, 0)  # words that are predicted
        self.rows, self.length, self.seed = max(1, min(rows, count)), length, seed
        self.width = -(-count // self.rows)  # words of a row
        size = self.rows * self.width + 1
        padded = torch.from_numpy(np.pad(sequence, (0, size - len(sequence)), mode="edge"))
        self.read = padded[:-1].view(self.rows, self.width)
        self.targets = padded[1:].view(self.rows, self.width)
        self.real = (torch.arange(size - 1) < count).view(self.rows, self.width)

    def __len__(self) -> int:
        return -(-self.width // self.length)

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[WordBatch]:
        """Yield the stretches at *indices* of an epoch, in their order."""
        ends = np.arange(1, len(self)) * self.length
        if self.seed is not None:
            most = self.length // _MOVED
            ends = ends + np.random.default_rng([self.seed, number]).integers(-most, most + 1, len(ends))
        cuts = [0, *np.minimum(ends, self.width - 1).tolist(), self.width]
        for index in indices:
            part = slice(cuts[index], cuts[index + 1])
            words = self.read[:, part]
            lengths = torch.full((self.rows,), words.shape[1])
            yield WordBatch(words, lengths, self.targets[:, part], self.real[:, part], first=index == 0)


def word_windows(count: int, *, length: int, context: int) -> list[Window]:
    """Return the windows of a sequence for a model of both directions; each has three words at least.

    Args:
        count: N.
        length: words of a window, at most.
        context: words on each side that are read for the others' sake.
    """
    if count < 3:
        return []
    every = windows(count, (), size=length, context=context)
    # The first word alone, or the last one, is not predicted.
    return [window for window in every if window.own < count - 1 and window.own_end > 1]


def window_batch(sequences: Sequence[Numbers], parts: Sequence[Window]) -> WordBatch:
    """Return windows as a batch, each of a sequence (N,) of its own."""
    lengths = [part.end - part.begin for part in parts]
    words = np.zeros((len(parts), max(lengths)), np.int64)
    real = np.zeros(words.shape, np.bool_)
    for row, (sequence, part) in enumerate(zip(sequences, parts, strict=True)):
        words[row, : lengths[row]] = sequence[part.begin : part.end]
        real[row, part.own - part.begin : part.own_end - part.begin] = True
        real[row, [0, lengths[row] - 1]] = False
    read, predicted = torch.from_numpy(words), torch.from_numpy(real)
    return WordBatch(read, torch.tensor(lengths), read[:, 1:-1], predicted[:, 1:-1])
