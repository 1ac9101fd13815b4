"""KAM-BERT for a task (Bai et al. 2022): how it reads, begins and opens.

Texts are read as a KnowBert reads them (`kgkit.methods.knowbert_reading`), names between markers included;
the maps of their words are made once, and spread over what is read.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example, alternatives
from kgkit.heads.classifier import Classifier
from kgkit.home import Home
from kgkit.inputs.kambert import AnnotatedText, KamBertReader, MapBuilder, MappedText, TextMaps
from kgkit.kb import KnowledgeBase
from kgkit.methods.answering import TaskData
from kgkit.methods.builds import open_build
from kgkit.methods.contract import Beginning, Reading, Resources, group_parameters
from kgkit.methods.encoders import EncoderMethod, add_pieces, load_encoder, open_head
from kgkit.methods.kambert_settings import DEFAULT_LINKER, LINKS, KamBertTraining, is_file_of_trees
from kgkit.methods.knowbert_reading import ExampleReader
from kgkit.methods.links import linker_sha256_of
from kgkit.methods.map_sources import (
    check_sources,
    map_names,
    open_sources,
    source_identities,
)
from kgkit.methods.other_texts import OtherTexts, count_words
from kgkit.methods.predicting import Predictor
from kgkit.methods.settings import TaskTraining
from kgkit.models.folder import BUILT_IN, lasting_name, name_in_home
from kgkit.models.kambert import KAMBERT, KamBertManifest
from kgkit.models.manifest import Needs, checking_settings

if TYPE_CHECKING:
    from kgkit.heads.kambert import KamBert
    from kgkit.models.opening import Opening

FOLDER: Final = "kambert"

Annotate = Callable[[Iterable[str]], Sequence[AnnotatedText]]

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
        others: texts whose maps are read in the place of a text's own; None: its own are.
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
        others: OtherTexts | None = None,
    ) -> None:
        super().__init__(task, kambert, classifier, encoder, reader)
        self._examples = ExampleReader(reader, encoder.tokenizer, specials)
        self._annotate = annotate or (lambda texts: [AnnotatedText(text) for text in texts])
        self._others = others
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
        chosen = {texts: texts if self._others is None else self._others(texts) for texts in new}
        annotated = iter(self._annotate(text for texts in chosen.values() for text in texts))
        for texts, mapped in chosen.items():
            own = [next(annotated) for _ in mapped]
            maps = self.reader.builder(own, read=self.reader.words_read(mapped))
            if self._others is not None:
                maps = maps.fitted(count_words(texts))
            self._maps[texts] = maps
            self._blocks += sum(len(part.blocks) for part in maps.maps.values())
        return [self._maps[example.texts] for example in examples]

    def groups(self, training: TaskTraining) -> list[dict[str, Any]]:
        """Return the parameters: those of the encoder with `lr`, all others with `lr_new`."""
        encoder: Any = self.model.head.model
        return group_parameters(self.model, set(map(id, encoder.parameters())), training)

    def save(self, folder: Path, *, about: str = "") -> None:
        """Write the head, its encoder, the classifier, and the other texts of a control into *folder*."""
        super().save(folder, about=about)
        if self._others is not None:
            self._others.save(folder)


# -- before training --------------------------------------------------------


def texts_of(examples: Iterable[Example]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of examples as they are read: of one with choices, one with each of these."""
    for example in examples:
        yield from (part.texts for part in (alternatives(example) if example.choices else [example]))


class MapsBeginning(NamedTuple):
    """What the maps of a model are made from, before it is trained.

    Attributes:
        config: settings of the head that training decides, as `KamBertConfig.of` takes them.
        sources: function that finds in texts what maps are made of.
        builder: maker of the maps.
        identity: what identifies the sources.
        fields: fields of the manifest.
    """

    config: dict[str, Any]
    sources: Annotate
    builder: MapBuilder
    identity: object
    fields: dict[str, Any]


def begin_maps(
    training: KamBertTraining, kbs: Sequence[KnowledgeBase], home: Home, device: str
) -> MapsBeginning:
    """Open what the maps of a model are to be made from; a control has none.

    Raises:
        UsageError: if a source does not make its map.
        UnknownName: if there is no such source.
    """
    kbs = [] if training.control else kbs
    if not (kbs or training.control):
        _check_without_kb(training)
    training = _with_lasting_names(training, home)
    maps, terms = map_names(training, kbs), 0 if training.control else training.auxiliary
    if training.other_maps and not (maps or terms or training.control):
        raise UsageError(
            "there are no maps, so none of another text: name what they are made from, as --tagger, or leave "
            "out --other-maps"
        )
    sources, builder = open_sources(training, maps, terms, kbs, home, device)
    for kb in kbs:
        if not kb.manifest.triples:
            _log.warning(
                "%s has no facts: no two of its entities are neighbours in the map of knowledge", kb.name
            )
    config = {
        "maps": maps, "kernel": training.kernel, "alpha": training.alpha, "skip": training.skip,
        "init": training.init, "plain": training.control,
    }  # fmt: skip
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
        "linker": linker, "linker_sha256": linker_sha256, "coherence": training.coherence,
        "tagger": training.tagger, "chunker": training.chunker, "pmi": training.pmi, "terms": terms,
        "sources": identities, "spaced": True,
    }  # fmt: skip
    return MapsBeginning(config, sources, builder, (builds, linker_sha256, identities), fields)


