"""The prose of a page with its links, out of wikitext: where surfaces are counted.

Left out are tables, notes, headings, galleries, files with their captions, categories, links to other
languages, and templates whose words are not known. The wikitext has been `cut`.
"""

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Final

from kb_builders.wikipedia.lead import without_tables
from kb_builders.wikipedia.templates import CUT, HOLE, SOUND
from kb_builders.wikipedia.titles import CATEGORY, without_bracket
from kb_builders.wikipedia.wikitext import Links, shown_text, without_references
from kgkit.building import Prose

__all__ = ["prose"]

_PARAGRAPH: Final = "\n\n"

_GALLERY: Final = re.compile(r"<(gallery|imagemap)\b[^<>]{0,1000}>.{0,50000}?</\1\s{0,9}>", re.I | re.S)
_BREAK: Final = re.compile(r"<(?:br|p|/?div|/?center|/?blockquote)\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_HEADING: Final = re.compile(rf"^=[^\n]*=[ \t{CUT}{HOLE}{SOUND}]*$|^----[^\n]*$", re.MULTILINE)
_QUOTES: Final = re.compile(r"''+")
_OUTSIDE: Final = re.compile(r"\[(?:[a-z]+:)?//[^\s\[\]]++(?:[ \t]++([^\[\]\n]*))?\]", re.IGNORECASE)
_ITEM: Final = re.compile(r"\n(?=[*#:;])")
_NAMESPACED: Final = re.compile(r"\[\[(\s*[^\s\[\]|:\n][^\[\]|:\n]{0,60}:[^\[\]|\n]{0,300})")
_BRACKETS: Final = re.compile(r"\[\[|\]\]")
_MOST_BRACKETS: Final = 200  # in a caption


def prose(text: str, links: Links, is_hidden: Callable[[str], bool], title: str) -> Prose:
    """Return the prose of a page with its links, those to itself left out.

    Args:
        text: text of the page.
        links: links of the wiki.
        is_hidden: function that says of the title of a link whether nothing is read where it stands: a file,
            a category.
        title: title of the page.
    """
    if "<" in text:
        text = _BREAK.sub(" ", without_references(_GALLERY.sub("", text)))
    text = links.templates.read(text)
    if "{|" in text:
        text = without_tables(text)
    text = _without_hidden(_HEADING.sub(_PARAGRAPH, text), is_hidden)
    if "<" in text:
        text = _TAG.sub("", text)
    text = _ITEM.sub(_PARAGRAPH, _QUOTES.sub("", text))
    if "//" in text:
        text = _OUTSIDE.sub(r"\1", text)
    pieces: list[str] = []
    linked: list[int] = []  # the places of links among the pieces
    for before, link in links.split(text):
        pieces.append(shown_text(before))
        if link is None:
            break
        target = link[0] or links.target(link[1])
        surface = links.surface(link)
        if surface and target and target[0] != CATEGORY and target != title:
            linked.append(len(pieces))
        pieces.append(surface)
    ends = [*accumulate(map(len, pieces))]
    spans = [(ends[index] - len(pieces[index]), ends[index]) for index in linked]
    return Prose("".join(pieces), spans, without_bracket(title) or title)


def _without_hidden(text: str, is_hidden: Callable[[str], bool]) -> str:
    """Return wikitext without files and their captions, categories, links to other languages."""
    pieces: list[str] = []
    at = 0
    for match in _NAMESPACED.finditer(text):
        if match.start() >= at and is_hidden(match[1]):
            pieces.append(text[at : match.start()])
            at = _end(text, match.start())
    pieces.append(text[at:])
    return "".join(pieces)


def _end(text: str, start: int) -> int:
    """Return where the link that begins at *start* ends, with the links in its caption; or its line."""
    depth = 0
    for number, match in enumerate(_BRACKETS.finditer(text, start)):
        depth += 1 if match[0] == "[[" else -1
        if not depth:
            return match.end()
        if number >= _MOST_BRACKETS:
            break
    line = text.find("\n", start)
    return line if line >= 0 else len(text)
