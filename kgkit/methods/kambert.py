"""KAM-BERT for a task (Bai et al. 2022): how it reads, begins and opens.

Texts are read as a KnowBert reads them (`kgkit.methods.knowbert_reading`), names between markers included;
the maps of their words are made once, and spread over what is read. Maps are made from sources that are
opened by name: taggers, chunkers, linkers, PMI tables and knowledge bases.
"""

import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch

from kgkit.encoder import Encoder
from kgkit.errors import MissingExtra, NotThere, StaleModel, UsageError
from kgkit.evaluation.examples import Example
from kgkit.heads.classifier import Classifier
from kgkit.home import Home
from kgkit.inputs.entity_spans import linked_text
from kgkit.inputs.kambert import AnnotatedText, KamBertReader, MapBuilder, MappedText, TextMaps
from kgkit.inputs.maps import MAPS, MapName, PhraseSpan
from kgkit.inputs.parses import ParsedSentences
from kgkit.kb import KnowledgeBase
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.methods.answering import TaskData
from kgkit.methods.builds import open_build
from kgkit.methods.contract import Beginning, Reading, Resources, group_parameters
from kgkit.methods.encoders import EncoderMethod, add_pieces, load_encoder, open_head
from kgkit.methods.kambert_settings import (
    DEFAULT_LINKER,
    KAMBERT,
    LINKS,
    KamBertManifest,
    KamBertTraining,
    is_file_of_trees,
)
from kgkit.methods.knowbert_reading import ExampleReader
from kgkit.methods.links import FindMentions, link_once, linker_sha256_of
from kgkit.methods.predicting import Predictor
from kgkit.methods.settings import TaskTraining
from kgkit.models.folder import BUILT_IN, lasting_name, name_in_home
from kgkit.models.manifest import Needs, checking_settings
from kgkit.models.opening import open_model
from kgkit.tagging.mention_tagger import SPACY, MentionTagger
from kgkit.types import Document, LinkedDocument, Mention

if TYPE_CHECKING:
    from kgkit.heads.kambert import KamBert
    from kgkit.models.opening import Opening

FOLDER: Final = "kambert"

AUXILIARY: Final = 8
"""Auxiliary words of a text, where there is a PMI table; the paper gives no number."""

Annotate = Callable[[Iterable[str]], Sequence[AnnotatedText]]
SpanKind = Literal["names", "chunks"]

_log = logging.getLogger(__name__)

_MAX_BLOCKS: Final = 5_000_000  # of the maps that are kept, 36 bytes each


