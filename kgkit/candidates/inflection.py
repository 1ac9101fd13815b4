"""Forms in which texts have names: plurals and genitives, by the language of the KB.

The rules only propose: a form counts where the KB has the surface that a rule makes of it, and a form that is
a surface itself goes before. English tells nouns from names by their capitals: *oaks* is a plural, *Wills*
another name than *Will*. So a word is taken for a plural where the KB mostly writes it in lower case (*Scots
pine*), or with a capital inside (*iPhone*, *DVD*); genitives are formed of all names. A KB that names no
language is read as English.
"""

import re
from collections.abc import Iterator
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
_BEFORE_PREPOSITION: Final = re.compile(rf"\w+(?=[\s-](?:{'|'.join(_PREPOSITIONS)})[\s-])")
"""The word that is inflected in a name that goes on behind it: *lilies of the valley*."""

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
    primary = _primary(language)
    plural = primary == "en"
    endings = _PLURALS if plural else _GENITIVES.get(primary, ())
    if not endings or len(word) <= 2 or not word.isalpha() or word[-2:] == "ss":
        return []
    lower = word.lower()
    if len(lower) != len(word) or lower in (_NO_PLURALS if plural else _NAMES_IN_S):
        return []
    bases = []
    if plural and lower in _IRREGULAR:
        base = _IRREGULAR[lower]
        bases.append(word[0] + base[1:] if word[0].lower() == base[0] else base)
    for ending, instead in endings:
        if lower.endswith(ending):
            stem = word[: -len(ending)]
            base = stem + (instead.upper() if word.isupper() else instead)
            if base not in bases and (len(base) >= _LEAST or (stem.isupper() and len(stem) > 1)):
                bases.append(base)
    return bases


def base_names(text: str, language: str) -> Iterator[str]:
    """Yield the names of which *text*, of one word or several, may be an inflected form.

    It is the last word that is inflected, in English also one before a preposition: *birds of paradise*.
    """
    if not text[-1:].isalpha():
        return
    start = len(text)
    while start and text[start - 1].isalpha():
        start -= 1
    for base in base_forms(text[start:], language):
        yield text[:start] + base
    if start and _primary(language) == "en" and (word := _BEFORE_PREPOSITION.search(text)):
        for base in base_forms(word[0], language):
            yield text[: word.start()] + base + text[word.end() :]


def goes_on(continuation: str) -> bool:
    """Say whether a name that goes on so may have its inflected word before."""
    return continuation == "-" or continuation.removeprefix("- ").partition(" ")[0] in _PREPOSITIONS


def takes_ending(row: bytes, name: str, spelled: str, language: str, *, cased: bool) -> bool:
    """Say whether a span may be a form of *name*, by the spellings that the KB has of that; see above.

    Args:
        row: row of `aliases` for the name.
        name: one of the `base_names` of the span.
        spelled: text of the span.
        language: BCP 47 tag of the KB.
        cased: flag for a text in which spelling tells something.
    """
    spellings = codec.spellings(row)
    if not spellings or _primary(language) != "en":
        return True
    *before, word = _words(name)
    if before and cased and word.islower():
        return True
    exact = name if cased and not spelled.isupper() else ""
    priors, share = codec.decode_alias(row).priors.tolist(), 0.0
    for spelling in spellings:
        last = _words(spelling.surface)[-1]
        if last[0] == last[0].lower() or (spelling.surface == exact and last[1:] != last[1:].lower()):
            rows = zip(spelling.rows, spelling.shares, strict=True)
            share += sum(priors[index] * part for index, part in rows) if spelling.rows else 1.0
    return share >= _MOSTLY


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split() or [name]


def _primary(language: str) -> str:
    return language.partition("-")[0].lower() or "en"
