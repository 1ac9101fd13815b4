"""Dense candidates: which are in the list, what they count, and that texts are encoded together.

The encoder of these tests gives a text the direction of the first of its words that is one.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity
from kgkit.candidates import AliasConfig, AliasGenerator
from kgkit.candidates.dense import DenseConfig, DenseGenerator, mix_rows, sentence_of
from kgkit.errors import StaleVectors, UsageError
from kgkit.types import CANDIDATE, NO_SENSE, Candidates, Document, Mention
from kgkit.vectors import Vectors, Work, find_vectors
from tests.small_kb import build

ROWS = {
    "Dog": [1, 0, 0],
    "Wolf": [0.9, 0.1, 0],
    "Cat": [0, 1, 0],
    "Run": [0.8, 0, 0.6],
    "Sausage": [0, 0, 1],
    "Nothing": [0, 0, 0],
}
POS = {"Run": "v"}
ALIASES = [Alias("dog", "Dog", 6), Alias("dog", "Sausage", 2), Alias("cat", "Cat", 1), Alias("run", "Run", 1)]


WORDS = {"dog": [1, 0, 0], "dgo": [0.95, 0.05, 0], "cat": [0, 1, 0], "run": [0.8, 0, 0.6]}


class FakeEncoder:
    """Knows a few words; writes down what it was asked."""

    name = "fake"

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([self.one(text) for text in texts], np.float32)

    def one(self, text):
        for word in text.replace(":", " ").split():
            if word.lower() in WORDS:
                return WORDS[word.lower()]
        return [0, 0, 0]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    records = [*(Entity(key, pos=POS.get(key, "n")) for key in ROWS), Entity("Later", pos="n"), *ALIASES]
    with build(tmp_path_factory.mktemp("dense"), records) as opened:
        yield opened


@pytest.fixture(scope="module")
def vectors(kb):
    with Work(kb, "text", {"encoder": "fake"}) as work:
        work.matrix(len(ROWS), 3)[:] = list(ROWS.values())
        return work.publish("text")


def generator(kb, vectors, encoder=None, **settings):
    return DenseGenerator(AliasGenerator(kb), encoder or FakeEncoder(), vectors, DenseConfig(**settings))


def given_one(text, word, **more):
    start = text.index(word)
    return Document("d", text, mentions=[Mention(start, start + len(word), word, **more)])


def only(found):
    ((document),) = found
    ((mention),) = document.mentions
    return mention.candidates


def told(kb, candidates):
    return {kb.key(entity): prior for entity, _, prior in candidates}


def softmax(cosines, temperature):
    weights = np.exp(np.array(cosines) / temperature)
    return weights / weights.sum()


def by_hand(kb, text, word, c):
    """Return the cosine of each entity that has a vector to a mention, by the definition."""
    start = text.index(word)
    query = unit(FakeEncoder().one(word)) + c * unit(FakeEncoder().one(text))
    assert start >= 0
    return {name: cosine(query, row) for name, row in ROWS.items() if any(row)}


def unit(row):
    norm = np.linalg.norm(row)
    return np.array(row) / norm if norm else np.array(row, float)


def cosine(one, other):
    return np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other)


def test_a_misspelt_mention_gets_the_nearest_entities(kb, vectors):
    found = only(generator(kb, vectors, max_candidates=3)([given_one("a dgo barks", "dgo")]))
    assert [kb.key(entity) for entity in found.ids] == ["Dog", "Wolf", "Run"]
    assert found.priors.sum() == pytest.approx(1)
    assert (found.senses == NO_SENSE).all()


def test_only_unknown_mentions_may_be_asked_for(kb, vectors):
    encoder = FakeEncoder()
    document = Document("d", "dog dgo", mentions=[Mention(0, 3, "dog"), Mention(4, 7, "dgo")])
    (found,) = generator(kb, vectors, encoder, when="unknown")([document])
    known, unknown = (mention.candidates for mention in found.mentions)
    assert known == kb.candidates("dog")
    assert kb.key(unknown.ids[0]) == "Dog"
    assert encoder.asked == [["dgo"], ["dog dgo"]]


@pytest.mark.parametrize("c", [0.0, 0.5, 3.0])
def test_the_sentence_counts_a_little_beside_the_surface(kb, vectors, c):
    text = "the cat and the dgo"  # to the encoder the sentence is about a cat
    found = only(generator(kb, vectors, context_weight=c, temperature=1.0)([given_one(text, "dgo")]))
    cosines = by_hand(kb, text, "dgo", c)
    assert told(kb, found) == pytest.approx(
        dict(zip(cosines, softmax([*cosines.values()], 1.0), strict=True)), abs=1e-5
    )


def test_without_context_only_surfaces_are_encoded(kb, vectors):
    encoder = FakeEncoder()
    only(generator(kb, vectors, encoder, context_weight=0.0)([given_one("the cat and the dgo", "dgo")]))
    assert encoder.asked == [["dgo"]]


def marked(document, mention):
    return f"{document.text[: mention.start]}[M] {mention.text} [/M]{document.text[mention.end :]}"


def test_an_encoder_that_was_trained_for_it_gets_its_own_text(kb, vectors):
    encoder = FakeEncoder()
    trained = DenseGenerator(AliasGenerator(kb), encoder, vectors, text=marked)
    only(trained([given_one("a dgo barks", "dgo")]))
    assert encoder.asked == [["a [M] dgo [/M] barks"]]
    assert pickle.loads(pickle.dumps(trained)).text is marked


def test_a_text_that_means_nothing_to_the_encoder_leaves_things_as_they_are(kb, vectors):
    """A row of zeros has a cosine of 0 with everything: no entity is nearer than another."""
    found = only(generator(kb, vectors, weight=0.0)([given_one("a cat", "cat")]))
    assert told(kb, found)["Cat"] == pytest.approx(1)


def test_the_part_of_speech_of_a_mention_holds_for_dense_ones(kb, vectors):
    found = only(generator(kb, vectors)([given_one("to dgo", "dgo", pos="v")]))
    assert [kb.key(entity) for entity in found.ids] == ["Run"]
    found = only(generator(kb, vectors)([given_one("the dgo", "dgo", pos="n")]))
    assert "Run" not in told(kb, found)
    assert len(found) == 4


def test_entities_without_a_vector_are_nobody_s_neighbours(kb, vectors):
    found = only(generator(kb, vectors)([given_one("a dgo", "dgo")]))
    assert not {"Nothing", "Later"} & set(told(kb, found))


def test_candidates_that_were_given_are_kept(kb, vectors):
    mine = Candidates(np.array([(3, NO_SENSE, 0.5)], CANDIDATE))
    encoder = FakeEncoder()
    found = only(generator(kb, vectors, encoder)([given_one("a dgo", "dgo", candidates=mine)]))
    assert found is mine
    assert encoder.asked == []


def test_mentions_are_those_of_the_other_generator_unless_they_are_given(kb, vectors):
    (found,) = generator(kb, vectors)([Document("d", "A dog and a dgo.")])
    assert [mention.text for mention in found.mentions] == ["dog"]
    (found,) = generator(kb, vectors)([Document("d", "A dog.", mentions=[])])
    assert found.mentions == []


def test_null_keeps_its_share_of_the_other_generator(kb, vectors):
    base = AliasGenerator(kb, AliasConfig(null=0.5))
    found = only(
        DenseGenerator(base, FakeEncoder(), vectors, DenseConfig(weight=0.2))([given_one("the dog", "dog")])
    )
    assert found.null == pytest.approx(0.4)
    assert found.null + found.priors.sum() == pytest.approx(1)


def test_documents_come_in_their_order_whatever_the_batch(kb, vectors):
    documents = [
        Document(str(number), word * (number % 3)) for number, word in enumerate(["dog ", "cat "] * 20)
    ]
    expected = [only_one for document in documents for only_one in generator(kb, vectors)([document])]
    for batch in (1, 7, 1000):
        assert [*generator(kb, vectors, batch=batch)(iter(documents))] == expected


def test_where_the_encoder_is_the_vectors_are_searched(kb, vectors, monkeypatch):
    pytest.importorskip("torch")
    documents = [given_one(f"the dgo no. {number}", "dgo") for number in range(70)]
    expected = [*generator(kb, vectors)(documents)]
    opened = Vectors.open(vectors.folder)
    monkeypatch.setattr(FakeEncoder, "device", "cpu:0", raising=False)  # the processor as torch names it
    found = [*generator(kb, opened)(documents)]
    assert "cpu:0" in opened._searches
    for one, other in zip(found, expected, strict=True):
        assert told(kb, one.mentions[0].candidates) == told(kb, other.mentions[0].candidates)


def test_documents_stream(kb, vectors):
    def endless():
        number = 0
        while True:
            number += 1
            yield given_one("a dgo", "dgo")

    found = generator(kb, vectors, batch=4)(endless())
    assert [len(next(found).mentions) for _ in range(10)] == [1] * 10


def test_texts_are_encoded_together_and_equal_ones_once(kb, vectors):
    encoder = FakeEncoder()
    documents = [given_one("a dgo", "dgo") for _ in range(6)] + [given_one("a cat", "cat")]
    assert len([*generator(kb, vectors, encoder, batch=100)(documents)]) == 7
    assert encoder.asked == [["dgo", "cat"], ["a dgo", "a cat"]]


def test_an_encoder_of_another_width_is_refused(kb, vectors):
    class Wide(FakeEncoder):
        def encode(self, texts):
            return np.ones((len(texts), 4), np.float32)

    with pytest.raises(UsageError, match=r"width 3, the encoder made \(1, 4\)"):
        only(generator(kb, vectors, Wide())([given_one("a dgo", "dgo")]))


def test_vectors_whose_ids_are_other_entities_are_refused(kb, vectors, tmp_path):
    with build(tmp_path, [*map(Entity, reversed(ROWS)), *ALIASES]) as rebuilt:
        with pytest.raises(StaleVectors, match=rf"vectors of build {kb.build}, .* of small@{rebuilt.build}"):
            generator(rebuilt, vectors)
        assert generator(kb, vectors)


def test_vectors_of_a_build_that_was_added_to_are_taken(tmp_path):
    with build(tmp_path, [*map(Entity, ROWS), *ALIASES]) as kb, Work(kb, "text", {}) as work:
        work.matrix(len(ROWS), 3)[:] = list(ROWS.values())
        work.publish("text")
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "Pear", "label": "Pear"}\n')
    kgkit.add_to_kb("small", more, builder="jsonl", home=tmp_path)
    with kgkit.open_kb("small", home=tmp_path) as kb:
        vectors = Vectors.open(find_vectors(kb.home, "text"))
        assert vectors.manifest.build != kb.build
        found = only(generator(kb, vectors, max_candidates=1)([given_one("a dgo", "dgo")]))
        assert kb.key(found.ids[0]) == "Dog"


def test_another_encoder_than_the_vectors_had_is_warned_of(kb, vectors, caplog):
    generator(kb, vectors)
    assert not caplog.text
    other = FakeEncoder()
    other.name = "other"
    generator(kb, vectors, other)
    assert "small/text were made by the encoder fake, mentions are encoded by other" in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_candidates": 0},
        {"reserved": 31},
        {"reserved": -1},
        {"when": "never"},
        {"weight": 1.1},
        {"temperature": 0.0},
        {"context": -1},
        {"context_weight": -0.1},
        {"batch": 0},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        DenseConfig(**wrong)


# -- the list ---------------------------------------------------------------

entities = st.integers(0, 12)


def mixed_by_hand(known, share, dense, most, reserved):
    """Say it as the module does: first those of the other generator, then dense ones, then what is left."""
    kept = [*known][: most - reserved]
    kept += [entity for entity in dense if entity not in kept][: most - len(kept)]
    kept += [entity for entity in known if entity not in kept][: most - len(kept)]
    return {entity: share * known.get(entity, 0) + dense.get(entity, 0) for entity in kept}


@given(
    known=st.lists(entities, unique=True, max_size=8),
    dense=st.lists(entities, unique=True, max_size=8),
    most=st.integers(1, 10),
    data=st.data(),
)
def test_lists_are_those_made_by_hand(known, dense, most, data):
    reserved = data.draw(st.integers(0, most))
    priors = {entity: (len(known) - place) / 50 for place, entity in enumerate(known)}
    shares = {entity: (len(dense) - place) / 100 for place, entity in enumerate(dense)}
    rows = np.array([(entity, 7, prior) for entity, prior in priors.items()], CANDIDATE)
    before = rows.copy()
    found = mix_rows(rows, 0.6, shares, most, reserved)
    expected = mixed_by_hand(priors, 0.6, shares, most, reserved)
    assert dict(zip(found["entity"].tolist(), found["prior"].tolist(), strict=True)) == pytest.approx(
        expected
    )
    assert found["prior"].tolist() == sorted(found["prior"].tolist(), reverse=True)
    assert len(found) <= most
    assert found["prior"].sum() <= 1
    senses = dict(zip(found["entity"].tolist(), found["sense"].tolist(), strict=True))
    assert all(sense == (7 if entity in priors else NO_SENSE) for entity, sense in senses.items())
    assert (rows == before).all()


def test_the_shares_of_a_part_of_speech_are_of_as_many_as_the_list_holds(kb, vectors):
    found = only(generator(kb, vectors, max_candidates=2)([given_one("the dgo", "dgo", pos="n")]))
    assert set(told(kb, found)) == {"Dog", "Wolf"}
    assert found.priors.sum() == pytest.approx(1)


# -- the text ---------------------------------------------------------------

TEXT = "It rained. The big  dog\nbarked at us. Nobody came."


def shown(context, sentences=None, text=TEXT, word="dog"):
    start = text.index(word)
    return sentence_of(Document("d", text, sentences), Mention(start, start + len(word), word), context)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (0, "dog"),
        (1, "dog"),
        (3, "dog"),
        (6, "big dog"),
        (8, "big dog barked"),
        (100, "It rained. The big dog barked at us. Nobody came."),
    ],
)
def test_a_mention_is_shown_in_its_context_without_cut_words(context, expected):
    assert shown(context) == expected


def test_where_sentences_are_known_the_context_is_the_sentence():
    sentences = [(0, 10), (11, 38), (39, 51)]
    assert shown(100, sentences) == shown(0, sentences) == "The big dog barked at us."
    assert shown(8, [(0, 10)]) == "big dog barked"  # the mention is in none


def test_a_mention_beyond_its_sentence_is_shown_whole():
    assert shown(100, [(0, 21)]) == "It rained. The big dog"


def test_text_without_blanks_is_cut_by_characters():
    assert shown(2, text="他在北京大学吃苹果", word="大学") == "北京大学吃苹"


@given(st.text(min_size=1), st.integers(0, 20), st.data())
def test_any_text_can_be_shown(text, context, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    mention = Mention(start, end, text[start:end])
    found = sentence_of(Document("d", text), mention, context)
    assert " ".join(text[start:end].split()) in found
    assert "\n" not in found
