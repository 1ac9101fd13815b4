"""Mentions that a document comes with: spans are checked, and candidates are those that were given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building import Alias, Entity
from kgkit.candidates.input_mentions import candidates_of_keys, check_mentions, with_candidates
from kgkit.errors import UsageError
from kgkit.types import NO_SENSE, Document, Mention, mention_problem
from tests.small_kb import build

ENTITIES = ("planet", "god", "metal", "island", "language", "river")
COUNTS = {("mercury", "planet"): 60, ("mercury", "god"): 30, ("mercury", "metal"): 10, ("java", "island"): 0}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    records = [Entity(key, key) for key in ENTITIES]
    records += [Alias(surface, key, count) for (surface, key), count in COUNTS.items()]
    with build(tmp_path_factory.mktemp("home"), records) as kb:
        yield kb


def listed(kb, candidates):
    """Return candidates as pairs of a key and its prior, to six digits."""
    priors = candidates.priors.tolist()
    return [
        (kb[number].key, round(prior, 6))
        for number, prior in zip(candidates.ids.tolist(), priors, strict=True)
    ]


@pytest.mark.parametrize("mention", [Mention(0, 3, "the"), Mention(4, 7, "sun"), Mention(0, 7, "the sun")])
def test_a_span_of_the_text_with_its_own_words_is_no_problem(mention):
    assert mention_problem("the sun", [mention]) is None


@pytest.mark.parametrize(
    "mention", [Mention(3, 3, ""), Mention(5, 4, "u"), Mention(-3, 7, "sun"), Mention(4, 8, "sun")]
)
def test_a_span_that_is_empty_reversed_or_outside_is_named_with_its_offsets(mention):
    span = f"mention 1 spans {mention.start} to {mention.end}"
    assert mention_problem("the sun", [mention]) == (
        f"{span}: expected a start and a greater end in the text, 0 to 7"
    )


def test_a_span_of_other_words_is_named_with_both():
    problem = mention_problem("the sun", [Mention(4, 7, "Sun")])
    expected = "which is 'sun' in the text, not 'Sun': offsets count Unicode code points, from 0"
    assert problem == f"mention 1 spans 4 to 7, {expected}"


def test_the_first_bad_mention_is_named_by_its_number():
    mentions = [Mention(0, 3, "the"), Mention(4, 7, "moon"), Mention(9, 8, "")]
    assert mention_problem("the sun", mentions).startswith("mention 2 spans 4 to 7")


def test_an_empty_text_has_no_spans_and_no_mentions_are_no_problem():
    assert mention_problem("", []) is None
    assert mention_problem("", [Mention(0, 0, "")]).endswith("in the text, 0 to 0")


def test_a_long_mention_is_cut_in_the_message():
    problem = mention_problem("a" * 1_000, [Mention(0, 1_000, "b" * 1_000)])
    assert "a" * 200 not in problem and "b" * 200 not in problem


def test_offsets_are_code_points_and_not_bytes_or_utf_16_units():
    text = "𝔘 naïve 苹果"
    assert mention_problem(text, [Mention(2, 7, "naïve"), Mention(8, 10, "苹果")]) is None
    assert mention_problem(text, [Mention(3, 8, "naïve")]) is not None


@given(st.text("ab 苹𝔘", max_size=30), st.integers(-3, 33), st.integers(-3, 33))
def test_exactly_the_spans_of_the_text_are_accepted(text, start, end):
    accepted = mention_problem(text, [Mention(start, end, text[max(0, start) : max(0, end)])]) is None
    assert accepted == (0 <= start < end <= len(text))


def test_a_bad_mention_is_an_error_with_the_id_of_its_document():
    with pytest.raises(UsageError, match="'d7': mention 1 spans 4 to 9"):
        check_mentions(Document("d7", "the sun", mentions=[Mention(4, 9, "sun")]))


@pytest.mark.parametrize("mentions", [None, [], [Mention(4, 7, "sun")]])
def test_a_document_without_a_bad_mention_passes(mentions):
    check_mentions(Document("d7", "the sun", mentions=mentions))


def test_given_candidates_have_the_priors_of_the_surface_as_shares_of_their_sum(kb):
    assert listed(kb, candidates_of_keys(kb, "mercury", ["metal", "planet"])) == [
        ("planet", 0.857143),
        ("metal", 0.142857),
    ]


def test_an_entity_without_that_surface_has_the_prior_of_the_least_likely_one(kb):
    assert listed(kb, candidates_of_keys(kb, "mercury", ["god", "river", "metal"])) == [
        ("god", 0.6),
        ("metal", 0.2),
        ("river", 0.2),
    ]


@pytest.mark.parametrize("surface", ["a surface of no entity", ""])
def test_candidates_of_an_unknown_surface_have_equal_priors_and_stand_by_id(kb, surface):
    assert listed(kb, candidates_of_keys(kb, surface, ["river", "god"])) == [("god", 0.5), ("river", 0.5)]


def test_candidates_that_were_never_counted_have_equal_priors(kb):
    assert listed(kb, candidates_of_keys(kb, "java", ["island", "language"])) == [
        ("island", 0.5),
        ("language", 0.5),
    ]


@pytest.mark.parametrize("keys", [[], ["nowhere"], ["nowhere", "no one"]])
def test_keys_that_the_kb_does_not_have_are_left_out(kb, keys):
    assert len(candidates_of_keys(kb, "mercury", keys)) == 0
    assert listed(kb, candidates_of_keys(kb, "mercury", [*keys, "god"])) == [("god", 1.0)]


@given(
    st.lists(st.sampled_from((*ENTITIES, "nowhere")), max_size=8), st.sampled_from(["mercury", "java", "x"])
)
def test_order_and_repetition_of_keys_change_nothing(kb, keys, surface):
    candidates = candidates_of_keys(kb, surface, keys)
    again = candidates_of_keys(kb, surface, [*reversed(keys), *keys])
    assert candidates.rows.tobytes() == again.rows.tobytes()
    assert {kb[number].key for number in candidates.ids.tolist()} == {*keys} - {"nowhere"}
    assert (candidates.senses == NO_SENSE).all()
    assert np.all(np.diff(candidates.priors) <= 0)
    assert not len(candidates) or candidates.priors.sum() == pytest.approx(1)


def test_mentions_without_keys_keep_what_they_have(kb):
    document = Document("d", "mercury and java", mentions=[Mention(0, 7, "mercury"), Mention(12, 16, "java")])
    filled = with_candidates(kb, document, [None, ["language"]])
    assert filled.mentions[0].candidates is None
    assert listed(kb, filled.mentions[1].candidates) == [("language", 1.0)]
    assert document.mentions[1].candidates is None  # the document that came is unchanged
    assert filled.text == document.text and filled.id == document.id


def test_a_mention_with_an_empty_list_of_keys_has_no_candidates(kb):
    document = Document("d", "mercury", mentions=[Mention(0, 7, "mercury")])
    assert len(with_candidates(kb, document, [[]]).mentions[0].candidates) == 0


def test_a_document_without_mentions_stays_without(kb):
    assert with_candidates(kb, Document("d", "mercury"), []).mentions == []
