"""Examples of tasks that tell texts apart: the files they are read from, what their tasks need, their scores.

    wic              two sentences; T, if a word means the same in both, or F
    relation         a sentence and two names in it; what holds between them
    typing           a sentence and a name in it; those of nine types that it has
    classification   a text, or two; its label

Files of `classification` have a text, or two, and a label, in lines of one of these kinds, and may be
compressed (`.xz`, `.bz2`, `.gz`):

    {"text": …, "label": …}        JSON; a first text is called `text`, `text_a`, `sentence` or `sentence1`, a
                                   second one `text_b` or `sentence2`, and there may be an `id`; what else
                                   there is, is not read
    label <TAB> text_a <TAB> …     a first line that calls columns so, in any order; others are not read
    TEXT <TAB> TEXT <TAB> LABEL    no such line; the second text may be left out

Fields are not quoted. Labels are called what the data call them. A first line with a field `label` and none
of the names of texts is refused: it would be taken for a text.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.evaluation.entity_typing import TYPES, Typed, read_typed, score_typed
from kgkit.evaluation.files import UniqueIds, lines, opened
from kgkit.evaluation.relations import OTHER, Relation, read_relations, score_relations
from kgkit.evaluation.tacred import read_tacred, score_tacred
from kgkit.evaluation.wic import WordPair, read_pairs, score_pairs
from kgkit.training.knowbert.settings import CLASSES

_log = logging.getLogger(__name__)

TASKS: Final = CLASSES

Label = str | frozenset[str]

_SAME: Final = {True: "T", False: "F"}
_FIRST: Final = ("text", "text_a", "sentence", "sentence1")
_SECOND: Final = ("text_b", "sentence2")
_ID: Final = ("id", "index")
_LABEL: Final = ("label",)
_NAMES: Final = (
    f"the first text is called {', '.join(_FIRST[:-1])} or {_FIRST[-1]}, a second one {' or '.join(_SECOND)}"
)
_LONG: Final = 30  # characters of a label that an error shows
_DIRECTIONS: Final = ("(e1,e2)", "(e2,e1)")


class Example(NamedTuple):
    """A text to classify.

    Attributes:
        id: once in its file.
        texts: one, or two.
        marks: code points of names in the first text, end exclusive.
        tail: special pieces that follow the last text.
        label: what holds: one label, or any number of them; None in a file without gold.
    """

    id: str
    texts: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] = ()
    tail: tuple[str, ...] = ()
    label: Label | None = None


_Line = msgspec.defstruct(
    "_Line",
    [
        *((name, str | None, None) for name in (*_FIRST, *_SECOND)),
        *((name, str | int | bool | None, None) for name in (*_ID, *_LABEL)),
    ],
)
"""What is read of a line of JSON."""


# -- files ------------------------------------------------------------------


def read_examples(task: str, path: Path, gold: Path | None = None) -> list[Example]:
    """Return the examples of a file.

    Args:
        task: one of `TASKS`.
        path: of `relation`, a file of SemEval-2010 task 8 or a JSON list, as TACRED has it.
        gold: the labels of a file of the release of WiC.

    Raises:
        UnknownName: if there is no such task.
        NotThere: if there is no such file.
        UsageError: if *gold* is given and the labels are not in a file of their own.
        SourceError: if the file is not what it should be, or two examples have one id.
    """
    _known(task)
    if gold is not None and task != "wic":
        raise UsageError(f"files of {task} have their labels in themselves: leave out {gold}")
    if task == "wic":
        found = [
            Example(one.id, (one.first, one.second), label=None if one.label is None else _SAME[one.label])
            for one in read_pairs(path, gold)
        ]
    elif task == "relation":
        found = list(_relations(path))
    elif task == "typing":
        found = [Example(one.id, (one.text,), (one.span,), label=one.types) for one in read_typed(path)]
    else:
        found = list(_texts(path))
    return found


def _relations(path: Path) -> Iterator[Example]:
    with opened(path) as stream:
        begin = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    for one in (read_tacred if begin.startswith(b"[") else read_relations)(path):
        types = (("SUBJECT", one.first_type), ("OBJECT", one.second_type))
        tail = tuple(f"[{role}={kind}]" for role, kind in types if kind)
        yield Example(one.id, (one.text,), (one.first, one.second), tail, one.label)


def _texts(path: Path) -> Iterator[Example]:
    """Yield the examples of a file of `classification`."""
    numbered, ids = lines(path), UniqueIds(path)
    first = next(numbered, None)
    if first is None:
        raise SourceError("no text in it: there are no lines", path=path)
    if first[1].lstrip().startswith("{"):
        for number, line in chain([first], numbered):
            found = _of_json(path, number, line)
            ids.check(found.id, number, line)
            yield found
        return
    columns = [name.strip().lower() for name in first[1].split("\t")]
    named = any(name in _FIRST for name in columns)
    if not named and not {*_LABEL}.isdisjoint(columns):
        raise SourceError(
            f"it names columns ({', '.join(columns)}), and no text among them: {_NAMES}",
            path=path, line=first[0], text=first[1],
        )  # fmt: skip
    if not named:
        columns = {2: ["text", "label"], 3: ["text_a", "text_b", "label"]}.get(len(columns), [])
        if not columns:
            raise SourceError(
                "expected TEXT, TEXT, LABEL or TEXT, LABEL with tabs between them, or a first line that "
                f"names the columns (label, text_a, text_b); found {first[1].count(chr(9)) + 1} fields",
                path=path, line=first[0], text=first[1],
            )  # fmt: skip
    empty = True
    for number, line in numbered if named else (first, *numbered):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise SourceError(
                f"expected {len(columns)} tab-separated fields ({', '.join(columns)}), found {len(fields)}",
                path=path, line=number, text=line,
            )  # fmt: skip
        found = _example(dict(zip(columns, fields, strict=True)), path, number, line)
        ids.check(found.id, number, line)
        yield found
        empty = False
    if empty:
        raise SourceError("no text in it: it names columns, and ends", path=path)


def _of_json(path: Path, number: int, line: str) -> Example:
    try:
        found = msgspec.structs.asdict(msgspec.json.decode(line, type=_Line))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            'expected {"text": "…", "label": "…"}: texts are strings, a label or an id is a string, a whole '
            f"number, true or false: {error}",
            path=path, line=number, text=line,
        ) from None  # fmt: skip
    plain = {name: one if isinstance(one, str) else _name(one) for name, one in found.items()}
    return _example({name: one for name, one in plain.items() if one is not None}, path, number, line)


def _name(value: int | bool | None) -> str | None:
    """Return what JSON calls it."""
    return None if value is None else msgspec.json.encode(value).decode()


def _example(fields: Mapping[str, str], path: Path, number: int, line: str) -> Example:
    def one_of(names: Sequence[str]) -> str | None:
        return next((fields[name] for name in names if name in fields), None)

    first, second, name, label = (one_of(names) for names in (_FIRST, _SECOND, _ID, _LABEL))
    if first is None:
        raise SourceError(f"there is no text: {_NAMES}", path=path, line=number, text=line)
    if label is not None and not label.strip():
        raise SourceError("the label is empty", path=path, line=number, text=line)
    texts = (first,) if second is None else (first, second)
    return Example(name or str(number), texts, label=None if label is None else label.strip())


def check_labels(task: str, examples: Sequence[Example], what: str) -> None:
    """Refuse examples without a label, before anything is computed.

    Args:
        task: one of `TASKS`.
        examples: to learn from, or to score with.
        what: what they are, such as their file; the sentence begins with it.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if one has none. That nothing holds, as it may in `typing`, is a label.
    """
    _known(task)
    if lacking := [one.id for one in examples if one.label is None]:
        give = "name their file of gold (--gold)" if task == "wic" else "give each a label"
        raise UsageError(
            f"{what}: {len(lacking):,} of {len(examples):,} examples have no label, the first is "
            f"{lacking[0]}: {give}, or leave them out"
        )


# -- what a task needs ------------------------------------------------------


def labels_of(task: str, examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the labels to be told apart: those of the task, or, where the data decide, of the examples.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if an example has no label.
    """
    _known(task)
    if task == "wic":
        return tuple(sorted(_SAME.values()))
    if task == "typing":
        return TYPES
    return tuple(sorted({_single(one.label, f"example {one.id}") for one in examples}))


