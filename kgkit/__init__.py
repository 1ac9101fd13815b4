"""kgkit: where text meets a knowledge base.

    build_kb("wordnet")                       build and publish a knowledge base
    add_to_kb("wordnet", "mine.jsonl")        add to it
    edit_kb("wordnet", "corrections.jsonl")   change, correct and retire its entities
    import_kb("mine.ttl")                     build one from a file of another program
    kb = open_kb("wordnet")                   query it
    export_kb(kb, "wordnet.nt")               write it for other programs
    diff("wordnet")                           compare its builds
    link("The dog barked.", kb="wordnet")     link a text to it, or several
    reconcile(names, kb="wordnet")            find the entities that names in a table mean
    embed("wordnet", TextConfig())            make vectors of its entities: see `kgkit.embedding`
    EBertEncoder.open(ENCODER, kb="wordnet")  read texts with entities among their word pieces
    kbs(), models()                           list what is on this machine
    open_model("mine")                        open a trained model, in whatever role it has
    train("kbert", name="mine", task="pair", data="train.tsv", kbs=["wordnet"])    train a model on a task
    pack("model:mine", "mine.tar.gz")         write a model with what it needs into one file
    unpack("mine.tar.gz")                     publish what such a file holds

Importing this package is cheap; each name below is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from kgkit.lazy import lazy_attributes

if TYPE_CHECKING:
    from kgkit.building.add import add_to_kb
    from kgkit.building.build import Built, build_kb
    from kgkit.building.edit import edit_kb
    from kgkit.candidates import AliasConfig, AliasGenerator, LemmaConfig, LemmaGenerator
    from kgkit.embedding.embed import embed
    from kgkit.errors import KgkitError
    from kgkit.exchange.exporting import export_kb, import_kb
    from kgkit.kb import KnowledgeBase, open_kb
    from kgkit.kb.differences import Difference, diff
    from kgkit.kb.listing import kbs
    from kgkit.linking import Linker, LinkSettings, link
    from kgkit.methods.ebert_encoder import EBertEncoder
    from kgkit.models import models
    from kgkit.models.opening import open_model
    from kgkit.reconciling.columns import reconcile
    from kgkit.reconciling.reconciler import NameMatch, ReconcileConfig, Reconciler
    from kgkit.sharing.packing import pack
    from kgkit.sharing.unpacking import unpack
    from kgkit.training.methods import train
    from kgkit.types import (
        Candidate,
        CandidateRow,
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

    __version__: str
    """Version of the installed package."""

_WHERE = {
    "AliasConfig": "kgkit.candidates",
    "AliasGenerator": "kgkit.candidates",
    "Built": "kgkit.building.build",
    "Candidate": "kgkit.types",
    "CandidateRow": "kgkit.types",
    "Candidates": "kgkit.types",
    "Difference": "kgkit.kb.differences",
    "Document": "kgkit.types",
    "EBertEncoder": "kgkit.methods.ebert_encoder",
    "Entity": "kgkit.types",
    "KgkitError": "kgkit.errors",
    "KnowledgeBase": "kgkit.kb",
    "LemmaConfig": "kgkit.candidates",
    "LemmaGenerator": "kgkit.candidates",
    "Link": "kgkit.types",
    "LinkSettings": "kgkit.linking",
    "LinkedDocument": "kgkit.types",
    "Linker": "kgkit.linking",
    "Mention": "kgkit.types",
    "NameMatch": "kgkit.reconciling.reconciler",
    "Neighbour": "kgkit.types",
    "ReconcileConfig": "kgkit.reconciling.reconciler",
    "Reconciler": "kgkit.reconciling.reconciler",
    "Triple": "kgkit.types",
    "Vectors": "kgkit.vectors",
    "add_to_kb": "kgkit.building.add",
    "build_kb": "kgkit.building.build",
    "diff": "kgkit.kb.differences",
    "edit_kb": "kgkit.building.edit",
    "embed": "kgkit.embedding.embed",
    "export_kb": "kgkit.exchange.exporting",
    "import_kb": "kgkit.exchange.exporting",
    "kbs": "kgkit.kb.listing",
    "link": "kgkit.linking",
    "models": "kgkit.models",
    "open_kb": "kgkit.kb",
    "open_model": "kgkit.models.opening",
    "pack": "kgkit.sharing.packing",
    "reconcile": "kgkit.reconciling.columns",
    "train": "kgkit.training.methods",
    "unpack": "kgkit.sharing.unpacking",
}

__all__ = [
    "AliasConfig",
    "AliasGenerator",
    "Built",
    "Candidate",
    "CandidateRow",
    "Candidates",
    "Difference",
    "Document",
    "EBertEncoder",
    "Entity",
    "KgkitError",
    "KnowledgeBase",
    "LemmaConfig",
    "LemmaGenerator",
    "Link",
    "LinkSettings",
    "LinkedDocument",
    "Linker",
    "Mention",
    "NameMatch",
    "Neighbour",
    "ReconcileConfig",
    "Reconciler",
    "Triple",
    "Vectors",
    "add_to_kb",
    "build_kb",
    "diff",
    "edit_kb",
    "embed",
    "export_kb",
    "import_kb",
    "kbs",
    "link",
    "models",
    "open_kb",
    "open_model",
    "pack",
    "reconcile",
    "train",
    "unpack",
]

_attribute = lazy_attributes(__name__, _WHERE)


def __getattr__(name: str) -> Any:
    return _version() if name == "__version__" else _attribute(name)


def __dir__() -> list[str]:
    return __all__


def _version() -> str:
    import importlib.metadata  # here: it takes milliseconds

    try:
        return importlib.metadata.version("kgkit")
    except importlib.metadata.PackageNotFoundError:
        return "unknown: not installed"
