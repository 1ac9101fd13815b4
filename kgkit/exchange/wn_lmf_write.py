"""WN-LMF, the format of wordnets, written by the package `wn`.

An entity that an alias names as its sense, or that is tied to a synset, becomes
a `Sense`, every other one a `Synset`. A surface and a part of speech make a `LexicalEntry`, each alias of it
a `Sense`. The keys stand in `dc:identifier`, ids are made of them.
"""

import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgkit.building.contract import KBRecords
from kgkit.exchange import wn_lmf_names as names
from kgkit.exchange.contract import Format
from kgkit.exchange.xml_text import escape_text
from kgkit.types import Alias, Entity

__all__ = ["WNLMF"]

_VERSION = "1.4"
_AT_ONCE = 1 << 20

Element = dict[str, Any]


class WNLMF(Format):
    """A wordnet of synsets, entries and senses."""

    name = "wn-lmf"
    title = "WN-LMF 1.4"
    suffixes = (".xml",)
    builder = "wn-lmf"
    losses = (
        "attributes of synsets but ili, lexfile, examples and lemmas; verb frames come back on their senses",
        "attributes of senses but count, rank, frames and marker",
        "types and kinds, and descriptions of senses",
        "parts of speech but n, v, a, r, s, t, c, p, x and u; a sense has that of its synset",
        "facts of which a synset is the subject and a sense the object, unless the relation has an inverse",
        "redirects, aliases of senses, and irregular forms of what is no alias of that part of speech",
        "further spellings of one sense, which come back as irregular forms, and the lemmas of their synset",
        "fractions of counts",
        "empty labels, and control characters, which are written `\\u0001`",
        "runs of white space in descriptions and examples, which become one space",
        "the order of entities: synsets come first, then senses by their entries",
        "the order of meanings that tie, and the smoothing and generator of the build",
    )

    def files(self, records: KBRecords) -> Mapping[str, Iterator[bytes]]:
        """Return one file of XML with one lexicon: synsets, senses, relations and irregular forms."""
        return {"": _dump(names.lmf(), records)}


