"""Wikipedia2Vec (Yamada et al. 2016), trained on a dump through the package `wikipedia2vec`.

In the folder of the job, each finished before it has its name:

    dump.db           pages: paragraphs and links
    dictionary.pkl    words and entities, with their counts
    links.pkl         which entity links to which
    mentions.pkl      names that stand for an entity where they are no link
    model.pkl         the vectors

A job that was stopped goes on with the first that is missing. The package draws its seeds anew in every
worker, so two trainings never give the same vectors, whatever was seeded.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from kgkit.errors import MissingExtra, NotThere, SourceError
from kgkit.ranges import check_range
from kgkit.types import Progress

DUMP: Final = "dump.db"
DICTIONARY: Final = "dictionary.pkl"
LINKS: Final = "links.pkl"
MENTIONS: Final = "mentions.pkl"
MODEL: Final = "model.pkl"


_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SkipGramConfig:
    """How Wikipedia2Vec is trained; what is not said otherwise is the package's default.

    For E-BERT (Poerner et al. 2020, 3.1): cased, as wide as the encoder, entities with 5 links and more,
    and those that are candidates somewhere (`keep`) however few links they have.
    """

    dump: Path  # pages-articles.xml.bz2
    name: str = "wikipedia2vec"  # of the vectors
    width: int = 768  # that of the encoder to align with
    lowercase: bool = False
    keep: tuple[str, ...] = ()  # titles that are kept however few links lead to them
    min_entity_count: int = 5  # links
    min_word_count: int = 5
    min_paragraph: int = 5  # tokens
    link_graph: bool = True
    link_mentions: bool = True
    window: int = 5
    iterations: int = 5
    negative: int = 5
    learning_rate: float = 0.025
    sample: float = 1e-4  # threshold above which frequent words are skipped now and then
    entities_per_page: int = 10
    workers: int = 0  # processes; 0 for as many as there are cores
    pages_per_task: int = 100

    def __post_init__(self) -> None:
        check_range(self, "width", "window", "iterations", "negative", "pages_per_task", least=1)
        check_range(
            self, "min_entity_count", "min_word_count", "min_paragraph", "entities_per_page", "workers",
            "sample", least=0,
        )  # fmt: skip
        check_range(self, "learning_rate", above=0)

    @property
    def processes(self) -> int:
        """How many processes work."""
        return self.workers or os.cpu_count() or 1


def train(config: SkipGramConfig, folder: Path, progress: Progress | None = None) -> Path:
    """Train Wikipedia2Vec in *folder*, going on where an earlier call was stopped.

    Args:
        config: settings. The folder must be used with one config only.
        folder: folder for all that is made on the way; must exist.
        progress: callback that is told (steps done, of how many).

    Returns:
        The file of the model.

    Raises:
        MissingExtra: if the package is not installed.
        NotThere, SourceError: if there is no such dump, or it is none, damaged or cut off.
    """
    package = import_required()
    _check_dump(config.dump)
    steps: list[tuple[str, Callable[[Path], object]]] = [
        (DUMP, lambda out: _dump(package, config, out)),
        (DICTIONARY, lambda out: _dictionary(package, config, folder, out)),
    ]
    if config.link_graph:
        steps.append((LINKS, lambda out: _links(package, config, folder, out)))
    if config.link_mentions:
        steps.append((MENTIONS, lambda out: _mentions(package, config, folder, out)))
    steps.append((MODEL, lambda out: _model(package, config, folder, out)))
    for step, (name, make) in enumerate(steps):
        if progress is not None:
            progress("training", step, len(steps))
        if not (folder / name).exists():
            _log.info("wikipedia2vec: making %s", name)
            part = folder / f"{name}.part"
            part.unlink(missing_ok=True)
            make(part)
            part.replace(folder / name)
            (folder / f"{name}.part-lock").unlink(missing_ok=True)  # LMDB's
    if progress is not None:
        progress("training", len(steps), len(steps))
    return folder / MODEL


def import_required() -> Callable[[str], Any]:
    """Return what gives a module of the package `wikipedia2vec` by its name within it.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        import_module("wikipedia2vec")
    except ImportError:
        raise MissingExtra("wikipedia2vec", "wikipedia2vec") from None
    return lambda name: import_module(f"wikipedia2vec.{name}")


