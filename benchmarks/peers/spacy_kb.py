"""spaCy's `InMemoryLookupKB`, filled with WordNet, and added to."""

import json
import time
from pathlib import Path


def write(home: str, out: str) -> None:
    """Write the synsets, lemmas and priors of kgkit's WordNet in *home* as a KB of spaCy's into *out*."""
    import spacy
    from spacy.kb import InMemoryLookupKB

    import kgkit

    lookup = InMemoryLookupKB(spacy.blank("en").vocab, entity_vector_length=1)
    with kgkit.open_kb("wordnet", home=home) as kb:
        synsets = [entity.key for entity in kb.entities("synset")]
        lookup.set_entities(
            entity_list=synsets, freq_list=[1] * len(synsets), vector_list=[[0.0]] * len(synsets)
        )
        for surface in kb.surfaces():
            candidates = kb.decode(kb.candidates(surface, prefer_case=False))
            # It refuses priors that add up to more than 1, as rounded ones do.
            priors = [0.999 * candidate.prior for candidate in candidates]
            lookup.add_alias(surface, [candidate.entity.key for candidate in candidates], priors)
    lookup.to_disk(out)


def add(kb: str, source: str, out: str) -> dict[str, float]:
    """Read the KB, add the entities of *source* with their aliases, write it; facts it has none."""
    import spacy
    from spacy.kb import InMemoryLookupKB

    vocab = spacy.blank("en").vocab
    start = time.process_time()
    lookup = InMemoryLookupKB(vocab, entity_vector_length=1)
    lookup.from_disk(kb)
    for line in Path(source).read_text(encoding="utf-8").splitlines():
        entity = json.loads(line)
        if "key" in entity:
            lookup.add_entity(entity["key"], freq=1, entity_vector=[0.0])
            lookup.add_alias(entity["label"], [entity["key"]], [1.0])
            for alias in entity["aliases"]:
                lookup.add_alias(alias["text"], [entity["key"]], [1.0])
    lookup.to_disk(out)
    seconds = time.process_time() - start
    surfaces = [f"Zorblax {number}" for number in range(0, 1000, 50)]
    return {"seconds": seconds, "linked": sum(bool(lookup.get_alias_candidates(text)) for text in surfaces)}