def _dump(lmf: Any, records: KBRecords) -> Iterator[bytes]:
    resource = {"lmf_version": _VERSION, "lexicons": [_Lexicon(records).element()]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wordnet.xml"  # the package writes to a path only
        lmf.dump(resource, path)
        del resource
        with path.open("rb") as file:
            while content := file.read(_AT_ONCE):
                yield content


class _Lexicon:
    """Makes the one lexicon of a knowledge base; all of it is in memory, as `wn` wants it."""

    def __init__(self, records: KBRecords) -> None:
        self.records = records
        name = names.xml_id(records.name)
        self.id = name if name[:1].isalpha() else f"kb-{name}"
        aliases = list(records.aliases())
        aliased = {alias.sense for alias in aliases if alias.sense is not None}
        tied = dict(self._senses_without_alias(aliased))
        # Of a chain of relations only the first step leads from a sense to a synset.
        self.synset_of = {
            key: synset for key, synset in tied.items() if synset not in tied and synset not in aliased
        }
        self.sense_keys = aliased | self.synset_of.keys()
        self.senses: dict[str, Element] = {}  # of the entities that are senses
        self.synsets: dict[str, Element] = {}
        self.entities: dict[str, Entity] = {}  # of those in `senses`
        self.frames: dict[str, str] = {}  # id -> text
        self.entries: dict[tuple[str, str], Element] = {}
        self.by_lemma: dict[tuple[str, str], Element] = {}
        self._fold = records.folding.fold
        self.frames_of_synset: dict[str, list[str]] = {}
        self.labels: dict[str, str] = {}
        self.members: dict[str, Sequence[str]] = {}
        self._take_entities()
        self._take_aliases(aliases)

    def element(self) -> Element:
        """Return the lexicon as `wn` writes it."""
        self._finish_synsets()
        self._take_triples()
        self._take_forms()
        info, properties = self.records.info, self.records.properties
        meta = {"creator": "kgkit"}
        if info.date:
            meta["date"] = info.date
        return {
            "id": self.id,
            "label": escape_text(info.name or self.records.name),
            "language": properties.language or "und",
            "email": "",
            "license": escape_text(info.licence),
            "version": escape_text(info.version) or names.NO_VERSION,
            "url": escape_text(info.url),
            "meta": meta,
            "entries": list(self.entries.values()),
            "synsets": list(self.synsets.values()),
            "frames": [
                {"id": name, "subcategorizationFrame": text} for name, text in sorted(self.frames.items())
            ],
        }

    def _id(self, key: str) -> str:
        # As `wn` wants it, ids begin with that of the lexicon.
        return f"{self.id}-{names.xml_id(key)}"

    def _senses_without_alias(self, aliased: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the senses that no alias names, each with its synset.

        An alias has one sense, and a synset may have two of one word, as *earth* and *Earth* are in WordNet.
        """
        for triple in self.records.triples():
            if triple.relation == names.IN_SYNSET and triple.subject not in aliased:
                yield triple.subject, triple.object

    # -- synsets ------------------------------------------------------------

    def _take_entities(self) -> None:
        for entity in self.records.entities():
            if entity.key in self.sense_keys:
                self.entities[entity.key] = entity
            else:
                self.synsets[entity.key] = self._synset(entity)

    def _synset(self, entity: Entity) -> Element:
        attributes = entity.attributes
        meta = {"identifier": escape_text(entity.key)}
        synset: Element = {
            "id": self._id(entity.key),
            "ili": str(attributes.get("ili", "")),
            "lexfile": escape_text(str(attributes.get("lexfile", ""))),
            "meta": meta,
            "definitions": [{"text": escape_text(entity.description)}] if entity.description else [],
            "relations": [],
            "examples": [{"text": escape_text(text)} for text in _texts(attributes.get("examples"))],
        }
        if entity.pos in names.PARTS_OF_SPEECH:
            synset["partOfSpeech"] = entity.pos
        self.labels[entity.key] = entity.label
        if lemmas := _texts(attributes.get("lemmas")):
            self.members[entity.key] = lemmas
        if frames := attributes.get("frames"):
            self.frames_of_synset[entity.key] = self._subcat(frames)
        return synset

    def _finish_synsets(self) -> None:
        """Name the members, and the label where it is not that of the first one."""
        of_synset: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for entry in self.entries.values():
            for sense in entry["senses"]:
                of_synset[sense["synset"]].append((entry["lemma"]["writtenForm"], sense["id"]))
        for key, synset in self.synsets.items():
            senses = of_synset[synset["id"]]
            if key in self.members:
                by_word = dict(reversed(senses))
                ids = [by_word.get(escape_text(word), "") for word in self.members[key]]
                if all(ids):
                    synset["members"] = ids
            first = senses[0][0] if senses else ""
            if synset.get("members"):
                first = escape_text(self.members[key][0])
            if first != escape_text(self.labels[key]):
                synset["meta"]["title"] = escape_text(self.labels[key])

    # -- entries and senses -------------------------------------------------

    def _take_aliases(self, aliases: Sequence[Alias]) -> None:
        aliases = self._with_all_senses(aliases)
        labelled = {alias.sense for alias in aliases if alias.sense is not None and self._is_label(alias)}
        further: list[Alias] = []
        for number, alias in enumerate(aliases):
            if alias.key not in self.synsets:
                continue
            sense = alias.sense
            if sense is not None and (
                sense in self.senses or (sense in labelled and not self._is_label(alias))
            ):
                further.append(alias)
                continue
            entry = self._entry(alias.surface, self.synsets[alias.key].get("partOfSpeech", "x"))
            entry["senses"].append(self._sense(number, alias))
        for alias in further:  # another spelling of a sense that has its entry
            element = self.senses[alias.sense or ""]
            if element["synset"] == self._id(alias.key):
                entry = self.entries[element["entry"]]
                entry["forms"].append({"writtenForm": escape_text(alias.surface)})
        for element in self.senses.values():
            del element["entry"]

    def _with_all_senses(self, aliases: Sequence[Alias]) -> Sequence[Alias]:
        """Return the aliases, and give each sense without one that of its label, or a further one."""
        without: dict[tuple[str, str], list[str]] = defaultdict(list)
        for key, synset in self.synset_of.items():
            if key in self.entities and synset in self.synsets:
                without[self.entities[key].label or key, synset].append(key)
        taken: list[Alias] = []
        for alias in aliases:
            keys = [] if self._is_label(alias) else without.get((alias.surface, alias.key), [])
            taken.append(Alias(alias.surface, alias.key, alias.count, keys.pop(0)) if keys else alias)
        return [
            *taken,
            *(Alias(surface, synset, 0, key) for (surface, synset), keys in without.items() for key in keys),
        ]

    def _is_label(self, alias: Alias) -> bool:
        """Return whether an alias spells its sense as that is labelled."""
        entity = self.entities.get(alias.sense or "")
        return entity is not None and entity.label == alias.surface and alias.key in self.synsets

    def _entry(self, surface: str, pos: str) -> Element:
        entry = self.entries.get((surface, pos))
        if entry is None:
            entry = self.entries[surface, pos] = {
                "id": f"{self.id}-entry-{len(self.entries) + 1}",
                "lemma": {"writtenForm": escape_text(surface), "partOfSpeech": pos},
                "forms": [],
                "senses": [],
            }
            self.by_lemma.setdefault((self._fold(surface), pos), entry)
        return entry

    def _sense(self, number: int, alias: Alias) -> Element:
        subcat = list(self.frames_of_synset.get(alias.key, ()))
        sense: Element = {
            "id": f"{self.id}-sense-{number + 1}",
            "synset": self._id(alias.key),
            "relations": [],
            "counts": [{"value": round(alias.count)}] if alias.count else [],
            "meta": {"type": names.ALIAS},
            "subcat": subcat,
        }
        entity = self.entities.get(alias.sense) if alias.sense is not None else None
        if entity is None:
            return sense
        attributes = entity.attributes
        sense["id"] = self._id(entity.key)
        sense["meta"] = {"identifier": escape_text(entity.key)}
        sense["entry"] = alias.surface, self.synsets[alias.key].get("partOfSpeech", "x")
        if entity.label != alias.surface:
            sense["meta"]["title"] = escape_text(entity.label)
        if "count" in attributes:
            sense["counts"] = [{"value": round(alias.count)}]
        if isinstance(rank := attributes.get("rank"), int):
            sense["n"] = rank
        if marker := attributes.get("marker"):
            sense["adjposition"] = str(marker)
        if frames := attributes.get("frames"):
            sense["subcat"] = list(dict.fromkeys([*subcat, *self._subcat(frames)]))
        self.senses[entity.key] = sense
        return sense

    def _subcat(self, frames: Any) -> list[str]:
        ids = []
        for frame in frames if isinstance(frames, list) else [frames]:
            name = f"{self.id}-frame-{names.xml_id(str(frame))}"
            self.frames[name] = escape_text(str(frame))
            ids.append(name)
        return ids

    # -- facts and forms ----------------------------------------------------

    def _take_triples(self) -> None:
        inverses = self.records.properties.inverses
        for triple in self.records.triples():
            subject, relation, other = triple.subject, triple.relation, triple.object
            self._relate(subject, relation, other)
            if relation in inverses and (other, inverses[relation]) != (subject, relation):
                self._relate(other, inverses[relation], subject)

    def _relate(self, subject: str, relation: str, other: str) -> None:
        sense = self.senses.get(subject)
        target = self.senses.get(other) or self.synsets.get(other)
        if target is None or (sense is None and subject not in self.synsets):
            return
        if sense is None and other in self.senses:
            return  # a SynsetRelation leads to synsets only
        if relation == names.IN_SYNSET and sense is not None and sense["synset"] == target["id"]:
            return  # a sense says so itself
        kind, meta = names.RELATION_OF.get(relation, relation), None
        if (
            kind not in _relation_names(sense is not None)
            or relation in names.RELATION_OF.values()
            or relation == "other"
        ):
            kind, meta = "other", {"type": escape_text(relation)}
        element = sense if sense is not None else self.synsets[subject]
        element["relations"].append({"target": target["id"], "relType": kind, "meta": meta})

    def _take_forms(self) -> None:
        for form in self.records.forms():
            parts = (form.pos, "s") if form.pos == "a" else (form.pos,)
            entry = next(
                (
                    lexical_entry
                    for pos in parts
                    if (lexical_entry := self.by_lemma.get((self._fold(form.lemma), pos)))
                ),
                None,
            )
            if entry is not None:
                entry["forms"].append({"writtenForm": escape_text(form.surface)})


def _relation_names(of_sense: bool) -> frozenset[str]:
    from wn.constants import SENSE_RELATIONS, SYNSET_RELATIONS

    names: frozenset[str] = SENSE_RELATIONS if of_sense else SYNSET_RELATIONS
    return names


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
