"""Small knowledge bases for the tests of look-ups, candidates and links, and what they were built of.

    SURFACES   aliases in many scripts: case variants, several words, Chinese without spaces, very long ones
    LEXICON    an English lexicon: inflected words, several words, irregular forms, a word of 45 meanings
    FACTS      a graph with cycles, inverses, a symmetric relation, loops and one-way relations
    WORDS      four entities in the words of the tiny encoder, for linkers that read texts

`build` makes a knowledge base of any records; the slow twins in the tests read the records themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import kgkit
from kgkit.building import Alias, Builder, Entity, Files, Form, Record, SourceInfo, Triple
from kgkit.kb import KnowledgeBase
from kgkit.text import folding

FOLDING: Final = folding()
"""Folding of the builds that tests make."""
fold = FOLDING.fold


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of every token of *text*, in code points."""
    return [*FOLDING.spans(FOLDING.comparable(text))]


class Given(Builder):
    """Yields the records it is given."""

    def __init__(
        self, records: Sequence[Record], inverses: Mapping[str, str], smoothing: float, generator: str
    ) -> None:
        self.records = records
        self.inverses, self.smoothing, self.generator = inverses, smoothing, generator  # type: ignore[misc]

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Small"), [])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        yield from self.records


def type_records(**counts: Mapping[str, float]) -> list[Record]:
    """Return records of a knowledge base of types: of each the counts of its words."""
    types = [Entity(name, name, kind="type") for name in counts]
    return [*types, *(Alias(word, name, n) for name, words in counts.items() for word, n in words.items())]


def build(
    folder: Path,
    records: Sequence[Record],
    *,
    name: str = "small",
    inverses: Mapping[str, str] | None = None,
    smoothing: float = 0.0,
    generator: str = "alias",
) -> KnowledgeBase:
    """Build a KB of *records* with *folder* as its home, and open it."""
    kgkit.build_kb(Given(records, inverses or {}, smoothing, generator), folder, name=name, home=folder)
    return kgkit.open_kb(name, home=folder)


# -- the words of the tiny encoder ------------------------------------------

WORDS: Final[Sequence[Record]] = (
    Entity("dog", "dog", "a big red dog barks"),
    Entity("hot dog", "hot dog", "it eats the fruit"),
    Entity("tree", "tree", "a small tree grows"),
    Entity("fruit", "fruit", "a fruit"),
    Alias("dog", "dog", 3),
    Alias("dog", "hot dog", 2),
    Alias("tree", "tree", 2),
    Alias("tree", "fruit", 1),
    Triple("dog", "eats", "hot dog"),
    Triple("tree", "has", "fruit"),
)


def words_documents() -> list[dict[str, object]]:
    """Return 24 documents with gold links into `WORDS`, as lines of JSON have them."""
    examples = [("the dog barks", "dog"), ("the dog eats", "hot dog"), ("a tree grows", "tree")] * 8
    return [
        {"doc_id": number, "tokens": text.split(), "mentions": [{"start": 1, "end": 2, "entity": entity}]}
        for number, (text, entity) in enumerate(examples)
    ]


# -- surfaces ---------------------------------------------------------------

SIXTY_THREE: Final = " ".join(f"w{number}" for number in range(63))
SIXTY_FOUR: Final = " ".join(f"v{number}" for number in range(64))
ENDLESS: Final = "llanfair" * 250  # 2,000 characters: over the limit of a key

SURFACES: Final[Sequence[Alias]] = (
    Alias("US", "United_States", 90),
    Alias("us", "We", 50),
    Alias("us", "United_States", 5),
    Alias("U.S.", "United_States", 30),
    Alias("Turkey", "Turkey_(country)", 60),
    Alias("Turkey", "Turkey_(bird)", 3),
    Alias("turkey", "Turkey_(bird)", 40),
    Alias("TURKEY", "Turkey_(country)", 2),
    Alias("New York", "New_York_City", 50),
    Alias("New York", "New_York_(state)", 20),
    Alias("new york", "New_York_(state)", 1),
    Alias("New York Times", "The_New_York_Times", 9),
    Alias("Times", "The_Times", 7),
    Alias("York", "York", 6),
    Alias("Times Square", "Times_Square", 4),
    Alias("苹果", "Apple_Inc.", 5),
    Alias("苹果", "Apple", 7),
    Alias("苹果公司", "Apple_Inc.", 8),
    Alias("果", "Fruit", 1),
    Alias("北京", "Beijing", 9),
    Alias("北京大学", "Peking_University", 9),
    Alias("大学", "University", 3),
    Alias("ゴジラ", "Godzilla", 3),
    Alias("Straße", "Road", 2),
    Alias("Café Noir", "Coffee", 2),
    Alias("naïve", "Naivety", 1),
    Alias("İstanbul", "Istanbul", 3),
    Alias("ﬁnance", "Finance", 1),
    Alias("בית ספר", "School", 2),
    Alias("हिन्दी", "Hindi", 2),
    Alias("ภาษาไทย", "Thai", 2),
    Alias("👩‍🔬", "Scientist", 1),
    Alias("C++", "C++", 4),
    Alias("AT&T", "AT&T", 4),
    Alias("don't", "Refusal", 1),
    Alias("Teddy's", "Teddy", 1),
    Alias("hot-dog", "Hot_dog", 2),
    Alias("hot dog", "Hot_dog", 5),
    Alias("dog", "Dog", 9),
    Alias(SIXTY_THREE, "Long", 1),
    Alias(SIXTY_FOUR, "Longer", 1),
    Alias(ENDLESS, "Endless", 1),
)


