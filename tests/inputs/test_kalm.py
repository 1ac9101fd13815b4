"""Words as KALM reads them, and the vocabularies of types."""

import numpy as np
import pytest

from kgkit import build_kb, open_kb
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedModel, NotThere, UsageError
from kgkit.inputs.kalm import (
    END,
    UNKNOWN,
    UNKNOWN_NAME,
    control_vocabulary,
    count_types,
    cut_words,
    load_words,
    make_vocabulary,
    read_words,
    word_spans,
)
from tests.small_kb import build, type_records

TYPES = type_records(LOC={"Paris": 8.0, "New York": 5.0, "Oslo": 1.0}, PER={"May": 3.0, "Paris": 2.0})
SENSES = [
    Entity("hawthorn", "hawthorn"),
    Entity("month", "month"),
    Entity("city", "city"),
    Alias("may", "hawthorn", 1.0),
    Alias("MAY", "month", 2.0),
    Alias("May", "month", 20.0),
    Alias("Paris", "city", 9.0),
]
TEXT = "Paris is nice. May is in Paris\nthe may of <unk>\n\nlast one\n"


@pytest.fixture(scope="module")
def kbs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kbs")
    with build(folder, TYPES, name="types") as kb, build(folder, SENSES, name="senses") as senses:
        yield kb, senses


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def vocabulary_of(kbs, text, *, senses=True):
    counts = count_types(kbs[0], kbs[1] if senses else None)
    return make_vocabulary(read_words(text, "cased"), counts, style="cased")


def prior_of(vocabulary, word):
    [number] = vocabulary.ids([word])
    return dict(zip(("", *vocabulary.types), vocabulary.prior[number].tolist(), strict=True))


def test_words_are_cut_by_white_space_or_as_recipes_are():
    assert cut_words("In 1/2 of U.S. \u00a0 cities,", "cased") == ["In", "1/2", "of", "U.S.", "cities,"]
    assert cut_words("Pre-heat 1/2 Cup_of İstanbul's.", "recipe") == [
        "pre", "heat", "1", "2", "cup", "of", "i̇stanbul", "s",
    ]  # fmt: skip
    text = "A İ b"
    assert [text[start:end] for start, end in word_spans(text, "recipe")] == ["A", "İ", "b"]


def test_a_text_is_one_sequence_with_ends_of_sentences(kbs, text):
    vocabulary = vocabulary_of(kbs, text)
    words = [vocabulary.words[number] for number in vocabulary.read([text])]
    assert " ".join(words) == (
        "<eos> Paris is nice. <eos> May is in Paris <eos> the may of <unk> <eos> last one <eos>"
    )
    text.write_text("Oslo is unheard of")
    words = [vocabulary.words[number] for number in vocabulary.read([text])]
    assert words == [END, "Oslo", "is", UNKNOWN, "of", END]


def test_words_are_those_of_the_text_and_of_the_types_and_vocabularies_are_disjoint(kbs, text):
    vocabulary = vocabulary_of(kbs, text)
    assert vocabulary.words[:4] == [UNKNOWN, END, "is", "nice."]
    assert vocabulary.types == ("LOC", "PER")
    every = {
        kind: {vocabulary.words[number] for number in np.flatnonzero(row)}
        for kind, row in zip(("", *vocabulary.types), vocabulary.members, strict=True)
    }
    assert every["LOC"] == {"Paris", "Oslo"} and every["PER"] == {"Paris", "May"}
    assert every[""] == {UNKNOWN, END, *"is nice. in the may of last one".split()}


