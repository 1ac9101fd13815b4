"""What KnowBert reads: spans that say what the text says, pairs, what is cut, and vectors once a batch."""

import logging
from itertools import pairwise

import msgspec
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
from kgkit.inputs.knowledge import _method_digest
from kgkit.types import NO_CANDIDATES, Alias, Document, Entity, Mention
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
    known = text.mentions["words"]
    return [" ".join(pieces(int(one)) for one in text.ids[first:end]) for first, end in known.spans.tolist()]


def test_spans_are_the_pieces_of_what_the_knowledge_base_knows(reader):
    [text] = reader([(TEXT,)])
    assert said(reader, text) == ["dog", "big city"]
    assert text.special.tolist() == [True] + [False] * 7 + [True]
    assert not text.types.any() and not text.mentions["words"].masked.any()
    assert [len(one) for one in text.mentions["words"].candidates] == [2, 1]


def test_a_pair_is_read_as_the_tokenizer_has_it(reader, encoder):
    [pair] = reader([PAIR])
    wanted = encoder.tokenizer.backend_tokenizer.encode(*PAIR)
    assert pair.ids.tolist() == wanted.ids
    assert pair.types.tolist() == wanted.type_ids and pair.types.any()
    assert pair.special.tolist() == [bool(one) for one in wanted.special_tokens_mask]
    assert "token_type_ids" in reader.batch([pair]).inputs
    assert said(reader, pair) == ["tree", "dog ##s", "city"]


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
    assert [len(one) for one in text.mentions["words"].candidates] == [2]


def test_a_batch_has_each_entity_once_and_its_vectors_joined(reader, knowledge):
    texts = list(reader([(TEXT,), ("a dog",), ("it is round",)]))
    batch = reader.batch(texts)
    inputs = batch.knowledge["words"]
    assert inputs.vectors.shape == (3, 2 * WIDTH) and inputs.rows.shape == inputs.candidates.shape
    torch.testing.assert_close(inputs.vectors.square().mean(1), torch.ones(3))
    assert inputs.mentions.sum(1).tolist() == [2, 1, 0]
    ids = np.unique(np.concatenate([one.ids for text in texts for one in text.mentions["words"].candidates]))
    for row, text in enumerate(texts):
        for place, candidates in enumerate(text.mentions["words"].candidates):
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


def test_vectors_are_made_alike_wherever_they_were_computed(knowledge):
    manifest = knowledge.vectors[0].manifest

    def way(**others):
        return _method_digest(msgspec.structs.replace(manifest, config=manifest.config | others))

    elsewhere = way(device="cuda", dtype="bfloat16", encoder="/elsewhere", batch_tokens=1, taken_over="x")
    assert elsewhere == way() != way(fingerprint="another")


def test_parts_of_speech_stand_behind_the_vectors(tmp_path, encoder):
    records = (Entity("dog.n", "dog", "it barks", pos="n"), Entity("eat.v", "eats", "not it", pos="v"),
               Entity("no", "fruit", "round"), Alias("dog", "dog.n", 1))  # fmt: skip
    with build(tmp_path, records, name="parts") as kb:
        config = TextConfig(encoder=str(encoder.folder), device="cpu", dtype="float32", name="text")
        embed_text(kb, config, encoder=encoder)
        parts = Knowledge(AliasGenerator(kb), (kb.vectors("text"),))
        found = parts.gather(np.array([kb.id(key) for key in ("eat.v", "no", "dog.n")], np.uint32))
        assert found.shape == (3, parts.width) == (3, WIDTH + 2)
        behind = found[:, WIDTH:]
        np.testing.assert_allclose(np.square(behind).mean(1), [1, 0, 1], rtol=1e-6)
        assert behind[0].argmax() != behind[2].argmax()
        np.testing.assert_allclose(np.square(found[:, :WIDTH]).mean(1), [1, 1, 1], rtol=1e-5)
        before = parts.of_width(WIDTH + 1)  # of a model that was trained when there was one
        ids = np.array([kb.id(key) for key in ("eat.v", "no", "dog.n")], np.uint32)
        assert before.width == WIDTH + 1 and before.gather(ids).shape == (3, WIDTH + 1)
        first = kb.store.classes[0]
        assert before.gather(ids)[:, WIDTH].tolist() == [first == "v", 0, first == "n"]
        assert parts.of_width(WIDTH).gather(ids).shape == (3, WIDTH)
        assert parts.of_width(WIDTH + 2) is parts.of_width(WIDTH + 5) is parts.of_width(3) is parts


# -- documents of any length ------------------------------------------------

SENTENCES = (
    "the dog barks", "a dog in the big city", "it is not a tree", "dogs of many dogs", "the fruit",
    "a tree and a tree and the big red dog of the big city in the small city"
    + 2 * " and a dog of the big city",
    "the dog is in the city",
)  # fmt: skip
LONG = "\n".join(SENTENCES)


