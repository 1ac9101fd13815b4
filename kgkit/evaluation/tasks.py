"""The table of tasks: what each is read from, which labels it has, how its answers are scored.

    classification   the label of a text, or of a pair           accuracy; of labels 0 and 1 F1 too
    pair             the label of a pair                         as classification
    ranking          whether a text answers a question           mean reciprocal rank
    tagging          a tag for each token                        F1 of names with types
    wic              whether a word means the same in a pair     accuracy
    relation         what holds between two names in a text      as SemEval-2010 task 8, TACRED or FewRel
    typing           the types of a name in a text               micro F1
    acceptability    as classification, for CoLA                 Matthews correlation
    regression       a number for a text, or for a pair          mean of Pearson's and Spearman's correlation
    choice           which of several texts is right             accuracy

A row says all that a method needs to know of a task (see `Task`): the kind of its answer decides what a model
learns and answers, the number of marked names which special word pieces it reads. The first score decides
which epoch of a training is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import SourceError, UnknownName, UsageError, abbreviate
from kgkit.evaluation.columns import ScoreColumns, UnitKind
from kgkit.evaluation.examples import (
    Example,
    Order,
    Prediction,
    duplicate_id,
    gold_labels,
    hold_out,
    label_indices,
    list_labels,
    marker_pairs,
    merge_files,
    short_label,
)
from kgkit.evaluation.files import UniqueIds, check_gold_files, missing_gold
from kgkit.evaluation.ner import OUTSIDE
from kgkit.evaluation.records import (
    CHOICE_LAYOUT,
    LABEL_LAYOUT,
    NUMBER_LAYOUT,
    PAIR_LAYOUT,
    RANKING_LAYOUT,
    RELATION_LAYOUT,
    TAGS_LAYOUT,
    TYPES_LAYOUT,
    WIC_LAYOUT,
    Fields,
    Layout,
    LineFormat,
    ParsedRecord,
    Record,
    records_of_lines,
)
from kgkit.evaluation.task_formats import SAME, TYPES, is_fewrel, read_relations, read_types, read_wic
from kgkit.evaluation.task_scores import (
    Predictions,
    accuracy,
    score_acceptability,
    score_answers,
    score_labels,
    score_numbers,
    score_relation,
    score_tags,
    score_types,
)
from kgkit.files import lines

Scores = dict[str, float]
"""Scores by their names, the deciding one first."""

Reader = Callable[[Path, Path | None], Iterable[Example]]

AnswerKind = Literal["label", "labels", "tags", "number", "choice"]
"""One label; any number of labels; a tag for each token; a number; the index of one of several texts."""

_COLUMNS: Final = ("text_a", "sentence1")  # in a first line; other names of texts are words as well
_TYPES: Final[dict[str, tuple[type, str]]] = {
    "label": (str, "a label"),
    "labels": (frozenset, "a frozenset of labels"),
    "tags": (tuple, "a tuple of tags"),
    "number": (float, "a float"),
    "choice": (int, "the index of a choice"),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A row of the table of tasks.

    Attributes:
        name: of the task.
        answer: kind of its answers.
        layout: how examples are made of records.
        scorer: function from examples with gold, the predictions by id of each system, and labels to the
            scores, the deciding one first.
        decides: names that the first score, which decides which epoch is kept, may have.
        reader: function that yields the examples of a file in a format of the task's own; its second argument
            is a file of gold. None where all files are of records.
        keys: names of fields that no record of the task has, but JSON lines in its own format do.
        is_own: function that says whether a file that begins with an object of JSON is in the task's own
            format; None where *keys* say it.
        fixed: labels of the task, where the examples do not decide them.
        names: marked names of the first text.
        gold_files: whether gold may stand in a file of its own.
        order: order of examples from which `hold_out` draws.
        unit: what joins examples that change sides together in a paired test.

    Examples:
        >>> task = find_task("classification")
        >>> examples = task.read(Path("dev.tsv"))
        >>> labels = task.labels(examples)
        >>> predictions = [Prediction(one.id, "1", {"0": 0.2, "1": 0.8}) for one in examples]
        >>> task.score(examples, predictions, labels)
        {'accuracy': 0.5, 'f1': 0.67, 'precision': 0.5, 'recall': 1.0}
    """

    name: str
    answer: AnswerKind
    layout: Layout
    scorer: Callable[[Sequence[Example], Sequence[Predictions], Sequence[str]], list[ScoreColumns]]
    decides: tuple[str, ...] = ("accuracy",)
    reader: Reader | None = None
    keys: frozenset[str] = frozenset()
    is_own: Callable[[Path], bool] | None = None
    fixed: tuple[str, ...] = ()
    names: int = 0
    gold_files: bool = False
    order: Order = "position"
    unit: UnitKind = "group"

    @property
    def markers(self) -> tuple[tuple[str, str], ...]:
        """The special pieces that open and close each marked name."""
        return tuple(marker_pairs(self.names)) if self.names else ()

    def read(self, path: Path | str, gold: Path | str | None = None) -> list[Example]:
        """Return the examples of a file.

        Args:
            path: the file; docs/tasks.md has the kinds of file of each task.
            gold: file of gold that belongs to it, of a task whose gold may stand in one.

        Raises:
            NotThere: if there is no such file.
            UsageError: if *gold* is given and the task has its gold in the files of examples.
            SourceError: if the file is not what it should be, or two examples have one id.
        """
        path, gold = Path(path), None if gold is None else Path(gold)
        if gold is not None and not self.gold_files:
            raise UsageError(f"files of {self.name} have their labels in themselves: leave out {gold}")
        if self.reader is not None and not self._are_records(path):
            return list(self.reader(path, gold))
        if gold is not None:
            raise UsageError(f"{path} has its labels in its own lines: leave out the gold file {gold}")
        return [parsed.example for parsed in self.parse_lines(lines(path), path, plain=False)]

    def read_records(self, path: Path | str, line_format: LineFormat = "auto") -> Iterator[ParsedRecord]:
        """Yield the examples of a file, and the fields of each that the task does not use.

        It reads what `read` reads, and beside it files without gold whose lines are texts and nothing else.
        Ids may come twice.

        Args:
            path: the file.
            line_format: what its lines are; with any but `auto` they are records, not the task's own format.

        Raises (when the first is asked for, or later):
            NotThere: if there is no such file.
            SourceError: if the file is not what it should be.
        """
        path = Path(path)
        if self.reader is None or line_format != "auto" or self._are_records(path, named=True):
            yield from self.parse_lines(lines(path), path, unique=False, line_format=line_format)
        else:
            yield from (ParsedRecord(example, {}) for example in self.reader(path, None))

    def parse_lines(
        self,
        numbered: Iterable[tuple[int, str]],
        path: Path | None = None,
        *,
        plain: bool = True,
        unique: bool = True,
        line_format: LineFormat = "auto",
    ) -> Iterator[ParsedRecord]:
        """Yield the examples of lines of records, one line at a time.

        Args:
            numbered: lines that are not blank, without their ends, with their numbers from 1.
            path: the file that they are of, for errors.
            plain: whether lines may be texts and nothing else.
            unique: whether two equal ids are refused.
            line_format: what the lines are; `lines` takes each whole, with its tabs.

        Raises (when the first is asked for, or later):
            SourceError: if a line is not what it should be, there is none, or two examples have one id.
        """
        records = records_of_lines(numbered, path, self.layout, plain=plain, line_format=line_format)
        return self._parsed(records, path, unique)

    def parse_records(
        self, records: Iterable[Mapping[str, object] | Sequence[str] | str], *, unique: bool = False
    ) -> Iterator[ParsedRecord]:
        """Yield the examples of records that a program has.

        Args:
            records: each a dictionary with the fields of a JSON line; a text; a pair of texts; of `tagging`
                the tokens of a text. Where there is no id, it is the position, from 1.
            unique: whether two equal ids are refused.

        Raises (when the first is asked for, or later):
            SourceError: if a record is not what it should be, or two examples have one id.

        Examples:
            >>> [parsed] = find_task("pair").parse_records([{"text_a": "a", "text_b": "b", "source": 7}])
            >>> parsed.example.texts, parsed.unused
            (('a', 'b'), {'source': 7})
        """
        plain = (
            Record(self._fields(record, position), position, position)
            for position, record in enumerate(records, start=1)
        )
        return self._parsed(plain, None, unique)

    def _parsed(self, records: Iterable[Record], path: Path | None, unique: bool) -> Iterator[ParsedRecord]:
        ids = UniqueIds(path, "record" if path is None else "line") if unique else None
        for record in records:
            fields = Fields(record)
            example = self.layout.example(fields)
            if not example.choices:  # which are put together with their question
                example = example._replace(links=fields.links(example.texts))
            if ids is not None:
                ids.check(example.id, record.number, record.line)
            yield ParsedRecord(example, fields.rest(), record)

    def _fields(self, record: object, position: int) -> Mapping[str, object]:
        if isinstance(record, Mapping):
            return record
        if isinstance(record, str):
            return {"text": record}
        if isinstance(record, Sequence) and all(isinstance(item, str) for item in record):
            if self.answer == "tags":
                return {"tokens": record}
            if len(record) == 2:
                return {"text_a": record[0], "text_b": record[1]}
        raise SourceError(
            f"record {position} is {abbreviate(repr(record))}: expected a dictionary, a text, or "
            + ("the tokens of one" if self.answer == "tags" else "two texts")
        )

    def _are_records(self, path: Path, *, named: bool = False) -> bool:
        """Return whether a file has records: JSON lines, or columns that are *named*, not its own format."""
        first = next(lines(path), (0, ""))[1]
        if not first.lstrip().startswith("{"):
            columns = [name.strip().lower() for name in first.split("\t")]
            return named and not {*columns}.isdisjoint(_COLUMNS)
        if self.is_own is not None and self.is_own(path):
            return False
        try:
            return self.keys.isdisjoint(msgspec.json.decode(first, type=dict[str, object]))
        except (msgspec.MsgspecError, RecursionError):
            return not self.keys

    def read_labelled(self, paths: Sequence[Path], gold: Sequence[Path] = ()) -> list[Example]:
        """Return the examples of several files, as `merge_files` has them; each has gold.

        Args:
            paths: the files.
            gold: files of gold, one for each, or none.

        Raises:
            NotThere, SourceError: as `read` does.
            UsageError: if an example has no gold, or there are not as many files of gold.
        """
        if gold:
            check_gold_files(paths, gold)
        gold_files: Sequence[Path | None] = gold or [None for _ in paths]
        files = [self.read(path, own) for path, own in zip(paths, gold_files, strict=True)]
        for path, examples in zip(paths, files, strict=True):
            self.check_gold(examples, str(path))
        return merge_files(files)

    def check_gold(self, examples: Sequence[Example], what: str) -> None:
        """Refuse examples without gold, before anything is computed.

        Args:
            examples: to learn from, or to score with.
            what: description of them, such as their file, with which the sentence begins.

        Raises:
            UsageError: if one has no gold, or gold of another kind. That no label holds is gold.
        """
        if missing := [example.id for example in examples if example.gold is None]:
            give = "name or place their file of gold" if self.gold_files else "give each a label"
            raise UsageError(
                f"{what}: {len(missing):,} of {len(examples):,} examples have no label, the first is "
                f"{missing[0]}: {give}, or leave them out"
            )
        for example in examples:
            self._check_kind(example.gold, f"{what}: example {example.id}")

    def labels(self, examples: Iterable[Example]) -> tuple[str, ...]:
        """Return the labels, or tags, that a model is to choose from; () where answers are no labels.

        Those of the task or, where the data decide, of the examples, sorted; of tags O comes first.

        Raises:
            UsageError: if an example has no gold.
        """
        if self.fixed or self.answer in ("number", "choice"):
            return self.fixed
        labels = set[str]()
        for example in examples:
            if example.gold is None:
                raise UsageError(f"example {example.id} has no label: nothing can be learnt from it")
            self._check_kind(example.gold, f"example {example.id}")
            labels.update(gold_labels(example))
        if self.answer == "tags":
            return (OUTSIDE, *sorted(labels - {OUTSIDE}))
        return tuple(sorted(labels))

    def specials(self, examples: Iterable[Example]) -> tuple[str, ...]:
        """Return the special word pieces that a tokenizer and its embeddings need for the task.

        They are added once, when a model is made: the tails of *examples* are among them, those of other
        examples are not read by the model.
        """
        tails = sorted({name for example in examples for name in example.tail})
        return (*(piece for pair in self.markers for piece in pair), *tails)

    def hold_out(self, examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
        """Divide examples into those to learn from, and those that choose the epoch; see `hold_out`."""
        return hold_out(examples, self.order)

    def target(self, example: Example, labels: tuple[str, ...]) -> NDArray[np.generic] | None:
        """Return the gold of an example as the numbers that a model learns.

        Args:
            example: of this task.
            labels: as `labels` has them.

        Returns:
            Of a label () int64, its index; of labels (L,) bool, which of them hold; of tags (W,) int64, the
            index of each; of a number () float32; of a choice () int64, its index. None without gold.

        Raises:
            UsageError: if the example has a label that is none of *labels*, or gold of another kind.
        """
        gold = example.gold
        if gold is None:
            return None
        self._check_kind(gold, f"example {example.id}")
        if self.answer == "number":
            return np.array(gold, np.float32)
        if self.answer == "choice":
            return np.array(gold, np.int64)
        indices, own = label_indices(labels), gold_labels(example)
        if unknown := sorted(label for label in {*own} if label not in indices):
            message = f"has the label {short_label(unknown[0])!r}; the labels are: {list_labels(labels)}"
            raise UsageError(f"example {example.id} {message}")
        if self.answer == "labels":
            return np.array([label in own for label in labels], np.bool_)
        if self.answer == "tags":
            return np.array([indices[tag] for tag in own], np.int64)
        return np.array(indices[own[0]], np.int64)

    def score(
        self, examples: Sequence[Example], predictions: Iterable[Prediction], labels: Sequence[str] = ()
    ) -> Scores:
        """Return the scores of predictions; the first decides.

        Args:
            examples: with gold.
            predictions: at most one for each example; those of other ids are not scored. An example without
                counts as wrong, or as one where nothing was found; of `ranking`, `tagging` and `regression`
                each needs one.
            labels: those that the model chooses from, whether or not an example has them.

        Raises:
            UsageError: if an example has no gold, two examples or two predictions have one id, or an answer
                is of another kind than the task's.
        """
        return {each.metric: each.score() for each in self._scores(examples, [predictions], labels)}

    def score_columns(
        self, examples: Sequence[Example], systems: Sequence[Sequence[Prediction]], labels: Sequence[str] = ()
    ) -> ScoreColumns:
        """Return the columns of the first score, for `paired_test` and intervals; see `ScoreColumns`.

        Args:
            examples: N, with gold.
            systems: predictions of each of S systems.
            labels: as for `score`.

        Returns:
            Columns (S, U, C) of U units: groups of examples or, of `wic`, pairs that share sentences.

        Raises:
            UsageError: as `score` does.
        """
        return self._scores(examples, systems, labels)[0].by_unit(examples, self.unit)

    def _scores(
        self, examples: Sequence[Example], systems: Sequence[Iterable[Prediction]], labels: Sequence[str]
    ) -> list[ScoreColumns]:
        if duplicate := duplicate_id(example.id for example in examples):
            raise UsageError(f"two examples have the id {duplicate!r}: score those of one file")
        for example in examples:
            if example.gold is None:
                raise missing_gold(f"example {example.id}")
            self._check_kind(example.gold, f"example {example.id}")
        by_id = [self._by_id(predictions) for predictions in systems]
        return self.scorer(examples, by_id, self.fixed or tuple(labels))

    def _by_id(self, predictions: Iterable[Prediction]) -> dict[str, Prediction]:
        by_id: dict[str, Prediction] = {}
        for prediction in predictions:
            self._check_kind(prediction.answer, f"the answer to {prediction.id}")
            if by_id.setdefault(prediction.id, prediction) is not prediction:
                raise UsageError(f"two predictions have the id {prediction.id!r}: give one for each example")
        return by_id

    def _check_kind(self, value: object, what: str) -> None:
        kind, name = _TYPES[self.answer]
        if not isinstance(value, kind) or isinstance(value, bool) or value != value:  # not a number
            raise UsageError(f"{what} is {abbreviate(repr(value))}; in the task {self.name} it is {name}")


# -- the table --------------------------------------------------------------

_ROWS: Final = (
    Task(name="classification", answer="label", layout=LABEL_LAYOUT, scorer=score_labels, order="id"),
    Task(
        name="acceptability", answer="label", layout=LABEL_LAYOUT, scorer=score_acceptability,
        decides=("matthews",),
    ),
    Task(name="pair", answer="label", layout=PAIR_LAYOUT, scorer=score_labels, order="id"),
    Task(
        name="ranking", answer="label", layout=RANKING_LAYOUT, scorer=score_answers, decides=("mrr",),
        order="id",
    ),
    Task(
        name="tagging", answer="tags", layout=TAGS_LAYOUT, scorer=score_tags, decides=("f1",), order="id"
    ),
    Task(
        name="wic", answer="label", layout=WIC_LAYOUT, scorer=accuracy, reader=read_wic,
        keys=frozenset({"text"}), fixed=tuple(sorted(SAME.values())), gold_files=True, unit="text",
    ),
    Task(
        name="relation", answer="label", layout=RELATION_LAYOUT, scorer=score_relation,
        decides=("macro_f1", "f1"), reader=read_relations, names=2, is_own=is_fewrel,
    ),
    Task(
        name="typing", answer="labels", layout=TYPES_LAYOUT, scorer=score_types, decides=("f1",),
        reader=read_types, keys=frozenset({"mention_span"}), fixed=TYPES, names=1,
    ),
    Task(
        name="regression", answer="number", layout=NUMBER_LAYOUT, scorer=score_numbers,
        decides=("mean_correlation",),
    ),
    Task(name="choice", answer="choice", layout=CHOICE_LAYOUT, scorer=accuracy),
)  # fmt: skip

TASKS: Final[Mapping[str, Task]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every task, by its name."""


def find_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UnknownName: if there is none.
    """
    if name not in TASKS:
        raise UnknownName("task", name, tuple(TASKS))
    return TASKS[name]
