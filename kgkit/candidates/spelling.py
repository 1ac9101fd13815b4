"""What the spelling of a word tells: whether it is a mention of what the KB knows by it, and of which.

A KB of entities has *IN* for Indiana and *Apple* for a company, and is searched without regard to case. Two
things then keep the words of a language apart from its names (`docs/decisions/mentions-by-spelling.md`):

    function words      of the language of the KB: in, a, but
    capitals            a word in lower case is no name that the KB writes with capitals only

Nor is anything within an address: a URL, a path, an e-mail address, a handle.

Where a sentence begins, a capital tells nothing; nor does any spelling in a text, or a headline, that is in
capitals throughout, nor in one that has none. A single word there may be a name or not: see `is_doubtful`.
"""

import gzip
import re
from bisect import bisect_right
from collections import Counter
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kgkit.candidates.hyphens import with_spaces
from kgkit.name_words import MONTHS, WEEKDAYS
from kgkit.store import codec
from kgkit.text import BEFORE_NAMES

if TYPE_CHECKING:
    from kgkit.types import Mention

_JOINING: Final = (
    "a an the and or nor but if so as at by in into of on to from with for it its he him his she her hers "
    "i me my we us our you your they them their this that these those who whom whose which what am is are "
    "was were be been being has had have having does did do doing can could may might must shall should will "
    "would than then not no there"
).split()
FUNCTION_WORDS: Final = frozenset([*_JOINING, *map(str.capitalize, _JOINING)]) - {"May"}
"""Words of English that join others; WordNet knows most as something else (`a`: ångström, `in`: indium).

As a sentence has them, inside or first; `IT` and `US` are not among them, nor is the month. One with a
capital inside of a sentence may yet be a name, see `is_function_word_as_name`.
"""
_ALSO_NAMES: Final = frozenset(["IT", "US", "WHO", "MAY"])
"""Function words that are names, or may well be, where all is in capitals."""
_OF_LANGUAGE: Final = {"en": FUNCTION_WORDS}

_ALWAYS_CAPITALISED: Final = frozenset(map(str.capitalize, MONTHS + WEEKDAYS))
"""Words that English writes with a capital although they name no entity of most KBs."""
_NOUNS_CAPITALISED: Final = frozenset(["de", "gsw", "lb", "nds"])
"""Languages that write all nouns with capitals."""

_ARTICLES: Final = ("the ", "a ", "an ")
_WORDS: Final = re.compile("^[^A-Z,\n]+(?=,)", re.MULTILINE)  # of a lexicon whose names have capitals

# Characters of an address: letters of scripts with spaces; behind a slash those of others too.
_W: Final = r"A-Za-z0-9_\u00c0-\u058f"
_UNSPACED: Final = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_U: Final = (
    rf"""(?:[^\s<>"“”„«»‘’`{{}}|\\^{_UNSPACED}]|(?<=[/=])[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"""
)
_N: Final = rf"[{_W}.$~-]"  # of a name in paths of Windows
_DOMAINS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|app|dev|wiki|io|ai|tv|eu|uk|de|fr|es|nl|pl|ch|ru|jp|cn|au|ca|br|se|dk|fi|"
    "cz|ie|pt|gr|kr|tw|hk|nz|za|mx|COM|ORG|NET|EDU|GOV"
)
_FILES: Final = (
    "txt|pdf|csv|tsv|json|jsonl|xml|html?|css|js|ts|py|java|md|docx?|xlsx?|pptx?|odt|zip|gz|tar|jpe?g|png|gif|svg|"
    "mp[34]|exe|log|ya?ml|toml|ini|cfg|sh|sql"
)
_ADDRESS: Final = rf"""
    (?<![{_W}.+~/@\\-])(?:
        [A-Za-z][A-Za-z0-9+.-]*://{_U}+                        # URL
      | (?:[Ww]{{3}}\.|mailto:|(?:doi:|DOI:)?10\.\d{{4,9}}/){_U}+   # without a scheme, DOI
      | [{_W}.+-]+@[{_W}-]+(?:\.[{_W}-]+)*                    # e-mail
      | (?:[A-Za-z0-9-]+\.)+(?:                               # domain
          [a-z]{{2,}}(?::\d+)?[/?\#]{_U}+
        | (?<=[A-Za-z0-9-]{{2}}\.)(?:{_DOMAINS})(?::\d+)?/?(?![{_W}])
        )
      | (?:[A-Za-z0-9-]+\.)*(?:localhost(?::\d+)?|[A-Za-z][A-Za-z0-9-]*:\d{{2,5}})/{_U}+    # host
      | \d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?/{_U}+
      | @\w[\w.@-]*                                         # handle
      | (?:com|org|net|edu|gov|io)(?:\.[A-Za-z0-9_-]+){{2,}}    # package
      | (?:~(?:[a-z]\w*)?|\.\.?)(?:/[{_W}.%+~-]+)+/?                      # path
      | (?:/[{_W}.%+~-]+){{2,}}/?
      | \$(?:[A-Za-z_]\w*|\{{\w+\}})(?:/[{_W}.%+~-]+)+/?
      | (?<![^\s"'`“‘«(\[=])/[a-z][a-z0-9_.%+~-]*/?(?![{_W}])
      | (?:[{_W}.+~-]+/)+[{_W}.+~-]*\.[a-z][a-z0-9]{{0,4}}(?![{_W}])
      | (?:[A-Za-z]:|%\w+%)?\\*{_N}*(?:\\{{1,2}}{_N}+(?:\ {_N}+)*(?=\\))*\\{{1,2}}{_N}+
      | [{_W}-]+\.(?:{_FILES})(?![{_W}])
    )"""
