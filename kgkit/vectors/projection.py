"""Vectors to look at: the embedding projector's pair of files, and a picture.

    vectors.tsv     a row a point, its numbers separated by tabs
    metadata.tsv    a heading, then a row a point: key, label, …

The pair is what https://projector.tensorflow.org loads.

    P  points    D  width
"""

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.text import drawn_text, truncate
from kgkit.types import Matrix, Numbers, Progress
from kgkit.vectors.scan import lengths_of, unit

Points = NDArray[np.float32]
"""(P, 2)"""

VECTORS: Final = "vectors.tsv"
METADATA: Final = "metadata.tsv"
SUFFIXES: Final = (".png", ".svg", ".pdf")
"""Endings of the names of pictures."""

_BLOCK: Final = 4096
_COMPONENTS: Final = 50  # that t-SNE is given, as by its authors
_PERPLEXITY: Final = 30.0
_COLORS: Final = (
    "#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499",
    "#661100", "#6699CC",
)  # fmt: skip  # Paul Tol's, which people of any colour vision can tell apart
_OTHERS: Final = "#C9C9C9"


def sample_rows(matrix: Matrix, limit: int, *, among: Numbers | None = None) -> Numbers:
    """Return up to *limit* rows that have a vector, drawn evenly, in order; 0 is no limit.

    Args:
        matrix: (R, D).
        limit: largest number of rows.
        among: rows to draw from; None for all.
    """
    rows = np.flatnonzero(lengths_of(matrix) > 0)
    if among is not None:
        rows = np.intersect1d(rows, among)
    if not limit or len(rows) <= limit:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, limit, replace=False))


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
        columns: headings of the metadata, two at least.
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
        for fields in (columns, *metadata):
            file.write("\t".join(" ".join(text.split()) or "-" for text in fields) + "\n")


def project_rows(matrix: Matrix, rows: Numbers) -> Points:
    """Return a place in the plane for each of *rows*, by t-SNE (van der Maaten and Hinton 2008).

    Neighbours stay together; distances between clouds, and their widths, mean nothing.

    Args:
        matrix: (R, D); rows are scaled to length 1, so that near means near by cosine.
        rows: (P,) rows that are not zero.

    Raises:
        UsageError: if there are fewer than 3 points.
        ImportError: if scikit-learn is not installed.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if len(rows) < 3:
        raise UsageError(f"{len(rows)} vectors make no picture")
    points = unit(np.asarray(matrix).take(rows, axis=0))  # (P, D)
    shorter = PCA(min(_COMPONENTS, *points.shape), random_state=0).fit_transform(points)  # (P, ≤ 50)
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    start = "pca" if shorter.shape[1] > 1 else "random"
    result: Points = TSNE(perplexity=perplexity, init=start, random_state=0).fit_transform(shorter)
    return result


def picture(points: Points, groups: Sequence[str], *, suffix: str, title: str = "") -> bytes:
    """Return a picture of points as a file's content: the largest groups in colours, the others grey.

    Args:
        points: (P, 2).
        groups: group of each point; "" is none.
        suffix: one of `SUFFIXES`.
        title: title above it.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = Counter(groups)
    largest = sorted(filter(None, counts), key=lambda group: (-counts[group], group))[: len(_COLORS)]
    labels = np.array([group if group in largest else "" for group in groups])
    # Not pyplot, which would choose a screen. Equal points give equal files: a fixed salt, no date.
    settings: Any = {"svg.hashsalt": "kgkit", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(12, 8.4), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_title(_plain(title), loc="left")
        for group, color in (*zip(largest, _COLORS, strict=False), ("", _OTHERS)):
            x, y = points[labels == group].T
            if len(x):
                name = _plain(truncate(" ".join(group.split()), 28)) or "others"
                axes.scatter(
                    x, y, c=color, s=9, linewidths=0, label=f"{name}  {len(x):,}", zorder=bool(group)
                )
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, markerscale=2.5)
        buffer = io.BytesIO()
        undated = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(buffer, format=suffix.lower()[1:], metadata=undated[suffix.lower()])
    return buffer.getvalue()


def _plain(text: str) -> str:
    """Return *text* for matplotlib, where a dollar would begin a formula."""
    return drawn_text(text).replace("$", r"\$")
