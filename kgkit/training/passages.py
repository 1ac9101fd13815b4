"""Passages of plain text that masked language models are trained on, and those that are held out."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.errors import UsageError, abbreviate
from kgkit.evaluation.examples import warn_of_few_held_out
from kgkit.evaluation.plain_text import read_plain
from kgkit.inputs.passages import (
    MeasuredSentence,
    Passage,
    measure_sentences,
    passage_pairs,
    single_passages,
)
from kgkit.methods.settings import TaskTraining
from kgkit.training.data import HeldOut, count_items
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.inputs.texts import TextReader

_TEXTS_HELD_OUT: Final = 50  # one document of plain text in so many
_PASSAGES: Final = 200  # that choose the epoch, at most


def passages_of(
    training: TaskTraining, reader: "TextReader", *, paired: bool, progress: Progress | None
) -> HeldOut[Passage]:
    """Return the passages of the data; single ones are held out, `_PASSAGES` at most.

    Args:
        training: settings, which name the files.
        reader: reader of the passages.
        paired: whether what follows is predicted.
        progress: callback with the number of documents that have been read.

    Raises:
        NotThere, SourceError: as `read_plain` does.
        UsageError: if nothing can be learnt from them.
    """
    tokens, room = reader.tokens, reader.room(1)
    longest = reader.room(2) // 2 if paired else room
    learnt: list[list[MeasuredSentence]] = []
    held_out_texts: list[list[MeasuredSentence]] = []
    documents = count_items(
        chain.from_iterable(map(read_plain, training.data)), "reading documents", progress
    )
    for number, document in enumerate(documents):
        is_held_out = not training.dev and number % _TEXTS_HELD_OUT == _TEXTS_HELD_OUT - 1
        into, most = (held_out_texts, room) if is_held_out else (learnt, longest)
        into += measure_sentences([document], tokens, most)
    held_out_texts += measure_sentences(chain.from_iterable(map(read_plain, training.dev)), tokens, room)
    if training.dev and not held_out_texts:
        raise _no_pieces(training.dev, "there is nothing to choose the epoch by")
    if paired:
        drawn = np.random.default_rng(training.seed)
        learn = list(passage_pairs(learnt, tokens, reader.room(2), drawn))
    else:
        learn = list(single_passages(learnt, room))
    if not learnt:
        raise _no_pieces(training.data, "there is nothing to learn")
    if not learn:
        raise UsageError("there is nothing to learn: the only document has no sentence that another follows")
    held_out = list(single_passages(held_out_texts, room))[:_PASSAGES]
    warn_of_few_held_out(len(held_out), "passages")
    return HeldOut(learn, held_out)


def _no_pieces(files: Sequence[Path], lacking: str) -> UsageError:
    """Return the error that the texts of files have no word piece; *lacking* is what follows of it."""
    names = ", ".join(map(str, files))
    first = next((sentence for path in files for document in read_plain(path) for sentence in document), "")
    return UsageError(
        f"{lacking}: the encoder has no word piece for any text of {names}, which begins with "
        f"{abbreviate(repr(first))}; name a file of plain text in its language"
    )
