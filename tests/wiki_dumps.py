"""Dumps of MediaWiki, written by hand: a page a tuple, the rest as the real ones have it."""

import bz2
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from kb_builders.wikipedia import WikipediaBuilder
from kb_builders.wikipedia.titles import CATEGORY, Site
from kb_builders.wikipedia.wikitext import Links, cut
from kgkit.building import Alias, Aliases, Attribute, Entity, Redirect, Step, Triples

ENGLISH = {0: "", 1: "Talk", 4: "Wikipedia", 6: "File", 10: "Template", 14: "Category", 100: "Portal"}
GERMAN = {0: "", 1: "Diskussion", 4: "Wikipedia", 6: "Datei", 10: "Vorlage", 14: "Kategorie", 100: "Portal"}
CHINESE = {0: "", 1: "Talk", 4: "Wikipedia", 6: "File", 10: "Template", 14: "Category", 100: "Portal"}
NAMESPACES = {"en": ENGLISH, "de": GERMAN, "zh": CHINESE}

FOOT = "</mediawiki>\n"


class P(NamedTuple):
    """A page; `redirect` is written as the element that MediaWiki writes."""

    title: str
    text: str = ""
    ns: int | None = 0
    redirect: str | None = None


def head(language: str = "en", case: str = "first-letter", name: str | None = None) -> str:
    """Return the beginning of a dump."""
    names = "".join(
        f'      <namespace key="{number}" case="{case}"' + (f">{text}</namespace>\n" if text else " />\n")
        for number, text in NAMESPACES.get(language, ENGLISH).items()
    )
    return f"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="{language}">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{name or language + "wiki"}</dbname>
    <base>https://{language}.wikipedia.org/wiki/Main_Page</base>
    <generator>MediaWiki 1.45.0</generator>
    <case>{case}</case>
    <namespaces>
{names}    </namespaces>
  </siteinfo>
"""


def page(number: int, title: str, text: str = "", ns: int | None = 0, redirect: str | None = None) -> str:
    """Return one page; its number is its id."""
    space = f"    <ns>{ns}</ns>\n" if ns is not None else ""
    leads = f"    <redirect title={quoteattr(redirect)} />\n" if redirect is not None else ""
    return f"""  <page>
    <title>{escape(title)}</title>
{space}    <id>{number}</id>
{leads}    <revision>
      <id>{1000 + number}</id>
      <contributor><username>Someone</username><id>7</id></contributor>
      <comment>[[Not a link]]</comment>
      <model>wikitext</model>
      <text bytes="{len(text.encode())}" xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


def dump(pages: Iterable[Sequence[Any]], language: str = "en", **others: Any) -> str:
    """Return a dump of *pages*, whose ids are 1, 2, 3 …"""
    body = "".join(page(number, *fields) for number, fields in enumerate(pages, start=1))
    return head(language, **others) + body + FOOT


def write(path: Path, text: str) -> Path:
    """Write a dump, compressed if its name says so."""
    data = text.encode()
    path.write_bytes(bz2.compress(data) if path.suffix == ".bz2" else data)
    return path


def multistream(path: Path, pages: Sequence[Sequence[Any]], every: int = 2) -> Path:
    """Write a multistream dump with *every* so many pages in a stream, and its index beside it."""
    body = [page(number, *fields) for number, fields in enumerate(pages, start=1)]
    pieces = [head(), *("".join(body[at : at + every]) for at in range(0, len(body), every)), FOOT]
    index, data = [], b""
    for number, piece in enumerate(pieces):
        if 0 < number < len(pieces) - 1:
            first = (number - 1) * every
            for place in range(first, min(first + every, len(pages))):
                index.append(f"{len(data)}:{place + 1}:{pages[place][0]}\n")
        data += bz2.compress(piece.encode())
    path.write_bytes(data)
    name = path.name.replace(".xml.bz2", "-index.txt.bz2")
    path.with_name(name).write_bytes(bz2.compress("".join(index).encode()))
    return path


def observed(source: Path, parts: Sequence[str] | None = None) -> list[Any]:
    """Return the records of a source."""
    builder = WikipediaBuilder()
    return [
        record
        for part in (builder.parts(source) if parts is None else parts)
        for record in builder.observe(source, part)
    ]


class Seen(NamedTuple):
    """Records, sorted by what they say; counts are added up."""

    entities: dict[str, Entity]
    counts: Counter[tuple[str, str]]
    redirects: dict[str, str]
    links: dict[str, list[str]]
    attributes: list[tuple[str, str, str]]
    units: int


def seen(source: Path, parts: Sequence[str] | None = None) -> Seen:
    """Return the records of a source by what they say."""
    found = Seen({}, Counter(), {}, {}, [], 0)
    units = 0
    for record in observed(source, parts):
        match record:
            case Entity():
                assert record.key not in found.entities
                found.entities[record.key] = record
            case Alias():
                found.counts[record.surface, record.key] += int(record.count)
            case Aliases():
                for pair, count in record.counts.items():
                    found.counts[pair] += int(count)
            case Redirect():
                assert record.source not in found.redirects
                found.redirects[record.source] = record.target
            case Triples():
                assert record.relation == "links_to" and record.subject not in found.links
                found.links[record.subject] = [*record.objects]
            case Attribute():
                found.attributes.append((record.key, record.name, record.value))
            case Step():
                units += record.units
            case _:
                raise AssertionError(record)
    return found._replace(units=units)


def seen_in(tmp_path: Path, *pages: Sequence[Any], language: str = "en", **others: Any) -> Seen:
    """Return what the builder makes of *pages*."""
    return seen(write(tmp_path / "dump.xml", dump(pages, language, **others)))


def aliases_of(text: str, language: str = "en", **others: Any) -> dict[str, list[str]]:
    """Return what the links of a text come to: target -> its aliases, sorted, as often as they are there."""
    names = tuple(NAMESPACES.get(language, ENGLISH).items())
    links = Links(Site(language=language, namespaces=names, **others))
    raw = links.of(cut(text))
    found: dict[str, list[str]] = {
        target: [] for target in links.targets(raw) if target and target[0] != CATEGORY
    }
    for (surface, target), count in links.aliases(Counter(raw)).items():
        found[target] += [surface] * int(count)
    return {target: sorted(surfaces) for target, surfaces in found.items()}
