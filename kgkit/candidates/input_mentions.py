"""Mentions that come with a document, and their candidates: somebody else has found them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import structs

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import CANDIDATE, NO_SENSE, Candidates, Document, mention_problem

_UNKNOWN: Final = 1.0  # of a surface of which the KB knows nothing, all candidates are equally likely


class KeyedDocument(Document):
    """A document whose mentions came with the keys of their candidates.

    A `Linker` looks the keys up in its own knowledge base.

    Attributes:
        keys: for each mention the keys of its candidates; None where a generator is to look.
    """

    keys: tuple[tuple[str, ...] | None, ...] = ()


def check_mentions(document: Document) -> None:
    """Refuse a document whose mentions are not spans of its text.

    Args:
        document: document with mentions that somebody else has found; without any there is nothing to check.

    Raises:
        UsageError: if a span is reversed, empty or outside of the text, or the text there is another.
    """
    problem = mention_problem(document.text, document.mentions or ())
    if problem is not None:
        raise UsageError(f"document {document.id!r}: {problem}")


def with_candidates(kb: KnowledgeBase, document: Document, keys: Sequence[Sequence[str] | None]) -> Document:
    """Return *document* with the candidates that its mentions were given.

    Args:
        kb: knowledge base that has the entities.
        document: document with mentions.
        keys: keys of the candidates of each mention, in any order; None where a generator is to look.
    """
    mentions = list(document.mentions or ())
    for index, mention_keys in enumerate(keys):
        if mention_keys is not None:
            candidates = candidates_of_keys(kb, mentions[index].text, mention_keys)
            mentions[index] = structs.replace(mentions[index], candidates=candidates)
    return structs.replace(document, mentions=mentions)


def candidates_of_keys(kb: KnowledgeBase, surface: str, keys: Sequence[str]) -> Candidates:
    """Return the candidates of these *keys*, best prior first, equal ones by id.

    The KB's priors of the surface are shared out among them; one that the KB does not know by this surface is
    as likely as the least likely that it does. Keys that it does not have are left out.
    """
    candidates = kb.candidates(surface)
    priors_by_id = dict(zip(candidates.ids.tolist(), candidates.priors.tolist(), strict=True))
    ids = sorted({entity.id for entity in map(kb.get, keys) if entity is not None})
    weights = [priors_by_id[number] for number in ids if number in priors_by_id]
    least = min(weights, default=_UNKNOWN)
    weight = np.array([priors_by_id.get(number, least) for number in ids], np.float64)
    total = weight.sum()
    priors = weight / total if total > 0 else np.full(len(ids), 1 / max(1, len(ids)))
    order = np.argsort(-priors, kind="stable").tolist()
    return Candidates(np.array([(ids[index], NO_SENSE, priors[index]) for index in order], CANDIDATE))
