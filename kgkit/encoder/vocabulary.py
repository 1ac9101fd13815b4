"""The vocabulary of an encoder's tokenizer: which of its pieces are words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_CONTINUED: Final = re.compile("##[A-Za-z]")  # GPT-2 has `##` and `####`, with no letter behind them
_SPECIAL: Final = re.compile(r"\[[^\[\]]+\]|<[^<>]+>")  # [CLS], [unused7], <mask>


def vocabulary_words(pieces: Sequence[str]) -> dict[str, int]:
    """Return word -> row, for the pieces of a tokenizer that are whole words.

    Left out: pieces that continue a word (`##s`), those that only a model
    writes (`[CLS]`, `<s>`), and, where words begin with `Ġ` as in GPT-2's and
    RoBERTa's vocabularies, those beyond ASCII, which are bytes there. Where
    pieces continue words, `Ġ` is a letter, as in Maltese.
    """
    continued = any(map(_CONTINUED.match, pieces))
    for mark in () if continued else ("Ġ", "▁"):
        if any(piece.startswith(mark) and len(piece) > 1 for piece in pieces):
            beginnings = ((piece[1:], row) for row, piece in enumerate(pieces) if piece.startswith(mark))
            return _first((word, row) for word, row in beginnings if word and (mark == "▁" or word.isascii()))
    return _first(
        (piece, row)
        for row, piece in enumerate(pieces)
        if piece and not piece.startswith("##") and not _SPECIAL.fullmatch(piece)
    )


def _first(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    firsts: dict[str, int] = {}
    for word, row in pairs:
        firsts.setdefault(word, row)
    return firsts
