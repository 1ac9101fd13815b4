"""The generator that a knowledge base asks for in its manifest."""

from kgkit.candidates.alias import AliasGenerator
from kgkit.candidates.lemma import LemmaGenerator
from kgkit.candidates.matching import Generator
from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase

_GENERATORS: dict[str, type[AliasGenerator] | type[LemmaGenerator]] = {
    "alias": AliasGenerator,
    "lemma": LemmaGenerator,
}


def generator_for(kb: KnowledgeBase) -> Generator:
    """Return the generator that suits *kb*, as its builder said, with default settings.

    Raises:
        UnknownName: if this kgkit has no generator of that name.
    """
    name = kb.manifest.generator
    if name not in _GENERATORS:
        raise UnknownName("candidate generator", name, sorted(_GENERATORS))
    return _GENERATORS[name](kb)
