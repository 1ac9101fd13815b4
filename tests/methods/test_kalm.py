"""A KALM over documents: their words and sentences, and words that are scored in windows and rows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kgkit.errors import UsageError  # noqa: E402
from kgkit.inputs.kalm import (  # noqa: E402
    END,
    UNKNOWN,
    TypedVocabulary,
    window_batch,
)
from kgkit.methods import kalm as methods_kalm  # noqa: E402
from kgkit.methods.kalm import KALMTagger, TrainedKALM, document_words, score_words  # noqa: E402
from kgkit.types import Document  # noqa: E402
from tests.heads.test_kalm import MEMBERS, PRIOR, TYPES, WORDS, kalm_of  # noqa: E402


def vocabulary_of(words=(), style="cased", types=()):
    """Return a vocabulary of words, of which some have the first of two types, and `<*>` both."""
    words = [UNKNOWN, END, *words]
    members = np.array([[True] * len(words), *[[word in types or word == "<*>" for word in words]] * 2])
    members[2] = [word == "<*>" for word in words]
    return TypedVocabulary(words, ("LOC", "PER"), members, np.ones((len(words), 3), np.float32), style)


def words_of(document, style="cased", **vocabulary):
    sentences = document_words(document, vocabulary_of(style=style, **vocabulary))
    return [[document.text[start:end] for start, end in sentence] for sentence in sentences]


def test_words_are_the_tokens_of_a_document_or_those_of_its_text():
    text = "Don't go. It's 1/2 cup"
    assert words_of(Document("1", text)) == [["Don't", "go", "."], ["It", "'s", "1", "/", "2", "cup"]]
    tokens = [(0, 5), (6, 9), (10, 14), (15, 22)]
    assert words_of(Document("1", text, None, tokens)) == [["Don't", "go."], ["It's", "1/2 cup"]]
    assert words_of(Document("1", "Mix 1/2 CUP.\nServe"), "recipe") == [["Mix", "1", "2", "CUP"], ["Serve"]]


def test_words_that_the_vocabulary_has_are_not_cut():
    text = "Al-Ain (U.S.) beat left-handed 李明 in Al-Hasa, the U.S. and U.S.A."
    known = ["Al-Ain", "left-handed", "李明", "U.S.", "U.S.A.", "Al-Hasa,", "<*>"]
    [sentence] = words_of(Document("1", text), words=known, types=["U.S."])
    assert sentence[:9] == ["Al-Ain", "(", "U", ".", "S", ".", ")", "beat", "left-handed"]
    assert sentence[9:17] == ["李明", "in", "Al", "-", "Hasa", ",", "the", "U.S."]
    assert sentence[17:] == ["and", *"U.S.A."], "punctuation at the end of a word without types is cut off"
    members = np.array([[True, True, False], [False, False, True]])
    single = TypedVocabulary([UNKNOWN, END, "U.S."], ("LOC",), members, np.ones((3, 2), np.float32), "cased")
    assert single.keeps_whole("U.S.") and not single.keeps_whole("U.K."), "a vocabulary of one type"
    assert words_of(Document("1", "see <*> now"), words=known) == [["see", "<", "*", ">", "now"]]
    assert words_of(Document("1", " Al-Ain\tAl-Ain\n\nAl-Ain"), words=known) == [["Al-Ain"] * 2, ["Al-Ain"]]


def test_sentences_are_those_of_the_document_or_end_with_lines_and_stops():
    text = "one two\nthree. Four"
    assert words_of(Document("1", text)) == [["one", "two"], ["three", "."], ["Four"]]
    assert words_of(Document("1", text, [(0, 13), (13, 19)])) == [["one", "two", "three"], [".", "Four"]]
    assert words_of(Document("1", text, [])) == [["one", "two", "three", ".", "Four"]]


@pytest.mark.parametrize("text", ["", "  \n ", "\n\nword\n\n"])
def test_a_text_without_words_has_no_sentences_and_blank_lines_are_none(text):
    assert words_of(Document("1", text)) == [[word] for word in text.split()]


def sequence_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, WORDS, count)


@torch.no_grad()
def slow_nats(kalm, sequence, context):
    """Return the mean surprise of inner words, each read with so many words on each side."""
    surprises = []
    for index in range(1, len(sequence) - 1):
        begin = max(0, index - context)
        window = torch.from_numpy(sequence[begin : index + context + 1])[None]
        likelihoods = kalm.log_likelihood(kalm(window), window[:, 1:-1])
        surprises.append(-float(likelihoods[0, index - begin - 1]))
    return sum(surprises) / len(surprises)


def test_a_word_of_both_directions_is_scored_once_with_enough_context():
    kalm, sequence = kalm_of(bidirectional=True), sequence_of(32)
    exact = score_words(kalm, sequence, [0], length=100)
    assert (exact.words, exact.unknown) == (30, int((sequence[1:-1] == 0).sum()))
    assert exact.nats == pytest.approx(slow_nats(kalm, sequence, 50), rel=1e-9)
    for length in (8, 20):
        for rows in (1, 3):
            windows = score_words(kalm, sequence, [0], length=length, rows=rows)
            assert (windows.words, windows.unknown) == (30, exact.unknown)
            assert windows.nats == pytest.approx(exact.nats, rel=0.02), "a window has less context"
        same = [score_words(kalm, sequence, [], length=length, rows=rows).nats for rows in (1, 2, 9)]
        assert same == pytest.approx([same[0]] * 3, rel=1e-9)


def test_rows_of_one_direction_begin_without_context():
    kalm, sequence = kalm_of(), sequence_of(41)
    nats = []
    for begin in (0, 20):
        part = torch.from_numpy(sequence[begin : begin + 21])[None]
        with torch.no_grad():
            nats.append(-float(kalm.log_likelihood(kalm(part[:, :-1]), part[:, 1:]).mean()))
    for length in (3, 7, 50):
        score = score_words(kalm, sequence, [], length=length, rows=2)
        assert (score.words, score.unknown) == (40, 0)
        assert score.nats == pytest.approx(sum(nats) / 2, rel=1e-9)
        assert score.perplexity == pytest.approx(math.exp(score.nats))


@pytest.mark.parametrize(("bidirectional", "count"), [(False, 1), (True, 2)])
def test_a_sequence_that_predicts_nothing_is_refused(bidirectional, count):
    with pytest.raises(UsageError, match="there are no words to predict"):
        score_words(kalm_of(bidirectional=bidirectional), sequence_of(count), [], length=5)


def test_progress_counts_batches():
    steps = []
    score_words(kalm_of(), sequence_of(30), [], length=10, rows=1, progress=lambda *step: steps.append(step))
    assert steps == [("scoring", number, 3) for number in (1, 2, 3)]


def tagger_of(type_prior=1.0, style="cased"):
    """Return a tagger whose words are `May`, a place by 0.8, and `June`, a person by 0.7."""
    words = [UNKNOWN, END, "so", "May", "Mali", "said", "June"]
    if style == "recipe":
        words = [word.lower() for word in words]
    kalm = kalm_of(bidirectional=True)
    vocabulary = TypedVocabulary(words, TYPES, MEMBERS.numpy(), PRIOR.numpy().copy(), style)
    trained = TrainedKALM(kalm, vocabulary, SimpleNamespace(name="names", length=8))
    return KALMTagger(trained, type_prior=type_prior)


def test_a_capital_inside_of_a_sentence_leaves_no_share_to_no_type():
    text = "May said so. So said May. so May said June\nMAY SAID SO"
    [words] = tagger_of().typed_words([Document("1", text)])
    types = {}
    for word in words:
        types.setdefault(text[word.start : word.end], []).append(pytest.approx(word.probabilities))
    first, inside = (0.2, 0.8, 0), (0, 1, 0)
    assert types["May"] == [first, inside, inside] and types["June"] == [(0, 0, 1)]
    assert types["said"] == [(1, 0, 0)] * 3
    assert tagger_of().trained.vocabulary.prior[3].tolist() == pytest.approx(first)  # as it was
    [words] = tagger_of(style="recipe").typed_words([Document("1", "so May")])
    assert words[1].probabilities == pytest.approx(first)


@pytest.mark.parametrize(("words", "score"), [("May Mali", 0.5), ("Mali May", 0.5), ("May May", 0.8)])
def test_the_score_of_a_name_is_the_lowest_probability_of_its_words(words, score):
    tagger = tagger_of(style="recipe")  # in which capitals say nothing: a place by 0.8 and by 0.5
    [name] = tagger.mentions([Document("1", f"so {words} said")])[0]
    assert (name.text, name.type, name.score) == (words, "LOC", score)


@pytest.mark.parametrize("read", ["tagged", "scored"])
def test_each_word_is_read_with_as_much_context_as_the_length_promises(read, monkeypatch):
    """Windows of twice the length, of which a quarter on each side is context."""
    batches, tagger, count = [], tagger_of(), 60
    sequence = np.arange(count) % WORDS

    def recorded(sequences, parts):
        batches.append((window_batch(sequences, parts), parts))
        return batches[-1][0]

    monkeypatch.setattr(methods_kalm, "window_batch", recorded)
    if read == "tagged":
        tagger.probabilities([sequence], [np.zeros(count, bool)])
    else:
        score_words(tagger.trained.kalm, sequence, [], length=8)
    contexts = {}
    for batch, parts in batches:
        for row, column in batch.real.nonzero().tolist():
            at = parts[row].begin + column + 1
            contexts[at] = at - parts[row].begin, parts[row].end - 1 - at
    assert sorted(contexts) == [*range(1, count - 1)]
    for at, (before, behind) in contexts.items():
        assert before >= min(at, 4) and behind >= min(count - 1 - at, 4)


def test_the_prior_of_windows_is_that_of_their_words():
    document = Document("1", " ".join(["so May said", "said so"] * 20 + ["June."]))
    [words] = tagger_of().typed_words([document])
    assert [round(word.probabilities[0], 6) for word in words] == [1, 0, 1, 1, 1] * 20 + [0, 1]
    context, mixed = (tagger_of(beta).typed_words([document])[0] for beta in (0.0, 0.6))
    for alone, both, prior in zip(context, mixed, words, strict=True):
        expected = 0.4 * np.array(alone.probabilities) + 0.6 * np.array(prior.probabilities)
        np.testing.assert_allclose(both.probabilities, expected, atol=1e-6)
