"""What KnowBert reads: spans that say what the text says, pairs, what is cut, and vectors once a batch."""

import logging

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.candidates import AliasGenerator
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import StaleModel, UsageError
from kgkit.heads import EntityLinkerConfig, KARConfig, KnowBert
from kgkit.inputs import KnowBertReader, Knowledge
from kgkit.types import Alias, Entity
from tests.small_kb import build
from tests.tiny_encoder import WIDTH, tiny_encoder

RECORDS = (
    Entity("dog.n.01", "dog", "a big red dog barks"),
    Entity("dog.n.02", "dog", "it eats the fruit"),
    Entity("tree.n.01", "tree", "it grows"),
    Entity("big-city", "big city", "not small"),
    Alias("dog", "dog.n.01", 3),
    Alias("dog", "dog.n.02", 1),
    Alias("tree", "tree.n.01", 1),
    Alias("big city", "big-city", 1),
    Alias("city", "big-city", 1),
)
TEXT = "the dog barks in the big city"
PAIR = ("a tree grows", "the dogs of the city")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory, encoder):
    with build(tmp_path_factory.mktemp("home"), RECORDS, name="words") as kb:
        for name in ("text", "more"):
            settings = TextConfig(
                encoder=str(encoder.folder), device="cpu", dtype="float32", name=name,
                template="{label}" if name == "more" else "{label}: {description}",
            )  # fmt: skip
            embed_text(kb, settings, encoder=encoder)
        yield Knowledge(AliasGenerator(kb), (kb.vectors("text"), kb.vectors("more")))


@pytest.fixture
def reader(encoder, knowledge):
    return KnowBertReader(encoder, {"words": knowledge}, size=24)


def said(reader, text):
    """The mentions of a text as their word pieces are read."""
    pieces = reader.tokens._tokens.id_to_token
    known = text.known["words"]
    return [" ".join(pieces(int(one)) for one in text.ids[first:end]) for first, end in known.spans.tolist()]


def test_spans_are_the_pieces_of_what_the_knowledge_base_knows(reader):
    [text] = reader([(TEXT,)])
    assert said(reader, text) == ["dog", "big city"]
    assert text.special.tolist() == [True] + [False] * 7 + [True]
    assert not text.types.any() and not text.known["words"].masked.any()
    assert [len(one) for one in text.known["words"].candidates] == [2, 1]


def test_a_pair_is_read_as_the_tokenizer_has_it(reader, encoder):
    [pair] = reader([PAIR])
    wanted = encoder.tokenizer.backend_tokenizer.encode(*PAIR)
    assert pair.ids.tolist() == wanted.ids
    assert pair.types.tolist() == wanted.type_ids and pair.types.any()
    assert pair.special.tolist() == [bool(one) for one in wanted.special_tokens_mask]
    assert "token_type_ids" in reader.batch([pair]).inputs
    assert said(reader, pair) == ["tree", "city"]


@pytest.mark.parametrize(
    ("size", "kept"), [(24, (3, 6)), (10, (3, 4)), (9, (3, 3)), (8, (2, 3)), (6, (1, 2)), (5, (1, 1))]
)
def test_of_a_pair_the_longer_is_cut_first(encoder, knowledge, size, kept, caplog):
    reader = KnowBertReader(encoder, {"words": knowledge}, size=size)
    with caplog.at_level(logging.WARNING):
        first, second = reader([PAIR, PAIR[::-1]])
    whole = [reader.tokens(text).ids.tolist() for text in PAIR]
    assert len(first.ids) <= size
    left, right = whole
    assert first.ids.tolist()[1 : 1 + kept[0]] == left[: kept[0]]
    assert first.ids.tolist()[2 + kept[0] : -1] == right[: kept[1]]
    assert len(second.ids) == len(first.ids)
    assert len(caplog.records) == (kept != (3, 6))  # said once


def test_a_mention_that_is_cut_is_left_out(encoder, knowledge):
    [text] = KnowBertReader(encoder, {"words": knowledge}, size=8)([(TEXT,)])
    assert [len(one) for one in text.known["words"].candidates] == [2]


def test_a_batch_has_each_entity_once_and_its_vectors_joined(reader, knowledge):
    texts = list(reader([(TEXT,), ("a dog",), ("it is round",)]))
    batch = reader.batch(texts)
    inputs = batch.knowledge["words"]
    assert inputs.vectors.shape == (3, 2 * WIDTH) and inputs.rows.shape == inputs.candidates.shape
    torch.testing.assert_close(inputs.vectors.square().mean(1), torch.ones(3))
    assert inputs.mentions.sum(1).tolist() == [2, 1, 0]
    ids = np.unique(np.concatenate([one.ids for text in texts for one in text.known["words"].candidates]))
    for row, text in enumerate(texts):
        for place, candidates in enumerate(text.known["words"].candidates):
            found = inputs.rows[row, place][inputs.candidates[row, place]].numpy()
            assert ids[found].tolist() == candidates.ids.tolist()
            priors = inputs.features[row, place, : len(candidates), 0]
            np.testing.assert_array_equal(priors.numpy(), candidates.priors)
    assert batch.inputs["attention_mask"].sum(1).tolist() == [len(text.ids) for text in texts]


def test_what_is_read_does_not_depend_on_what_stands_beside_it(reader, encoder, knowledge):
    linker = EntityLinkerConfig(hidden=WIDTH, width=8, stored=knowledge.width, heads=2, inner=8, scorer=4)
    knowbert = KnowBert(encoder.model, {"words": KARConfig(linker=linker, layer=1, heads=2, inner=8)}).eval()
    texts = list(reader([(TEXT,), PAIR, ("it is round",), ("a dog",)]))

    def states(some):
        batch = reader.batch(some)
        found = knowbert(batch.knowledge, **batch.inputs).model.last_hidden_state
        return [one[: len(text.ids)] for one, text in zip(found, some, strict=True)]

    with torch.no_grad():
        for text, together in zip(texts, states(texts), strict=True):
            [alone] = states([text])
            torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-4)


def test_texts_without_a_mention_make_a_batch(reader):
    batch = reader.batch(list(reader([("it is round",), ("",)])))
    assert not batch.knowledge["words"].mentions.any()
    assert batch.inputs["input_ids"].shape == (2, 5)


def test_sizes_and_texts_that_cannot_be_are_refused(encoder, knowledge, reader):
    with pytest.raises(UsageError, match=r"texts of 4 pieces; .* reads 5 to 24"):
        KnowBertReader(encoder, {"words": knowledge}, size=4)
    with pytest.raises(UsageError, match="texts of 25 pieces"):
        KnowBertReader(encoder, {"words": knowledge}, size=25)
    with pytest.raises(UsageError, match="not 3 texts"):
        list(reader([("a", "b", "c")]))


def test_a_model_of_another_build_or_of_other_vectors_is_refused(reader, knowledge):
    about = knowledge.about
    assert len(about) == 2 and all(name.startswith("words@") for name in about)
    reader.check({"words": about})
    with pytest.raises(UsageError, match="trained with the knowledge base aida"):
        reader.check({"aida": {}})
    for other in (
        dict.fromkeys(about, "0"),
        {name.replace("words@", "words@1"): version for name, version in about.items()},
        dict(list(about.items())[:1]),
    ):
        with pytest.raises(StaleModel, match="or train it again"):
            reader.check({"words": other})
