"""Scorers of candidates by name: those that need no training, and trained ones.

    auto      the best of those that are there for the knowledge base: `kgkit.linking.auto`
    prior     p(entity | surface), as the generator has it
    gloss     that, times how well the entity's text fits the mention in its context
    NAME      a model with the role of a linker, in a folder; see `kgkit.models`

Their equations stand in `kgkit.linking.scoring`, `.gloss`, `.ridge` and `.head`; those of the second stage
that a trained model may have, in `.trained_coherence`.
"""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kgkit.errors import KgkitError, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking.scoring import PriorScorer, Scorer
from kgkit.models.folder import AUTO, BUILT_IN, check_build, model_vectors
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import ModelManifest, damaged
from kgkit.models.opening import open_model

if TYPE_CHECKING:
    from kgkit.models.opening import Opening

log = logging.getLogger(__name__)

MODELS = BUILT_IN
"""The models that need no training."""


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
        return _best_scorer(kb, vectors=vectors, device=device, use_threshold=use_threshold)
    if model == "prior":
        return PriorScorer()
    if model == "gloss":
        from kgkit.linking.gloss import GlossScorer  # here: torch takes seconds to load

        return GlossScorer.open(kb, vectors=vectors, device=device)
    scorer: Scorer = open_model(
        model, "linker", home=Home(kb.home.path.parents[1]), device=device, kb=kb, vectors=vectors,
        use_threshold=use_threshold,
    )  # fmt: skip
    return scorer


def _best_scorer(kb: KnowledgeBase, *, vectors: str | None, device: str, use_threshold: bool) -> Scorer:
    """Return the first of the models for *kb* that can be opened."""
    from kgkit.linking.auto import auto_models

    names = [*auto_models(kb, vectors=vectors)]
    for name in names[:-1]:
        try:
            return find_scorer(name, kb, vectors=vectors, device=device, use_threshold=use_threshold)
        except KgkitError as error:
            log.warning("the model %s cannot be used, the next best is taken: %s", name, error)
    return find_scorer(names[-1], kb, vectors=vectors, device=device, use_threshold=use_threshold)


def open_linker(folder: Path, manifest: LinkerManifest, opening: "Opening") -> Scorer:
    """Open a model of `kgkit train linker`: the role `linker` of the kind of that name."""
    kb = kb_of(opening, manifest.name)
    first = _first_stage(folder, manifest, kb, opening)
    if manifest.coherence is None:
        return first
    from kgkit.linking.trained_coherence import CoherentScorer, TrainedCoherence

    return CoherentScorer(first, TrainedCoherence.open(folder, kb, manifest.coherence), name=manifest.name)


def kb_of(opening: "Opening", model: str) -> KnowledgeBase:
    """Return the knowledge base that a linker is opened on.

    Raises:
        UsageError: if there is none.
    """
    if opening.kb is None:
        raise UsageError(
            f"the model {model} scores the candidates of a knowledge base, and none is given: open it with "
            f"kb=…, or link texts with kgkit.Linker.open(KB, model={model!r})"
        )
    return opening.kb


def _first_stage(folder: Path, manifest: LinkerManifest, kb: KnowledgeBase, opening: "Opening") -> Scorer:
    """Return what a trained model of some type scores by, before coherence."""
    vectors, device = opening.vectors, opening.device
    match manifest.type:
        case "prior":
            check_build(manifest, kb)
            return PriorScorer()
        case "gloss":
            from kgkit.linking.gloss import GlossScorer

            return GlossScorer.of(kb, model_vectors(manifest, kb, vectors, device=device), device=device)
        case "ridge":
            from kgkit.linking.ridge import RidgeScorer

            return RidgeScorer.open(folder, manifest, kb, vectors=vectors, device=device)
        case "head" | "full":
            from kgkit.linking.head import HeadScorer

            return HeadScorer.open(folder, manifest, kb, vectors=vectors, device=device)
        case other:
            raise damaged(folder, f"it is of the type {other!r}, which this kgkit does not know")


def check_linked_kb(
    title: str, manifest: ModelManifest, names: Collection[str], kb: KnowledgeBase, vectors: str | None
) -> None:
    """Make sure that a linker which has vectors of its own is opened on a knowledge base of its own.

    Args:
        title: title of one such model.
        manifest: manifest of the model.
        names: names of its knowledge bases.
        kb: knowledge base that it is opened on.
        vectors: name of vectors that is asked for; None: none is.

    Raises:
        UsageError: if it was not trained with *kb*, or vectors are named.
    """
    if vectors is not None:
        raise UsageError(f"{title} has the vectors that it was trained with: leave out --vectors")
    if kb.name not in names:
        has = ", ".join(names) or "none"
        raise UsageError(f"the model {manifest.name} has no knowledge base {kb.name!r}; it has: {has}")
