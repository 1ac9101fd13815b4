"""What serves in the place of names that people try on records, from other libraries."""

from typing import Final

_SURFACES = "kb.surfaces_of(entity) gives its surfaces; entity.label is the entity's name"
_DECODE = "kb.decode(candidates) gives candidates with their entities"
_ATTRIBUTES = "entity.attributes has what else the source says"
_MATCH = "kb.match(entity.key) yields its triples, kb.neighbors(entity, RELATION) the entities beside it"
PAGE = "linked.to_html() returns a page as text: Path(FILE).write_text(linked.to_html())"

ENTITY: Final = {
    "aliases": _SURFACES,
    "definition": "entity.description is its definition",
    "edges": _MATCH,
    "examples": f"{_ATTRIBUTES}, as 'examples'",
    "facts": _MATCH,
    "gloss": "entity.description is its definition",
    "hypernym": "kb.neighbors(entity, 'hypernym') gives its hypernyms",
    "hypernym_paths": "kb.walk(entity, 'hypernym') yields its hypernyms, and theirs",
    "hypernyms": "kb.neighbors(entity, 'hypernym') gives its hypernyms",
    "hyponym": "kb.neighbors(entity, 'hyponym') gives its hyponyms",
    "hyponyms": "kb.neighbors(entity, 'hyponym') gives its hyponyms",
    "kb_id": "entity.key is its stable name, entity.id a number in one build",
    "lemma_names": f"{_ATTRIBUTES}, as 'lemmas'",
    "lemmas": f"{_ATTRIBUTES}, as 'lemmas'",
    "name": "entity.label is its name, entity.key its key",
    "names": _SURFACES,
    "properties": _ATTRIBUTES,
    "related": "kb.neighbors(entity) gives the entities beside it",
    "relations": _MATCH,
    "surfaces": "kb.surfaces_of(entity) gives its surfaces",
    "synonyms": _SURFACES,
    "title": "entity.label is its name, entity.key its key",
    "triples": _MATCH,
    "type": "entity.types are its types, entity.kind its sort of node in the knowledge base",
    "uri": "kb.url(entity) is its address, entity.key its stable name",
    "url": "kb.url(entity) is its address",
    "vector": "kb.vectors(NAME) has vectors, a row for each entity.id",
}

ROW: Final = dict.fromkeys(("entity", "key", "kb_id", "label"), _DECODE)

CANDIDATES: Final = dict.fromkeys(
    ("entities", "keys", "labels", "to_dict", "to_frame"),
    _DECODE,
)

LINK_CANDIDATE: Final = {
    "description": "kb[candidate.entity].description is the entity's",
    "key": "candidate.entity is the entity's key",
    "name": "candidate.label is the entity's name",
    "probability": "candidate.score is the probability",
}

LINK: Final = {
    "confidence": "link.score is the probability",
    "description": "kb[link.entity].description is the entity's",
    "end_char": "link.end is one past its last code point",
    "explain": "with explain=True, of kgkit.link or a Linker, link.candidates have the parts of their scores",
    **dict.fromkeys(("entity_id", "kb_id", "kb_id_", "key"), "link.entity is the entity's key"),
    **dict.fromkeys(("page_id", "qid", "wikidata"), "link.ids has the identifiers that the KB has"),
    "label_": "link.label is the entity's name",
    "mention": "link.text is the text that is linked",
    "name": "link.label is the entity's name, link.entity its key",
    "prior": "link.candidates have a prior each, link.score is the probability",
    "prob": "link.score is the probability",
    "probability": "link.score is the probability",
    "span": "link.start and link.end are its offsets",
    "start_char": "link.start is its first code point",
    "surface": "link.text is the text that is linked",
}

DOCUMENT: Final = {
    **dict.fromkeys(("entities", "ents", "mentions", "spans"), "linked.links are the links"),
    **dict.fromkeys(("doc", "tokens"), "linked.text is the text, linked.links are its links with offsets"),
    **dict.fromkeys(("render", "save", "show"), PAGE),
    "to_json": "json.dumps(linked.to_dict()) gives JSON",
    **dict.fromkeys(("to_df", "to_pandas"), "linked.to_frame() gives a DataFrame"),
}

LINKER: Final = {
    **dict.fromkeys(
        ("annotate", "link", "link_text", "predict", "process", "run"),
        "linker.pipe(TEXTS) yields linked documents, kgkit.link(TEXT, kb) links one text",
    ),
    **dict.fromkeys(("cuda", "to"), "Linker.open(kb, device='cuda') opens a linker on a GPU"),
}

_OPEN = (
    "Linker.open(KB, model=NAME) opens a knowledge base and a model; kgkit.models() lists the trained ones"
)

# Keywords: no text in the sources names what transformers loads by, so that its calls can be searched for.
LINKER_CLASS: Final = dict(from_pretrained=_OPEN, load=_OPEN)  # noqa: C408
