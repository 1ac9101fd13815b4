"""kgkit: where text meets a knowledge base.

    build_kb("wordnet")                       build and publish a knowledge base
    add_to_kb("wordnet", "mine.jsonl")        add to it
    kb = open_kb("wordnet")                   query it
    link("The dog barked.", kb="wordnet")     link a text to it
    embed("wordnet", TextConfig())            make vectors of its entities: see `kgkit.embedding`
    EBertEncoder.open(ENCODER, kb="wordnet")  read texts with entities among their word pieces
    open_model("mine")                        open a trained model, in whatever role it has
    train("kbert", name="mine", task="pair", data="train.tsv", kbs=["wordnet"])    train a model on a task

Importing this package is cheap; each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgkit.building.add import add_to_kb
    from kgkit.building.build import Built, build_kb
    from kgkit.candidates import AliasConfig, AliasGenerator, LemmaConfig, LemmaGenerator
    from kgkit.embedding.embed import embed
    from kgkit.errors import KgkitError
    from kgkit.kb import KnowledgeBase, open_kb
    from kgkit.linking import CoherenceConfig, Linker, LinkerConfig, link
    from kgkit.linking.ebert_encoder import EBertEncoder
    from kgkit.models.opening import open_model
    from kgkit.training.methods import train
    from kgkit.types import (
        Candidate,
        Candidates,
        Document,
        Entity,
        Link,
        LinkedDocument,
        Mention,
        Neighbour,
        Triple,
    )
    from kgkit.vectors import Vectors

_WHERE = {
    "AliasConfig": "kgkit.candidates",
    "AliasGenerator": "kgkit.candidates",
    "Built": "kgkit.building.build",
    "Candidate": "kgkit.types",
    "Candidates": "kgkit.types",
    "CoherenceConfig": "kgkit.linking",
    "Document": "kgkit.types",
    "EBertEncoder": "kgkit.linking.ebert_encoder",
    "Entity": "kgkit.types",
    "KgkitError": "kgkit.errors",
    "KnowledgeBase": "kgkit.kb",
    "LemmaConfig": "kgkit.candidates",
    "LemmaGenerator": "kgkit.candidates",
    "Link": "kgkit.types",
    "LinkedDocument": "kgkit.types",
    "Linker": "kgkit.linking",
    "LinkerConfig": "kgkit.linking",
    "Mention": "kgkit.types",
    "Neighbour": "kgkit.types",
    "Triple": "kgkit.types",
    "Vectors": "kgkit.vectors",
    "add_to_kb": "kgkit.building.add",
    "build_kb": "kgkit.building.build",
    "embed": "kgkit.embedding.embed",
    "link": "kgkit.linking",
    "open_kb": "kgkit.kb",
    "open_model": "kgkit.models.opening",
    "train": "kgkit.training.methods",
}

__all__ = [
    "AliasConfig",
    "AliasGenerator",
    "Built",
    "Candidate",
    "Candidates",
    "CoherenceConfig",
    "Document",
    "EBertEncoder",
    "Entity",
    "KgkitError",
    "KnowledgeBase",
    "LemmaConfig",
    "LemmaGenerator",
    "Link",
    "LinkedDocument",
    "Linker",
    "LinkerConfig",
    "Mention",
    "Neighbour",
    "Triple",
    "Vectors",
    "add_to_kb",
    "build_kb",
    "embed",
    "link",
    "open_kb",
    "open_model",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'kgkit' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
