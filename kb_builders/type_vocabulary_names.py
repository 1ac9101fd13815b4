"""The types of the named things of a knowledge base, in the four classes of CoNLL-2003.

    PER     people, animals and beings of myth and fiction with names
    LOC     places: regions, waters, mountains, buildings, roads, heavenly bodies
    ORG     companies, parties, offices, schools, churches, newspapers
    MISC    whatever else has a name, and nationalities, languages and religions

They come from what a KB says of its entities, never from labelled text: a lexical database says it by
its hypernyms (`INSTANCES` and `CLASSES` name the branches of WordNet), any other by `Entity.types`; a
WordNet that was added to says it by both.

WordNet files few organizations, and no nationality, as an instance of anything: `Central Intelligence
Agency` and `Frenchman` are classes there. A class is therefore taken too where its branch has names in it.
Not under places, where they are `W.C.` and `HQ`.

A surface is a name if each of its words begins with, or at least has, a capital letter, numbers, function
words and the particles of names aside: `French capital` is not one. Its words are what white space
separates, without commas, quotation marks, brackets and the clitic `'s`; without function words, particles,
numbers and initials. In scripts that know no capitals every surface is a name.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kgkit.building import KBRecords, Triple
from kgkit.errors import UnknownName, UsageError

TYPES: Final = ("LOC", "MISC", "ORG", "PER")

INSTANCES: Final[Mapping[str, tuple[str, ...]]] = {
    "PER": ("person.n.01", "animal.n.01", "imaginary_being.n.01", "spiritual_being.n.01"),
    "LOC": (
        *("location.n.01", "land.n.04", "body_of_water.n.01", "geological_formation.n.01", "forest.n.01"),
        *("structure.n.01", "facility.n.01", "way.n.06", "part.n.03"),
        *("celestial_body.n.01", "constellation.n.02", "asterism.n.02", "galaxy.n.03"),
    ),
    "ORG": ("organization.n.01", "political_movement.n.01", "newspaper.n.01", "magazine.n.01"),
}
"""Type -> roots of its branches; instances below none of them are MISC."""

CLASSES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("PER", ("imaginary_being.n.01", "spiritual_being.n.01")),
    ("MISC", ("religion.n.01", "religion.n.02")),  # before ORG: WordNet files some as institutions
    ("ORG", (*INSTANCES["ORG"], "legislature.n.01", "court.n.01")),
    ("MISC", ("person.n.01", "people.n.01", "ethnic_group.n.01", "language.n.01", "contest.n.01")),
)
"""Type -> roots of the branches whose classes may have names; the first that fits wins."""

# Words of `Entity.types`, in small letters and without spaces; else an entity is MISC.
TYPE_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "PER": frozenset(
        "per person persons people human humans individual man woman character fictionalcharacter deity "
        "artist athlete actor author writer politician musician scientist q5".split()
    ),
    "LOC": frozenset(
        "loc location locations place places gpe geopoliticalentity geographicalentity populatedplace "
        "settlement city cities town village municipality country countries state province county district "
        "region continent island mountain river lake sea ocean waterbody park street road bridge airport "
        "building facility fac celestialbody planet star".split()
    ),
    "ORG": frozenset(
        "org organization organizations organisation organisations company companies corporation business "
        "enterprise agency governmentagency institution university college school club team sportsteam "
        "band party politicalparty newspaper magazine church militaryunit".split()
    ),
}
EMPTY_NAMES: Final = frozenset("unk ukn unknown none nil null thing entity object".split())

FUNCTION_WORDS: Final = frozenset("a an and at by for from in of on or the to with".split())
PARTICLES: Final = frozenset(
    "al bin da dal das de degli dei del della der des di do dos du e el en ibn la las le les los "
    "of su sur te ten ter und van von y zu zum zur".split()
)

_AROUND: Final = ",;:!?()[]\"“”‘'’"
_CLITIC: Final = re.compile(r"['’][sS]\Z")
_NO_LETTER: Final = re.compile(r"[\W\d_]")


class Collected:
    """Names of one type and their words, with counts.

    Attributes:
        names: number of names.
        counts: counts by name and by word; how often they stand in names, weighted by the names' counts.
    """

    def __init__(self) -> None:
        self.names = 0
        self.counts: dict[str, float] = defaultdict(float)

    def add(self, surface: str, words: Iterable[str], weight: float) -> None:
        """Take in a name and its words."""
        self.names += 1
        for word in dict.fromkeys([surface, *words]):
            self.counts[word] += weight


def types_of(kb: KBRecords) -> dict[str, tuple[str, ...]]:
    """Return the types of every entity of *kb* that has one of the four.

    Raises:
        UsageError: if the KB does not say who is a person, a place or an organization.
    """
    types = _by_types(kb) | _by_hypernyms(kb)
    if not types:
        raise UsageError(
            f"knowledge base {kb.name!r} does not tell persons, locations and organizations: its entities "
            "have no such types, and it has no WordNet hierarchy (instance_hypernym, hypernym)"
        )
    return types


def collect_names(
    kb: KBRecords, types: Mapping[str, Iterable[str]]
) -> tuple[dict[str, Collected], Counter[str]]:
    """Return the names of the entities in *types*, by type, and how many surfaces are no names.

    The count of a name is that of the alias, smoothed as its KB does; 1 for all where nobody counted.
    """
    smoothing = kb.properties.smoothing
    by_kind = {kind: Collected() for kind in TYPES}
    excluded: Counter[str] = Counter()
    counted = False
    waiting: list[tuple[str, str, list[str], float]] = []
    for alias in kb.aliases():
        kinds = types.get(alias.key)
        if kinds is None:
            continue
        words = name_words(alias.surface)
        if words is None:
            excluded.update(kinds)
            continue
        weight = alias.count + smoothing
        counted = counted or weight > 0
        waiting.extend((kind, alias.surface, words, weight) for kind in kinds)
    for kind, surface, words, weight in waiting:
        by_kind[kind].add(surface, words, weight if counted else 1.0)
    return by_kind, excluded


def name_words(surface: str) -> list[str] | None:
    """Return the words of a name that tell its type; None if *surface* is no name.

    Example:
        >>> name_words("Leonardo da Vinci"), name_words("French capital"), name_words("the Hague")
        (['Leonardo', 'Vinci'], None, ['Hague'])
    """
    words: list[str] = []
    named = False
    for piece in surface.split():
        word = _CLITIC.sub("", piece.strip(_AROUND)).strip(_AROUND)
        letters = _NO_LETTER.sub("", word)
        if not letters or word in PARTICLES or word.lower() in FUNCTION_WORDS:
            continue
        if letters == letters.lower() != letters.upper():
            return None
        named = True
        if len(letters) > 1 or letters.lower() == letters.upper():  # not an initial
            words.append(word)
    return words if named else None


def _by_types(kb: KBRecords) -> dict[str, tuple[str, ...]]:
    """Return what `Entity.types` says; nothing if none of it is a person, place or organization."""
    types: dict[str, tuple[str, ...]] = {}
    telling = False
    kinds_of: dict[str, str | None] = {}
    for entity in kb.entities():
        kinds: set[str] = set()
        for name in entity.types:
            if name not in kinds_of:
                kinds_of[name] = _kind(name)
            if (kind := kinds_of[name]) is not None:
                kinds.add(kind)
        if len(kinds) > 1:
            kinds.discard("MISC")  # somebody who is a person and a thing of interest
        if kinds:
            types[entity.key] = tuple(sorted(kinds))
            telling = telling or kinds != {"MISC"}
    return types if telling else {}


def _kind(name: str) -> str | None:
    """Return the class of a type's name, `dbo:PopulatedPlace` or `people`; None if it says nothing."""
    last = re.split("[/:#]", name.rstrip("/:#"))[-1]
    bare = "".join(filter(str.isalnum, last)).lower()
    if not bare or bare in EMPTY_NAMES:
        return None
    for kind, names in TYPE_NAMES.items():
        if bare in names:
            return kind
    return "MISC"


