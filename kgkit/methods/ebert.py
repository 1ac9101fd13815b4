"""E-BERT for a task (Poerner et al. 2020): how it reads, begins and opens.

    relation, typing    # around the first name, $ around the second, outside of their entities; read at [CLS]
    tagging             a sentence, read at the first word piece of each token
    others              a text, or two, read at [CLS]

Entities are those of the links that an example has; of one without links, those that a linker finds.

The table of word pieces is not trained, as in the released code, whose positions, segments and layers are.

Departures:
    Names of types, as TACRED has them, follow the text as pieces of their own; the paper has no such data.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import EntityMark, Example
from kgkit.heads.classifier import Classifier, ClassifierConfig
from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.entity_sequences import EntitySequence
from kgkit.inputs.entity_spans import EntitySpan, LinkedText, linked_text
from kgkit.inputs.knowledge import Knowledge, check_knowledge, knowledge_of, open_knowledge
from kgkit.kb import KnowledgeBase
from kgkit.linking.linker import Linker
from kgkit.methods.answering import TaskData
from kgkit.methods.contract import (
    Beginning,
    Reading,
    Resources,
    first_pieces,
)
from kgkit.methods.ebert_encoder import begin_head
from kgkit.methods.ebert_linking import FOLDER, vectors_fields, vectors_names, vectors_of
from kgkit.methods.ebert_settings import EBERT, EBertManifest, EBertTraining
from kgkit.methods.encoders import EncoderMethod, add_pieces, load_encoder, open_head
from kgkit.methods.links import FindMentions, link_once, linker_sha256_of
from kgkit.methods.predicting import Predictor
from kgkit.methods.settings import ChosenKB
from kgkit.models.folder import BUILT_IN, lasting_name
from kgkit.models.manifest import Needs, checking_settings, damaged
from kgkit.types import Document

if TYPE_CHECKING:
    from kgkit.heads.ebert import EBert
    from kgkit.models.opening import Opening

MARKERS: Final = ("#", "$")
"""What stands around the first name of a text, and around the second."""

_log = logging.getLogger(__name__)


class EBertMethod(EncoderMethod):
    """An E-BERT with a classifier on top.

    Args:
        task: name of the task.
        ebert: head, around a bare encoder.
        classifier: classifier of its vectors.
        encoder: encoder that the head is around, with its tokenizer, which has the special pieces.
        reader: reader of texts with entities.
        specials: pieces that were added for the task; see `special_pieces`.
        kb: knowledge base of the entities; None: a control.
        find_links: function that links texts; None: only links that examples have are read.
    """

    folder = FOLDER
    reader: EBertReader

    def __init__(
        self,
        task: str,
        ebert: "EBert",
        classifier: Classifier,
        encoder: Encoder,
        reader: EBertReader,
        specials: Sequence[str] = (),
        kb: KnowledgeBase | None = None,
        find_links: FindMentions | None = None,
    ) -> None:
        super().__init__(task, ebert, classifier, encoder, reader)
        self.specials = tuple(specials)
        vocabulary: dict[str, int] = encoder.tokenizer.get_vocab()
        self._specials = {name: int(vocabulary[name]) for name in specials}
        self._markers = [self._specials.get(name) or marker_id(reader, encoder, name) for name in MARKERS]
        self._kb, self._find_links = kb, find_links
        self._warned = False

    def read(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example as it is read.

        Raises:
            UsageError: if texts are so short that nothing of them is left beside markers.
        """
        batch = [*examples]
        for example, texts in zip(batch, self._linked(batch), strict=True):
            markers = [(self._markers[number],) * 2 for number in range(len(example.marks))]
            sequence = self.reader.read(texts, marks=example.marks, markers=markers, tail=self._tail(example))
            positions = np.zeros((1, 1), np.int64)
            yield Reading(sequence, _token_positions(sequence, example) if example.tokens else positions)

    def _linked(self, examples: Sequence[Example]) -> Iterator[list[LinkedText]]:
        """Yield the texts of each example with their entities: those of its links, or of a linker's."""
        documents = (
            Document(example.id, text)
            for example in examples
            if example.links is None
            for text in example.texts
        )
        linked = iter(() if self._find_links is None else self._find_links(documents))
        for example in examples:
            if self._kb is not None and example.links is not None:
                yield _marked_texts(example.texts, example.links, self._kb)
            elif self._kb is None or self._find_links is None:
                yield [LinkedText(text) for text in example.texts]
            else:
                yield [linked_text(next(linked), self._kb) for _ in example.texts]

    def _tail(self, example: Example) -> list[int]:
        unknown = [name for name in example.tail if name not in self._specials]
        if unknown and not self._warned:
            self._warned = True
            _log.warning(
                "types that the model does not know are not read, as %s of %s", unknown[0], example.id
            )
        return [self._specials[name] for name in example.tail if name in self._specials]


