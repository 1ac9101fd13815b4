"""From documents to the numbers that heads and linkers take: word pieces, windows, vectors of mentions."""

from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.ebert_linking import EBertLinkingReader
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.knowledge import Knowledge
from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.pieces import PieceTokenizer, WordPieces
from kgkit.inputs.spans import SpanConfig, SpanReader
from kgkit.inputs.texts import TextReader, TokenizedText
from kgkit.inputs.trees import TreeReader
from kgkit.inputs.windows import Window, windows

__all__ = [
    "EBertLinkingReader",
    "EBertReader",
    "KnowBertReader",
    "Knowledge",
    "MentionSpans",
    "PieceTokenizer",
    "SpanConfig",
    "SpanReader",
    "TextReader",
    "TokenizedText",
    "TreeReader",
    "Window",
    "WordPieces",
    "windows",
]
