"""Entity linking: spaCy's `DocBin`, the files of `spacy train`.

A file is a zlib stream of MessagePack: the numbers of the attributes, a table of them for all tokens, which
tokens a space follows, the lengths of the documents, and the strings. It is read without making a `Doc` of
it, whose parse would have to be trusted: words, spaces and entities are all that is taken. spaCy gives the
numbers of attributes and the hashes of strings.
"""

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import SourceError
from kgkit.evaluation.el_files import GoldDocument, GoldError, GoldMention, make_gold_document
from kgkit.files import opened
from kgkit.lazy import import_extra

MAX_BYTES: Final = 1 << 30
"""Bytes of a file, compressed or not, that are read at most."""

NIL_NAMES: Final = ("", "NIL")
"""What stands for NIL in the place of an entity."""

_CHUNK: Final = 1 << 20
_INSIDE, _BEGIN = 1, 3  # of ENT_IOB
_NEEDED: Final = ("ORTH", "ENT_IOB", "ENT_KB_ID")


class _Bin(msgspec.Struct, frozen=True):
    attrs: list[int]
    tokens: bytes
    spaces: bytes
    lengths: bytes
    strings: list[str]
    flags: list[dict[str, Any]] = []


def read_doc_bin(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a `DocBin`; mentions are `doc.ents`, entities their `kb_id_`.

    A document's id is its number in the file, from 1, as such a file has no ids; an entity without `kb_id_`,
    or with NIL, is NIL. The file is in memory as a whole.

    Args:
        path: the file.

    Raises:
        NotThere: if there is no such file.
        MissingExtra: if spaCy is not installed.
        SourceError: if it is no `DocBin`, is too large for what is read into memory, or has no documents or
            no entities.
    """
    import_extra("spacy", "spacy")
    from spacy.attrs import IDS
    from spacy.strings import StringStore

    doc_bin = _decode(path)
    columns = {name: doc_bin.attrs.index(IDS[name]) for name in _NEEDED if IDS[name] in doc_bin.attrs}
    if len(columns) < len(_NEEDED):
        raise SourceError(f"a DocBin without the attributes {', '.join(_NEEDED)}", path=path)
    if IDS["ENT_TYPE"] in doc_bin.attrs:
        columns["ENT_TYPE"] = doc_bin.attrs.index(IDS["ENT_TYPE"])
    store = StringStore()
    strings = {store.add(string): string for string in doc_bin.strings}
    strings[0] = ""
    table, spaces, lengths = _arrays(doc_bin, path)
    if not len(lengths):
        raise SourceError("no document in it", path=path)
    start = 0
    for number, length in enumerate(lengths.tolist()):
        rows, row_spaces = table[start : start + length], spaces[start : start + length]
        start += length
        flags = doc_bin.flags[number] if number < len(doc_bin.flags) else {}
        if flags.get("has_unknown_spaces"):
            row_spaces = np.ones_like(row_spaces)
        try:
            yield _document(str(number + 1), rows, row_spaces, columns, strings)
        except GoldError as error:
            raise SourceError(str(error), path=path) from None
        except KeyError as error:
            message = f"document {number + 1} has the hash {error.args[0]}, of no string of the file"
            raise SourceError(message, path=path) from None


def _decode(path: Path) -> _Bin:
    content, inflater = bytearray(), zlib.decompressobj()
    with opened(path) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                while chunk:
                    content += inflater.decompress(chunk, _CHUNK)
                    chunk = inflater.unconsumed_tail
                    if len(content) > MAX_BYTES:
                        message = f"more than {MAX_BYTES >> 20} MiB of a DocBin, which is read into memory"
                        raise SourceError(f"{message}: split it", path=path)
        except zlib.error as error:
            raise SourceError(f"no DocBin of spaCy: {error}", path=path) from None
    if not inflater.eof:
        raise SourceError("a DocBin that is cut short", path=path)
    try:
        return msgspec.msgpack.decode(content, type=_Bin)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise SourceError(f"no DocBin of spaCy: {error}", path=path) from None


def _arrays(doc_bin: _Bin, path: Path) -> tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.int32]]:
    """Return the attributes (T, A) of tokens, whether a space follows (T,), and lengths (D,) of documents."""
    width = len(doc_bin.attrs)
    if len(doc_bin.tokens) % (8 * width) or len(doc_bin.lengths) % 4:
        raise SourceError("a DocBin whose tables end within a row", path=path)
    table = np.frombuffer(doc_bin.tokens, "<u8").reshape(-1, width)
    lengths = np.frombuffer(doc_bin.lengths, "<i4")
    spaces = np.frombuffer(doc_bin.spaces, np.uint8).astype(np.bool_)
    if (lengths < 0).any() or not lengths.sum(dtype=np.int64) == len(table) == len(spaces):
        raise SourceError("a DocBin whose documents have other lengths than its tables", path=path)
    return table, spaces, lengths


def _document(
    name: str,
    rows: NDArray[np.uint64],
    spaces: NDArray[np.bool_],
    columns: Mapping[str, int],
    strings: Mapping[int, str],
) -> GoldDocument:
    words = [strings[value] for value in rows[:, columns["ORTH"]].tolist()]
    tokens, size, pieces = list[tuple[int, int]](), 0, list[str]()
    for word, space in zip(words, spaces.tolist(), strict=True):
        pieces.append(word + " " * space)
        tokens.append((size, size + len(word)))
        size += len(word) + space
    mentions: list[GoldMention] = []
    previous = None
    for index, row in enumerate(rows.tolist()):
        tag, entity = row[columns["ENT_IOB"]], strings[row[columns["ENT_KB_ID"]]]
        label = strings[row[columns["ENT_TYPE"]]] if "ENT_TYPE" in columns else ""
        start, end = tokens[index]
        if tag == _INSIDE and previous is not None:
            mentions[-1] = mentions[-1]._replace(end=end)
        elif tag in (_BEGIN, _INSIDE):
            mentions.append(GoldMention(start, end, None if entity in NIL_NAMES else entity, type=label))
            previous = index
        else:
            previous = None
    return make_gold_document(name, "".join(pieces), mentions, tokens=tokens)
