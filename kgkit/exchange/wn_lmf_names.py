"""Names in WN-LMF: relations as kgkit's WordNet calls them, and keys as XML ids."""

import re
from typing import Any, Final

from kgkit.errors import MissingExtra

__all__ = [
    "ALIAS", "INVERSES", "IN_SYNSET", "NO_VERSION", "PARTS_OF_SPEECH", "RELATION_OF", "lmf", "relation",
    "xml_id",
]  # fmt: skip

ALIAS: Final = "alias"
"""The `dc:type` of a sense that stands for an alias only, not for an entity."""
NO_VERSION: Final = "unversioned"
"""Version of a lexicon of a KB without one; the format wants one, and `wn` finds lexicons by it."""
IN_SYNSET: Final = "lemma_in_synset"
PARTS_OF_SPEECH: Final = frozenset("nvarstcpxu")

RELATION_OF: Final = {
    "also_see": "also",
    "similar_to": "similar",
    "entailment": "entails",
    "cause": "causes",
    "domain_usage": "exemplifies",
    "has_domain_usage": "is_exemplified_by",
    **{f"{kind}_holonym": f"holo_{kind}" for kind in ("member", "substance", "part", "location", "portion")},
    **{f"{kind}_meronym": f"mero_{kind}" for kind in ("member", "substance", "part", "location", "portion")},
}
"""What WN-LMF calls a relation that kgkit's WordNet calls otherwise."""
_RELATION: Final = {theirs: ours for ours, theirs in RELATION_OF.items()}

INVERSES: Final = {
    "hypernym": "hyponym",
    "instance_hypernym": "instance_hyponym",
    **{
        f"{kind}_holonym": f"{kind}_meronym"
        for kind in ("member", "substance", "part", "location", "portion")
    },
    "domain_topic": "has_domain_topic",
    "domain_region": "has_domain_region",
    "domain_usage": "has_domain_usage",
    "similar_to": "similar_to",
    "attribute": "attribute",
    "verb_group": "verb_group",
}

_TO_ENCODE: Final = re.compile(r"[^A-Za-z0-9_.]")


def lmf() -> Any:
    """Return the module that reads and writes WN-LMF.

    Raises:
        MissingExtra: if its package is not installed.
    """
    try:
        import wn.lmf
    except ImportError:
        raise MissingExtra("wn", "formats") from None
    return wn.lmf


def relation(kind: str, meta: Any) -> str:
    """Return what kgkit calls a relation of WN-LMF: `other` goes by its `dc:type`."""
    if kind == "other" and meta and meta.get("type"):
        return str(meta["type"])
    return _RELATION.get(kind, kind)


def xml_id(key: str) -> str:
    """Return a key as an id, or part of one: what an id cannot hold as its code between two dashes."""
    return _TO_ENCODE.sub(lambda match: f"-{ord(match[0]):02x}-", key)
