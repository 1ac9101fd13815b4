"""The segment generator: a text cut by somebody else, beside longest match."""

import logging
import sys
import tempfile
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgkit.building import Alias, Entity
from kgkit.candidates import AliasGenerator, SegmentConfig, SegmentGenerator, jieba_segments
from kgkit.candidates.matching import is_case_informative
from kgkit.candidates.spelling import position_hides_case
from kgkit.errors import MissingExtra, UsageError
from kgkit.types import Document, Mention
from tests.small_kb import build

BROCCOLI = "我喜欢新西兰花"
ALIASES = [
    Alias("新西兰", "New_Zealand", 5), Alias("西兰花", "Broccoli", 4), Alias("花", "Flower", 9),
    Alias("US", "United_States", 9), Alias("us", "We", 50), Alias("AA制", "Going_Dutch"),
    Alias("New York", "New_York_City"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    keys = dict.fromkeys(alias.key for alias in ALIASES)
    records = [*map(Entity, keys), *ALIASES]
    with build(tmp_path_factory.mktemp("segments"), records) as opened:
        yield opened


def words(text):
    """Cut at bars, which are in no segment; of the module, so that it can be pickled."""
    start = 0
    for word in text.split("|"):
        yield start, start + len(word)
        start += len(word) + 1


def found(mentions):
    return [(mention.start, mention.end, mention.text) for mention in mentions]


def cut_into(*lengths):
    ends = [sum(lengths[: place + 1]) for place in range(len(lengths))]
    return lambda text: pairwise([0, *ends])


def test_a_segmentation_decides_where_surfaces_share_characters(kb):
    assert found(AliasGenerator(kb).mentions(BROCCOLI)) == [(3, 6, "新西兰"), (6, 7, "花")]
    liked = SegmentGenerator(kb, cut_into(1, 2, 1, 3))  # 我 喜欢 新 西兰花
    [mention] = liked.mentions(BROCCOLI)
    assert mention == Mention(4, 7, "西兰花", kb.candidates("西兰花"))
    assert found(SegmentGenerator(kb, cut_into(1, 2, 3, 1)).mentions(BROCCOLI)) == [
        (3, 6, "新西兰"), (6, 7, "花"),
    ]  # fmt: skip


def test_nothing_is_sought_within_a_segment_or_across_several(kb):
    generator = SegmentGenerator(kb, words)
    assert found(generator.mentions("新西兰花")) == []
    assert found(generator.mentions("New|York|New York")) == [(9, 17, "New York")]


def test_white_space_is_no_mention_and_gaps_are_allowed(kb):
    assert found(SegmentGenerator(kb, words).mentions("花| |||\n|花")) == [(0, 1, "花"), (8, 9, "花")]


def test_case_is_folded_and_preferred_as_the_configuration_says(kb):
    [mention] = SegmentGenerator(kb, words).mentions("So|US")
    assert kb.key(mention.candidates.ids[0]) == "United_States"
    [mention] = SegmentGenerator(kb, words, SegmentConfig(prefer_case=False)).mentions("So|US")
    assert kb.key(mention.candidates.ids[0]) == "We"
    [mention] = SegmentGenerator(kb, words, SegmentConfig(max_candidates=1, null=0.5)).mentions("us")
    assert (len(mention.candidates), mention.candidates.null) == (1, 0.5)


def test_without_a_segmentation_the_tokens_of_a_document_are_its_segments(kb):
    generator = SegmentGenerator(kb)
    [document] = generator([Document("d", BROCCOLI, tokens=[(0, 1), (1, 3), (3, 4), (4, 7)])])
    assert found(document.mentions) == [(4, 7, "西兰花")]
    assert document.tokens is not None
    with pytest.raises(UsageError, match=r"'d'.*'我喜欢新西兰花'"):
        [*generator([Document("d", BROCCOLI)])]
    with pytest.raises(UsageError, match="'我喜欢新西兰花'"):
        generator.mentions(BROCCOLI)


def test_a_segmentation_that_is_passed_in_goes_before_the_tokens_of_a_document(kb):
    [document] = SegmentGenerator(kb, words)([Document("d", "花|花", tokens=[(0, 3)])])
    assert found(document.mentions) == [(0, 1, "花"), (2, 3, "花")]


def test_mentions_that_are_given_keep_their_spans_and_their_candidates(kb):
    own = kb.candidates("花")
    given = [Mention(3, 6, "新西兰", own), Mention(4, 7, "西兰花"), Mention(0, 2, "我喜")]
    [document] = SegmentGenerator(kb)([Document("d", BROCCOLI, mentions=given)])
    assert [mention.candidates for mention in document.mentions[:2]] == [own, kb.candidates("西兰花")]
    assert len(document.mentions[2].candidates) == 0


@pytest.mark.parametrize(
    ("spans", "wrong", "before"),
    [
        ([(0, 3), (2, 4)], r"\(2, 4\)", 3),
        ([(2, 4), (0, 1)], r"\(0, 1\)", 4),
        ([(5, 8)], r"\(5, 8\)", 0),
        ([(-1, 2)], r"\(-1, 2\)", 0),
        ([(3, 2)], r"\(3, 2\)", 0),
    ],
)
def test_segments_that_overlap_or_are_out_of_order_or_outside_of_the_text_are_refused(
    kb, spans, wrong, before
):
    told = rf"segment {wrong} of the text '我喜欢新西兰花', 7 characters: .*the one before ends at {before}"
    with pytest.raises(UsageError, match=told):
        SegmentGenerator(kb, lambda text: spans).mentions(BROCCOLI)
    with pytest.raises(UsageError, match=told):
        [*SegmentGenerator(kb)([Document("d", BROCCOLI, tokens=spans)])]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["新西兰", "西兰花", "花", "us", "US", " ", "", "New York", "新", "aa制"])))