def surfaces_kb(folder: Path, smoothing: float = 1.0) -> KnowledgeBase:
    """Build the KB of `SURFACES`."""
    keys = dict.fromkeys(alias.key for alias in SURFACES)
    pages = [Entity(key, key.replace("_", " "), kind="page") for key in keys]
    return build(folder, [*pages, *SURFACES], name="surfaces", smoothing=smoothing)


def shares_by_hand(
    aliases: Sequence[Alias], text: str, smoothing: float, *, prefer_case: bool, spelled: str | None = None
) -> dict[str, float]:
    """Count what *text* means: the slow twin of the prior of a surface.

    With *prefer_case* the very spelling (*text*, unless *spelled* is given) decides half, where it was seen.
    """
    spelled = text if spelled is None else spelled
    counts: dict[str, dict[str, float]] = {}  # key -> spelling -> count
    for alias in aliases:
        if fold(alias.surface) == fold(text):
            spellings = counts.setdefault(alias.key, {})
            spellings[alias.surface] = spellings.get(alias.surface, 0) + alias.count
    weights = {key: sum(spellings.values()) + smoothing for key, spellings in counts.items()}
    if not sum(weights.values()):  # nobody counted
        weights = dict.fromkeys(weights, 1.0)
    folded = {key: weight / sum(weights.values()) for key, weight in weights.items()}
    seen = {spelling for spellings in counts.values() for spelling in spellings}
    if not prefer_case or spelled not in seen or len(seen) == 1:
        return folded
    shares = {}  # of what is known of a meaning, how much was spelled so
    for key, spellings in counts.items():
        if spelled in spellings:
            every = sum(count + smoothing for count in spellings.values())
            shares[key] = (spellings[spelled] + smoothing) / every if every else 1 / len(spellings)
    exact = {key: share * folded[key] for key, share in shares.items()}
    if not sum(exact.values()):
        exact = shares
    return {key: (prior + exact.get(key, 0) / sum(exact.values())) / 2 for key, prior in folded.items()}


# -- a lexicon --------------------------------------------------------------

