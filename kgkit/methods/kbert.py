"""K-BERT for a task (Liu et al. 2020, section 4): how it reads, begins and opens.

    tagging    a sentence, read at the first word piece of each token; no piece is of two tokens
    others     a text, or two, read at [CLS]

Sentence trees carry no marks, so that the tasks of marked names are not read.

Departures:
    The released code has another layer, with tanh, before the labels of a text, and gives injected tokens a
    tag of their own, [ENT], which it neither learns nor scores.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.heads.classifier import Classifier
from kgkit.inputs.trees import TreeReader
from kgkit.kb import KnowledgeBase
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.methods.answering import TaskData
from kgkit.methods.builds import open_build
from kgkit.methods.contract import (
    Beginning,
    Reading,
    Resources,
    first_pieces,
)
from kgkit.methods.encoders import EncoderMethod, load_encoder, open_head
from kgkit.methods.kbert_settings import KBERT, KBertManifest, KBertTraining
from kgkit.methods.links import FindMentions, link_once, linker_sha256_of
from kgkit.methods.predicting import Predictor
from kgkit.models.folder import BUILT_IN, lasting_name
from kgkit.models.manifest import Needs, checking_settings
from kgkit.trees import FlatTree, TreeBuilder, TreeConfig, generators_of
from kgkit.types import Document

if TYPE_CHECKING:
    from kgkit.heads.kbert import KBert
    from kgkit.models.opening import Opening

FOLDER: Final = "kbert"


class KBertMethod(EncoderMethod):
    """A K-BERT with a classifier on top.

    Args:
        task: name of the task.
        kbert: head, around a bare encoder.
        classifier: classifier of its vectors.
        encoder: encoder that the head is around, with its tokenizer.
        reader: reader of sentence trees.
        find_mentions: function that finds the mentions, or links, of texts; None: the surfaces of the
            knowledge bases.
    """

    folder = FOLDER
    reader: TreeReader

    def __init__(
        self,
        task: str,
        kbert: "KBert",
        classifier: Classifier,
        encoder: Encoder,
        reader: TreeReader,
        find_mentions: FindMentions | None = None,
    ) -> None:
        super().__init__(task, kbert, classifier, encoder, reader)
        self._find_mentions = find_mentions or iter

    def read(self, examples: Iterable[Example]) -> Iterator[Reading]:
        """Yield each example as it is read.

        Raises:
            UsageError: if one has marks.
        """
        batch = [*examples]
        if strange := next((example.id for example in batch if example.marks), None):
            raise UsageError(f"example {strange} marks names, and sentence trees carry no marks")
        documents = (Document(example.id, text) for example in batch for text in example.texts)
        mentioned = iter(self._find_mentions(documents))
        for example in batch:
            tree = self.reader.read([next(mentioned) for _ in example.texts], example.tokens)
            positions = _token_positions(tree, example) if example.tokens else np.zeros((1, 1), np.int64)
            yield Reading(tree, positions)


def _token_positions(tree: FlatTree, example: Example) -> NDArray[np.int64]:
    own = np.flatnonzero(tree.starts >= 0)  # the text's word pieces, in order
    return first_pieces(tree.starts[own], example.tokens, own)


# -- before training --------------------------------------------------------


def begin_kbert(training: KBertTraining, data: TaskData, resources: Resources) -> Beginning:
    """Return a K-BERT that is to be trained for a task.

    Args:
        training: settings.
        data: examples of the task.
        resources: knowledge bases whose facts are injected, those of the first first; the home of the linker
            and of the model that it begins as.

    Raises:
        UsageError: if the encoder cannot be that of a K-BERT.
        NotThere: if there is no such encoder.
    """
    import torch

    from kgkit.heads.kbert import KBert

    home, device, kbs = resources.home, resources.device, [chosen.kb for chosen in resources.kbs]
    encoder = load_encoder(home, training.encoder, KBERT, device)
    reader, find_mentions = _readers(encoder, kbs, training, device)
    drawn = torch.Generator().manual_seed(training.seed)
    classifier = Classifier(data.classifier_config(encoder.width), drawn).to(encoder.device)
    method = KBertMethod(training.task, KBert(encoder.model), classifier, encoder, reader, find_mentions)
    builds = {kb.name: kb.build for kb in kbs}
    linker_sha256 = linker_sha256_of(home, training.linker) if kbs else ""
    linker = lasting_name(home, training.linker)
    needs = Needs(kbs=builds, linker=linker if kbs and linker not in BUILT_IN else "")
    fields = {
        "encoder": training.encoder, "needs": needs, "size": training.size, "query": training.query,
        "linker": linker,
        "linker_sha256": linker_sha256, "max_facts": training.max_facts,
        "relations": training.relations, "attributes": training.attributes,
    }  # fmt: skip
    count = (lambda tree: {"facts": int(tree.branches.max(initial=0))}) if builds else None
    return Beginning(method, (builds, encoder.fingerprint, linker_sha256), fields, count)


# -- trained models ---------------------------------------------------------


def open_predictor(folder: Path, manifest: KBertManifest, opening: "Opening") -> Predictor:
    """Open a trained K-BERT, with the builds of the knowledge bases that it was trained with.

    Raises:
        NotThere: if a knowledge base is gone.
        StaleModel: if a build that it was trained with is gone, or its linker was trained again.
        DamagedModel: if its files cannot be read.
    """
    from kgkit.heads.kbert import KBert

    home, device = opening.home, opening.device
    kbert, classifier, encoder = open_head(KBert, folder, FOLDER, manifest, opening)
    with ExitStack() as stack:
        needs = manifest.needs
        kbs = [open_build(name, build, home, stack, exact=needs.exact) for name, build in needs.kbs.items()]
        with checking_settings(folder):
            readers = _readers(encoder, kbs, manifest, device)
        method = KBertMethod(manifest.task, kbert, classifier, encoder, *readers)
        return Predictor(method, manifest, stack.pop_all())


def _readers(
    encoder: Encoder,
    kbs: Sequence[KnowledgeBase],
    settings: KBertTraining | KBertManifest,
    device: str,
) -> tuple[TreeReader, FindMentions | None]:
    """Return the reader of trees, and what finds the mentions of texts."""
    config = TreeConfig(
        max_facts=settings.max_facts, relations=settings.relations, attributes=settings.attributes
    )
    builder = TreeBuilder(generators_of(kbs, settings.query), config)
    trees = TreeReader(encoder, builder, size=settings.size)
    if settings.query != "link" or not kbs:
        return trees, None
    linkers = MultiKBLinker.open(kbs, model=settings.linker, device=device, references=True)
    return trees, link_once(linkers, device)
