"""The builder `wikipedia`: what is at a source, its parts, and the records of its pages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from kb_builders.wikipedia import dump
from kb_builders.wikipedia.files import dump_files, dump_name, is_page_props
from kb_builders.wikipedia.languages import REDIRECT_WORDS, disambiguation_template, disambiguation_title
from kb_builders.wikipedia.lead import first_paragraph, items
from kb_builders.wikipedia.page_props import page_key, wikidata_ids
from kb_builders.wikipedia.prose import prose
from kb_builders.wikipedia.streams import blocks, ranges
from kb_builders.wikipedia.titles import CATEGORY, Site, Titles, is_word, without_bracket
from kb_builders.wikipedia.wikitext import Links, Raw, cut
from kgkit.building import (
    Alias,
    Aliases,
    Builder,
    Entity,
    Files,
    KBProperties,
    Prose,
    Record,
    Redirect,
    SourceInfo,
    Step,
    Triples,
    check_url_pattern,
)
from kgkit.errors import SourceError

__all__ = ["PageRecords", "WikipediaBuilder"]

_CHARACTERS: Final = 16 << 20  # of text, after which the counts of links are given out
_REDIRECT: Final = re.compile(
    rf"\s*+[#＃]\s*+(?:{'|'.join(REDIRECT_WORDS)})\s*+:?\s*+\[\[([^\[\]|]+)", re.IGNORECASE
).match


class WikipediaBuilder(Builder):
    """Pages, redirects, links and their anchor texts, from dumps of MediaWiki."""

    version: ClassVar[str] = "3"
    engine: ClassVar[str] = "local"
    unit: ClassVar[str] = "pages"
    generator: ClassVar[str] = "alias"
    has_texts: ClassVar[bool] = True
    identifiers: ClassVar[Sequence[str]] = ("wikidata", "page_id")

    def look(self, source: Path) -> Files:
        """Return the dumps and tables at *source*, which have to be of one wiki, with its language."""
        files = dump_files(source)
        sites = [_site(path) for path in files.dumps]
        named = {site.name: path for path, site in zip(files.dumps, sites, strict=True) if site.name}
        if len(named) > 1:
            (wiki, first), (other, second) = [*named.items()][:2]
            raise SourceError(
                f"is of the wiki {other!r}, and {first.name} beside it of {wiki!r}: one knowledge base is "
                "made of one wiki",
                path=second,
            )
        read = [*files.dumps, *files.tables]
        site = sites[0] if sites else Site()
        name, date = dump_name(read[0])
        version = f"{site.name or name} {date}".strip()
        info = SourceInfo(name="Wikipedia", version=version, licence="CC BY-SA 4.0", url=site.url, date=date)
        # A table of page properties states nothing.
        properties = KBProperties(
            generator=self.generator,
            language=site.language,
            url_pattern=_url_pattern(site),
            identifiers=self.identifiers,
        )
        return Files(info, read, properties if sites else None)

    def parts(self, source: Path) -> Sequence[str]:
        """Return `FILE:BEGIN-END` for each range of bytes of a dump that can be read alone, then tables."""
        files = dump_files(source)
        ranges_of_dumps = [
            f"{path.name}:{begin}-{stop}" for path in files.dumps for begin, stop in ranges(path)
        ]
        return ranges_of_dumps + [f"{path.name}:0-{path.stat().st_size}" for path in files.tables]

    def observe(self, source: Path, part: str) -> Iterator[Record | Step]:
        """Yield the records of the pages of a range, or of the Wikidata ids of a table."""
        name, _, byte_range = part.rpartition(":")
        path = source / name if source.is_dir() else source
        if is_page_props(path):
            yield from wikidata_ids(path)
            return
        yield from PageRecords(_site(path)).of(_pages(path, byte_range))

    def texts(self, source: Path, part: str) -> Iterator[Prose | Step]:
        """Yield the text of each page of a range, with its links; a table has none."""
        name, _, byte_range = part.rpartition(":")
        path = source / name if source.is_dir() else source
        if not is_page_props(path):
            yield from PageRecords(_site(path)).texts(_pages(path, byte_range))


def _url_pattern(site: Site) -> str:
    """Return the pattern of the addresses of a wiki's pages, by its main page; empty if that is odd."""
    pattern = f"{site.url.rpartition('/')[0]}/{{key:_}}"
    try:
        check_url_pattern(pattern)
    except ValueError:
        return ""
    return pattern


def _pages(path: Path, byte_range: str) -> Iterator[dump.Page]:
    begin, stop = map(int, byte_range.split("-"))
    return dump.pages(blocks(path, begin, stop), from_start=begin == 0)


def _site(path: Path) -> Site:
    status = path.stat()
    return _site_of(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1_024)
def _site_of(path: Path, _changed: int, _size: int) -> Site:
    return dump.site(path)


