"""IRIs of entities, as clients of Spotlight and GERBIL expect them.

a page of Wikipedia           the resource of DBpedia of that title
an entity with an address     that address: the knowledge base has a URL pattern; with the key behind
                              `#` if the pattern has the label, which several entities may have
any other entity              `iri_of_entity`, titles and keys below `http://dbpedia.org/resource/`
"""

import re
from typing import Final
from urllib.parse import quote

from kgkit.evaluation.entity_iris import entity_of_iri, iri_of_entity
from kgkit.urls import UrlPattern

DBPEDIA: Final = "http://dbpedia.org/resource/"
"""What the IRI of a resource of DBpedia begins with, in its English edition."""

_PAGE: Final = re.compile(r"https?://([a-z][a-z0-9-]*)\.(?:m\.)?wikipedia\.org/wiki/")


def resource_iri(key: str, url: str = "", *, by_label: bool = False) -> str:
    """Return the IRI of an entity.

    Args:
        key: its key.
        url: its address on the web; empty if it has none.
        by_label: whether that address is made of its label, so that others may have it too.
    """
    page = _PAGE.match(url)
    if page is None:
        if url and by_label and "#" not in url:
            return f"{url}#{quote(key, safe='')}"
        return url or iri_of_entity(key, DBPEDIA)
    prefix = DBPEDIA if page[1] in ("en", "www") else f"http://{page[1]}.dbpedia.org/resource/"
    return iri_of_entity(entity_of_iri(url) or key, prefix)


def is_by_label(url_pattern: str) -> bool:
    """Say whether the addresses of a knowledge base are made of labels.

    Args:
        url_pattern: its URL pattern; empty if it has none.
    """
    return bool(url_pattern) and UrlPattern(url_pattern).field == "label"


def resource_name(iri: str) -> str:
    """Return the IRI of a resource of DBpedia without its beginning; any other as it is."""
    return iri.removeprefix(DBPEDIA)
