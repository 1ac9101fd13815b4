"""From documents to the numbers that heads and linkers take: word pieces, windows, vectors of mentions."""

from kgkit.inputs.knowbert import KnowBertReader, Knowledge
from kgkit.inputs.pieces import Pieces, Tokens
from kgkit.inputs.spans import SpanConfig, SpanReader
from kgkit.inputs.trees import TreeReader
from kgkit.inputs.windows import Window, windows

__all__ = [
    "KnowBertReader",
    "Knowledge",
    "Pieces",
    "SpanConfig",
    "SpanReader",
    "Tokens",
    "TreeReader",
    "Window",
    "windows",
]
