"""Relations between two names in a sentence: TACRED, its files and its official score.

Zhang et al. (2017), "Position-aware Attention and Supervised Data Improve Slot Filling". A file is one JSON
list:

    [{"id": "61b3…", "relation": "per:title", "token": ["He", "leads", …],
      "subj_start": 0, "subj_end": 0, "obj_start": 4, "obj_end": 5,
      "subj_type": "PERSON", "obj_type": "TITLE", …}, …]

Places count tokens from 0, and the end is part of the name. Of 42 labels one, `no_relation`, says that none
of the other 41 holds. A file may be compressed (`.xz`, `.bz2`, `.gz`, `.zst`).
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.errors import SourceError
from kgkit.evaluation.files import UniqueIds, missing_gold
from kgkit.evaluation.relations import Relation, TokenText
from kgkit.files import read_content

NO_RELATION: Final = "no_relation"

# How the tokenizer of the data writes brackets.
_BRACKETS: Final = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip


class TacredScore(NamedTuple):
    """How well relations were predicted, in [0, 1]; 0 where a ratio has nothing below it.

    Attributes:
        precision: right of the answers that are a relation.
        recall: right of the instances that have a relation.
        f1: the official score: the harmonic mean of both.
        instances: of the gold, with a relation or without.
    """

    precision: float
    recall: float
    f1: float
    instances: int


class _Record(msgspec.Struct, frozen=True):
    id: str | int
    token: list[str]
    subj_start: int
    subj_end: int
    obj_start: int
    obj_end: int
    relation: str | None = None
    subj_type: str = ""
    obj_type: str = ""


def read_tacred(path: Path) -> Iterator[Relation]:
    """Yield the instances of a file; all of it is in memory at once.

    The text is the tokens joined by a space, with brackets for what stands for them in the data (`-LRB-` and
    its like). The subject is the `first` name, the object the `second`; without `relation` the label is None.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it is not such a list, a name lies outside of the tokens or has nothing in it, two
            instances have one id, or there are no instances.
    """
    content = read_content(path)
    try:
        records = msgspec.json.decode(content, type=list[_Record])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"expected a JSON list of instances of TACRED: {error}", path=path) from None
    if not records:
        raise SourceError("no instance in it: the list is empty", path=path)
    ids = UniqueIds(path, "instance")
    for position, record in enumerate(records, start=1):
        name = str(record.id)
        if not name:
            raise SourceError(
                f"instance {position} has an empty id: each needs its own, as answers go by it", path=path
            )
        ids.check(name, position)
        yield _instance(name, record, f"instance {position} ({name})", path)


def _instance(name: str, record: _Record, which: str, path: Path) -> Relation:
    text = TokenText([_BRACKETS.get(token, token) for token in record.token], which, path)
    first = text.span("subject", record.subj_start, record.subj_end)
    second = text.span("object", record.obj_start, record.obj_end)
    return Relation(name, text.text, first, second, record.relation, record.subj_type, record.obj_type)


def score_tacred(gold: Iterable[Relation], answers: Mapping[str, str]) -> TacredScore:
    """Score answers, by the ids of the instances, over all relations together.

    `no_relation` is no answer, nor is there anything to be found where the gold has it; an instance without
    an answer counts as one that was answered so.

    Raises:
        UsageError: if an instance has no gold label.

    Departures:
        Of a system that finds no relation at all the official scorer says that its precision is 1; here it is
        0. F1 is 0 in either.
    """
    right = predicted = labelled = count = 0
    for instance in gold:
        if instance.label is None:
            raise missing_gold(f"instance {instance.id}", "relation")
        answer, count = answers.get(instance.id, NO_RELATION), count + 1
        labelled += instance.label != NO_RELATION
        predicted += answer != NO_RELATION
        right += answer == instance.label != NO_RELATION
    f1 = 2 * right / max(1, predicted + labelled)
    return TacredScore(right / max(1, predicted), right / max(1, labelled), f1, count)
