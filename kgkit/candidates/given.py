"""Candidates that come with a document: somebody else has said what each mention may mean."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import structs

from kgkit.kb import KnowledgeBase
from kgkit.types import CANDIDATE, NO_SENSE, Candidates, Document

_UNKNOWN: Final = 1.0  # of a surface of which the KB knows nothing, all candidates are equally likely


def with_candidates(kb: KnowledgeBase, document: Document, keys: Sequence[Sequence[str] | None]) -> Document:
    """Return *document* with the candidates that its mentions were given.

    Args:
        kb: that knows the entities.
        document: with mentions.
        keys: for each mention the keys of its candidates, in any order; None where a generator is to look.
    """
    mentions = list(document.mentions or ())
    for place, told in enumerate(keys):
        if told is not None:
            candidates = given_candidates(kb, mentions[place].text, told)
            mentions[place] = structs.replace(mentions[place], candidates=candidates)
    return structs.replace(document, mentions=mentions)


def given_candidates(kb: KnowledgeBase, surface: str, keys: Sequence[str]) -> Candidates:
    """Return the candidates of these *keys*, best prior first, equal ones by id.

    The KB's priors of the surface are shared out among them; one that the KB does not know by this surface is
    as likely as the least likely that it does. Keys that it does not have are left out.
    """
    found = kb.candidates(surface)
    known = dict(zip(found.ids.tolist(), found.priors.tolist(), strict=True))
    ids = sorted({entity.id for entity in map(kb.get, keys) if entity is not None})
    weights = [known[number] for number in ids if number in known]
    least = min(weights, default=_UNKNOWN)
    weight = np.array([known.get(number, least) for number in ids], np.float64)
    total = weight.sum()
    priors = weight / total if total > 0 else np.full(len(ids), 1 / max(1, len(ids)))
    order = np.argsort(-priors, kind="stable").tolist()
    return Candidates(np.array([(ids[place], NO_SENSE, priors[place]) for place in order], CANDIDATE))
