"""What a linker learns from: labelled documents, plain text that a teacher links, usage examples."""

from collections.abc import Iterator, Sequence
from itertools import chain

from kgkit.candidates import Generator
from kgkit.errors import NotThere
from kgkit.kb import KnowledgeBase
from kgkit.linking.head import KIND as HEAD
from kgkit.linking.models import find_scorer
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    MissingGold,
    check_text,
    has_choice,
    labelled_entities,
    labelled_examples,
    labelled_senses,
    no_choice,
    read_letters,
    taught_documents,
)
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.types import Progress


def sources_of(
    kb: KnowledgeBase,
    generator: Generator,
    training: LinkerTraining,
    progress: Progress | None,
    *,
    device: str = "auto",
) -> Iterator[Sequence[LabelledDocument]]:
    """Yield the sets of documents: data, plain text that a teacher reads, examples.

    Gold entities that *kb* does not have are warned of.

    Raises:
        NotThere: if a file is not there, or examples are wanted and there are none.
        SourceError: if a file is not what it should be.
        UsageError: if no mention has a right candidate, and there are no examples either; of a head, if none
            has several candidates, one of which is right.
        UnknownName: if there is no such teacher.
    """
    missing, choice = MissingGold(kb), training.type != HEAD
    teacher = find_scorer(training.teacher, kb, device=device) if training.teacher else None
    if training.task == "text":
        assert teacher is not None
        check_text(kb, generator, training.data, "--data", choice=True)
        parts = [taught_documents(generator, teacher, data) for data in training.data]
    elif training.task == "wsd":
        pairs = zip(training.data, training.gold, strict=True)
        parts = [
            labelled_senses(kb, generator, data, gold, training.candidates, missing) for data, gold in pairs
        ]
    else:
        parts = [labelled_entities(kb, generator, data, missing) for data in training.data]
    if parts:
        listed = list(count_items(chain.from_iterable(parts), "looking up documents", progress))
        listed = hold_out_each_tenth(listed).learn if training.mentions else listed
        choice |= any(map(has_choice, listed))
        yield missing.check(listed, required=not training.examples)
    if training.text:
        assert teacher is not None
        check_text(kb, generator, training.text, "--text", choice=not (choice or training.examples))
        texts = chain.from_iterable(taught_documents(generator, teacher, path) for path in training.text)
        listed = list(count_items(texts, "reading what the teacher says", progress))
        choice |= any(map(has_choice, listed))
        yield listed
    if training.examples:
        documents = labelled_examples(kb, generator, without=read_letters(training.without))
        usage = list(count_items(documents, "looking up examples", progress))
        if not usage:
            raise NotThere(f"knowledge base {kb.name!r} has no usage examples: train without --examples")
        choice |= any(map(has_choice, usage))
        yield usage
    if not choice:
        raise no_choice()
