"""The sources of the maps of texts, opened by name: taggers, chunkers, linkers, PMI tables and KBs."""

import hashlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from kgkit.errors import (
    KgkitError,
    MissingExtra,
    NotThere,
    SourceError,
    StaleModel,
    UnknownModel,
    UsageError,
)
from kgkit.home import Home, here_hint
from kgkit.inputs.entity_spans import linked_text
from kgkit.inputs.kambert import AnnotatedText, MapBuilder
from kgkit.inputs.maps import MAPS, MapName, PhraseSpan
from kgkit.inputs.parses import ParsedSentences
from kgkit.kb import KnowledgeBase
from kgkit.linking.mention_tagger import SPACY
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.methods.kambert_settings import LINKS, KamBertTraining, is_file_of_trees
from kgkit.methods.links import FindMentions, link_once, linker_sha256_of
from kgkit.models.folder import has_model
from kgkit.models.kambert import KamBertManifest
from kgkit.models.opening import open_model
from kgkit.types import Document, LinkedDocument, Mention

SpanKind = Literal["names", "chunks"]

_SPACY: Final = "spacy"
_TREES: Final = "trees"
"""What the identity of a file of trees begins with."""

_CHUNK: Final = 1 << 20  # bytes that are read at once
_LEAST_BYTES: Final = 64  # of the beginning of a file of trees


class MapSources:
    """Finds in texts what maps are made of.

    Args:
        names: function that finds the names of documents, as their mentions; None: there is no such map, or
            the names are the links.
        chunks: function that finds their chunks, or the trees of their sentences, which have phrases of
            several levels.
        links: function that links documents.
        kbs: knowledge bases of the links.
        names_are_links: whether links are names too.
    """

    def __init__(
        self,
        names: FindMentions | None = None,
        chunks: FindMentions | ParsedSentences | None = None,
        links: FindMentions | None = None,
        kbs: Sequence[KnowledgeBase] = (),
        *,
        names_are_links: bool = False,
    ) -> None:
        self._trees = chunks if isinstance(chunks, ParsedSentences) else None
        self._chunks = None if isinstance(chunks, ParsedSentences) else chunks
        self._names, self._links = names, links
        self._kbs, self._names_are_links = tuple(kbs), names_are_links

    def __call__(self, texts: Iterable[str]) -> list[AnnotatedText]:
        """Return texts with their names, chunks and links."""
        documents = [Document(str(number), text) for number, text in enumerate(texts)]
        results = []
        columns = (self._column(find, documents) for find in (self._names, self._chunks, self._links))
        for document, names, chunks, links in zip(documents, *columns, strict=True):
            own = {
                kb.name: linked_text(links, kb).spans for kb in self._kbs if isinstance(links, LinkedDocument)
            }
            spans = {link[:2] for of_kb in own.values() for link in of_kb}
            named = sorted(spans) if self._names_are_links else _mention_spans(names)
            if self._trees is None:
                phrases = [PhraseSpan(*span) for span in _mention_spans(chunks)]
            else:
                phrases = self._trees.phrases(document.text)
            results.append(AnnotatedText(document.text, named, phrases, own))
        return results

    @staticmethod
    def _column(
        find: FindMentions | None, documents: Sequence[Document]
    ) -> Sequence[Document | LinkedDocument]:
        return documents if find is None else [*find(documents)]


def _mention_spans(document: Document | LinkedDocument) -> list[tuple[int, int]]:
    """Return the spans of the mentions of a document; none if nobody has looked for any."""
    mentions = document.mentions if isinstance(document, Document) else None
    return [(mention.start, mention.end) for mention in mentions or ()]


def map_names(training: KamBertTraining, kbs: Sequence[KnowledgeBase]) -> tuple[MapName, ...]:
    """Return the names of the maps that a training asks for."""
    chosen: Mapping[MapName, bool] = {
        "entity": bool(training.tagger), "phrase": bool(training.chunker),
        "correlation": bool(training.pmi) and training.correlation, "knowledge": bool(kbs),
    }  # fmt: skip
    return () if training.control else tuple(name for name in MAPS if chosen[name])


