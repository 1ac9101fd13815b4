"""Facts as sentences with a name hidden, to ask a language model for.

Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations", section 4.1: a fact is filled in a
template of its relation, and the word pieces of the subject or of the object are masked. The facts and
templates read here are those of LAMA (Petroni et al. 2019,
"Language Models as Knowledge Bases?"), or plain ones, as JSON lines:

    T-REx        {"sub_label": "Howard Florey", "predicate_id": "P937", "obj_label": "London", "sub_uri": …}
    Google-RE    {"sub_label": "Ada", "pred": "/people/person/place_of_birth", "obj_label": "London", …}
    SQuAD        {"masked_sentences": ["The Normans came from [MASK] ."], "obj_label": "France", …}
    plain        {"subject": "Howard Florey", "relation": "P937", "object": "London"}
    templates    {"relation": "P937", "template": "[X] used to work in [Y] .", …}

A relation of Google-RE is read as the last part of its name, `place_of_birth`, and needs no template of the
user's: `GOOGLE_RE` has those of LAMA. The relation of a sentence of SQuAD is its `sub_label` ("Squad" in the
file of LAMA), or `SQUAD` where it has none. Other keys are ignored. A file may be compressed (`.xz`, `.bz2`,
`.gz`, `.zst`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from kgkit.errors import SourceError, UsageError, abbreviate
from kgkit.files import json_lines
from kgkit.types import Triple

Hidden = Literal["subject", "object"]
"""Which name of a fact is hidden."""

GOOGLE_RE: Final[Mapping[str, str]] = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""The templates of Google-RE, whose files have none (Petroni et al. 2019)."""

MASK: Final = "[MASK]"
"""What stands for the object in sentences that come masked, whatever piece the model has for it."""

SQUAD: Final = "Squad"
"""The relation of a masked sentence that names none, as LAMA's file of SQuAD has it."""

_FORMS: Final = (
    "expected subject, relation and object; sub_label, predicate_id and obj_label (T-REx); sub_label, pred "
    f"and obj_label (Google-RE); or masked_sentences with a {MASK}, and obj_label (SQuAD); none of them empty"
)
_SLOTS: Final[dict[str, Hidden]] = {"[X]": "subject", "[Y]": "object"}
_SLOT: Final = re.compile(r"(\[[XY]\])")


class Fact(NamedTuple):
    """A fact, by the names of its entities.

    Attributes:
        subject: name of the subject; "" for a fact that comes as a sentence.
        relation: name of the relation.
        object: name of the object.
        subject_key: key of the subject in a knowledge base, as Wikidata's; "" if it is not known.
        sentence: sentence that states the fact, `MASK` in the place of the object; "": a template does.
    """

    subject: str
    relation: str
    object: str
    subject_key: str = ""
    sentence: str = ""


class ClozeQuestion(NamedTuple):
    """A fact as a sentence in which one name is to be hidden.

    Attributes:
        id: `N.subject` or `N.object` for the N-th fact of those given, from 1.
        relation: of the fact.
        text: the sentence, with nothing hidden yet.
        span: code points of the name to hide, end exclusive.
        hidden: which name that is.
        subject: code points of the subject; None in a sentence that came masked.
        others: code points of further places that say the same name, which are to be hidden with it.
    """

    id: str
    relation: str
    text: str
    span: tuple[int, int]
    hidden: Hidden
    subject: tuple[int, int] | None = None
    others: tuple[tuple[int, int], ...] = ()

    @property
    def answer(self) -> str:
        """The name that is hidden."""
        return self.text[slice(*self.span)]

    @property
    def fact(self) -> int:
        """The index of the fact among those given, from 0."""
        return int(self.id.partition(".")[0]) - 1


class ClozeQuestions(NamedTuple):
    """Facts as sentences, and what no sentence could be made of.

    Attributes:
        instances: of each fact, in their order: its subject is to be hidden, then its object. A sentence that
            came masked is one alone.
        without_template: how many facts each relation without a template has, by relation.
    """

    instances: list[ClozeQuestion]
    without_template: dict[str, int]


