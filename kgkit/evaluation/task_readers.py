"""Readers of the formats of the tasks' own: WiC, relations as three data sets have them, types of names."""

from collections.abc import Iterator
from pathlib import Path

from kgkit.evaluation.entity_typing import read_typed
from kgkit.evaluation.examples import Example
from kgkit.evaluation.fewrel import read_fewrel
from kgkit.evaluation.relations import read_relations
from kgkit.evaluation.tacred import read_tacred
from kgkit.evaluation.task_records import SAME
from kgkit.evaluation.wic import read_pairs
from kgkit.files import opened


def read_wic_examples(path: Path, gold: Path | None) -> Iterator[Example]:
    """Yield the pairs of a file of WiC, as `read_pairs` reads them."""
    for pair in read_pairs(path, gold):
        label = None if pair.label is None else SAME[pair.label]
        yield Example(pair.id, (pair.first, pair.second), gold=label)


def read_relation_examples(path: Path, _: Path | None) -> Iterator[Example]:
    """Yield the instances of a file of SemEval-2010 task 8, TACRED or FewRel, by its first character."""
    with opened(path) as stream:
        begin = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    readers = {b"[": read_tacred, b"{": read_fewrel}
    for row in readers.get(begin[:1], read_relations)(path):
        types = (("SUBJECT", row.first_type), ("OBJECT", row.second_type))
        tail = tuple(f"[{role}={kind}]" for role, kind in types if kind)
        marks = (row.first, row.second)
        yield Example(row.id, (row.text,), marks, tail=tail, group=row.pair, gold=row.label)


def read_typed_examples(path: Path, _: Path | None) -> Iterator[Example]:
    """Yield the names of a file of Open Entity with their types, as `read_typed` reads them."""
    for row in read_typed(path):
        yield Example(row.id, (row.text,), (row.span,), gold=row.types)
