r"""Links and plain text out of wikitext, without a parse of the whole: one expression finds every link.

A link within the text of another is what MediaWiki makes a link of; the outer one is either a file with a
caption or no link at all. So only innermost links are looked for, wherever they stand: in tables, notes,
captions, arguments of templates. What MediaWiki does not read as wikitext is cut out first.

Characters below the space cannot stand in XML, so they are free for marks of our own:

    \x01           something was cut out here: ends the letters behind a link, is not shown
    \x02 … \x11   characters that `<nowiki>` keeps from being markup
    \x12 \x13      words that are not read: a formula, a template that is in no table; a pronunciation
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

from kb_builders.wikipedia.languages import trail
from kb_builders.wikipedia.templates import CUT, HOLE, SOUND, Templates, hide, show
from kb_builders.wikipedia.titles import CATEGORY, Site, Titles, decode_text, is_word

__all__ = ["Links", "Raw", "cut", "plain", "shown_text", "without_references"]

MAX_SURFACE: Final = 200
"""Characters of an alias: what is longer is a sentence with a link on it."""

_MAX_TEXT: Final = 2_000  # characters of wikitext that a link may have to be read as an alias
_REMEMBERED: Final = 100_000  # titles, and texts, that have been looked at

# Their content is no wikitext. `gallery` and `imagemap` are not among them: links in them are links.
_OPAQUE: Final = (
    "nowiki|pre|source|syntaxhighlight|math|chem|ce|hiero|score|timeline|graph|templatedata|templatestyles|"
    "inputbox|categorytree|mapframe|maplink|includeonly"
)
_FORMULAS: Final = frozenset(["math", "chem", "ce", "hiero"])  # these are part of a sentence
_OPENING: Final = re.compile(rf"<(?![/rb])(?:!--|({_OPAQUE})(?:[\s/][^<>]*)?>)", re.IGNORECASE)
_CLOSING: Final = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in [*_OPAQUE.split("|"), "ref"]}

_TITLE: Final = r"[^\[\]|{}<>\n]{1,1000}"
# Single brackets may stand in it; `[[a|[b]]]` is `[b]`, `[[a|[b]]` is `[b`.
_TEXT: Final = r"[^\[\]]*+(?:(?:\[[^\[\]]*+\](?=\]\]|[^\]])|\[(?!\[)|\](?!\]))[^\[\]]*+)*+"
# Titles that are keys as they stand: a first letter that stays, then letters that are NFC in any order,
# single spaces, none of the marks that mean something in a title.
_LETTERS: Final = 'A-Za-z0-9,.()!?*+$;@="–À-ÖØ-öø-ſЀ-џ\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff가-힣-'
_FIRST: Final = 'A-Z0-9("À-ÖØ-ÞЀ-Я\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff가-힣'
_KEY: Final = rf"[{_FIRST}][{_LETTERS}]*+(?: [{_LETTERS}]++)*+(?<!\.)"
# Texts that are aliases as they stand.
_PLAIN: Final = r"[^\[\]<{}&'\x00-\x20\x7f\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000]++"
_ALIAS: Final = rf"{_PLAIN}(?: {_PLAIN})*+"
_BAR: Final = r"(?:\||\{\{!\}\})"  # the template is one too, where a bar would end an argument
_PIPE_TRICK: Final = re.compile(r"(?:[^:]*:(?! ))?(.+?)(?: *\([^()]*\)|, .*)?").fullmatch
_MEANS_SOMETHING: Final = re.compile(
    r"[\x00-\x20\x7f\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000:#%&_|](?<! )|  |^ | $"
).search

_REFERENCE: Final = re.compile(r"<ref(?:[\s/][^<>]*)?>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_LINE_BREAK: Final = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_QUOTES: Final = re.compile(r"''+")
_OUTSIDE: Final = re.compile(r"\[(?:[a-z]+:)?//[^\s\[\]]++(?:\s++([^\[\]]*))?\]", re.IGNORECASE)
_VARIANTS: Final = re.compile(r"-\{((?:[^{}-]|-(?!\{)|\{(?!-))*)\}-")
_INVISIBLE: Final = re.compile("[\u200e\u200f\u202a-\u202e]+")
_TO_BE_LOOKED_AT: Final = re.compile(
    r"[\x00-\x1f\x7f\xa0<{}\[\]&\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000]|''|  |^ | $"
).search
_HAS_HIDDEN: Final = re.compile(r"[\x02-\x08\x0b-\x11]").search
_HAS_MARKUP: Final = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}").search


Raw = tuple[str, str, str, str, str]
"""A link as the expression splits it: a title that is a key, or another title; a text that is an alias, or
another text; the letters behind it. Empty is what is not there."""


class Links:
    """The links of the pages of one wiki.

    Most titles are keys as they stand, and most texts are aliases: the expression that finds the links
    knows them. The rest is looked at once and remembered.
    """

    def __init__(self, site: Site) -> None:
        titles = Titles(site)
        # Of `[[Mercury (planet)|]]` the title is caught with its bar.
        self._targets = _Memory(lambda written: titles.target(written.removesuffix("|")))
        self.templates = Templates(site.language)
        self._surfaces = _Memory(lambda written: _surface(written, self.templates))
        self._surfaces_of_titles = _Memory(_surface_of_title)
        letters = trail(site.language)
        after = f"([{letters}]*)" if letters else "()"
        self._pattern = re.compile(
            rf"\[\[(?:({_KEY})(?=\|[^\]]|\]\])|({_TITLE}(?:\|(?=\]\]))?))"
            rf"(?:{_BAR}(?:({_ALIAS})(?=\]\])|({_TEXT})))?\]\]{after}"
        )
        self._find = self._pattern.findall

    def of(self, text: str) -> list[Raw]:
        """Return the links of a page that has been `cut`, in order, each as often as it is there."""
        return self._find(text)

    def target(self, written: str) -> str:
        """Return what `Titles.target` does."""
        return self._targets[written]

    def targets(self, links: Sequence[Raw]) -> list[str]:
        """Return what each link leads to, as `Titles.target` does."""
        targets = self._targets
        return [link[0] or targets[link[1]] for link in links]

    def aliases(self, counts: Mapping[Raw, int]) -> dict[tuple[str, str], int]:
        """Return how often each alias led to each page, given how often each link was seen."""
        by_pair: dict[tuple[str, str], int] = {}
        for link, count in counts.items():
            target = link[0] or self._targets[link[1]]
            if not link[0] and (not target or target[0] == CATEGORY):
                continue
            surface = self.surface(link)
            if len(surface) <= MAX_SURFACE and (surface[:1].isalnum() or is_word(surface)):
                pair = surface, target
                by_pair[pair] = by_pair.get(pair, 0) + count
        return by_pair

    def surface(self, link: Raw) -> str:
        """Return what is read where a link stands, with letters behind it; nothing if that is not known."""
        key, title, alias, text, after = link
        if alias:
            surface = alias
        elif text:
            surface = self._surfaces[text] if len(text) <= _MAX_TEXT else ""
        else:
            surface = key or self._surfaces_of_titles[title]
        return surface + after if after and surface else surface

    def split(self, text: str) -> Iterator[tuple[str, Raw | None]]:
        """Yield a text as what stands before each of its links, and the link; at the end without one."""
        at = 0
        for link in self._pattern.finditer(text):
            yield text[at : link.start()], cast(Raw, link.groups(""))
            at = link.end()
        yield text[at:], None


class _Memory(dict[str, str]):
    """What a function of a text gives, remembered."""

    def __init__(self, function: Callable[[str], str]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        value = self[text] = self._function(text)
        return value


def _surface(text: str, templates: Templates) -> str:
    """Return the text of a link as an alias; nothing if that cannot be told."""
    if not _TO_BE_LOOKED_AT(text):
        return text
    surface = plain(text, templates)
    return "" if HOLE in surface or SOUND in surface or _HAS_MARKUP(surface) else surface


def _surface_of_title(title: str) -> str:
    """Return what is read where a title stands as a link: its page, without the section.

    Of a title with a bar behind it (`[[Mercury (planet)|]]`, the pipe trick) the last bracket is left out, or
    what follows a comma, as MediaWiki does when a page is saved (but not in notes).
    """
    if not _MEANS_SOMETHING(title):
        return title
    page = decode_text(title.removeprefix(":"), percent=True).partition("#")[0]
    if page.endswith("|") and (shown_text := _PIPE_TRICK(page[:-1].strip())):
        page = shown_text[1]
    return _single_spaced(page.replace("_", " ").replace("|", ""))


def cut(text: str) -> str:
    """Return wikitext without comments and without what is no wikitext, as code and formulas."""
    opening = _OPENING.search(text)
    if opening is None:
        return text
    pieces: list[str] = []
    at = 0
    unclosed: set[str] = set()
    while opening is not None:
        start, end = opening.span()
        if opening[1] is None:  # a comment: one that does not end goes on to the end of the page
            pieces.append(text[at:start])
            stop = text.find("-->", end)
            at = end = stop + 3 if stop >= 0 else len(text)
        elif opening[0].endswith("/>"):
            pieces += (text[at:start], CUT)
            at = end
        elif (name := opening[1].lower()) not in unclosed:
            closing = _CLOSING[name].search(text, end)
            if closing is None:
                unclosed.add(name)  # then it is text, and so are those that follow
            else:
                literal = text[end : closing.start()].translate(hide) if name == "nowiki" else ""
                pieces += (text[at:start], HOLE if name in _FORMULAS else CUT, literal, CUT)
                at = end = closing.end()
        opening = _OPENING.search(text, end)
    pieces.append(text[at:])
    return "".join(pieces)


def without_references(text: str) -> str:
    """Return wikitext without notes."""
    pieces: list[str] = []
    at = 0
    while (opening := _REFERENCE.search(text, at)) is not None:
        pieces.append(text[at : opening.start()])
        at = opening.end()
        if not opening[0].endswith("/>"):
            closing = _CLOSING["ref"].search(text, at)
            if closing is None:
                break
            at = closing.end()
    pieces.append(text[at:])
    return "".join(pieces)


def plain(text: str, templates: Templates) -> str:
    """Return the text that is read where *text*, without wikilinks, stands in a page that has been `cut`.

    Words that are not known are `HOLE`, and `SOUND`.
    """
    if "<" in text:
        text = _LINE_BREAK.sub(" ", without_references(text))
    text = templates.read(text)
    if "<" in text:
        text = _TAG.sub(CUT, text)  # or the marks of italics on both sides would be apostrophes
    if "''" in text:
        text = _QUOTES.sub(_apostrophes, text)
    if "//" in text:
        text = _OUTSIDE.sub(r"\1", text)
    if "-{" in text:
        text = _VARIANTS.sub(_first_variant, text)
    if CUT in text:
        text = text.translate(show) if _HAS_HIDDEN(text) else text.replace(CUT, "")
    return _single_spaced(decode_text(text))


def shown_text(text: str) -> str:
    """Return *text* as it is read; it has no markup but marks of our own and character references."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if CUT in text:
        text = text.translate(show).replace(SOUND, "")
    if HOLE in text:
        text = text.replace(HOLE, "")
    return decode_text(text)


def _single_spaced(text: str) -> str:
    return " ".join((text if text.isascii() else _INVISIBLE.sub("", text)).split())


def _apostrophes(match: re.Match[str]) -> str:
    """Two, three and five are italics and bold; what is more stands for itself."""
    number = len(match[0])
    return "'" if number == 4 else "'" * max(0, number - 5)


def _first_variant(match: re.Match[str]) -> str:
    """Return the first of the spellings that a page in several scripts offers: `-{zh-hans:…; zh-hant:…}-`."""
    flags, bar, text = match[1].partition("|")
    if not bar or ":" in flags:
        text = match[1]
    elif "T" in flags or "H" in flags or flags == "-":
        return CUT  # a rule for the page, or its title
    first = text.partition(";")[0]
    name, colon, spelling = first.partition(":")
    return spelling.strip() if colon and name.strip().lower().startswith("zh") else text
