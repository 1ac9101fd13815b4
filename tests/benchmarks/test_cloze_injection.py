"""Cloze questions that an E-BERT reads with the vectors of their subjects."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from benchmarks.cloze_injection import injected_cloze_model
from kgkit.evaluation.facts import cloze_questions
from kgkit.inputs.entity_sequences import build_sequence
from kgkit.inputs.masking import logits_of
from kgkit.kb import open_kb
from kgkit.methods.cloze import cloze_guesses
from kgkit.methods.cloze_opening import open_masked_lm, plain_cloze_model, subject_entities
from tests.cloze_toys import FACTS, TEMPLATES, home_of_animals, masked_lm_folder
from tests.tiny_encoder import PIECES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return masked_lm_folder(tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("mlm"))


@pytest.fixture(scope="module")
def home(tmp_path_factory, folder):
    return home_of_animals(tmp_path_factory.mktemp("home"), folder)


@pytest.fixture(scope="module")
def masked_lm(home, folder):
    with open_masked_lm(str(folder), home, "cpu") as opened:
        yield opened


@pytest.fixture(scope="module")
def questions():
    every = cloze_questions(FACTS, TEMPLATES).instances
    return [question for question in every if question.hidden == "object"]


@pytest.fixture(scope="module")
def model(masked_lm):
    return plain_cloze_model(masked_lm)


@pytest.fixture(scope="module")
def subjects(home):
    with open_kb("animals", home.path) as kb:
        vectors = kb.vectors("text")
        yield vectors, subject_entities(FACTS, kb, vectors)


def test_the_vector_of_the_subject_stands_in_the_question(masked_lm, subjects, questions):
    vectors, entities = subjects
    model = injected_cloze_model(masked_lm, vectors, entities)
    prediction = model.predict(questions[:1])
    entity, mask = (int(entities[0]),), model.mask
    words = {word: PIECES.index(word) for word in PIECES}
    name = [model.reader.slash, words["big"], words["dog"]]
    pieces = [words["[CLS]"], entity, *name, words["eats"], mask, words["[UNK]"], words["[SEP]"]]
    with torch.no_grad():
        output = model.ebert(model.reader.batch([build_sequence(pieces)]))
    torch.testing.assert_close(prediction.logits[0], logits_of(output)[0, pieces.index(mask)])
    assert prediction.gold.tolist() == [words["fruit"]] and prediction.counts == [1]


def test_a_subject_without_a_vector_is_asked_of_plainly(masked_lm, model, subjects, questions):
    injected = injected_cloze_model(masked_lm, *subjects)
    plain, read = (cloze_guesses(each, questions).guesses for each in (model, injected))
    has_vector = subjects[1] >= 0
    for one, other in zip(plain, read, strict=True):
        if not has_vector[one.question.fact]:
            assert one == other
    every = cloze_questions(FACTS, TEMPLATES).instances
    hidden = [question for question in every if question.hidden == "subject"]
    torch.testing.assert_close(model.predict(hidden).logits, injected.predict(hidden).logits)
