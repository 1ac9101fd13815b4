"""Wikipedia2Vec's vectors (Yamada et al. 2016): words and entities in one space, read into a KB.

Beside the matrix of the entities, the vectors KB/NAME keep

    words.npy    (V, D) float32, in the order of the file: frequent words first
    words.txt    V words, one a line

which is what `kgkit.embedding.align` fits its map on. Text files of the package
`wikipedia2vec`, which trains such vectors, and those of word2vec and GloVe are read.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from kgkit.embedding.wikipedia2vec.files import RowBatch, read_vectors
from kgkit.errors import DamagedVectors, NotThere, SourceError, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import Matrix, Progress
from kgkit.vectors import Vectors, Work
from kgkit.versions import file_sha256

WORDS: Final = "words.npy"
WORD_LIST: Final = "words.txt"

_SHOWN = 5
_REDIRECT, _TITLE = 1, 2  # by what an entity was found

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Wikipedia2VecConfig:
    """Settings of `read_wikipedia2vec`."""

    source: Path  # the file of vectors
    name: str = "wikipedia2vec"  # of the vectors
    entity: str = "ENTITY/{}"  # how the file writes an entity; {} is its title

    def __post_init__(self) -> None:
        if self.entity.count("{}") != 1:
            raise UsageError(f"entity is {self.entity!r}; it has {{}} in the place of the title, once")


def read_wikipedia2vec(
    kb: KnowledgeBase, config: Wikipedia2VecConfig, progress: Progress | None = None
) -> Vectors:
    """Read a file of vectors into the rows of *kb*'s entities and a table of words, and publish both.

    A title is sought as it stands, then with blanks for underscores, then the
    other way; redirects are followed. Where two rows are one entity's, the row of its very
    key is taken, else the first. The manifest's results count titles that `matched` an entity, that are
    `unmatched`, or `again` of an entity that has its vector from another row, rows that are `zero`, entities
    `without` a vector, and `words`.

    Args:
        kb: knowledge base of the entities.
        config: settings: what to read.
        progress: callback that is told (rows read, of how many).

    Raises:
        NotThere: if there is no such file.
        UsageError: if it is a pickle.
        SourceError: if it is not what it should be, or has no entity of *kb*; nothing is published then.
    """
    batches = read_vectors(config.source, progress)
    first = next(batches, None)
    if first is None:
        raise SourceError("a file of vectors holds none", path=config.source)
    settings = {
        "source": config.source.name,
        "entity": config.entity,
        "sha256": file_sha256(config.source),
    }
    with Work(kb, config.name, settings) as work:
        matrix = work.matrix(kb.id_count, first.rows.shape[1])
        entities = _Entities(kb, matrix)
        with _word_table(work.folder, first.rows.shape[1]) as take_words:
            for batch in chain([first], batches):
                titles, words = _split(batch, config.entity)
                entities.take(titles)
                take_words(words)
                entities.results["words"] += len(words.names)
        unmatched = "; ".join(entities.unmatched)
        if not entities.results["matched"]:
            raise SourceError(
                f"none of its entities is in knowledge base {kb.name!r}: {unmatched or 'it has none'}. They "
                f"are written as {config.entity!r} (`--entity`)",
                path=config.source,
            )
        if unmatched:
            count = f"{entities.results['unmatched']:,}"
            _log.warning("%s titles are not in %s: %s", count, kb.name, unmatched)
        return work.publish("wikipedia2vec", files=(WORDS, WORD_LIST), results=entities.results)


def read_words(vectors: Vectors) -> tuple[list[str], Matrix]:
    """Return the words that vectors keep, and their rows (V, D), mapped into memory.

    Raises:
        NotThere: if they keep none.
        DamagedVectors: if they cannot be read, or are more or fewer than their rows.
    """
    listed, rows = vectors.folder / WORD_LIST, vectors.folder / WORDS
    if not listed.is_file() or not rows.is_file():
        raise NotThere(
            f"the vectors {vectors.name} keep no words; those of `kgkit embed {vectors.manifest.kb} --method "
            "wikipedia2vec` do"
        )
    again = f"make the vectors {vectors.name} again with `kgkit embed`"
    try:
        # As bytes: a word may have a `\r` in it, which text would be given as a line end.
        words = listed.read_bytes().decode("utf-8").split("\n")[:-1]
        rows_of_words: Matrix = np.load(rows, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedVectors(f"the words in {listed.parent} cannot be read: {error}; {again}") from error
    if len(words) != len(rows_of_words):
        raise DamagedVectors(f"{len(words):,} words in {listed} have {len(rows_of_words):,} vectors: {again}")
    return words, rows_of_words


def _split(batch: RowBatch, pattern: str) -> tuple[RowBatch, RowBatch]:
    """Return the entities of a batch, named by title, and the words."""
    before, after = pattern.split("{}")
    least, stop = len(before) + len(after), -len(after) or None
    marked = np.array(
        [len(name) > least and name.startswith(before) and name.endswith(after) for name in batch.names], bool
    )
    titles = [batch.names[row][len(before) : stop] for row in np.flatnonzero(marked)]
    words = [batch.names[row] for row in np.flatnonzero(~marked)]
    return RowBatch(titles, batch.rows[marked]), RowBatch(words, batch.rows[~marked])


class _Entities:
    """Puts rows in the places of a KB's entities."""

    def __init__(self, kb: KnowledgeBase, matrix: Matrix) -> None:
        self.kb, self.matrix = kb, matrix
        self.owner = np.zeros(kb.id_count, np.uint8)  # by what the row was found; 0: it has none yet
        self.unmatched: list[str] = []  # some of them
        self.results = {"matched": 0, "unmatched": 0, "again": 0, "zero": 0, "without": len(kb), "words": 0}

    def take(self, batch: RowBatch) -> None:
        """Put the rows of a batch in their places."""
        for title, row in zip(batch.names, batch.rows, strict=True):
            number, by = self._find(title)
            if number < 0:
                self.results["unmatched"] += 1
                if len(self.unmatched) < _SHOWN:
                    self.unmatched.append(title)
            elif not row.any():
                self.results["zero"] += 1
            else:
                self.results["again" if self.owner[number] else "matched"] += 1
                self.results["without"] -= not self.owner[number]
                if self.owner[number] < by:
                    self.matrix[number] = row
                    self.owner[number] = by

    def _find(self, title: str) -> tuple[int, int]:
        """Return the id of a title's entity and by what it was found; -1 if there is none."""
        store = self.kb.store
        for written in dict.fromkeys((title, title.replace("_", " "), title.replace(" ", "_"))):
            number = store.id_of(written)
            if number is not None:
                return number, _TITLE if store.key_of(number) == written else _REDIRECT
        return -1, 0


@contextmanager
def _word_table(folder: Path, width: int) -> Iterator[Callable[[RowBatch], None]]:
    """Yield a function that adds words to `words.npy` and `words.txt`; the number of rows is written last."""
    for name in (WORDS, WORD_LIST):
        (folder / name).unlink(missing_ok=True)  # it may be linked to what has been published
    with (
        (folder / WORDS).open("wb") as rows,
        (folder / WORD_LIST).open("w", encoding="utf-8", newline="\n") as words,
    ):
        count = 0

        def take(batch: RowBatch) -> None:
            nonlocal count
            words.writelines(
                word.replace("\n", " ") + "\n" for word in batch.names
            )  # a binary file has any name
            rows.write(np.ascontiguousarray(batch.rows, "<f4").tobytes())
            count += len(batch.names)

        _write_header(rows, 0, width)
        yield take
        rows.seek(0)
        _write_header(rows, count, width)


def _write_header(file: BinaryIO, rows: int, width: int) -> None:
    """Write the start of a .npy file, which NumPy makes equally long for any number of rows."""
    described = {"shape": (rows, width), "fortran_order": False, "descr": "<f4"}
    np.lib.format.write_array_header_1_0(file, described)
