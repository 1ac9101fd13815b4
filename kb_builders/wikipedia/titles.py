"""Titles as MediaWiki has them: one page, however a link to it is written.

`Dog`, `dog`, `_dog_`, `:dog`, `dog#Breeds`, `%64og` and `dog&#32;` all lead to the page `Dog`. A title that
begins with the name of a namespace or of another wiki leads to no article.
"""

import html
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import unquote

from kb_builders.wikipedia.languages import CANONICAL, INTERWIKI, WIKIPEDIAS, namespace_aliases

__all__ = ["CATEGORY", "Site", "Titles", "decode_text", "is_word", "single_spaced", "without_bracket"]

CATEGORY: Final = "\0"
"""What `Titles.target` puts before the name of a category."""

MAX_TITLE: Final = 255  # bytes, MediaWiki's own limit

_SPACES: Final = re.compile(r"[ _\t\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE: Final = re.compile("[\u200e\u200f\u202a-\u202e]+")
# Anything but this is the title as it stands, up to its first letter.
_TO_BE_LOOKED_AT: Final = re.compile(
    r"[\x00-\x1f\x7f_#%&:~\xa0\ufffd\u1680\u180e\u2000-\u200a\u200e\u200f\u2028-\u202f\u205f\u3000]"
    r"|^[ ./]|[ .]$|  |/\.|''"
).search
_ILLEGAL: Final = re.compile(
    r"[\x00-\x1f\x7f\ufffd<>\[\]{}|]|''|%[0-9A-Fa-f]{2}|~~~|^\.{1,2}(?:/|$)|/\.{1,2}(?:/|$)"
).search
_PROTOCOL: Final = re.compile(
    r"(?://|(?:https?|ftps?|sftp|ircs?|gopher|telnet|nntp|worldwind|svn|git|mms)://|(?:mailto|news|sms|tel|bitcoin):)",
    re.IGNORECASE,
).match
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BRACKET: Final = re.compile(r"(.*[^\s(（]) ?(?:\([^()]+\)|（[^（）]+）)").fullmatch


class Site(NamedTuple):
    """What the head of a dump says of its wiki.

    Attributes:
        language: BCP 47 tag; empty if it is not told.
        name: name of the database: `enwiki`.
        url: address of the main page.
        first_letter: whether the first letter of a title is a capital, however it is written.
        namespaces: numbers and names.
    """

    language: str = ""
    name: str = ""
    url: str = ""
    first_letter: bool = True
    namespaces: tuple[tuple[int, str], ...] = ()


class Titles:
    """The titles of one wiki."""

    def __init__(self, site: Site) -> None:
        self._first_letter = site.first_letter
        self._dotted = site.language.lower() in ("tr", "az", "kaa")
        self._namespaces = _namespaces(site)

    def target(self, written: str) -> str:
        """Return the page that a link leads to, `CATEGORY` and the name of a category, or nothing."""
        if (
            0 < len(written) < 64
            and not _TO_BE_LOOKED_AT(written)
            and (written.isascii() or unicodedata.is_normalized("NFC", written))
        ):
            return self.capital(written)
        if _PROTOCOL(written):
            return ""
        title = single_spaced(decode_text(written, percent=True))
        colon = title.startswith(":")
        if colon:
            title = title[1:].lstrip(" ")
        number = 0
        if ":" in title:
            prefix, _, local = title.partition(":")
            prefix = prefix.strip(" ").lower()
            if prefix in self._namespaces:
                number, title = self._namespaces[prefix], local.lstrip(" ")
            elif prefix in INTERWIKI:
                return ""
        title = title.partition("#")[0].rstrip(" ")
        if not title or title[0] == ":" or _ILLEGAL(title) or len(title.encode()) > MAX_TITLE:
            return ""
        if number == 0:
            return self.capital(title)
        return f"{CATEGORY}{self.capital(title)}" if number == 14 and not colon else ""

    def capital(self, title: str) -> str:
        """Return *title* with the first letter that the wiki gives it."""
        if not self._first_letter:
            return title
        first = title[0]
        if first.isupper() or "\u10d0" <= first <= "\u10ff":  # Georgian titles have no capitals
            return title
        large = "İ" if self._dotted and first == "i" else first.upper()
        return large + title[1:] if len(large) == 1 else title

    def is_hidden(self, written: str) -> bool:
        """Return whether a link has no text: a file, a category, a page in another language."""
        prefix, colon, _ = written.partition(":")
        prefix = single_spaced(decode_text(prefix)).lower() if colon else ""
        return prefix in WIKIPEDIAS or self._namespaces.get(prefix, 0) in (6, 14)

    def namespace(self, title: str) -> int:
        """Return the number of the namespace of a whole title."""
        prefix, colon, _ = title.partition(":")
        return self._namespaces.get(single_spaced(prefix).lower(), 0) if colon else 0


def _namespaces(site: Site) -> Mapping[str, int]:
    """Return the numbers of all names of namespaces but the main one, in lower case."""
    names = {**CANONICAL, **namespace_aliases(site.language)}
    names.update((single_spaced(name).lower(), number) for number, name in site.namespaces if name)
    return {name: number for name, number in names.items() if number != 0}


def single_spaced(title: str) -> str:
    """Return *title* without what cannot be seen, its spaces and underscores as single spaces."""
    if not title.isascii():
        title = unicodedata.normalize("NFC", _INVISIBLE.sub("", title))
    return _SPACES.sub(" ", title).strip(" ")


def decode_text(text: str, *, percent: bool = False) -> str:
    """Return *text* with its character references, and percent codes if asked to, as characters."""
    if percent and "%" in text:
        with suppress(UnicodeDecodeError):  # then it is no title: its codes are found
            text = unquote(text, errors="strict")
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    return html.unescape(match[0])


def is_word(surface: str) -> bool:
    """Return whether there is more than marks in a surface: a letter, a digit, or a symbol as `€` and `★`."""
    return any(
        character.isalnum() or (character > "\x7f" and unicodedata.category(character) in ("Sc", "Sm", "So"))
        for character in surface
    )


def without_bracket(title: str) -> str:
    """Return `Mercury` of `Mercury (planet)`, and nothing where there is no bracket at the end."""
    match = _BRACKET(title) if title[-1] in ")）" else None
    return match[1] if match else ""
