"""Opening what answers cloze questions: a trained model, an encoder with a head for masked words.

And the entities that the subjects of questions are, for models that read vectors of entities.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder import Encoder
from kgkit.encoder.finding import find_model
from kgkit.encoder.loading import language_class, load_as
from kgkit.errors import UsageError
from kgkit.evaluation.facts import ClozeQuestion, Fact
from kgkit.heads.knowbert import KnowBert
from kgkit.home import Home
from kgkit.inputs.knowbert import KnowBertReader
from kgkit.inputs.masking import NOTHING, HiddenPieces
from kgkit.inputs.texts import SIZE
from kgkit.kb import KnowledgeBase
from kgkit.methods.cloze import ClozeModel, hide_names
from kgkit.methods.hidden_words import predict_hidden
from kgkit.methods.knowbert import is_language_model
from kgkit.methods.knowbert_model import TrainedKnowBert
from kgkit.models.folder import has_model
from kgkit.models.opening import OpenModel, open_model
from kgkit.types import NO_CANDIDATES

if TYPE_CHECKING:
    from kgkit.vectors import Vectors

_TRAINING = "`kgkit train knowbert --task mlm --control --encoder …` trains one"


class MaskedLanguageModel(NamedTuple):
    """A plain masked language model.

    Attributes:
        model: model of transformers, around the encoder.
        encoder: its encoder, with its tokenizer.
        size: word pieces of a text, special ones included, that it is asked about.
    """

    model: Any
    encoder: Encoder
    size: int


class KnowBertClozeModel(ClozeModel):
    """A KnowBert, or a plain masked language model, which is one without knowledge bases.

    What knowledge bases say of a mention with a hidden piece is hidden too: [MASK] is its candidate.

    Args:
        name: name in messages.
        encoder: encoder whose tokenizer cuts the questions.
        knowbert: KnowBert around a masked language model, in evaluation mode.
        reader: reader of the questions.
    """

    def __init__(self, name: str, encoder: Encoder, knowbert: KnowBert, reader: KnowBertReader) -> None:
        super().__init__(name, encoder, reader.tokens)
        self.knowbert, self.reader = knowbert, reader

    def predict(self, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
        """Return predictions for the masked pieces of the names that questions hide, read at once."""
        texts = self.reader((question.text,) for question in questions)
        counts, names = hide_names(self.tokens, questions, texts, self.mask)
        masked = [name.text for name in names if name is not None]
        if not masked:
            return self.no_pieces(counts)
        for name in names:
            if name is not None:
                name.text.labels[name.others] = NOTHING
        logits, gold, _ = predict_hidden(self.knowbert, self.reader, masked)
        return HiddenPieces(logits, gold, counts)


@contextmanager
def open_cloze_model(name: str, home: Home, device: str = "auto") -> Iterator[ClozeModel]:
    """Open a trained model that predicts masked words, with its knowledge bases if it has some.

    Args:
        name: name of the model in *home*, or its folder.
        home: home of models and knowledge bases.
        device: torch device that the model computes on.

    Raises:
        UsageError: if the model predicts no masked words.
        UnknownName, NotThere, DamagedModel, StaleModel: as `kgkit.models.opening.open_model` does.
    """
    trained = open_model(name, "language_model", home=home, device=device)
    if isinstance(trained, ClozeModel):
        with trained if isinstance(trained, OpenModel) else nullcontext():
            yield trained
        return
    with _checked(name, trained) as knowbert:
        yield KnowBertClozeModel(name, knowbert.encoder, knowbert.knowbert, knowbert.reader)


@contextmanager
def open_masked_lm(name: str, home: Home, device: str = "auto") -> Iterator[MaskedLanguageModel]:
    """Open a masked language model without knowledge bases.

    Args:
        name: name of a trained model in *home*, else folder, package or hub id of an encoder.
        home: home of models.
        device: torch device that the model computes on.

    Raises:
        UsageError: if the model has knowledge bases, or the encoder has no head for masked words.
        NotThere, SourceError, DamagedModel: if there is none, or it cannot be read.
    """
    if has_model(home, name):
        with _checked(name, open_model(name, "language_model", home=home, device=device)) as trained:
            if trained.manifest.kbs:
                raise UsageError(
                    f"the model {name} was trained with knowledge bases, and is no plain masked language "
                    f"model: `--model {name}` asks it"
                )
            trained.encoder.name = name  # what maps of vectors to it are kept by
            yield MaskedLanguageModel(trained.knowbert.model, trained.encoder, trained.manifest.size)
        return
    folder = find_model(name)
    model, tokenizer, drawn = load_as(folder, language_class(folder), device)
    base: Any = model.base_model
    encoder = Encoder(name, folder, base, tokenizer, "float32")
    if not is_language_model(drawn):
        raise UsageError(f"the encoder {name} has no trained head for masked words: {_TRAINING}")
    yield MaskedLanguageModel(model, encoder, min(SIZE, encoder.window))


def _checked(name: str, trained: object) -> TrainedKnowBert:
    if not isinstance(trained, TrainedKnowBert):
        raise UsageError(
            f"the model {name} opens as {type(trained).__name__}, which kgkit cannot ask cloze questions: "
            f"its role language_model is to give a {ClozeModel.__module__}.ClozeModel"
        )
    return trained


def plain_cloze_model(masked_lm: MaskedLanguageModel) -> KnowBertClozeModel:
    """Return a plain masked language model as what is asked cloze questions."""
    encoder = masked_lm.encoder
    reader = KnowBertReader(encoder, {}, size=masked_lm.size)
    return KnowBertClozeModel(encoder.name, encoder, KnowBert(masked_lm.model, {}).eval(), reader)


# -- subjects ---------------------------------------------------------------


def find_subject(fact: Fact, kb: KnowledgeBase) -> int | None:
    """Return the id of the entity that is the subject of a fact; None if the knowledge base has none.

    It is the entity of the subject's key; else the one whose key is its name, as titles of Wikipedia are;
    else the first candidate of its name.
    """
    for key in filter(None, (fact.subject_key, fact.subject, fact.subject.replace(" ", "_"))):
        number = kb.store.id_of(key)
        if number is not None:
            return number
    candidates = kb.candidates(fact.subject, k=1) if fact.subject else NO_CANDIDATES
    return int(candidates.ids[0]) if len(candidates) else None


def subject_entities(facts: Sequence[Fact], kb: KnowledgeBase, vectors: "Vectors") -> NDArray[np.int64]:
    """Return (F,) the entity that the subject of each fact is; -1 where none is, or it has no vector."""
    ids = dict[tuple[str, str], int]()
    for fact in facts:
        name = fact.subject, fact.subject_key
        if name not in ids:
            number = find_subject(fact, kb)
            exists = number is not None and bool(vectors.gather([number]).any())
            ids[name] = number if exists and number is not None else -1
    return np.array([ids[fact.subject, fact.subject_key] for fact in facts], np.int64)
