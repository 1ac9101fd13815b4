"""Knowledge bases on the disk for spaCy's trainable `entity_linker`."""

import pickle

import numpy as np
import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedModel, KgkitError, NotThere, UsageError
from tests.vector_toys import DIRECTIONS, built, made

spacy = pytest.importorskip("spacy")
from spacy.kb import InMemoryLookupKB  # noqa: E402
from spacy.tokens import Span  # noqa: E402
from spacy.training import Example  # noqa: E402
from spacy.util import fix_random_seed  # noqa: E402

from kgkit.spacy.kb import StoredKB, knowledge_base  # noqa: E402

SURFACES = ("apple", "Apple", "York", "New York", "Big Apple")
TEXTS = [
    ("An apple fell in York.", [(1, 2, "Apple"), (4, 5, "York")]),
    ("Apple sells phones.", [(0, 1, "Apple_Inc.")]),
    ("Big Apple is New York.", [(0, 2, "New_York_City"), (3, 5, "New_York_City")]),
    ("York is old. Apple is not.", [(0, 1, "York"), (4, 5, "Apple_Inc.")]),
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with the toy and vectors of it, of which York and what is behind it have none."""
    folder, _ = built(tmp_path)
    made(folder)
    monkeypatch.setenv("KGKIT_HOME", str(folder))
    return folder


@pytest.fixture
def stored(home):
    """The toy as a knowledge base of spaCy."""
    stored = knowledge_base("toy")(spacy.blank("en").vocab)
    yield stored
    stored.close()


def in_memory(vocab, stored):
    """Return spaCy's own knowledge base with the same candidates."""
    twin = InMemoryLookupKB(vocab, entity_vector_length=2)
    candidates = {surface: stored.get_alias_candidates(surface) for surface in SURFACES}
    keys = sorted({row.entity_ for rows in candidates.values() for row in rows})
    twin.set_entities(keys, [0.0] * len(keys), [stored.get_vector(key).tolist() for key in keys])
    for surface, rows in candidates.items():
        twin.add_alias(surface, [row.entity_ for row in rows], [row.prior_prob for row in rows])
    return twin


def linker_pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    source = {"@misc": "kgkit.KnowledgeBase.v1", "kb": "toy"}
    nlp.add_pipe("entity_linker", config={"generate_empty_kb": source, "incl_prior": False, **config})
    return nlp


def examples_for(nlp):
    examples = []
    for text, names in TEXTS:
        reference, predicted = nlp.make_doc(text), nlp.make_doc(text)
        nlp.get_pipe("sentencizer")(reference)
        nlp.get_pipe("sentencizer")(predicted)
        reference.ents = [Span(reference, start, end, "N", kb_id=key) for start, end, key in names]
        predicted.ents = [Span(predicted, start, end, "N") for start, end, _ in names]
        examples.append(Example(predicted, reference))
    return examples


def train(nlp, kb=None, steps=5):
    """Train for some steps, and return losses and the entities of the texts after it."""
    fix_random_seed(0)
    examples = examples_for(nlp)
    linker = nlp.get_pipe("entity_linker")
    loader = None if kb is None else lambda vocab: kb
    linker.initialize(lambda: examples, nlp=nlp, kb_loader=loader)
    optimizer = nlp.create_optimizer()
    losses = [linker.update(examples, sgd=optimizer)["entity_linker"] for _ in range(steps)]
    fix_random_seed(0)
    return losses, linker.predict([example.predicted for example in examples])


def test_its_candidates_are_those_of_the_store(stored):
    rows = stored.get_alias_candidates("Apple")
    with kgkit.open_kb("toy") as kb:
        expected = kb.decode(kb.candidates("Apple"))
    assert [(row.entity_, row.prior_prob) for row in rows] == [(row.key, row.prior) for row in expected]
    assert {row.alias_ for row in rows} == {"Apple"} and rows[0].kb is stored and rows[0].entity_freq == 0
    np.testing.assert_array_equal(rows[0].entity_vector, DIRECTIONS[expected[0].entity.id].astype(np.float64))
    assert [len(each) for each in (stored.get_alias_candidates("zzz"), stored.get_candidates_batch([]))] == [
        0,
        0,
    ]


def test_candidates_never_enter_the_string_store(stored):
    size = len(stored.vocab.strings)
    rows = stored.get_candidates(spacy.blank("en")("Big Apple")[:])
    hashes = [(row.entity, row.alias) for row in rows]
    assert len(stored.vocab.strings) == size and "New_York_City" not in stored.vocab.strings
    assert hashes == [(stored.vocab.strings.add("New_York_City"), stored.vocab.strings.add("Big Apple"))]


def test_no_candidate_has_a_cosine_that_is_no_number(stored):
    [york] = stored.get_alias_candidates("York")
    assert np.linalg.norm(york.entity_vector) > 0
    assert not stored.get_vector("York").any(), "the loss is that of spaCy's own knowledge base"
    assert not stored.get_vector("no such key").any()


def test_questions_of_a_knowledge_base_of_spacy_are_answered(stored):
    assert (stored.entity_vector_length, len(stored), stored.is_empty()) == (2, 7, False)
    assert (
        stored.contains_entity("Apple")
        and stored.contains_entity("Apples")
        and not stored.contains_entity("x")
    )
    assert stored.contains_alias("apple") and not stored.contains_alias("x")
    with kgkit.open_kb("toy") as kb:
        prior = kb.candidates("Apple")[0].prior
        assert stored.get_prior_prob(kb.key(kb.candidates("Apple")[0].id), "Apple") == prior
    assert stored.get_prior_prob("York", "Apple") == stored.get_prior_prob("x", "Apple") == 0
    np.testing.assert_array_equal(stored.get_vectors(["Apple", "Apples"]), DIRECTIONS[[0, 0]])


def test_a_training_is_that_over_spacys_own_knowledge_base_to_the_last_digit(home):
    first, second = linker_pipeline(), linker_pipeline()
    losses, entities = train(first)
    twin = in_memory(second.vocab, first.get_pipe("entity_linker").kb)
    twin_losses, twin_entities = train(second, twin)
    assert losses == twin_losses and losses[0] != losses[-1]
    unambiguous = [index for index, entity in enumerate(entities) if entity != "York"]
    assert [entities[index] for index in unambiguous] == [twin_entities[index] for index in unambiguous]


def test_an_entity_without_a_vector_is_not_taken_for_the_best(home):
    nlp = linker_pipeline()
    train(nlp)
    linker = nlp.get_pipe("entity_linker")
    kb = linker.kb
    rows = [kb.get_alias_candidates(surface)[0] for surface in ("York", "Big Apple")]
    linker.get_candidates_batch = lambda kb, mentions: [rows for _ in mentions]
    linker.get_candidates = lambda kb, mention: rows
    doc = nlp.make_doc("Big Apple")
    doc.ents = [Span(doc, 0, 2, "N")]
    nlp.get_pipe("sentencizer")(doc)
    linker.incl_prior = True
    rows[0]._prior, rows[1]._prior = 0.0, 1.0
    with np.errstate(invalid="raise", divide="raise"):
        assert linker.predict([doc]) == ["New_York_City"]


def test_a_trained_pipeline_on_disk_has_no_copy_and_comes_back(home, tmp_path):
    nlp = linker_pipeline()
    train(nlp)
    nlp.to_disk(tmp_path / "pipeline")
    folder = tmp_path / "pipeline" / "entity_linker" / "kb"
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 1000
    again = spacy.load(tmp_path / "pipeline")
    kb = again.get_pipe("entity_linker").kb
    assert kb.record == nlp.get_pipe("entity_linker").kb.record
    docs = [example.predicted for example in examples_for(nlp)]
    fix_random_seed(1)
    expected = nlp.get_pipe("entity_linker").predict(docs)
    fix_random_seed(1)
    assert again.get_pipe("entity_linker").predict(docs) == expected
    restored = StoredKB(nlp.vocab, "toy").from_bytes(kb.to_bytes())
    assert restored.record == kb.record == pickle.loads(pickle.dumps(kb)).record


def test_a_saved_pipeline_keeps_its_build_and_names_it_where_it_is_missing(home, tmp_path, monkeypatch):
    nlp = linker_pipeline()
    train(nlp, steps=1)
    nlp.to_disk(tmp_path / "pipeline")
    build = nlp.get_pipe("entity_linker").kb.record.kb
    built(tmp_path, links=[Alias("apple", "Fig")], pages=[Entity("Fig")])
    with pytest.raises(KgkitError, match="was made for build"):
        knowledge_base("toy")(nlp.vocab).get_alias_candidates("apple")
    with pytest.raises(KgkitError, match="was made for build"):
        linker_pipeline().get_pipe("entity_linker").kb.is_empty()
    assert spacy.load(tmp_path / "pipeline").get_pipe("entity_linker").kb.record.kb == build
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "empty"))
    with pytest.raises(NotThere, match=f"needs the knowledge base {build} and the vectors plane"):
        spacy.load(tmp_path / "pipeline")


def test_what_cannot_be_is_one_clear_error(stored):
    with pytest.raises(UsageError, match="max_candidates is 0"):
        knowledge_base("toy", max_candidates=0)(stored.vocab)
    with pytest.raises(NotThere, match="has no vectors 'x'"):
        knowledge_base("toy", vectors="x")(stored.vocab).is_empty()
    with pytest.raises(NotThere, match="no knowledge base 'x'"):
        knowledge_base("x")(stored.vocab).is_empty()
    with pytest.raises(DamagedModel, match="is no record of a knowledge base"):
        stored.from_bytes(b"\x00")
    assert len(knowledge_base("toy", max_candidates=1)(stored.vocab).get_alias_candidates("Apple")) == 1
