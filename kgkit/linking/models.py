"""Which models there are, and what scores for each.

    prior     p(entity | surface), as the generator has it
    gloss     that, times how well the entity's text fits the mention in its context
    NAME      what `kgkit train linker` has made, in a folder

Their equations stand in `kgkit.linking.scoring`, `.gloss` and `.ridge`.
"""

from typing import Any

from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking.model_folder import BUILT_IN, damaged, find_model_folder, read_model
from kgkit.linking.scoring import PriorScorer, Scorer

MODELS = BUILT_IN
"""The models that need no training."""


def find_scorer(model: str, kb: KnowledgeBase, **settings: Any) -> Scorer:
    """Return the scorer called *model*.

    Args:
        model: one of `BUILT_IN`, the name of a trained one in the home of *kb*, or its folder.
        kb: what is linked to.
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
    folder = find_model_folder(model, Home(kb.home.path.parents[1]))
    match read_model(folder).kind:
        case "ridge":
            from kgkit.linking.ridge import RidgeScorer

            return RidgeScorer.open(folder, kb, **settings)
        case "head":
            from kgkit.linking.head import HeadScorer

            return HeadScorer.open(folder, kb, **settings)
        case other:
            raise damaged(folder, f"it is of the kind {other!r}, which this kgkit does not know")
