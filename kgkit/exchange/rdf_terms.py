"""Names in RDF: the vocabulary of kgkit, and keys and relations as IRIs.

    <urn:kgkit:entity:KEY>       an entity         prefix e:
    <urn:kgkit:relation:NAME>    a relation        prefix r:
    <urn:kgkit:type:NAME>        a type            prefix t:
    <urn:kgkit:vocabulary:…>     what follows      prefix k:
    <urn:kgkit:kb>               the knowledge base itself

In KEY and NAME whatever is no letter, digit, `_`, `.`, `~` or `-` is
percent-encoded, and so is a `.` at the end: rdflib cannot read such a name in
Turtle. A key that is an `http` IRI already stands for itself.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

__all__ = [
    "ALIASES", "ATTRIBUTES", "COUNT", "DESCRIPTIONS", "FORM", "FORM_OF", "FORM_POS", "HEAD", "KB", "KIND",
    "LABELS", "OBJECT", "PLAIN", "PREDICATE", "PREFIXES", "RDF_JSON", "REDIRECT", "SENSE", "SUBJECT", "TYPE",
    "name_of", "namer", "short_name",
]  # fmt: skip

_ENTITY: Final = "urn:kgkit:entity:"
_RELATION: Final = "urn:kgkit:relation:"
_TYPE_NAME: Final = "urn:kgkit:type:"
_OURS: Final = "urn:kgkit:vocabulary:"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
_DC: Final = "http://purl.org/dc/elements/1.1/"
_DCTERMS: Final = "http://purl.org/dc/terms/"
_FOAF: Final = "http://xmlns.com/foaf/0.1/"
_SCHEMAS: Final = ("http://schema.org/", "https://schema.org/")

PREFIXES: Final = {
    "e": _ENTITY, "k": _OURS, "r": _RELATION, "rdf": _RDF, "rdfs": _RDFS, "skos": _SKOS, "t": _TYPE_NAME,
}  # fmt: skip

KB: Final = "urn:kgkit:kb"
HEAD: Final = f"{_OURS}knowledgeBase"
KIND: Final = f"{_OURS}kind"
ATTRIBUTES: Final = f"{_OURS}attributes"
REDIRECT: Final = f"{_OURS}redirectsTo"
COUNT: Final = f"{_OURS}count"
SENSE: Final = f"{_OURS}sense"
FORM: Final = f"{_OURS}form"
FORM_OF: Final = f"{_OURS}formOf"
FORM_POS: Final = f"{_OURS}formPos"
TYPE: Final = f"{_RDF}type"
SUBJECT: Final = f"{_RDF}subject"
PREDICATE: Final = f"{_RDF}predicate"
OBJECT: Final = f"{_RDF}object"
RDF_JSON: Final = f"{_RDF}JSON"

LABELS: Final = (
    f"{_RDFS}label",
    f"{_SKOS}prefLabel",
    *(f"{schema}name" for schema in _SCHEMAS),
    f"{_FOAF}name",
)
ALIASES: Final = (
    f"{_SKOS}altLabel",
    f"{_SKOS}hiddenLabel",
    *(f"{schema}alternateName" for schema in _SCHEMAS),
    f"{_FOAF}nick",
)
DESCRIPTIONS: Final = (
    f"{_SKOS}definition",
    f"{_RDFS}comment",
    f"{_DCTERMS}description",
    f"{_DC}description",
    *(f"{schema}description" for schema in _SCHEMAS),
)
PLAIN: Final = {KIND: "kind", f"{_OURS}pos": "pos"}
_SPECIAL: Final = {*LABELS, *ALIASES, *DESCRIPTIONS, TYPE, SUBJECT, PREDICATE, OBJECT}

_TO_ENCODE: Final = re.compile(r"[^\w.~-]|\.\Z")
_WEB: Final = ("http://", "https://")
_SPACES: Final = {"entity": _ENTITY, "relation": _RELATION, "type": _TYPE_NAME}


def namer(named_node: Callable[[str], Any], space: str) -> Callable[[str], Any]:
    """Return what makes an IRI of a name in *space*: `entity`, `relation` or `type`."""
    begin = _SPACES[space]

    def iri(name: str) -> Any:
        """Return *name* itself if it is an IRI of the web, else a percent-encoded one."""
        if name.startswith(_WEB) and name not in _SPECIAL:
            try:
                return named_node(name)
            except ValueError:
                pass  # no IRI after all
        return named_node(begin + _TO_ENCODE.sub(_percent, name))

    return iri


def name_of(iri: str) -> str:
    """Return the name that an IRI stands for: what was encoded in it, or all of it."""
    if iri.startswith("urn:kgkit:"):
        for begin in _SPACES.values():
            if iri.startswith(begin):
                return unquote(iri.removeprefix(begin))
    return iri


def short_name(iri: str) -> str:
    """Return how people might call what an IRI names: its last part, underscores as spaces."""
    if iri.startswith("_:"):
        return ""
    last = re.split(r"[/#:]", iri.rstrip("/#:"))[-1]
    return unquote(last).replace("_", " ").strip() or iri


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