def warn_of_labels(labels: Sequence[str], examples: int) -> None:
    """Say so where hardly two examples share a label: texts may stand in its column."""
    if 2 * len(labels) > examples:
        _log.warning(
            "%d labels in %d examples, as %r: is that the column of labels?",
            len(labels), examples, shown(labels[0]),
        )  # fmt: skip


def shown(label: str) -> str:
    """Return a label as an error shows it: its beginning."""
    return label if len(label) <= _LONG else f"{label[:_LONG]}…"


def specials_of(task: str, examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the special pieces that a task needs: the tokenizer and the embeddings are to have them.

    They are added once, when a model is made: what follows the texts of *examples* is known, what follows
    others' is left out when these are read.

    Raises:
        UnknownName: if there is no such task.
    """
    _known(task)
    names = {"relation": 2, "typing": 1}.get(task, 0)
    tails = sorted({name for one in examples for name in one.tail})
    return (*(piece for pair in markers_of(names) for piece in pair), *tails)


def markers_of(names: int) -> list[tuple[str, str]]:
    """Return what opens and what closes each of so many names."""
    numbers = [""] if names == 1 else [str(number) for number in range(1, names + 1)]
    return [(f"[E{number}]", f"[/E{number}]") for number in numbers]


# -- scores -----------------------------------------------------------------


def scores_of(
    task: str,
    examples: Sequence[Example],
    answers: Mapping[str, Label],
    labels: Iterable[str] = (),
) -> dict[str, float]:
    """Return the scores of answers, by the ids of the examples, in [0, 1]; the official one is the first.

    Args:
        task: one of `TASKS`. Relations are scored as in SemEval-2010 if all are relations of it, with
            directions, and else as in TACRED.
        examples: with their labels.
        answers: one label for each, or of `typing` those that hold; an example without one counts as wrong,
            or as one where nothing was found.
        labels: that are told apart, whether or not an example has them.

    Raises:
        UnknownName: if there is no such task.
        UsageError: if an example has no label, two have one id, or an answer can be none.
    """
    _known(task)
    if twice := repeated(one.id for one in examples):
        raise UsageError(f"two examples have the id {twice!r}: score those of one file")
    if lacking := next((one.id for one in examples if one.label is None), None):
        raise UsageError(f"example {lacking} has no label: score on a file with gold")
    if task == "typing":
        typed = [Typed(one.id, "", (0, 0), _several(one.label, f"example {one.id}")) for one in examples]
        types = score_typed(typed, {name: _several(one, f"answer {name}") for name, one in answers.items()})
        return {"f1": types.f1, "precision": types.precision, "recall": types.recall}
    gold = {one.id: _single(one.label, f"example {one.id}") for one in examples}
    single = {name: _single(one, f"answer {name}") for name, one in answers.items()}
    if task == "relation":
        return _relation_scores(gold, single, labels)
    if task == "wic":
        same = {name: value for value, name in _SAME.items()}
        if strange := sorted({*gold.values(), *single.values()} - same.keys()):
            raise UsageError(f"{strange[0]!r} is no answer of {task}: T or F")
        pairs = [WordPair(name, "", "", "", "", same[label]) for name, label in gold.items()]
        return {"accuracy": score_pairs(pairs, {name: same[one] for name, one in single.items()}).accuracy}
    right = sum(single.get(name) == label for name, label in gold.items())
    return {"accuracy": right / max(1, len(gold))}


def _relation_scores(
    gold: Mapping[str, str], answers: Mapping[str, str], labels: Iterable[str]
) -> dict[str, float]:
    relations = [Relation(name, "", (0, 0), (0, 0), label) for name, label in gold.items()]
    told = set(gold.values()) - {OTHER} or set(labels) - {OTHER}  # gold that is all Other tells nothing
    if all(label.endswith(_DIRECTIONS) for label in told):
        directed = score_relations(relations, answers)
        return {"macro_f1": directed.macro_f1, "accuracy": directed.accuracy}
    found = score_tacred(relations, answers)
    return {"f1": found.f1, "precision": found.precision, "recall": found.recall}


def _single(label: Label | None, what: str) -> str:
    if not isinstance(label, str):
        raise UsageError(f"{what} has {'no label' if label is None else 'several labels'}: expected one")
    return label


def _several(label: Label | None, what: str) -> frozenset[str]:
    if not isinstance(label, frozenset):
        raise UsageError(f"{what} has {label!r}: expected a frozenset of labels")
    return label


def _known(task: str) -> None:
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)


def repeated(ids: Iterable[str]) -> str | None:
    """Return an id that comes twice."""
    seen = set[str]()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None
