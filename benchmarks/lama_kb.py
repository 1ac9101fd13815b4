"""A knowledge base of LAMA's subjects as JSON lines, for the builder `jsonl`.

    python -m benchmarks.lama_kb OUT_DIR [--strict]
    kgkit build-kb jsonl OUT_DIR/kb --name lama
    kgkit embed lama --method text
    kgkit align lama/text --encoder base
    python -m benchmarks.cloze --home HOME --facts OUT_DIR/facts.jsonl --encoder base --kb lama

It is read from the folder `lama` of the shared data. LAMA is CC BY-NC 4.0 and is not passed on: nor may what
is written here.

    key            Wikidata's id of the subject, as LAMA has it; Freebase's where there is none
    label          LAMA's name of it, the most frequent one; names in the evidence are surfaces
    types          what a relation's signature says of its subjects: who was born somewhere is a person
    description    sentences of the evidence, those that begin with a name of the subject first

**Hiding.** A sentence of the evidence comes with one object masked, and 19 to 25 of 100, by how one counts,
say that object once more beside the mask; a sentence of one fact may also say the object of another. So all
objects of all facts of a subject, with their surfaces and aliases, are hidden in all its sentences, whatever
the case: each word that contains one of four letters or more, and shorter ones where they are whole words.

`--strict` makes an entity of each question of T-REx whose subject has evidence of another relation, 1,845
questions: its description and types are of these other relations alone. The facts are written too, with the
keys of these entities.
"""

import json
import lzma
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.jsonl_source import run_writer, source_parser, write_lines
from kgkit.evaluation.facts import MASK, Fact, fact_of

HIDDEN: Final = "…"
"""What stands in a sentence where an object did."""

MOST_SENTENCES: Final = 5
SHORT: Final = 4  # letters; what is shorter is hidden as a whole word only
HEAD: Final = {
    "name": "LAMA's subjects",
    "licence": "CC BY-NC 4.0 (LAMA), not to be passed on; sentences of Wikipedia are CC BY-SA",
    "url": "https://github.com/facebookresearch/LAMA",
    "language": "en",
    "generator": "alias",
}
_SIGNATURES: Final = {
    "person": "P19 P20 P27 P39 P69 P101 P103 P106 P108 P140 P413 P463 P937 P1303 P1412 place_of_birth "
    "place_of_death date_of_birth",
    "organization": "P159 P740",
    "creative work": "P136 P364 P407 P449 P495",
    "product": "P127 P176 P178",
    "musical act": "P264",
    "thing": "P31 P138 P527",
}
TYPES: Final = {relation: kind for kind, relations in _SIGNATURES.items() for relation in relations.split()}
"""What the subjects of a relation are."""


@dataclass
class Subject:
    """What LAMA says of a subject.

    Attributes:
        labels: names, and how many facts have them.
        surfaces: names in the evidence, and how many sentences have them.
        sentences: sentences of the evidence, by relation.
        objects: names of the objects of all facts.
    """

    labels: Counter[str] = field(default_factory=Counter)
    surfaces: Counter[str] = field(default_factory=Counter)
    sentences: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    objects: set[str] = field(default_factory=set)


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the facts of T-REx, then those of Google-RE, as LAMA has them."""
    for part in ("TREx", "Google_RE"):
        for path in sorted((folder / part).glob("*.jsonl*")):
            opener: Any = lzma.open if path.suffix == ".xz" else open
            with opener(path, "rt", encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def evidence(record: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a fact, masked, each once."""
    if "pred" in record:
        return [*dict.fromkeys(record["masked_sentences"])]
    return [*dict.fromkeys(part["masked_sentence"] for part in record["evidences"])]


def objects_of(record: Mapping[str, Any]) -> set[str]:
    """Return all names of the object of a fact."""
    surfaces = (part.get("obj_surface") for part in record.get("evidences", ()))
    names = {record["obj_label"], *record.get("obj_aliases", ()), *surfaces}
    return {name.strip() for name in names if name and name.strip()}


