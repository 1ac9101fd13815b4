"""Masked language models that answer cloze questions: ranks of what is hidden, and guesses about names.

    N  hidden word pieces of a batch    V  the vocabulary    W  its words

Any masked language model is asked in the same way: a pretrained one, a KnowBert with its knowledge bases, or
one that reads vectors of entities in the place of names. `ClozeModel` is what they have in common.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from kgkit.encoder import Encoder
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import UsageError
from kgkit.evaluation.cloze import NAME_TEMPLATE, TOP_NAMES, ClozeGuess, NameQuestion
from kgkit.evaluation.facts import ClozeQuestion
from kgkit.inputs.masking import HiddenPieces, MaskedText, hide
from kgkit.inputs.pieces import PieceTokenizer, WordPieces
from kgkit.inputs.texts import TokenizedText
from kgkit.models.manifest import broken_weights
from kgkit.types import Numbers, Progress

LIKELIEST = 10
"""Words that are kept of each guess."""


class ClozeModel(ABC):
    """A masked language model that is asked cloze questions.

    Args:
        name: name in messages.
        encoder: encoder whose vocabulary answers.
        tokens: what cuts the questions into word pieces.

    Attributes:
        mask: piece [MASK].
        words: whole words of the vocabulary, by their word pieces.

    Raises:
        UsageError: if the tokenizer has no piece [MASK].
    """

    def __init__(self, name: str, encoder: Encoder, tokens: PieceTokenizer) -> None:
        if encoder.tokenizer.mask_token_id is None:
            raise UsageError(
                f"the tokenizer of {encoder.name} has no [MASK]: it cannot be a masked language model"
            )
        self.name, self.encoder, self.mask = name, encoder, int(encoder.tokenizer.mask_token_id)
        self.tokens = tokens
        self.pieces, _ = encoder.word_pieces()
        self.words = {row: word for word, row in vocabulary_words(self.pieces).items()}

    @abstractmethod
    def predict(self, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
        """Return predictions for the masked pieces of the names that questions hide, read at once."""

    def hidden_pieces(self, question: ClozeQuestion) -> Numbers:
        """Return the word pieces of the name that a question hides."""
        pieces = self.tokens(question.text)
        begin, end = pieces.within(*question.span)
        return pieces.ids[begin:end]

    def no_pieces(self, counts: list[int]) -> HiddenPieces:
        """Return predictions where no hidden name fits into a text: none; *counts* are zeros."""
        none = torch.zeros(0, len(self.pieces))
        return HiddenPieces(none, torch.zeros(0, dtype=torch.int64), counts)

    def answer_piece(self, question: ClozeQuestion) -> int | None:
        """Return the word piece that a question's name is; None if it is not a single whole word."""
        pieces = self.hidden_pieces(question)
        return int(pieces[0]) if len(pieces) == 1 and int(pieces[0]) in self.words else None


def name_positions(pieces: WordPieces, question: ClozeQuestion) -> tuple[Numbers, Numbers]:
    """Return the positions of the word pieces of the name that is asked for, and of all that say it."""
    target = np.arange(*pieces.within(*question.span))
    others = [np.arange(*pieces.within(*span)) for span in question.others]
    return target, np.unique(np.concatenate([target, *others]))


class HiddenName(NamedTuple):
    """A question as it was read, with [MASK] for all word pieces that say the name.

    Attributes:
        text: the text; its labels are all pieces that are hidden.
        others: (m,) positions of those that are hidden and not asked for.
    """

    text: MaskedText
    others: Numbers


def hide_names(
    tokens: PieceTokenizer, questions: Sequence[ClozeQuestion], texts: Iterable[TokenizedText], mask: int
) -> tuple[list[int], list[HiddenName | None]]:
    """Return how many word pieces each question asks for, and the question with its name hidden.

    Args:
        tokens: what cut the questions into word pieces.
        questions: questions.
        texts: what was read of each.
        mask: piece [MASK].

    Returns:
        0 and None for a question whose name does not fit into what was read.
    """
    counts, names = list[int](), list[HiddenName | None]()
    before, after = len(tokens.before), len(tokens.after)
    for question, text in zip(questions, texts, strict=True):
        targets, hidden = (
            positions + before for positions in name_positions(tokens(question.text), question)
        )
        fits = len(targets) and hidden[-1] < len(text.ids) - after
        counts.append(len(targets) if fits else 0)
        others = np.setdiff1d(hidden, targets)
        names.append(HiddenName(hide(text, hidden, mask), others) if fits else None)
    return counts, names


# -- asking -----------------------------------------------------------------