def test_open_names_have_a_capital_that_says_something_and_are_in_every_vocabulary(kbs, text):
    text.write_text(
        "Then Paris saw Cusco , and then Brown and I came .\nBIG NEWS FROM Lagos\nLAGOS WINS\n"
        "a brown Brown , brown dog of The Kremlin\n"
    )
    counts = count_types(kbs[0])
    vocabulary = make_vocabulary(read_words(text, "cased"), counts, style="cased", open_names=True)
    every = {vocabulary.words[number] for number in np.flatnonzero(vocabulary.members.all(0))}
    assert every == {UNKNOWN_NAME, "Cusco", "Brown", "NEWS", "FROM", "Lagos", "Kremlin"}
    assert prior_of(vocabulary, "Cusco") == pytest.approx({"": 1 / 3, "LOC": 1 / 3, "PER": 1 / 3})
    assert prior_of(vocabulary, "Paris")[""] == 0 and prior_of(vocabulary, "LAGOS")[""] == 1
    words = [vocabulary.words[number] for number in vocabulary.ids("Zeno met Zeno and zeno".split())]
    assert words == [UNKNOWN, UNKNOWN, UNKNOWN_NAME, "and", UNKNOWN]
    words = [vocabulary.words[number] for number in vocabulary.ids("ZENO MET ZENO".split())]
    assert words == [UNKNOWN] * 3
    assert [vocabulary.words[number] for number in vocabulary.all_unknown] == [UNKNOWN, UNKNOWN_NAME]


def test_words_that_occur_too_seldom_are_unknown_unless_they_have_a_type(kbs, text):
    text.write_text("Paris is in Cusco\nit is old\n")
    counts = count_types(kbs[0])
    sentences = list(read_words(text, "cased"))
    vocabulary = make_vocabulary(sentences, counts, style="cased", open_names=True, min_count=2)
    assert vocabulary.words == [UNKNOWN, END, "is", UNKNOWN_NAME, "Oslo", "Paris", "May"]
    words = [vocabulary.words[number] for number in vocabulary.read([text])]
    assert words == [
        END, "Paris", "is", UNKNOWN, UNKNOWN_NAME, END, UNKNOWN, "is", UNKNOWN, END,
    ]  # fmt: skip


def test_the_prior_is_that_of_the_exact_spelling_with_a_share_of_other_senses(kbs, text):
    vocabulary = vocabulary_of(kbs, text)
    assert prior_of(vocabulary, "Paris") == pytest.approx({"": 0.0, "LOC": 0.8, "PER": 0.2})
    assert prior_of(vocabulary, "may") == {"": 1.0, "LOC": 0.0, "PER": 0.0}
    # Of three counts of other spellings and three of a person.
    assert prior_of(vocabulary, "May") == pytest.approx({"": 0.5, "LOC": 0.0, "PER": 0.5}, abs=1e-5)
    without = vocabulary_of(kbs, text, senses=False)
    assert prior_of(without, "May") == pytest.approx({"": 0.0, "LOC": 0.0, "PER": 1.0})


def test_types_of_recipes_are_read_in_small_letters_as_the_texts_are(tmp_path):
    records = type_records(LOC={"Paris": 8.0, "May": 1.0}, PER={"MAY": 5.0})
    with build(tmp_path, records, name="types") as kb, build(tmp_path, SENSES, name="senses") as senses:
        counts = count_types(kb, senses, "recipe")
        assert count_types(kb, style="recipe").general == {}
    assert counts.counts == {
        "paris": {"LOC": pytest.approx(8, abs=0.01)},
        "may": {"LOC": pytest.approx(1, abs=0.01), "PER": pytest.approx(5, abs=0.01)},
    }
    # The lists have every spelling of these words that the others have, or their small letters are meant.
    assert not counts.general


def test_a_capital_that_says_something_takes_the_share_of_other_spellings_away(kbs, text):
    text.write_text("the May is nice.\nCusco and Cusco, May\n")
    counts = count_types(*kbs)
    vocabulary = make_vocabulary(read_words(text, "cased"), counts, style="cased", open_names=True)
    words = vocabulary.ids(["May", "is", "Cusco"] * 2)
    before = vocabulary.prior.copy()
    prior = vocabulary.prior_of(words, np.array([True] * 3 + [False] * 3))
    np.testing.assert_allclose(prior[0], [0, 0, 1])
    np.testing.assert_allclose(prior[1:3], before[words[1:3]])  # a general word; one of any type
    np.testing.assert_allclose(prior[3:], before[words[3:]])
    np.testing.assert_array_equal(vocabulary.prior, before)