def test_mentions_are_those_of_a_look_up_of_every_segment(kb, pieces):
    text, looked_up = "|".join(pieces), []
    for start, end in words(text):
        cased = text[start:end].islower() or not position_hides_case(text, start, end)
        candidates = kb.candidates(text[start:end], prefer_case=cased)
        if not is_case_informative(text):
            candidates = kb.candidates(text[start:end], prefer_case=False)
        elif text[start:end] == "aa制":  # which the KB writes with capitals only
            continue
        if len(candidates):
            looked_up.append(Mention(start, end, text[start:end], candidates))
    mentions = SegmentGenerator(kb, words).mentions(text)
    assert [(each.start, each.end, each.text) for each in mentions] == [
        (each.start, each.end, each.text) for each in looked_up
    ]
    for mention, other in zip(mentions, looked_up, strict=True):  # a word that may be no name weighs less
        shares = mention.candidates.priors / np.float32(1 - mention.candidates.null)
        assert mention.candidates.ids.tolist() == other.candidates.ids.tolist()
        assert shares.tolist() == other.candidates.priors.tolist()


# -- jieba --------------------------------------------------------------------


needs_jieba = pytest.mark.skipif(find_spec("jieba") is None, reason="jieba is not installed")


@pytest.fixture(scope="module")
def jieba_cut(kb):
    return jieba_segments(kb.surfaces())


def pieces_of(cut, text):
    return [text[start:end] for start, end in cut(text)]


@needs_jieba
def test_jieba_keeps_the_surfaces_of_a_knowledge_base(kb, jieba_cut):
    # Alone it makes 西兰花 one word, and knows nothing of AA制 that a KB would have folded.
    assert "新西兰" in pieces_of(jieba_cut, "他去过新西兰。")
    assert pieces_of(jieba_cut, "我们aa制吧，AA制吧") == ["我们", "aa制", "吧", "，", "AA制", "吧"]
    generator = SegmentGenerator(kb, jieba_cut)
    assert found(generator.mentions("我们AA制买西兰花")) == [(2, 5, "AA制"), (6, 9, "西兰花")]


@needs_jieba
def test_jieba_leaves_as_little_as_it_can_to_words_that_are_no_surfaces():
    cut = jieba_segments(["甲乙", "乙丙丁", "丁戊", "甲乙丙"])
    assert pieces_of(cut, "甲乙丙丁戊") == ["甲乙丙", "丁戊"]


@needs_jieba
@settings(deadline=None)
@given(st.text("新西兰花我们喜欢aA1.%·，。 \t\n\r\u3000Ⅷİßéк👩", max_size=30))
def test_what_jieba_cuts_is_all_of_the_text_in_order(jieba_cut, text):
    spans = [*jieba_cut(text)]
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(before[1] == after[0] for before, after in pairwise(spans))


@needs_jieba
def test_jieba_is_quiet_writes_nothing_and_its_own_tokenizer_does_not_change(
    kb, tmp_path, monkeypatch, caplog, capfd
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with caplog.at_level(logging.DEBUG):
        cut = jieba_segments(["云端物"])
        assert pieces_of(cut, "云端物") == ["云端物"]
    assert not caplog.records and capfd.readouterr() == ("", "")
    assert not [*tmp_path.iterdir()]
    assert "云端物" not in sys.modules["jieba"].dt.FREQ


def test_without_jieba_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtra, match=r"'jieba': pip install 'kgkit\[zh\]'"):
        jieba_segments([])