def _marked_texts(texts: Sequence[str], links: Iterable[EntityMark], kb: KnowledgeBase) -> list[LinkedText]:
    """Return texts with the entities of their own links; keys that *kb* does not have are left out."""
    spans: list[list[EntitySpan]] = [[] for _ in texts]
    for mark in links:
        if (entity := kb.store.id_of(mark.entity)) is not None:
            spans[mark.text].append(EntitySpan(mark.start, mark.end, entity))
    return [LinkedText(text, tuple(own)) for text, own in zip(texts, spans, strict=True)]


def _token_positions(sequence: EntitySequence, example: Example) -> NDArray[np.int64]:
    own = sequence.words
    return first_pieces(sequence.starts[own], example.tokens, own)


def special_pieces(data: TaskData, encoder: Encoder) -> tuple[str, ...]:
    """Return the pieces that a tokenizer needs for a task: types of names, and markers that it lacks."""
    own = {piece for pair in data.task.markers for piece in pair}  # [E1] …, which an E-BERT does not read
    tails = [piece for piece in data.task.specials(data.learn) if piece not in own]
    tokenizer = encoder.tokenizer
    lacking = [
        marker
        for marker in MARKERS[: data.task.names]
        if tokenizer.unk_token_id in tokenizer.encode(marker, add_special_tokens=False)
    ]
    return (*lacking, *tails)


def marker_id(reader: EBertReader, encoder: Encoder, marker: str) -> int:
    """Return the word piece of a marker; the unknown one if the tokenizer has none."""
    piece = reader.tokens.sign(marker)
    return int(encoder.tokenizer.unk_token_id or 0) if piece is None else piece


def classifier_config(data: TaskData, encoder: Encoder) -> ClassifierConfig:
    """Return the settings of the classifier, which reads one position whatever names are marked."""
    return replace(data.classifier_config(encoder.width), positions=1)


# -- before training --------------------------------------------------------


def begin_ebert(training: EBertTraining, data: TaskData, resources: Resources) -> Beginning:
    """Return an E-BERT that is to be trained for a task.

    Args:
        training: settings.
        data: examples of the task.
        resources: knowledge base of the entities, with one kind of vectors, or none for a control; the home
            of the linker and of the model that it begins as.

    Raises:
        UsageError: if there are several knowledge bases or kinds of vectors, or vectors, map and encoder do
            not fit each other.
        NotThere: if there is no such encoder, or no map of the vectors.
    """
    home, device = resources.home, resources.device
    encoder = load_encoder(home, training.encoder, EBERT, device)
    knowledge = _knowledge_of(resources.kbs)
    kb = None if knowledge is None else knowledge.generator.kb
    ebert, vectors = begin_head(encoder, None if knowledge is None else knowledge.vectors[0])
    specials = special_pieces(data, encoder)
    _fix_word_pieces(encoder, specials, training.seed)
    reader = EBertReader(encoder, vectors, size=training.size)
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(classifier_config(data, encoder), drawn)
    find_links = _find_links(kb, training.linker_name, device)
    method = EBertMethod(training.task, ebert, classifier, encoder, reader, specials, kb, find_links)
    method.model.to(encoder.device)
    fields = _fields(training, resources, knowledge, specials) | vectors_fields(ebert, vectors)
    decides = ("alignment", "norm", "trained_with", "linker_sha256")
    identity = (encoder.fingerprint, fields["needs"].kbs, *(fields[name] for name in decides))
    count = None if kb is None else (lambda text: {"entities": len(text.entities)})
    return Beginning(method, identity, fields, count)


