"""What a tagger reads: every word of a text exactly once, at the place where it stands."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.ner import Name, NamedDocument
from kgkit.inputs.pieces import WordPieces
from kgkit.inputs.tagging import SHAPES, TaggingConfig, WordReader, shape, tagger_inputs
from kgkit.training.tagging import label_windows
from kgkit.types import Document
from tests.tiny_encoder import MINILM, WORDS, tiny_encoder

READ = TaggingConfig(size=16, context=3)
ODD = (
    "Ada 😀 naïve Zoe\u0308 said:\r\n\u200b“I’m in Köln”\x00 — 北京 "
    "and\tO'Brien\u00a0Ltd. \U0001f1e9\U0001f1ea"
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


def document(words, sentence=6):
    text = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
    ends = [start + len(word) for start, word in zip(starts, words, strict=False)]
    sentences = [
        (starts[at], ends[min(at + sentence, len(words)) - 1]) for at in range(0, len(words), sentence)
    ]
    return Document("d", text, sentences)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("the", "lower"), ("Rome", "Title"), ("EU", "UPPER"), ("A", "X"), ("iPod", "miXed"),
        ("O'Brien", "miXed"), ("naïve", "lower"), ("ÉTÉ", "UPPER"), ("1996", "12"), ("٣", "12"), ("B2", "x1"),
        ("1st", "x1"), (",", "."), ("😀", "."), ("北", "lower"), ("Zoe\u0308", "Title"), ("", "."),
    ],
)  # fmt: skip
def test_words_have_shapes(word, expected):
    assert SHAPES[shape(word)] == expected


@pytest.mark.parametrize("scope", ["document", "sentence"])
@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize("count", [0, 1, 13, 17, 200])
def test_every_word_is_some_window_s_own_exactly_once(encoder, scope, sentences, count):
    given = document((WORDS * 8)[:count])
    given.sentences = given.sentences if sentences else None
    reader = WordReader(encoder, TaggingConfig(size=16, context=3, scope=scope))
    words = reader(given)
    assert [given.text[a:b] for a, b in zip(words.starts, words.ends, strict=True)] == given.text.split()
    begin = 0
    for reading in words.windows:
        assert reading.begin == begin
        assert len(reading.ids) == len(reading.shapes) <= 18
        begin += len(reading.firsts)
        own = words.starts[reading.begin : begin]
        expected = [encoder.tokenizer.convert_tokens_to_ids(given.text[at:].split()[0]) for at in own]
        assert reading.ids[reading.firsts].tolist() == expected
    assert begin == len(words) == count


def test_a_text_is_read_alike_whether_its_tokens_stand_apart_or_not(encoder):
    reader = WordReader(encoder, READ)
    one, two = (reader(Document("d", text)).windows for text in ("the dog, (a cat)", "the dog , ( a cat )"))
    assert len(one) == len(two) == 1
    for a, b in zip(one[0], two[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_pieces_are_told_the_shape_of_their_word(encoder):
    reader = WordReader(encoder, READ, lowercase=True)
    [one] = reader(Document("d", "THE Cats eats")).windows  # [CLS] the cat ##s eats [SEP]
    assert [SHAPES[number] for number in one.shapes] == ["", "UPPER", "Title", "Title", "lower", ""]
    assert tagger_inputs([one], padding=0, shapes=False).shapes is None
    assert tagger_inputs([one], padding=0).shapes.tolist() == [one.shapes.tolist()]


def test_whether_case_is_lost_is_found_out(encoder):
    assert WordReader(encoder, READ, lowercase=True).loses_case()
    exact = WordReader(encoder, READ)
    exact.tokens = lambda text: WordPieces(*np.array([[*map(ord, text)]] * 3))
    assert not exact.loses_case()


def test_words_of_odd_texts_stand_where_they_stand():
    try:
        encoder = Encoder.load(MINILM, device="cpu", offline=True)
    except Exception:  # noqa: BLE001
        pytest.skip(f"{MINILM} is not installed")
    reader = WordReader(encoder)
    words = reader(Document("d", ODD))
    found = [ODD[a:b] for a, b in zip(words.starts, words.ends, strict=True)]
    expected = (
        "Ada 😀 naïve Zoe\u0308 said : “ I ’m in Köln ” — 北 京 and O ' Brien Ltd . \U0001f1e9 \U0001f1ea"
    )
    assert found == [word for word in expected.split() if word in found]
    assert {*expected.split()} - {*found} <= {"\U0001f1ea"}
    pieces = reader.tokens(ODD)
    [reading] = words.windows
    places = reading.firsts - len(reader.tokens.before)
    assert (pieces.starts[places] < words.ends).all()
    assert (pieces.ends[places] > words.starts).all()
    assert (np.diff(places) > 0).all()


def test_windows_that_do_not_fit_are_refused(encoder):
    with pytest.raises(UsageError, match=r"2 special ones do not fit into the 24 that .* at most 22"):
        WordReader(encoder, TaggingConfig(size=23, context=3))
    with pytest.raises(UsageError, match="have none of their own"):
        WordReader(encoder, TaggingConfig(size=6, context=3))


def test_labels_begin_and_go_on_where_names_do(encoder):
    given = document([*WORDS[:9], "dog's"], sentence=5)
    text = given.text
    names = [Name(0, 1, "B"), Name(2, len("a an the"), "A"), Name(text.index("dog's"), len(text) - 1, "B")]
    found = [*label_windows(NamedDocument(given, names), WordReader(encoder, READ), ("A", "B"))]
    labels = np.concatenate([one.labels for one in found])
    assert labels.tolist() == [3, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4][: len(labels)]
    assert all(len(one.labels) == len(one.window.firsts) for one in found)
