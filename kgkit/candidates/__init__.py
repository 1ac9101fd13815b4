"""From text to mentions with candidates and priors.

A generator maps `Iterator[Document] -> Iterator[Document]`: documents that
come without mentions leave with all that were found; mentions that are given
keep their spans and are looked up, unless they were given candidates too.
"""

from kgkit.candidates.alias import AliasConfig, AliasGenerator
from kgkit.candidates.config import GeneratorConfig
from kgkit.candidates.dense import DenseConfig, DenseGenerator, TextEncoder
from kgkit.candidates.entries import longest
from kgkit.candidates.for_kb import generator_for
from kgkit.candidates.input_mentions import (
    KeyedDocument,
    candidates_of_keys,
    check_mentions,
    with_candidates,
)
from kgkit.candidates.lemma import LemmaConfig, LemmaGenerator
from kgkit.candidates.long_texts import document_batches, is_divisible, is_long
from kgkit.candidates.matching import Generator
from kgkit.candidates.segment import SegmentConfig, SegmentGenerator, Segments, jieba_segments
from kgkit.types import mention_problem

__all__ = [
    "AliasConfig",
    "AliasGenerator",
    "DenseConfig",
    "DenseGenerator",
    "Generator",
    "GeneratorConfig",
    "KeyedDocument",
    "LemmaConfig",
    "LemmaGenerator",
    "SegmentConfig",
    "SegmentGenerator",
    "Segments",
    "TextEncoder",
    "check_mentions",
    "document_batches",
    "generator_for",
    "candidates_of_keys",
    "is_divisible",
    "is_long",
    "jieba_segments",
    "longest",
    "mention_problem",
    "with_candidates",
]
