"""The first paragraph of a page, and the items of a disambiguation page, out of wikitext.

The wikitext has been `cut`.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from kb_builders.wikipedia.clauses import without_holes
from kb_builders.wikipedia.templates import CUT, HOLE, SOUND, Templates
from kb_builders.wikipedia.wikitext import plain, without_references

__all__ = ["first_paragraph", "items", "without_tables"]

MAX_PARAGRAPH: Final = 1_000
"""Characters of a first paragraph: what is longer is cut behind a sentence, or a word."""

_HEADS: Final = (6_000, 30_000, 150_000)  # characters that are looked at until there is a paragraph

_TABLE: Final = re.compile(r"^[ :]*(?:(\{\|)|\|\})", re.MULTILINE)
_BRACKETS: Final = re.compile(r"\[\[|\]\]")
_LINK: Final = re.compile(r"\[\[([^\[\]|\n]*)(?:\|([^\[\]]*))?\]\]")
_END: Final = re.compile(rf"\n(?=[ \t{CUT}{HOLE}{SOUND}]*(?:\n|\Z)|[*#:;=|!{{]|----)|\Z")
_NO_PARAGRAPH: Final = re.compile(r"[*#:;|!{}]|__[A-Z]+__|----")
_MARKS: Final = ",;:，；：、،؛"
# Marks that are left where something was between them, and what is put for them.
_STRAY: Final = (
    (re.compile(r" {2,}"), " "),
    (re.compile(rf"\([\s{_MARKS}–—-]*\)|（[\s{_MARKS}–—－-]*）"), ""),
    (re.compile(r" ?(?:“ ?”|„ ?“|« ?»|\"\"|「」|『』|《》)"), ""),
    (re.compile(rf"([(（])[\s{_MARKS}]+"), r"\1"),
    (re.compile(r"(?<![\s,;、，；،؛])[\s,;、，；،؛]++([)）])"), r"\1"),
    (re.compile(rf"([{_MARKS}])(?: ?[,;，；、،؛])++"), r"\1"),
    (re.compile(rf"(?<![ {_MARKS}]) ?[{_MARKS}][ {_MARKS}]*+(?=[.!?](?:\s|$)|[。！？।])"), ""),
    (re.compile(rf"^[\s{_MARKS}]+"), ""),
    (re.compile(r" ([,;:،؛)]|\.(?!\w))"), r"\1"),
)
_HAS_STRAY: Final = re.compile(
    rf"^[\s{_MARKS}]| [ ,;:،؛)）.]|[{_MARKS}] ?[{_MARKS}.!?。！？।)）]|[(（][\s{_MARKS}–—－)）-]|"
    r"[“„«\"「『《] ?[”“»\"」』》]"
).search
_SENTENCE: Final = re.compile(r"[.!?](?=\s)|[。！？]")
_NOTHING: Final = f" \t\n\r{CUT}{HOLE}{SOUND}"
_ITEM: Final = re.compile(r"^[*#][*#:]*(.*)", re.MULTILINE)


def first_paragraph(
    text: str, is_hidden: Callable[[str], bool], templates: Templates, title: str = ""
) -> str:
    """Return the first paragraph before the first heading as plain text; nothing if there is none.

    Args:
        text: the page.
        is_hidden: function that says of the title of a link whether nothing is read where it stands: a file,
            a category.
        templates: templates of the wiki.
        title: title of the page, read where the paragraph begins with a template that cannot be read.
    """
    for size in _HEADS:
        paragraph = _paragraph(text[:size], is_hidden, templates, title, is_all=size >= len(text))
        if paragraph is not None:
            return _shorten(paragraph)
    return ""


def items(text: str) -> Iterator[str]:
    """Yield the items of the lists of a page, each as wikitext."""
    return (item[1] for item in _ITEM.finditer(text))


def _paragraph(
    head: str, is_hidden: Callable[[str], bool], templates: Templates, title: str, *, is_all: bool
) -> str | None:
    """Return the first paragraph of *head*; None if it may lie behind, or may be cut off."""
    if "<" in head:
        head = without_references(head)
    head = templates.read(head)
    unclosed = head.find("{{")
    if "{|" in head:
        head = without_tables(head)
    at = 0
    while at < len(head):
        if head[at] in _NOTHING:
            at += 1
            continue
        if not is_all and 0 <= unclosed <= at:
            return None
        if head[at] == "=":
            return ""
        if head.startswith("[[", at) and is_hidden(head[at + 2 : at + 60].partition("|")[0]):
            at = _end_of_brackets(head, at)
            continue
        if _NO_PARAGRAPH.match(head, at):
            stop = head.find("\n", at)
            at = stop if stop >= 0 else len(head)
            continue
        end = _END.search(head, at)
        stop = end.start() if end is not None else len(head)
        if not is_all and stop >= len(head) - 1 and stop - at < 3 * MAX_PARAGRAPH:
            return None
        start = at  # a template that stands before it in the same line may be part of it
        while start and head[start - 1] in f" {CUT}{HOLE}{SOUND}":
            start -= 1
        read = _read(head[start : min(stop, at + 8 * MAX_PARAGRAPH)], is_hidden, templates)
        paragraph = _tidy(without_holes(read, templates.language, title))
        if any(map(str.isalnum, paragraph)):
            return paragraph
        at = max(stop, at + 1)
    return "" if is_all else None


def _read(text: str, is_hidden: Callable[[str], bool], templates: Templates) -> str:
    def shown_text(link: re.Match[str]) -> str:
        """Return what a reader sees of a link: its label, else its title."""
        title, label = link[1], link[2]
        if is_hidden(title):
            return ""
        return f"{CUT}{label if label is not None else title.removeprefix(':')}{CUT}"

    for _ in range(5):  # a link in a caption of a link …
        shorter = _LINK.sub(shown_text, text)
        if shorter == text:
            break
        text = shorter
    text = plain(text, templates)
    for mark in ("[[", "]]", "{{", "}}"):
        text = text.replace(mark, "")
    return text


def _tidy(text: str) -> str:
    """Return text without empty brackets and stray marks."""
    if _HAS_STRAY(text):
        for stray, replacement in _STRAY:
            text = stray.sub(replacement, text)
    return text.strip()


def without_tables(head: str) -> str:
    """Return wikitext without tables; one that is not closed goes on to the end."""
    pieces = []
    at = depth = 0
    for match in _TABLE.finditer(head):
        if match[1]:
            if not depth:
                pieces.append(head[at : match.start()])
            depth += 1
        elif depth:
            depth -= 1
            at = match.end()
    if depth:
        return "".join(pieces)
    return "".join([*pieces, head[at:]])


def _end_of_brackets(head: str, at: int) -> int:
    """Return where the link that begins at *at* ends, with the links in its caption."""
    depth = 0
    for match in _BRACKETS.finditer(head, at):
        depth += 1 if match[0] == "[[" else -1
        if not depth:
            return match.end()
    line = head.find("\n", at)
    return line if line >= 0 else len(head)


def _shorten(text: str) -> str:
    if len(text) <= MAX_PARAGRAPH:
        return text
    head = text[:MAX_PARAGRAPH]
    ends = [match.end() for match in _SENTENCE.finditer(head) if match.end() > MAX_PARAGRAPH // 4]
    if ends:
        return head[: ends[-1]]
    words, space, _ = head[:-1].rpartition(" ")
    return f"{words if space else head[:-1]}…"
