"""E-BERT in three lines: an encoder, a knowledge base with vectors and a map, and nothing trained."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import NotThere, UsageError
from kgkit.inputs.entity_spans import EntitySpan, LinkedText
from kgkit.kb import open_kb
from kgkit.methods.ebert_encoder import EBertEncoder, begin_head
from kgkit.types import Document, Mention
from tests.ebert_toys import RECORDS, save_map
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

TEXT = "the name0 eats"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), words=("/",))
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def home(tmp_path_factory, encoder):
    home = tmp_path_factory.mktemp("home")
    with build(home, RECORDS, name="names") as kb:
        config = TextConfig(encoder=encoder.name, device="cpu", dtype="float32")
        save_map(embed_text(kb, config, encoder=encoder), encoder)
    return home


@pytest.fixture(scope="module")
def ebert(home, encoder):
    with EBertEncoder.open(encoder.name, kb="names", home=home, device="cpu") as ebert:
        yield ebert


def plain(encoder, text):
    tokens = encoder.tokenizer(text)["input_ids"]
    [(_, hidden)] = encoder.layers([tokens], [-1])
    return hidden[0]


def test_a_text_is_read_with_the_entities_that_it_mentions(ebert, encoder):
    [encoding, other] = ebert([TEXT, "it eats"])
    assert encoding.pieces == ("[CLS]", "the", "name0", "/", "[UNK]", "eats", "[SEP]")
    assert encoding.entities == (None, None, "name0", None, None, None, None)
    assert encoding.spans[2].tolist() == encoding.spans[4].tolist() == [4, 9]
    assert encoding.vectors.shape == (7, 16) and encoding.text == TEXT
    np.testing.assert_array_equal(encoding.spans[[0, 3, 6]], -1)
    np.testing.assert_allclose(other.vectors, plain(encoder, "it eats"), atol=1e-5)


def test_without_an_entity_its_vectors_are_those_of_the_encoder_bit_for_bit(ebert, encoder):
    [encoding] = ebert([LinkedText(TEXT)])
    assert encoder.model is not None  # torch reads from now on, as an E-BERT does
    np.testing.assert_array_equal(encoding.vectors, plain(encoder, TEXT))


def test_links_may_be_given(ebert):
    spans = (EntitySpan(4, 9, ebert.kb.id("name3")),)
    mention = Mention(4, 9, "name0", candidates=ebert.kb.candidates("name3"))
    linked = next(iter(ebert.linker([TEXT])))
    texts = [LinkedText(TEXT, spans), Document("1", TEXT, mentions=[mention]), linked, Document("2", TEXT)]
    keys = [[key for key in encoding.entities if key] for encoding in ebert(texts)]
    assert keys == [["name3"], ["name3"], ["name0"], []]


def test_a_map_can_be_handed_over(home, encoder):
    with open_kb("names", home) as kb:
        alignment = save_map(kb.vectors("text"), encoder)
        ebert = kgkit.EBertEncoder.open(encoder, kb=kb, alignment=alignment, linker=None, home=home)
        [encoding] = ebert([LinkedText(TEXT, (EntitySpan(4, 9, kb.id("name1")),))])
        assert encoding.pieces == ("[CLS]", "the", "name1", "/", "[UNK]", "eats", "[SEP]")
        [unlinked] = ebert([TEXT])
        assert unlinked.entities == (None,) * 5
        ebert.close()
        assert kb["name1"].label == "tree grows"  # it is the caller's, and open


def test_a_map_of_another_encoder_is_refused(home, encoder, tmp_path):
    other = Encoder.load(str(tiny_encoder(tmp_path / "other", seed=1)), device="cpu", dtype="float32")
    with pytest.raises(NotThere, match="the vectors names/text have no map to"):
        EBertEncoder.open(other, kb="names", home=home)
    with open_kb("names", home) as kb:
        narrow = save_map(kb.vectors("text"), other, np.eye(8, 16, dtype=np.float32))
    with pytest.raises(UsageError, match=r"the map has the shape \(8, 16\); from names/text among"):
        EBertEncoder.open(other, kb="names", alignment=narrow, home=home)


@pytest.mark.parametrize(
    ("text", "noun"), [(TEXT, "string"), (Document("1", TEXT), "Document"), (LinkedText(TEXT), "LinkedText")]
)
def test_one_text_is_no_list_of_texts(ebert, text, noun):
    with pytest.raises(UsageError, match=f"texts is one {noun}: give a list of them"):
        ebert(text)


@pytest.mark.parametrize("text", [None, 3, TEXT.encode()])
def test_what_is_no_text_is_refused(ebert, text):
    with pytest.raises(UsageError, match=f"of the type {type(text).__name__}: expected a string, a Document"):
        list(ebert([TEXT, text]))


@pytest.mark.parametrize("entity", ["name3", 1.5, -1])
def test_what_is_no_id_of_an_entity_is_refused(ebert, entity):
    with pytest.raises(UsageError, match="entity ids are integers from 0"):
        list(ebert([LinkedText(TEXT, (EntitySpan(4, 9, entity),))]))


def test_a_size_without_room_is_refused(home, encoder):
    with pytest.raises(UsageError, match="0 pieces"):
        EBertEncoder.open(encoder, kb="names", home=home, linker=None, size=0)


def test_a_head_begins_around_the_model_that_stands_on_the_encoder(home, encoder):
    class Outer:
        """A model around an encoder, with its table of word pieces."""

        forward = encoder.model.forward
        get_input_embeddings = encoder.model.get_input_embeddings

    with open_kb("names", home) as kb:
        bare, own = begin_head(encoder, kb.vectors("text"))
        around, vectors = begin_head(encoder, kb.vectors("text"), around=Outer())
        assert isinstance(around.__dict__["model"], Outer) and around.config == bare.config
        np.testing.assert_array_equal(around.weight, bare.weight)
        np.testing.assert_array_equal(vectors.gather([0, 1]), own.gather([0, 1]))
