"""What E-BERT reads: the sequences of the paper, markers, what is cut, and vectors once a batch."""

import logging

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.building.add import add_to_kb
from kgkit.embedding.text import TextConfig, embed_text, update_text
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.heads import EBert, EBertConfig
from kgkit.inputs.ebert import EBertReader
from kgkit.inputs.entity_sequences import ENTITY, build_sequence, collate_sequences
from kgkit.inputs.entity_spans import EntitySpan, LinkedText, linked_text
from kgkit.inputs.entity_vectors import RescaledEntityVectors, StoredEntityVectors
from kgkit.kb import open_kb
from kgkit.types import CANDIDATE, Alias, Candidates, Document, Entity, Link, LinkedDocument, Mention
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, byte_level_encoder, tiny_encoder

RECORDS = (
    Entity("Jean_Marais", "Jean Marais", "a big cat of the city"),
    Entity("Mars", "Mars", "a small red fruit"),
    Entity("dog", "dog", "it barks"),
    Entity("nobody", ""),
    Alias("dog", "dog", 1),
)
WORDS = ("Jean", "Mara", "##is", "/", "#", "$", "plays")
TEXT = "the dog and Jean Marais of Mars"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), words=WORDS, mask=True)
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def kb(tmp_path_factory, encoder):
    with build(tmp_path_factory.mktemp("home"), RECORDS, name="films") as kb:
        settings = TextConfig(encoder=str(encoder.folder), device="cpu", dtype="float32")
        embed_text(kb, settings, encoder=encoder)
        yield kb


@pytest.fixture(scope="module")
def vectors(kb):
    return StoredEntityVectors(kb.vectors("text"))


@pytest.fixture(scope="module")
def pieces(encoder, kb):
    """Return a sequence as a line: word pieces, and the keys of entities."""

    def line(sequence):
        entities = iter(sequence.entities)
        return " ".join(
            "+".join(kb[entity].key for entity in next(entities))
            if piece == ENTITY
            else encoder.tokenizer.convert_ids_to_tokens(piece)
            for piece in sequence.ids.tolist()
        )

    return line


def linked(kb, text, *names):
    """Return a text with mentions, each (words, key)."""
    spans = [
        EntitySpan(text.index(words), text.index(words) + len(words), kb.id(key)) for words, key in names
    ]
    return LinkedText(text, tuple(spans))


def read(encoder, vectors, text, **others):
    return EBertReader(encoder, vectors, size=24).read([text], **others)


def test_the_sequence_of_the_paper(encoder, kb, vectors, pieces):
    text = linked(kb, "Jean Marais plays it", ("Jean Marais", "Jean_Marais"))
    sequence = read(encoder, vectors, text)
    assert pieces(sequence) == "[CLS] Jean_Marais / Jean Mara ##is plays it [SEP]"
    assert pieces(read(encoder, None, text)) == "[CLS] Jean Mara ##is plays it [SEP]"  # a control
    assert [*zip(sequence.starts.tolist(), sequence.ends.tolist(), strict=True)] == [
        (-1, -1), (0, 11), (-1, -1), (0, 4), (5, 9), (9, 11), (12, 17), (18, 20), (-1, -1)
    ]  # fmt: skip
    assert sequence.words.tolist() == [3, 4, 5, 6, 7]


def test_the_markers_of_a_relation_stand_around_entities(encoder, kb, vectors, pieces):
    text = linked(kb, TEXT, ("Jean Marais", "Jean_Marais"), ("dog", "dog"))
    marker = encoder.tokenizer.convert_tokens_to_ids
    markers = [(marker("#"),) * 2, (marker("$"),) * 2]
    for marks, expected in (
        ([(12, 23), (4, 7)], "[CLS] the $ dog / dog $ and # Jean_Marais / Jean Mara ##is # of [UNK] [SEP]"),
        ([(12, 23), (12, 16)], "and # $ Jean_Marais / Jean $ Mara ##is # of"),
        ([(4, 7), (4, 7)], "the # $ dog / dog $ # and"),
    ):
        assert expected in pieces(read(encoder, vectors, text, marks=marks, markers=markers))


def test_signs_are_cut_as_between_words_where_a_piece_has_the_space_before_it(tmp_path, kb, vectors):
    folder = byte_level_encoder(tmp_path / "bytes", words=("the", "dog", "barks", "/", "#"))
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    text = linked(kb, "see the dog barks", ("dog", "dog"))
    name = encoder.tokenizer.convert_ids_to_tokens
    reader = EBertReader(encoder, vectors, size=24)
    ids = reader.read([text]).ids.tolist()
    entity = ids.index(ENTITY)
    assert name(ids[entity - 1 : entity]) == ["Ġthe"]
    assert name(ids[entity + 1 :]) == ["Ġ/", "Ġdog", "Ġbarks", "</s>"]
    assert name([reader.tokens.sign("#")]) == ["Ġ#"]
    assert name([reader.tokens.sign("%")]) == ["%"]  # behind a piece of the space alone


