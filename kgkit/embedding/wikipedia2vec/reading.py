"""Wikipedia2Vec's vectors (Yamada et al. 2016): words and entities in one space, read into a KB.

Beside the matrix of the entities, the vectors KB/NAME keep

    words.npy    (V, D) float32, in the order of the file: frequent words first
    words.txt    V words, one a line

which is what `kgkit.embedding.align` fits its map on. The package `wikipedia2vec` is needed for its own
pickled models and for training; its text files, and those of word2vec and GloVe, are read without it.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.embedding.wikipedia2vec.files import FORMS, MODEL_MARK, Form, RowBatch, read_vectors
from kgkit.embedding.wikipedia2vec.training import SkipGramConfig, import_required, train
from kgkit.errors import DamagedVectors, NotThere, SourceError, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import Matrix, Progress
from kgkit.vectors import Vectors, Work
from kgkit.versions import file_sha256

WORDS: Final = "words.npy"
WORD_LIST: Final = "words.txt"

_HEADER_SIZE = 128  # of a .npy file whose number of rows is written last
_SHOWN = 5
_REDIRECT, _TITLE = 1, 2  # by what an entity was found

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Wikipedia2VecConfig:
    """Settings of `read_wikipedia2vec`."""

    source: Path  # the file of vectors
    form: Form = "auto"
    name: str = "wikipedia2vec"  # of the vectors
    entity: str = MODEL_MARK + "{}"  # how the file writes an entity; {} is its title
    words: bool = True  # keep the words too
    allow_pickle: bool = False  # read a pickled model, which may run any program

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"form is {self.form!r}; it is one of {', '.join(FORMS)}")
        if self.entity.count("{}") != 1:
            raise UsageError(f"entity is {self.entity!r}; it has {{}} in the place of the title, once")


@dataclass(kw_only=True)
class Coverage:
    """What became of the rows of a file.

    Attributes:
        matched: entities of the KB that have a vector now.
        unmatched: titles that the KB does not know.
        again: titles of an entity that has its vector from another row.
        zero: entities whose row is zeros: to the KB, they have no vector.
        without: entities of the KB without a vector.
        words: number of words in the word table.
        examples: some titles that the KB does not know.
    """

    matched: int = 0
    unmatched: int = 0
    again: int = 0
    zero: int = 0
    without: int = 0
    words: int = 0
    examples: list[str]


def read_wikipedia2vec(
    kb: KnowledgeBase, config: Wikipedia2VecConfig, progress: Progress | None = None
) -> Vectors:
    """Read a file of vectors into the rows of *kb*'s entities and a table of words, and publish both.

    A title is sought as it stands, then with blanks for underscores, then the
    other way; redirects are followed. Where two rows are one entity's, the row of its very
    key is taken, else the first.

    Args:
        kb: knowledge base of the entities.
        config: settings: what to read.
        progress: callback that is told (bytes read, of how many).

    Raises:
        NotThere: if there is no such file.
        UsageError: if it is a pickled model, and `allow_pickle` does not say that it may be read.
        SourceError: if it is not what it should be, or has no entity of *kb*; nothing is published then.
        MissingExtra: if it is a pickled model and wikipedia2vec is not installed.
    """
    if not config.source.is_file():
        raise NotThere(f"no file of vectors {config.source}")
    settings = {**asdict(config), "source": config.source.name, "sha256": file_sha256(config.source)}
    for how in ("name", "allow_pickle"):
        del settings[how]
    with Work(kb, config.name, settings) as work:
        return _publish(work, kb, config, progress)


def train_wikipedia2vec(
    kb: KnowledgeBase, config: SkipGramConfig, progress: Progress | None = None, *, resume: bool = True
) -> Vectors:
    """Train Wikipedia2Vec on a dump through its package, and publish what it learnt.

    Stopped and run again with the same settings it goes on with the step it was
    in. `config.keep` names titles that get a vector however few links they have.

    Args:
        kb: knowledge base of the entities.
        config: settings of the training.
        progress: callback that is told (steps done, of how many).
        resume: whether to go on with a stopped job; False begins again.

    Raises:
        MissingExtra: if wikipedia2vec is not installed.
        NotThere, SourceError: as `train` and `read_wikipedia2vec` do.
    """
    import_required()
    if not config.dump.is_file():
        raise NotThere(f"no dump {config.dump}: it is a file like enwiki-latest-pages-articles.xml.bz2")
    settings = {**asdict(config), "dump": config.dump.name, "sha256": file_sha256(config.dump)}
    for how in ("name", "workers", "pages_per_task"):
        del settings[how]
    # Of a list of a million titles a digest is enough.
    settings["keep"] = {"titles": len(config.keep), "sha256": _digest(config.keep)}
    with Work(kb, config.name, settings, resume=resume) as work:
        model = train(config, work.folder, progress)
        return _publish(work, kb, _own(model), None)


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


def all_candidates(kb: KnowledgeBase, surfaces: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of all candidates of *surfaces*: the entities that E-BERT keeps however rare.

    For `SkipGramConfig.keep`.
    """
    ids = {number for surface in surfaces for number in kb.candidates(surface).ids.tolist()}
    return tuple(kb.key(number) for number in sorted(ids))


def _own(model: Path) -> Wikipedia2VecConfig:
    """Return how a model is read that has just been trained here."""
    return Wikipedia2VecConfig(source=model, form="model", allow_pickle=True)