class KamBertMethod(EncoderMethod):
    """A KAM-BERT with a classifier on top.

    Args:
        task: name of the task.
        kambert: head, around a bare encoder.
        classifier: classifier of its vectors.
        encoder: encoder that the head is around, with its tokenizer, which has the special pieces.
        reader: reader of texts, with what makes their maps.
        specials: special pieces of the task.
        annotate: function that finds in texts what maps are made of; None: nothing is found.
    """

    folder = FOLDER
    reader: KamBertReader

    def __init__(
        self,
        task: str,
        kambert: "KamBert",
        classifier: Classifier,
        encoder: Encoder,
        reader: KamBertReader,
        specials: Sequence[str] = (),
        annotate: Annotate | None = None,
    ) -> None:
        super().__init__(task, kambert, classifier, encoder, reader)
        self._examples = ExampleReader(reader, encoder.tokenizer, specials)
        self._annotate = annotate or (lambda texts: [AnnotatedText(text) for text in texts])
        self._maps: dict[tuple[str, ...], TextMaps] = {}
        self._blocks = 0  # of the maps that are kept
        self._warned = False

    def read(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example as it is read; see `ExampleReader`."""
        batch = [*examples]
        if not self._warned and self.reader.builder.maps and any(example.links for example in batch):
            self._warned = True
            _log.warning("examples have links, which are not read: entities are those that a linker finds")
        for reading, maps in zip(self._examples(batch), self.maps_of(batch), strict=True):
            yield Reading(MappedText(reading.content, maps), reading.positions)

    def maps_of(self, examples: Sequence[Example]) -> list[TextMaps]:
        """Return the maps of the texts of examples; those of texts that come again are kept."""
        new = {example.texts: None for example in examples if example.texts not in self._maps}
        if self._blocks > _MAX_BLOCKS:
            self._maps, self._blocks = {}, 0
            new = {example.texts: None for example in examples}
        annotated = iter(self._annotate(text for texts in new for text in texts))
        for texts in new:
            own = [next(annotated) for _ in texts]
            maps = self.reader.builder(own, read=self.reader.words_read(texts))
            self._maps[texts] = maps
            self._blocks += sum(len(part.blocks) for part in maps.maps.values())
        return [self._maps[example.texts] for example in examples]

    def groups(self, training: TaskTraining) -> list[dict[str, Any]]:
        """Return the parameters: those of the encoder with `lr`, all others with `lr_new`."""
        encoder: Any = self.model.head.model
        return group_parameters(self.model, set(map(id, encoder.parameters())), training)


# -- sources of maps --------------------------------------------------------


class MapSources:
    """Finds in texts what maps are made of.

    Args:
        names: function that finds the names of documents, as their mentions; None: there is no such map, or
            the names are the links.
        chunks: function that finds their chunks; None: there is no such map.
        links: function that links documents.
        kbs: knowledge bases of the links.
        names_are_links: whether links are names too.
        trees: trees of sentences, which have phrases of several levels, in the place of chunks.
    """

    def __init__(
        self,
        names: FindMentions | None = None,
        chunks: FindMentions | None = None,
        links: FindMentions | None = None,
        kbs: Sequence[KnowledgeBase] = (),
        *,
        names_are_links: bool = False,
        trees: ParsedSentences | None = None,
    ) -> None:
        self._find = names, chunks, links
        self._kbs, self._names_are_links, self._trees = tuple(kbs), names_are_links, trees

    def __call__(self, texts: Iterable[str]) -> list[AnnotatedText]:
        """Return texts with their names, chunks and links."""
        documents = [Document(str(number), text) for number, text in enumerate(texts)]
        results = []
        columns = (documents if find is None else [*find(documents)] for find in self._find)
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


def _mention_spans(document: Document | LinkedDocument) -> list[tuple[int, int]]:
    """Return the spans of the mentions of a document; none if nobody has looked for any."""
    mentions = document.mentions if isinstance(document, Document) else None
    return [(mention.start, mention.end) for mention in mentions or ()]


def map_names(training: KamBertTraining, kbs: Sequence[KnowledgeBase]) -> tuple[MapName, ...]:
    """Return the names of the maps that a training asks for."""
    chosen: Mapping[MapName, bool] = {
        "entity": bool(training.tagger), "phrase": bool(training.chunker),
        "correlation": bool(training.pmi), "knowledge": bool(kbs),
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
    names = chunks = links = table = trees = None
    if "entity" in maps and settings.tagger != LINKS:
        names = open_span_finder(settings.tagger, "names", home, device)
    if "phrase" in maps and is_file_of_trees(settings.chunker):
        trees = ParsedSentences(Path(settings.chunker))
    elif "phrase" in maps:
        chunks = open_span_finder(settings.chunker, "chunks", home, device)
    if kbs:
        linker = MultiKBLinker.open(kbs, model=settings.linker, device=device, references=True)
        links = link_once(linker, device)
    if "correlation" in maps or terms:
        table = open_model(settings.pmi, "association_table", home=home, device=device)
    sources = MapSources(names, chunks, links, kbs, names_are_links=settings.tagger == LINKS, trees=trees)
    return sources, MapBuilder(maps, table, {kb.name: kb for kb in kbs}, terms)


def open_span_finder(name: str, kind: SpanKind, home: Home, device: str) -> FindMentions:
    """Return a function that finds names, or chunks, by a trained tagger or a spaCy pipeline.

    Each text is read once, however often it comes.

    Args:
        name: name of a tagger, or of its folder; or `spacy:` and the name of a pipeline.
        kind: what is asked of a pipeline: its named entities, or its noun chunks.
        home: home of the taggers.
        device: torch device of a tagger.

    Raises:
        UnknownModel, NotThere: if there is none.
        UsageError: if the model is no tagger.
        MissingExtra: if spaCy is not installed, for a pipeline.
    """
    if kind == "chunks" and name.startswith(SPACY):
        return link_once(_spacy_chunker(name), device)
    return link_once(MentionTagger.open(name, home=home, device=device), device)


def _spacy_chunker(name: str) -> Callable[[Iterable[Document]], Iterator[Document]]:
    try:
        import spacy
    except ImportError:
        raise MissingExtra("spacy", "spacy") from None
    try:
        pipeline = spacy.load(name.removeprefix(SPACY))
    except (OSError, ImportError, ValueError) as error:
        raise NotThere(f"no spaCy pipeline {name} can be loaded: {error}") from error

    def find_chunks(documents: Iterable[Document]) -> Iterator[Document]:
        """Yield documents with the noun chunks of a pipeline as mentions."""
        batch = [*documents]
        texts = pipeline.pipe(document.text for document in batch)
        for document, parsed in zip(batch, texts, strict=True):
            mentions = [Mention(span.start_char, span.end_char, span.text) for span in parsed.noun_chunks]
            yield Document(document.id, document.text, mentions=mentions)

    return find_chunks


def source_identities(
    settings: KamBertTraining | KamBertManifest, maps: Sequence[MapName], terms: int, home: Home
) -> dict[str, str]:
    """Return the identities of the taggers, chunkers and tables that maps are made from, by their names."""
    used = (
        (settings.tagger, "entity" in maps and settings.tagger != LINKS),
        (settings.chunker, "phrase" in maps),
        (settings.pmi, "correlation" in maps or terms > 0),
    )
    return {name: _identity(name, home) for name, is_used in used if is_used}


def _identity(name: str, home: Home) -> str:
    """Return the digest of a model's manifest, or the name and version of a spaCy pipeline.

    A file of trees is none that may not change: others may be put behind those that were there.
    """
    if is_file_of_trees(name):
        return "trees"
    if not name.startswith(SPACY):
        return linker_sha256_of(home, name)
    try:
        return f"{name} {importlib.metadata.version(name.removeprefix(SPACY))}"
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return name


def check_sources(manifest: KamBertManifest, home: Home) -> None:
    """Make sure that the sources of a model's maps are those that it was trained with, before any is read.

    Raises:
        StaleModel: if one was trained again, is of another version, or is gone.
    """
    for name, identity in source_identities(manifest, manifest.maps, manifest.terms, home).items():
        if not identity or identity != manifest.sources.get(name):
            raise StaleModel(
                f"the model {manifest.name} reads maps made by {name}, which has been trained again, is "
                "of another version, or is gone: train it again too"
            )


# -- before training --------------------------------------------------------


def _check_without_kb(training: KamBertTraining) -> None:
    """Make sure that nothing is asked of a linker, as there is no knowledge base.

    Raises:
        UsageError: if something is.
    """
    if training.tagger == LINKS:
        raise UsageError("the tagger links takes the links of a linker: name a knowledge base with --kb")
    if training.linker != DEFAULT_LINKER:
        raise UsageError(
            f"the linker ({training.linker}) has nothing to link to: name a knowledge base with --kb, or "
            "leave it out"
        )


def _with_lasting_names(training: KamBertTraining, home: Home) -> KamBertTraining:
    """Return the settings with sources that are found from any directory."""
    tagger, chunker, pmi, linker = (
        name if name == LINKS else lasting_name(home, name)
        for name in (training.tagger, training.chunker, training.pmi, training.linker)
    )
    return replace(training, tagger=tagger, chunker=chunker, pmi=pmi, linker=linker)


def begin_kambert(training: KamBertTraining, data: TaskData, resources: Resources) -> Beginning:
    """Return a KAM-BERT that is to be trained for a task.

    Args:
        training: settings.
        data: examples of the task.
        resources: knowledge bases whose facts are a map; the home of what the other maps are made from, and
            of the model that it begins as.

    Raises:
        UsageError: if the encoder cannot be that of a KAM-BERT, or a source does not make its map.
        NotThere, UnknownName: if there is no such encoder, or source of a map.
    """
    from kgkit.heads.kambert import KamBert, KamBertConfig

    home, device = resources.home, resources.device
    encoder = load_encoder(home, training.encoder, KAMBERT, device)
    specials = data.task.specials(data.learn)
    add_pieces(encoder, specials, training.seed)
    kbs = [chosen.kb for chosen in resources.kbs]
    if not (kbs or training.control):
        _check_without_kb(training)
    if is_file_of_trees(training.chunker):
        training = replace(training, chunker=str(Path(training.chunker).expanduser().absolute()))
    training = _with_lasting_names(training, home)
    maps = map_names(training, kbs)
    terms = AUXILIARY if "correlation" in maps else 0
    sources, builder = open_sources(training, maps, terms, kbs, home, device)
    for kb in kbs:
        if not kb.manifest.triples:
            _log.warning(
                "%s has no facts: no two of its entities are neighbours in the map of knowledge", kb.name
            )
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(data.classifier_config(encoder.width), drawn)
    config = KamBertConfig.of(encoder.model, maps=maps, alpha=training.alpha, plain=training.control)
    kambert = KamBert(encoder.model, config)
    reader = KamBertReader(encoder, builder, size=training.size)
    method = KamBertMethod(training.task, kambert, classifier, encoder, reader, specials, sources)
    method.model.to(encoder.device)
    builds = {kb.name: kb.build for kb in kbs}
    identities = source_identities(training, maps, terms, home)
    linker = training.linker if kbs else ""
    linker_sha256 = linker_sha256_of(home, linker)
    fields = {
        "encoder": training.encoder, "size": training.size, "maps": maps,
        "needs": Needs(
            kbs=builds,
            linker="" if linker in BUILT_IN else linker,
            models=tuple({name: None for source in identities if (name := name_in_home(home, source))}),
        ),
        "linker": linker, "linker_sha256": linker_sha256,
        "tagger": training.tagger, "chunker": training.chunker, "pmi": training.pmi, "terms": terms,
        "sources": identities, "specials": specials,
    }  # fmt: skip
    count = None if training.control else partial(_count_cells, terms > 0)
    return Beginning(method, (encoder.fingerprint, builds, linker_sha256, identities), fields, count)


def _count_cells(has_auxiliary: bool, text: MappedText) -> dict[str, int]:
    """Return how many blocks of cells each map of a text has, and how many auxiliary words there are."""
    counts = {f"cells of the map {name}": len(part.blocks) for name, part in text.maps.maps.items()}
    return counts | ({"auxiliary words": len(text.maps.auxiliary)} if has_auxiliary else {})


# -- trained models ---------------------------------------------------------


def open_predictor(folder: Path, manifest: KamBertManifest, opening: "Opening") -> Predictor:
    """Open a trained KAM-BERT, with what its maps are made from.

    Raises:
        NotThere: if a knowledge base is gone.
        StaleModel: as `open_build` does, or if a tagger, linker or table is another.
        DamagedModel: if its files cannot be read, or its settings make no sense.
    """
    from kgkit.heads.kambert import KamBert

    home = opening.home
    kambert, classifier, encoder = open_head(KamBert, folder, FOLDER, manifest, opening)
    with checking_settings(folder):
        if manifest.maps != kambert.config.maps:
            raise UsageError(f"maps is {manifest.maps}, and the head has {kambert.config.maps}")
    check_sources(manifest, home)
    with ExitStack() as stack:
        needs = manifest.needs
        kbs = [open_build(name, build, home, stack, exact=needs.exact) for name, build in needs.kbs.items()]
        with checking_settings(folder):
            sources, builder = open_sources(
                manifest, manifest.maps, manifest.terms, kbs, home, opening.device
            )
            reader = KamBertReader(encoder, builder, size=manifest.size)
        method = KamBertMethod(
            manifest.task, kambert, classifier, encoder, reader, manifest.specials, sources
        )
        method.model.to(encoder.device)
        return Predictor(method, manifest, stack.pop_all())