def _fix_word_pieces(encoder: Encoder, specials: Sequence[str], seed: int) -> None:
    """Add *specials* to an encoder, and leave its table of word pieces untrained, which W was fitted to.

    transformers gives new rows the mean of the others, all but equal: untrained, they would tell nothing
    apart. So each is drawn with the mean and the deviation of the others.
    """
    before = len(encoder.tokenizer)
    add_pieces(encoder, specials, seed)
    table: Any = encoder.model.get_input_embeddings()
    table.weight.requires_grad_(False)
    if specials:  # else there may be rows that no piece has
        old, new = table.weight[:before], table.weight[before:]
        drawn = torch.randn(new.shape, generator=torch.Generator().manual_seed(seed))
        new.copy_(old.mean(0) + old.std(0) * drawn.to(old))


def _fields(
    training: EBertTraining,
    resources: Resources,
    knowledge: Knowledge | None,
    specials: tuple[str, ...],
) -> dict[str, Any]:
    """Return the fields of the manifest that are known before training."""
    linker = "" if knowledge is None else lasting_name(resources.home, training.linker_name)
    kbs = {chosen.kb.name: chosen.kb.build for chosen in resources.kbs}
    names = () if knowledge is None else (knowledge.vectors[0].name,)
    about = {} if knowledge is None else dict.fromkeys(kbs, knowledge.about)
    return {
        "encoder": training.encoder, "size": training.size, "linker": linker,
        "needs": Needs(kbs=kbs, vectors=names, linker="" if linker in BUILT_IN else linker),
        "linker_sha256": linker_sha256_of(resources.home, linker),
        "trained_with": about, "specials": specials,
    }  # fmt: skip


def _knowledge_of(kbs: Sequence[ChosenKB]) -> Knowledge | None:
    """Return the knowledge base of the entities; None if there is none.

    Raises:
        UsageError: if there are several, or several kinds of vectors.
    """
    if not kbs:
        return None
    if len(kbs) > 1:
        raise UsageError(f"an E-BERT reads the entities of one knowledge base, not of {len(kbs)}: name one")
    [chosen] = kbs
    if len(chosen.vectors) > 1:
        raise UsageError(
            f"an E-BERT reads one kind of vectors, and {len(chosen.vectors)} of {chosen.kb.name} are named: "
            "name one; `kgkit embed --method concat` joins several"
        )
    return knowledge_of(chosen.kb, chosen.vectors)


def _find_links(kb: KnowledgeBase | None, linker: str, device: str) -> FindMentions | None:
    """Return a function that links texts; None if there is no linker."""
    if kb is None or not linker:
        return None
    return link_once(Linker.open(kb, model=linker, device=device), device)


# -- trained models ---------------------------------------------------------


def open_predictor(folder: Path, manifest: EBertManifest, opening: "Opening") -> Predictor:
    """Open a trained E-BERT, with its knowledge base: as it is now, if that only adds to what it was.

    Raises:
        NotThere: if the knowledge base or its vectors are gone.
        StaleModel: if it is another build, or has other vectors; if its linker was trained again.
        DamagedModel: if its files cannot be read.
    """
    from kgkit.heads.ebert import EBert

    home, device = opening.home, opening.device
    ebert, classifier, encoder = open_head(EBert, folder, FOLDER, manifest, opening)
    if len(manifest.trained_with) != bool(ebert.config.stored):
        kbs = ", ".join(manifest.trained_with) or "no knowledge base"
        raise damaged(
            folder, f"its head reads vectors of width {ebert.config.stored}, its manifest has {kbs}"
        )
    with ExitStack() as stack:
        knowledge = {
            name: open_knowledge(name, vectors_names(manifest), about, home, stack)
            for name, about in manifest.trained_with.items()
        }
        check_knowledge(knowledge, manifest.trained_with)
        kb, vectors = None, None
        for only in knowledge.values():  # of a control there is none
            kb, vectors = only.generator.kb, vectors_of(folder, manifest, only, ebert)
        find_links = _find_links(kb, manifest.linker, device)
        with checking_settings(folder):
            reader = EBertReader(encoder, vectors, size=manifest.size)
            method = EBertMethod(
                manifest.task, ebert, classifier, encoder, reader, manifest.specials, kb, find_links
            )
        method.model.to(encoder.device)
        return Predictor(method, manifest, stack.pop_all())
