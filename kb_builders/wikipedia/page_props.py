"""Wikidata ids out of `page_props.sql.gz`, the dump of a table of MediaWiki.

    INSERT INTO `page_props` VALUES (12,'wikibase_item','Q144',NULL),(12,'defaultsort','…',NULL),…;

A quotation mark within a value has a backslash before it, so a row of the wanted property is what it
looks like, wherever the lines, of a megabyte each, are cut.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb_builders.wikipedia.streams import blocks
from kgkit.building import Attribute, Record, Redirect
from kgkit.errors import SourceError

__all__ = ["page_key", "wikidata_ids"]

_TABLE: Final = re.compile(rb"(?:CREATE TABLE|INSERT INTO) `?page_props`?", re.IGNORECASE)
_ROW: Final = re.compile(rb"\((\d{1,12}),'wikibase_item','([Qq]\d{1,12})'")
_LONGEST: Final = 64  # bytes of such a row, at most
_HEAD: Final = 64 << 10


def page_key(number: int | str) -> str:
    """Return the key that the number of a page is."""
    return f"curid:{number}"


def wikidata_ids(path: Path) -> Iterator[Record]:
    """Yield what the table says: an attribute `wikidata` of a page, and its value as a key of the page.

    Raises:
        SourceError: if it is another table, none at all, or cut off.
    """
    content = blocks(path)
    data, head, has_head = b"", b"", False
    for block in content:
        if not has_head:
            head += block[:_HEAD]
            has_head = _TABLE.search(head) is not None
            if not has_head and len(head) >= _HEAD:
                break
        data += block
        end = 0
        for row in _ROW.finditer(data):
            page, item = page_key(row[1].decode()), row[2].decode().upper()
            yield Attribute(page, "wikidata", item)
            yield Redirect(item, page)
            end = row.end()
        data = data[max(end, len(data) - _LONGEST) :]
    if not has_head:
        what = "is empty: there is nothing to read" if not head else "is not the table page_props"
        raise SourceError(f"{what}: take …-page_props.sql.gz of the same day as the dump", path=path)
    last = data.rstrip().rpartition(b"\n")[2]
    if not last.endswith(b";") and not last.startswith(b"--") and b"-- Dump completed" not in data:
        raise SourceError("is cut off: the last statement has no end; load it again", path=path)