def _publish(
    work: Work, kb: KnowledgeBase, config: Wikipedia2VecConfig, progress: Progress | None
) -> Vectors:
    batches = read_vectors(config.source, config.form, progress, allow_pickle=config.allow_pickle)
    first = next(batches, None)
    if first is None:
        raise SourceError("a file of vectors holds none", path=config.source)
    matrix = work.matrix(kb.id_count, first.rows.shape[1])
    entities = _Entities(kb, matrix)
    mark = _Mark(config.entity)
    with _word_table(work.folder, first.rows.shape[1]) as words:
        for batch in _chain(first, batches):
            titles, other_names = mark.split(batch)
            entities.take(titles)
            if config.words:
                words.take(other_names)
    coverage = entities.coverage
    coverage.words = words.count
    if not coverage.matched:
        shown = "; ".join(coverage.examples) or "it has none"
        raise SourceError(
            f"none of its entities is in knowledge base {kb.name!r}: {shown}. They are written as "
            f"{config.entity!r} (`--entity`)",
            path=config.source,
        )
    if coverage.unmatched:
        shown = "; ".join(coverage.examples)
        _log.warning("%s titles are not in %s: %s", f"{coverage.unmatched:,}", kb.name, shown)
    files = (WORDS, WORD_LIST) if config.words else ()
    results = {name: value for name, value in asdict(coverage).items() if name != "examples"}
    return work.publish("wikipedia2vec", files=files, results=results)


def _chain(first: RowBatch, remaining: Iterator[RowBatch]) -> Iterator[RowBatch]:
    yield first
    yield from remaining


def _digest(titles: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(titles).encode("utf-8", "surrogatepass")).hexdigest()


class _Mark:
    """Tells entities from words."""

    def __init__(self, pattern: str) -> None:
        self.before, self.after = pattern.split("{}")

    def split(self, batch: RowBatch) -> tuple[RowBatch, RowBatch]:
        """Return the entities of a batch, named by title, and the words."""
        least = len(self.before) + len(self.after)
        marked = np.array(
            [
                len(name) > least and name.startswith(self.before) and name.endswith(self.after)
                for name in batch.names
            ],
            bool,
        )
        stop = -len(self.after) or None
        titles = [batch.names[row][len(self.before) : stop] for row in np.flatnonzero(marked)]
        words = [batch.names[row] for row in np.flatnonzero(~marked)]
        return RowBatch(titles, batch.rows[marked]), RowBatch(words, batch.rows[~marked])


class _Entities:
    """Puts rows in the places of a KB's entities."""

    def __init__(self, kb: KnowledgeBase, matrix: NDArray[np.float32]) -> None:
        self.kb, self.matrix = kb, matrix
        self.owner = np.zeros(kb.id_count, np.uint8)  # by what the row was found; 0: it has none yet
        self.coverage = Coverage(examples=[], without=len(kb))

    def take(self, batch: RowBatch) -> None:
        """Put the rows of a batch in their places."""
        coverage = self.coverage
        for title, row in zip(batch.names, batch.rows, strict=True):
            number, by = self.find_entity(title)
            if number < 0:
                coverage.unmatched += 1
                if len(coverage.examples) < _SHOWN:
                    coverage.examples.append(title)
            elif not row.any():
                coverage.zero += 1
            elif self.owner[number] >= by:
                coverage.again += 1
            else:
                if self.owner[number]:
                    coverage.again += 1
                else:
                    coverage.matched += 1
                    coverage.without -= 1
                self.matrix[number] = row
                self.owner[number] = by

    def find_entity(self, title: str) -> tuple[int, int]:
        """Return the id of a title's entity and by what it was found; -1 if there is none."""
        store = self.kb.store
        for written in dict.fromkeys((title, title.replace("_", " "), title.replace(" ", "_"))):
            number = store.id_of(written)
            if number is not None:
                return number, _TITLE if store.key_of(number) == written else _REDIRECT
        return -1, 0


class _Words:
    """Writes the table of words as it grows."""

    def __init__(self, rows: IO[bytes], words: IO[str]) -> None:
        self.rows, self.words, self.count = rows, words, 0

    def take(self, batch: RowBatch) -> None:
        """Add the words of a batch."""
        for word in batch.names:
            # A binary file may have anything in a name.
            self.words.write(word.replace("\n", " ") + "\n")
        self.rows.write(np.ascontiguousarray(batch.rows, "<f4").tobytes())
        self.count += len(batch.names)


@contextmanager
def _word_table(folder: Path, width: int) -> Iterator[_Words]:
    """Give what writes `words.npy` and `words.txt`; how many rows there are is written at the end."""
    for name in (WORDS, WORD_LIST):
        (folder / name).unlink(missing_ok=True)  # it may be linked to what has been published
    with (
        (folder / WORDS).open("wb") as rows,
        (folder / WORD_LIST).open("w", encoding="utf-8", newline="\n") as words,
    ):
        rows.write(_npy_header(0, width))
        table = _Words(rows, words)
        yield table
        rows.seek(0)
        rows.write(_npy_header(table.count, width))


def _npy_header(rows: int, width: int) -> bytes:
    """Return the start of a .npy file (version 1.0) of (rows, width) float32."""
    described = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    start = b"\x93NUMPY\x01\x00" + (_HEADER_SIZE - 10).to_bytes(2, "little")
    return start + described.encode().ljust(_HEADER_SIZE - 11) + b"\n"
