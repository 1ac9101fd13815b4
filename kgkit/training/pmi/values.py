"""From counts to the values of a table: sums by SQL, and PMI of the pairs in the order of the table."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.building.engines.session import Session, first_row
from kgkit.errors import UsageError
from kgkit.training.pmi.settings import PMITraining

_POSITIVE: Final = 1e-9  # a smaller PMI is 0 to rounding


class Vocabulary(NamedTuple):
    """The words of a table.

    Attributes:
        counts: how often each word occurs, in the order of the bytes of the words.
        occurrences: how many words the texts have, with those that the table does not have.
    """

    counts: dict[str, int]
    occurrences: int


class PairValues(NamedTuple):
    """The values of a table, in files of numbers without a header.

    Attributes:
        starts: (V + 1,) where the pairs of each word begin.
        columns: file of the second words, int32.
        values: file of the values, float64.
        largest: the largest positive PMI, in nats.
        pairs: number of pairs, (x, y) and (y, x) counted once.
    """

    starts: NDArray[np.int64]
    columns: Path
    values: Path
    largest: float
    pairs: int


def count_vocabulary(session: Session, training: PMITraining) -> Vocabulary:
    """Return the words of the table, of runs of word counts.

    Raises:
        UsageError: if no word is frequent enough.
    """
    session.make("words", "SELECT key, sum(count)::BIGINT AS n FROM records GROUP BY key")
    total = first_row(session, "SELECT coalesce(sum(n), 0)::BIGINT FROM words")
    frequent = f"FROM words WHERE n >= {training.min_count} ORDER BY n DESC, key LIMIT {training.words}"
    counts: dict[str, int] = {}
    for batch in session.rows(f"SELECT key, n FROM (SELECT key, n {frequent}) ORDER BY encode(key)"):
        counts |= dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    if not counts:
        raise UsageError(
            f"no word occurs {training.min_count} times in the texts: lower --min-count, or name more texts"
        )
    return Vocabulary(counts, total[0] if total else 0)


def write_pair_values(session: Session, words: int, training: PMITraining, work: Path) -> PairValues:
    """Write the values of all pairs that are frequent enough, of runs of pair counts.

    Raises:
        UsageError: if there is none.
    """
    session.make(
        "pairs",
        f"SELECT key // {words} AS a, key % {words} AS b, sum(count)::BIGINT AS n FROM records GROUP BY key",
    )
    marginals = np.zeros(words, np.int64)  # N(x): the pair of a word with itself counts twice
    sums = "SELECT a AS word, n FROM pairs UNION ALL SELECT b AS word, n FROM pairs"
    for batch in session.rows(f"SELECT word, sum(n)::BIGINT FROM ({sums}) GROUP BY word"):
        numbers, totals = (column.to_numpy() for column in batch.columns)
        marginals[numbers] = totals
    frequent = f"FROM pairs WHERE n >= {training.min_pairs}"
    rows = f"SELECT a, b, n {frequent} UNION ALL SELECT b AS a, a AS b, n {frequent} AND a <> b"
    table = PairValues(np.zeros(words + 1, np.int64), work / "columns", work / "values", 0.0, 0)
    largest, twins, of_word = 0.0, 0, table.starts[1:]
    with table.columns.open("wb") as columns, table.values.open("wb") as values:
        for batch in session.rows(f"SELECT a, b, n FROM ({rows}) ORDER BY a, b"):
            first, second, counts = (column.to_numpy() for column in batch.columns)
            pmi = pmi_of(first, second, counts, marginals)
            positive = pmi > _POSITIVE
            columns.write(second[positive].astype(np.int32).tobytes())
            values.write(pmi[positive].tobytes())
            largest = max(largest, float(pmi.max(initial=0)))
            twins += int((positive & (first == second)).sum())
            np.add.at(of_word, first[positive], 1)
    np.cumsum(of_word, out=of_word)
    if not (stored := int(of_word[-1])):
        raise UsageError(
            f"no two words are a pair {training.min_pairs} times, and more often than by chance: lower "
            "--min-pairs and --min-count, or name more texts"
        )
    return table._replace(largest=largest, pairs=(stored + twins) // 2)


def pmi_of(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    counts: NDArray[np.int64],
    marginals: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the PMI of pairs of words, in nats.

    Args:
        first, second: (n,) numbers of the words.
        counts: (n,) how often they are a pair.
        marginals: (V,) N(x) of each word.
    """
    total = np.log(float(marginals.sum()))
    # Of a pair of two words N(x, y) = N(y, x); a pair of a word with itself is both.
    joint = np.log(counts) + np.where(first == second, np.log(2), 0)
    result: NDArray[np.float64] = joint + total - (np.log(marginals[first]) + np.log(marginals[second]))
    return result
