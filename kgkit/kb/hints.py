"""What serves in the place of names that people try on a handle, from other libraries."""

from typing import Final

_CANDIDATES = "kb.candidates(SURFACE) gives candidates, kb.decode(CANDIDATES) their entities"
_FRAME = "kb.to_frame() gives a DataFrame"
_GRAPH = "kb.subgraph(KEYS, radius=1) gives a graph of networkx, kb.match() yields all triples"
_KEY = "kb[KEY] gives an entity, kb.search(TEXT) finds some"
_MANIFEST = "kb.manifest says what the build is"
_NEAREST = "kb.nearest(KEY) gives the entities whose vectors are nearest"
_OPEN = "kgkit.open_kb(NAME) opens a knowledge base"

HINTS: Final = {
    "aliases": "kb.surfaces_of(KEY) gives those of an entity, kb.surfaces() yields every surface",
    "describe": "kb[KEY].description is what an entity means, kb.manifest says what the build is",
    "edges": _GRAPH,
    "entity": _KEY,
    "facts": "kb.match(subject=KEY) yields the triples of an entity",
    "find": "kb.search(TEXT) finds entities",
    "get_alias_candidates": _CANDIDATES,
    "get_candidates": _CANDIDATES,
    "get_entity": _KEY,
    "graph": _GRAPH,
    "head": "kb.to_frame().head() shows the first entities",
    "hypernyms": "kb.neighbors(KEY, 'hypernym') gives the hypernyms of an entity",
    "hyponyms": "kb.neighbors(KEY, 'hyponym') gives the hyponyms of an entity",
    "info": _MANIFEST,
    "items": "kb.keys() yields all keys, kb.entities() all entities",
    "lemmas": "kb.candidates(WORD) gives what it can mean, kb.surfaces() yields every surface",
    "link": "kgkit.link(TEXT, kb) links a text",
    "lookup": "kb.search(TEXT) finds entities, kb[KEY] gives one",
    "most_similar": _NEAREST,
    "nearest_neighbors": _NEAREST,
    "neighbours": "kb.neighbors(KEY) gives the entities beside one",
    "nodes": "kb.entities() yields all entities, kb.subgraph(KEYS, radius=1) gives a graph of networkx",
    "path_similarity": "kb.path(A, B) gives a shortest path",
    "query": "kb.match(SUBJECT, RELATION, OBJECT) yields triples",
    "sample": "kb.to_frame().sample(N) draws entities",
    "save": "kb.export(FILE) writes the KB in another program's format; a build is on the disk already",
    "senses": "kb.candidates(WORD) gives what it can mean, kb.decode(CANDIDATES) their entities",
    "shortest_path": "kb.path(A, B) gives a shortest path",
    "similar": _NEAREST,
    "similarity": "kb.vectors(NAME) has vectors, kb.nearest(KEY) gives the nearest with their cosine",
    "stats": _MANIFEST,
    "synset": "kb[KEY] gives an entity",
    "synsets": "kb.candidates(WORD) gives what it can mean, kb.decode(CANDIDATES) their entities",
    "to_csv": "kb.export(FILE) writes the KB, kb.to_frame().to_csv(FILE) its entities",
    "to_dataframe": _FRAME,
    "to_json": "kb.export('FILE.jsonl') writes the KB",
    "to_networkx": _GRAPH,
    "to_pandas": _FRAME,
    "triples": "kb.match() yields all triples",
    "values": "kb.entities() yields all entities",
    "vector": "kb.vectors(NAME) has vectors, a row for each entity.id",
    "words": "kb.surfaces() yields every surface",
}

# Keywords: no text in the sources names what transformers loads by, so that its calls can be searched for.
CLASS_HINTS: Final = dict(  # noqa: C408
    build="kgkit.build_kb(BUILDER, SOURCE, name=NAME) builds a knowledge base",
    from_csv="kgkit.build_kb('table', FILE, name=NAME) builds a knowledge base from a table",
    from_file="kgkit.import_kb(FILE) builds a knowledge base from a file",
    from_pretrained=_OPEN,
    load=_OPEN,
    open=_OPEN,
)
