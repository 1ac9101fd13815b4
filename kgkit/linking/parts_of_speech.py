"""The part of speech that a mention has in its context, from what a linker's encoder has read.

    p(t | m)  = softmax over t of (W h(m) + b)       t: noun, verb, adjective, adverb, none of these
    p(e | m)  = p(t(e) | m) · p(e | m) / Σ p(e' | m)     over the candidates e' of the part of speech of e

Of the t those take part that a candidate has, and none: what a word means where it is none, as *after* before
a noun, is no entity. A function word is none where all five together make it another part of speech than its
candidates have: *can* is no noun where it is a verb. A mention whose lemma or part of speech is given keeps
its scores.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.candidates.spelling import FUNCTION_WORDS
from kgkit.linking.scoring import Scores, shares
from kgkit.models.arrays import check_numbers, read_array
from kgkit.models.manifest import damaged
from kgkit.types import NO_CANDIDATES, Candidates, Matrix, Mention

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

FILE: Final = "parts_of_speech.npy"
ORDER: Final = "nvar"
"""Parts of speech, in the order of the columns of weights; behind them is none of these."""


class PartsOfSpeech:
    """Multiplies scores with the probability that a mention has the part of speech of a candidate.

    Args:
        weights: (W + 1, 5), the last row being b.
        kb: knowledge base of the candidates.
    """

    def __init__(self, weights: Matrix, kb: "KnowledgeBase") -> None:
        self.weights = weights.astype(np.float32)
        bits = np.array([kb.pos_bits(pos) for pos in ORDER], np.uint8)
        self._columns = (np.arange(256)[:, None] & bits) > 0  # (256, 4), by the bits of an entity
        self._bits = np.frombuffer(kb.class_bits(), np.uint8)

    @classmethod
    def load(cls, folder: Path, width: int, kb: "KnowledgeBase") -> "PartsOfSpeech | None":
        """Return those of the model in *folder*, None if it has none.

        Raises:
            DamagedModel: if they are not for mentions of *width* numbers.
        """
        if not (folder / FILE).is_file():
            return None
        weights = read_array(folder / FILE)
        if weights.shape != (expected := (width + 1, len(ORDER) + 1)):
            raise damaged(folder, f"{FILE} has the shape {weights.shape}, expected {expected}")
        check_numbers(folder, FILE, weights)
        return cls(weights, kb)

    def __call__(self, mentions: Sequence[Mention], hidden: Matrix, scores: Sequence[Scores]) -> list[Scores]:
        """Return the scores of the candidates of each mention, (C,).

        Args:
            mentions: M mentions.
            hidden: (M, W) vectors of the mentions, as a head takes them.
            scores: (C,) for each mention, without parts of speech.
        """
        logits = hidden @ self.weights[:-1] + self.weights[-1]
        return [
            score if mention.lemma or mention.pos else self._weighed(mention, logit, score)
            for mention, logit, score in zip(mentions, logits, scores, strict=True)
        ]

    def agree(self, mentions: Sequence[Mention], hidden: Matrix) -> NDArray[np.bool_]:
        """Say of each mention whether it is no function word of a part of speech that no candidate has, (M,).

        Args:
            mentions: M mentions.
            hidden: (M, W) vectors of the mentions.
        """
        result = np.ones(len(mentions), np.bool_)
        for row, mention in enumerate(mentions):
            if mention.text.lower() in FUNCTION_WORDS and not (mention.lemma or mention.pos):
                classes = self.classes(mention.candidates)
                best = (hidden[row] @ self.weights[:-1] + self.weights[-1]).argmax()
                if (classes.sum(axis=1) == 1).all():
                    result[row] = np.append(classes.any(axis=0), False)[best]
        return result

    def classes(self, candidates: Candidates | None) -> NDArray[np.bool_]:
        """Return whether each candidate has each of the parts of speech, (C, 4)."""
        return self._columns[self._bits[(candidates or NO_CANDIDATES).ids]]

    def _weighed(self, mention: Mention, logits: Scores, scores: Scores) -> Scores:
        classes = self.classes(mention.candidates)
        if not len(scores) or not (classes.sum(axis=1) == 1).all():  # one may be anything
            return scores
        present = np.append(classes.any(axis=0), True)
        weights = np.where(present, np.exp(logits - logits[present].max()), 0)
        result, total = np.empty_like(scores), scores.sum() / weights.sum()
        for column, weight in zip(classes.T, weights.tolist(), strict=False):
            result[column] = shares(scores[column]) * total * weight
        return result
