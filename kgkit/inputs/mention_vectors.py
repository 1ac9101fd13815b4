"""Frozen features: the vectors of all mentions of a training set, read once and kept.

    cache/features/DIGEST.npy     (N, W) float16, a row for each mention, in order
    cache/features/DIGEST.json    how many documents are in it

    cache/features/DIGEST.lock    held while they are read; another process that needs them waits

DIGEST is taken over the encoder, the settings of the reader, and every text and span. A job that was
stopped goes on behind the last document that was noted.

N  mentions of all documents    W  numbers that the reader gives of one
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import WriteFailed
from kgkit.files import written
from kgkit.inputs.spans import SpanReader
from kgkit.types import Document, Progress
from kgkit.versions import free_space

Features = NDArray[np.float16]

_AT_ONCE: Final = 32  # documents, after which what is done is noted


def features(
    reader: SpanReader,
    documents: Sequence[Document],
    folder: Path,
    *,
    progress: Progress | None = None,
    stage: str = "reading",
) -> Features:
    """Return the vectors of the mentions of *documents*, (N, W), mapped into memory.

    Args:
        reader: reader of mentions.
        documents: documents with mentions.
        folder: folder where features are kept.
        progress: callback with the documents done, of how many.
        stage: name of this work, for *progress*.

    Raises:
        WriteFailed: if the disk is full or fails; the features read so far stay.
    """
    from filelock import FileLock

    stem = folder / _digest(reader, documents)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(stem.with_suffix(".lock")):
            _read(reader, documents, stem, progress, stage)
    except OSError as error:
        raise WriteFailed(str(error), written=0, free=free_space(folder), where=folder) from error
    matrix: Features = np.load(stem.with_suffix(".npy"), mmap_mode="r")
    return matrix


def _read(
    reader: SpanReader,
    documents: Sequence[Document],
    stem: Path,
    progress: Progress | None,
    stage: str,
) -> None:
    """Read what is not yet in the matrix; the lock is held."""
    counts = [len(document.mentions or ()) for document in documents]
    matrix, count = _open_matrix(stem, (sum(counts), reader.width))
    row = sum(counts[:count])
    try:
        while count < len(documents):
            part = documents[count : count + _AT_ONCE]
            for _, vectors in reader(part):
                matrix[row : row + len(vectors)] = vectors
                row += len(vectors)
            count += len(part)
            _note(stem, matrix, count)
            if progress is not None:
                progress(stage, count, len(documents))
    except OSError as error:
        where = stem.parent
        raise WriteFailed(str(error), written=matrix.nbytes, free=free_space(where), where=where) from error


def _digest(reader: SpanReader, documents: Sequence[Document]) -> str:
    encoder = reader.encoder
    digest = hashlib.blake2b(digest_size=12)
    digest.update(json.dumps([encoder.fingerprint, encoder.dtype, asdict(reader.config)]).encode())
    for document in documents:
        spans = [(mention.start, mention.end) for mention in document.mentions or ()]
        digest.update(msgspec.json.encode([document.text, document.sentences, spans]))
    return digest.hexdigest()


def _open_matrix(stem: Path, shape: tuple[int, int]) -> tuple[Any, int]:
    """Return the matrix that is there, and how many documents are in it; a new one if there is none."""
    path = stem.with_suffix(".npy")
    with suppress(OSError, ValueError, KeyError):
        count = int(json.loads(stem.with_suffix(".json").read_bytes())["documents"])
        matrix = np.lib.format.open_memmap(path, mode="r+")
        if matrix.shape == shape and matrix.dtype == np.float16:
            return matrix, count
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").unlink(missing_ok=True)
    size = 2 * shape[0] * shape[1]
    if size > free_space(stem.parent):
        raise WriteFailed(
            "the vectors of the mentions do not fit",
            written=0,
            free=free_space(stem.parent),
            where=stem.parent,
        )
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape), 0


def _note(stem: Path, matrix: Any, count: int) -> None:
    """Note that documents are in the matrix, once they are."""
    matrix.flush()
    with written(stem.with_suffix(".json")) as stream:
        stream.write(json.dumps({"documents": count}).encode())
