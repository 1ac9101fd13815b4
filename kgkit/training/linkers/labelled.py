"""Training data: documents whose mentions have candidates, and which of them are right.

wsd        the files of the unified framework; candidates by lemma and part of speech, or by surface alone
examples   the usage examples that a KB has of its entities (WordNet's), as documents of one mention
"""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.candidates import Generator, with_candidates
from kgkit.errors import UsageError
from kgkit.evaluation.el_files import GoldDocument, Labelled
from kgkit.evaluation.el_formats import read_gold_data
from kgkit.evaluation.wsd import check_instances, plain_key, read_documents, read_gold
from kgkit.linking.corrections import Corrections
from kgkit.training.data import count_items
from kgkit.types import NO_CANDIDATES, Candidates, Document, Mention, Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

log = logging.getLogger(__name__)

_LETTERS = re.compile(r"[^a-z]+")
_MARKERS = ("", "(a)", "(p)", "(ip)")  # of adjectives: where they may stand


class LabelledDocument(NamedTuple):
    """A document with gold.

    Attributes:
        document: its mentions have candidates.
        right: for each mention a mask (C,) bool of the right candidates; all false if none is right.
        lost: number of mentions of the data whose gold is no candidate, or that were not found.
        unmatched: indices of the mentions whose gold entity is none of their candidates.
    """

    document: Document
    right: list[NDArray[np.bool_]]
    lost: int = 0
    unmatched: frozenset[int] = frozenset()

    @property
    def candidates(self) -> list[Candidates]:
        """The candidates of each mention."""
        return [mention.candidates or NO_CANDIDATES for mention in self.document.mentions or ()]


class MissingGold:
    """Counts the gold entities of training data that a knowledge base does not have.

    Args:
        kb: knowledge base that is linked to.

    Attributes:
        labelled: number of mentions that have a gold entity.
        mentions: number of those whose gold entity *kb* does not have.
        missing: keys of these entities.
    """

    def __init__(self, kb: "KnowledgeBase") -> None:
        self.kb, self.labelled, self.mentions = kb, 0, 0
        self.missing: set[str] = set()

    def note(self, gold: str, *, in_kb: bool) -> None:
        """Count a mention whose gold entity is *gold*."""
        self.labelled += 1
        if not in_kb:
            self.mentions += 1
            self.missing.add(gold)

    def check(self, labelled: "list[LabelledDocument]", *, required: bool = True) -> "list[LabelledDocument]":
        """Return documents of training data; what *kb* lacks of their gold is warned of.

        Args:
            labelled: documents, in which this object has counted.
            required: whether something is to be learnt from them.

        Raises:
            UsageError: if they are required, and no mention has a right candidate.
        """
        if required and not any(right.any() for document in labelled for right in document.right):
            raise self.error()
        self.warn()
        return labelled

    def error(self) -> UsageError:
        """Return the error for data without examples; it names *kb* if that lacks most gold entities."""
        if not self.labelled:
            return UsageError(
                f"no training examples: the data have no link to an entity of {self.kb.name}. `kgkit link` "
                "writes links, to be corrected and given here"
            )
        message = "no training examples: no mention has its gold entity among its candidates"
        if 2 * self.mentions > self.labelled:
            message += (
                f"; the gold entities of {self.mentions:,} of {self.labelled:,} mentions are not in the "
                f"knowledge base {self.kb.name}@{self.kb.build}: was it built from the source that the data "
                "were labelled with?"
            )
        return UsageError(message)

    def warn(self, consequence: str = "are not trained on") -> None:
        """Log how many gold entities are missing, if any are, and what their mentions do then."""
        if self.missing:
            log.warning(
                "%s gold entities, of %s of %s mentions, are not in the knowledge base: these mentions %s",
                *(f"{count:,}" for count in (len(self.missing), self.mentions, self.labelled)),
                consequence,
            )


def labelled_files(
    kb: "KnowledgeBase",
    generator: Generator,
    data: Sequence[Path],
    gold: Sequence[Path | None],
    progress: Progress | None,
    *,
    lemmas: bool = False,
) -> list[LabelledDocument]:
    """Return the documents of data sets: of senses where a set has gold in *gold*, else of entities.

    Raises:
        NotThere, SourceError: as `labelled_senses` and `labelled_spans` do.
        UsageError: if no mention has a right candidate.
    """
    missing = MissingGold(kb)
    sets = (
        labelled_spans(kb, generator, path, missing)
        if own_gold is None
        else labelled_senses(kb, generator, path, own_gold, missing, lemmas=lemmas)
        for path, own_gold in zip_longest(data, gold)
    )
    labelled = count_items(chain.from_iterable(sets), "looking up documents", progress)
    return missing.check(list(labelled))