SENSES: Final = 45
LEXICON: Final[Mapping[str, tuple[str, dict[str, float]]]] = {  # key -> part of speech, {lemma: count}
    "attorney.n": ("n", {"attorney": 5, "lawyer": 9}),
    "attorney_general.n": ("n", {"attorney general": 3}),
    "general.n": ("n", {"general": 7}),
    "general.a": ("a", {"general": 20}),
    "take.v": ("v", {"take": 90}),
    "take_off.v": ("v", {"take off": 12}),
    "off.r": ("r", {"off": 30}),
    "hot.a": ("a", {"hot": 8}),
    "dog.n": ("n", {"dog": 42, "domestic dog": 0}),
    "dog.v": ("v", {"dog": 2, "chase": 1}),
    "hot_dog.n": ("n", {"hot dog": 6, "hotdog": 1}),
    "man.n": ("n", {"man": 70}),
    "arm.n": ("n", {"arm": 11}),
    "arms.n": ("n", {"arms": 4}),
    "man-at-arms.n": ("n", {"man-at-arms": 1}),
    "woman.n": ("n", {"woman": 60}),
    "goose.n": ("n", {"goose": 2}),
    "good.a": ("a", {"good": 190}),
    "good.s": ("s", {"good": 3, "well": 1}),
    "well.r": ("r", {"well": 178}),
    "well.n": ("n", {"well": 4}),
    "better.n": ("n", {"better": 1}),
    "see.v": ("v", {"see": 120}),
    "saw.n": ("n", {"saw": 3}),
    "saw.v": ("v", {"saw": 1}),
    "leaf.n": ("n", {"leaf": 9}),
    "leave.v": ("v", {"leave": 80}),
    "leave.n": ("n", {"leave": 2}),
    "axis.n": ("n", {"axis": 3}),
    "axe.n": ("n", {"axe": 2}),
    "church.n": ("n", {"church": 20}),
    "glass.n": ("n", {"glass": 12}),
    "run.v": ("v", {"run": 106}),
    "hope.v": ("v", {"hope": 20}),
    "hop.v": ("v", {"hop": 1}),
    "fly.n": ("n", {"fly": 4}),
    "fly.v": ("v", {"fly": 14}),
    "big_dog.n": ("n", {"big dog": 1}),
    "better_half.n": ("n", {"better half": 1}),
    "well_off.a": ("a", {"well off": 2}),
    "big.a": ("a", {"big": 30, "large": 40}),
    "iodine.n": ("n", {"I": 0, "iodine": 1}),
    "angstrom.n": ("n", {"A": 0}),
    "have.v": ("v", {"have": 90}),
    "Turkey.n": ("n", {"Turkey": 9}),
    "turkey.n": ("n", {"turkey": 5}),
    **{f"thing.n.{number}": ("n", {"thing": 100 - number}) for number in range(SENSES - 5)},
    **{f"thing.v.{number}": ("v", {"thing": 5 - number}) for number in range(5)},
}
FORMS: Final[Sequence[Form]] = (
    Form("geese", "goose", "n"),
    Form("better", "good", "a"),
    Form("better", "well", "a"),
    Form("better", "well", "r"),
    Form("saw", "see", "v"),
    Form("took", "take", "v"),
    Form("men", "man", "n"),
    Form("flew", "fly", "v"),
    Form("ran", "run", "v"),
    Form("axes", "axis", "n"),
    Form("axes", "axe", "n"),
    Form("bigger", "big", "a"),
)
SMOOTHING: Final = 1.0


def lexicon_records() -> list[Record]:
    """Return the records of the lexicon: a sense for each pairing of a lemma with a meaning."""
    records: list[Record] = [
        Entity(key, next(iter(lemmas)), kind="synset", pos=pos) for key, (pos, lemmas) in LEXICON.items()
    ]
    for key, (pos, lemmas) in LEXICON.items():
        for lemma, count in lemmas.items():
            sense = f"{lemma}%{key}"
            records += [Entity(sense, lemma, kind="lemma", pos=pos), Alias(lemma, key, count, sense)]
    return [*records, *FORMS]


def lexicon_kb(folder: Path) -> KnowledgeBase:
    """Build the KB of `LEXICON`."""
    return build(folder, lexicon_records(), name="lexicon", smoothing=SMOOTHING, generator="lemma")


# -- a graph ----------------------------------------------------------------

INVERSES: Final = {"is_a": "has_kind", "part_of": "has_part", "near": "near"}
FACTS: Final[Sequence[tuple[str, str, str]]] = (
    ("dog", "is_a", "animal"),
    ("cat", "is_a", "animal"),
    ("puppy", "is_a", "dog"),
    ("animal", "is_a", "thing"),
    ("thing", "is_a", "animal"),  # a cycle
    ("paw", "part_of", "dog"),
    ("paw", "part_of", "cat"),
    ("claw", "part_of", "paw"),
    ("dog", "near", "cat"),
    ("cat", "near", "dog"),
    ("cat", "near", "cat"),
    ("dog", "chases", "cat"),
    ("cat", "chases", "mouse"),
    ("mouse", "fears", "cat"),
    ("mouse", "fears", "mouse"),
    ("dog", "likes", "paw"),
    ("dog", "likes", "puppy"),
)
NODES: Final = ("thing", "animal", "dog", "cat", "puppy", "paw", "claw", "mouse", "alone")


def facts_kb(folder: Path) -> KnowledgeBase:
    """Build the KB of `FACTS`."""
    nodes = [Entity(key, key.title(), kind="thing" if key == "thing" else "node") for key in NODES]
    aliases = [Alias(key, key, 1) for key in NODES]
    return build(
        folder, [*nodes, *aliases, *[Triple(*fact) for fact in FACTS]], name="facts", inverses=INVERSES
    )


def said(facts: Sequence[tuple[str, str, str]], inverses: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return all that can be said: the facts, and those with an inverse from their other ends."""
    both = {**inverses, **{inverse: name for name, inverse in inverses.items()}}
    turned = [(object, both[name], subject) for subject, name, object in facts if name in both]
    return list(dict.fromkeys([*facts, *turned]))