def long_document(mentions=None):
    begins = np.cumsum([0, *(len(sentence) + 1 for sentence in SENTENCES)])
    spans = [
        (int(begin), int(begin) + len(sentence)) for begin, sentence in zip(begins, SENTENCES, strict=False)
    ]
    return Document("long", LONG, spans, None, mentions)


def found_in(knowledge, document):
    [found] = knowledge.generator(iter([Document(document.id, document.text, document.sentences)]))
    return found.mentions


@pytest.mark.parametrize("size", [6, 9, 12, 24])
def test_nothing_is_left_out_of_a_long_document(encoder, knowledge, size):
    reader = KnowBertReader(encoder, {"words": knowledge}, size=size)
    document = long_document()
    stretches = reader.read_document(document, {})
    inner = [one.ids[~one.special] for one in stretches]
    pieces = reader.tokens(LONG)
    np.testing.assert_array_equal(np.concatenate(inner), pieces.ids)
    assert all(len(one.ids) <= size and not one.types.any() for one in stretches)
    for one in stretches:
        assert one.special.tolist() == [True] + [False] * (len(one.ids) - 2) + [True]
        assert one.ids[[0, -1]].tolist() == [reader.tokens.before[0], reader.tokens.after[0]]
    cuts = np.cumsum([len(one) for one in inner])[:-1].tolist()
    begins = {pieces.within(*span)[0] for span in document.sentences}
    for sentence in document.sentences:  # one with room is kept whole
        first, end = pieces.within(*sentence)
        assert end - first > size - 2 or not any(first < cut < end for cut in cuts)
    for (first, second), cut in zip(pairwise(inner), cuts, strict=True):
        if cut in begins:  # and put to the one before it, if there is room
            following = min([one for one in begins if one > cut], default=len(pieces))
            assert len(first) + min(following - cut, len(second)) > size - 2 or len(second) == size - 2


@pytest.mark.parametrize("size", [6, 9, 12, 24])
def test_mentions_are_exactly_where_the_text_has_them(encoder, knowledge, size):
    reader = KnowBertReader(encoder, {"words": knowledge}, size=size)
    document, pieces = long_document(), reader.tokens(LONG)
    mentions = found_in(knowledge, document)
    stretches = reader.read_document(document, {})
    read, begin, across = [], 0, []
    for one in stretches:
        known, end = one.mentions["words"], begin + len(one.ids) - 2
        for (first, last), candidates, place in zip(
            known.spans.tolist(), known.candidates, known.indices.tolist(), strict=True
        ):
            mention = mentions[place]
            assert pieces.within(mention.start, mention.end) == (first - 1 + begin, last - 1 + begin)
            assert candidates.ids.tolist() == mention.candidates.ids.tolist()
            read.append(place)
        for place, mention in enumerate(mentions):
            first, last = pieces.within(mention.start, mention.end)
            across += [place] if first < end < last else []
        assert not known.masked.any()
        begin = end
    assert sorted(read + across) == list(range(len(mentions)))  # what a cut goes through is in none
    assert across or size != 6


def test_given_mentions_are_kept_and_those_of_other_knowledge_bases_sought(encoder, knowledge):
    reader = KnowBertReader(encoder, {"words": knowledge, "other": knowledge}, size=12)
    [dog] = knowledge.generator(iter([Document("", "dog")]))
    given = [
        Mention(4, 7, "dog", candidates=dog.mentions[0].candidates),
        Mention(LONG.index("fruit"), LONG.index("fruit") + 5, "fruit", candidates=NO_CANDIDATES),
    ]
    document = long_document(given)
    stretches = reader.read_document(document, {"words": document})
    for name, mentions in (("words", given), ("other", found_in(knowledge, document))):
        known = [one.mentions[name] for one in stretches]
        assert sorted(np.concatenate([one.indices for one in known]).tolist()) == list(range(len(mentions)))
        for one in known:
            assert [candidates.ids.tolist() for candidates in one.candidates] == [
                mentions[place].candidates.ids.tolist() for place in one.indices.tolist()
            ]
    # A document's own mentions are not read unless they are given.
    again = reader.read_document(document, {})
    assert [one.mentions["words"].indices.tolist() for one in again] == [
        one.mentions["other"].indices.tolist() for one in stretches
    ]


def test_an_empty_document_has_no_stretch(reader):
    assert reader.read_document(Document("", ""), {}) == []
    assert len(reader.read_document(Document("", "the dog"), {})) == 1


def test_places_say_which_mention_each_is(encoder, knowledge, reader):
    mentions = found_in(knowledge, Document("", TEXT))
    [text] = reader([(TEXT,)])
    assert [mentions[place].text for place in text.mentions["words"].indices] == ["dog", "big city"]
    # Of a pair, the first text that is cut lacks its last mention; those of the second count anew.
    [pair] = KnowBertReader(encoder, {"words": knowledge}, size=14)([(TEXT, TEXT)])
    assert pair.mentions["words"].indices.tolist() == [0, 0]
    [pair] = reader([(TEXT, TEXT)])
    assert pair.mentions["words"].indices.tolist() == [0, 1, 0, 1]