def labelled_senses(
    kb: "KnowledgeBase",
    generator: Generator,
    data: Path,
    gold: Path,
    missing: MissingGold | None = None,
    *,
    lemmas: bool = False,
) -> Iterator[LabelledDocument]:
    """Yield the documents of a data set of senses.

    Args:
        kb: knowledge base whose senses the gold names.
        generator: generator of the candidates.
        data, gold: file of documents, and file of their senses.
        missing: counter of senses that *kb* does not have.
        lemmas: whether candidates are those of the gold lemma and part of speech, not of the span as it is
            written.

    Raises:
        NotThere, SourceError: as `read_documents` and `read_gold` do; behind the last document, if an
            instance of *gold* is not in *data*.
    """
    keys, instances = read_gold(gold), set[str]()
    names = _Names(kb)
    for document in read_documents(data):
        instances.update(mention.id for mention in document.mentions or ())
        mentions = [
            mention if lemmas else structs.replace(mention, lemma="", pos="")
            for mention in document.mentions or ()
        ]
        [read] = generator([structs.replace(document, mentions=mentions)])
        right = [
            names.among((mention.candidates or NO_CANDIDATES).senses, keys.get(mention.id, ()))
            for mention in read.mentions or ()
        ]
        for mention, which in zip(read.mentions or (), right, strict=True):
            if missing is not None and (senses := keys.get(mention.id, ())):
                missing.note(senses[0], in_kb=bool(which.any()) or names.has(senses))
        yield LabelledDocument(read, right)
    check_instances(keys, instances, gold)


def labelled_entities(
    kb: "KnowledgeBase",
    generator: Generator,
    data: Path,
    missing: MissingGold | None = None,
    corrections: Corrections | None = None,
) -> Iterator[LabelledDocument]:
    """Yield the documents of a data set of entities; a NIL mention has no right candidate.

    Entities that *kb* does not have are counted by *missing*; corrections are those of `read_corrected`.

    Raises:
        NotThere, MissingExtra, SourceError: as `read_gold_data` does.
    """
    entities = Entities(kb, missing)
    for labelled in read_corrected(data, corrections):
        [read] = generator([with_candidates(kb, labelled.document, labelled.candidates)])
        right = [
            np.isin((mention.candidates or NO_CANDIDATES).ids, entities(label))
            for mention, label in zip(read.mentions or (), labelled.gold, strict=True)
        ]
        yield LabelledDocument(read, right)


def read_corrected(data: Path, corrections: Corrections | None) -> Iterator[GoldDocument]:
    """Yield the documents of a data set of entities.

    With *corrections*, documents have corrected mentions, and those in which none is about a place or this
    document are left out: nobody has read them.

    Raises:
        NotThere, MissingExtra, SourceError: as `read_gold_data` does.
    """
    count = kept = 0
    for labelled in read_gold_data(data):
        read = labelled if corrections is None else _corrected(labelled, corrections)
        count += 1
        if read is not None:
            kept += 1
            yield read
    if kept < count:
        log.warning(
            "%s of %s documents of %s are left out, since nothing in them was corrected",
            f"{count - kept:,}", f"{count:,}", data,
        )  # fmt: skip


def none_corrected(data: Sequence[Path], corrections: Path) -> UsageError:
    """Return the error for corrections that are about none of the documents."""
    named = ", ".join(map(str, data))
    return UsageError(
        f"no correction of {corrections} is about one of the texts of {named}: --data are the documents as "
        "`kgkit link` wrote them, and corrections of every text do not say which was read"
    )


def _corrected(labelled: GoldDocument, corrections: Corrections) -> GoldDocument | None:
    """Return a document with corrected mentions; None if no correction is about one of its places or itself.

    Its other mentions count as right: of corrections alone, which contradict what was linked, a linker would
    learn that the likeliest entity is always wrong.
    """
    document = labelled.document
    entities = {
        (mention.start, mention.end): entity
        for mention, entity in zip(document.mentions or (), labelled.entities, strict=True)
    }
    found = corrections.spans(document.id, document.text, entities)
    if not any(row.is_place or row.document for row in found.values()):
        return None
    taken = {at for (start, end), row in found.items() if row.entity for at in range(start, end)}
    gold = {span: entity for span, entity in entities.items() if taken.isdisjoint(range(*span))}
    gold |= {span: row.entity or None for span, row in found.items()}
    mentions = [Mention(start, end, document.text[start:end]) for start, end in sorted(gold)]
    return GoldDocument(structs.replace(document, mentions=mentions), [gold[span] for span in sorted(gold)])


