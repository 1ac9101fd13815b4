"""From text to mentions with candidates and priors.

A generator maps `Iterator[Document] -> Iterator[Document]`: documents that
come without mentions leave with all that were found; mentions that are given
keep their spans and are looked up.
"""

from kgkit.candidates.alias import AliasConfig, AliasGenerator
from kgkit.candidates.lemma import LemmaConfig, LemmaGenerator
from kgkit.candidates.matching import Generator, GeneratorConfig, longest
from kgkit.candidates.suited import generator_for

__all__ = [
    "AliasConfig",
    "AliasGenerator",
    "Generator",
    "GeneratorConfig",
    "LemmaConfig",
    "LemmaGenerator",
    "generator_for",
    "longest",
]
