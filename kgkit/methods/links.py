"""Links that a method reads: made by a linker, each text once, and never by another than in training."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from kgkit.encoder import pick_device
from kgkit.errors import NotThere, StaleModel, UnknownName
from kgkit.home import Home
from kgkit.models.folder import BUILT_IN, manifest_digest
from kgkit.types import Document, LinkedDocument

FindMentions = Callable[[Iterable[Document]], Iterable[Document | LinkedDocument]]
DocumentType = TypeVar("DocumentType", Document, LinkedDocument)

_MAX_LINKED: Final = 200_000  # linked texts that are kept


def link_once(
    linker: Callable[[Iterable[Document]], Iterable[DocumentType]], device: str
) -> Callable[[Iterable[Document]], Iterator[DocumentType]]:
    """Return a function that links documents, each text once: texts come again in each epoch.

    Args:
        linker: `Linker`, `MultiKBLinker`, `Tagger`, or another function.
        device: torch device of the linker.
    """
    linked: dict[str, DocumentType] = {}

    def find_links(documents: Iterable[Document]) -> Iterator[DocumentType]:
        """Yield documents with their links, which texts linked before are not linked for again."""
        import torch

        batch = [*documents]
        new = [document for document in batch if document.text not in linked]
        if len(linked) + len(new) > _MAX_LINKED:
            linked.clear()
            new = batch
        with torch.autocast(pick_device(device).type, enabled=False):  # links do not depend on who asks
            linked.update((document.text, document) for document in linker(new))
        return (linked[document.text] for document in batch)

    return find_links


def linker_sha256_of(home: Home, linker: str) -> str:
    """Return the SHA-256 of a linker's manifest; "" if there is none, or it is not trained."""
    if linker in ("", *BUILT_IN):
        return ""
    try:
        return manifest_digest(linker, home)
    except (NotThere, UnknownName):
        return ""


def check_linker(home: Home, model: str, linker: str, sha256: str) -> None:
    """Make sure that a linker is the one that a model was trained with.

    Args:
        home: home of both.
        model: name of the model that reads its links.
        linker: name of the linker.
        sha256: digest of the linker's manifest then; "" of one that needs no training.

    Raises:
        StaleModel: if it was trained again, or is gone.
    """
    if sha256 and linker_sha256_of(home, linker) != sha256:
        raise StaleModel(
            f"the model {model} reads links of the model {linker}, which has been trained again since, or is "
            "gone: train it again too"
        )
