"""Two parsers of wikitext, over the pages of a dump: only the parsing is on the clock."""

import bz2
import time
from typing import Any
from xml.etree.ElementTree import iterparse


def mwparserfromhell_links(source: str) -> dict[str, Any]:
    """Parse every page and filter its wikilinks."""
    import mwparserfromhell

    texts = _texts(source)
    start = time.process_time()
    links = 0
    for text in texts:
        for _ in mwparserfromhell.parse(text).ifilter_wikilinks():
            links += 1
    return {"pages": len(texts), "seconds": time.process_time() - start, "links": links}


def wikipedia2vec_pages(source: str) -> dict[str, Any]:
    """Parse every page as wikipedia2vec does when it makes its dump database."""
    from wikipedia2vec.dump_db import _parse_page
    from wikipedia2vec.utils.wiki_dump_reader import WikiDumpReader

    pages = list(WikiDumpReader(source))
    start = time.process_time()
    for page in pages:
        _parse_page(page, None)
    return {"pages": len(pages), "seconds": time.process_time() - start}


def _texts(source: str) -> list[str]:
    """Return the texts of the pages."""
    with bz2.open(source) as file:
        return [element.text or "" for _, element in iterparse(file) if element.tag.endswith("}text")]