def select_entities(
    counted: Iterable[tuple[str, int, int]], least: int, keep: Collection[str], pages: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """Return which entities get a vector: title -> (links, pages with a link).

    Args:
        counted: rows of title, links, pages with a link, of all that are linked to.
        least: least number of links;
        keep: titles that are taken with fewer links.
        pages: all titles of pages. A page of *keep* that nothing links to is taken too: what it links to
            teaches its vector.
    """
    selection = {
        title: (links, documents) for title, links, documents in counted if links >= least or title in keep
    }
    selection.update((title, (0, 0)) for title in pages if title in keep and title not in selection)
    return selection


# -- the steps --------------------------------------------------------------


def _check_dump(dump: Path) -> None:
    if not dump.is_file():
        raise NotThere(f"no dump {dump}: it is a file like enwiki-latest-pages-articles.xml.bz2")
    with dump.open("rb") as file:
        start = file.read(3)
    if start != b"BZh":
        raise SourceError("not a bzip2 file; wikipedia2vec reads dumps as .xml.bz2 only", path=dump)
    import bz2

    with _explain_damage(dump), bz2.open(dump, "rt", encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    if 'xml:lang="' not in first:
        message = "not a MediaWiki dump: its first line does not name a language (xml:lang)"
        raise SourceError(message, path=dump, line=1, text=first.rstrip())


@contextmanager
def _explain_damage(dump: Path) -> Iterator[None]:
    """Say of which file it is that cannot be decompressed.

    Raises:
        SourceError: if the dump is damaged or ends too early.
    """
    try:
        yield
    except (EOFError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the disk's; those of bz2 have no number
            raise
        raise SourceError(f"the compressed file cannot be read: {error}", path=dump) from error


def _pool(config: SkipGramConfig) -> dict[str, int]:
    return {"pool_size": config.processes, "chunk_size": config.pages_per_task}


def _tokenizer(package: Callable[[str], Any], dump: Any) -> Any:
    return package("utils.tokenizer").get_default_tokenizer(dump.language)


def _dump(package: Callable[[str], Any], config: SkipGramConfig, out: Path) -> None:
    with _explain_damage(config.dump):
        reader = package("utils.wiki_dump_reader").WikiDumpReader(str(config.dump))
        package("dump_db").DumpDB.build(reader, str(out), **_pool(config))


def _dictionary(package: Callable[[str], Any], config: SkipGramConfig, folder: Path, out: Path) -> None:
    dump = package("dump_db").DumpDB(str(folder / DUMP))
    kind = package("dictionary").Dictionary
    dictionary = kind.build(
        dump,
        _tokenizer(package, dump),
        lowercase=config.lowercase,
        min_word_count=config.min_word_count,
        # Who is listed must not be left out; the others are, in `_filtered`.
        min_entity_count=1 if config.keep else config.min_entity_count,
        min_paragraph_len=config.min_paragraph,
        category=False,
        disambi=False,
        progressbar=False,
        **_pool(config),
    )
    (_filter(kind, dictionary, dump, config) if config.keep else dictionary).save(str(out))


def _filter(kind: Any, dictionary: Any, dump: Any, config: SkipGramConfig) -> Any:
    """Return the dictionary *made* with the entities that `select_entities` takes."""
    import numpy as np
    from marisa_trie import RecordTrie, Trie

    moved = dict(dump.redirects())
    keep = {moved.get(title, title) for title in (title.replace("_", " ") for title in config.keep)}
    counted = ((item.title, item.count, item.doc_count) for item in dictionary.entities())
    entities = select_entities(counted, config.min_entity_count, keep, dump.titles())
    words = {item.text: (item.count, item.doc_count) for item in dictionary.words()}
    tries, numbers = [], []
    for counts in (words, entities):
        trie = Trie(counts)
        # A trie numbers its keys itself: the counts follow it.
        rows = np.zeros((len(trie), 2), np.int32)
        for text, row in trie.items():
            rows[row] = counts[text]
        tries.append(trie)
        numbers.append(rows)
    redirects = RecordTrie(
        "<I", [(source, (tries[1][target],)) for source, target in moved.items() if target in tries[1]]
    )
    params = {
        **(dictionary.build_params or {}),
        "min_entity_count": config.min_entity_count,
        "kept": len(keep),
    }
    return kind(
        *tries,
        redirects,
        *numbers,
        dictionary.language,
        dictionary.lowercase,
        params,
        dictionary.min_paragraph_len,
        dictionary.uuid,
    )


def _links(package: Callable[[str], Any], config: SkipGramConfig, folder: Path, out: Path) -> None:
    import joblib
    import numpy as np

    dump = package("dump_db").DumpDB(str(folder / DUMP))
    dictionary = package("dictionary").Dictionary.load(str(folder / DICTIONARY))
    graph = package("link_graph").LinkGraph.build(dump, dictionary, progressbar=False, **_pool(config))
    content = graph.serialize()
    # Its rows end with the last entity that links to another; training asks for the row of every entity.
    starts = content["indptr"]
    missing = dictionary.entity_size + 1 - len(starts)
    content["indptr"] = np.concatenate([starts, np.full(missing, starts[-1], starts.dtype)])
    joblib.dump(content, str(out))


def _mentions(package: Callable[[str], Any], config: SkipGramConfig, folder: Path, out: Path) -> None:
    dump = package("dump_db").DumpDB(str(folder / DUMP))
    dictionary = package("dictionary").Dictionary.load(str(folder / DICTIONARY))
    mentions = package("mention_db").MentionDB.build(
        dump,
        dictionary,
        _tokenizer(package, dump),
        min_link_prob=0.2,
        min_prior_prob=0.01,
        max_mention_len=20,
        case_sensitive=False,
        progressbar=False,
        **_pool(config),
    )
    mentions.save(str(out))


def _model(package: Callable[[str], Any], config: SkipGramConfig, folder: Path, out: Path) -> None:
    dump = package("dump_db").DumpDB(str(folder / DUMP))
    dictionary = package("dictionary").Dictionary.load(str(folder / DICTIONARY))
    links = mentions = None
    if config.link_graph:
        links = package("link_graph").LinkGraph.load(str(folder / LINKS), dictionary)
    if config.link_mentions:
        mentions = package("mention_db").MentionDB.load(str(folder / MENTIONS), dictionary)
    model = package("wikipedia2vec").Wikipedia2Vec(dictionary)
    model.train(
        dump,
        links,
        mentions,
        _tokenizer(package, dump),
        None,
        dim_size=config.width,
        init_alpha=config.learning_rate,
        min_alpha=0.0001,
        window=config.window,
        negative=config.negative,
        word_neg_power=0.75,
        entity_neg_power=0,
        sample=config.sample,
        iteration=config.iterations,
        entities_per_page=config.entities_per_page,
        progressbar=False,
        **_pool(config),
    )
    model.save(str(out))
