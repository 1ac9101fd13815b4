"""What serves in the place of names that people try on a handle, from other libraries."""

from typing import Final

HINTS: Final = {
    "aliases": "kb.surfaces_of(KEY) gives those of an entity, kb.surfaces() yields every surface",
    "entity": "kb[KEY] gives an entity, kb.search(TEXT) finds some",
    "facts": "kb.match(subject=KEY) yields the triples of an entity",
    "find": "kb.search(TEXT) finds entities",
    "get_alias_candidates": "kb.candidates(SURFACE) gives candidates, kb.decode(CANDIDATES) their entities",
    "get_candidates": "kb.candidates(SURFACE) gives candidates, kb.decode(CANDIDATES) their entities",
    "head": "kb.to_frame().head() shows the first entities",
    "info": "kb.manifest says what the build is",
    "link": "kgkit.link(TEXT, kb) links a text",
    "lookup": "kb.search(TEXT) finds entities, kb[KEY] gives one",
    "most_similar": "kb.nearest(KEY) gives the entities whose vectors are nearest",
    "neighbours": "kb.neighbors(KEY) gives the entities beside one",
    "query": "kb.match(SUBJECT, RELATION, OBJECT) yields triples",
    "shortest_path": "kb.path(A, B) gives a shortest path",
    "similar": "kb.nearest(KEY) gives the entities whose vectors are nearest",
    "similarity": "kb.vectors(NAME) has vectors, kb.nearest(KEY) gives the nearest with their cosine",
    "synset": "kb[KEY] gives an entity",
    "synsets": "kb.candidates(WORD) gives what it can mean, kb.decode(CANDIDATES) their entities",
    "to_csv": "kb.export(FILE) writes the KB, kb.to_frame().to_csv(FILE) its entities",
    "to_networkx": "kb.subgraph(KEYS, radius=1) gives a graph of networkx",
    "to_pandas": "kb.to_frame() gives a DataFrame",
    "triples": "kb.match() yields all triples",
}