def open_sources(
    settings: KamBertTraining | KamBertManifest,
    maps: Sequence[MapName],
    terms: int,
    kbs: Sequence[KnowledgeBase],
    home: Home,
    device: str,
) -> tuple[MapSources, MapBuilder]:
    """Open what the maps of a model are made from.

    Args:
        settings: names of the sources.
        maps: names of the maps.
        terms: number of auxiliary words.
        kbs: knowledge bases, open.
        home: home of the models.
        device: torch device of taggers and linkers.

    Raises:
        UnknownModel: if there is no such model, nor a spaCy pipeline of that name.
        UsageError: if a model does not do what is asked of it.
        SourceError: if a file of trees cannot be read.
    """
    names = links = table = None
    chunks: FindMentions | ParsedSentences | None = None
    if "entity" in maps and settings.tagger != LINKS:
        names = open_span_finder(settings.tagger, "names", home, device)
    if "phrase" in maps and is_file_of_trees(settings.chunker):
        chunks = _read_trees(settings)
    elif "phrase" in maps:
        chunks = open_span_finder(settings.chunker, "chunks", home, device)
    if kbs:
        linker = MultiKBLinker.open(
            kbs, model=settings.linker, coherence=settings.coherence, device=device, references=True
        )
        links = link_once(linker, device)
    if "correlation" in maps or terms:
        table = open_model(settings.pmi, "association_table", home=home, device=device)
    sources = MapSources(names, chunks, links, kbs, names_are_links=settings.tagger == LINKS)
    return sources, MapBuilder(maps, table, {kb.name: kb for kb in kbs}, terms)


def _read_trees(settings: KamBertTraining | KamBertManifest) -> ParsedSentences:
    """Return the sentences of a file of trees.

    Raises:
        SourceError: if it cannot be read. Of what a manifest names no line is shown: a stranger's model may
            name any file.
    """
    try:
        return ParsedSentences.read(Path(settings.chunker))
    except SourceError as error:
        if isinstance(settings, KamBertTraining):
            raise
        raise SourceError(error.message, path=error.path, line=error.line) from None


def open_span_finder(name: str, kind: SpanKind, home: Home, device: str) -> FindMentions:
    """Return a function that finds names, or chunks, by a trained tagger or a spaCy pipeline.

    Each text is read once, however often it comes.

    Args:
        name: name of a tagger, or of its folder; else of a spaCy pipeline that is installed as a package,
            with or without `spacy:` before it.
        kind: what is asked of a pipeline: its named entities, or its noun chunks.
        home: home of the taggers.
        device: torch device of a tagger.

    Raises:
        UnknownModel: if there is neither.
        UsageError: if the model is no tagger, or the package no pipeline.
        MissingExtra: if the pipeline is there, and spaCy is not.
    """
    try:
        tagger: Callable[[Iterable[Document]], Iterable[Any]] = open_model(
            name, "tagger", home=home, device=device
        )
    except NotThere as error:
        pipeline = name.removeprefix(SPACY)
        if has_model(home, name) or not _is_pipeline(pipeline):
            raise _unknown_source(name, kind, error) from None
        tagger = _spacy_finder(pipeline, kind)
    return link_once(tagger, device)


def _unknown_source(name: str, kind: SpanKind, error: KgkitError) -> KgkitError:
    """Return the error of a name that no source of a map has."""
    if name.startswith(SPACY):
        return NotThere(
            f"no spaCy pipeline {name.removeprefix(SPACY)!r} is installed as a package: a model is opened "
            "with the version that it was trained with, which a folder does not have"
        )
    if kind == "chunks" and isinstance(error, UnknownModel):
        hint = here_hint(name)
        return UnknownModel("tagger, spaCy pipeline or file of trees", name, error.names, hint=hint)
    return error


def _is_pipeline(name: str) -> bool:
    """Say whether a package of this name is installed, which needs spaCy."""
    return name.isidentifier() and _pipeline_version(name) is not None


def _pipeline_version(name: str) -> str | None:
    """Return the version of a spaCy pipeline that is installed as a package; None if there is none."""
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    needs = distribution.requires or ()
    return distribution.version if any(need.lower().startswith(_SPACY) for need in needs) else None


