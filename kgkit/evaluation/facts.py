"""What a language model recalls of facts: facts as sentences with a name hidden, and the score of guesses.

Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations", section 4.1: a fact is filled in a
template of its relation, the word pieces of the subject or of the object are masked, and the model is scored
by the rank that it gives to each. The facts and templates read here are those of LAMA (Petroni et al. 2019,
"Language Models as Knowledge Bases?"), or plain ones, as JSON lines:

    facts        {"sub_label": "Howard Florey", "predicate_id": "P937", "obj_label": "London", …}
                 {"subject": "Howard Florey", "relation": "P937", "object": "London"}
    templates    {"relation": "P937", "template": "[X] used to work in [Y] .", …}

Other keys are ignored. A file may be compressed (`.xz`, `.bz2`, `.gz`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import lines

Hidden = Literal["subject", "object"]
"""Which name of a fact is hidden."""

_SLOTS: Final[dict[str, Hidden]] = {"[X]": "subject", "[Y]": "object"}
_SLOT: Final = re.compile(r"(\[[XY]\])")


class Fact(NamedTuple):
    """A fact, by the names of its entities."""

    subject: str
    relation: str
    object: str


class Probe(NamedTuple):
    """A fact as a sentence in which one name is to be hidden.

    Attributes:
        id: `N.subject` or `N.object` for the fact at place N, from 1, of those given.
        relation: of the fact.
        text: the sentence, with nothing hidden yet.
        span: code points of the name to hide, end exclusive.
        hidden: which name that is.
    """

    id: str
    relation: str
    text: str
    span: tuple[int, int]
    hidden: Hidden


class Probes(NamedTuple):
    """Facts as sentences, and what no sentence could be made of.

    Attributes:
        instances: two of each fact, in the order of the facts: its subject is to be hidden, then its object.
        without_template: how many facts each relation without a template has, by relation.
    """

    instances: list[Probe]
    without_template: dict[str, int]


class RecallScore(NamedTuple):
    """How well facts were recalled.

    Attributes:
        mrr: mean reciprocal rank of all hidden word pieces, in [0, 1]; 0 if there are none.
        relations: of each relation the same, and its number of instances.
        instances: how many there are.
        pieces: how many word pieces were hidden.
    """

    mrr: float
    relations: dict[str, tuple[float, int]]
    instances: int
    pieces: int


class _Fact(msgspec.Struct, frozen=True):
    subject: str = ""
    relation: str = ""
    object: str = ""
    sub_label: str = ""
    predicate_id: str = ""
    obj_label: str = ""


class _Template(msgspec.Struct, frozen=True):
    relation: str
    template: str


# -- files ------------------------------------------------------------------


def read_facts(path: Path) -> Iterator[Fact]:
    """Yield the facts of a file, of either form.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is no fact, or there are none.
    """
    number = 0
    for number, line in lines(path):
        try:
            record = msgspec.json.decode(line, type=_Fact)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SourceError(f"not a fact: {error}", path=path, line=number, text=line) from None
        plain = Fact(record.subject, record.relation, record.object)
        lama = Fact(record.sub_label, record.predicate_id, record.obj_label)
        fact = next((names for names in (plain, lama) if all(part.strip() for part in names)), None)
        if fact is None:
            raise SourceError(
                "expected subject, relation and object, or sub_label, predicate_id and obj_label, none empty",
                path=path, line=number, text=line,
            )  # fmt: skip
        yield fact
    if not number:
        raise SourceError("no fact in it", path=path)


def read_templates(path: Path) -> dict[str, str]:
    """Return the template of each relation, in the order of the file.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no template with one [X] and one [Y], a relation has two, or there are none.
    """
    templates: dict[str, str] = {}
    for number, line in lines(path):
        try:
            record = msgspec.json.decode(line, type=_Template)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SourceError(f"not a template: {error}", path=path, line=number, text=line) from None
        if not record.relation or record.relation in templates:
            problem = f"a second template of {record.relation!r}" if record.relation else "an empty relation"
            raise SourceError(problem, path=path, line=number, text=line)
        if _parts(record.template) is None:
            raise SourceError(
                "expected one [X] for the subject and one [Y] for the object",
                path=path, line=number, text=record.template,
            )  # fmt: skip
        templates[record.relation] = record.template
    if not templates:
        raise SourceError("no template in it", path=path)
    return templates


def _parts(template: str) -> list[str] | None:
    """Return what a template is made of, its slots among it; None if these are not one [X] and one [Y]."""
    parts = _SLOT.split(template)
    return parts if sorted(parts[1::2]) == sorted(_SLOTS) else None


# -- instances --------------------------------------------------------------


def probes(facts: Iterable[Fact], templates: Mapping[str, str]) -> Probes:
    """Return two sentences for each fact, and how many facts have no template.

    Raises:
        UsageError: if a template that is needed has not one [X] and one [Y], or a fact has an empty name.

    Example:
        >>> found = probes([Fact("Ada", "P19", "London")], {"P19": "[X] was born in [Y] ."})
        >>> found.instances[1]
        Probe(id='1.object', relation='P19', text='Ada was born in London .', span=(16, 22), hidden='object')
    """
    instances = list[Probe]()
    without_template = Counter[str]()
    for number, fact in enumerate(facts, start=1):
        if fact.relation not in templates:
            without_template[fact.relation] += 1
            continue
        parts = _parts(templates[fact.relation])
        if parts is None:
            raise UsageError(
                f"the template of {fact.relation!r} is {templates[fact.relation]!r}: "
                "it needs one [X] for the subject and one [Y] for the object"
            )
        if not (fact.subject and fact.object):
            raise UsageError(f"fact {number} has an empty name, which cannot be hidden: {fact}")
        text, spans = _filled(parts, fact)
        instances += (
            Probe(f"{number}.{name}", fact.relation, text, spans[name], name) for name in _SLOTS.values()
        )
    return Probes(instances, dict(sorted(without_template.items())))


def _filled(parts: Iterable[str], fact: Fact) -> tuple[str, dict[Hidden, tuple[int, int]]]:
    """Return the sentence of a fact, and where its names stand; one that looks like a place is not filled."""
    names: dict[Hidden, str] = {"subject": fact.subject, "object": fact.object}
    text, spans = "", dict[Hidden, tuple[int, int]]()
    for part in parts:
        slot = _SLOTS.get(part)
        added = part if slot is None else names[slot]
        if slot is not None:
            spans[slot] = len(text), len(text) + len(added)
        text += added
    return text, spans


# -- score ------------------------------------------------------------------


def score_recall(ranks: Iterable[tuple[str, Sequence[int]]]) -> RecallScore:
    """Score the ranks of what was hidden.

    The mean is over word pieces, as published: a name of several counts as often as it has some.

    Args:
        ranks: of each instance its relation, and the ranks from 1 of its hidden word pieces.

    Raises:
        UsageError: if an instance has no rank, or one below 1.
    """
    totals: dict[str, tuple[float, int, int]] = {}
    for position, (relation, own_ranks) in enumerate(ranks, start=1):
        if not len(own_ranks) or min(own_ranks) < 1:
            problem = f"the rank {min(own_ranks)}" if len(own_ranks) else "no ranks"
            raise UsageError(
                f"instance {position}, of {relation!r}, has {problem}: each hidden piece needs 1 or more"
            )
        total, pieces, count = totals.get(relation, (0.0, 0, 0))
        totals[relation] = total + sum(1 / rank for rank in own_ranks), pieces + len(own_ranks), count + 1
    total, pieces, instances = (sum(column) for column in zip((0, 0, 0), *totals.values(), strict=True))
    relations = {name: (total / pieces, count) for name, (total, pieces, count) in sorted(totals.items())}
    return RecallScore(total / max(1, pieces), relations, int(instances), int(pieces))
