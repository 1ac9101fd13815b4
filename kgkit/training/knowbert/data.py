"""What the linkers of a KnowBert are trained on: documents with links, and those that are held out."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from kgkit.inputs.knowledge import knowledge_of
from kgkit.kb import KnowledgeBase
from kgkit.methods.knowbert_settings import KnowBertTraining, Supervision
from kgkit.training.data import HeldOut, count_items, hold_out_each_tenth
from kgkit.training.knowbert.linking_batches import LinkingExample, read_linking_examples
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    labelled_files,
)
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.inputs.knowbert import KnowBertReader


def links_of(
    training: KnowBertTraining, kb: KnowledgeBase, progress: Progress | None
) -> HeldOut[LabelledDocument]:
    """Return the documents of the tasks `wsd` and `el`.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """

    def read(data: Sequence[Path], gold: Sequence[Path]) -> list[LabelledDocument]:
        golds = gold if training.task == "wsd" else [None for _ in data]
        return supervised(list(map(Supervision, repeat(kb.name), data, golds)), kb, progress)

    learn = read(training.data, training.gold)
    if training.dev:
        return HeldOut(learn, read(training.dev, training.dev_gold))
    return hold_out_each_tenth(learn)


def supervised(
    files: Sequence[Supervision], kb: KnowledgeBase, progress: Progress | None
) -> list[LabelledDocument]:
    """Return the documents of files, whose mentions have as many candidates in *kb* as are read.

    Raises: as `links_of` does.
    """
    data, gold = [file.data for file in files], [file.gold for file in files]
    return labelled_files(kb, knowledge_of(kb, ()).generator, data, gold, progress)


def linking_examples(
    documents: Iterable[LabelledDocument],
    reader: "KnowBertReader",
    kb: str,
    *,
    null: bool,
    progress: Progress | None,
) -> list[LinkingExample]:
    """Return documents as they are read; see `read_linking_examples`."""
    examples = read_linking_examples(documents, reader, kb, null=null)
    return list(count_items(examples, "reading linking examples", progress))