def labelled_spans(
    kb: "KnowledgeBase", generator: Generator, data: Path, missing: MissingGold | None = None
) -> Iterator[LabelledDocument]:
    """Yield the documents of a data set of entities, with all mentions that *generator* finds in them.

    Those whose span is that of a mention of the data may have right candidates, the others have none: so a
    linker learns, too, what means nothing (Peters et al. 2019, section 4.1). Mentions of the data that are
    not found, and have candidates, are added. Candidates that the data name are not read.

    Args:
        kb: whose entities the data mean.
        generator: finds the mentions.
        data: the file.
        missing: counts entities that *kb* does not have.

    Raises:
        NotThere, MissingExtra, SourceError: as `read_gold_data` does.
    """
    entities = Entities(kb, missing)
    for labelled in read_gold_data(data):
        document = structs.replace(
            labelled.document,
            mentions=[
                structs.replace(mention, candidates=None) for mention in labelled.document.mentions or ()
            ],
        )
        [generated] = generator([structs.replace(document, mentions=None)])
        [own] = generator([document])
        spans = {(mention.start, mention.end) for mention in generated.mentions or ()}
        missed = [
            mention
            for mention in own.mentions or ()
            if (mention.start, mention.end) not in spans and mention.candidates
        ]
        mentions = sorted(
            [*(generated.mentions or ()), *missed], key=lambda mention: (mention.start, mention.end)
        )
        gold = {(label.start, label.end): entities(label) for label in labelled.gold}
        right = [
            np.isin((mention.candidates or NO_CANDIDATES).ids, gold.get((mention.start, mention.end), []))
            for mention in mentions
        ]
        lost = sum(title is not None for title in labelled.entities) - sum(
            bool(mention.any()) for mention in right
        )
        labelled_gold = zip(document.mentions or (), labelled.entities, strict=True)
        named = {(mention.start, mention.end) for mention, title in labelled_gold if title is not None}
        unmatched = frozenset(
            index
            for index, mention in enumerate(mentions)
            if (mention.start, mention.end) in named and not right[index].any()
        )
        yield LabelledDocument(structs.replace(generated, mentions=mentions), right, lost, unmatched)


def labelled_examples(
    kb: "KnowledgeBase", generator: Generator, *, without: frozenset[str] = frozenset()
) -> Iterator[LabelledDocument]:
    """Yield the usage examples of entities, each with the mention that it illustrates.

    The longest span whose candidates hold the entity is the mention; an example without one is left out.

    Args:
        kb: whose entities have an attribute `examples`.
        generator: finds the mentions.
        without: `letters` of sentences that must not be seen.
    """
    for entity in kb:
        for number, text in enumerate(entity.attributes.get("examples", ())):
            if letters(text) in without:
                continue
            [generated] = generator([Document(f"{entity.key}:{number}", text)])
            illustrated = [
                mention
                for mention in generated.mentions or ()
                if mention.candidates and (mention.candidates.ids == entity.id).any()
            ]
            if illustrated:
                mention = max(illustrated, key=lambda mention: mention.end - mention.start)
                assert mention.candidates is not None
                yield LabelledDocument(
                    structs.replace(generated, mentions=[mention]), [mention.candidates.ids == entity.id]
                )


def letters(text: str) -> str:
    """Return the letters a to z of *text*, lowercased: sentences that differ otherwise are one."""
    return _LETTERS.sub("", text.lower())


class Entities:
    """The ids of gold entities, remembered; those that there are none of are counted."""

    def __init__(self, kb: "KnowledgeBase", missing: MissingGold | None) -> None:
        self._kb, self._missing = kb, missing
        self._ids: dict[str, int] = {}

    def __call__(self, label: Labelled) -> list[int]:
        """Return the ids of the entities of a mention that the KB has."""
        for title in label.entities:
            if title not in self._ids:
                entity = self._kb.get(title)
                self._ids[title] = -1 if entity is None else entity.id
        ids = [self._ids[title] for title in label.entities if self._ids[title] >= 0]
        if self._missing is not None and label.entity is not None:
            self._missing.note(label.entity, in_kb=bool(ids))
        return ids


class _Names:
    """The keys of senses, remembered; without the marker of adjectives, as gold files have them."""

    def __init__(self, kb: "KnowledgeBase") -> None:
        self._kb = kb
        self._names: dict[int, str] = {}

    def among(self, senses: NDArray[np.uint32], keys: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return (C,) which of *senses* have one of the *keys*."""
        return np.array([self._name(sense) in keys for sense in senses.tolist()], np.bool_)

    def has(self, keys: tuple[str, ...]) -> bool:
        """Say whether the KB has one of the *keys*, whatever marker its own have."""
        return any(key.replace("%", f"{marker}%", 1) in self._kb for key in keys for marker in _MARKERS)

    def _name(self, sense: int) -> str:
        name = self._names.get(sense)
        if name is None:
            name = plain_key(self._kb.key(sense)) if sense in self._kb else ""
            self._names[sense] = name
        return name
