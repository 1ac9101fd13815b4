"""The comparison of two names: the words that are the same, and the kinds of difference that are left.

A name is cut into words of its plain form (`kgkit.store.trigrams.plain_form`), each with what it is: a
number, a single letter, a direction, a title, a legal form, an article, a qualifier in brackets or behind a
comma, or an ordinary word. The words of one name are matched with those of the other: equal ones, numbers
in digits, letters and words (`2nd`, `II`, `second`), spaces that come and go, initials, acronyms,
abbreviations, typing errors. What is left over is counted by its kind.

The logarithm of the odds that two names are one is a weighted sum of these counts. No weight of a difference
is positive. The weights are fitted by `python -m benchmarks.reconcile --only fit`, which prints `WEIGHTS`.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from kgkit.name_words import ADDRESSES, RANKS, REGIONS
from kgkit.store.trigrams import BRACKETS, plain_form

__all__ = [
    "FEATURES", "FEW_SURFACES", "WEIGHTS", "Comparison", "Name", "Rarity", "and_words", "compare",
    "is_short_for", "log_odds", "number_words", "odds_of_marks", "parse_name",
]  # fmt: skip

FEATURES: Final = (
    "constant",
    "surfaces",  # logarithm of the number of surfaces that are searched: of many, more are like it by chance
    "edits",  # typing errors: letters replaced, left out, inserted, exchanged with the next one
    "edit share",  # the same as a share of the letters of their words
    "edited known",  # words with typing errors that are words of the knowledge base as they stand
    "numerals",  # numbers that are written otherwise
    "initials",  # whether first letters stand for words
    "abbreviations",
    "acronym",
    "spaces",  # words that are joined or divided
    "clash",  # another number, single letter or direction
    "mark",  # a number, single letter or direction that one of the two lacks
    "small words",  # articles, prepositions and conjunctions that one of the two lacks
    "titles",  # offices and ranks of persons that one of the two lacks
    "forms",  # whether one of the two lacks a form of address, or the legal form of a firm
    "qualifier dropped",  # a qualifier that only the surface has
    "qualifier added",  # a qualifier that only the name has
    "qualifier clash",  # other qualifiers
    "middle letters",  # of a name that has another one on both sides
    "middle names",
    "dropped",  # words that only the surface has, as a share of the information of its words
    "added",  # words that only the name has, as a share of the information of its words
    "replaced",  # the geometric mean of the two
    "same",  # whether all words are the same, in this order
    "order",  # whether the words are in another order
    "information",  # the sum of the rarities of the words that are the same, at most 3; 1 if others are left
    "letters",  # logarithm of the number of letters that are the same
)
"""The kinds of difference, and of agreement, in the order of `WEIGHTS`."""

WEIGHTS: Final = (
    -0.03, -0.35, -0.91, -5.94, -2.51, -1.64, -3.75, -3.20, -3.43, -2.40, -20.00, -20.00, -2.03, -4.26,
    -2.30, -2.53, -2.01, -8.80, -5.44, -5.36, -10.32, -9.56, -3.02, 3.60, -2.65, 3.42, 0.41,
)  # fmt: skip
"""Weight of each kind in the log odds. Those of clashes and marks are set, not fitted: what differs in one of
these is not forgiven."""

FEW_SURFACES: Final = 10_000
"""Of fewer surfaces than these, their number is no evidence."""

Rarity = Callable[[str], float]
"""Returns how telling a word is, in (0, 1]: 1 if no surface of the knowledge base has it."""

(
    _CONSTANT, _SURFACES, _EDITS, _SHARE, _KNOWN, _NUMERALS, _INITIALS, _ABBREVIATIONS, _ACRONYM, _SPACES,
    _CLASH, _MARK, _SMALL, _TITLE, _FORM, _QUALIFIER, _ADDED_QUALIFIER, _OTHER_QUALIFIER, _MIDDLE_LETTERS,
    _MIDDLE, _DROPPED, _ADDED, _REPLACED, _SAME, _ORDER, _INFORMATION, _LETTERS,
) = range(len(FEATURES))  # fmt: skip

_HEAD, _TAIL, _BRACKET, _DATES = range(4)
# These are set by hand on the pairs of `benchmarks.reconcile`, and `WEIGHTS` are fitted with them: whoever
# changes one fits again.
_MOST_ADDED: Final = 0.7  # share of the information of a name that a similar surface may lack
_MOST_DROPPED: Final = 0.9  # share of that of a surface that the name may lack: people cut names short
_OF_INITIAL: Final = 0.3  # share of the information of a word that its first letter has
_OF_ABBREVIATION: Final = 0.7  # share of the information of a word that its abbreviation has
_OF_ACRONYM: Final = (-0.8, 0.45)  # information of an acronym, and for each letter: 0.55 of three, 1 of four
_LEAST_OF_ACRONYM: Final = 0.1  # information, of two letters
_MOST_WITH_OTHERS: Final = -0.4  # log odds, where one of two names has a word more: of such, 2 of 5 are one
_TIE_BREAK: Final = 0.02  # of the log odds of these, which orders them without making one a match
_MAX_WORDS: Final = 40  # of a name that are compared
_MOST_EDITS: Final = (0, 0, 0, 1, 1, 1, 2, 2, 2, 2)  # typing errors in a word, by its letters; of more, 3
_SIGNS: Final = "\u2e80"  # from here on letters are syllables or words, and
_SIGN: Final = 3  # letters that one counts for
_RARE: Final = 0.92  # of a word that one surface has, at most
_LEAST_JOINED: Final = 8  # letters of words that are taken as one in spite of typing errors

# -- words ------------------------------------------------------------------

_DIRECTIONS: Final = {
    word: direction
    for direction, words in {
        "n": "north northern nord norte nordliche nordlicher nordliches nordlich septentrional norra noord",
        "s": "south southern sud sur sul sudliche sudlicher sudliches sudlich meridional sodra zuid",
        "e": "east eastern ost est este leste oriental ostliche ostlicher ostliches ostlich ostra oost",
        "w": "west western ouest oeste ovest occidental westliche westlicher westliches westlich vastra",
        "nw": "northwest northwestern nordwest noroeste", "ne": "northeast northeastern nordost nordeste",
        "sw": "southwest southwestern sudwest suroeste", "se": "southeast southeastern sudost sureste",
        "up": "upper haute haut ober obere oberer oberes alto alta superior", "in": "inner innere",
        "down": "lower basse bas nieder unter untere unterer unteres bajo baja baixo inferior",
        "out": "outer ausser aussere", "left": "left", "right": "right", "mid": "central middle mittel",
        "new": "new neu neue neuer neues nouveau nouvelle nuevo nueva nuovo nuova novo nova nieuw nowy nowa",
        "women": "women womens woman ladies girls female frauen damen femmes feminine mujeres",
        "men": "men mens gentlemen boys male manner herren hommes masculine hombres",
        "non": "non", "anti": "anti", "ex": "ex", "pre": "pre", "post": "post",
        "plus": "plus", "flat": "bemol bemolle", "sharp": "diese diesis sostenido",
        "major": "major dur majeur majeure maggiore mayor", "minor": "minor moll mineur mineure minore menor",
        "old": "old alte alter altes vieux vieille viejo vieja vecchio vecchia velho velha oud stary stara",
    }.items()
    for word in words.split()
}  # fmt: skip
"""Directions, and what else tells places apart that are called alike."""
_SIGNS_OF: Final = {"+": "plus", "#": "sharp", "*": "star"}
"""Words for the signs behind a word, as in `C++`, `F#` and `A*`."""
_BEHIND_LETTERS: Final = frozenset(("flat", "sharp", "star"))
"""Signs that tell names apart behind a single letter."""
_LONGEST_KEY: Final = 3  # letters of a key of music: *fis*, *sol*
_COMPASS: Final = frozenset(("n", "s", "e", "w", "nw", "ne", "sw", "se"))
_ONES: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS: Final = {
    **{word: number for number, word in enumerate(_ONES)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    **{word: number for number, word in enumerate(_ORDINALS, 1)},
    "seconde": 2,
}
_NUMBERS_OF: Final = {
    "de": (
        "zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
        "erst zweit dritt viert funft sechst siebt acht neunt zehnt elft zwolft", "e er es en em",
    ),
    "fr": (
        "deux trois quatre cinq six sept huit neuf dix onze douze",
        "premier deuxiem troisiem quatriem cinquiem sixiem septiem huitiem neuviem dixiem onziem douziem",
        ". e es",
    ),
    "es": (
        "dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "primer segund tercer cuart quint sext septim octav noven decim", ". o a os as",
    ),
    "pt": (
        "dois tres quatro cinco seis sete oito nove dez onze doze",
        "primeir segund terceir quart quint sext setim oitav non decim", "o a os as",
    ),
    "it": (
        "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "prim second terz quart quint sest settim ottav non decim", "o a",
    ),
    "nl": (
        "twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "eerst tweed derd vierd vijfd zesd zevend achtst negend tiend elfd twaalfd", "e",
    ),
    "pl": (
        "dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec jedenascie dwanascie",
        "pierwsz drug trzec czwart piat szost siodm osm dziewiat dziesiat jedenast dwunast",
        "y a e i ie ia iej ej iego ego",
    ),
    "sv": (
        "tva tre fyra fem sex sju atta nio tio elva tolv",
        "forst andr tredj fjard femt sjatt sjund attond niond tiond elft tolft", "a e",
    ),
}  # fmt: skip
"""By language the numbers from two to twelve; the stems of ordinal numbers from the first, and endings."""
_OF_ALL: Final = "de", "fr", "es"  # languages whose numbers are read in names of all, but for
_OF_ONE: Final = frozenset("premier premiere premieres elf once primer quart quint sext".split())


@cache
def _numbers(language: str) -> dict[str, int]:
    """Return the words for numbers that names of a language have."""
    numbers = dict[str, int]()
    for code in dict.fromkeys((*_OF_ALL, language)):
        cardinals, stems, endings = _NUMBERS_OF.get(code, ("", "", ""))
        words = [(word, number) for number, word in enumerate(cardinals.split(), 2)]
        for number, stem in enumerate(stems.split(), 1):
            words += [(stem + ending.strip("."), number) for ending in endings.split()]
        numbers.update(each for each in words if code == language or each[0] not in _OF_ONE)
    return numbers | _NUMBERS


_ROMAN: Final = re.compile("(?=[ivxlc])c{0,3}(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_ROMAN_DIGITS: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_ROMAN_ONES: Final = ("", *"i ii iii iv v vi vii viii ix".split())
_NO_ROMAN: Final = frozenset("l c li liv ci cc cv cl".split())  # letters, names and abbreviations
_NAMES: Final = frozenset(("vi", "xi"))  # at the beginning
_LETTER_NUMERALS: Final = frozenset("ivx")
_SERIES: Final = frozenset(
    "act acte acto akt appendix article artikel band book buch libro livre chapter chapitre capitulo kapitel "
    "class classe clase klasse factor grade grado guerra guerre krieg weltkrieg war level mk part parte "
    "partie teil phase fase section season staffel stage stufe title tome tomo type typ tipo vol "
    "volume".split()
)
"""Words that a number stands behind, whatever follows."""
_RULERS: Final = frozenset(
    "czar emperor kaiser king konig queen konigin pope papa papst pape prince rey roi saint st sultan "
    "tsar".split()
)
_NUMBERED_BOOKS: Final = frozenset(
    "chronicles corinthians esdras john kings maccabees peter samuel thessalonians timothy".split()
)
"""Books of the Bible that a number stands before."""
_MINUS: Final = re.compile(r"(?<!\d )(?<![^\s(\[])[-\u2212](?=\d)|(?<=\b[^\W\d_])[-\u2212](?=\s|$)")
_HYPHEN: Final = r"[^\W_][-\u2010\u2011\u2013]"
_LIFE_DATES: Final = re.compile(
    r"[,(\[]\s*(?:(?:(?:b|d|fl)\.?|born|died|active)\s*\d{4}|"
    r"(?:ca?\.?\s*)?(\d{1,4})\??\s*[-\u2010-\u2015]\s*(?:ca?\.?\s*)?(\d{1,4})?\??)"
    r"\s*(?:(b\.?\s?c\.?(?:\s?e\.?)?)|a\.?\s?d\.?|c\.?\s?e\.?)?\s*[.)\]]?\s*(?=$|,)"
)
_LIVES: Final = range(11, 121)  # years from the first to the last one
_SHORT_NUMERAL: Final = re.compile("([a-z]{2,}?)([ivx]+)")
_PARTS: Final = re.compile(r"\d+|\D+")
_ORDINAL: Final = r"(?:\d*1\d|\d*[04-9])th|(?:\d*[02-9])?(?:1st|2nd|3rd)|\d+[\xaa\xba]"
_ORDINALS_OF: Final = {
    "fr": "e er re eme ere ieme nd nde", "nl": "e de ste", "de": "te ter ten tes",
    "es": "o a os as er ra ro do to mo", "pt": "o a os as", "it": "o a", "ca": "r n t e a",
    "sv": "a e", "da": "e", "no": "e", "nb": "e",
}  # fmt: skip
"""Endings of ordinal numbers by language, besides the English ones: elsewhere *66a* is another number."""
_ADDRESSES: Final = frozenset(map(plain_form, ADDRESSES))
_NO_TITLES: Final = frozenset(
    "ambassador baron bishop cardinal coach count detective duke judge justice mayor minister premier "
    "secretary".split()
)
"""Words before more names of firms and places than of persons: *Premier League*, *Duke Energy*."""
_TITLES: Final = _ADDRESSES | frozenset(map(plain_form, RANKS - _NO_TITLES))
_GENERATIONS: Final = frozenset("jr junior sr senior fils pere".split())  # last words of names of persons
_ELDERS: Final = frozenset("elder younger altere jungere".split())  # the same, behind an article
_SMALL_WORDS: Final = frozenset(
    "the of and for in on at to an der die das den dem des und von vom zu zur zum am im le la les du de et "
    "au aux el los las del lo gli il di da della delle dei do dos das na no het van och og ve".split()
)
_NO_PERSON: Final = frozenset("of and for in on at new old great".split())
"""Words that names of persons with several given names have not."""
_AND: Final = {
    "fr": "et", "es": "y e", "it": "e ed", "pt": "e", "ca": "i", "pl": "i", "cs": "a i", "sk": "a",
    "hu": "es", "nl": "en", "fi": "ja", "et": "ja", "ro": "si", "ru": "и", "uk": "і та",
    "bg": "и", "sr": "и i", "hr": "i", "el": "και", "sl": "in", "lv": "un", "lt": "ir", "da": "og",
    "no": "og", "nb": "og", "sv": "och", "tr": "ve",
}  # fmt: skip
"""The word for `&` by language, besides those of `_SMALL_WORDS`."""
_SHORT_AND: Final = re.compile(r"['\u2019]n\b|\bn['\u2019]")
_ANDS: Final = frozenset(["and", "und", *[word for words in _AND.values() for word in words.split()]])


def and_words(language: str) -> tuple[str, ...]:
    """Return the words that `&` is read as in a language, a BCP 47 tag, and in English."""
    primary = language.partition("-")[0].lower()
    words = "und" if primary == "de" else _AND.get(primary, "")
    return tuple(dict.fromkeys(("and", *words.split())))


_ABBREVIATIONS_OF: Final = {
    "no": "number nummer numero nr", "nr": "number nummer numero no", "st": "saint sankt sainte san street",
    "ste": "sainte", "mt": "mount mont monte mountain", "ft": "fort", "jr": "junior", "sr": "senior",
    "co": "company county", "rd": "road", "ave": "avenue", "dr": "doctor doktor drive", "pt": "point port",
    "intl": "international", "xmas": "christmas", "tech": "technology", "bldg": "building", "rwy": "railway",
    "blvd": "boulevard", "sq": "square", "hwy": "highway", "pkwy": "parkway", "ln": "lane",
    "mfg": "manufacturing", "usa": "us", "mgmt": "management", "svc": "service services", "str": "strasse",
}  # fmt: skip
_SPECIAL_SHORT: Final = {short: frozenset(words.split()) for short, words in _ABBREVIATIONS_OF.items()}
_REGIONS: Final = {"miss": "mississippi"} | {code: name for code, name in REGIONS.items() if " " not in name}
"""Codes of states and provinces of one word each. None is short for another word."""
_UMLAUTS: Final = re.compile("[äöüåøæœ]")
_DIGRAPHS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"), ("aa", "a"))
_OTHER_LEGAL: Final = (
    "aktiengesellschaft", "aktiebolag", "gesellschaft mbh", "private limited", "cie", "compagnie",
    "pjsc", "ojsc", "cjsc", "jsc", "pao",
)  # fmt: skip
_LEADING_FORMS: Final = frozenset("pjsc ojsc cjsc jsc pao oao zao ooo".split())
_SHORT_FORMS: Final = frozenset("ab ag as bv co ev gk kg kk lp nv oy ou sa se sl yk".split())
"""Legal forms of two letters that need no stops, which the names of most builds have not."""
_OTHER_WORDS: Final = frozenset("dat ent etat gbr pse private sal sem sep ses ska vat".split())
"""Legal forms that are words, or names of countries, where they have no stops."""


@cache
def _legal_forms() -> frozenset[tuple[str, ...]]:
    """Return the legal forms of firms, each as its words."""
    from cleanco.clean import get_unique_terms  # here: what compares no names does without

    forms = set()
    for term in (*get_unique_terms(), *_OTHER_LEGAL):
        form = tuple(plain_form(term.lower()).split())
        if form and (len(form) > 1 or len(form[0]) > 2 or form[0] in _SHORT_FORMS or "." in term[:-1]):
            forms.add(form)
    return frozenset(forms)


@cache
def _ordinals(language: str) -> re.Pattern[str]:
    """Return a pattern of the ordinal numbers that are written in digits."""
    endings = "|".join(_ORDINALS_OF.get(language, "").split())
    return re.compile(rf"{_ORDINAL}|\d+(?:{endings})" if endings else _ORDINAL)


class Name:
    """A name, cut into words.

    Attributes:
        folded: the name, folded.
        words: the words of its plain form.
        zones: of each word, whether it stands before a comma, behind one, or in brackets.
        numbers: of each word its number, as digits; empty for other words.
        directions: of each word its direction; empty for other words.
        is_part: of each word, whether it is the letters, or the digits, of a word that has both.
        is_mark: of each word, whether it tells entities apart: numbers and their signs, single letters,
            directions, *Jr.* and *Sr.*
        is_small: of each word, whether it is an article, a preposition, a title or a legal form.
        is_title: of each word, whether it is a title.
        is_legal: of each word, whether it is of a legal form.
        has_ampersand: whether a sign stands for `and`.
        dates: places of words that are the dates of a life, and of those behind them.
    """

    __slots__ = (
        "dates", "directions", "folded", "has_ampersand", "is_legal", "is_mark", "is_part", "is_small",
        "is_title", "numbers", "words", "zones",
    )  # fmt: skip

    def __init__(self, folded: str, language: str = "") -> None:
        self.folded = folded
        language = language.partition("-")[0]
        self.words: list[str] = []
        self.zones: list[int] = []
        self.is_part: list[bool] = []
        for text, zone in _zones(folded):
            for word in plain_form(_MINUS.sub(" minus ", text)).split():
                if word[-1] in _SIGNS_OF and (letters := word.rstrip("+#*")):
                    for part in (letters, *map(_SIGNS_OF.__getitem__, word[len(letters) :])):
                        self._add(part, zone)
                    continue
                if word.isalpha() or word.isdecimal() or not any(map(str.isdigit, word)):
                    self._add(word, zone)
                    continue
                parts = _PARTS.findall(word)
                if len(parts) == 2 and _ordinals(language).fullmatch(word):
                    self._add(parts[0], zone)
                    continue
                for part in parts:
                    self._add(part, zone, is_part=True)
        known = _numbers(language)
        self.numbers = [
            "" if word in _LETTER_NUMERALS and not self._is_numeral(position) else number
            for position, word in enumerate(self.words)
            for number in (_number(word, position, known),)
        ]
        self._join_tens()
        count = len(self.words)
        self.directions = [_DIRECTIONS.get(word, "") for word in self.words]
        if not _BEHIND_LETTERS.isdisjoint(self.words[1:]):
            for position, word in enumerate(self.words[1:], 1):
                if word in _BEHIND_LETTERS and len(self.words[position - 1]) == 1:
                    self.directions[position] = word
        self.is_small = [word in _SMALL_WORDS for word in self.words]
        for word in _AND.get(language, "").split():
            for position, other in enumerate(self.words[1:-1], 1):
                if other == word:
                    self.is_small[position] = True
        self.is_mark = [
            bool(number)
            or bool(direction)
            or (
                (len(word) == 1 and ((word.isalpha() and word.isascii()) or word in "♀♂"))
                or (self.is_part[place] and len(word) < 4)
            )
            for place, (word, number, direction) in enumerate(
                zip(self.words, self.numbers, self.directions, strict=True)
            )
        ]
        if "major" in self.directions or "minor" in self.directions:
            for position, direction in enumerate(
                self.directions[1:]
            ):  # the key of music before *major*, *moll*
                if direction in ("major", "minor") and len(self.words[position]) <= _LONGEST_KEY:
                    self.is_mark[position] = True
        self.dates: set[int] = set()
        if _DATES in self.zones:
            self.dates.update(range(self.zones.index(_DATES), count))
            for position in self.dates:
                self.zones[position], self.is_mark[position] = _BRACKET, False
        is_short_and = "n" in self.words and bool(_SHORT_AND.search(folded))
        for position in range(count):
            if is_short_and and self.words[position] == "n":
                self.is_small[position] = True
            if self.is_small[position]:
                self.is_mark[position] = False
        self.has_ampersand = "&" in folded or "+" in folded or is_short_and
        self.is_title, self.is_legal = [False] * count, [False] * count
        for position, word in enumerate(self.words[:-1]):
            if word == "minus" and self.numbers[position + 1]:
                self.is_mark[position] = True
        if count > 1 and self.words[-1] == "minus" and len(self.words[-2]) == 1:  # group A-
            self.is_mark[-1] = True
        self._find_titles()
        self._find_legal_form()
        self._find_generation()

    def _is_numeral(self, position: int) -> bool:
        """Say whether a single letter is a number, by the words beside it: *Henry V*, *World War I*.

        It is one behind the word of a series; *i* and *v* also before it, and where they end a name or stand
        before its preposition, *x* only behind the name of a king, a pope or a saint, unlike *Malcolm X*.
        """
        word, before = self.words[position], self.words[position - 1] if position else ""
        behind = self.words[position + 1] if position + 1 < len(self.words) else ""
        if word != "x" and behind in _SERIES:
            return True  # I. Weltkrieg
        if not position:
            return behind in _NUMBERED_BOOKS
        if self.zones[position - 1] != self.zones[position]:
            return False  # Holmes, V
        if before in _SERIES:
            return True
        is_last = not behind or self.zones[position + 1] != self.zones[position] or behind in _SMALL_WORDS
        if not is_last or len(before) == 1 or before in _SMALL_WORDS or before in _TITLES | _RULERS:
            return False
        return word != "x" or not _RULERS.isdisjoint(self.words[: position - 1])

    def is_regnal(self, position: int) -> bool:
        """Say whether a word is a number that is not in digits, as those of kings and popes."""
        return bool(self.numbers[position]) and not self.words[position].isdecimal()

    def _add(self, word: str, zone: int, *, is_part: bool = False) -> None:
        if len(self.words) < _MAX_WORDS:
            self.words.append(word)
            self.zones.append(zone)
            self.is_part.append(is_part)

    def _without_number(self) -> tuple[list[int], str]:
        """Return the places of words that are no small ones, and the number that the last of several is."""
        places = [at for at, small in enumerate(self.is_small) if not small]
        if len(places) > 1 and (number := self.numbers[places[-1]]):
            return places[:-1], number
        return places, ""

    def as_acronym(self) -> set[tuple[str, str]]:
        """Return the letters that the name may be, and the number behind them: `nato`, `r & b`, `wwii`."""
        if not self.has_ampersand and self.is_small.count(False) > 2:
            return set()
        places, number = self._without_number()
        if self.has_ampersand:  # at is no preposition in AT&T
            last = max(places, default=0) + 1
            places = [at for at in range(last) if len(self.words[at]) == 1 or self.words[at] not in _ANDS]
        words = [self.words[at] for at in places]
        letters = "".join(words)
        is_one = len(words) == 1 or (self.has_ampersand and max(map(len, words), default=0) < 3)
        if not is_one or not 2 <= len(letters) <= 8:
            return set()
        found = {(letters, number)}
        match = _SHORT_NUMERAL.fullmatch(letters)
        if match and not number and (number := _number(match[2], 1, {})):
            found.add((match[1], number))
        return found

    def acronyms(self) -> set[tuple[str, str]]:
        """Return the first letters of all words, and of the words without small ones, and a number behind."""
        places, number = self._without_number()
        of_all = range(places[-1] + 1) if number else range(len(self.words))
        return {
            ("".join(self.words[at][0] for at in each), number) for each in (places, of_all) if len(each) > 1
        }

    def _join_tens(self) -> None:
        """Make one number of the words `fifty four`."""
        for position in range(len(self.words) - 2, -1, -1):
            first, second = self.words[position], self.words[position + 1]
            if first in _TENS and 0 < _NUMBERS.get(second, 0) < 10:
                number = str(_NUMBERS[first] + _NUMBERS[second])
                self.words[position : position + 2] = [number]
                self.numbers[position : position + 2] = [number]
                del self.zones[position + 1], self.is_part[position + 1]

    def _find_titles(self) -> None:
        first = 0
        if (
            self.words[:1] == ["a"]
            and len(self.words) > 1
            and len(self.words[1]) > 1
            and not self.directions[1]
        ):
            self.is_small[0], self.is_mark[0] = True, False
            return
        while first < len(self.words) - 1 and (self.words[first] in _TITLES or self.is_small[first]):
            self.is_title[first] = self.words[first] in _TITLES
            self.is_small[first], self.is_mark[first] = True, False
            first += 1
        for position in range(1, len(self.words)):  # King, Dr. Martin Luther
            is_title = self.words[position] in _TITLES - _GENERATIONS and not self.is_mark[position - 1]
            if self.zones[position] == _TAIL and is_title:
                self.is_small[position], self.is_mark[position] = True, False
                self.is_title[position] = True

    def _find_legal_form(self) -> None:
        end = len(self.words)
        while end and self.zones[end - 1] == _BRACKET:
            end -= 1
        found = True
        while found and end > 1:
            found = False
            for size in range(min(4, end - 1), 0, -1):
                form = tuple(self.words[end - size : end])
                if form in _legal_forms() and (size > 1 or self._is_form(form[0])):
                    for position in range(end - size, end):
                        self.is_small[position], self.is_mark[position] = True, False
                        self.is_legal[position] = True
                    end, found = end - size, True
                    break
        if end > 1 and self.words[0] in _LEADING_FORMS:
            self.is_small[0] = self.is_legal[0] = True

    def _is_form(self, word: str) -> bool:
        """Say whether a word that may be a legal form is one; most that are short need their stops."""
        needs_stops = word in _OTHER_WORDS or (len(word) == 2 and word not in _SHORT_FORMS)
        return not needs_stops or ".".join(word) in self.folded

    def _find_generation(self) -> None:
        """Take *Jr.* or *the Elder*, where it is last or before a comma, for a mark."""
        ends = [at for at, zone in enumerate(self.zones[1:]) if zone != self.zones[at]]
        for end in {*ends, len(self.words) - 1}:
            if end <= 0 or self.zones[end] == _BRACKET:
                continue
            word, begin = self.words[end], end
            if word not in (_ELDERS if self.is_small[end - 1] else _GENERATIONS):
                continue
            while self.is_small[begin - 1] and self.zones[begin - 1] == _TAIL:
                begin -= 1
            if self.zones[begin - 1] == _HEAD:
                self.zones[begin : end + 1] = [_HEAD] * (end + 1 - begin)  # Dumas, fils
            self.is_mark[end], self.is_small[end], self.is_title[end] = True, False, False


def _zones(folded: str) -> Iterable[tuple[str, int]]:
    """Yield the parts of a name, each with its zone."""
    zone, begin = _HEAD, 0
    pieces: list[tuple[str, int]] = []
    folded, dates = folded[: (end := _begin_of_dates(folded))], folded[end:]
    for match in BRACKETS.finditer(folded) if not folded.isalnum() else ():
        pieces += [(folded[begin : match.start()], _HEAD), (match[0][1:], _BRACKET)]
        begin = match.end()
    pieces.append((folded[begin:], _HEAD))
    seen = False  # a word before a comma
    for text, kind in pieces:
        if kind == _BRACKET:
            if plain := text.strip(" )]}）】"):
                yield plain, _BRACKET if seen else _HEAD
            continue
        head, comma, tail = text.partition(",")
        if comma and tail[:1].isdecimal():
            head, comma, tail = text, "", ""
        if head.strip():
            seen = True
            yield head, zone
        if comma:
            zone = _TAIL if seen else zone
            if tail.strip():
                yield tail, zone
    if dates:
        yield dates[1:], _DATES


def _begin_of_dates(folded: str) -> int:
    """Return where the dates of a life begin behind a name, as in libraries; the end if there are none."""
    match = _LIFE_DATES.search(folded)
    if match is None or not folded[: match.start()].strip():
        return len(folded)
    first, last, is_before_christ = match.groups()
    if first is not None:
        years = _LIVES.start if last is None else int(last) - int(first)
        if is_before_christ:
            years = abs(years)
        elif int(first) < 1_000:  # 737-800
            return len(folded)
        if years not in _LIVES:
            return len(folded)
    elif "," not in folded[: match.start()]:  # gate (b 1204)
        return len(folded)
    return match.start()


def _number(word: str, position: int, known: Mapping[str, int]) -> str:
    """Return the number that a word is, in digits; empty if it is none."""
    if word.isdecimal():
        return str(int(word))
    if (number := known.get(word)) is not None:
        return str(number)
    if _ROMAN.fullmatch(word) and word not in _NO_ROMAN and (position or word not in _NAMES):
        values = [_ROMAN_DIGITS[letter] for letter in word]
        return str(sum(-v if v < n else v for v, n in zip(values, [*values[1:], 0], strict=True)))
    return ""


@lru_cache(1024)
def number_words(number: str, language: str = "") -> list[str]:
    """Return the words for a number: in digits, in Roman ones, and by name."""
    words = [number, *[word for word, value in _numbers(language).items() if str(value) == number]]
    if len(number) < 3 and (value := int(number)):
        tens, ones = divmod(value, 10)
        words.append(("", *"x xx xxx xl l lx lxx lxxx xc".split())[tens] + _ROMAN_ONES[ones])
    return words


@lru_cache(4096)
def parse_name(folded: str, language: str = "") -> Name:
    """Return a folded name, cut into words; those that were asked for last are kept."""
    return Name(folded, language)


# -- comparison -------------------------------------------------------------


class Comparison(NamedTuple):
    """The words that two names have in common, and their differences.

    Attributes:
        features: numbers, as `FEATURES` names them.
        unexplained: words that only the name has, and that are no small ones: what may qualify it.
    """

    features: list[float]
    unexplained: list[str]


def log_odds(features: Sequence[float]) -> float:
    """Return the logarithm of the odds that two names with these features are one.

    Where one of them has a word more, they are seldom one, however many words are the same: *World War II*,
    *World War II Museum*.
    """
    odds = float(sum(map(operator.mul, features, WEIGHTS)))
    if features[_ADDED] or features[_DROPPED]:
        odds = min(odds, _MOST_WITH_OTHERS + _TIE_BREAK * odds)
    return odds


def odds_of_marks(features: Sequence[float]) -> float:
    """Return the part of these log odds that numbers, single letters and directions have."""
    return features[_CLASH] * WEIGHTS[_CLASH] + features[_MARK] * WEIGHTS[_MARK]


def compare(
    name: Name,
    surface: Name,
    rarity: Rarity,
    explained: frozenset[str] = frozenset(),
    *,
    surfaces: int = FEW_SURFACES,
) -> Comparison | None:
    """Compare a name with a surface; None if they have too little in common.

    Args:
        name: the name.
        surface: the surface.
        rarity: how telling words are.
        explained: words of the name that are taken as if they were not there.
        surfaces: number of surfaces that are searched.
    """
    comparison = _Alignment(name, surface, rarity, explained).result()
    if comparison is not None:
        comparison.features[_SURFACES] = math.log(max(surfaces / FEW_SURFACES, 1))
    return comparison


class _Alignment:
    """The words of a name beside those of a surface."""

    def __init__(self, name: Name, surface: Name, rarity: Rarity, explained: frozenset[str]) -> None:
        self.name, self.surface, self.rarity = name, surface, rarity
        self.features = [0.0] * len(FEATURES)
        self.features[_CONSTANT] = 1.0
        self.partner: dict[int, int] = {}  # of words of the name
        self.information = self.letters = 0.0
        self.has_shared_word = False  # whether an ordinary word is the same
        places: dict[str, list[int]] = {}
        for place in range(len(surface.words) - 1, -1, -1):
            places.setdefault(surface.words[place], []).append(place)
        left: list[int] = []
        for position, word in enumerate(name.words):
            if found := places.get(word):
                self._match(position, found.pop())
            elif word not in explained:
                left.append(position)
        self.left = left
        taken = set(self.partner.values())
        self.rest = [place for place in range(len(surface.words)) if place not in taken]

    def _match(self, position: int, place: int, share: float = 1.0) -> None:
        """Match a word of the name with one of the surface, which it is by a share."""
        self.partner[position] = place
        word = self.surface.words[place]
        if not self.surface.is_small[place]:
            self.information += share * self.rarity(word)
            self.letters += share * len(word)
            self.has_shared_word = self.has_shared_word or not self.surface.is_mark[place]
        else:
            self.letters += 0.1 * len(word)

    def _take(self, position: int, place: int, share: float = 1.0) -> None:
        self._match(position, place, share)
        self.left.remove(position)
        self.rest.remove(place)

    def result(self) -> Comparison | None:
        """Return the features."""
        if self.left or self.rest:
            if "minus" in self.name.words or "minus" in self.surface.words:
                self._forgive_minus()
            if self.left and self.rest:
                self._match_numbers()
                self._match_joined()
                self._match_initials()
                self._match_abbreviations()
                self._match_edited()
            if not self.has_shared_word:
                self._match_acronym()
            if not self.information or (self.features[_NUMERALS] and not self.has_shared_word):
                return None
        features, name, surface = self.features, self.name, self.surface
        if not (_has_shared_head(name, self.partner) and _has_shared_head(surface, self.partner.values())):
            return None
        unexplained = [
            name.words[at]
            for at in self.left
            if not name.is_small[at] and (name.zones[at] != _HEAD or not name.is_mark[at])
        ]
        self._count_rest()
        features[_CLASH] += self._marks_are_reordered()
        if features[_ADDED] > _MOST_ADDED or features[_DROPPED] > _MOST_DROPPED:
            return None
        features[_INFORMATION] = min(self.information, 1.0 if features[_ADDED] or features[_DROPPED] else 3.0)
        features[_LETTERS] = math.log(1 + self.letters)
        features[_ORDER] = float(self._is_reordered())
        features[_SAME] = float(not any(features[_EDITS:_SAME]) and not features[_ORDER])
        return Comparison(features, unexplained)

    def _forgive_minus(self) -> None:
        """Take the minus of `catch -22` for a hyphen, where the other name has `catch-22`."""
        for name, other, places in (
            (self.name, self.surface, self.left), (self.surface, self.name, self.rest)
        ):  # fmt: skip
            for at in [at for at in places if name.words[at] == "minus" and "minus" not in name.folded]:
                number = "".join(name.words[at + 1 : at + 2])
                if f" -{number}" in name.folded and re.search(_HYPHEN + number + r"\b", other.folded):
                    places.remove(at)

    # -- words that are the same in another form --

    def _match_numbers(self) -> None:
        name, surface = self.name, self.surface
        for position in [*self.left]:
            number, direction, word = name.numbers[position], name.directions[position], name.words[position]
            for place in self.rest:
                other, other_direction = surface.words[place], surface.directions[place]
                if number and number == surface.numbers[place]:
                    self.features[_NUMERALS] += 1
                elif (direction and direction == other_direction) or (
                    (direction in _COMPASS and direction == other)
                    or (word in _COMPASS and word == other_direction)
                ):
                    self.features[_ABBREVIATIONS] += 1
                else:
                    continue
                self._take(position, place)
                break

    def _match_joined(self) -> None:
        for mine, theirs, flipped in ((self.name, self.surface, False), (self.surface, self.name, True)):
            left, rest = (self.rest, self.left) if flipped else (self.left, self.rest)
            for first, second in zip([*left], [*left][1:], strict=False):
                if second != first + 1 or first not in left or second not in left:
                    continue
                if mine.numbers[first] and mine.numbers[second]:
                    continue  # 5.1 is not 51
                joined = mine.words[first] + mine.words[second]
                for other in rest:
                    if theirs.words[other] == joined:
                        self.features[_SPACES] += 1
                        if flipped:
                            self._take(other, first)
                            self.rest.remove(second)
                        else:
                            self._take(first, other)
                            self.left.remove(second)
                        break
        words = [self.name.words[at] for at in self.left] + [self.surface.words[at] for at in self.rest]
        if len(self.left) > 1 and len(self.rest) > 1 and not any(map(str.isdecimal, words)):
            joined = "".join(self.name.words[at] for at in self.left)
            if joined == "".join(self.surface.words[at] for at in self.rest):
                self.features[_SPACES] += 1
                for position, place in zip([*self.left], [*self.rest], strict=False):
                    self._take(position, place)
                self.left.clear()
                self.rest.clear()

    def _match_initials(self) -> None:
        """Match single letters, and two or three of them in a row, with words that begin so."""
        if not self.has_shared_word:
            return
        for mine, theirs, flipped in ((self.name, self.surface, False), (self.surface, self.name, True)):
            left, rest = (self.rest, self.left) if flipped else (self.left, self.rest)
            for position in [*left]:
                letters = mine.words[position]
                if len(letters) > 3 or not letters.isalpha() or position not in left:
                    continue
                is_other = mine.is_small[position] or mine.directions[position] or mine.numbers[position]
                places = [at for at in rest if theirs.zones[at] != _HEAD and not theirs.is_small[at]]
                if len(letters) > 1 and letters == "".join(theirs.words[at][0] for at in places):
                    for at in [at for at in rest if theirs.zones[at] != _HEAD and at != places[0]]:
                        rest.remove(at)
                    self.features[_ABBREVIATIONS] += 1
                    self._take(*((places[0], position) if flipped else (position, places[0])), _OF_INITIAL)
                    continue
                if len(letters) > 1 and is_other:
                    continue
                is_last = position > max(self.partner.values() if flipped else self.partner)
                is_bare = (
                    len(letters) == 1 and mine.zones[position] == _HEAD and f"{letters}." not in mine.folded
                )
                if is_last and is_bare:
                    continue  # Henry V, Vitamin B
                places = [at for at in rest if len(theirs.words[at]) > 1 or len(letters) > 1]
                for start in range(len(places) - len(letters) + 1):
                    chosen = places[start : start + len(letters)]
                    firsts = "".join(theirs.words[at][0] for at in chosen)
                    # of *V. v. Gogh* some builds leave no stop
                    has_stop = f"{letters}." in mine.folded or self._is_within(position, chosen, flipped)
                    if firsts == letters and not any(
                        (theirs.is_small[at] and not has_stop)
                        or (theirs.is_mark[at] and len(theirs.words[at]) > 1)
                        for at in chosen
                    ):
                        self.features[_INITIALS] = 1
                        if flipped:
                            self._take(chosen[0], position, _OF_INITIAL)
                            for at in chosen[1:]:
                                self.left.remove(at)
                        else:
                            self._take(position, chosen[0], _OF_INITIAL)
                            for at in chosen[1:]:
                                self.rest.remove(at)
                        break

    def _is_within(self, position: int, chosen: list[int], flipped: bool) -> bool:
        """Say whether the words before and behind a word are those before and behind some of the other."""
        pairs = [(position - 1, chosen[0] - 1), (position + 1, chosen[-1] + 1)]
        return all(self.partner.get(b if flipped else a) == (a if flipped else b) for a, b in pairs)

    def _match_abbreviations(self) -> None:
        if not self.information:
            return
        name, surface = self.name, self.surface
        for position in [*self.left]:
            word = name.words[position]
            for place in self.rest:
                other = surface.words[place]
                is_qualifier = name.zones[position] != _HEAD or surface.zones[place] != _HEAD
                if is_qualifier and (_REGIONS.get(word) == other or _REGIONS.get(other) == word):
                    self._take(position, place)
                    break
                if self._is_short(word, name, other) or self._is_short(other, surface, word):
                    self.features[_ABBREVIATIONS] += 1
                    self._take(position, place, _OF_ABBREVIATION)
                    break

    def _is_short(self, short: str, name: Name, word: str) -> bool:
        """Say whether a word of a name is short for another one."""
        if not is_short_for(short, word):
            return False
        if short in _SPECIAL_SHORT or f"{short}." in name.folded:
            return True
        return (
            self.has_shared_word
            and self.rarity(short) == 1
            and (len(word) > len(short) + 2 or not word.startswith(short))
        )

    def _match_edited(self) -> None:
        name, surface = self.name, self.surface
        pairs: list[tuple[int, int, int]] = []
        for position in self.left:
            word = name.words[position]
            length = len(word)
            if length < 2 or word.isdecimal():
                continue
            for place in self.rest:
                other = surface.words[place]
                most = _most_edits(max(length, len(other)))
                if len(other) < 2 or abs(length - len(other)) > most or other.isdecimal():
                    continue
                if (name.is_mark[position] and surface.is_mark[place]) or (
                    name.is_part[position] or surface.is_part[place]
                ):
                    continue
                edits: int = _osa()(word, other, score_cutoff=most)
                if edits and length != len(other) and _is_umlaut(word, name.folded, other, surface.folded):
                    edits = 0
                if edits <= most and not _is_series(word, other):
                    pairs.append((edits, position, place))
        for edits, position, place in sorted(pairs):
            if position in self.left and place in self.rest:
                length = max(len(name.words[position]), len(surface.words[place]))
                weight = _SIGN if name.words[position] >= _SIGNS else 1
                self.features[_EDITS] += weight * edits
                self.features[_SHARE] += weight * edits / length
                if edits and self.rarity(name.words[position]) < 1:
                    self.features[_KNOWN] += 1
                self._take(position, place, 1 - edits / length)
        if self.left and self.rest and len(self.left) != len(self.rest):
            self._match_joined_edited()

    def _match_joined_edited(self) -> None:
        """Match all words that are left as one, with typing errors: a space is among these."""
        name, surface = self.name, self.surface
        if any(name.is_mark[at] for at in self.left) or any(surface.is_mark[at] for at in self.rest):
            return
        word = "".join(name.words[at] for at in self.left)
        other = "".join(surface.words[at] for at in self.rest)
        length = max(len(word), len(other))
        edits: int = _osa()(word, other, score_cutoff=3)
        if min(len(word), len(other)) < _LEAST_JOINED or edits > _most_edits(length):
            return
        self.features[_SPACES] += 1
        self.features[_EDITS] += edits
        self.features[_SHARE] += edits / length
        first = self.left[0]
        for place in [*self.rest]:
            self._match(first, place, 1 - edits / length)
        self.left.clear()
        self.rest.clear()

    def _match_acronym(self) -> None:
        """Match a name that is the first letters of the other one."""
        for mine, theirs in ((self.name, self.surface), (self.surface, self.name)):
            short = mine.as_acronym()
            for letters, number in sorted(short & theirs.acronyms()) if short else ():
                self.features[_EDITS:_CLASH] = [0.0] * (_CLASH - _EDITS)
                self.features[_ACRONYM] = 1
                has_and = mine.has_ampersand and (theirs.has_ampersand or not _ANDS.isdisjoint(theirs.words))
                self.letters = len(letters) + 2 * (bool(number) + has_and)
                of_all, of_letter = _OF_ACRONYM
                self.information = max(of_all + of_letter * self.letters, _LEAST_OF_ACRONYM)
                first = next((at for at, small in enumerate(self.surface.is_small) if not small), 0)
                self.partner = dict.fromkeys(range(len(self.name.words)), first)
                self.left, self.rest = [], []
                self.has_shared_word = True
                return

    # -- words that are left --

    def _count_rest(self) -> None:
        features = self.features
        added, marks, qualified = self._of_side(self.name, self.left, {*self.partner}, bool(self.rest))
        dropped, other_marks, other_qualified = self._of_side(
            self.surface, self.rest, {*self.partner.values()}, bool(self.left)
        )
        features[_CLASH] = min(marks, other_marks)
        features[_MARK] = max(marks, other_marks) - features[_CLASH]
        if self.name.dates or self.surface.dates:
            features[_CLASH] += self._dates_clash()
        if qualified and other_qualified:
            features[_OTHER_QUALIFIER] = 1
        else:
            features[_ADDED_QUALIFIER], features[_QUALIFIER] = float(qualified), float(other_qualified)
        features[_ADDED], features[_DROPPED] = added, dropped
        features[_REPLACED] = math.sqrt(added * dropped)

    def _dates_clash(self) -> bool:
        """Say whether each has numbers that the other lacks, and those of one are the dates of a life."""
        has_dates = not (self.name.dates.isdisjoint(self.left) and self.surface.dates.isdisjoint(self.rest))
        return (
            has_dates
            and any(self.name.numbers[at] for at in self.left)
            and any(self.surface.numbers[at] for at in self.rest)
        )

    def _of_side(
        self, name: Name, left: list[int], matched: set[int], is_other_left: bool
    ) -> tuple[float, int, bool]:
        """Return the share of the ordinary words left in the information; marks; whether it is qualified."""
        if not left:
            return 0.0, 0, False
        tail_is_matched = any(name.zones[at] == _TAIL and not name.is_small[at] for at in matched)
        # not before a numeral alone: John II, John Paul II
        words = [at for at in matched if not name.numbers[at] and not name.is_small[at]]
        first, last = min(words, default=0), max(words, default=0)
        information, marks, qualified = 0.0, 0, False
        for at in left:
            zone = name.zones[at]
            if zone == _BRACKET or (zone == _TAIL and not tail_is_matched and not name.is_small[at]):
                qualified = True
                marks += name is self.name and name.is_mark[at]
            elif name.is_title[at] and not self._is_person(name, at):
                information += self.rarity(name.words[at])
            elif name.is_legal[at] or (name.is_title[at] and name.words[at] in _ADDRESSES):
                self.features[_FORM] = 1
            elif name.is_title[at]:
                self.features[_TITLE] += 1
            elif name.is_small[at]:
                other = self.surface if name is self.name else self.name
                is_and = name.words[at] == "n" or (other.has_ampersand and name.words[at] in _ANDS)
                self.features[_SMALL] += not is_and
            elif first < at < last and not is_other_left and self._may_be_middle(name, at):
                self.features[_MIDDLE_LETTERS if len(name.words[at]) == 1 else _MIDDLE] += 1
            elif name.is_mark[at]:
                marks += 1
            else:
                information += self.rarity(name.words[at])
                marks += at + 1 in matched and name.is_regnal(at + 1)
        share = information / (information + self.information) if information else 0.0
        return share, marks, qualified

    def _is_person(self, name: Name, title: int) -> bool:
        """Say whether a title may stand before the name of a person: two words, or one behind an address."""
        words = [
            word
            for word, small, zone in zip(name.words, name.is_small, name.zones, strict=True)
            if not small and zone != _BRACKET
        ]
        is_address = name.words[title] in _ADDRESSES
        return len(words) > 1 or (is_address and self.rarity("".join(words)) > _RARE)

    def _may_be_middle(self, name: Name, at: int) -> bool:
        """Say whether a word may be a second given name or the letter of one."""
        if (name.is_mark[at] and len(name.words[at]) > 1) or name.directions[at] or name.is_part[at]:
            return False
        return len(name.words) < 5 and _NO_PERSON.isdisjoint(name.words)

    def _marks_are_reordered(self) -> bool:
        """Say whether numbers, letters and directions are the same, but in another order: *3:16*, *16:3*."""
        places = [
            place
            for position, place in sorted(self.partner.items())
            if self.name.is_mark[position] and self.surface.is_mark[place]
        ]
        return places != sorted(places)

    def _is_reordered(self) -> bool:
        """Say whether the words that are the same stand in another order, but for what a comma put first."""
        order = [place for _, place in sorted(self.partner.items())]
        if order == sorted(order):
            return False
        for name, places in (
            (self.name, self.partner),
            (self.surface, {place: position for position, place in self.partner.items()}),
        ):
            if _TAIL in name.zones:
                rotated = sorted(places, key=lambda at: (name.zones[at] != _TAIL, at))
                turned = [places[at] for at in rotated]
                if turned == sorted(turned):
                    return False
        return True


def _has_shared_head(name: Name, matched: Iterable[int]) -> bool:
    """Say whether a word before comma and brackets is the same, if there are any."""
    heads = [at for at, zone in enumerate(name.zones) if zone == _HEAD and not name.is_small[at]]
    return not heads or not {*heads}.isdisjoint(matched)


@cache
def _osa() -> Callable[..., int]:
    from rapidfuzz.distance import OSA  # here: 20 ms, which few calls need

    return OSA.distance


def _most_edits(length: int) -> int:
    return _MOST_EDITS[length] if length < len(_MOST_EDITS) else 3


@lru_cache(4096)
def is_short_for(short: str, word: str) -> bool:
    """Say whether a word is an abbreviation of another one: its beginning, or its first and last letters."""
    if word in _SPECIAL_SHORT.get(short, ()):
        return True
    if short in _REGIONS:
        return word == _REGIONS[short]
    if not (2 <= len(short) <= 5 and len(word) >= len(short) + 2 and short.isalpha() and short[0] == word[0]):
        return False
    if word.startswith(short):
        return True
    letters = iter(word)
    return len(word) > 2 * len(short) - 2 and short[-1] == word[-1] and all(each in letters for each in short)


def _is_umlaut(word: str, folded: str, other: str, other_folded: str) -> bool:
    """Say whether two words are one, as `mueller` is `müller`."""
    for plain, long, marked in ((word, other, folded), (other, word, other_folded)):
        if _UMLAUTS.search(marked):
            for digraph, letter in _DIGRAPHS:
                long = long.replace(digraph, letter)
            if long == plain:
                return True
    return False


def _is_series(word: str, other: str) -> bool:
    """Say whether short words differ by a Roman numeral at their end, as `wwi` and `wwii`."""
    return max(len(word), len(other)) < 6 and word.rstrip("ivx") == other.rstrip("ivx")
