"""Scorers of candidates by name: those that need no training, and trained ones.

    auto      the first that can be opened, in an order for the knowledge base: `kgkit.linking.auto`
    prior     p(entity | surface), as the generator has it
    gloss     that, times how well the entity's text fits the mention in its context
    NAME      a model with the role of a linker, in a folder; see `kgkit.models`

Their equations stand in `kgkit.linking.scoring`, `.gloss`, `.ridge`, `.head` and `.joint.scorer`.
"""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kgkit.errors import KgkitError, StaleModel, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking.scoring import LinkDefaults, PriorScorer, Scorer
from kgkit.models.folder import AUTO, BUILT_IN, train_again
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import ModelManifest
from kgkit.models.opening import open_model

if TYPE_CHECKING:
    from kgkit.models.opening import Opening

log = logging.getLogger(__name__)


def find_scorer(
    model: str,
    kb: KnowledgeBase,
    *,
    vectors: str | None = None,
    device: str = "auto",
    use_threshold: bool = False,
) -> Scorer:
    """Return the scorer called *model*.

    Args:
        model: `auto`, one of `BUILT_IN`, the name of a trained one in the home of *kb*, or its folder.
        kb: knowledge base that is linked to.
        vectors: name of the entities' vectors, for a model that takes some; None: its own, else `text`.
        device: torch device on which a model computes.
        use_threshold: whether a model that was trained with a threshold of its own, as KnowBert's δ, links
            only what scores above it.

    Raises:
        UnknownName: if there is no such model.
        UsageError: if it is no linker; says what it is.
        NotThere: if it needs vectors that have not been made.
        DamagedModel, StaleModel: if a trained one cannot be read, or was trained for something else.
    """
    if model == AUTO:
        return _first_scorer(kb, vectors=vectors, device=device, use_threshold=use_threshold)
    if model == "prior":
        return PriorScorer()
    if model in BUILT_IN:
        from kgkit.linking.gloss import GlossScorer  # here: an encoder's packages take a second

        return GlossScorer.open(kb, vectors=vectors, device=device)
    scorer: Scorer = open_model(
        model, "linker", home=Home(kb.home.path.parents[1]), device=device, kb=kb, vectors=vectors,
        use_threshold=use_threshold,
    )  # fmt: skip
    return scorer


def _first_scorer(kb: KnowledgeBase, *, vectors: str | None, device: str, use_threshold: bool) -> Scorer:
    """Return the first of the models for *kb* that can be opened."""
    from kgkit.linking.auto import auto_models

    *names, last = auto_models(kb, vectors=vectors)
    for name in names:
        try:
            return find_scorer(name, kb, vectors=vectors, device=device, use_threshold=use_threshold)
        except KgkitError as error:
            log.warning("the model %s cannot be used, the next one is taken: %s", name, error)
    return find_scorer(last, kb, vectors=vectors, device=device, use_threshold=use_threshold)


def open_linker(folder: Path, manifest: LinkerManifest, opening: "Opening") -> Scorer:
    """Open a model of `kgkit train linker`: the role `linker` of the kind of that name."""
    if manifest.coherence is not None:
        raise StaleModel(
            f"the model {manifest.name} has learnt coherence, which this kgkit does not have: "
            f"{train_again(manifest)}"
        )
    scorer: Scorer
    match manifest.type:
        case "ridge":
            from kgkit.linking.ridge import RidgeScorer

            scorer = RidgeScorer.open(folder, manifest, opening)
        case "head":
            from kgkit.linking.head import HeadScorer

            scorer = HeadScorer.open(folder, manifest, opening)
        case "joint":
            from kgkit.linking.joint.scorer import JointScorer

            scorer = JointScorer.open(folder, manifest, opening)
        case other:
            raise StaleModel(
                f"the model {manifest.name} is of the type {other!r}, which this kgkit does not have: "
                f"{train_again(manifest)}"
            )
    scorer.defaults = LinkDefaults(manifest.mentions or None, manifest.threshold)
    return scorer


def linked_kb(
    title: str, manifest: ModelManifest, names: Collection[str], opening: "Opening"
) -> KnowledgeBase:
    """Return the knowledge base that a linker which has vectors of its own is opened on: one of its own.

    Args:
        title: title of one such model.
        manifest: manifest of the model.
        names: names of its knowledge bases.
        opening: what it is opened on.

    Raises:
        UsageError: if there is no knowledge base, it was not trained with that, or vectors are named.
    """
    kb = opening.kb_for(manifest.name)
    if opening.vectors is not None:
        raise UsageError(f"{title} has the vectors that it was trained with: leave out --vectors")
    if kb.name not in names:
        has = ", ".join(names) or "none"
        raise UsageError(f"the model {manifest.name} has no knowledge base {kb.name!r}; it has: {has}")
    return kb
