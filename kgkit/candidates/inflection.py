"""Forms in which texts have names: plurals and genitives, by the language of the KB.

The rules only propose: a form counts where the KB has the surface that a rule makes of it, and a form that is
a surface itself goes before. English tells nouns from names by their capitals: *oaks* is a plural, *Wills*
another name than *Will*. So a word is taken for a plural where the KB mostly writes it in lower case (*Scots
pine*), or with a capital inside (*iPhone*, *DVD*); genitives are formed of all names. A KB that names no
language is read as English.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from kgkit.store import codec

ENGLISH_ENDINGS: Final = (
    ("s", "", "nv"), ("ses", "s", "n"), ("ves", "f", "n"), ("xes", "x", "n"), ("zes", "z", "n"),
    ("ches", "ch", "n"), ("shes", "sh", "n"), ("men", "man", "n"), ("ies", "y", "nv"),
    ("es", "e", "v"), ("es", "", "v"), ("ed", "e", "v"), ("ed", "", "v"), ("ing", "e", "v"), ("ing", "", "v"),
    ("er", "", "a"), ("est", "", "a"), ("er", "e", "a"), ("est", "e", "a"),
)  # fmt: skip
"""Ending, what takes its place, for which parts of speech (`man 7 morphy`)."""

_PLURALS: Final = (
    *((ending, instead) for ending, instead, parts in ENGLISH_ENDINGS if "n" in parts),
    ("oes", "o"), ("ves", "fe"), ("zzes", "z"), ("ses", "sis"), ("xes", "xis"), ("ices", "ix"),
    ("ices", "ex"), ("ae", "a"), ("i", "us"), ("a", "um"), ("a", "on"), ("ata", "a"), ("eaux", "eau"),
)  # fmt: skip
_IRREGULAR: Final = {
    "feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse", "lice": "louse", "dice": "die",
    "oxen": "ox", "children": "child", "people": "person", "genera": "genus", "corpora": "corpus",
}  # fmt: skip
_NO_PLURALS: Final = frozenset(
    "always besides does economics electronics genetics goes has lens mathematics means news perhaps physics "
    "politics series species thanks thus yes".split()
)
"""Words that mean something else than several of what they are without their ending."""
_PREPOSITIONS: Final = ("of", "in", "on", "at", "to", "for", "from", "with", "without")
_ADJECTIVES: Final = (
    "general", "martial", "public", "laureate", "elect", "emeritus", "apparent", "errant", "by", "up"
)  # fmt: skip
"""Words that end a name whose noun comes first: *attorneys general*, *passers-by*."""
AFTER_PLURALS: Final = frozenset(["-", *_PREPOSITIONS, *_ADJECTIVES])
_CONTINUATIONS: Final = frozenset(
    f"{joint}{word}" for joint in ("", "- ") for word in (*_PREPOSITIONS, *_ADJECTIVES)
)
_NOUN_FIRST: Final = re.compile(
    rf"[^\W\d_]+(?=[\s-](?:(?:{'|'.join(_PREPOSITIONS)})[\s-]|(?i:{'|'.join(_ADJECTIVES)})$))"
)
_NUMBERED: Final = re.compile(r"(?:[^\W\d_][^\W_]*\d|\d\d+)[sS]")  # several of a name with a number: F-16s
_DECADE: Final = re.compile(r"(?:1\d|20)\d0|\d0")

_GENITIVES: Final = {
    "de": (("s", ""), ("es", ""), ("sses", "s")),
    **dict.fromkeys(("da", "lb", "nb", "nds", "nl", "nn", "no", "sv"), (("s", ""),)),
}
_NAMES_IN_S: Final = frozenset(
    "adams alexis amos andreas carlos curtis davis denis dolores doris edwards ems engels frances georges "
    "gilles hans harris hermes hughes ines iris james jens johannes jonas jones jules lars lewis louis lucas "
    "lukas marcos mars mercedes moses niklas nils rhodes rogers stevens thomas tobias tunis wales "
    "williams".split()
)
"""Names that may be another name without their s: *Andreas*, *Nils*."""

_LEAST: Final = 3  # letters that an ending leaves; of capitals two: PCs
_LONGEST: Final = 60  # letters of a word of any language
_MOSTLY: Final = 0.499  # of what a surface means in the KB, by its spellings there


def base_forms(word: str, language: str) -> list[str]:
    """Return the words, without those of a single letter or two, of which *word* may be a plural or genitive.

    Args:
        word: token of a text.
        language: BCP 47 tag of the KB; "" is read as English.

    Examples:
        >>> base_forms("sloes", "en"), base_forms("Goethes", "de")
        (['sloe', 'slo'], ['Goethe', 'Goeth'])
    """
    english, last_letters, rules = _rules(language)
    if word[-1:] not in last_letters and word[-2:] not in last_letters:
        return []  # as most are
    if english and word[-2:-1].isdecimal() and _NUMBERED.fullmatch(word):
        return [word[:-1]]
    lower = word.lower()
    endings = rules.get(lower[-2:]) or rules.get(lower[-1:]) or []
    irregular = _IRREGULAR.get(lower) if english else None
    if not endings and irregular is None:
        return []
    if lower in (_NO_PLURALS if english else _NAMES_IN_S) or lower.endswith("ss") or not word.isalpha():
        return []
    if len(word) > _LONGEST:
        return []
    bases = [] if irregular is None else [_in_case_of(word, irregular)]
    for ending, instead in endings:
        if lower.endswith(ending):
            stem = word[: -len(ending)]
            base = stem + instead if not instead or word[-1].islower() else stem + instead.upper()
            base = base if stem else _in_case_of(word, base)  # Men
            if base not in bases and (len(base) >= _LEAST or (len(stem) > 1 and stem.isupper())):
                bases.append(base)
    return bases


@cache
def _rules(language: str) -> tuple[bool, frozenset[str], dict[str, list[tuple[str, str]]]]:
    """Return whether a language has the forms of English, their last letters, and its rules by these."""
    primary = _primary(language)
    endings = _PLURALS if primary == "en" else _GENITIVES.get(primary, ())
    rules: dict[str, list[tuple[str, str]]] = {}
    for ending in dict(endings):
        last = ending[-2:]
        rules[last] = [rule for rule in endings if rule[0][-2:] == last or last.endswith(rule[0])]
    last_letters = {*rules, *(form[-2:] for form in _IRREGULAR if primary == "en")}
    return primary == "en", frozenset({*last_letters, *map(str.upper, last_letters)}), rules


def _in_case_of(word: str, base: str) -> str:
    if word.isupper():
        return base.upper()
    return base.capitalize() if word[0].isupper() else base


def base_names(text: str, language: str) -> Iterator[str]:
    """Yield the names of which *text*, of one word or several, may be an inflected form.

    The last word is inflected, in English also a first one before a preposition or an adjective at the end:
    *birds of paradise*, *courts martial*.
    """
    if not text.isalpha() and _rules(language)[0] and (before := _NOUN_FIRST.match(text)):
        for base in base_forms(before[0], language):
            yield base + text[before.end() :]
    start = 0 if text.isalnum() else len(text)
    while start and text[start - 1].isalnum():
        start -= 1
    for base in base_forms(text[start:], language):
        if not base.isdecimal() or (start and not _DECADE.fullmatch(base)):
            yield text[:start] + base


def as_plural(starts: dict[str, int] | None) -> dict[str, int]:
    """Return those continuations of a token before which it may be inflected.

    Args:
        starts: continuations of the token that is not inflected, as `StoreReader.starts` has them.
    """
    if starts is None or _CONTINUATIONS.isdisjoint(starts):
        return {}
    return {
        key: lengths
        for key, lengths in starts.items()
        if key == "-" or key.removeprefix("- ").partition(" ")[0] in AFTER_PLURALS
    }


def takes_ending(row: bytes, name: str, spelled: str, language: str, *, cased: bool) -> bool:
    """Say whether a span may be a form of *name*, by the spellings that the KB has of that; see above.

    Args:
        row: row of `aliases` for the name.
        name: one of the `base_names` of the span.
        spelled: text of the span.
        language: BCP 47 tag of the KB.
        cased: flag for a text in which spelling tells something.
    """
    if not codec.has_spellings(row) or _primary(language) != "en":
        return True
    *before, word = _words(name)
    last = _words(spelled)[-1].lower()
    if before and ((cased and word.islower()) or word.lower() in _ADJECTIVES or last in _sure_plurals(word)):
        return True
    if word[-1].isdecimal():
        return True
    exact = name if cased and not spelled.isupper() else ""
    priors, share = codec.decode_alias(row).priors.tolist(), 0.0
    for spelling in codec.spellings(row):
        last = _words(spelling.surface)[-1]
        if last[0] == last[0].lower() or (spelling.surface == exact and last[1:] != last[1:].lower()):
            rows = zip(spelling.rows, spelling.shares, strict=True)
            share += sum(priors[index] * part for index, part in rows) if spelling.rows else 1.0
    return share >= _MOSTLY


def _sure_plurals(word: str) -> tuple[str, ...]:
    """Return the plurals of a word that are no names by themselves, as those in a mere s may be."""
    lower = word.lower()
    if lower.endswith(("x", "s", "z", "ch", "sh", "o")):
        return (f"{lower}es",)
    return (f"{lower[:-1]}ies",) if lower.endswith("y") else ()


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split() or [name]


def _primary(language: str) -> str:
    return language.partition("-")[0].lower() or "en"