_JOINTS: Final = (
    *((sign, re.compile(rf"{re.escape(sign)}[^\W_]")) for sign in "@/\\"), (".", re.compile(r"\.[^\W\d_]"))
)  # fmt: skip
"""The signs of an address before a letter, or a digit: what has none of them is no address."""
_FOLDER: Final = 100  # characters
_BEHIND_ADDRESSES: Final = ".,;:!?'\")]}"

_WIDE: Final = 40  # characters on each side of a word that tell whether all is in capitals
_FAR: Final = 48
"""Characters before a word that are looked at; a gap that is as wide parts sentences."""
_LINE_ENDS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_OPENING: Final = frozenset("\"'`“‘„«‹「『(")
_PASSED: Final = _OPENING | frozenset(" \t\xa0\u3000”’»›」』)[]{}*•·-–—#=>") | _LINE_ENDS
_SENTENCE_ENDS: Final = frozenset("!?…。！？")
_WITHOUT_GAPS: Final = str.maketrans("", "", ". ")
_LONGEST_WORD: Final = 3  # letters of initials that in capitals may well be a word
_VOWELS: Final = frozenset("AEIOUY")
_LONGEST_ABBREVIATION: Final = max(map(len, BEFORE_NAMES))


@cache
def _primary(language: str) -> str:
    return language.partition("-")[0].lower()