class PageRecords:
    """Makes records of the pages of one wiki.

    Links are counted over some pages before they are given out; the `Step` that stands for these pages
    comes behind, so whoever stops at a step has all that belongs to the pages before it.
    """

    def __init__(self, site: Site) -> None:
        self._titles = Titles(site)
        self._links = Links(site)
        self._is_disambiguation = disambiguation_template(site.language).search
        self._counts: Counter[Raw] = Counter()

    def of(self, pages: Iterator[dump.Page]) -> Iterator[Record | Step]:
        """Yield the records of *pages*."""
        for page in self._articles(pages):
            if isinstance(page, Step):
                yield from self._count_links()
                yield page
            else:
                yield from self._page(page)

    def texts(self, pages: Iterator[dump.Page]) -> Iterator[Prose | Step]:
        """Yield the prose of *pages*, and the steps that `of` yields; lists of meanings have none."""
        for page in self._articles(pages):
            if isinstance(page, Step):
                yield page
            elif self._leads_to(page) is None and not self._ambiguous(page.title, page.text):
                text = cut(page.text) if "<" in page.text else page.text
                yield prose(text, self._links, self._titles.is_hidden, page.title)

    def _articles(self, pages: Iterator[dump.Page]) -> Iterator[dump.Page | Step]:
        """Yield the pages of the main namespace, and a step behind some pages of any."""
        waiting = size = 0
        for total, page in enumerate(pages, start=1):
            waiting += 1
            number = page.namespace
            if number == 0 or (number is None and self._titles.namespace(page.title) == 0):
                size += len(page.text)
                yield page
            if waiting >= _pages_at_once(total) or size >= _CHARACTERS:
                yield Step(waiting)
                waiting = size = 0
        if waiting:
            yield Step(waiting)

    def _count_links(self) -> Iterator[Aliases]:
        counts = self._links.aliases(self._counts)
        self._counts = Counter()
        if counts:
            yield Aliases(counts)

    def _page(self, page: dump.Page) -> Iterator[Record]:
        title = page.title
        leads_to = self._leads_to(page)
        if leads_to is not None:
            target = self._links.target(leads_to)
            if target and target[0] != CATEGORY:
                if page.id:
                    yield Redirect(page_key(page.id), title)
                yield Redirect(title, target)
                if is_word(title):
                    yield Alias(title, target)
            return
        text = cut(page.text) if "<" in page.text else page.text
        links = self._links.of(text)
        led = self._links.targets(links)
        targets = dict.fromkeys(led)
        targets.pop("", None)
        if title in targets:  # a page that leads to itself: what MediaWiki shows is no link
            del targets[title]
            links = [link for link, target in zip(links, led, strict=True) if target != title]
        categories = [target[1:] for target in targets if target[0] == CATEGORY]
        ambiguous = self._ambiguous(title, page.text)
        attributes: dict[str, object] = {}
        if page.id:
            attributes["page_id"] = page.id
        if categories:
            attributes["categories"] = categories
        bare = without_bracket(title)
        if page.id:
            yield Redirect(page_key(page.id), title)
        yield Entity(
            title,
            label=title,
            description=first_paragraph(text, self._titles.is_hidden, self._links.templates, bare or title),
            kind="disambiguation" if ambiguous else "page",
            attributes=attributes,
        )
        if ambiguous:
            yield from self._meanings(bare or title, title, text)
        else:
            self._counts.update(links)
            for surface in filter(is_word, dict.fromkeys((title, bare))):
                yield Alias(surface, title)
        pages = [target for target in targets if target[0] != CATEGORY] if categories else [*targets]
        if pages:
            yield Triples(title, "links_to", pages)

    def _leads_to(self, page: dump.Page) -> str | None:
        """Return what a redirect leads to; None for a page of its own."""
        if page.redirect is None and (match := _REDIRECT(page.text)):
            return match[1]
        return page.redirect

    def _ambiguous(self, title: str, text: str) -> bool:
        """Return whether a page lists what its title may mean: it says so at its beginning or at its end."""
        if title[-1] in ")）" and disambiguation_title(title):
            return True
        if len(text) > 20_000:
            text = f"{text[:4_000]}\n{text[-8_000:]}"
        return "__DISAMBIG__" in text or self._is_disambiguation(text) is not None

    def _meanings(self, surface: str, title: str, text: str) -> Iterator[Alias]:
        """Yield the first page that each item of a disambiguation page leads to."""
        if not is_word(surface):
            return
        targets = {title}
        for item in items(text):
            for target in self._links.targets(self._links.of(item)):
                if target and target[0] != CATEGORY:
                    if target not in targets:
                        targets.add(target)
                        yield Alias(surface, target)
                    break


def _pages_at_once(total: int) -> int:
    """Return of how many pages links are counted together: the fewer, the fewer are read.

    A build of the first *n* pages (`--limit`) reads a tenth more at most, and just as many if that is a
    round number.
    """
    if total <= 100:
        return 1
    return 10 if total <= 1_000 else 100 if total <= 10_000 else 1_000
