"""nltk's WordNet reader: KnowBert's extraction done through it, and look-ups."""

import json
import random
from pathlib import Path
from typing import Any

from benchmarks.timing import passes

SEED = 13

# The relations that KnowBert's extraction asks nltk for (Peters et al. 2019, 4.1; allenai/kb): of the
# pairs that WordNet writes in both directions it reads a single one. Here in the order of our reading.
DIRECTED_RELATIONS = (
    "hypernyms", "instance_hypernyms", "member_holonyms", "substance_holonyms", "part_holonyms",
    "attributes", "entailments", "causes", "also_sees", "verb_groups", "similar_tos",
)  # fmt: skip
SYNSET_RELATIONS = DIRECTED_RELATIONS
LEMMA_RELATIONS = (
    *DIRECTED_RELATIONS, "antonyms", "derivationally_related_forms", "pertainyms",
    "topic_domains", "region_domains", "usage_domains",
)  # fmt: skip


def extract(entities: str, relations: str) -> dict[str, int]:
    """Do the job of KnowBert's extraction: all synsets and lemmas, and the relations above.

    Our own words for the same reading: one JSON object a synset and a lemma, one line a relation. As in
    the original, a lemma's relations are queried for every lemma of every synset.
    """
    from nltk.corpus import wordnet

    nodes = facts = 0
    with (
        Path(entities).open("w", encoding="utf-8") as node_file,
        Path(relations).open("w", encoding="utf-8") as fact_file,
    ):

        def node(record: dict[str, Any]) -> None:
            nonlocal nodes
            node_file.write(json.dumps(record) + "\n")
            nodes += 1

        def fact(subject: str, relation: str, object_: str) -> None:
            nonlocal facts
            fact_file.write(f"{subject}\t{relation}\t{object_}\n")
            facts += 1

        for synset in wordnet.all_synsets():
            name, pos, lemmas = synset.name(), synset.pos(), synset.lemmas()
            keys = [lemma.key() for lemma in lemmas]
            node(
                {
                    "type": "synset",
                    "id": name,
                    "pos": pos,
                    "definition": synset.definition(),
                    "examples": synset.examples(),
                    "lemmas": keys,
                }
            )
            for relation in SYNSET_RELATIONS:
                for other in getattr(synset, relation)():
                    fact(name, f"synset_{relation}", other.name())
            for key, lemma in zip(keys, lemmas, strict=True):
                node({"type": "lemma", "id": key, "pos": pos, "synset": name, "count": lemma.count()})
                fact(name, "synset_lemma", key)
                for relation in LEMMA_RELATIONS:
                    for other in getattr(lemma, relation)():
                        fact(key, f"lemma_{relation}", other.key())
    return {"nodes": nodes, "facts": facts}


def write_keys(out: str) -> None:
    """Write synset keys (nltk's name, wn's id) and lemmas as written, in random order.

    Of the adjectives' satellites only the lemmas: recent versions of nltk number them apart from other
    adjectives, so that their names are not everybody's.
    """
    from nltk.corpus import wordnet

    synsets: list[tuple[str, str]] = []
    forms: dict[str, str] = {}
    meanings: dict[str, set[str]] = {}
    for synset in wordnet.all_synsets():
        if synset.pos() != "s":
            synsets.append((synset.name(), f"bench-{synset.offset():08d}-{synset.pos()}"))
        for name in synset.lemma_names():
            form = name.replace("_", " ")
            forms.setdefault(form.lower(), form)
            meanings.setdefault(form.lower(), set()).add(synset.name())
    shuffle = random.Random(SEED).shuffle
    lemmas = list(forms.values())
    polysemous = [forms[folded] for folded, names in meanings.items() if len(names) > 1]
    shuffle(synsets)
    shuffle(lemmas)
    shuffle(polysemous)
    Path(out).write_text(json.dumps({"synsets": synsets, "lemmas": lemmas, "polysemous": polysemous}))


def look_up(what: str, keys: str, count: int) -> dict[str, float]:
    """Measure one kind of look-up: `entity`, `lemmas`, `polysemous` or `neighbours`."""
    from nltk.corpus import wordnet

    wordnet.ensure_loaded()
    queries = json.loads(Path(keys).read_text())

    def entities(names: list[str]) -> None:
        for name in names:
            wordnet.synset(name)

    def candidates(lemmas: list[str]) -> None:
        for lemma in lemmas:
            wordnet.synsets(lemma)

    def hypernyms(names: list[str]) -> None:
        for name in names:
            wordnet.synset(name).hypernyms()

    if what in ("lemmas", "polysemous"):
        return passes(candidates, [lemma.replace(" ", "_") for lemma in queries[what][:count]])
    names = [name for name, _ in queries["synsets"][:count]]
    return passes(entities if what == "entity" else hypernyms, names)
