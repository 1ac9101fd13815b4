"""Which entity the subject of a fact is: by its key, its name as a title, or what its name can mean."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.building import Alias, Entity
from kgkit.errors import UsageError
from kgkit.evaluation.facts import Fact
from kgkit.home import Home
from kgkit.methods.cloze_opening import (
    find_subject,
    open_cloze_model,
    open_masked_lm,
    plain_cloze_model,
    subject_entities,
)
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder
from tests.vector_toys import made

RECORDS = [
    Entity("Q90", "Paris"), Entity("Jean_Marais", "Jean Marais"), Entity("Berlin", "Berlin"),
    Entity("Paris (Texas)", "Paris"), Entity("unseen", "unseen"),
    Alias("Paris", "Q90", 9), Alias("Paris", "Paris (Texas)", 1), Alias("the city of light", "Q90", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    with build(folder, RECORDS, name="pages") as opened:
        yield opened


def fact(subject, key=""):
    return Fact(subject, "capital of", "France", key)


@pytest.mark.parametrize(
    ("subject", "key", "entity"),
    [
        ("Paris", "", "Q90"),  # the likelier of both that have the name
        ("Paris", "Paris (Texas)", "Paris (Texas)"),  # the key goes before the name
        ("Paris", "Q0", "Q90"),  # an unknown key: by the name
        ("Berlin", "", "Berlin"),  # the name is a key
        ("Jean Marais", "", "Jean_Marais"),  # as titles are written
        ("the city of light", "", "Q90"),
        ("Atlantis", "", None),
        ("", "", None),
        ("", "Berlin", "Berlin"),
    ],
)
def test_the_subject_is_the_entity_of_its_key_then_of_its_name(kb, subject, key, entity):
    number = find_subject(fact(subject, key), kb)
    assert (None if number is None else kb.key(number)) == entity


def test_facts_without_an_entity_or_a_vector_have_no_subject(kb):
    rows = np.zeros((kb.id_count, 2), np.float32)
    rows[[kb.id("Q90"), kb.id("Berlin")]] = 1
    vectors = made(kb.home.path.parents[1], rows, kb="pages")
    facts = [fact("Berlin"), fact("unseen"), fact("Atlantis"), fact("Paris"), fact("Berlin")]
    expected = [kb.id("Berlin"), -1, -1, kb.id("Q90"), kb.id("Berlin")]
    numbers = subject_entities(facts, kb, vectors)
    assert numbers.tolist() == expected and numbers.dtype == np.int64
    assert subject_entities([], kb, vectors).shape == (0,)


def test_a_name_with_two_keys_is_two_subjects(kb):
    vectors = made(kb.home.path.parents[1], np.ones((kb.id_count, 2)), kb="pages", name="ones")
    facts = [fact("Paris"), fact("Paris", "Paris (Texas)"), fact("Paris")]
    assert subject_entities(facts, kb, vectors).tolist() == [
        kb.id("Q90"), kb.id("Paris (Texas)"), kb.id("Q90"),
    ]  # fmt: skip


def test_an_encoder_without_a_head_for_masked_words_is_refused_with_the_command_that_trains_it(kb, tmp_path):
    folder = tiny_encoder(tmp_path / "plain", mask=True)
    home = kb.home.path.parents[1]
    with (
        pytest.raises(UsageError, match="no trained head for masked words: `kgkit train knowbert --task mlm"),
        open_masked_lm(str(folder), Home(home), "cpu"),
    ):
        pass


def test_a_masked_language_model_of_transformers_opens_with_its_head(tmp_path):
    from transformers import BertConfig, BertForMaskedLM

    folder = tiny_encoder(tmp_path / "masked", mask=True)
    BertForMaskedLM(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    with open_masked_lm(str(folder), Home(tmp_path), "cpu") as opened:
        assert opened.size == opened.encoder.window and opened.encoder.name == str(folder)
        model = plain_cloze_model(opened)
        assert model.name == str(folder) and not model.knowbert.training


class Stranger:
    """What the role language_model of somebody's kind gives, and kgkit cannot ask."""


def test_a_language_model_that_answers_no_cloze_questions_is_refused(monkeypatch, tmp_path):
    import kgkit.methods.cloze_opening as module

    monkeypatch.setattr(module, "open_model", lambda *_, **__: Stranger())
    monkeypatch.setattr(module, "has_model", lambda *_: True)
    home = Home(tmp_path)
    for opening in (open_cloze_model, open_masked_lm):
        with (
            pytest.raises(UsageError, match="model odd opens as Stranger, which kgkit cannot ask"),
            opening("odd", home),
        ):
            pass