def _spacy_finder(name: str, kind: SpanKind) -> Callable[[Iterable[Document]], Iterator[Document]]:
    try:
        import spacy
    except ImportError:
        raise MissingExtra(_SPACY, _SPACY) from None
    try:
        pipeline = spacy.load(name)
    except Exception as error:  # whatever the package does when it is loaded
        raise UsageError(
            f"the package {name} cannot be loaded as a spaCy pipeline ({type(error).__name__}: {error}): "
            "name another one, or a tagger of `kgkit train tagger`"
        ) from error

    def find_spans(documents: Iterable[Document]) -> Iterator[Document]:
        """Yield documents with the spans of a pipeline as mentions."""
        batch = [*documents]
        texts = pipeline.pipe(document.text for document in batch)
        for document, parsed in zip(batch, texts, strict=True):
            spans = parsed.ents if kind == "names" else parsed.noun_chunks
            mentions = [Mention(span.start_char, span.end_char, span.text) for span in spans]
            yield Document(document.id, document.text, mentions=mentions)

    return find_spans


def source_identities(
    settings: KamBertTraining | KamBertManifest, maps: Sequence[MapName], terms: int, home: Home
) -> dict[str, str]:
    """Return what identifies the taggers, chunkers and tables of a model, by their names."""
    return {name: _identity(name, home) for name in _used_sources(settings, maps, terms)}


def _used_sources(
    settings: KamBertTraining | KamBertManifest, maps: Sequence[MapName], terms: int
) -> dict[str, None]:
    """Return the names of the taggers, chunkers and tables that maps are made from, each once."""
    used = (
        (settings.tagger, "entity" in maps and settings.tagger != LINKS),
        (settings.chunker, "phrase" in maps),
        (settings.pmi, "correlation" in maps or terms > 0),
    )
    return {name: None for name, is_used in used if is_used}


def _identity(name: str, home: Home, trained_identity: str = "") -> str:
    """Return what identifies a tagger, a PMI table, a spaCy pipeline or a file of trees.

    Args:
        name: name of the source.
        home: home of the models.
        trained_identity: what identified it when a model was trained with it: a file of trees may have grown.
    """
    if is_file_of_trees(name):
        return _trees_identity(Path(name), trained_identity)
    version = _pipeline_version(name.removeprefix(SPACY))
    return linker_sha256_of(home, name) or f"{name} {version or ''}".rstrip()


def _trees_identity(path: Path, trained_identity: str) -> str:
    """Return `trees SIZE SHA256`, of the first SIZE bytes: trees may be put behind those that were there.

    Fewer than 64 bytes stand for a whole file alone: a stranger could guess how another file begins.

    Raises:
        SourceError: if the file cannot be read.
    """
    try:
        kind, size, _ = trained_identity.split(" ")
        length = int(size) if kind == _TREES else 0
    except ValueError:
        length = 0
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            length = length if length >= _LEAST_BYTES else os.fstat(file.fileno()).st_size
            remaining = length
            while remaining > 0 and (chunk := file.read(min(_CHUNK, remaining))):
                digest.update(chunk)
                remaining -= len(chunk)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}", path=path) from error
    return f"{_TREES} {length} {digest.hexdigest()}"


def check_sources(manifest: KamBertManifest, home: Home) -> None:
    """Make sure that the sources of a model's maps are those that it was trained with, before any is read.

    Raises:
        StaleModel: if one was trained again, is of another version, or is gone.
    """
    for name in _used_sources(manifest, manifest.maps, manifest.terms):
        before = manifest.sources.get(name, "")
        if before == _TREES:
            raise StaleModel(
                f"the model {manifest.name} was trained by version 0.2.0 with the file of trees {name}, of "
                "which it has no checksum: train it again"
            )
        if before.split(" ")[0] == _TREES and not Path(name).is_file():
            raise StaleModel(
                f"the model {manifest.name} reads phrases from the file of trees {name}, which is gone: "
                "restore that file"
            )
        if before and _identity(name, home, before) == before:
            continue
        if is_file_of_trees(name):
            raise StaleModel(
                f"the model {manifest.name} reads phrases from the file of trees {name}, which does not "
                "begin with the trees that it had: restore them, and put others behind; or train it again"
            )
        raise StaleModel(
            f"the model {manifest.name} reads maps made by {name}, which has been trained again since, is of "
            "another version, or is gone: train it again too"
        )