def test_without_a_vector_there_are_word_pieces_only(encoder, kb, vectors, pieces):
    text = linked(kb, TEXT, ("dog", "nobody"), ("Mars", "Mars"))
    unknown = text._replace(spans=(*text.spans, EntitySpan(12, 23, 1_000_000)))
    assert [kb[entity].key for [entity] in read(encoder, vectors, unknown).entities] == ["Mars"]


def test_of_mentions_that_overlap_the_first_and_longest_is_read(encoder, kb, vectors, pieces):
    names = ("Jean", "dog"), ("Jean Marais", "Jean_Marais"), ("Marais of", "Mars"), ("of Mars", "Mars")
    sequence = read(encoder, vectors, linked(kb, TEXT, *names))
    assert pieces(sequence) == "[CLS] the dog and Jean_Marais / Jean Mara ##is Mars / of [UNK] [SEP]"


def test_a_pair_is_read_as_the_tokenizer_has_it_with_entities_in_both(encoder, kb, vectors, pieces):
    reader = EBertReader(encoder, vectors, size=24)
    texts = linked(kb, "the dog", ("dog", "dog")), linked(kb, "it is Mars", ("Mars", "Mars"))
    pair = reader.read(texts)
    assert pieces(pair) == "[CLS] the dog / dog [SEP] it is Mars / [UNK] [SEP]"
    assert pair.types.tolist() == [0] * 6 + [1] * 6
    plain = reader.read([text._replace(spans=()) for text in texts])
    wanted = encoder.tokenizer.backend_tokenizer.encode("the dog", "it is Mars")
    assert plain.ids.tolist() == wanted.ids and plain.types.tolist() == wanted.type_ids
    with pytest.raises(UsageError, match="a text or a pair of texts is read, not 3 texts"):
        reader.read([*texts, texts[0]])


def test_long_texts_are_cut_so_that_entities_have_room(encoder, kb, vectors, pieces, caplog):
    text = linked(kb, TEXT, ("dog", "dog"), ("Jean Marais", "Jean_Marais"))
    with caplog.at_level(logging.WARNING):
        reader = EBertReader(encoder, vectors, size=10)
        assert pieces(reader.read([text])) == "[CLS] the dog / dog and Jean Mara [SEP]"
        assert "texts of more than 10 word pieces are cut" in caplog.text
    marks = {"marks": [(24, 31)], "markers": [(4, 5)]}
    cut = reader.read([text], **marks)
    assert len(cut) == 10 and cut.ids[-3:-1].tolist() == [4, 5]  # nothing is left of the name
    pair = reader.read([text, text._replace(text="it barks", spans=())])
    assert pieces(pair) == "[CLS] the dog / dog and [SEP] it barks [SEP]"
    with pytest.raises(UsageError, match="of 8 pieces, of which 6 are markers, leave no room for words"):
        EBertReader(encoder, vectors, size=8).read([text], tail=[5] * 6)


def test_links_become_the_ids_of_the_knowledge_base(kb):
    def link(start, end, entity, name="films"):
        return Link(start, end, TEXT[start:end], name, entity, None, "", 1.0, entity is None, [])

    links = [link(4, 7, "dog"), link(12, 23, None), link(27, 31, "Mars", "other"), link(27, 31, "gone")]
    document = LinkedDocument("1", TEXT, "prior", links)
    assert linked_text(document, kb).spans == (EntitySpan(4, 7, kb.id("dog")),)
    candidates = Candidates(np.array([(kb.id("Mars"), 0, 0.9), (kb.id("dog"), 0, 0.1)], CANDIDATE))
    mentions = [Mention(27, 31, "Mars", candidates), Mention(4, 7, "dog")]
    linked = linked_text(Document("1", TEXT, mentions=mentions), kb)
    assert linked == LinkedText(TEXT, (EntitySpan(27, 31, kb.id("Mars")),))


