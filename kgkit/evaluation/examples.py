"""The example: what every task is read as, whatever file it comes from and whichever model it is given to."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np

Gold = str | frozenset[str] | tuple[str, ...] | float | int
"""What is right: a label; the labels that hold; a tag for each token; a number; the index of a choice."""

Probabilities = Mapping[str, float] | tuple[float, ...]
"""How sure an answer is: of each label; or one number for each tag that was answered, or for each choice."""

HELD_OUT: Final = 10
"""One example in so many is held out of training, where no other file chooses the epoch."""

_FEW_HELD_OUT: Final = 20  # of fewer, chance says which epoch scores best
_LONG: Final = 30  # characters of a label that an error shows
_SHOWN: Final = 20  # labels that one lists

Order = Literal["id", "position"]

_log = logging.getLogger(__name__)


class EntityMark(NamedTuple):
    """A mention of an entity in a text of an example.

    Attributes:
        text: index of the text.
        start, end: code points, end exclusive.
        entity: key of the entity in its knowledge base.
    """

    text: int
    start: int
    end: int
    entity: str


class Example(NamedTuple):
    """A text, a pair or several texts, and what is right.

    Attributes:
        id: unique in its file.
        texts: one text, or a pair; of a `choice` its context, none to a pair.
        marks: spans of names in the first text: code points, end exclusive.
        tokens: spans of the tokens of the first text that have tags: code points, end exclusive.
        tail: names of special word pieces that follow the last text, such as the types of names.
        group: key of examples that belong together, such as the answers to one question.
        gold: see `Gold`; None in a file without gold.
        choices: the texts of a `choice`, one of which is right; () in any other task.
        links: entities that the texts mention, for methods that read entities; () where the data say that
            there are none; None where they say nothing, so that a linker is asked.
    """

    id: str
    texts: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    tail: tuple[str, ...] = ()
    group: str = ""
    gold: Gold | None = None
    choices: tuple[str, ...] = ()
    links: tuple[EntityMark, ...] | None = None


class Prediction(NamedTuple):
    """What a model answers to an example.

    Attributes:
        id: of the example.
        answer: of the same type as the gold of the task's examples.
        probabilities: see `Probabilities`; None where there are none, as of numbers.
        tokens: spans of the tokens that tags are of: code points, end exclusive; () in any other task.
    """

    id: str
    answer: Gold
    probabilities: Probabilities | None = None
    tokens: tuple[tuple[int, int], ...] = ()

    @property
    def names(self) -> list[tuple[int, int, str]]:
        """The names that the tags mean, as conlleval reads them: start and end, end exclusive, and type."""
        from kgkit.evaluation.ner import chunks  # here: that module reads files

        if not (self.tokens and isinstance(self.answer, tuple)):
            return []
        return [
            (self.tokens[begin][0], self.tokens[end - 1][1], kind) for begin, end, kind in chunks(self.answer)
        ]


def alternatives(example: Example) -> list[Example]:
    """Return an example for each choice of a `choice`: the context with that choice as the last text.

    A question that follows a context stands before each choice, with a space between, so that none is of more
    than a pair of texts (Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training").

    Args:
        example: one with choices.
    """
    before = [*example.texts[:1]]
    question = "".join(f"{text} " for text in example.texts[1:])
    return [
        example._replace(
            id=f"{example.id}.{index}", texts=(*before, question + choice), group=example.id, gold=None,
            choices=(),
        )
        for index, choice in enumerate(example.choices)
    ]  # fmt: skip


def marker_pairs(names: int) -> list[tuple[str, str]]:
    """Return the special pieces that open and close each of so many names."""
    numbers = [""] if names == 1 else [str(number) for number in range(1, names + 1)]
    return [(f"[E{number}]", f"[/E{number}]") for number in numbers]


def duplicate_id(ids: Iterable[str]) -> str | None:
    """Return the first id that occurs a second time; None if all differ."""
    earlier = set[str]()
    for name in ids:
        if name in earlier:
            return name
        earlier.add(name)
    return None


def merge_files(files: Sequence[Sequence[Example]]) -> list[Example]:
    """Return the examples of all files; of several files ids and groups begin with the file's number."""
    if len(files) == 1:
        return list(files[0])
    return [
        example._replace(
            id=f"{number}.{example.id}", group=f"{number}.{example.group}" if example.group else ""
        )
        for number, examples in enumerate(files, start=1)
        for example in examples
    ]


def warn_of_few_held_out(count: int, noun: str) -> None:
    """Log a warning where so few items are held out that chance chooses the epoch; none choose none.

    Args:
        count: number of held-out items.
        noun: plural of what an item is, as `examples` or `passages`.
    """
    if 0 < count < _FEW_HELD_OUT:
        are_few = f"{noun} are few" if count > 1 else f"{noun.removesuffix('s')} is too few"
        _log.warning(
            "%d held-out %s to choose an epoch by, or to be scored on: give more with --dev", count, are_few
        )


def hold_out(examples: Sequence[Example], by: Order = "position") -> tuple[list[Example], list[Example]]:
    """Divide examples into those to learn from, and a tenth that chooses the epoch.

    Examples of one group stay together. The draw is the same for all seeds of a training; it is random, since
    files may be sorted.

    Args:
        examples: with ids that differ.
        by: order of the groups that are drawn from: of their first examples, or of their keys. An example
            without a group is one of its own, whose key is its id.

    Returns:
        Both parts, in their order. The second is empty where there are fewer than `HELD_OUT` examples, or
        groups.
    """
    keys = [example.group or example.id for example in examples]
    groups = sorted({*keys}) if by == "id" else list(dict.fromkeys(keys))
    if len(examples) < HELD_OUT:
        return list(examples), []
    order = np.random.default_rng(0).permutation(len(groups))
    drawn = {groups[index] for index in order[: len(groups) // HELD_OUT].tolist()}
    return (
        [example for key, example in zip(keys, examples, strict=True) if key not in drawn],
        [example for key, example in zip(keys, examples, strict=True) if key in drawn],
    )


# -- labels -----------------------------------------------------------------


def gold_labels(example: Example) -> tuple[str, ...]:
    """Return the labels, or tags, of an example; () if its gold is none."""
    gold = example.gold
    if isinstance(gold, str):
        return (gold,)
    return tuple(gold) if isinstance(gold, frozenset | tuple) else ()


@cache
def label_indices(labels: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each label."""
    return {label: index for index, label in enumerate(labels)}


def warn_of_labels(labels: Sequence[str], examples: int) -> None:
    """Log a warning where hardly two examples share a label: texts may stand in its column."""
    if 2 * len(labels) > examples:
        _log.warning(
            "%d labels in %d examples, as %r: is that the column of labels?",
            len(labels), examples, short_label(labels[0]),
        )  # fmt: skip


def short_label(label: str) -> str:
    """Return a label as an error shows it: its beginning."""
    return label if len(label) <= _LONG else f"{label[:_LONG]}…"


def list_labels(labels: Sequence[str]) -> str:
    """Return labels as a message lists them: the first ones, each shortened."""
    return ", ".join([*map(short_label, labels[:_SHOWN]), *(["…"] if len(labels) > _SHOWN else [])])
