"""Tokens, folding and offsets: how a text is cut so that it can meet a KB.

One tokenizer cuts both the surfaces of a KB and the texts they are sought in,
so that a surface is found wherever its tokens stand in a row. A token is

    a run of word characters with their combining marks   naïve  1990s  don't
    a clitic                                              's  'll
    one Chinese or Japanese character with its marks      苹
    any other single character that is not white space,   - . &
      with its combining marks

In version 2, which knowledge bases have that are built today, it is also

    one Thai, Lao, Burmese or Khmer letter with its marks    กุ
    single letters with full stops between them              U.S.A.
    a flag, a family, a key: what is seen as one sign        🇩🇪

and the stop of an abbreviation (*St. Louis*) and characters that nobody sees count as white space does.

Offsets always count code points of the text as given. Folding can change a
text's length (ß → ss), so it is done span by span and never shifts an offset.
"""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import accumulate, pairwise
from typing import Any, Final
from unicodedata import normalize

# Han (with extensions), Hiragana, Katakana: written without spaces.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309b-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U000323af"
)
# Marks that `\w` leaves out: those of the Basic Multilingual Plane, and the selectors of variants of Han.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0"
    "\u07eb-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0897-\u089f\u08ca-\u08e1\u08e3-\u0963\u0966-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18-\u0f19\u0f35\u0f37\u0f39"
    "\u0f3e-\u0f3f\u0f71-\u0f84\u0f86-\u0fbc\u0fc6\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734"
    "\u1752-\u1773\u17b4-\u17d3\u17dd\u180b-\u180d\u180f\u1885-\u18a9\u1920-\u193b\u1a17-\u1a1b"
    "\u1a55-\u1a7f\u1ab0-\u1b04\u1b34-\u1b44\u1b6b-\u1b73\u1b80-\u1bad\u1be6-\u1bf3\u1c24-\u1c37"
    "\u1cd0-\u1cd2\u1cd4-\u1cf9\u1dc0-\u1dff\u200c-\u200d\u20d0-\u20ff\u2cef-\u2cf1\u2d7f\u2de0-\u2dff"
    "\u302a-\u302f\u3099-\u309a\ua66f-\ua672\ua674-\ua67d\ua69e-\ua69f\ua6f0-\ua6f1\ua802-\ua827\ua82c"
    "\ua880-\ua881\ua8b4-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua983\ua9b3-\ua9c0\ua9e5"
    "\uaa29-\uaa4d\uaa7b-\uaa7d\uaab0-\uaac1\uaaeb-\uaaef\uaaf5-\uaaf6\uabe3-\uabea\uabec-\uabed\ufb1e"
    "\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
)
_CLITIC = r"['’](?:[sSdDmM]|[rR][eE]|[vV][eE]|[lL]{2})"
# What must not follow a clitic: in mixed text a Chinese character may, as it begins a token of its own.
_NO_WORD, _NO_SPACED = rf"(?![\w{_MARKS}])", rf"(?!(?![{_UNSPACED}])[\w{_MARKS}])"
_ASCII = rf"\w+(?:'[tT]\b)?|[^\w\s\x1c-\x1f']|{_CLITIC}\b|'"
_SPACED = rf"[\w{_MARKS}]+(?:['’][tT]{_NO_WORD})?|{_CLITIC}{_NO_WORD}|[^\w\s][{_MARKS}]*"
_MIXED = (
    rf"[{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[\w{_MARKS}])+(?:['’][tT]{_NO_SPACED})?"
    rf"|{_CLITIC}{_NO_SPACED}|[^\w\s][{_MARKS}]*"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


FOLDING: Final = 2
"""The newest version of folding and tokens; part of the format on disk. See `folding`."""


@cache
def _compile(pattern: str, groups: str) -> re.Pattern[str]:
    return re.compile(groups.replace("{}", pattern), re.ASCII if pattern in (_ASCII, _ASCII_2) else 0)


def _pattern(text: str) -> str:
    # They differ in speed: each cuts the texts that it is chosen for alike.
    if text.isascii():
        return _ASCII
    return _MIXED if _HAS_UNSPACED.search(text) else _SPACED


def token_splitter(text: str) -> re.Pattern[str]:
    """Return a pattern that splits *text* into white space and tokens: `["", "Hot", " ", "dogs", ""]`."""
    return _compile(_pattern(text), "({})")


def tokens(text: str) -> list[str]:
    """Return the tokens of *text*, in order.

    Examples:
        >>> tokens("Teddy's hot-dogs, 苹果")
        ['Teddy', "'s", 'hot', '-', 'dogs', ',', '苹', '果']
    """
    return _compile(_pattern(text), "{}").findall(text)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of every token of *text*, in code points."""
    return [match.span() for match in _compile(_pattern(text), "{}").finditer(text)]


def fold(text: str) -> str:
    """Return *text* as alias tables have it: white space single, NFC, case folded, apostrophes straight.

    That is version 1. The surfaces of a knowledge base are folded as `StoreReader.folding` does it; what
    models and tables of words have learnt is folded so, whatever version the knowledge base has.

    Examples:
        >>> fold("Straße  des 17. Juni")
        'strasse des 17. juni'
    """
    if text.isascii():
        text = text.lower()
    else:
        # Once more after folding: case folding can leave a text that is not NFC.
        text = normalize("NFC", normalize("NFC", text).casefold()).replace("’", "'")
    return text if text.isalnum() else " ".join(text.split())


# -- version 2 ------------------------------------------------------------------

POPULATION: Final = frozenset(
    "population inhabitants einwohner einwohnerzahl bevölkerung población habitantes popolazione abitanti "
    "habitants inwoners população 人口".split()
)
"""Names of attributes that say how many live in a place."""
BEFORE_NAMES: Final = frozenset(
    "Mr Mrs Ms Messrs Dr Prof Rev Fr St Sen Rep Gov Gen Col Capt Cpt Cmdr Adm Maj Lt Sgt Cpl Pvt Hon Pres "
    "Mt Ft No Nos Vol Fig vs Jan Feb Apr Aug Sept Oct Nov Dec".split()
)
"""Abbreviations that stand before names, so that their full stop ends no sentence."""
_ABBREVIATIONS: Final = BEFORE_NAMES | frozenset(
    "Jr Sr Inc Corp Co Ltd Bros Cie Assn Dept Univ Intl Mfg Ave Blvd Rd Hwy Str Nr Hl Ste Sta Sto Mts "
    "Pt".split()
)

# Written without spaces, with the vowels and consonants that belong to a letter: Thai, Lao, Burmese, Khmer.
_CLUSTERED = (
    "\u0e01-\u0e30\u0e32\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf"
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065-\u1066\u106e-\u1070\u1075-\u1081\u108e"
    "\u1780-\u17b3\u17d7\u17dc\ua9e0-\ua9e4\ua9e7-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a\uaa7e-\uaa7f"
)
_FOLLOWING = "\u0e33\u0eb3"  # vowels that stand behind their letter, and are letters themselves
_STACKING = "\u1039\u17d2"  # the next letter stands below this one
_FLAG = "\U0001f1e6-\U0001f1ff"
_TONE = "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # colours of skin, and letters within a flag
# Seen by nobody: they part no words, and belong to no word that they stand before or behind.
_UNSEEN = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
# Marks that are written or not: the joiner of graphemes, points of Hebrew, vowels and lengthening of Arabic,
# vowels of Khmer that have no shape, selectors of variants.
_OPTIONAL = (
    "\u034f\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    "\u17b4-\u17b5\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
_DROPPED: Final = "".join(
    map(
        chr,
        (
            code
            for first, last in re.findall("(.)(?:-(.))?", _UNSEEN + _OPTIONAL)
            for code in range(ord(first), ord(last or first) + 1)
        ),
    )
)
_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u2032\u05f3\ua78c\u00b4\uff07"
_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u05f4"
DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u058a\u05be\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d"
"""Hyphens and dashes that version 2 folds to the hyphen of keyboards."""
_WIDE: Final = {
    code: normalize("NFKC", chr(code))
    for code in (
        *range(0xFF01, 0xFF5F),
        *range(0xFF61, 0xFFA0),
        *range(0xFFE0, 0xFFE3),
        *range(0xFFE4, 0xFFE7),
    )
}
_ONE_FOR_ONE: Final[dict[int, str | None]] = {
    **_WIDE, **dict.fromkeys(map(ord, _APOSTROPHES), "'"), **dict.fromkeys(map(ord, _QUOTES), '"'),
    **dict.fromkeys(map(ord, DASHES), "-"),
}  # fmt: skip
_REPLACED: Final = re.compile(f"[{''.join(map(chr, _ONE_FOR_ONE))}]")
# Letters of Romanian, and of Persian and Urdu, that texts often have as those of Turkish and Arabic.
_OWN_LETTERS: Final = ("\u0218\u0219\u021a\u021b", "\u06cc\u06a9")
_FOREIGN_LETTERS: Final = ("\u015e\u015f\u0162\u0163", "\u064a\u0643")
_WITH_OWN_LETTERS: Final = (frozenset(["ro", "mo"]), frozenset(["fa", "ur", "ps", "ckb", "sd", "pnb"]))
_PLAIN: Final = (
    _ONE_FOR_ONE
    | dict.fromkeys(map(ord, _DROPPED))
    | str.maketrans("".join(_OWN_LETTERS), "".join(_FOREIGN_LETTERS))
    | str.maketrans("".join(_FOREIGN_LETTERS), "".join(_FOREIGN_LETTERS))
)
_ODD: Final = re.compile(f"[{''.join(map(chr, _PLAIN))}]")
_DOTTED_I: Final = re.compile("i\u0307+")
_TURKIC: Final = frozenset(["tr", "az"])

# Letters that fold to one letter, of scripts that have abbreviations of single letters.
_LETTER = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00de\u00e0-\u00f6\u00f8-\u00ff\u0100-\u0148\u014a-\u017e"
    "\u0391-\u03a9\u03b1-\u03c9\u0400-\u045f\u0490-\u04ff"
)


def _behind_abbreviation(word: str) -> str:
    """Return a pattern of the full stops that count as white space; *word*: characters of words."""
    by_length: dict[int, list[str]] = {}
    for abbreviation in sorted(_ABBREVIATIONS):
        by_length.setdefault(len(abbreviation), []).append(abbreviation)
    listed = "|".join(
        rf"(?<=(?<![{word}'])(?i:{'|'.join(group)})\.)" for _, group in sorted(by_length.items())
    )
    single = rf"(?<=(?<![{word}'])[{_LETTER}]\.)(?![^\s\x1c-\x1f])"
    return rf"\.(?:(?:{listed})(?![^\w\s\x1c-\x1f])|{single})"


_WORD = rf"\w{_MARKS}"
_SEEN = rf"(?![{_UNSEEN}{_OPTIONAL}])"
_INITIALS_2 = rf"[{_LETTER}][{_MARKS}]*(?:\.[{_LETTER}][{_MARKS}]*(?![{_WORD}]))+\.?"
_CLITIC_2 = rf"'(?:[sSdDmM]|[rR][eE]|[vV][eE]|[lL]{{2}})(?![{_WORD}])"
_SIGN_2 = rf"(?!{_behind_abbreviation(_WORD)}){_SEEN}[^\w\s]"
_ASCII_INITIALS = r"[A-Za-z](?:\.[A-Za-z](?!\w))+\.?"
_ASCII_2 = (
    rf"{_ASCII_INITIALS}|\w+(?:'[tT]\b)?"
    rf"|(?!{_behind_abbreviation(chr(92) + 'w')})[^\w\s\x1c-\x1f']|{_CLITIC}\b|'"
)
_SPACED_2 = (
    rf"{_INITIALS_2}|{_SEEN}[{_WORD}](?:[{_WORD}{_UNSEEN}]*[{_WORD}])?(?:'[tT](?![{_WORD}]))?"
    rf"|{_CLITIC_2}|{_SIGN_2}[{_MARKS}]*"
)
_KEY = r"[0-9#*]\ufe0f?\u20e3"
_NO_CLUSTER = rf"(?![{_UNSPACED}{_CLUSTERED}]|{_KEY})"
_IN_CLUSTER = rf"(?:(?![{_CLUSTERED}])[{_MARKS}{_FOLLOWING}])*"
_END_2 = rf"(?!{_NO_CLUSTER}[{_WORD}])"
_MIXED_2 = (
    rf"[{_FLAG}]{{2}}|{_KEY}"
    rf"|[{_UNSPACED}][{_MARKS}]*|[{_CLUSTERED}]{_IN_CLUSTER}(?:(?<=[{_STACKING}])[{_CLUSTERED}]{_IN_CLUSTER})*"
    rf"|{_INITIALS_2}"
    rf"|{_SEEN}{_NO_CLUSTER}[{_WORD}](?:(?:{_NO_CLUSTER}[{_WORD}{_UNSEEN}])*{_NO_CLUSTER}[{_WORD}])?"
    rf"(?:'[tT]{_END_2})?|'(?:[sSdDmM]|[rR][eE]|[vV][eE]|[lL]{{2}}){_END_2}"
    rf"|{_SIGN_2}[{_MARKS}{_TONE}]*(?:(?<=\u200d)[^\w\s][{_MARKS}{_TONE}]*)*"
)
_HAS_CLUSTERS: Final = re.compile(f"[{_UNSPACED}{_CLUSTERED}{_FLAG}{_TONE}\u200d\u20e3]")
_INITIALS: Final = re.compile(_INITIALS_2)


class Folding:
    """The folding and the tokens of a knowledge base: those of version 1, unless this is of the second.

    Get one from `folding`.

    Attributes:
        version: 1 or 2.
        language: BCP 47 tag of the surfaces; Turkish and Azerbaijani have letters i of their own.
    """

    version = 1

    def __init__(self, language: str = "") -> None:
        self.language = language

    def fold(self, text: str) -> str:
        """Return *text* as a surface that is compared: the key of `aliases`."""
        return fold(text)

    def part(self, folded: str) -> str:
        """Return a folded token as it stands in a surface of several: *usa* for *u.s.a.*, else itself."""
        return folded

    def fold_part(self, token: str) -> str:
        """Return *token* as it stands in a folded surface of several tokens."""
        return self.part(self.fold(token))

    def joint(self, gap: str) -> str:
        """Return the joint for *gap*, between two tokens, in a folded surface: a space or nothing."""
        return " " if gap else ""

    def lowered(self, text: str) -> str | None:
        """Return *text* in lower case if folding its tokens is no more than that, and this is soon told."""
        return text.lower() if text.isascii() else None

    def split(self, text: str) -> list[str]:
        """Return gaps and tokens of *text* in turn, first and last a gap: `["", "Hot", " ", "dogs", ""]`."""
        return token_splitter(text).split(text)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of *text*, in order."""
        return self.split(text)[1::2]

    def comparable(self, text: str) -> str:
        """Return *text* with the characters that `spans` knows, one for each."""
        return text

    def spans(self, comparable: str, start: int = 0) -> Iterator[tuple[int, int]]:
        """Yield `(start, end)` of the tokens of a `comparable` text from *start* on, where one may begin."""
        return (match.span() for match in token_splitter(comparable).finditer(comparable, start))

    def without_stops(self, folded: str) -> str:
        """Return an abbreviation, a folded surface, without its full stops; empty if it is none."""
        return ""

    def plain(self, folded: str) -> str:
        """Return a folded surface without full stops and with plain letters i; empty if it has neither."""
        return ""

    def __reduce__(self) -> tuple[Any, ...]:
        return folding, (self.version, self.language)


class _Folding2(Folding):
    version = 2

    def __init__(self, language: str = "") -> None:
        super().__init__(language)
        primary = language.partition("-")[0].lower()
        self._turkic = primary in _TURKIC
        self._plain = _PLAIN
        for own, foreign, languages in zip(_OWN_LETTERS, _FOREIGN_LETTERS, _WITH_OWN_LETTERS, strict=True):
            if primary in languages:
                self._plain = self._plain | str.maketrans(own + foreign, own + own)

    def _fold_letters(self, text: str) -> str:
        if _ODD.search(text):
            text = text.translate(self._plain)
        text = normalize("NFC", text)
        if self._turkic:
            text = text.replace("I", "ı").replace("İ", "i")
        text = text.casefold()
        if _ODD.search(text):
            text = text.translate(self._plain)
        return normalize("NFC", _DOTTED_I.sub("i", normalize("NFC", text).translate(self._plain)))

    def fold(self, text: str) -> str:
        text = text.lower() if text.isascii() and not self._turkic else self._fold_letters(text)
        if text.isalnum():
            return text
        text = " ".join(text.split())
        return self._join(text) if "." in text else text

    def _join(self, text: str) -> str:
        """Return a folded text without the stops of its abbreviations, unless it is nothing but one."""
        pieces = self.split(text)
        if len(pieces) > 3:
            pieces[1::2] = map(self.part, pieces[1::2])
            pieces[2:-1:2] = map(self.joint, pieces[2:-1:2])
            return "".join(pieces[1:-1])
        if len(pieces) == 3 and not text.endswith(".") and _INITIALS.fullmatch(text):
            return text + "."
        return text

    def part(self, folded: str) -> str:
        return folded.replace(".", "") if "." in folded and folded[0] != "." else folded

    def joint(self, gap: str) -> str:
        return " " if gap == " " or (gap and gap.strip(_DROPPED)) else ""

    def lowered(self, text: str) -> str | None:
        if not text.isascii() or self._turkic or ("." in text and _INITIALS.search(text)):
            return None
        return text.lower()

    def split(self, text: str) -> list[str]:
        if text.isascii():
            return _compile(_ASCII_2, "({})").split(text)
        comparable = self.comparable(text)
        pieces = _compile(_pattern_2(comparable), "({})").split(comparable)
        if comparable is text:
            return pieces
        ends = [*accumulate(map(len, pieces))]
        return [text[start:end] for start, end in pairwise([0, *ends])]

    def comparable(self, text: str) -> str:
        if text.isascii() or not _REPLACED.search(text):
            return text
        return text.translate(_ONE_FOR_ONE)

    def spans(self, comparable: str, start: int = 0) -> Iterator[tuple[int, int]]:
        pattern = _compile(_pattern_2(comparable), "{}")
        return (match.span() for match in pattern.finditer(comparable, start))

    def without_stops(self, folded: str) -> str:
        if not folded.endswith(".") or len(pieces := self.split(folded)) != 3:
            return ""
        return self.part(pieces[1])

    def plain(self, folded: str) -> str:
        if not self._turkic and folded[-1:] != ".":
            return ""
        stopless = self.without_stops(folded) or folded
        plain = stopless.replace("ı", "i") if self._turkic else stopless
        return "" if plain == folded else plain


def _pattern_2(text: str) -> str:
    if text.isascii():
        return _ASCII_2
    return _MIXED_2 if _HAS_CLUSTERS.search(text) else _SPACED_2


@cache
def folding(version: int = FOLDING, language: str = "") -> Folding:
    """Return the folding of a version, with the letters of a language.

    Args:
        version: 1, or 2: dashes, apostrophes and letters of another width are one, marks that nobody sees or
            need not write are left out, abbreviations are found with and without their full stops.
        language: BCP 47 tag of the surfaces; empty where it is not known.

    Examples:
        >>> folding().fold("U.S. Steel – St. Louis")
        'us steel - st louis'
        >>> folding(language="tr").fold("DİYARBAKIR")
        'diyarbakır'
    """
    return _Folding2(language) if version > 1 else Folding(language)


_IN_TWO_LETTERS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_ACCENTS: Final = re.compile("(?<=[A-Za-z\u0370-\u03ff\u1f00-\u1fff])[\u0300-\u036f]+")
_MARK: Final = re.compile("[\u0300-\u036f]")
_LATIN: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")


def without_accents(text: str) -> str:
    """Return *text* with plain Latin and Greek letters: é → e, ł → l, ø → o, ß → ss, ά → α, and ё → е.

    Other letters stay as they are; й is a letter of its own. The text can become longer.

    Examples:
        >>> without_accents("Antonín Dvořák, Łódź")
        'Antonin Dvorak, Lodz'
    """
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", normalize("NFD", text))
    plain = normalize("NFC", plain).replace("ё", "е").replace("Ё", "Е")
    return _LATIN.sub(_transliterated, plain)


def accentless_writings(folded: str) -> list[str]:
    """Return a folded text that has other letters in plain ones, as *muller* and *mueller*; else nothing."""
    if folded.isascii():
        return []
    writings = (without_accents(folded), without_accents(folded.translate(_IN_TWO_LETTERS)))
    return [writing for writing in dict.fromkeys(writings) if writing != folded]


def lacks_accents(written: str, name: str) -> bool:
    """Say whether a folded text is *name*, folded, but for accents that it lacks: *dvořak* for *dvořák*.

    A cedilla stands for a comma, and the reverse. Signs and white space are not compared.
    """
    pattern = []
    for letter in filter(str.isalnum, name):
        if letter.isascii():
            pattern.append(re.escape(letter))
            continue
        writings = [_MARK.sub(_optional, re.escape(normalize("NFD", letter)))]
        writings += map(re.escape, accentless_writings(letter))
        pattern.append(f"(?:{'|'.join(writings)})")
    letters = "".join(filter(str.isalnum, written))
    return re.fullmatch("".join(pattern), normalize("NFD", letters)) is not None


def _optional(mark: re.Match[str]) -> str:
    return "[\u0326\u0327]?" if mark[0] in "\u0326\u0327" else f"{mark[0]}?"


def _transliterated(match: re.Match[str]) -> str:
    from anyascii import anyascii  # here: few texts have such letters

    return anyascii(match[0])


_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def drawn_text(text: str) -> str:
    """Return *text* with U+FFFD for each character that XML cannot hold, as pictures show it.

    These are the control characters but tab and line ends, halves of surrogate pairs, U+FFFE and U+FFFF.
    """
    return _NO_XML.sub("\ufffd", text)


def truncate(text: str, length: int) -> str:
    """Return a text of at most *length* characters: of a longer one the beginning, and an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def escape_xml(text: str) -> str:
    """Return *text* as it stands in XML and in HTML, as an element's text or between quotes.

    Every text gives well-formed XML: see `drawn_text`.
    """
    return escape(drawn_text(text))
