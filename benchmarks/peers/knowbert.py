"""KnowBert's own files, run from a checkout of allenai/kb that the reader brings (`KGKIT_BENCH_KNOWBERT`).

The candidate generator lives in a module that imports allennlp, torch and more at its top and uses none of
it here; empty stand-ins take their places. It asks spaCy for a lemma of every token; the stand-in looks it
up in a table made before the clock starts, which costs the peer less than spaCy would.
"""

import importlib
import runpy
import sys
import time
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from typing import Any, NamedTuple

STANDINS = (
    "allennlp",
    "torch",
    "h5py",
    "pytorch_pretrained_bert",
    "kb.kg_embedding",
    "kb.entity_linking",
    "spacy",
)


def extract(checkout: str, entities: str, relations: str) -> None:
    """Run the original extraction."""
    script = runpy.run_path(str(Path(checkout) / "bin" / "extract_wordnet.py"))
    script["extract_wordnet_from_nltk"](entities, relations)


def mentions(checkout: str, entities: str, text: str) -> dict[str, float]:
    """Run the original candidate generator over a text.

    Args:
        checkout: folder of allenai/kb.
        entities: the file that the original extraction wrote.
        text: a file with one document a line.
    """
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    tokens = [line.split() for line in lines]
    lemmas = lemma_table({token for line in tokens for token in line})
    generator = _generator_class(checkout, lemmas)
    start = time.process_time()
    generate = generator(entities).get_mentions_raw_text
    opened = time.process_time()
    spans = 0
    for line in lines:
        mentions = generate(line, whitespace_tokenize=True, allow_empty_candidates=True)
        spans += len(mentions["candidate_spans"])
    stop = time.process_time()
    # Counted in a second reading: in the first nothing is done but the work itself.
    candidate_count = sum(
        len(entities)
        for line in lines
        for entities in generate(line, whitespace_tokenize=True)["candidate_entities"]
    )
    return {
        "opening": opened - start,
        "seconds": stop - start,
        "tokens": sum(map(len, tokens)),
        "spans": spans,
        "candidates": candidate_count,
    }


def lemma_table(words: set[str]) -> dict[str, str]:
    """Return the first lemma that WordNet's morphology finds for each word, else the word."""
    from nltk.corpus import wordnet

    return {word: wordnet.morphy(word.lower()) or word for word in words}


class Token(NamedTuple):
    """What the generator reads of a token."""

    text: str
    lemma_: str
    is_space: bool = False
    pos_: str = ""


class _Anything(type):
    """A class that has every attribute: a decorator where one is called, a class where one is inherited."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: lambda decorated: decorated


class _StandinModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.islower():
            return importlib.import_module(f"{self.__name__}.{name}")
        return _Anything(name, (), {})


class _Standins(Loader, MetaPathFinder):
    """Finds and makes the stand-ins; installed before the real finders."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if any(name == package or name.startswith(package + ".") for package in STANDINS):
            return spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = _StandinModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "allennlp.data":
            vars(module)["Token"] = Token
        if module.__name__ == "allennlp.common.file_utils":
            vars(module)["cached_path"] = lambda path: path


def _generator_class(checkout: str, lemmas: dict[str, str]) -> Any:
    """Import the original module among stand-ins and return its generator."""
    sys.meta_path.insert(0, _Standins())
    sys.path.insert(0, checkout)

    class Pipeline:
        """In spaCy's place: whitespace tokens with a lemma from the table."""

        vocab = None

        def __call__(self, text: str) -> list[Token]:
            return [Token(word, lemmas[word]) for word in text.split()]

    spacy = importlib.import_module("spacy")
    vars(spacy)["load"] = lambda *_, **__: Pipeline()
    return importlib.import_module("kb.wordnet").WordNetCandidateMentionGenerator
