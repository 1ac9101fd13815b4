"""Entity linking: what may be the cause of an error, in classes like those of ELEVANT.

Bast, Hertel and Prange (2022), "ELEVANT: A Fully Automatic Fine-Grained Entity Linking Evaluation and
Analysis Tool", divide errors by features of the mention and of the entities. Here, by the first that holds:

    lower case        a mention that was not found, or a link where none is, begins with a lower-case letter
    overlap           a mention and a link overlap, and have other boundaries
    demonym           a wrong entity; the mention is a word as *German*
    metonym           a wrong entity, which is a location; the gold entity is none
    part of a name    a wrong entity; the mention is a part of the gold entity's name
    rare sense        a wrong entity, which is likelier by its prior; the gold entity was a candidate
    other             none of these
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from kgkit.evaluation.el import LinkOutcome
from kgkit.text import fold, tokens

ErrorCause = Literal["lower case", "overlap", "demonym", "metonym", "part of a name", "rare sense", "other"]

CORRECT_KINDS: Final = frozenset({"right", "nil"})
"""Outcomes that are no errors."""

_WRONG_ENTITY: Final = frozenset({"wrong_choice", "no_candidate", "wrong_entity", "link_wrong"})
_OVERLAPS: Final = frozenset({"misplaced", "link_misplaced"})
_LOCATIONS: Final = frozenset(
    fold(name)
    for name in (
        "LOC", "GPE", "FAC", "location", "place", "geographic entity", "city", "town", "village", "country",
        "state", "region", "settlement", "continent", "Q27096213", "Q6256", "Q515",
    )
)  # fmt: skip

_NAMES: Final = """
Afghan African Albanian Algerian American Andorran Angolan Antiguan Arab Arabian Argentine Argentinian
Armenian Asian Australian Austrian Azerbaijani Azeri Bahamian Bahraini Bangladeshi Barbadian Basque Batswana
Bavarian Belarusian Belarussian Belgian Belizean Beninese Bermudan Bermudian Bhutanese Bolivian Bosnian
Botswanan Brazilian Breton Briton British Bruneian Bulgarian Burkinabe Burmese Burundian Cambodian
Cameroonian Canadian Caribbean Catalan Chadian Chechen Chilean Chinese Colombian Congolese Corsican Croat
Croatian Cuban Cypriot Czech Czechoslovak Dane Danish Djiboutian Dominican Dutch Dutchman Ecuadorean
Ecuadorian Egyptian Emirati English Englishman Eritrean Estonian Ethiopian European Faroese Fijian Filipino
Finn Finnish Flemish French Frenchman Gabonese Gambian Georgian German Ghanaian Gibraltarian Greek Grenadian
Guatemalan Guinean Guyanese Haitian Honduran Hungarian Icelander Icelandic Indian Indonesian Iranian Iraqi
Irish Irishman Israeli Italian Ivorian Jamaican Japanese Jordanian Kazakh Kazakhstani Kenyan Korean Kosovan
Kurd Kurdish Kuwaiti Kyrgyz Lao Laotian Latvian Lebanese Liberian Libyan Lithuanian Luxembourger Macedonian
Malagasy Malawian Malaysian Maldivian Malian Maltese Mauritanian Mauritian Mexican Moldovan Monegasque
Mongolian Montenegrin Moroccan Mozambican Namibian Nepalese Nepali Netherlander Nicaraguan Nigerian Nigerien
Norwegian Omani Pakistani Palestinian Panamanian Papuan Paraguayan Persian Peruvian Pole Polish Portuguese
Prussian Qatari Romanian Russian Rwandan Salvadoran Salvadorean Samoan Sardinian Saudi Scandinavian Scot
Scotsman Scottish Senegalese Serb Serbian Sicilian Singaporean Slovak Slovakian Slovene Slovenian Somali
Soviet Spaniard Spanish Sudanese Surinamese Swazi Swede Swedish Swiss Syrian Taiwanese Tajik Tanzanian Tatar
Thai Tibetan Tobagonian Togolese Tongan Trinidadian Tunisian Turk Turkish Turkmen Ugandan Ukrainian
Uruguayan Uzbek Venezuelan Vietnamese Welsh Welshman Yemeni Yugoslav Yugoslavian Zairean Zambian Zimbabwean
"""

_DEMONYMS: Final = frozenset(map(fold, _NAMES.split()))


class EntityFacts(NamedTuple):
    """What the cause of an error depends on, beside the texts.

    Attributes:
        name_of: function from a title to the name of its entity.
        type_of: function from a title to the type of its entity, "" if it is not known; several have `|`
            between them.
        page: function that gives equal titles one name.
    """

    name_of: Callable[[str], str]
    type_of: Callable[[str], str]
    page: Callable[[str], str]


def error_cause(
    outcome: LinkOutcome, surface: str, facts: EntityFacts, *, type: str = "", priors: Mapping[str, float]
) -> ErrorCause:
    """Return the class of an error.

    Args:
        outcome: mention or link, which is no correct one.
        surface: its text.
        facts: names and types of entities.
        type: type of the name, if the data have one.
        priors: prior of each candidate, by the names that `facts.page` gives.
    """
    if outcome.kind in _OVERLAPS:
        return "overlap"
    if outcome.kind in ("missed", "link_nowhere"):
        return "lower case" if surface[:1].islower() else "other"
    if outcome.kind not in _WRONG_ENTITY or outcome.gold is None or outcome.gold.entity is None:
        return "other"
    entity, answer = outcome.gold.entity, outcome.link.entity if outcome.link is not None else None
    if is_demonym(surface):
        return "demonym"
    gold_type = type or facts.type_of(entity)
    if answer is not None and gold_type and is_location(facts.type_of(answer)) and not is_location(gold_type):
        return "metonym"
    if is_part_of_name(surface, facts.name_of(entity)):
        return "part of a name"
    if answer is not None:
        prior = priors.get(facts.page(entity))
        if prior is not None and priors.get(facts.page(answer), 0.0) > prior:
            return "rare sense"
    return "other"


def is_location(type: str) -> bool:
    """Return whether a type is that of locations: `GPE`, `LOC`, `city`, Wikidata's Q27096213 and others."""
    return any(fold(part.strip()) in _LOCATIONS for part in type.split("|"))


def is_part_of_name(surface: str, name: str) -> bool:
    """Return whether the words of a surface stand in a name, in a row, with others beside them.

    What is in brackets at the end of a title is no part of the name: `Phoenix (mythology)`.
    """
    bare = name.replace("_", " ").partition(" (")[0]
    own, all_words = ([fold(token) for token in tokens(text)] for text in (surface, bare))
    size = len(own)
    if not 0 < size < len(all_words):
        return False
    return any(all_words[start : start + size] == own for start in range(len(all_words) - size + 1))


def is_demonym(surface: str) -> bool:
    """Return whether a surface, or what it is the plural of, is such a word; `West Indian` is one too."""
    last = fold(surface.split()[-1]) if surface.split() else ""
    return last in _DEMONYMS or (last.endswith("s") and last[:-1] in _DEMONYMS)
