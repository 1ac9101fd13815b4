"""The rule that KALM with open names is compared with: look-up, in which every open name is of one type.

A word with a capital that the knowledge base lacks may be a name (`kgkit.inputs.kalm`, open names). The rule
says that it is one, of type PER, that of most words in the knowledge base, and looks up all others in the
prior. Nothing is learnt and no context is read, so that a KALM which is no better knows no more than that a
capital inside of a sentence begins a name.

The names that the rule finds in the training text teach a tagger too: what a tagger that a KALM taught has
above that one is the KALM's part in it.
"""

from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from kgkit.evaluation.ner import Name, NamedDocument, NameScores, read_names, score_names, writing_names
from kgkit.inputs.kalm import TypedVocabulary, may_be_names

OPEN_TYPE: Final = "PER"
"""Type of most words in `conll`: 5,651 of 13,706, a word counted for each of its types."""


def find_names(
    document: NamedDocument, vocabulary: TypedVocabulary, open_type: str = OPEN_TYPE
) -> list[Name]:
    """Return the names that the rule finds in the tokens of a document; its own names are not read.

    Args:
        document: document with tokens and sentences.
        vocabulary: vocabulary of a KALM with open names.
        open_type: type of all words that the vocabulary takes for open names.
    """
    text, tokens = document.document.text, document.document.tokens or []
    names = []
    for begin, end in document.document.sentences or []:
        spans = [span for span in tokens if begin <= span[0] < end]
        words = [text[first:last] for first, last in spans]
        ids, capitals = np.array(vocabulary.ids(words), np.int64), np.array(may_be_names(words), np.bool_)
        kinds = vocabulary.prior_of(ids, capitals).argmax(-1)
        prior = vocabulary.prior[ids]
        is_open = vocabulary.members[:, ids].all(0) & (prior == prior[:, :1]).all(-1)
        kinds[is_open] = 1 + vocabulary.types.index(open_type)
        for kind, group in groupby(zip(kinds.tolist(), spans, strict=True), key=lambda pair: pair[0]):
            parts = [span for _, span in group]
            if kind:
                names.append(Name(parts[0][0], parts[-1][1], vocabulary.types[kind - 1]))
    return names


def score_rule(gold: Path, vocabulary: TypedVocabulary) -> NameScores:
    """Return the scores of the names that the rule finds in a labelled file."""
    return sum(
        (
            score_names(named.names, find_names(named, vocabulary), named.document.tokens or ())
            for named in read_names(gold)
        ),
        NameScores(),
    )


def write_labels(gold: Path, vocabulary: TypedVocabulary, out: Path) -> None:
    """Write the documents of a labelled file with the names that the rule finds, not their own."""
    with writing_names(out) as write:
        for named in read_names(gold):
            write(structs.replace(named, names=[]), find_names(named, vocabulary))