def _predict(model: ClozeModel, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
    """Return predictions for the masked pieces of the names that questions hide.

    Raises:
        DamagedModel: if logits are no numbers: none would be above that of the answer, which was the first.
    """
    prediction = model.predict(questions)
    if not bool(prediction.logits.isfinite().all()):
        raise broken_weights(model.name, "gives hidden words no probabilities")
    return prediction


def recall_ranks(
    model: ClozeModel,
    questions: Sequence[ClozeQuestion],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> Iterator[tuple[str, list[int]]]:
    """Yield, of each sentence with a name hidden, its relation and the ranks of the hidden word pieces.

    All pieces of the name are hidden at once. A rank is 1 if no other piece of the vocabulary is thought
    likelier. A sentence whose name does not fit into a text is left out.

    Args:
        model: masked language model.
        questions: sentences with the spans of the names.
        size: sentences that are read at once.
        progress: callback with the number of sentences that are done, of how many.
    """
    for begin in range(0, len(questions), size):
        part = questions[begin : begin + size]
        logits, gold, counts = _predict(model, part)
        ranks = (1 + (logits > logits.gather(-1, gold[:, None])).sum(-1)).tolist()
        for question, count in zip(part, counts, strict=True):
            if count:
                yield question.relation, ranks[:count]
            ranks = ranks[count:]
        if progress is not None:
            progress("scoring", begin + len(part), len(questions))


class ClozeGuesses(NamedTuple):
    """What a model made of questions.

    Attributes:
        guesses: of each question that it can answer.
        no_word: questions whose answer is no single word of the vocabulary.
        too_long: questions that do not fit into what the model reads.
    """

    guesses: list[ClozeGuess]
    no_word: list[ClozeQuestion]
    too_long: list[ClozeQuestion]


def cloze_guesses(
    model: ClozeModel,
    questions: Sequence[ClozeQuestion],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> ClozeGuesses:
    """Return the ranks of the answers among the words of the vocabulary, and among the relation's objects.

    The answer is to be one whole word of the vocabulary, as in LAMA.

    Args:
        model: masked language model.
        questions: questions with a hidden object.
        size: questions that are read at once.
        progress: callback with the number of questions that are done, of how many.
    """
    pieces = [model.answer_piece(question) for question in questions]
    objects: dict[str, set[int]] = {}
    for question, piece in zip(questions, pieces, strict=True):
        if piece is not None:
            objects.setdefault(question.relation, set()).add(piece)
    no_word = [question for question, piece in zip(questions, pieces, strict=True) if piece is None]
    answerable = [question for question, piece in zip(questions, pieces, strict=True) if piece is not None]
    words = torch.tensor(sorted(model.words))  # (W,)
    guesses, too_long = list[ClozeGuess](), list[ClozeQuestion]()
    for begin in range(0, len(answerable), size):
        part = answerable[begin : begin + size]
        prediction = _predict(model, part)
        logits, gold = prediction.logits.cpu(), prediction.gold.cpu()
        fits = [count > 0 for count in prediction.counts]
        too_long += [question for question, fit in zip(part, fits, strict=True) if not fit]
        gold_logits = logits.gather(-1, gold[:, None])  # (N, 1)
        of_words = logits[:, words]  # (N, W)
        ranks = (1 + (of_words > gold_logits).sum(-1)).tolist()
        likeliest = words[of_words.topk(min(LIKELIEST, len(words))).indices].tolist()
        fitting = [question for question, fit in zip(part, fits, strict=True) if fit]
        for row, question in enumerate(fitting):
            own = torch.tensor(sorted(objects[question.relation]))
            object_rank = 1 + int((logits[row, own] > gold_logits[row]).sum())
            best = tuple(model.words[piece] for piece in likeliest[row])
            guesses.append(ClozeGuess(question, ranks[row], object_rank, best))
        if progress is not None:
            progress("scoring", begin + len(part), len(answerable))
    return ClozeGuesses(guesses, no_word, too_long)


def name_guesses(
    model: ClozeModel,
    names: Sequence[NameQuestion],
    *,
    size: int = 32,
    progress: Progress | None = None,
) -> dict[NameQuestion, tuple[str, ...]]:
    """Return the pieces that a model thinks likeliest for each question about a name, the best first.

    As in the released code, all pieces of the vocabulary are compared, not whole words alone. A name that
    does not fit into what the model reads suggests nothing.
    """
    guesses: dict[NameQuestion, tuple[str, ...]] = {}
    for begin in range(0, len(names), size):
        part = names[begin : begin + size]
        logits, _, counts = _predict(model, [_name_question(name) for name in part])
        best = iter(logits.topk(TOP_NAMES).indices.tolist())
        for name, count in zip(part, counts, strict=True):
            rows = [next(best) for _ in range(count)]
            guesses[name] = tuple(model.words.get(row, model.pieces[row]) for row in (rows or [[]])[0])
        if progress is not None:
            progress("names", begin + len(part), len(names))
    return guesses


def _name_question(name: NameQuestion) -> ClozeQuestion:
    """Return the sentence about a name; a letter, one piece in any vocabulary, stands where [MASK] will."""
    text = NAME_TEMPLATE.format(name=name.name, noun=name.noun, answer="a")
    return ClozeQuestion("1.object", name.noun, text, (len(text) - 2, len(text) - 1), "object")