class _Fact(msgspec.Struct, frozen=True):
    subject: str = ""
    relation: str = ""
    object: str = ""
    subject_key: str = ""
    sub_label: str = ""
    predicate_id: str = ""
    pred: str = ""
    obj_label: str = ""
    sub_uri: str | None = ""
    sub_w: str | None = ""
    sub: str | None = ""
    masked_sentences: tuple[str, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    relation: str
    template: str


# -- files ------------------------------------------------------------------


def read_facts(path: Path) -> Iterator[Fact]:
    """Yield the facts of a file, whose lines are of any of these forms.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is no fact, or there are none.
    """
    number = 0
    for number, line, record in json_lines(path, _Fact, "not a fact"):
        fact = _fact(record)
        if fact is None:
            raise SourceError(_FORMS, path=path, line=number, text=line)
        yield fact
    if not number:
        raise SourceError("no fact in it", path=path)


def fact_of(record: Mapping[str, Any]) -> Fact:
    """Return the fact of a line that has been decoded, of any of the forms.

    Raises:
        UsageError: if it is no fact.
    """
    try:
        fact = _fact(msgspec.convert(record, _Fact))
    except msgspec.ValidationError as error:
        raise UsageError(f"not a fact: {error}: {abbreviate(repr(record))}") from None
    if fact is None:
        raise UsageError(f"{_FORMS}: {abbreviate(repr(record))}")
    return fact


def _fact(record: _Fact) -> Fact | None:
    """Return the fact of a line, of whichever form; None if a part of it is missing."""
    relation = record.predicate_id or record.pred.rpartition("/")[2]
    key = record.sub_uri or record.sub_w or record.sub or ""
    forms = (
        Fact(record.subject, record.relation, record.object, record.subject_key),
        Fact(record.sub_label, relation, record.obj_label, key),
    )
    fact = next((fact for fact in forms if all(part.strip() for part in fact[:3])), None)
    if fact is not None or relation or not record.obj_label.strip():
        return fact
    sentence = next((text for text in record.masked_sentences if MASK in text), "")
    relation = record.sub_label if record.sub_label.strip() else SQUAD
    return Fact("", relation, record.obj_label, "", sentence) if sentence else None


FactT = TypeVar("FactT", Fact, Triple)


def draw_facts(facts: list[FactT], limit: int | None, seed: int) -> list[FactT]:
    """Return at most *limit* facts of each relation, drawn at random, in their order; None: all."""
    if limit is None:
        return facts
    counts, chosen = Counter[str](), set[int]()
    for index in np.random.default_rng(seed).permutation(len(facts)).tolist():
        if counts[facts[index].relation] < limit:
            counts[facts[index].relation] += 1
            chosen.add(index)
    return [fact for index, fact in enumerate(facts) if index in chosen]


def read_templates(path: Path) -> dict[str, str]:
    """Return the template of each relation, in the order of the file.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no template with one [X] and one [Y], a relation has two, or there are none.
    """
    templates: dict[str, str] = {}
    for number, line, record in json_lines(path, _Template, "not a template"):
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


def cloze_questions(facts: Iterable[Fact], templates: Mapping[str, str]) -> ClozeQuestions:
    """Return two sentences for each fact, and how many facts have no template.

    Raises:
        UsageError: if a template that is needed has not one [X] and one [Y], or a fact has an empty name.

    Examples:
        >>> questions = cloze_questions([Fact("Ada", "P19", "London")], {"P19": "[X] was born in [Y] ."})
        >>> questions.instances[1]
        ClozeQuestion(id='1.object', relation='P19', text='Ada was born in London .', span=(16, 22), …)
    """
    instances = list[ClozeQuestion]()
    without_template = Counter[str]()
    for number, fact in enumerate(facts, start=1):
        if fact.sentence:
            instances.append(_unmasked(number, fact))
            continue
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
            ClozeQuestion(f"{number}.{name}", fact.relation, text, spans[name], name, spans["subject"])
            for name in _SLOTS.values()
        )
    return ClozeQuestions(instances, dict(sorted(without_template.items())))


def _unmasked(number: int, fact: Fact) -> ClozeQuestion:
    """Return the question of a fact that came as a masked sentence; of several masks the last is asked for.

    Where there are several, the others stand in longer words, as in LAMA's "[MASK]ism".
    """
    parts, text, spans = fact.sentence.split(MASK), "", list[tuple[int, int]]()
    for part in parts[:-1]:
        begin = len(text) + len(part)
        text += part + fact.object
        spans.append((begin, len(text)))
    *others, span = spans
    return ClozeQuestion(
        f"{number}.object", fact.relation, text + parts[-1], span, "object", None, tuple(others)
    )


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