def test_a_capital_says_something_of_a_word_that_is_a_general_word_too(tmp_path, text):
    with (
        build(tmp_path, type_records(PER={"May": 5.0}), name="one") as kb,
        build(tmp_path, SENSES, name="senses") as senses,
    ):
        counts = count_types(kb, senses)
    vocabulary = make_vocabulary(read_words(text, "cased"), counts, style="cased")
    words = vocabulary.ids(["May", "May"])
    prior = vocabulary.prior_of(words, np.array([True, False]))
    assert prior[0].tolist() == [0, 1]
    np.testing.assert_array_equal(prior[1], vocabulary.prior[words[1]])


def test_a_control_has_the_same_words(kbs, text):
    vocabulary = vocabulary_of(kbs, text)
    control = control_vocabulary(vocabulary)
    assert control.words == vocabulary.words and control.types == ()
    assert control.members.all() and control.members.shape == (1, len(vocabulary))


def test_words_are_written_and_read_again(kbs, text, tmp_path):
    text.write_text("a\x85b c\u2028d e\x0cf")
    vocabulary = vocabulary_of(kbs, text)
    vocabulary.save(tmp_path / "words.txt")
    assert load_words(tmp_path / "words.txt", len(vocabulary)) == vocabulary.words
    for content in (b"<unk>\n<eos>\n<eos>\n", b"<unk>\nb\nc\n", b"\xff\n", b""):
        (tmp_path / "words.txt").write_bytes(content)
        with pytest.raises(DamagedModel, match="expected 3"):
            load_words(tmp_path / "words.txt", 3)


def test_a_knowledge_base_of_other_things_than_types_is_refused(kbs):
    with pytest.raises(UsageError, match="type_vocabulary"):
        count_types(kbs[1])


def test_a_file_with_labels_is_refused(tmp_path):
    path = tmp_path / "eng.train"
    path.write_text("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n. . O O\n")
    with pytest.raises(UsageError, match="label at the end of each line"):
        list(read_words(path, "cased"))
    with pytest.raises(NotThere):
        list(read_words(tmp_path / "none.txt", "cased"))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.txt"])
def test_records_of_json_are_no_plain_text(name, tmp_path):
    (tmp_path / name).write_text('{"id": "1", "text": "Paris is nice."}\n')
    with pytest.raises(UsageError, match=f"{name} has records of JSON, and is read as plain text"):
        next(read_words(tmp_path / name, "cased"))
    (tmp_path / name).write_text('[{"id": "1", "text": "Paris is nice."}]\n')
    with pytest.raises(UsageError, match="records of JSON"):
        next(read_words(tmp_path / name, "cased"))


@pytest.mark.parametrize("text", ["{ braces } of a text\n", '"quoted"\n', "1996\n", "[]\n"])
def test_a_text_that_looks_like_json_is_read(text, tmp_path):
    (tmp_path / "text.txt").write_text(text)
    assert next(read_words(tmp_path / "text.txt", "cased")) == text.split()


def test_types_written_as_json_lines_keep_their_capitals(tmp_path):
    records = [
        {"key": "place", "label": "place", "kind": "type", "aliases": ["London", "New York", "New", "York"]},
        {"key": "person", "label": "person", "kind": "type", "aliases": ["Clinton", "London"]},
    ]
    build_kb("jsonl", records, name="mine", home=tmp_path)
    with open_kb("mine", tmp_path) as kb:
        types = count_types(kb)
    assert types.types == ("person", "place")
    assert {*types.counts} == {"place", "person", "London", "New", "York", "Clinton"}
    assert {*types.counts["London"]} == {"person", "place"}
