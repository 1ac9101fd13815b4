"""How well a masked language model predicts the masked word pieces of each passage, as files keep it.

A line is a passage, as JSON: `set`, the name of its data; `passage`, its number there, from 1; `pieces`,
masked word pieces; `correct`, those that are predicted right; `nats`, the sum of their negative
log-likelihoods; `masks`, a digest of which pieces are masked.

    P  passages
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import SourceError, UsageError, abbreviate
from kgkit.files import json_lines, written

MOST_NATS: Final = 700.0
"""Nats of a piece above which e to them is no number: e to 700 stands for it."""


class PassageScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file.

    Attributes:
        set: name of the data.
        passage: number of the passage in it, from 1.
        pieces: masked word pieces.
        correct: how many of them are predicted right.
        nats: sum of their negative log-likelihoods.
        masks: digest of which pieces are masked.
    """

    set: str
    passage: int
    pieces: int
    correct: int
    nats: float
    masks: str


class ScoredPassages(NamedTuple):
    """Scores of passages.

    Attributes:
        columns: (P, 3) nats, correct and masked pieces.
        masks: of each passage a digest of which pieces are masked.
    """

    columns: NDArray[np.float64]
    masks: list[str]


def perplexity_of(nats: float) -> float:
    """Return e to a mean surprise in nats; of one above `MOST_NATS`, which has none, e to that."""
    return math.exp(min(nats, MOST_NATS)) if math.isfinite(nats) else nats


def perplexity_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the perplexity (…) of sums (…, 3): nats, correct, pieces; 1 of none."""
    perplexity: NDArray[np.float64] = np.exp(
        np.minimum(sums[..., 0] / np.maximum(sums[..., 2], 1), MOST_NATS)
    )
    return perplexity


def accuracy_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the accuracy (…) of sums (…, 3): nats, correct, pieces; 0 of none."""
    accuracy: NDArray[np.float64] = sums[..., 1] / np.maximum(sums[..., 2], 1)
    return accuracy


def write_passage_scores(path: Path, sets: Iterable[tuple[str, ScoredPassages]]) -> None:
    """Write a line for each passage.

    Args:
        path: the file.
        sets: of each data set its name, and the scores of its passages.

    Raises:
        NotThere: if there is no folder to put the file in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    with written(path) as file:
        for name, (columns, masks) in sets:
            rows = zip(columns.tolist(), masks, strict=True)
            for number, ((nats, correct, pieces), own) in enumerate(rows, 1):
                row = PassageScore(name, number, int(pieces), int(correct), nats, own)
                file.write(msgspec.json.encode(row) + b"\n")


def read_passage_scores(path: Path, names: Sequence[str]) -> dict[str, ScoredPassages]:
    """Return the scores of the passages of each data set.

    Args:
        path: the file.
        names: names of the sets.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or a line is no score of a passage, of another set, or not of the
            passage that follows.
    """
    rows: dict[str, list[PassageScore]] = {name: [] for name in names}
    expected = "no score of a passage, as --predictions writes it"
    for number, line, score in json_lines(path, PassageScore, expected):
        if score.set not in rows:
            raise SourceError(
                f"no set is called {abbreviate(repr(score.set))}, they are {', '.join(names)}: give the "
                "scores of the same --data",
                path=path, line=number, text=line,
            )  # fmt: skip
        own = rows[score.set]
        if score.passage != len(own) + 1:
            raise SourceError(
                f"expected passage {len(own) + 1} of {score.set}, found {score.passage}: let --predictions "
                "write the file anew",
                path=path, line=number, text=line,
            )  # fmt: skip
        if not (0 <= score.correct <= score.pieces and 0 <= score.nats < math.inf):
            raise SourceError(
                f"{score.pieces} pieces, {score.correct} correct and {score.nats} nats cannot be the "
                "scores of a passage",
                path=path, line=number, text=line,
            )  # fmt: skip
        own.append(score)
    return {
        name: ScoredPassages(
            np.array([(row.nats, row.correct, row.pieces) for row in own], np.float64).reshape(-1, 3),
            [row.masks for row in own],
        )
        for name, own in rows.items()
    }


def check_same_pieces(path: Path, name: str, first: ScoredPassages, masks: Sequence[str]) -> None:
    """Refuse scores of another model for other masked word pieces.

    Args:
        path: file of the other's scores.
        name: name of a data set.
        first: the other's scores of it.
        masks: digests of the passages that the model reads, (P,); empty strings where that is not known yet.

    Raises:
        UsageError: if there are more or fewer passages, or other pieces are masked.
    """
    differ = len(first.masks) != len(masks) or any(
        own and own != other for own, other in zip(masks, first.masks, strict=True)
    )
    if differ:
        raise UsageError(
            f"{path} has scores of {len(first.masks):,} passages of {name}, the model reads "
            f"{len(masks):,}, or other pieces are masked: compare models with one tokenizer, trained for "
            "texts of one size, on the same --data with the same --seed"
        )