def subjects(facts: Iterable[Mapping[str, Any]]) -> dict[str, Subject]:
    """Return what is said of each subject, by its key."""
    subjects_by_key: dict[str, Subject] = defaultdict(Subject)
    for record in facts:
        fact = fact_of(record)
        subject = subjects_by_key[fact.subject_key]
        subject.labels[fact.subject] += 1
        surfaces = (part.get("sub_surface") for part in record.get("evidences", ()))
        subject.surfaces.update(surface for surface in surfaces if surface and surface.strip())
        subject.sentences[fact.relation] += evidence(record)
        subject.objects |= objects_of(record)
    return dict(subjects_by_key)


def hide(sentence: str, objects: Iterable[str]) -> str:
    """Return a sentence with all *objects* hidden, and what it has masked.

    Example:
        >>> hide("[MASK] is the capital of France, and the French love Paris.", ["Paris", "France"])
        '… is the capital of …, and the French love ….'
    """
    patterns = [
        rf"\w*{re.escape(name)}\w*" if len(name) >= SHORT else rf"(?<!\w){re.escape(name)}(?!\w)"
        for name in sorted(objects, key=lambda name: (-len(name), name))
    ]
    return re.sub("|".join([re.escape(MASK), *patterns]), HIDDEN, sentence, flags=re.IGNORECASE)


def description(subject: Subject, relations: Iterable[str]) -> str:
    """Return what the evidence of some relations says of a subject, with all objects hidden."""
    sentences = dict.fromkeys(text for relation in relations for text in subject.sentences[relation])
    names = tuple({*subject.labels, *subject.surfaces})
    ordered = sorted(sentences, key=lambda text: not text.startswith(names))  # else in LAMA's order
    return " ".join(hide(text, subject.objects) for text in ordered[:MOST_SENTENCES])


def entity_line(key: str, subject: Subject, relations: Sequence[str]) -> dict[str, Any]:
    """Return the line of an entity, of what *relations* and their evidence say."""
    types = dict.fromkeys(TYPES[relation] for relation in relations if relation in TYPES)
    return {
        "key": key,
        "label": subject.labels.most_common(1)[0][0],
        "description": description(subject, relations),
        "types": [*types],
    }


def fact_line(fact: Fact, key: str) -> dict[str, Any]:
    """Return the line of a fact, as `kgkit evaluate cloze` reads it."""
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object, "subject_key": key}


def write(folder: Path, out: Path, *, strict: bool = False) -> dict[str, int]:
    """Write the KB's files into *out*/kb, and the facts beside it; return how many lines each file has.

    Args:
        folder: `lama` of the shared data.
        out: folder for them, made if it is not there.
        strict: whether entities are questions of T-REx, described by other relations alone.
    """
    facts = [record for record in records(folder) if not (strict and "pred" in record)]
    every = subjects(facts)
    entities: dict[str, dict[str, Any]] = {}
    fact_lines = []
    for fact in map(fact_of, facts):
        key, relation = fact.subject_key, fact.relation
        subject = every[key]
        relations = [*subject.sentences]
        if strict:
            relations = [name for name in relations if name != relation and subject.sentences[name]]
            key = f"{key}/{relation}"
            if not relations:
                continue
        if key not in entities:
            entities[key] = entity_line(key, subject, relations)
        fact_lines.append(fact_line(fact, key))
    aliases = [
        {"alias": name, "key": key, "count": count}
        for key in entities
        for name, count in sorted(every[key.partition("/P")[0] if strict else key].surfaces.items())
    ]
    head = {"kgkit": {**HEAD, "version": "strict" if strict else "whole"}}
    return {
        "entities": write_lines(out / "kb" / "entities.jsonl", [head, *entities.values()]) - 1,
        "aliases": write_lines(out / "kb" / "aliases.jsonl", aliases),
        "facts": write_lines(out / "facts.jsonl", fact_lines),
    }


def main() -> None:
    """Write what the command line asks for."""
    parser = source_parser("lama_kb", "LAMA's subjects, for `build-kb jsonl`.", "lama")
    parser.add_argument(
        "--strict", action="store_true", help="an entity for each question, of other relations' evidence"
    )
    run_writer(parser, lambda chosen, folder: write(folder, chosen.out, strict=chosen.strict))


if __name__ == "__main__":
    main()