def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, a BCP 47 tag; none if they are not known here."""
    return _OF_LANGUAGE.get(_primary(language), frozenset())


def ordinary_words(language: str) -> frozenset[str]:
    """Return the words of a language that are no names, or not only: *cork*, *may*, but not *london*.

    They are in lower case, with their inflected forms, months and days.

    Args:
        language: BCP 47 tag of the KB; "" is read as English, and of other languages no words are known.
    """
    return _english_words() if _primary(language) in ("", "en") else frozenset()


def ambiguous_words(language: str) -> frozenset[str]:
    """Return those of the `ordinary_words` of a language that have several parts of speech: *box*, *rush*."""
    words = ordinary_words(language)
    return frozenset(word for word, parts in _english_parts().items() if parts > 1) if words else words


@cache
def _english_words() -> frozenset[str]:
    """Return the words of English, function words, months and days."""
    others = (word.lower() for word in FUNCTION_WORDS | _ALWAYS_CAPITALISED)
    return frozenset(chain(_english_parts(), others))


@cache
def _english_parts() -> Counter[str]:
    """Return how many parts of speech each word of lemminflect has (the SPECIALIST Lexicon of the NIH)."""
    package = find_spec("lemminflect")  # not imported, which would load spaCy where that is installed
    assert package is not None and package.origin is not None
    lexicon = Path(package.origin).parent / "resources" / "lemma_lu.csv.gz"
    return Counter(_WORDS.findall(gzip.decompress(lexicon.read_bytes()).decode()))


def without_article(text: str, language: str) -> str:
    """Return *text* without the English article that it begins with; empty if it begins with none.

    Args:
        text: text of a mention.
        language: BCP 47 tag of the KB, empty where it is not known; in other languages than English nothing
            is cut.
    """
    folded = " ".join(text.split())
    if _primary(language) not in ("", "en") or not folded.lower().startswith(_ARTICLES):
        return ""
    return folded.partition(" ")[2]


def is_function_word(token: str, folded: str, words: frozenset[str], cased: bool) -> bool:
    """Say whether *token* is one of the function words *words*.

    Args:
        token: token as the text has it.
        folded: token, folded.
        words: function words, as `FUNCTION_WORDS` has them.
        cased: flag for a spelling that tells something; if it does not, capitals hide no function word.
    """
    if cased:
        return token in words
    return folded in words and token not in _ALSO_NAMES


def is_function_word_as_name(token: str, row: bytes) -> bool:
    """Say whether a function word with a capital is a name that the KB writes exactly so: *Will*.

    So it is where the capital tells something, not where a sentence begins. *I* has one everywhere.

    Args:
        token: function word, as the text has it.
        row: row of `aliases` for it.
    """
    return token != "I" and not token.islower() and _has_spelling(row, token)


def plausible(spelled: str, row: bytes, words: frozenset[str]) -> bool:
    """Say whether a span that a text spells so can be a mention of the alias, by the KB's own spellings.

    A span in lower case, but for its first letter if it is of several words, is none where the KB has the
    surface with capitals only. Two words and more that are no function words are let pass: *machine learning*
    is *Machine Learning*, while *the embassy* is not *the Embassy*. Those of a compound count: *x-ray*
    is two.

    Args:
        spelled: text of the span.
        row: row of `aliases` for it.
        words: function words, which do not count among several.
    """
    if not spelled.islower():
        if not spelled[1:].islower() or len(spelled.split()) < 2:
            return True
        plain = spelled.replace(".", "")
        if any(spelling.surface.replace(".", "") == plain for spelling in codec.spellings(row)):
            return True
    return not in_capitals_only(row) or _has_several_words(spelled, words)


def may_be_initials(spelled: str, *, cased: bool) -> bool:
    """Say whether a span may be initials that the KB writes with full stops: *ED* and *E. D.*, not *Ed*.

    They have a capital inside (*PhD*). So have words where a text is in capitals throughout: there initials
    are of four letters and more, or without a vowel (*NASA*, *BBC*, not *ANN*).

    Args:
        spelled: text of the span.
        cased: flag for a spelling that tells something.
    """
    if "." in spelled or " " in spelled:
        return True
    if cased:
        return spelled.isupper() or spelled[1:] != spelled[1:].lower()
    return spelled.isupper() and (len(spelled) > _LONGEST_WORD or _VOWELS.isdisjoint(spelled))


def initials_agree(spelled: str, row: bytes) -> bool:
    """Say whether the KB has the initials of a span of several words as such: *U.S.* is not the word *us*.

    Args:
        spelled: text of the span.
        row: row of `aliases` for it.
    """
    words = spelled.split()
    if len(words) < 2:
        return True
    written = [spelling.surface.translate(_WITHOUT_GAPS) for spelling in codec.spellings(row)]
    return all(
        any(word.replace(".", "") in surface for surface in written)
        for word in words
        if word.count(".") > 1 and word.isupper()
    )


def is_doubtful(text: str, start: int, end: int, *, cased: bool, language: str) -> bool:
    """Say whether a span may be an ordinary word as well as the name that the KB writes with capitals.

    So it is for a single word in lower case, for one whose capital is that of a sentence, of a headline or of
    the language (German nouns, English months), and in a text without capitals or with nothing else.

    Args:
        text, start, end: text, and the span in code points.
        cased: flag for a text in which spelling tells something.
        language: BCP 47 tag of the KB; "" is read as English.
    """
    return may_be_word(text[start:end], language) and is_as_word(
        text, start, end, cased=cased, language=language
    )


def may_be_word(spelled: str, language: str) -> bool:
    """Say whether a span is a single word without digits, of a script with capitals: see `is_doubtful`."""
    if _has_several_words(spelled, function_words(language or "en")):
        return False
    return not any(sign.isalnum() and sign.lower() == sign.upper() for sign in spelled)


def is_as_word(text: str, start: int, end: int, *, cased: bool, language: str) -> bool:
    """Say whether a single word stands as an ordinary word does: see `is_doubtful`."""
    spelled, primary = text[start:end], _primary(language) or "en"
    if not cased or spelled.islower() or primary in _NOUNS_CAPITALISED:
        return True
    if primary == "en" and spelled in _ALWAYS_CAPITALISED:
        return True
    only_first = spelled[1:] == spelled[1:].lower()  # of *iPhone* and *IBM* no sentence makes a capital
    return (only_first and begins_sentence(text, start)) or (
        spelled.isupper() and _all_in_capitals(text, start, end)
    )


def _has_several_words(spelled: str, words: frozenset[str]) -> bool:
    """Say whether a span has two words or more that are no function words; those of a compound count."""
    if spelled.isalnum():
        return False
    return sum(word not in words for word in with_spaces(spelled.lower()).split()) > 1


def in_capitals_only(row: bytes) -> bool:
    """Say whether every spelling of an alias has a capital. Scripts without case have none."""
    spellings = codec.spellings(row)  # none: as it is folded
    return bool(spellings) and all(spelling.surface != spelling.surface.lower() for spelling in spellings)


def _has_spelling(row: bytes, spelled: str) -> bool:
    return any(spelling.surface == spelled for spelling in codec.spellings(row))


def position_hides_case(text: str, start: int, end: int) -> bool:
    """Say whether a span may owe its capitals to where it stands: first in a sentence, or among capitals."""
    return begins_sentence(text, start) or (text[start:end].isupper() and _all_in_capitals(text, start, end))


def begins_sentence(text: str, start: int) -> bool:
    """Say whether a sentence, or a line, begins at *start*, by the characters before it.

    After a full stop one does, unless the stop is that of an initial or of an abbreviation that stands before
    names (*Mr.*). A quotation after a comma or colon is a sentence.
    """
    if start > 1 and text[start - 1] == " " and text[start - 2].isalnum():
        return False  # as most words
    quoted, least = False, max(0, start - _FAR)
    while start > least:
        before = text[start - 1]
        if before not in _PASSED:
            break
        if before in _LINE_ENDS:
            return True
        quoted |= before in _OPENING
        start -= 1
    else:
        return True
    if before in _SENTENCE_ENDS:
        return True
    if before != ".":
        return quoted and before in ",:"
    first = start = start - 1
    least = max(0, start - _LONGEST_ABBREVIATION - 1)
    while first > least and text[first - 1].isalpha():
        first -= 1
    word = text[first:start]
    return len(word) != 1 and word not in BEFORE_NAMES


def _all_in_capitals(text: str, start: int, end: int) -> bool:
    """Say whether what stands around a word in its sentence is in capitals."""
    before, after = text[max(0, start - _WIDE) : start], text[end : end + _WIDE]
    for stop in ".!?\n":
        before, after = before[before.rfind(stop) + 1 :], after.partition(stop)[0]
    return (before + after).isupper()


def outside_addresses(text: str, mentions: "list[Mention]") -> "list[Mention]":
    """Return the *mentions* in a text that are no part of an address; *Amazon.com* may be one, as a whole."""
    spans = _addresses(text) if mentions else []
    if not spans:
        return mentions
    starts, result = [start for start, _ in spans], []
    for mention in mentions:
        at = bisect_right(starts, mention.end - 1) - 1  # the last that begins before the mention ends
        if at < 0 or spans[at][1] <= mention.start:
            result.append(mention)
            continue
        start, end = spans[at]
        end = start + len(text[start:end].rstrip(_BEHIND_ADDRESSES))
        if end <= mention.start or (mention.start <= start and end <= mention.end):
            result.append(mention)
    return result


@cache
def _address_pattern() -> re.Pattern[str]:
    """Return the pattern of addresses, which takes 15 ms to compile."""
    return re.compile(_ADDRESS, re.VERBOSE)


def _addresses(text: str) -> list[tuple[int, int]]:
    """Return the spans of the addresses in a text; what has no sign of one is not looked at further."""
    signs: list[int] = []
    for sign, joint in _JOINTS:
        if sign in text and joint.search(text):  # which most texts have none of
            signs += [match.start() for match in joint.finditer(text)]
    if not signs:
        return []
    pattern = _address_pattern()
    spans: list[tuple[int, int]] = []
    end = 0
    for at in sorted(signs):
        if at < end:
            continue
        start = at
        while start > end and not text[start - 1].isspace():
            start -= 1
        end = at
        while end < len(text) and not text[end].isspace():
            end += 1
        # White space may be in the folders of Windows.
        most = min(len(text), end + _FOLDER) if text[at] == "\\" else end
        spans += [match.span() for match in pattern.finditer(text, start, most)]
        end = max(end, spans[-1][1]) if spans else end
    return spans
