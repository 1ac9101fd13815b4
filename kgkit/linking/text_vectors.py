"""The vectors of entities' texts that a linker reads: published ones, or those encoded as they are needed.

a name                  published vectors of that name
an encoder              published vectors of it; else its own, encoded as they are needed
neither                 the published ones, as `kgkit.models.folder.text_vectors` chooses them; else those
                        of the encoder that is taken unless another is named, encoded as they are needed
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from kgkit.errors import KgkitError, NotThere, UsageError
from kgkit.home import explicit_path, is_name
from kgkit.linking.neighbour_texts import with_neighbours
from kgkit.models.folder import VECTORS, model_vectors, text_vectors
from kgkit.models.kinds import LinkerManifest
from kgkit.types import Document
from kgkit.vectors import find_vectors, vectors_names
from kgkit.vectors.layout import VectorsManifest
from kgkit.vectors.matrix import read_manifest
from kgkit.vectors.partial import partial_folders, partial_names
from kgkit.versions import read_current

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.kb import KnowledgeBase
    from kgkit.models.opening import Opening
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorRows

log = logging.getLogger(__name__)


def open_text_vectors(
    kb: "KnowledgeBase", name: str | None = None, *, encoder: str | None = None, device: str = "auto"
) -> "Vectors | PartialTextVectors":
    """Open vectors of the texts of *kb*, published or encoded as they are needed.

    Args:
        kb: knowledge base of the entities.
        name: name of published vectors.
        encoder: encoder of the texts, a name as `Encoder.load` takes it; of the hub it is fetched. None: that
            of the vectors, else the one that is taken unless another is named, which is never fetched.
        device: torch device on which texts are encoded.

    Raises:
        NotThere: if there are no such vectors, or no such encoder.
        UsageError: if the vectors were made by another encoder than *encoder*, several are of it, or the
            name that its vectors would have is that of others.
        StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
        MissingExtra: if torch or transformers is not installed.
    """
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.embedding.text import is_of_texts

    if encoder is not None:
        return _vectors_of(kb, name, encoder, device)
    chosen = VECTORS
    try:
        chosen = text_vectors(kb, name)
        opened = kb.vectors(chosen)
    except NotThere:
        if chosen != VECTORS or (name is None and _published_texts(kb)):
            raise
    else:
        if name is not None or is_of_texts(opened):
            return opened
    return PartialTextVectors.open(kb, device=device)


def linker_vectors(manifest: LinkerManifest, opening: "Opening") -> "Vectors | PartialTextVectors":
    """Open the vectors that a linker takes, of the knowledge base that it is opened on.

    Raises:
        UsageError: if there is no knowledge base.
        The rest as `model_vectors` does.
    """
    kb = opening.kb_for(manifest.name)
    vectors = model_vectors(manifest, kb, opening.vectors, device=opening.device)
    warn_of_missing(kb, vectors)
    return vectors


def texts_with_neighbours(
    vectors: "Vectors | PartialTextVectors", manifest: LinkerManifest, opening: "Opening"
) -> "VectorRows":
    """Return the vectors of a linker as it reads them: with those of neighbours, if it was trained so.

    Raises:
        UnknownName: if the knowledge base has no relation of a name.
    """
    return with_neighbours(opening.kb_for(manifest.name), vectors, manifest.neighbours)


def prepare_candidates(vectors: "VectorRows", documents: Sequence[Document]) -> None:
    """Have the vectors of all candidates of *documents* made that are made as they are needed."""
    ids = [
        mention.candidates.ids
        for document in documents
        for mention in document.mentions or ()
        if mention.candidates
    ]
    if ids:
        vectors.prepare(np.concatenate(ids))


def warn_of_missing(kb: "KnowledgeBase", vectors: "VectorRows") -> None:
    """Say so, if *kb* has been added to or edited since *vectors* were made."""
    if vectors.manifest.build != kb.build:
        names = (kb.name, vectors.manifest.name)
        log.warning(
            "%s has been added to or edited since its vectors %s were made: entities that are new have none, "
            "and texts that were changed have that of before; `kgkit embed %s --name %s --update` makes what "
            "is missing",
            *names,
            *names,
        )


def _vectors_of(
    kb: "KnowledgeBase", name: str | None, encoder: str, device: str
) -> "Vectors | PartialTextVectors":
    """Open the vectors that an encoder has made, called *name*, or makes."""
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.embedding.text import TextConfig
    from kgkit.encoder import Encoder
    from kgkit.encoder.finding import find_model
    from kgkit.encoder.folder import fingerprint

    own = fingerprint(find_model(encoder))
    if name is not None:
        vectors = kb.vectors(name)
        about = vectors.manifest.config
        if about.get("fingerprint") != own:
            maker = f"the encoder {about['encoder']}" if "encoder" in about else vectors.manifest.method
            raise UsageError(
                f"the vectors {vectors.name} were made by {maker}, and the encoder {encoder} is another: "
                "leave out --vectors or --encoder"
            )
        return vectors
    usual = _usual_name(encoder)
    published = [
        vectors_name
        for vectors_name, manifest in _published_texts(kb).items()
        if manifest.config.get("fingerprint") == own
    ]
    if usual in published or len(published) == 1:
        return kb.vectors(usual if usual in published else published[0])
    if published:
        listed = ", ".join(f"{kb.name}/{vectors_name}" for vectors_name in published)
        raise UsageError(
            f"several vectors were made by the encoder {encoder}: {listed}; name one with --vectors"
        )
    chosen = _partial_name(kb, usual, own)
    if not is_name(chosen) or chosen in vectors_names(kb.home):
        problem = (
            f"{kb.name}/{chosen} is the name of vectors that it has not made"
            if is_name(chosen)
            else f"{chosen!r} cannot be the name of its vectors"
        )
        raise UsageError(
            f"texts are not encoded by {encoder} as they are needed: {problem}. Make some with `kgkit embed "
            f"{kb.name} --method text --encoder {quote(encoder)} --name NAME`, and take them with "
            "--vectors NAME"
        )
    config = TextConfig(encoder=encoder, name=chosen, device=device)
    return PartialTextVectors(kb, config, Encoder.load(encoder, device=device))


def _usual_name(encoder: str) -> str:
    """Return the name of an encoder's vectors: the last part of its own, of the usual encoder `VECTORS`."""
    from kgkit.embedding.text import TextConfig

    if encoder == TextConfig().encoder:
        return VECTORS
    path = explicit_path(encoder)
    name = encoder if path is None else (path.resolve() if path.is_dir() else path).name
    return f"{name}-encoder" if name == VECTORS else name  # `kgkit embed KB` publishes others of that name


def _partial_name(kb: "KnowledgeBase", usual: str, fingerprint: str) -> str:
    """Return the name below which an encoder has encoded texts in the usual way; *usual* if there is none."""
    from kgkit.embedding.text import TextConfig

    def has_rows(name: str) -> bool:
        """Say whether there are rows of the encoder below a name."""
        return any(
            folder.settings.get("fingerprint") == fingerprint
            and folder.settings.get("template") == TextConfig.template
            and not folder.settings.get("kinds")
            for folder in partial_folders(kb.home, name)
        )

    published = vectors_names(kb.home)
    names = [name for name in partial_names(kb.home) if name not in published and has_rows(name)]
    return names[0] if names and usual not in names else usual


def _published_texts(kb: "KnowledgeBase") -> dict[str, VectorsManifest]:
    """Return the manifests of a KB's published vectors of texts, by name, of those that can be read."""
    from kgkit.embedding.text import METHOD

    manifests = {}
    for name in vectors_names(kb.home):
        with suppress(KgkitError):
            manifest = read_current(partial(find_vectors, kb.home, name), read_manifest)
            if manifest.method == METHOD:
                manifests[name] = manifest
    return manifests