def _check_without_kb(training: KamBertTraining) -> None:
    """Make sure that nothing is asked of a linker, as there is no knowledge base.

    Raises:
        UsageError: if something is.
    """
    if training.tagger == LINKS:
        raise UsageError("the tagger links takes the links of a linker: name a knowledge base with --kb")
    if training.linker != DEFAULT_LINKER or training.coherence:
        what = training.linker if training.linker != DEFAULT_LINKER else f"coherence {training.coherence}"
        raise UsageError(
            f"the linker ({what}) has nothing to link to: name a knowledge base with --kb, or leave it out"
        )


def _with_lasting_names(training: KamBertTraining, home: Home) -> KamBertTraining:
    """Return the settings with sources that are found from any directory."""
    chunker = training.chunker
    if is_file_of_trees(chunker):
        chunker = str(Path(chunker).expanduser().absolute())
    tagger, pmi, linker = (
        name if name == LINKS else lasting_name(home, name)
        for name in (training.tagger, training.pmi, training.linker)
    )
    return replace(training, tagger=tagger, chunker=lasting_name(home, chunker), pmi=pmi, linker=linker)


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
    from kgkit.heads.attention_mixing import KamBertConfig
    from kgkit.heads.kambert import KamBert

    home, device = resources.home, resources.device
    encoder = load_encoder(home, training.encoder, KAMBERT, device)
    specials = data.task.specials(data.learn)
    add_pieces(encoder, specials, training.seed)
    beginning = begin_maps(training, [chosen.kb for chosen in resources.kbs], home, device)
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(data.classifier_config(encoder.width), drawn)
    config = KamBertConfig.of(encoder.model, **beginning.config)
    kambert = KamBert(encoder.model, config, generator=drawn)
    reader = KamBertReader(encoder, beginning.builder, size=training.size)
    others = OtherTexts(texts_of(data.learn)) if training.other_maps and not training.control else None
    method = KamBertMethod(
        training.task, kambert, classifier, encoder, reader, specials, beginning.sources, others
    )
    method.model.to(encoder.device)
    fields = {**beginning.fields, "specials": specials, "other_maps": others is not None}
    count = None if training.control else partial(_count_cells, beginning.builder.auxiliary > 0)
    return Beginning(method, (encoder.fingerprint, beginning.identity), fields, count)


def _count_cells(has_auxiliary: bool, text: MappedText) -> dict[str, int]:
    """Return how many blocks of cells each map of a text has, and how many auxiliary words there are."""
    counts = {f"cells of the map {name}": len(part.blocks) for name, part in text.maps.maps.items()}
    return counts | ({"auxiliary words": len(text.maps.auxiliary)} if has_auxiliary else {})


# -- trained models ---------------------------------------------------------


class OpenedMaps(NamedTuple):
    """What a trained model reads maps with.

    Attributes:
        sources: function that finds in texts what maps are made of.
        builder: maker of the maps.
        resources: stack that closes the knowledge bases.
    """

    sources: Annotate
    builder: MapBuilder
    resources: ExitStack


def open_maps(folder: Path, manifest: KamBertManifest, head: "KamBert", opening: "Opening") -> OpenedMaps:
    """Open what the maps of a trained model are made from.

    Raises:
        NotThere: if a knowledge base is gone.
        StaleModel: as `open_build` does, or if a tagger, linker or table is another.
        DamagedModel: if its settings make no sense.
    """
    home = opening.home
    with checking_settings(folder):
        if manifest.maps != head.config.maps:
            raise UsageError(f"maps is {manifest.maps}, and the head has {head.config.maps}")
    check_sources(manifest, home)
    with ExitStack() as stack:
        needs = manifest.needs
        kbs = [open_build(name, build, home, stack, exact=needs.exact) for name, build in needs.kbs.items()]
        with checking_settings(folder):
            sources, builder = open_sources(
                manifest, manifest.maps, manifest.terms, kbs, home, opening.device
            )
        return OpenedMaps(sources, builder, stack.pop_all())


def open_predictor(folder: Path, manifest: KamBertManifest, opening: "Opening") -> Predictor:
    """Open a trained KAM-BERT, with what its maps are made from.

    Raises:
        NotThere, StaleModel: as `open_maps` does.
        DamagedModel: if its files cannot be read.
    """
    from kgkit.heads.kambert import KamBert

    kambert, classifier, encoder = open_head(KamBert, folder, FOLDER, manifest, opening)
    opened = open_maps(folder, manifest, kambert, opening)
    with opened.resources as stack:
        with checking_settings(folder):
            reader = KamBertReader(encoder, opened.builder, size=manifest.size, spaced=manifest.spaced)
        others = OtherTexts.open(folder) if manifest.other_maps else None
        method = KamBertMethod(
            manifest.task, kambert, classifier, encoder, reader, manifest.specials, opened.sources, others
        )
        method.model.to(encoder.device)
        return Predictor(method, manifest, stack.pop_all())
