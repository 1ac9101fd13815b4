"""The formats of data sets of entity linking: which there are, and which a file has.

    kgkit      JSON lines with tokens and mentions            kgkit.evaluation.el_files
    elevant    JSON lines with text and labels                kgkit.evaluation.el_json
    kilt       JSON lines with input and output               kgkit.evaluation.el_json
    aida       the columns of AIDA-CoNLL-YAGO                 kgkit.evaluation.el_aida
    nif        NIF 2.0 in Turtle or N-Triples                 kgkit.evaluation.nif
    docbin     spaCy's DocBin                                 kgkit.evaluation.doc_bin
    linked     JSON lines with text and links or mentions     kgkit.evaluation.el_linked

A file's first bytes tell its format. What cannot be read twice, a pipe, has the format `kgkit` unless it is
named. A table has none of them, however it begins, unless it has the columns of AIDA.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from kgkit.errors import SourceError, UnknownName
from kgkit.evaluation.doc_bin import read_doc_bin
from kgkit.evaluation.el_aida import DOCUMENT_START, read_aida
from kgkit.evaluation.el_files import GoldDocument, Labelled, read_gold_documents, read_links
from kgkit.evaluation.el_json import EntityField, read_elevant, read_kilt
from kgkit.evaluation.el_linked import read_linked
from kgkit.evaluation.nif import read_nif
from kgkit.files import opened

GoldFormat = Literal["kgkit", "elevant", "kilt", "aida", "nif", "docbin", "linked"]
"""A format of data sets of entity linking."""

GOLD_FORMATS: Final[tuple[GoldFormat, ...]] = (
    "kgkit", "elevant", "kilt", "aida", "nif", "docbin", "linked",
)  # fmt: skip
"""All of them."""

_HEAD_BYTES: Final = 64 << 20  # of the first line: an article may be long, a book is not one line
_TURTLE: Final = ("@prefix", "@base", "prefix", "base", "<", "#", "_:")
_TABLES: Final = frozenset((".csv", ".tsv", ".parquet"))
_KEYS: Final[tuple[tuple[frozenset[str], GoldFormat], ...]] = (
    (frozenset({"tokens", "mentions"}), "kgkit"),
    (frozenset({"text", "labels"}), "elevant"),
    (frozenset({"input"}), "kilt"),
    (frozenset({"text"}), "linked"),
)


def gold_format(path: Path) -> GoldFormat:
    """Return the format of a data set, by how its file begins.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it begins as none of the formats does.
    """
    if path.exists() and not path.is_file():
        return "kgkit"
    text = _first_line(path)
    if _begins_zlib(text):
        return "docbin"
    if text.startswith(b"{"):
        return _json_format(text, path)
    start = text[:40].decode("utf-8", "replace")
    if start.startswith(DOCUMENT_START):
        return "aida"
    if not _TABLES.isdisjoint(suffix.lower() for suffix in path.suffixes):
        raise SourceError(
            f"expected a data set of entity linking ({', '.join(GOLD_FORMATS)}), found a table: write its "
            "gold as JSON lines of tokens and mentions, or as AIDA's columns, which begin with "
            f"{DOCUMENT_START}",
            path=path, line=1, text=start,
        )  # fmt: skip
    if start.lower().startswith(_TURTLE):
        return "nif"
    raise SourceError(
        f"not recognised as a data set of entity linking ({', '.join(GOLD_FORMATS)}); `kgkit evaluate el "
        "--format` reads a file as one of them",
        path=path, line=1, text=start,
    )  # fmt: skip


def _begins_zlib(content: bytes) -> bool:
    """Say whether a zlib stream begins so, as a DocBin of spaCy does: an x, and a check (RFC 1950)."""
    return content[:1] == b"\x78" and (len(content) < 2 or not int.from_bytes(content[:2]) % 31)


def _first_line(path: Path) -> bytes:
    """Return the first line that is not blank, without a byte order mark."""
    with opened(path) as stream:
        while line := stream.readline(_HEAD_BYTES):
            if text := line.removeprefix(b"\xef\xbb\xbf").lstrip():
                return text
    return b""


def _json_format(line: bytes, path: Path) -> GoldFormat:
    try:
        keys = set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return "kgkit"  # whose reader says what is wrong
    return next((name for needed, name in _KEYS if needed <= keys), "kgkit")


def read_gold_data(
    path: Path,
    format: GoldFormat | None = None,
    *,
    entities: EntityField = "id",
    prefix: str = "",
) -> Iterator[GoldDocument]:
    """Yield the documents of a data set in any of the formats.

    Args:
        path: the file, which may be compressed.
        format: its format; None: as its beginning tells.
        entities: field of an ELEVANT label that is compared with the keys of a knowledge base.
        prefix: beginning of the IRIs of entities in NIF, whose remainder is compared.

    Raises:
        NotThere: if there is no such file.
        MissingExtra: if the package that reads the format is not installed.
        UnknownName: if there is no such format.
        SourceError: if the file is not of that format, or contradicts itself.
    """
    name = format or gold_format(path)
    if name not in GOLD_FORMATS:
        raise UnknownName("format of data", name, GOLD_FORMATS)
    readers: dict[GoldFormat, Callable[[Path], Iterator[GoldDocument]]] = {
        "kgkit": read_gold_documents,
        "elevant": partial(read_elevant, entities=entities),
        "kilt": read_kilt,
        "aida": read_aida,
        "nif": partial(read_nif, prefix=prefix),
        "docbin": read_doc_bin,
        "linked": read_linked,
    }
    yield from readers[name](path)


def read_predictions(path: Path, prefix: str = "") -> dict[str, list[Labelled]]:
    """Return the links of each document, from a file of predictions: lines with tabs, or NIF.

    Args:
        path: file that `kgkit evaluate el --predictions` has written, or another system.
        prefix: beginning of the IRIs of entities in NIF, whose remainder is the entity.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is neither.
    """
    start = _first_line(path)[:40]
    if b"\t" not in start and start.decode("utf-8", "replace").lower().startswith(_TURTLE):
        return {gold.document.id: gold.gold for gold in read_nif(path, prefix)}
    return read_links(path)
