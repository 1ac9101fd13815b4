"""Which models there are, and what scores for each.

    prior     p(entity | surface), as the generator has it
    gloss     that, times how well the entity's text fits the mention in its context
    NAME      what `kgkit train linker` has made, in a folder

Their equations stand in `kgkit.linking.scoring`, `.gloss`, `.ridge` and `.head`; those of the second stage
that a trained model may have, in `.trained_coherence`.
"""

from pathlib import Path
from typing import Any

from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking.scoring import PriorScorer, Scorer
from kgkit.models.folder import BUILT_IN, check_build, find_model_folder, model_vectors
from kgkit.models.manifest import KNOWBERT, ModelManifest, damaged, is_kind, read_model
from kgkit.versions import read_current

MODELS = BUILT_IN
"""The models that need no training."""


def find_scorer(model: str, kb: KnowledgeBase, *, use_threshold: bool = False, **settings: Any) -> Scorer:
    """Return the scorer called *model*.

    Args:
        model: one of `BUILT_IN`, the name of a trained one in the home of *kb*, or its folder.
        kb: what is linked to.
        use_threshold: whether a model that was trained with a threshold of its own, as KnowBert's δ, links
            only what scores above it.
        settings: `vectors`, `device`: of the models that have them.

    Raises:
        UnknownName: if there is no such model.
        NotThere: if it needs vectors that have not been made.
        DamagedModel, StaleModel: if a trained one cannot be read, or was trained for something else.
    """
    if model == "prior":
        return PriorScorer()
    if model == "gloss":
        from kgkit.linking.gloss import GlossScorer  # here: torch takes seconds to load

        return GlossScorer.open(kb, **settings)
    home = Home(kb.home.path.parents[1])
    return read_current(
        lambda: find_model_folder(model, home),
        lambda folder: _trained_scorer(folder, kb, settings, use_threshold=use_threshold),
    )


def _trained_scorer(
    folder: Path, kb: KnowledgeBase, settings: dict[str, Any], *, use_threshold: bool
) -> Scorer:
    if is_kind(KNOWBERT, folder):
        from kgkit.linking.knowbert import KnowBertScorer

        return KnowBertScorer.open(folder, kb, use_threshold=use_threshold, **settings)
    manifest = read_model(folder)
    first = _first(folder, manifest, kb, settings)
    if manifest.coherence is None:
        return first
    from kgkit.linking.trained_coherence import CoherentScorer, TrainedCoherence

    return CoherentScorer(first, TrainedCoherence.open(folder, kb, manifest.coherence), name=manifest.name)


def _first(folder: Path, manifest: ModelManifest, kb: KnowledgeBase, settings: dict[str, Any]) -> Scorer:
    """Return the first stage of a trained model: its rung."""
    match manifest.kind:
        case "prior":
            check_build(manifest, kb)
            return PriorScorer()
        case "gloss":
            from kgkit.linking.gloss import GlossScorer

            vectors = model_vectors(manifest, kb, settings.get("vectors"))
            return GlossScorer.open(kb, vectors=vectors.manifest.name, device=settings.get("device", "auto"))
        case "ridge":
            from kgkit.linking.ridge import RidgeScorer

            return RidgeScorer.open(folder, kb, **settings)
        case "head" | "full":
            from kgkit.linking.head import HeadScorer

            return HeadScorer.open(folder, kb, **settings)
        case other:
            raise damaged(folder, f"it is of the kind {other!r}, which this kgkit does not know")
