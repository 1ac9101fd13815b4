"""A second reader of dumps, slow and plain: ElementTree for the XML, mwparserfromhell for the wikitext.

It shares no code with the builder. What it does beside walking the tree of mwparserfromhell:

- `gallery` and `imagemap` are opaque to mwparserfromhell, and hold links: their content is parsed again;
- a link that holds another link is none, unless it is a file: MediaWiki reads the inner one;
- the letters behind a link belong to its text.
"""

import bz2
import copy
import html
import re
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.etree.ElementTree import iterparse

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, ExternalLink, Heading, Tag, Template, Text, Wikilink

NAMESPACES = {
    "media", "special", "talk", "user", "user talk", "wikipedia", "wikipedia talk", "wp", "project", "file",
    "file talk", "image", "mediawiki", "template", "template talk", "help", "category", "category talk",
    "portal", "book", "draft", "module", "topic", "timedtext", "education program", "gadget",
}  # fmt: skip
DISAMBIGUATION = {"disambiguation", "disambig", "disamb", "dab", "hndis", "geodis"}
FILES = {"file", "image"}
OTHER_WIKIS = set(
    "wikt wiktionary commons s wikisource q wikiquote b n v m meta species w doi hdl".split()
) | set("ar be-x-old bg da de en es fi fr he it ja nl no pl pt ru simple sv te th zh".split())


@dataclass
class Count:
    """What a dump holds."""

    pages: set[str] = field(default_factory=set)
    ambiguous: set[str] = field(default_factory=set)
    ids: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    links: Counter[tuple[str, str]] = field(default_factory=Counter)  # (page, target), each once
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)  # (alias, target), as often as seen
    categories: dict[str, list[str]] = field(default_factory=dict)


def count(path):
    """Count what is in the articles of a dump."""
    found = Count()
    with bz2.open(path) as file:
        for _, element in iterparse(file):
            if element.tag.rpartition("}")[2] == "page":
                values = {child.tag.rpartition("}")[2]: child for child in element.iter()}
                ids = [child.text for child in element if child.tag.endswith("}id")]
                if values["ns"].text == "0":
                    read(found, values["title"].text, int(ids[0]), values)
                element.clear()
    return found


def read(found, title, number, values):
    """Count one page."""
    found.ids[title] = number
    if "redirect" in values:
        found.redirects[title] = values["redirect"].get("title")
        return
    found.pages.add(title)
    found.categories[title] = []
    code = mwparserfromhell.parse(values["text"].text or "")
    ambiguous = any(str(node.name).strip().lower() in DISAMBIGUATION for node in code.filter_templates())
    if ambiguous:
        found.ambiguous.add(title)
    for written, text, after in links(code):
        name, inside = target(written)
        if name is None:
            if inside is not None and inside not in found.categories[title]:
                found.categories[title].append(inside)
            continue
        if name == title:
            continue
        found.links[title, name] = 1
        alias = shown(written) if text is None else visible(text)
        if alias and not ambiguous:
            alias += after
            if len(alias) <= 200:
                found.pairs[alias, name] += 1


def links(code):
    """Yield the title, the text and the letters behind each wikilink of a parsed text."""
    nodes = [node for node in code.nodes if not isinstance(node, Comment)]
    for number, node in enumerate(nodes):
        if isinstance(node, Wikilink):
            inner = list(links(node.text)) if node.text is not None else []
            prefix = str(node.title).strip().partition(":")[0].lower()
            if not inner and prefix not in FILES:
                behind = nodes[number + 1] if number + 1 < len(nodes) else None
                after = re.match("[a-z]*", str(behind))[0] if isinstance(behind, Text) else ""
                yield str(node.title), node.text, after
            yield from inner
        elif isinstance(node, Template):
            for argument in node.params:
                yield from links(argument.name)
                yield from links(argument.value)
        elif isinstance(node, Tag) and node.contents is not None:
            if str(node.tag).lower() in ("gallery", "imagemap"):
                yield from links(mwparserfromhell.parse(str(node.contents)))
            else:
                yield from links(node.contents)
        elif isinstance(node, ExternalLink | Heading) and node.title is not None:
            yield from links(node.title)
        elif isinstance(node, Argument):
            yield from links(node.name)
            if node.default is not None:
                yield from links(node.default)


def target(written):
    """Return the title that a link leads to, or None and the category that it is, if it is one."""
    text = unquote(html.unescape(re.sub("<!--.*?-->", "", written, flags=re.DOTALL)))
    text = " ".join(text.replace("_", " ").split())
    colon = text.startswith(":")
    text = text.removeprefix(":").strip()
    prefix, found, rest = text.partition(":")
    if found and prefix.strip().lower() in NAMESPACES | OTHER_WIKIS:
        if prefix.strip().lower() == "category" and not colon:
            return None, capital(rest.partition("#")[0].strip())
        return None, None
    text = text.partition("#")[0].strip()
    if not text or re.search(r"[<>\[\]{}|]", text) or re.match("https?://|//", text):
        return None, None
    return capital(text), None


def capital(text):
    """Return a title with a large first letter."""
    large = text[:1].upper()
    return large + text[1:] if len(large) == 1 else text  # `ß` has no large letter of its own


def shown(written):
    """Return what is read where a link has no text of its own."""
    text = unquote(html.unescape(written.removeprefix(":"))).partition("#")[0]
    return " ".join(text.replace("_", " ").split())


def visible(text):
    """Return a text without markup, templates and notes."""
    code = copy.deepcopy(text)
    for tag in code.filter_tags(matches=lambda node: str(node.tag).lower() == "ref"):
        code.remove(tag)
    return " ".join(str(code.strip_code()).split())
