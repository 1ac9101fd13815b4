"""Entities as IRIs: pages of Wikipedia, resources of DBpedia, items of Wikidata."""

import re
from typing import Final
from urllib.parse import quote, unquote

WIKIPEDIA: Final = "http://en.wikipedia.org/wiki/"
"""What the IRI of a title begins with, unless another beginning is chosen."""

WIKIDATA: Final = "http://www.wikidata.org/entity/"
"""What the IRI of an item of Wikidata begins with."""

NOT_IN_KB: Final = "http://aksw.org/notInWiki/"
"""What the IRI of an entity begins with that no knowledge base has: GERBIL's convention for NIL."""

_PAGE: Final = re.compile(
    r"https?://(?:(?:[a-z][a-z0-9-]*\.)*wikipedia\.org/wiki/|(?:[a-z][a-z0-9-]*\.)?dbpedia\.org/(?:resource|page)/"
    r"|(?:www\.)?wikidata\.org/(?:entity|wiki)/)(.+)",
    re.DOTALL,
)
_ITEM: Final = re.compile(r"Q[1-9][0-9]*")
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`\x00-\x20]+")
_SAFE: Final = "/:()!$&'*,;=@~"


def entity_of_iri(iri: str) -> str | None:
    """Return the entity that an IRI stands for; None for NIL.

    Args:
        iri: IRI of a page of Wikipedia, a resource of DBpedia or an item of Wikidata, whose title or
            identifier is returned, with spaces for underscores in titles; any other is its own entity.
    """
    if iri.startswith((NOT_IN_KB, NOT_IN_KB.replace("http:", "https:"))):
        return None
    match = _PAGE.fullmatch(iri)
    return unquote(match[1]).replace("_", " ") if match else iri


def iri_of_entity(entity: str, prefix: str = WIKIPEDIA) -> str:
    """Return the IRI of an entity: itself if it is one of the web, an item of Wikidata, else *prefix* and it.

    Args:
        entity: title or key.
        prefix: what the IRIs of titles begin with.
    """
    if entity.startswith(("http://", "https://", "urn:")) and _IRI.fullmatch(entity):
        return entity
    beginning = WIKIDATA if _ITEM.fullmatch(entity) else prefix
    return beginning + quote(entity.replace(" ", "_"), safe=_SAFE)
