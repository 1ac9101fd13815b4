"""Relations between two names in a sentence: FewRel, its files.

Han et al. (2018), "FewRel: A Large-Scale Supervised Few-Shot Relation Classification Dataset with
State-of-the-Art Evaluation". A file is one JSON object, with the instances of each relation:

    {"P177": [{"tokens": ["A", "bridge", "over", "the", "Elbe", …],
               "h": ["blue wonder", "Q462297", [[1]]], "t": ["elbe", "Q1644", [[3, 4]]]}, …], "P364": …}

A name has the entity's key in Wikidata, and the tokens, from 0, of each place where it stands; the first
one is marked. There is no relation that says that none holds. Files may be compressed.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kgkit.errors import SourceError
from kgkit.evaluation.relations import Relation, TokenText
from kgkit.files import opened, read_content

_BEGIN: Final = 4096  # bytes that say which layout a file has
_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_LAYOUT: Final = re.compile(
    rb"\s*\{\s*(?:%(string)s\s*:\s*\[\s*\]\s*,\s*)*%(string)s\s*:\s*\[\s*\{\s*\"(?:tokens|h|t)\"\s*:"
    % {b"string": _STRING}
)
_BOM: Final = b"\xef\xbb\xbf"


class _Record(msgspec.Struct, frozen=True):
    tokens: list[str]
    h: tuple[str, str, list[list[int]]]
    t: tuple[str, str, list[list[int]]]


def is_fewrel(path: Path) -> bool:
    """Return whether a file begins as one of FewRel: an object of lists of instances.

    Raises:
        NotThere, SourceError: if it is not there, or cannot be read.
    """
    with opened(path) as stream:
        return _LAYOUT.match(stream.read(_BEGIN).removeprefix(_BOM)) is not None


def read_fewrel(path: Path) -> Iterator[Relation]:
    """Yield the instances of a file; all of it is in memory at once.

    The text is the tokens joined by a space, the head the `first` name, the tail the `second`, and the label
    the key of the relation. An instance has the key of its relation and its number there as id: `P177-1`.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it is no such object, a name stands nowhere, outside of the tokens, or at tokens that
            do not follow each other, or there are no instances.
    """
    content = read_content(path)
    try:
        relations = msgspec.json.decode(content, type=dict[str, list[_Record]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(
            f"expected a JSON object of FewRel, with the instances of each relation: {error}", path=path
        ) from None
    if not any(relations.values()):
        raise SourceError("no instance in it: the object has no relation, or none has one", path=path)
    for label, records in relations.items():
        for number, record in enumerate(records, start=1):
            yield _instance(f"{label}-{number}", label, record, path)


def _instance(name: str, label: str, record: _Record, path: Path) -> Relation:
    text = TokenText(record.tokens, f"instance {name}", path)

    def span(role: str, spans: list[list[int]]) -> tuple[int, int]:
        """Return the code points of the first place of a name."""
        tokens = spans[0] if spans else []
        if not tokens or tokens != [*range(tokens[0], tokens[0] + len(tokens))]:
            raise SourceError(
                f"instance {name}: the {role} is tokens {tokens}, expected some that follow each other",
                path=path, text=text.text,
            )  # fmt: skip
        return text.span(role, tokens[0], tokens[-1])

    head, tail = span("head", record.h[2]), span("tail", record.t[2])
    keys = sorted([record.h[1], record.t[1]])
    return Relation(name, text.text, head, tail, label, pair=" ".join(keys) if all(keys) else "")