def test_a_batch_has_the_vector_of_each_entity_once(encoder, kb, vectors, monkeypatch):
    dog, mars = (int(kb.id(key)) for key in ("dog", "Mars"))
    sequences = [build_sequence([2, (dog,), 5, 3]), build_sequence([2, (mars,), (dog,), (dog, mars), 7, 3])]
    asked = []
    gather = vectors.gather
    monkeypatch.setattr(vectors, "gather", lambda ids: asked.append(sorted(map(int, ids))) or gather(ids))
    inputs = collate_sequences(sequences, vectors)
    assert asked == [sorted([dog, mars])]
    assert inputs.rows.tolist() == [[-1, 0, -1, -1, -1, -1], [-1, 1, 0, 2, -1, -1]]
    assert inputs.real.sum(1).tolist() == [4, 6] and inputs.ids[0].tolist() == [2, 0, 5, 3, 0, 0]
    rows = torch.from_numpy(gather([dog, mars]))
    torch.testing.assert_close(inputs.vectors, torch.stack([rows[0], rows[1], rows.mean(0)]))


def test_the_mean_of_entities_leaves_out_those_without_a_vector(kb, vectors):
    dog, nobody = kb.id("dog"), kb.id("nobody")
    means = vectors.means([(dog, nobody), (nobody, 99)])
    np.testing.assert_array_equal(means[0], vectors.gather([dog])[0])
    assert not means[1].any() and vectors.exist([dog, nobody, 99]).tolist() == [True, False, False]


def test_rescaled_vectors_are_mapped_to_one_length_and_means_are_of_what_is_mapped(kb):
    weight = np.random.default_rng(0).standard_normal((7, WIDTH)).astype(np.float32)
    stored, ids = kb.vectors("text"), [kb.id("dog"), kb.id("nobody"), kb.id("Mars")]
    rescaled = RescaledEntityVectors(stored, weight, 1.5)
    mapped = rescaled.gather(ids) @ weight.T
    assert np.linalg.norm(mapped, axis=1).tolist() == pytest.approx([1.5, 0, 1.5])
    plain = stored.gather(ids) @ weight.T
    np.testing.assert_allclose(mapped[0], plain[0] * 1.5 / np.linalg.norm(plain[0]), rtol=1e-4)
    mean = rescaled.means([(ids[0], ids[2])])[0] @ weight.T
    np.testing.assert_allclose(mean, (mapped[0] + mapped[2]) / 2, rtol=1e-4, atol=1e-6)


def test_padding_order_and_batch_size_change_no_vector(encoder, kb, vectors):
    reader = EBertReader(encoder, vectors, size=24)
    texts = [linked(kb, TEXT, ("dog", "dog"), ("Mars", "Mars")), linked(kb, "the dog", ("dog", "dog"))]
    sequences = [reader.read([text]) for text in (*texts, texts[0]._replace(spans=()))]
    weight = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(0))
    ebert = EBert(encoder.model, EBertConfig(stored=WIDTH, width=WIDTH), weight).eval()
    with torch.no_grad():
        together = ebert(reader.batch(sequences)).last_hidden_state
        turned = ebert(reader.batch(sequences[::-1])).last_hidden_state.flip(0)
        for row, sequence in enumerate(sequences):
            alone = ebert(reader.batch([sequence])).last_hidden_state[0]
            torch.testing.assert_close(together[row, : len(sequence)], alone, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(turned[row, : len(sequence)], alone, rtol=1e-4, atol=1e-5)


def test_a_new_entity_is_read_untrained(encoder, kb, tmp_path, pieces):
    home = tmp_path / "home"
    with build(home, RECORDS, name="films") as before:
        embed_text(
            before, TextConfig(encoder=str(encoder.folder), device="cpu", dtype="float32"), encoder=encoder
        )
    text = linked(kb, "it is a tree of Mars", ("Mars", "Mars"))
    new = tmp_path / "new.jsonl"
    new.write_text('{"key": "oak", "label": "tree", "description": "a big tree grows"}\n', encoding="utf-8")
    add_to_kb("films", new, home=home)
    with open_kb("films", home) as after:
        update_text(after, encoder=encoder)
        reader = EBertReader(encoder, StoredEntityVectors(after.vectors("text")), size=24)
        oak = int(after.id("oak"))
        sequence = reader.read([text._replace(spans=(EntitySpan(8, 12, oak),))])
        assert sequence.entities == ((oak,),)
        weight = torch.eye(WIDTH)
        ebert = EBert(encoder.model, EBertConfig(stored=WIDTH, width=WIDTH), weight).eval()
        inputs = reader.batch([sequence])
        embedded = ebert.embed(inputs)[0, 4].detach()
        np.testing.assert_allclose(
            embedded.detach(), encoder.encode(["tree: a big tree grows"])[0], atol=1e-5
        )
