"""Vectors to look at: the embedding projector's pair of files, and a picture.

    vectors.tsv     a row a point, its numbers separated by tabs
    metadata.tsv    a heading, then a row a point: key, label, …  (one column alone has no heading)

The pair is what https://projector.tensorflow.org loads.

    P  points    D  width
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import MissingExtra, UnknownName, UsageError
from kgkit.types import Matrix, Numbers, Progress
from kgkit.vectors.scan import lengths_of, unit

Method = Literal["pca", "tsne"]
Points = NDArray[np.float32]
"""(P, 2)"""

VECTORS: Final = "vectors.tsv"
METADATA: Final = "metadata.tsv"

_BLOCK: Final = 4096
_FIRST: Final = 50  # components that t-SNE is given, as its authors do
_PERPLEXITY: Final = 30.0


def sample_rows(matrix: Matrix, limit: int, seed: int = 0, *, among: Numbers | None = None) -> Numbers:
    """Return up to *limit* rows that have a vector, drawn evenly, in order; 0 is no limit.

    Args:
        matrix: (R, D).
        limit: largest number of rows.
        seed: seed of what is drawn.
        among: rows to draw from; None for all.
    """
    rows = np.flatnonzero(lengths_of(matrix) > 0)
    if among is not None:
        rows = np.intersect1d(rows, among)
    if not limit or len(rows) <= limit:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, limit, replace=False))


def write_projector(
    folder: Path,
    matrix: Matrix,
    rows: Numbers,
    columns: Sequence[str],
    metadata: Iterable[Sequence[str]],
    progress: Progress | None = None,
) -> None:
    """Write the embedding projector's pair of files into *folder*.

    Args:
        folder: folder that exists.
        matrix: (R, D).
        rows: (P,) rows to be written.
        columns: headings of the metadata.
        metadata: a row of fields for each point; tabs and ends of lines in them become spaces.
        progress: callback that is told how many points are done.
    """
    plain = np.asarray(matrix)
    with (folder / VECTORS).open("w", encoding="ascii", newline="\n") as file:
        for at in range(0, len(rows), _BLOCK):
            for row in plain.take(rows[at : at + _BLOCK], axis=0).tolist():
                file.write("\t".join(f"{number:.7g}" for number in row) + "\n")
            if progress is not None:
                progress("writing", min(at + _BLOCK, len(rows)), len(rows))
    with (folder / METADATA).open("w", encoding="utf-8", newline="\n") as file:
        if len(columns) > 1:  # the projector's own rule
            file.write("\t".join(map(_field, columns)) + "\n")
        for fields in metadata:
            file.write("\t".join(map(_field, fields)) + "\n")


def _field(text: str) -> str:
    return " ".join(text.split()) or "-"  # a line that is empty would be passed over


def checked_method(name: str) -> Method:
    """Return *name*.

    Raises:
        UnknownName: if there is no such method.
    """
    for method in get_args(Method):
        if method == name:
            valid: Method = method
            return valid
    raise UnknownName("method", name, get_args(Method))


def project_rows(matrix: Matrix, rows: Numbers, method: Method = "tsne", seed: int = 0) -> Points:
    """Return a place in the plane for each of *rows*.

    `pca` keeps the two directions of most variance: what differs in others lies on one heap. `tsne` (van der
    Maaten and Hinton 2008, on the 50 first components) keeps neighbours together; how far apart its clouds
    lie, and how wide they are, says nothing.

    Args:
        matrix: (R, D); rows are taken at length 1, so near means near by cosine.
        rows: (P,) rows that are no zeros.
        method: `pca` or `tsne`.
        seed: seed of what t-SNE draws.

    Raises:
        UsageError: if there are fewer than 3 points.
        MissingExtra: if t-SNE is asked for and scikit-learn is not installed.
    """
    if len(rows) < 3:
        raise UsageError(f"{len(rows)} vectors make no picture")
    points = unit(np.asarray(matrix).take(rows, axis=0))  # (P, D)
    if method == "pca":
        return components(points, 2)
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingExtra("scikit-learn", "plot") from error
    shorter = components(points, _FIRST)  # (P, 50)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    result: Points = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(shorter)
    return result


def components(points: Matrix, count: int) -> Matrix:
    """Return (P, count), the principal components of *points* (P, D), zeros where D is less than *count*.

    The sign of each is such that its largest number is positive: equal points give equal pictures.
    """
    centred = points - points.mean(axis=0)
    # D x D rather than P x D: there are more points than numbers in a row.
    values, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    chosen = directions[:, np.argsort(-values, kind="stable")[:count]].astype(np.float32)  # (D, count)
    coordinates = centred @ chosen  # (P, count)
    if len(coordinates):
        largest = np.take_along_axis(coordinates, np.abs(coordinates).argmax(axis=0)[None], 0)
        coordinates = coordinates * np.where(largest < 0, -1, 1).astype(np.float32)
    return np.pad(coordinates, ((0, 0), (0, count - coordinates.shape[1])))
