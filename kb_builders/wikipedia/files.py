"""Which files a source is: one dump, or a folder of the files of one wiki and day."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import NotThere, SourceError

__all__ = ["DumpFiles", "dump_files", "dump_name", "is_page_props"]

_PAGE_PROPS: Final = re.compile(r"page_props.*\.sql(?:\.gz|\.bz2)?$")
_DUMP: Final = re.compile(r"\.xml(?:-[\w-]+)?(?:\.bz2|\.gz)?$")
_INDEX: Final = re.compile(r"-index\d*\.txt.*$")
_NAME: Final = re.compile(r"([a-z_]+)-(\d{8}|latest)-")
_DIGITS: Final = re.compile(r"(\d+)")


class DumpFiles(NamedTuple):
    """The files of a source.

    Attributes:
        dumps: dumps with pages, in the order of their ids.
        tables: tables of page properties.
    """

    dumps: Sequence[Path]
    tables: Sequence[Path]


def is_page_props(path: Path) -> bool:
    """Return whether *path* is named as the table of page properties is."""
    return _PAGE_PROPS.search(path.name) is not None


def dump_name(path: Path) -> tuple[str, str]:
    """Return the wiki and the day that the name of a dump tells, `enwiki` and `2026-11-01`; or nothing."""
    match = _NAME.match(path.name)
    if match is None:
        return "", ""
    day = match[2]
    return match[1], f"{day[:4]}-{day[4:6]}-{day[6:]}" if day.isdigit() else ""


def dump_files(source: Path) -> DumpFiles:
    """Return the files that *source* is.

    Raises:
        NotThere: if there is nothing.
        SourceError: if it is nothing that can be read; says what to do.
    """
    if not source.exists():
        raise NotThere(
            f"no file {source}: a source is a dump (…-pages-articles.xml.bz2) or a folder of dumps"
        )
    if not source.is_dir():
        return _single_file(source)
    visible = (path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))
    paths = sorted(visible, key=_in_order)
    dumps = [path for path in paths if _DUMP.search(path.name)]
    if not dumps:
        for path in paths:
            if path.suffix.lower() == ".7z":
                _refuse(path)
        if not any(map(is_page_props, paths)):
            raise SourceError(
                "is a folder without a dump: no …-pages-articles….xml or .xml.bz2 in it", path=source
            )
    _no_dump_twice(dumps)
    return DumpFiles(dumps, [path for path in paths if is_page_props(path)])


def _single_file(source: Path) -> DumpFiles:
    if not source.is_file():
        # What one reading takes out of a pipe, the next one misses.
        raise SourceError(
            "is a pipe or a device, and a source is read more than once: write it to a file first",
            path=source,
        )
    if is_page_props(source):
        return DumpFiles([], [source])
    if _INDEX.search(source.name):
        raise SourceError(
            "is the index of a multistream dump: name the dump beside it; it is cut without its index",
            path=source,
        )
    if source.suffix.lower() not in (".xml", ".bz2", ".gz") and not _DUMP.search(source.name):
        _refuse(source)
    if ".sql" in source.name:
        raise SourceError(
            "is the dump of a table; of those, page_props.sql.gz is read, the others are not needed",
            path=source,
        )
    return DumpFiles([source], [])


def _refuse(path: Path) -> None:
    match path.suffix.lower():
        case ".7z":
            what = (
                "is a 7z archive, which is not read: take the .bz2 of the same dump "
                "(…-pages-articles-multistream.xml.bz2), or unpack this one: 7z x"
            )
        case ".zst" | ".xz" | ".zip":
            what = f"is compressed as {path.suffix}, which is not read: unpack it to .xml"
        case _:
            what = "is no dump: .xml, .xml.bz2 and .xml.gz are read, and page_props.sql.gz"
    raise SourceError(what, path=path)


def _no_dump_twice(dumps: Sequence[Path]) -> None:
    """Refuse `X.xml` beside `X.xml.bz2`, and a dump beside the multistream one of the same pages."""
    first: dict[str, Path] = {}
    for path in dumps:
        pages = path.name.removesuffix(".bz2").removesuffix(".gz").replace("-multistream", "")
        if pages in first:
            raise SourceError(
                f"holds the same pages as {first[pages].name} beside it: leave one of the two in the folder",
                path=path,
            )
        first[pages] = path


def _in_order(path: Path) -> list[tuple[int, str]]:
    """Sort `…articles2…` before `…articles10…`."""
    return [(int(piece), "") if piece.isdigit() else (0, piece) for piece in _DIGITS.split(path.name)]
