"""The part of speech of a mention in its context, where nobody has given it."""

import numpy as np
import pytest

import kgkit
from kgkit.encoder.finding import find_in_package
from kgkit.errors import DamagedModel
from kgkit.linking.parts_of_speech import FILE, PartsOfSpeech
from kgkit.types import Alias, Document, Entity, Mention
from tests.small_kb import build
from tests.tiny_encoder import MINILM

WORDS = {
    "price": {"n": ("the amount of money that something costs", 24), "v": ("determine the price of", 1)},
    "after": {"r": ("happening at a time subsequent to a reference time", 15)},
    "light": {
        "n": ("electromagnetic radiation that can be seen", 30),
        "v": ("make lighter or brighter", 12),
        "a": ("of comparatively little physical weight", 20),
    },
    "can": {"n": ("a metal container", 2), "v": ("preserve in a can", 1)},
    "might": {"n": ("physical strength", 3)},
    "war": {"n": ("the waging of armed conflict against an enemy", 60)},
}


@pytest.fixture
def kb(tmp_path):
    """Return a lexicon of words that are of several parts of speech."""
    records = []
    for lemma, senses in WORDS.items():
        for pos, (description, count) in senses.items():
            key, sense = f"{lemma}.{pos}", f"{lemma}%{pos}"
            records += [
                Entity(key, lemma, description, kind="synset", pos=pos),
                Entity(sense, lemma, kind="lemma", pos=pos),
                Alias(lemma, key, count, sense),
            ]
    with build(tmp_path, records, name="lexicon", smoothing=1.0, generator="lemma") as kb:
        yield kb


def weighed(kb, text, logits, scores, **given):
    """Return the scores of a mention with one number that is read, where *logits* are its weights."""
    weights = np.zeros((2, 5), np.float32)
    weights[0] = logits
    mention = Mention(0, len(text), text, kb.candidates(text), **given)
    parts = PartsOfSpeech(weights, kb)
    [result] = parts([mention], np.ones((1, 1), np.float32), [np.array(scores, np.float32)])
    return {kb[int(number)].pos: score for number, score in zip(mention.candidates.ids, result, strict=True)}


def test_a_part_of_speech_has_its_probability_whatever_its_senses_share(kb):
    logits = np.log([0.2, 0.6, 1e-9, 1e-9, 0.2])
    assert weighed(kb, "price", logits, [0.9, 0.1]) == pytest.approx({"n": 0.2, "v": 0.6})


def test_parts_of_speech_that_no_candidate_has_take_no_part(kb):
    logits = np.log([0.1, 0.7, 1e-9, 0.1, 0.1])
    assert weighed(kb, "after", logits, [1.0]) == pytest.approx({"r": 0.5})


@pytest.mark.parametrize(
    ("text", "probabilities", "given", "agrees"),
    [
        ("might", [0.9, 0.05, 0.0, 0.0, 0.05], {}, True), ("might", [0.2, 0.7, 0.0, 0.0, 0.1], {}, False),
        ("might", [0.2, 0.1, 0.0, 0.0, 0.7], {}, False), ("can", [0.2, 0.7, 0.0, 0.0, 0.1], {}, True),
        ("might", [0.2, 0.7, 0.0, 0.0, 0.1], {"pos": "n"}, True),
        ("war", [0.2, 0.7, 0.0, 0.0, 0.1], {}, True),  # no function word
    ],
)  # fmt: skip
def test_a_function_word_agrees_where_a_candidate_has_the_part_of_speech_that_is_read(
    kb, text, probabilities, given, agrees
):
    weights = np.zeros((2, 5), np.float32)
    weights[0] = probabilities
    mention = Mention(0, len(text), text, kb.candidates(text), **given)
    assert PartsOfSpeech(weights, kb).agree([mention], np.ones((1, 1), np.float32)).tolist() == [agrees]


def test_what_is_left_to_null_before_stays_so(kb):
    logits = np.log([0.3, 0.3, 1e-9, 1e-9, 0.4])
    assert sum(weighed(kb, "price", logits, [0.3, 0.2]).values()) == pytest.approx(0.5 * 0.6)


@pytest.mark.parametrize("given", [{"pos": "n"}, {"lemma": "price"}, {"lemma": "price", "pos": "v"}])
def test_a_mention_whose_lemma_or_part_of_speech_is_given_keeps_its_scores(kb, given):
    logits = np.log([0.01, 0.01, 0.01, 0.01, 0.96])
    assert weighed(kb, "price", logits, [0.75, 0.25], **given) == {"n": 0.75, "v": 0.25}


def test_candidates_without_a_part_of_speech_keep_their_scores(tmp_path):
    records = [Entity("berlin", "Berlin", kind="city"), Alias("Berlin", "berlin", 1)]
    with build(tmp_path, records, name="places") as kb:
        assert weighed(kb, "Berlin", np.log([0.1, 0.1, 0.1, 0.1, 0.6]), [1.0]) == {"": 1.0}


@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (10,)])
def test_weights_of_another_shape_are_refused(kb, tmp_path, shape):
    np.save(tmp_path / FILE, np.zeros(shape, np.float16))
    with pytest.raises(DamagedModel) as caught:
        PartsOfSpeech.load(tmp_path, 1, kb)
    assert str(shape) in str(caught.value)


def test_weights_that_are_no_numbers_are_refused(kb, tmp_path):
    np.save(tmp_path / FILE, np.full((2, 5), np.nan, np.float16))
    with pytest.raises(DamagedModel):
        PartsOfSpeech.load(tmp_path, 1, kb)


def test_a_model_without_weights_has_none(kb, tmp_path):
    assert PartsOfSpeech.load(tmp_path, 1, kb) is None


TEXTS = [
    ("Price was high.", "price", "n"),
    ("The price of bread has doubled.", "price", "n"),
    ("They price their books too low.", "price", "v"),
    ("The light of the moon was pale.", "light", "n"),
    ("Please light the candle.", "light", "v"),
    ("She wore a light coat.", "light", "a"),
    ("Nothing was the same after the war.", "after", None),
    ("After lunch they went home.", "after", None),
    ("He opened the can with a knife.", "can", "n"),
    ("She can swim.", "can", None),
    ("They might come to the war.", "might", None),
]


@pytest.mark.parametrize(("text", "lemma", "pos"), TEXTS)
def test_the_shipped_model_reads_the_part_of_speech_of_a_word(kb, text, lemma, pos):
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    linked = kgkit.link(text, kb, model="wsd-minilm", device="cpu")
    assert {kb[link.entity].pos for link in linked.links if link.text.lower() == lemma} == {pos} - {None}


def test_a_given_part_of_speech_goes_before_what_the_model_reads(kb):
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    given = Document("0", "Price was high.", mentions=[Mention(0, 5, "Price", lemma="price", pos="v")])
    [link] = kgkit.link([given], kb, model="wsd-minilm", device="cpu")[0].links
    assert link.entity == "price.v"


def test_coherence_leaves_its_probability_to_what_is_none_of_these(kb):
    pytest.importorskip("torch")
    if find_in_package(MINILM) is None:
        pytest.skip(f"{MINILM} is not installed")
    text = "Price and light went up after the war, and after lunch."
    plain, graph = (
        kgkit.link(text, kb, model="wsd-minilm", device="cpu", nil=True, top_k=9, coherence=coherence).links
        for coherence in (None, "graph")
    )
    sums = [[sum(each.score for each in link.candidates) for link in links] for links in (plain, graph)]
    assert sums[1] == pytest.approx(sums[0], abs=1e-5)
    assert min(sums[1]) < 0.9