def _by_hypernyms(kb: KBRecords) -> dict[str, tuple[str, ...]]:
    """Return what the hierarchy of a WordNet says; nothing of a KB that has none."""
    below: dict[str, list[str]] = defaultdict(list)
    instances: dict[str, None] = {}
    for triple in _triples(kb, "instance_hypernym"):
        below[triple.object].append(triple.subject)
        instances[triple.subject] = None
    if not instances:
        return {}
    for triple in _triples(kb, "hypernym"):
        below[triple.object].append(triple.subject)
    branches = {kind: _branch(roots, below) for kind, roots in INSTANCES.items()}
    if not any(key in branch for key in instances for branch in branches.values()):
        return {}
    types: dict[str, tuple[str, ...]] = {}
    for key in instances:
        types[key] = tuple(kind for kind, branch in branches.items() if key in branch) or ("MISC",)
    for kind, roots in CLASSES:
        for key in _branch(roots, below):
            if key not in types:
                types[key] = (kind,)
    for entity in kb.entities("synset"):
        if entity.pos == "a":  # French, Marxist; satellites hold Old, New and A-one
            types.setdefault(entity.key, ("MISC",))
    return types


def _branch(roots: Iterable[str], below: Mapping[str, list[str]]) -> dict[str, None]:
    """Return what stands below *roots*, and they themselves, in an order that does not change."""
    branch = dict.fromkeys(roots)
    waiting = list(branch)
    while waiting:
        for key in below.get(waiting.pop(), ()):
            if key not in branch:
                branch[key] = None
                waiting.append(key)
    return branch


def _triples(kb: KBRecords, relation: str) -> Iterator[Triple]:
    try:
        yield from kb.triples(relation)
    except UnknownName:
        return
